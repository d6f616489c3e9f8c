//! The watcher on Linux: inotify, a watch for each folder.
//!
//! `notify` asks the system for every opening of a file as well, ours and everybody's: a search through
//! the project wakes us once a file, and a folder could not be watched before we read it without an
//! event for each file that we open. Here a watch is one system call, made before the folder is listed,
//! and only what changes something is reported. So the project is read once, and what is saved
//! meanwhile is an event that waits until it is.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::Metadata,
    io,
    mem::MaybeUninit,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use crossbeam_channel::Sender;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, eventfd, poll},
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};

use super::watch::Signal;

/// What is taken from the system at once, in bytes: some hundred events.
const BUFFER: usize = 16 << 10;

/// Our hold on inotify. Ends when dropped.
pub(super) struct System {
    shared: Arc<Shared>,
    /// Written to, it ends the thread that reads.
    end: Arc<OwnedFd>,
}

struct Shared {
    queue: OwnedFd,
    /// Which folder a watch belongs to, under the path by which it was armed last.
    folders: Mutex<HashMap<i32, PathBuf>>,
}

impl System {
    /// Report to `signals` from a thread of its own.
    pub fn new(signals: Sender<Signal>) -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let shared = Arc::new(Shared { queue, folders: Mutex::default() });
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let (reader, ended) = (Translator { shared: Arc::clone(&shared), moving: None }, Arc::clone(&end));
        thread::Builder::new().name("inotify".to_owned()).spawn(move || reader.run(&ended, &signals))?;
        Ok(Self { shared, end })
    }

    /// Watch the folder at `path`. Of one that is watched already, the path is what counts from now on.
    pub fn arm(&mut self, path: &Path, _all_below: bool) -> io::Result<()> {
        let changes = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::CLOSE_WRITE;
        // An event that comes at once waits until its folder is known.
        let mut folders = self.shared.folders();
        match inotify::add_watch(&self.shared.queue, path, changes | WatchFlags::ONLYDIR | WatchFlags::EXCL_UNLINK) {
            Ok(watch) => _ = folders.insert(watch, path.to_path_buf()),
            Err(Errno::NOSPC) => {
                let hint = "the system's limit of watched folders is reached; raise fs.inotify.max_user_watches";
                return Err(io::Error::other(hint));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Be told when the folder at `path` itself is moved or removed, beside what it is watched for already.
    pub fn guard(&mut self, path: &Path) {
        let going = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        let mut folders = self.shared.folders();
        // One that may not be read cannot be watched; then its going is not seen.
        if let Ok(watch) =
            inotify::add_watch(&self.shared.queue, path, going | WatchFlags::ONLYDIR | WatchFlags::MASK_ADD)
        {
            folders.entry(watch).or_insert_with(|| path.to_path_buf());
        }
    }

    /// The watch ends with its folder; and where the folder was moved, it is by now the watch of the
    /// new place too. So there is nothing to do.
    pub fn disarm(&mut self, _: &Path) {}
}

impl Drop for System {
    fn drop(&mut self) {
        _ = rustix::io::write(&*self.end, &1_u64.to_ne_bytes()); // it cannot be full
    }
}

impl Shared {
    fn folders(&self) -> MutexGuard<'_, HashMap<i32, PathBuf>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Turns events into signals.
struct Translator {
    shared: Arc<Shared>,
    /// The first half of a move, and the number that its other half bears.
    moving: Option<(u32, PathBuf)>,
}

/// What an event says.
struct Event {
    watch: i32,
    what: ReadFlags,
    cookie: u32,
    name: Option<PathBuf>,
}

impl Translator {
    /// Returns when asked to end, or when nobody takes the signals.
    fn run(mut self, end: &OwnedFd, signals: &Sender<Signal>) {
        let shared = Arc::clone(&self.shared);
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut events = Reader::new(&shared.queue, &mut buffer);
        loop {
            let signal = match events.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| PathBuf::from(OsStr::from_bytes(name.to_bytes())));
                    let (watch, what, cookie) = (event.wd(), event.events(), event.cookie());
                    self.translate(Event { watch, what, cookie, name })
                }
                Err(Errno::AGAIN) if wait(&shared.queue, end) => continue,
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => continue,
                Err(error) => {
                    _ = signals.send(Signal::Lost(error.to_string())); // the session may be gone
                    return;
                }
            };
            if signal.is_some_and(|signal| signals.send(signal).is_err()) {
                return;
            }
        }
    }

    fn translate(&mut self, event: Event) -> Option<Signal> {
        let what = event.what;
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            return Some(Signal::Lost("the system's queue was full".to_owned()));
        }
        if what.contains(ReadFlags::IGNORED) {
            self.shared.folders().remove(&event.watch);
            return None;
        }
        let mut path = self.shared.folders().get(&event.watch)?.clone();
        path.extend(event.name);
        let is_folder = what.contains(ReadFlags::ISDIR);
        if what.intersects(ReadFlags::DELETE | ReadFlags::DELETE_SELF) {
            return Some(Signal::Gone(path));
        }
        // Its parent is not watched, or has said so already.
        if what.contains(ReadFlags::MOVE_SELF) {
            self.unwatch(&path);
            return Some(Signal::Gone(path));
        }
        if what.contains(ReadFlags::MOVED_FROM) {
            self.moving = Some((event.cookie, path.clone()));
            if is_folder {
                self.unwatch(&path);
            }
            return Some(Signal::Gone(path));
        }
        if what.contains(ReadFlags::MOVED_TO) {
            let from = self.moving.take().filter(|(cookie, _)| *cookie == event.cookie).map(|(_, from)| from);
            return Some(match from {
                Some(from) => Signal::Moved { from, to: path },
                None => Signal::Look(path),
            });
        }
        let made = what.contains(ReadFlags::CREATE) && (is_folder || is_complete(&path));
        Some(if made || what.contains(ReadFlags::CLOSE_WRITE) { Signal::Look(path) } else { Signal::Busy(path) })
    }

    /// The folder has moved away, perhaps out of the project. Where it is in the project still, it is
    /// watched anew once it is found there.
    fn unwatch(&self, path: &Path) {
        let mut folders = self.shared.folders();
        folders.retain(|watch, folder| {
            let moved = folder.starts_with(path);
            if moved {
                _ = inotify::remove_watch(&self.shared.queue, *watch); // it may have ended with its folder
            }
            !moved
        });
    }
}

/// Wait for events. `false`: for none any more.
fn wait(queue: &OwnedFd, end: &OwnedFd) -> bool {
    let mut both = [PollFd::new(queue, PollFlags::IN), PollFd::new(end, PollFlags::IN)];
    loop {
        match poll(&mut both, None) {
            Ok(_) => return both[1].revents().is_empty(),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Whether what was just created was not opened for writing: a link of either kind.
fn is_complete(path: &Path) -> bool {
    let is_hard_link = |metadata: &Metadata| metadata.is_file() && metadata.nlink() > 1;
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink() || is_hard_link(&metadata))
}
