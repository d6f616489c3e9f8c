//! The project's files in memory, where librojo reads them as a pure function.
//!
//! Paths here are the ones librojo asks for: absolute, without `..`, links as they are spelled.
//! What cannot be served is left out and listed with its reason, so that it never fails its folder.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use librojo::Project;
use memofs::{InMemoryFs, Vfs, VfsSnapshot};

use super::{
    disk::{self, Seen, Stamp, What},
    isolate::Withdrawn,
    roots::Roots,
    types::Problem,
    watch::Watch,
};

/// Folders nested deeper are cut off: librojo recurses, and a stack is finite.
const MAX_DEPTH: usize = 128;

/// What we hold at a path.
#[derive(Debug)]
enum Entry {
    File {
        stamp: Stamp,
        /// An equal stamp means an equal file.
        settled: bool,
    },
    Folder {
        /// Where it is once links are resolved.
        real: PathBuf,
        children: BTreeSet<OsString>,
    },
}

/// What a look at the disk changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The topmost paths that came, went or changed.
    pub touched: BTreeSet<PathBuf>,
    /// Those of them that are files whose contents alone changed, with the contents before.
    pub edited: HashMap<PathBuf, Vec<u8>>,
    /// A project file is among them.
    pub projects: bool,
    /// With [`Trust::Doubt`]: what vanished, and may come back.
    pub missing: Vec<PathBuf>,
    /// With [`Trust::Doubt`]: what was emptied just now, and is probably being written.
    pub busy: Vec<PathBuf>,
}

/// Whether what the disk shows is taken at its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Now is now: somebody waits for exactly this.
    Exact,
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

    fn touch(&mut self, path: &Path) {
        self.touched.insert(path.to_path_buf());
        self.projects |= Project::is_project_file(path);
    }
}

/// The files in memory.
pub(super) struct Mirror {
    pub(super) fs: InMemoryFs,
    pub(super) vfs: Vfs,
    entries: HashMap<PathBuf, Entry>,
    /// Spelled path → where it leads, for every link.
    links: BTreeMap<PathBuf, PathBuf>,
    pub(super) roots: Roots,
    problems: BTreeMap<PathBuf, String>,
    /// What stands on disk where memory holds something else or nothing.
    pub(super) originals: HashMap<PathBuf, Vec<u8>>,
    /// What librojo could not use; it is tried again after every change.
    pub(super) withdrawn: BTreeMap<PathBuf, Withdrawn>,
    pub(super) watch: Watch,
    trust: Trust,
}

/// Files found by a walk, to be read together.
#[derive(Default)]
struct Found {
    files: Vec<PathBuf>,
    /// Folders that were new: what is in them is not touched on its own.
    new_folders: BTreeSet<PathBuf>,
}

impl Mirror {
    /// An empty one for the project at `file`.
    pub fn new(file: PathBuf) -> Self {
        let fs = InMemoryFs::new();
        Self {
            vfs: Vfs::new(fs.clone()),
            fs,
            entries: HashMap::new(),
            links: BTreeMap::new(),
            roots: Roots::new(file),
            problems: BTreeMap::new(),
            originals: HashMap::new(),
            withdrawn: BTreeMap::new(),
            watch: Watch::off(),
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
            let rest = path.strip_prefix(real).ok()?;
            Some(if rest.as_os_str().is_empty() { spelled.clone() } else { spelled.join(rest) })
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
        let parent = path.parent().and_then(|parent| self.entries.get(parent));
        matches!(parent, Some(Entry::Folder { .. }))
    }

    /// Whether librojo finds something at `path`.
    pub fn exists(&self, path: &Path) -> bool {
        self.vfs.exists(path).unwrap_or(false)
    }

    /// Whether something stands at `path` on the disk, by our last look.
    pub fn holds(&self, path: &Path) -> bool {
        self.entries.contains_key(path)
    }

    /// The children of a folder, as spelled.
    pub fn children(&self, folder: &Path) -> Vec<PathBuf> {
        match self.entries.get(folder) {
            Some(Entry::Folder { children, .. }) => children.iter().map(|name| folder.join(name)).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether `path` is a folder.
    pub fn is_folder(&self, path: &Path) -> bool {
        matches!(self.entries.get(path), Some(Entry::Folder { .. }))
    }

    /// Follow the files with `watch` from here on.
    pub fn follow(&mut self, watch: Watch) {
        self.watch = watch;
        for entry in self.entries.values() {
            if let Entry::Folder { real, .. } = entry {
                self.watch.arm(real);
            }
        }
        for target in self.links.values() {
            self.watch.arm_above(target, None);
        }
        for root in self.roots.all() {
            self.watch.arm_above(root, Some(self.roots.folder()));
        }
    }

    /// Read project files that are new or changed until no further roots turn up, and let go of
    /// roots that are none any more.
    fn settle_roots(&mut self, changes: &mut Changes) {
        loop {
            self.read_projects();
            let fresh = self.roots.take_fresh();
            if fresh.is_empty() {
                break;
            }
            self.refresh_roots(fresh, changes);
        }
        for dropped in self.roots.take_dropped() {
            if !self.is_below_folder(&dropped) {
                self.forget(&dropped);
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
        for path in self.roots.take_unread() {
            if let Some(rewritten) = self.roots.read(&self.vfs, &path)
                && let Ok(bytes) = self.vfs.read(&path)
            {
                self.originals.entry(path.clone()).or_insert_with(|| bytes.to_vec());
                self.store(&path, rewritten);
            }
        }
    }

    fn refresh_tree(&mut self, path: &Path, changes: &mut Changes) {
        let mut found = Found::default();
        self.visit(path, disk::look(path), &mut found, changes);
        let contents = disk::read_all(&found.files);
        for (path, mut contents) in found.files.iter().zip(contents) {
            if self.trust == Trust::Exact && self.holds(path) {
                contents = contents.and_then(|contents| disk::read_written(path, contents));
            }
            let inside_new = path.ancestors().skip(1).any(|above| found.new_folders.contains(above));
            self.take_in(path, contents, inside_new, changes);
        }
    }

    fn visit(&mut self, path: &Path, seen: Seen, found: &mut Found, changes: &mut Changes) {
        self.problems.remove(path);
        match &seen.link {
            Some(target) => {
                self.watch.arm_above(target, None);
                self.links.insert(path.to_path_buf(), target.clone());
            }
            None => _ = self.links.remove(path),
        }
        match self.fit(path, seen) {
            Ok(Some((What::File(stamp), _))) => self.visit_file(path, stamp, found, changes),
            Ok(Some((_, real))) => self.visit_folder(path, real, found, changes),
            Ok(None) => self.leave(path, changes),
            Err(problem) => {
                self.problems.insert(path.to_path_buf(), problem);
                self.leave(path, changes);
            }
        }
    }

    /// Whether to serve what was seen: `Ok(None)` if there is nothing that matters, an error if
    /// it cannot be served. With it, where a folder really is.
    fn fit(&self, path: &Path, seen: Seen) -> Result<Option<(What, PathBuf)>, String> {
        if path.to_str().is_none() {
            return Err("the name is not UTF-8; skipped".to_owned());
        }
        if self.roots.ignores(path) {
            return Ok(None);
        }
        match seen.what {
            What::Nothing if seen.link.is_some() => Err("the link leads nowhere; skipped".to_owned()),
            What::Nothing => Ok(None),
            What::Unfit(reason) => Err(reason),
            What::File(_) if !self.roots.wants_file(path) => Ok(None),
            What::File(stamp) => Ok(Some((What::File(stamp), PathBuf::new()))),
            What::Folder => {
                let above = path.ancestors().skip(1).map_while(|above| match self.entries.get(above) {
                    Some(Entry::Folder { real, .. }) => Some(real),
                    _ => None,
                });
                let above: Vec<&PathBuf> = above.collect();
                if above.len() >= MAX_DEPTH {
                    return Err(format!("more than {MAX_DEPTH} folders deep; skipped"));
                }
                let real = seen.link.or_else(|| Some(above.first()?.join(path.file_name()?)));
                let real = real.or_else(|| fs::canonicalize(path).ok()).unwrap_or_else(|| path.to_path_buf());
                if above.iter().any(|above| above.starts_with(&real)) {
                    return Err("the link leads to a folder that it lies in; skipped".to_owned());
                }
                Ok(Some((What::Folder, real)))
            }
        }
    }

    fn visit_file(&mut self, path: &Path, stamp: Stamp, found: &mut Found, changes: &mut Changes) {
        match self.entries.get(path) {
            Some(Entry::File { stamp: known, settled: true }) if *known == stamp => return,
            Some(Entry::Folder { .. }) => self.leave(path, changes),
            _ => {}
        }
        found.files.push(path.to_path_buf());
    }

    fn visit_folder(&mut self, path: &Path, real: PathBuf, found: &mut Found, changes: &mut Changes) {
        if !matches!(self.entries.get(path), Some(Entry::Folder { real: known, .. }) if *known == real) {
            self.leave(path, changes);
            self.adopt(path, Entry::Folder { real: real.clone(), children: BTreeSet::new() });
            // A folder must be there before its files; again would empty it.
            self.load(path, VfsSnapshot::empty_dir());
            if !path.parent().is_some_and(|above| found.new_folders.contains(above)) {
                changes.touch(path);
            }
            found.new_folders.insert(path.to_path_buf());
        }
        // Watched before it is listed: nothing can be made in between unseen.
        self.watch.arm(&real);
        let listed: BTreeMap<PathBuf, Option<fs::Metadata>> = match list(path) {
            Ok(listed) => listed,
            Err(error) => {
                self.problems.insert(path.to_path_buf(), error.to_string());
                BTreeMap::new()
            }
        };
        for child in self.children(path) {
            match self.trust {
                _ if listed.contains_key(&child) => {}
                Trust::Exact => self.leave(&child, changes),
                Trust::Doubt => changes.missing.push(child),
            }
        }
        for (child, metadata) in listed {
            let seen = metadata.map_or_else(|| disk::look(&child), |metadata| disk::judge(&child, &metadata));
            self.visit(&child, seen, found, changes);
        }
    }

    fn take_in(
        &mut self,
        path: &Path,
        contents: io::Result<(Vec<u8>, Stamp)>,
        inside_new: bool,
        changes: &mut Changes,
    ) {
        let (bytes, stamp) = match contents {
            Ok(contents) => contents,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.leave(path, changes),
            Err(error) => return self.refuse(path, error.to_string(), changes),
        };
        if is_script(path) && std::str::from_utf8(&bytes).is_err() {
            return self.refuse(path, "not UTF-8; skipped".to_owned(), changes);
        }
        let known = self.holds(path).then(|| self.contents(path)).flatten();
        let emptied = bytes.is_empty() && !stamp.settled() && known.as_ref().is_some_and(|known| !known.is_empty());
        if emptied && self.trust == Trust::Doubt {
            return changes.busy.push(path.to_path_buf());
        }
        self.adopt(path, Entry::File { stamp, settled: stamp.settled() });
        if known.as_ref() == Some(&bytes) {
            return;
        }
        let plain = !self.originals.contains_key(path);
        self.originals.remove(path);
        self.withdrawn.remove(path);
        if is_json(path) && bytes.starts_with(b"\xef\xbb\xbf") {
            // Rojo's JSON reader takes a byte order mark for an error.
            self.store(path, bytes.get(3..).unwrap_or_default().to_vec());
            self.originals.insert(path.to_path_buf(), bytes);
        } else {
            self.store(path, bytes);
        }
        if Project::is_project_file(path) {
            self.roots.changed(path);
        }
        if inside_new {
            changes.projects |= Project::is_project_file(path);
            return;
        }
        changes.touch(path);
        if let Some(before) = known.filter(|_| plain) {
            changes.edited.entry(path.to_path_buf()).or_insert(before);
        }
    }

    fn refuse(&mut self, path: &Path, problem: String, changes: &mut Changes) {
        self.leave(path, changes);
        self.problems.insert(path.to_path_buf(), problem);
    }

    /// What stands on the disk at `path`, by our last look.
    fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let original = self.originals.get(path).cloned();
        original.or_else(|| self.vfs.read(path).ok().map(|bytes| bytes.to_vec()))
    }

    fn adopt(&mut self, path: &Path, entry: Entry) {
        self.entries.insert(path.to_path_buf(), entry);
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
            && let Some(Entry::Folder { children, .. }) = self.entries.get_mut(parent)
        {
            children.insert(name.to_owned());
        }
    }

    /// Nothing is served at `path` any more.
    fn leave(&mut self, path: &Path, changes: &mut Changes) {
        if self.entries.contains_key(path) {
            self.forget(path);
            changes.edited.remove(path);
            changes.touch(path);
        }
        changes.projects |= self.roots.lost_below(path);
    }

    fn forget(&mut self, path: &Path) {
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
            && let Some(Entry::Folder { children, .. }) = self.entries.get_mut(parent)
        {
            children.remove(name);
        }
        let mut todo = vec![path.to_path_buf()];
        while let Some(path) = todo.pop() {
            todo.extend(self.children(&path));
            match self.entries.remove(&path) {
                Some(Entry::Folder { real, .. }) => {
                    self.watch.disarm(&real);
                    _ = self.vfs.remove_dir_all(&path);
                }
                Some(Entry::File { .. }) => _ = self.vfs.remove_file(&path),
                None => {}
            }
            self.originals.remove(&path);
            self.withdrawn.remove(&path);
        }
        let stale = |spelled: &PathBuf| spelled != path && spelled.starts_with(path);
        self.links.retain(|spelled, _| !stale(spelled));
        self.problems.retain(|spelled, _| !stale(spelled));
    }

    /// Put `bytes` into memory at `path`, whatever the disk holds.
    pub fn store(&mut self, path: &Path, bytes: Vec<u8>) {
        self.load(path, VfsSnapshot::file(bytes));
    }

    fn load(&mut self, path: &Path, snapshot: VfsSnapshot) {
        if let Err(error) = self.fs.load_snapshot(path, snapshot) {
            // Only where a file was taken for a folder; the next look at the folder mends it.
            log::warn!("cannot hold {} in memory: {error}", path.display());
        }
    }
}

fn list(folder: &Path) -> io::Result<BTreeMap<PathBuf, Option<fs::Metadata>>> {
    fs::read_dir(folder)?.map(|entry| entry.map(|entry| (entry.path(), entry.metadata().ok()))).collect()
}

/// Whether the path has the extension of a script.
pub(super) fn is_script(path: &Path) -> bool {
    matches!(path.extension().and_then(|extension| extension.to_str()), Some("lua" | "luau"))
}

fn is_json(path: &Path) -> bool {
    matches!(path.extension().and_then(|extension| extension.to_str()), Some("json" | "jsonc"))
}
