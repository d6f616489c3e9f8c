//! The watcher where the system covers a whole tree with one watch: `notify`.

use std::path::{Path, PathBuf};

use crossbeam_channel::Sender;
use notify::{
    Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode, CreateKind, ModifyKind, RenameMode},
};

use super::watch::Signal;

/// Our hold on it. Ends when dropped.
pub(super) struct System(RecommendedWatcher);

impl System {
    /// Report to `signals`.
    pub fn new(signals: Sender<Signal>) -> notify::Result<Self> {
        let mut translator = Translator::default();
        let handler = move |event: notify::Result<Event>| {
            for signal in translator.translate(event) {
                _ = signals.send(signal); // the session is gone
            }
        };
        let config = Config::default().with_follow_symlinks(false);
        Ok(Self(RecommendedWatcher::new(handler, config)?))
    }

    /// Watch the folder at `path` and, if so wished, all below it.
    pub fn arm(&mut self, path: &Path, all_below: bool) -> notify::Result<()> {
        self.0.watch(path, if all_below { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive })
    }

    /// Nothing: to be told of a folder's own going, all that happens in its parent would have to be
    /// listened to, up to the top of the disk. A sync looks by itself.
    pub fn guard(&mut self, _: &Path) {}

    /// Watch it no more.
    pub fn disarm(&mut self, path: &Path) {
        _ = self.0.unwatch(path); // the system may have dropped it with the folder
    }
}

/// Turns events into signals.
#[derive(Default)]
struct Translator {
    /// The first half of a move, and the number that its other half bears.
    moving: Option<(usize, PathBuf)>,
}

impl Translator {
    fn translate(&mut self, event: notify::Result<Event>) -> Vec<Signal> {
        let event = match event {
            Ok(event) if event.need_rescan() => return vec![Signal::Lost("the system's queue was full".to_owned())],
            Ok(event) => event,
            Err(error) => return vec![Signal::Lost(error.to_string())],
        };
        if let EventKind::Modify(ModifyKind::Name(mode)) = event.kind {
            return self.renamed(mode, event);
        }
        let signal: fn(PathBuf) -> Signal = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => Signal::Look,
            EventKind::Access(_) => return Vec::new(),
            EventKind::Create(CreateKind::Folder) => Signal::Look,
            EventKind::Remove(_) => Signal::Gone,
            EventKind::Create(_) | EventKind::Modify(_) | EventKind::Any | EventKind::Other => Signal::Busy,
        };
        event.paths.into_iter().map(signal).collect()
    }

    /// Both ends of a move in one signal, so that they are acted on together.
    fn renamed(&mut self, mode: RenameMode, event: Event) -> Vec<Signal> {
        let tracker = event.tracker();
        let mut paths = event.paths.into_iter();
        match mode {
            RenameMode::From => {
                let from: Vec<PathBuf> = paths.collect();
                self.moving = tracker.zip(from.first().cloned());
                from.into_iter().map(Signal::Gone).collect()
            }
            RenameMode::To => {
                let from = self.moving.take().filter(|(first, _)| Some(*first) == tracker).map(|(_, from)| from);
                let Some(to) = paths.next() else { return Vec::new() };
                vec![from.map_or_else(|| Signal::Look(to.clone()), |from| Signal::Moved { from, to: to.clone() })]
            }
            RenameMode::Both => match (paths.next(), paths.next()) {
                (Some(from), Some(to)) => vec![Signal::Moved { from, to }],
                (one, _) => one.into_iter().map(Signal::Busy).collect(),
            },
            RenameMode::Any | RenameMode::Other => paths.map(Signal::Busy).collect(),
        }
    }
}
