//! The project's files in memory, where librojo reads them as a pure function.
//!
//! Paths here are the ones librojo asks for: absolute, without `..`, links as they are spelled.
//! What cannot be served is left out and listed with its reason, so that it never fails its folder.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    ops::Bound,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use librojo::Project;
use memofs::{InMemoryFs, Vfs, VfsSnapshot};

use super::{
    entries::{Entries, Folder, Removed},
    isolate::Withdrawn,
    plain::{self, PlainScripts},
    problems::Problem,
    roots::Roots,
    watch::Watch,
};
use crate::clock;

/// What a look at the disk changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The topmost paths that came, went or changed.
    pub touched: BTreeSet<PathBuf>,
    /// Those of them that are files whose contents alone changed, with the contents before.
    pub edited: HashMap<PathBuf, Vec<u8>>,
    /// A project file is among them.
    pub projects: bool,
    /// But with [`Trust::Exact`]: what vanished, and may come back.
    pub missing: Vec<PathBuf>,
    /// With [`Trust::Doubt`]: what was emptied just now, and is probably being written.
    pub busy: Vec<PathBuf>,
}

/// Whether what the disk shows is taken at its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Now is now: somebody waits for exactly this.
    Exact,
    /// The same, but what vanished is only noted, even of the paths asked for.
    Patient,
    /// What vanished below the paths asked for, or was emptied just now, is only noted.
    Doubt,
}

impl Changes {
    /// Take in what a second look found.
    pub fn merge(&mut self, other: Self) {
        self.touched.extend(other.touched);
        self.edited.extend(other.edited);
        self.projects |= other.projects;
        self.missing.extend(other.missing);
        self.busy.extend(other.busy);
    }

    pub(super) fn touch(&mut self, path: &Path) {
        self.touched.insert(path.to_path_buf());
        self.projects |= Project::is_project_file(path);
    }
}

/// The files in memory.
pub(super) struct Mirror {
    /// What librojo reads: all but the plain scripts.
    pub(super) fs: InMemoryFs,
    pub(super) vfs: Vfs,
    pub(super) plain: PlainScripts,
    pub(super) entries: Entries,
    /// Spelled path → where it leads, for every link.
    pub(super) links: BTreeMap<PathBuf, PathBuf>,
    pub(super) roots: Roots,
    pub(super) problems: BTreeMap<PathBuf, String>,
    /// What stands on disk where memory holds something else or nothing.
    pub(super) originals: BTreeMap<PathBuf, Vec<u8>>,
    /// What librojo could not use; it is tried again after every change.
    pub(super) withdrawn: BTreeMap<PathBuf, Withdrawn>,
    /// What the log said of them the last time.
    pub(super) told: BTreeMap<PathBuf, String>,
    /// What could not be read for want of something that comes back by itself.
    pub(super) again: Vec<PathBuf>,
    /// When we began to read the project.
    pub(super) began: SystemTime,
    pub(super) watch: Watch,
    pub(super) trust: Trust,
}

impl Mirror {
    /// An empty one for the project at `file`, which will follow what it reads with `watch`.
    pub fn new(file: PathBuf, watch: Watch) -> Self {
        let fs = InMemoryFs::new();
        Self {
            vfs: Vfs::new(fs.clone()),
            fs,
            plain: PlainScripts::default(),
            entries: Entries::default(),
            links: BTreeMap::new(),
            roots: Roots::new(file),
            problems: BTreeMap::new(),
            originals: BTreeMap::new(),
            withdrawn: BTreeMap::new(),
            told: BTreeMap::new(),
            again: Vec::new(),
            began: UNIX_EPOCH + Duration::from_millis(clock::unix_millis()),
            watch,
            trust: Trust::Exact,
        }
    }

    /// What is left out, and why.
    pub fn problems(&self) -> Vec<Problem> {
        let withdrawn = self.withdrawn.iter().map(|(path, file)| Problem::at(path, &file.message));
        let unfit = self.problems.iter().map(|(path, message)| Problem::at(path, message));
        unfit.chain(withdrawn).chain(self.watch.problems()).collect()
    }

    /// Look at everything again.
    pub fn refresh_all(&mut self, trust: Trust) -> Changes {
        let mut changes = Changes::default();
        self.trust = trust;
        let roots: Vec<PathBuf> = self.roots.all().cloned().collect();
        self.refresh_roots(roots, &mut changes);
        self.settle_roots(&mut changes);
        changes
    }

    /// Look at these paths again, and at all that is below them. Paths outside the project's
    /// sources are passed over.
    pub fn refresh<'a>(&mut self, paths: impl IntoIterator<Item = &'a Path>, trust: Trust) -> Changes {
        let mut changes = Changes::default();
        self.trust = trust;
        let places: BTreeSet<PathBuf> = paths.into_iter().flat_map(|path| self.places(path)).collect();
        for place in places {
            let place = self.topmost_missing(place);
            if self.roots.contains(&place) {
                self.watch.arm_above(&place, Some(self.roots.folder()));
            }
            self.refresh_tree(&place, &mut changes);
        }
        self.settle_roots(&mut changes);
        changes
    }

    /// What went with its folder is not looked at alone: the folder may be one that the project
    /// cannot do without.
    fn topmost_missing(&self, place: PathBuf) -> PathBuf {
        let missing = |path: &&Path| fs::symlink_metadata(path).is_err() && self.holds(path);
        place.ancestors().take_while(missing).last().unwrap_or(&place).to_path_buf()
    }

    /// Where a path on the disk is found in the mirror: under the spellings that lead to it, at
    /// the nearest place that can be looked at on its own.
    pub fn places(&self, path: &Path) -> BTreeSet<PathBuf> {
        let linked = self.links.iter().filter_map(|(spelled, real)| {
            if real.starts_with(path) {
                return Some(spelled.clone());
            }
            Some(spelled.join(path.strip_prefix(real).ok()?))
        });
        let mut places = BTreeSet::new();
        for spelled in linked.chain([path.to_path_buf()]) {
            let place = spelled.ancestors().find(|place| self.roots.contains(place) || self.is_below_folder(place));
            match place {
                Some(place) => _ = places.insert(place.to_path_buf()),
                None => places.extend(self.roots.below(&spelled)),
            }
        }
        places
    }

    fn is_below_folder(&self, path: &Path) -> bool {
        path.parent().is_some_and(|parent| self.is_folder(parent))
    }

    /// Whether `path` is a root that no other root brings in.
    pub(super) fn is_outermost(&self, path: &Path) -> bool {
        self.roots.contains(path) && !self.is_below_folder(path)
    }

    /// Whether memory holds something at `path` that is served.
    pub fn exists(&self, path: &Path) -> bool {
        self.vfs.exists(path).unwrap_or(false) || self.plain.holds(path)
    }

    /// Whether something stands at `path` on the disk, by our last look.
    pub fn holds(&self, path: &Path) -> bool {
        self.entries.holds(path)
    }

    /// The children of a folder, as spelled.
    pub fn children(&self, folder: &Path) -> Vec<PathBuf> {
        let names = self.entries.folder(folder).into_iter().flat_map(Folder::names);
        names.map(|name| folder.join(name)).collect()
    }

    /// Whether `path` is a folder.
    pub fn is_folder(&self, path: &Path) -> bool {
        self.entries.folder(path).is_some()
    }

    /// Read project files that are new or changed until no further roots turn up, and let go of
    /// roots that are none any more.
    fn settle_roots(&mut self, changes: &mut Changes) {
        loop {
            self.read_projects();
            let fresh = self.roots.take_fresh();
            if !fresh.is_empty() {
                self.refresh_roots(fresh, changes);
                continue;
            }
            let dropped = self.roots.take_dropped();
            if dropped.is_empty() {
                break;
            }
            self.let_go(dropped, changes); // and what stays was read anew, project files too
        }
    }

    fn let_go(&mut self, dropped: BTreeSet<PathBuf>, changes: &mut Changes) {
        for dropped in dropped {
            if !self.is_below_folder(&dropped) {
                self.forget(&dropped);
                self.problems.remove(&dropped);
                self.links.remove(&dropped);
                let inner: Vec<PathBuf> = self.roots.below(&dropped).collect();
                self.refresh_roots(inner, changes);
            }
        }
    }

    fn refresh_roots(&mut self, roots: impl IntoIterator<Item = PathBuf>, changes: &mut Changes) {
        let mut done: Vec<PathBuf> = Vec::new();
        for root in roots {
            self.watch.arm_above(&root, Some(self.roots.folder()));
            let visited = self.holds(&root) && done.iter().any(|above| root.starts_with(above));
            if !visited {
                self.refresh_tree(&root, changes);
                done.push(root);
            }
        }
    }

    fn read_projects(&mut self) {
        let unread = self.roots.take_unread();
        if unread.is_empty() {
            return;
        }
        for path in unread {
            if let Some(rewritten) = self.roots.read(&self.vfs, &path)
                && let Ok(bytes) = self.vfs.read(&path)
            {
                self.originals.entry(path.clone()).or_insert_with(|| bytes.to_vec());
                self.store(&path, rewritten);
            }
        }
        if self.roots.has_own_rules() {
            self.hand_over(self.plain.all());
        }
        self.hand_over(self.roots.all().cloned().collect::<Vec<_>>());
    }

    /// What stands on the disk at `path`, by our last look.
    pub(super) fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let original = self.originals.get(path).cloned();
        let plain = || self.plain.text(path).map(String::into_bytes);
        original.or_else(plain).or_else(|| self.vfs.read(path).ok().map(|bytes| bytes.to_vec()))
    }

    /// Put `bytes` into memory at `path`: apart, if that is a plain script.
    pub(super) fn keep(&mut self, path: &Path, bytes: Vec<u8>) {
        if !self.is_plain(path) {
            return self.store(path, bytes);
        }
        match String::from_utf8(bytes) {
            Ok(text) => self.plain.insert(path, text),
            Err(error) => self.store(path, error.into_bytes()),
        }
    }

    /// Whether the script at `path` is its text and nothing more. What librojo once had to read
    /// stays with it.
    fn is_plain(&self, path: &Path) -> bool {
        let Some(companions) = plain::companions(path) else { return false };
        !self.roots.has_own_rules()
            && !self.roots.contains(path)
            && !self.vfs.exists(path).unwrap_or(false)
            && !self
                .entries
                .folder(path.parent().unwrap_or(path))
                .is_some_and(|folder| companions.iter().any(|companion| folder.has(companion)))
    }

    /// Let librojo read these scripts from now on.
    pub(super) fn hand_over(&mut self, scripts: impl IntoIterator<Item = PathBuf>) {
        for path in scripts {
            if let Some(text) = self.plain.take(&path) {
                self.store(&path, text.into_bytes());
            }
        }
    }

    /// Nothing is served at `path` any more.
    pub(super) fn leave(&mut self, path: &Path, changes: &mut Changes) {
        if self.entries.holds(path) {
            self.forget(path);
            changes.edited.remove(path);
            changes.touch(path);
        }
        changes.projects |= self.roots.lost_below(path);
    }

    pub(super) fn forget(&mut self, path: &Path) {
        let mut todo = vec![path.to_path_buf()];
        while let Some(path) = todo.pop() {
            match self.entries.remove(&path) {
                Some(Removed::Folder(folder)) => {
                    todo.extend(folder.folders().map(|name| path.join(name)));
                    self.watch.disarm(&folder.real);
                    self.plain.take_folder(&path);
                    _ = self.vfs.remove_dir_all(&path);
                }
                Some(Removed::File) if self.plain.take(&path).is_some() => {}
                Some(Removed::File) => _ = self.vfs.remove_file(&path),
                None => {}
            }
        }
        for held in below(&self.originals, path) {
            self.originals.remove(&held);
        }
        for held in below(&self.withdrawn, path) {
            self.withdrawn.remove(&held);
        }
        for stale in below(&self.links, path).into_iter().filter(|spelled| spelled != path) {
            self.links.remove(&stale);
        }
        for stale in below(&self.problems, path).into_iter().filter(|spelled| spelled != path) {
            self.problems.remove(&stale);
        }
    }

    /// Put `bytes` into memory at `path`, whatever the disk holds.
    pub fn store(&mut self, path: &Path, bytes: Vec<u8>) {
        self.load(path, VfsSnapshot::file(bytes));
        self.hand_over(plain::beside_companion(path));
    }

    pub(super) fn load(&mut self, path: &Path, snapshot: VfsSnapshot) {
        if let Err(error) = self.fs.load_snapshot(path, snapshot) {
            // Only where a file was taken for a folder; the next look at the folder mends it.
            log::warn!("cannot hold {} in memory: {error}", path.display());
        }
    }
}

/// The paths of `map` at and below `path`, without a look at the others.
pub(super) fn below<T>(map: &BTreeMap<PathBuf, T>, path: &Path) -> Vec<PathBuf> {
    let from = map.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
    from.map(|(at, _)| at).take_while(|at| at.starts_with(path)).cloned().collect()
}

/// Whether the path has the extension of a script.
pub(super) fn is_script(path: &Path) -> bool {
    matches!(path.extension().and_then(|extension| extension.to_str()), Some("lua" | "luau"))
}
