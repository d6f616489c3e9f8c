//! When to act on what the watcher reports. At once where a file is complete; later where it is
//! still being written, or has vanished and may come back.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::watch::Signal;

/// A file that vanishes and returns within this time was edited, not deleted: so some editors save.
const GRACE: Duration = Duration::from_millis(300);

/// How long after the last sign of writing we look, if nobody says that it has ended.
const BUSY: Duration =
    Duration::from_millis(if cfg!(any(target_os = "linux", target_os = "android")) { 500 } else { 15 });

/// What follows closely on something that was acted on is gathered for so long.
const GATHER: Duration = Duration::from_millis(25);

/// As long as more comes within this time, it is gathered on: many files at once are one change.
const FLOW: Duration = Duration::from_millis(10);

/// But no longer than this.
const MOST_GATHER: Duration = Duration::from_millis(150);

/// Looking at everything takes its time; a watcher that keeps failing must not take all of it.
const BETWEEN_RESCANS: Duration = Duration::from_millis(500);

/// Paths to be looked at, and when.
#[derive(Debug, Default)]
pub(super) struct Pending {
    ready: BTreeSet<PathBuf>,
    busy: BTreeMap<PathBuf, Instant>,
    gone: BTreeMap<PathBuf, Instant>,
    gathered_until: Option<Instant>,
    /// When gathering ends at the latest.
    gather_limit: Option<Instant>,
    /// When to look at everything.
    rescan: Option<Instant>,
    no_rescan_until: Option<Instant>,
}

impl Pending {
    /// Take in what the watcher says.
    pub fn note(&mut self, signal: &Signal, now: Instant) {
        if matches!(signal, Signal::Look(_) | Signal::Moved { .. }) {
            self.gather_on(now);
        }
        match signal {
            Signal::Look(path) => {
                self.busy.remove(path);
                self.gone.remove(path);
                self.ready.insert(path.clone());
            }
            Signal::Busy(path) => {
                self.gone.remove(path);
                if !self.ready.contains(path) {
                    self.busy.insert(path.clone(), now + BUSY);
                }
            }
            Signal::Gone(path) => {
                self.busy.remove(path);
                self.ready.remove(path);
                self.gone.entry(path.clone()).or_insert(now + GRACE);
            }
            Signal::Moved { from, to } => {
                self.gone.remove(to);
                self.busy.remove(to);
                self.ready.insert(to.clone());
                self.gone.entry(from.clone()).or_insert(now + GRACE);
                if becomes_instance(to) {
                    self.gone.remove(from);
                    self.ready.insert(from.clone());
                }
            }
            Signal::Lost(_) => _ = self.rescan.get_or_insert(self.no_rescan_until.map_or(now, |until| until.max(now))),
        }
    }

    fn gather_on(&mut self, now: Instant) {
        if let (Some(until), Some(limit)) = (&mut self.gathered_until, self.gather_limit)
            && now < *until
        {
            *until = (*until).max(now + FLOW).min(limit);
        }
    }

    /// Take in what a look at the disk left in doubt.
    pub fn doubt(&mut self, missing: Vec<PathBuf>, busy: Vec<PathBuf>, now: Instant) {
        for path in missing {
            self.gone.entry(path).or_insert(now + GRACE);
        }
        for path in busy {
            self.busy.entry(path).or_insert(now + BUSY);
        }
    }

    /// When to call [`take`](Self::take) next, if nothing else happens.
    pub fn due(&self) -> Option<Instant> {
        let timed = self.busy.values().chain(self.gone.values()).min().copied();
        let ready = (!self.ready.is_empty()).then_some(self.gathered_until).flatten();
        timed.into_iter().chain(ready).chain(self.rescan).min()
    }

    /// Whether to look at everything now.
    pub fn take_rescan(&mut self, now: Instant) -> bool {
        let due = self.rescan.take_if(|at| *at <= now).is_some();
        if due {
            self.no_rescan_until = Some(now + BETWEEN_RESCANS);
        }
        due
    }

    /// The paths to look at now.
    pub fn take(&mut self, now: Instant) -> Vec<PathBuf> {
        if self.gathered_until.is_some_and(|until| now < until) {
            return Vec::new();
        }
        for held in [&mut self.busy, &mut self.gone] {
            let due: Vec<PathBuf> = held.iter().filter(|(_, at)| **at <= now).map(|(path, _)| path.clone()).collect();
            self.ready.extend(due.into_iter().inspect(|path| _ = held.remove(path)));
        }
        let ready = std::mem::take(&mut self.ready);
        let replaced = self.take_replaced(&ready);
        ready.into_iter().chain(replaced).collect()
    }

    /// What was taken has been dealt with: only now what follows begins to be gathered, for in a flood
    /// more has come while we worked.
    pub fn acted(&mut self, now: Instant) {
        self.gathered_until = Some(now + GATHER);
        self.gather_limit = Some(now + MOST_GATHER);
    }

    /// What is held back although one of `new` becomes the instance that it was: `Foo.luau` and `Foo/`.
    pub fn take_replaced(&mut self, new: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
        if self.gone.is_empty() {
            return Vec::new();
        }
        // Both may be many thousands.
        let mut comers: HashMap<_, Vec<&PathBuf>> = HashMap::new();
        for path in new.iter().filter(|path| becomes_instance(path)) {
            comers.entry((path.parent(), stem(path))).or_default().push(path);
        }
        let is_replaced = |gone: &&PathBuf| {
            let comers = comers.get(&(gone.parent(), stem(gone)));
            comers.is_some_and(|comers| comers.iter().any(|new| new != gone))
        };
        let replaced: Vec<PathBuf> = self.gone.keys().filter(is_replaced).cloned().collect();
        replaced.into_iter().inspect(|path| _ = self.gone.remove(path)).collect()
    }

    /// Everything, due or not, but for what has vanished and may come back.
    pub fn take_certain(&mut self) -> BTreeSet<PathBuf> {
        let mut all = std::mem::take(&mut self.ready);
        all.extend(std::mem::take(&mut self.busy).into_keys());
        all
    }

    /// Until when one of `paths` may come back. `None`: none of them is waited for.
    pub fn gone_until(&self, paths: &[PathBuf]) -> Option<Instant> {
        paths.iter().filter_map(|path| self.gone.get(path)).max().copied()
    }

    /// `paths` are not waited for any more.
    pub fn forget(&mut self, paths: &[PathBuf]) {
        paths.iter().for_each(|path| _ = self.gone.remove(path));
    }
}

/// Whether a file or folder of that name becomes one. Not so for a backup like `Foo.luau~`.
fn becomes_instance(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_none_or(|extension| super::roots::KNOWN.contains(&extension))
}

fn stem(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.split('.').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    /// Dealt with in no time.
    fn take(pending: &mut Pending, now: Instant) -> Vec<String> {
        let taken: Vec<String> = pending.take(now).iter().map(|path| path.display().to_string()).collect();
        if !taken.is_empty() {
            pending.acted(now);
        }
        taken
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_first_is_taken_at_once_and_what_follows_is_gathered() {
        let (mut pending, start) = (Pending::default(), clock::now());
        pending.note(&Signal::Look("a.luau".into()), start);
        assert_eq!(take(&mut pending, start), ["a.luau"]);
        pending.note(&Signal::Look("b.luau".into()), start + ms(1));
        pending.note(&Signal::Look("c.luau".into()), start + ms(2));
        assert!(take(&mut pending, start + ms(2)).is_empty());
        assert_eq!(pending.due(), Some(start + GATHER));
        assert_eq!(take(&mut pending, start + GATHER), ["b.luau", "c.luau"]);
    }

    #[test]
    fn many_files_at_once_are_gathered_until_they_end_but_not_for_ever() {
        let (mut pending, start) = (Pending::default(), clock::now());
        let name = |number: u64| format!("{number:03}.luau");
        pending.note(&Signal::Look(name(0).into()), start);
        assert_eq!(take(&mut pending, start).len(), 1);
        for number in 1..=40 {
            pending.note(&Signal::Look(name(number).into()), start + ms(number));
            assert!(take(&mut pending, start + ms(number)).is_empty());
        }
        assert_eq!(pending.due(), Some(start + ms(40) + FLOW), "when no more have come for a while");
        assert_eq!(take(&mut pending, start + ms(40) + FLOW).len(), 40);
        let start = start + ms(40) + FLOW;
        for number in 0..200 {
            pending.note(&Signal::Look(name(number).into()), start + ms(number));
        }
        assert_eq!(pending.due(), Some(start + MOST_GATHER), "somebody who never ends keeps nobody waiting");
    }

    #[test]
    fn what_comes_while_we_work_is_gathered_too() {
        let (mut pending, start) = (Pending::default(), clock::now());
        pending.note(&Signal::Look("a.luau".into()), start);
        assert_eq!(pending.take(start).len(), 1);
        let done = start + ms(100);
        pending.acted(done);
        pending.note(&Signal::Look("b.luau".into()), done);
        assert!(take(&mut pending, done).is_empty());
        pending.note(&Signal::Look("c.luau".into()), done + ms(5));
        assert_eq!(take(&mut pending, done + GATHER), ["b.luau", "c.luau"]);
    }

    #[test]
    fn c39_a_file_that_vanishes_and_returns_is_one_look() {
        let (mut pending, start) = (Pending::default(), clock::now());
        pending.note(&Signal::Gone("a.luau".into()), start);
        assert!(take(&mut pending, start + ms(80)).is_empty());
        pending.note(&Signal::Busy("a.luau".into()), start + ms(80));
        pending.note(&Signal::Look("a.luau".into()), start + ms(81));
        assert_eq!(take(&mut pending, start + ms(81)), ["a.luau"]);
        assert!(take(&mut pending, start + ms(900)).is_empty(), "nothing is left of the removal");
    }

    #[test]
    fn lost_events_are_answered_at_once_but_not_without_end() {
        let (mut pending, start) = (Pending::default(), clock::now());
        let lost = Signal::Lost("overflow".to_owned());
        pending.note(&lost, start);
        pending.note(&lost, start);
        assert!(pending.take_rescan(start));
        assert!(!pending.take_rescan(start), "one rescan answers both");
        pending.note(&lost, start + ms(1));
        assert!(!pending.take_rescan(start + ms(1)));
        assert_eq!(pending.due(), Some(start + BETWEEN_RESCANS));
        assert!(pending.take_rescan(start + BETWEEN_RESCANS));
    }

    #[test]
    fn a_removal_is_taken_after_the_grace() {
        let (mut pending, start) = (Pending::default(), clock::now());
        pending.note(&Signal::Gone("a.luau".into()), start);
        assert_eq!(pending.due(), Some(start + GRACE));
        assert_eq!(take(&mut pending, start + GRACE), ["a.luau"]);
    }

    #[test]
    fn c18_a_folder_takes_the_place_of_its_module_at_once() {
        let (mut pending, start) = (Pending::default(), clock::now());
        pending.note(&Signal::Gone("src/Alpha.luau".into()), start);
        pending.note(&Signal::Look("src/Alpha".into()), start);
        assert_eq!(take(&mut pending, start), ["src/Alpha", "src/Alpha.luau"]);
    }

    #[test]
    fn a_backup_takes_nobodys_place() {
        let (mut pending, start) = (Pending::default(), clock::now());
        pending.note(&Signal::Gone("src/Alpha.luau".into()), start);
        pending.note(&Signal::Moved { from: "src/Alpha.luau".into(), to: "src/Alpha.luau~".into() }, start);
        assert_eq!(take(&mut pending, start), ["src/Alpha.luau~"]);
        pending.note(&Signal::Look("src/Alpha.luau".into()), start + ms(30));
        assert_eq!(take(&mut pending, start + ms(30)), ["src/Alpha.luau"]);
        assert_eq!(pending.due(), None);
    }

    #[test]
    fn a_rename_is_both_ends_at_once() {
        let (mut pending, start) = (Pending::default(), clock::now());
        pending.note(&Signal::Gone("src/Old.luau".into()), start);
        pending.note(&Signal::Moved { from: "src/Old.luau".into(), to: "src/New.luau".into() }, start);
        assert_eq!(take(&mut pending, start), ["src/New.luau", "src/Old.luau"]);
    }
}
