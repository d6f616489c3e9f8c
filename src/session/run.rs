//! The thread that follows the files: takes the watcher's signals and the readers' requests, and
//! survives what goes wrong in between.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvError, Sender, after, bounded, never, select_biased};

use super::{
    engine::{Board, Engine},
    mirror::{Changes, Trust},
    pending::Pending,
    problems::Health,
    readback::ReadAs,
    types::SessionError,
    watch::{EACH_FOLDER, Signal, Watch},
};
use crate::clock;

/// librojo recurses over folders, models and projects.
const STACK_BYTES: usize = 64 << 20;

/// So many panics within [`PANIC_SPAN`] end the session: a rescan does not help.
const MAX_PANICS: usize = 3;
const PANIC_SPAN: Duration = Duration::from_secs(60);

/// What readers ask of the thread.
pub(super) enum Command {
    /// Look at these paths now (`None`: at everything), and tell the cursor when the tree is up to it.
    CatchUp { paths: Option<Vec<PathBuf>>, reply: Sender<u32> },
    /// The same for what the server itself has just written, and for nothing else.
    TakeIn { written: Vec<PathBuf>, reply: Sender<u32> },
    /// Say what a file at this path would be read as.
    WouldRead { path: PathBuf, reply: Sender<Result<ReadAs, String>> },
    /// Go wrong, as a bug would.
    #[cfg(test)]
    Panic,
    /// Do nothing, as if busy: say that it has begun, and wait.
    #[cfg(test)]
    Hold { begun: Sender<()>, until: Receiver<()> },
}

/// Where the watcher's signals come from and go to.
pub(super) type Signals = (Sender<Signal>, Receiver<Signal>);

/// Start the thread; returns when the project is read. The thread ends with the last sender.
pub(super) fn start(path: &Path, signals: Signals) -> Result<(Arc<Board>, Sender<Command>), SessionError> {
    let (commands, inbox) = crossbeam_channel::unbounded();
    let (ready, opened) = bounded(1);
    let path = path.to_path_buf();
    let (sender, signals) = signals;
    let follow = move || match Engine::open(&path, Watch::new(sender)) {
        Ok(engine) => {
            _ = ready.send(Ok(Arc::clone(&engine.board))); // the caller waits
            Run::new(engine, inbox, signals).until_the_end();
        }
        Err(error) => _ = ready.send(Err(error)), // the caller waits
    };
    let dead = |reason: String| SessionError::Dead { reason };
    let thread = thread::Builder::new().name("session".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(follow).map_err(|error| dead(error.to_string()))?;
    let board = opened.recv().map_err(|_| dead("reading the project panicked".to_owned()))??;
    Ok((board, commands))
}

struct Run {
    engine: Engine,
    pending: Pending,
    commands: Receiver<Command>,
    signals: Receiver<Signal>,
    panics: VecDeque<Instant>,
    /// Something could not be read for a reason that passes, and the log says so.
    waits: bool,
}

/// What woke the thread.
enum Woken {
    Signal(Signal),
    Command(Command),
    Timer,
    /// Nobody holds the session any more.
    End,
}

impl Run {
    fn new(engine: Engine, commands: Receiver<Command>, signals: Receiver<Signal>) -> Self {
        Self { engine, pending: Pending::default(), commands, signals, panics: VecDeque::new(), waits: false }
    }

    fn until_the_end(mut self) {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.follow())) {
                Ok(()) => return,
                Err(panic) => {
                    let reason = panic_text(panic.as_ref());
                    log::error!("the session panicked ({reason}); it looks at everything again");
                    if self.too_many_panics() {
                        self.is(Health::Dead { reason });
                        return;
                    }
                    self.is(Health::Behind { reason: format!("the session panicked: {reason}") });
                }
            }
        }
    }

    fn too_many_panics(&mut self) -> bool {
        #[cfg(test)]
        self.engine.board.panics.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let now = clock::now();
        self.panics.push_back(now);
        self.panics.retain(|at| now.duration_since(*at) < PANIC_SPAN);
        self.panics.len() >= MAX_PANICS
    }

    /// Returns when nobody holds the session any more.
    fn follow(&mut self) {
        if !self.panics.is_empty() {
            self.engine.mirror.watch.lost_all();
            self.look_at_all(Engine::remake_all);
        } else if !EACH_FOLDER {
            // Where one watch covers much, setting the next may interrupt it: what was saved then is
            // still to be seen.
            self.look_at_all(Engine::apply);
        }
        loop {
            self.look_again();
            match self.wait() {
                Woken::End => return,
                Woken::Command(command) => self.obey(command),
                Woken::Signal(signal) => {
                    self.note(&signal);
                    while let Ok(signal) = self.signals.try_recv() {
                        self.note(&signal);
                    }
                    self.act();
                }
                Woken::Timer => self.act(),
            }
        }
    }

    /// Come back to what could not be read for a reason that passes.
    fn look_again(&mut self) {
        let again = std::mem::take(&mut self.engine.mirror.again);
        if let Some(first) = again.first() {
            let problem = self.engine.mirror.problems.get(first).map_or("", String::as_str);
            if !self.waits {
                log::warn!("{}: {problem}; it is looked at again, as others are that cannot be read", first.display());
            }
            self.waits = true;
            self.pending.doubt(Vec::new(), again, clock::now());
        }
    }

    fn wait(&self) -> Woken {
        let timer = match self.pending.due() {
            Some(due) => after(due.saturating_duration_since(clock::now())),
            None => never(),
        };
        let (commands, signals) = (&self.commands, &self.signals);
        // Commands first: a flood of signals must not keep a reader waiting.
        select_biased! {
            recv(commands) -> command => match command {
                Ok(command) => Woken::Command(command),
                Err(RecvError) => Woken::End,
            },
            recv(signals) -> signal => match signal {
                Ok(signal) => Woken::Signal(signal),
                Err(RecvError) => self.wait_unwatched(),
            },
            recv(timer) -> _ => Woken::Timer,
        }
    }

    /// There is no watcher: only commands are left.
    fn wait_unwatched(&self) -> Woken {
        self.commands.recv().map_or(Woken::End, Woken::Command)
    }

    fn note(&mut self, signal: &Signal) {
        match signal {
            Signal::Lost(reason) => {
                log::warn!("file events were lost ({reason}); looking at everything again");
                self.is(Health::Behind { reason: format!("file events were lost: {reason}") });
            }
            // What comes to a place is not what was watched there.
            Signal::Gone(path) | Signal::Look(path) => self.engine.mirror.watch.disarm(path),
            Signal::Moved { from, to } => [from, to].into_iter().for_each(|path| self.engine.mirror.watch.disarm(path)),
            Signal::Busy(_) => {}
        }
        self.pending.note(signal, clock::now());
    }

    fn act(&mut self) {
        if self.pending.take_rescan(clock::now()) {
            self.engine.mirror.watch.lost_all();
            self.look_at_all(Engine::apply);
        }
        let paths = self.pending.take(clock::now());
        if !paths.is_empty() {
            let changes = self.engine.mirror.refresh(paths.iter().map(PathBuf::as_path), Trust::Doubt);
            self.take_in(changes, Engine::apply);
            self.waits &= !self.engine.mirror.again.is_empty();
            self.pending.acted(clock::now());
        }
    }

    fn look_at_all(&mut self, apply: fn(&mut Engine, Changes)) {
        let changes = self.engine.mirror.refresh_all(Trust::Doubt);
        self.take_in(changes, apply);
        self.is(Health::Live);
    }

    fn is(&self, health: Health) {
        self.engine.board.health.send_if_modified(|now| {
            let changes = *now != health;
            *now = health;
            changes
        });
    }

    fn take_in(&mut self, mut changes: Changes, apply: fn(&mut Engine, Changes)) {
        let (missing, busy) = (std::mem::take(&mut changes.missing), std::mem::take(&mut changes.busy));
        self.pending.doubt(missing, busy, clock::now());
        let replaced = self.pending.take_replaced(&changes.touched);
        if !replaced.is_empty() {
            changes.merge(self.engine.mirror.refresh(replaced.iter().map(PathBuf::as_path), Trust::Doubt));
        }
        #[cfg(debug_assertions)]
        panic_if_asked(&changes);
        apply(&mut self.engine, changes);
    }

    fn catch_up(&mut self, paths: Option<&[PathBuf]>) {
        while let Ok(signal) = self.signals.try_recv() {
            self.note(&signal);
        }
        let certain = self.pending.take_certain();
        let mirror = &mut self.engine.mirror;
        let mut changes = match paths {
            None => mirror.refresh_all(Trust::Patient),
            Some(paths) => mirror.refresh(paths.iter().chain(&certain).map(PathBuf::as_path), Trust::Patient),
        };
        let missing = std::mem::take(&mut changes.missing);
        let vanished: Vec<PathBuf> = missing.iter().filter(|path| !certain.contains(*path)).cloned().collect();
        self.pending.doubt(vanished.clone(), Vec::new(), clock::now());
        let replaced = self.pending.take_replaced(&changes.touched);
        self.wait_for(&vanished);
        self.pending.forget(&vanished);
        let again = missing.into_iter().chain(replaced).chain(self.pending.take_certain());
        let (gone, back): (Vec<PathBuf>, Vec<PathBuf>) = again.partition(|path| path.symlink_metadata().is_err());
        changes.merge(self.engine.mirror.refresh(gone.iter().map(PathBuf::as_path), Trust::Exact));
        changes.merge(self.engine.mirror.refresh(back.iter().map(PathBuf::as_path), Trust::Patient));
        self.take_in(changes, Engine::apply);
        if paths.is_none() {
            self.is(Health::Live);
        }
    }

    /// What vanished just now may be in the middle of a save: wait until it is there again, was replaced or
    /// renamed, or has had its time.
    fn wait_for(&mut self, vanished: &[PathBuf]) {
        while let Some(until) = self.pending.gone_until(vanished) {
            #[cfg(test)]
            vanished.iter().for_each(|path| super::tests::looked_at(path));
            let left = until.saturating_duration_since(clock::now());
            match self.signals.recv_timeout(left) {
                Ok(signal) => self.note(&signal),
                Err(_) => return,
            }
            if left.is_zero() {
                return;
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::CatchUp { paths, reply } => {
                self.catch_up(paths.as_deref());
                let cursor = self.engine.board.state.read().cursor;
                _ = reply.send(cursor); // the caller may have given up
            }
            Command::TakeIn { written, reply } => {
                let changes = self.engine.mirror.refresh(written.iter().map(PathBuf::as_path), Trust::Exact);
                self.engine.apply(changes);
                let cursor = self.engine.board.state.read().cursor;
                _ = reply.send(cursor); // the caller may have given up
            }
            Command::WouldRead { path, reply } => {
                let read = self.engine.would_read(&path);
                _ = reply.send(read); // the caller may have given up
            }
            #[cfg(test)]
            Command::Panic => panic!("asked to"),
            #[cfg(test)]
            Command::Hold { begun, until } => {
                _ = begun.send(());
                _ = until.recv();
            }
        }
    }
}

/// Debug builds go wrong, as a bug would, on a change of the file that `ROJO_MCP_TEST_PANIC` names:
/// so tests see what the whole process makes of it.
#[cfg(debug_assertions)]
fn panic_if_asked(changes: &Changes) {
    let Some(name) = std::env::var_os("ROJO_MCP_TEST_PANIC") else { return };
    let asked = changes.touched.iter().any(|path| path.file_name() == Some(&name));
    assert!(!asked, "asked to");
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no words".to_owned())
}
