//! The one watcher, and what its events mean.

use std::{
    collections::BTreeSet,
    fmt::Display,
    ops::Bound,
    path::{Path, PathBuf},
};

use crossbeam_channel::Sender;

#[cfg(any(target_os = "linux", target_os = "android"))]
use super::inotify::System;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use super::notified::System;
use super::problems::{Problem, ProblemKind};

/// On Linux each folder has a watch of its own, set before the folder is read; elsewhere a watch
/// covers a whole tree by itself, and costs more.
pub(super) const EACH_FOLDER: bool = cfg!(any(target_os = "linux", target_os = "android"));

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
    system: Option<System>,
    armed: BTreeSet<PathBuf>,
    /// Folders above all that is watched: only their own going is of interest.
    guarded: BTreeSet<PathBuf>,
    /// Why some folder cannot be watched.
    failure: Option<Problem>,
}

impl Watch {
    /// One that sends to `signals`.
    pub fn new(signals: Sender<Signal>) -> Self {
        let (system, failure) = match System::new(signals) {
            Ok(system) => (Some(system), None),
            Err(error) => (None, Some(failure(None, &error))),
        };
        Self { system, armed: BTreeSet::new(), guarded: BTreeSet::new(), failure }
    }

    /// Watch the folder at `path` and, where that costs nothing more, all below it.
    pub fn arm(&mut self, path: &Path) {
        let covered = !EACH_FOLDER && path.ancestors().any(|above| self.armed.contains(above));
        if !covered {
            self.add(path, !EACH_FOLDER);
        }
    }

    /// Watch what lies above `path`, so that its coming and going is seen: the nearest folder that
    /// exists, and all from there up to `top`. Of those further up it is enough to know whether they
    /// are still the same.
    pub fn arm_above(&mut self, path: &Path, top: Option<&Path>) {
        let mut above = path.ancestors().skip(1).skip_while(|folder| !folder.is_dir()).peekable();
        if let Some(nearest) = above.next() {
            self.add(nearest, false);
            self.guard_link(nearest);
        }
        while let Some(folder) = above.next_if(|folder| top.is_some_and(|top| folder.starts_with(top))) {
            self.add(folder, false);
            self.guard_link(folder);
        }
        for folder in above {
            if !self.guarded.insert(folder.to_path_buf()) {
                break; // then so is what is above it
            }
            if let Some(system) = &mut self.system {
                system.guard(folder);
            }
            self.guard_link(folder);
        }
    }

    /// A link may be made to lead elsewhere, and what it leads to knows nothing of that.
    fn guard_link(&mut self, folder: &Path) {
        if folder.is_symlink()
            && let Some(holder) = folder.parent()
        {
            self.add(holder, false);
        }
    }

    /// The folder at `path` is of no interest any more, or has gone: if it comes back, it needs a
    /// new watch.
    pub fn disarm(&mut self, path: &Path) {
        if self.armed.contains(path)
            && let Some(system) = &mut self.system
        {
            system.disarm(path);
        }
        for set in [&mut self.armed, &mut self.guarded] {
            let from = set.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
            let stale: Vec<PathBuf> = from.take_while(|at| at.starts_with(path)).cloned().collect();
            stale.iter().for_each(|at| _ = set.remove(at));
        }
    }

    /// The system may have dropped any watch.
    pub fn lost_all(&mut self) {
        self.armed.clear();
        self.guarded.clear();
        self.failure = None;
    }

    pub fn problems(&self) -> impl Iterator<Item = Problem> {
        self.failure.iter().cloned()
    }

    fn add(&mut self, path: &Path, all_below: bool) {
        let Some(system) = &mut self.system else { return };
        if self.armed.contains(path) {
            return;
        }
        match system.arm(path, all_below) {
            Ok(()) => _ = self.armed.insert(path.to_path_buf()),
            Err(error) if path.is_dir() => self.fail(failure(Some(path), &error)),
            Err(_) => {} // it has just gone; its parent's event says so
        }
    }

    /// Where one folder cannot be watched, thousands may not; the first speaks for all.
    fn fail(&mut self, problem: Problem) {
        if self.failure.is_none() {
            log::warn!("{problem}");
            self.failure = Some(problem);
        }
    }
}

fn failure(path: Option<&Path>, error: &dyn Display) -> Problem {
    let message = format!("cannot watch for changes, which are now seen only when a sync asks for them: {error}");
    Problem { kind: ProblemKind::Unwatched, path: path.map(Path::to_path_buf), message }
}
