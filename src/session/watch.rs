//! The one watcher, and what its events mean.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use crossbeam_channel::Sender;
use notify::{
    Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode, CreateKind, ModifyKind, RenameMode},
};

use super::problems::{Problem, ProblemKind};

/// On Linux each folder has a watch of its own, set before the folder is read; elsewhere a watch
/// covers a whole tree by itself, and costs more.
const EACH_FOLDER: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// What the system reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Signal {
    /// Look at it now: its writer has closed it, or it came or changed as a whole.
    Look(PathBuf),
    /// Something writes there; look when that has ended.
    Busy(PathBuf),
    /// It went, or moved away.
    Gone(PathBuf),
    /// It was moved.
    Moved {
        /// Where it was.
        from: PathBuf,
        /// Where it is.
        to: PathBuf,
    },
    /// Events were lost: look at everything.
    Lost(String),
}

/// Our hold on the system's watcher.
pub(super) struct Watch {
    watcher: Option<RecommendedWatcher>,
    armed: HashSet<PathBuf>,
    /// Why some folder cannot be watched.
    failure: Option<Problem>,
}

impl Watch {
    /// One that watches nothing.
    pub fn off() -> Self {
        Self { watcher: None, armed: HashSet::new(), failure: None }
    }

    /// One that sends to `signals`.
    pub fn new(signals: Sender<Signal>) -> Self {
        let mut translator = Translator::default();
        let handler = move |event: notify::Result<Event>| {
            for signal in translator.translate(event) {
                _ = signals.send(signal); // the session is gone
            }
        };
        let config = Config::default().with_follow_symlinks(false);
        match RecommendedWatcher::new(handler, config) {
            Ok(watcher) => Self { watcher: Some(watcher), ..Self::off() },
            Err(error) => Self { failure: Some(failure(None, &error)), ..Self::off() },
        }
    }

    /// Watch the folder at `path` and, where that costs nothing more, all below it.
    pub fn arm(&mut self, path: &Path) {
        let mode = if EACH_FOLDER { RecursiveMode::NonRecursive } else { RecursiveMode::Recursive };
        let covered = !EACH_FOLDER && path.ancestors().any(|above| self.armed.contains(above));
        if !covered {
            self.add(path, mode);
        }
    }

    /// Watch what lies above `path`, so that its coming and going is seen: the nearest folder that
    /// exists, and all from there up to `top`.
    pub fn arm_above(&mut self, path: &Path, top: Option<&Path>) {
        let mut above = path.ancestors().skip(1).skip_while(|folder| !folder.is_dir());
        if let Some(nearest) = above.next() {
            self.add(nearest, RecursiveMode::NonRecursive);
        }
        for folder in above.take_while(|folder| top.is_some_and(|top| folder.starts_with(top))) {
            self.add(folder, RecursiveMode::NonRecursive);
        }
    }

    /// The folder at `path` is of no interest any more, or has gone: if it comes back, it needs a
    /// new watch.
    ///
    /// On Linux the system's own watch stays. It ends with the folder; and where the folder was
    /// moved, it is by now the watch of the new place too.
    pub fn disarm(&mut self, path: &Path) {
        if !self.armed.contains(path) {
            return;
        }
        if !EACH_FOLDER && let Some(watcher) = &mut self.watcher {
            _ = watcher.unwatch(path); // the system may have dropped it with the folder
        }
        self.armed.retain(|armed| !armed.starts_with(path));
    }

    /// The system may have dropped any watch.
    pub fn lost_all(&mut self) {
        self.armed.clear();
        self.failure = None;
    }

    pub fn problems(&self) -> impl Iterator<Item = Problem> {
        self.failure.iter().cloned()
    }

    fn add(&mut self, path: &Path, mode: RecursiveMode) {
        let Some(watcher) = &mut self.watcher else { return };
        if self.armed.contains(path) {
            return;
        }
        match watcher.watch(path, mode) {
            Ok(()) => _ = self.armed.insert(path.to_path_buf()),
            Err(error) if path.is_dir() => {
                let problem = failure(Some(path), &error);
                log::warn!("{}", problem.message);
                self.failure.get_or_insert(problem);
            }
            Err(_) => {} // it has just gone; its parent's event says so
        }
    }
}

fn failure(path: Option<&Path>, error: &notify::Error) -> Problem {
    let message = format!("cannot watch for changes, which are now seen only when a sync asks for them: {error}");
    Problem { kind: ProblemKind::Unwatched, path: path.map(Path::to_path_buf), message }
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
            EventKind::Create(_) if EACH_FOLDER && event.paths.iter().any(|path| is_complete(path)) => Signal::Look,
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
            // A moved folder's own word for what its parent has just reported.
            RenameMode::From if EACH_FOLDER && tracker.is_none() => Vec::new(),
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
            RenameMode::Both if EACH_FOLDER => Vec::new(), // its halves came one by one
            RenameMode::Both => match (paths.next(), paths.next()) {
                (Some(from), Some(to)) => vec![Signal::Moved { from, to }],
                (one, _) => one.into_iter().map(Signal::Busy).collect(),
            },
            RenameMode::Any | RenameMode::Other => paths.map(Signal::Busy).collect(),
        }
    }
}

/// Whether what was just created was not opened for writing: a link of either kind.
fn is_complete(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink() || is_hard_link(&metadata))
}

#[cfg(unix)]
fn is_hard_link(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.is_file() && metadata.nlink() > 1
}

#[cfg(not(unix))]
fn is_hard_link(_: &std::fs::Metadata) -> bool {
    false
}
