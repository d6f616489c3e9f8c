//! Which paths make up the project: the project file, what its `$path`s bring in, and what the
//! project files found there bring in themselves.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    path::{Component, Path, PathBuf},
};

use librojo::Project;
use memofs::Vfs;

use super::projects::{self, ProjectFile};
use crate::files;

/// Extensions that Rojo's own rules turn into instances.
pub(super) const KNOWN: [&str; 11] =
    ["lua", "luau", "json", "jsonc", "toml", "csv", "txt", "rbxmx", "rbxm", "yml", "yaml"];

/// The roots of a project and the project files that name them.
pub(super) struct Roots {
    file: PathBuf,
    pub(super) projects: BTreeMap<PathBuf, ProjectFile>,
    all: BTreeSet<PathBuf>,
    /// Roots outside the folder of the project that names them, with that project.
    outside: Vec<(PathBuf, PathBuf)>,
    unread: BTreeSet<PathBuf>,
    fresh: BTreeSet<PathBuf>,
    dropped: BTreeSet<PathBuf>,
    /// Some project has rules of its own for which files become what.
    own_rules: bool,
}

impl Roots {
    pub fn new(file: PathBuf) -> Self {
        let mut roots = Self {
            file,
            projects: BTreeMap::new(),
            all: BTreeSet::new(),
            outside: Vec::new(),
            unread: BTreeSet::new(),
            fresh: BTreeSet::new(),
            dropped: BTreeSet::new(),
            own_rules: false,
        };
        roots.recompute();
        roots
    }

    /// The main project file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The main project's folder.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }

    /// The main project as last read without error.
    pub fn project(&self) -> Option<&Project> {
        self.projects.get(&self.file).map(|file| &file.project)
    }

    pub fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.all.iter()
    }

    /// What the `$path`s of all project files name.
    pub fn named(&self) -> Vec<PathBuf> {
        self.projects.values().flat_map(|file| file.roots.iter().cloned()).collect()
    }

    pub fn contains(&self, path: &Path) -> bool {
        self.all.contains(path)
    }

    /// The roots at or below `path`.
    pub fn below(&self, path: &Path) -> impl Iterator<Item = PathBuf> {
        let from = self.all.range::<Path, _>((Bound::Included(path), Bound::Unbounded));
        let roots: Vec<PathBuf> = from.take_while(|root| root.starts_with(path)).cloned().collect();
        roots.into_iter()
    }

    /// The project files that name `root`.
    pub fn owners(&self, root: &Path) -> impl Iterator<Item = &PathBuf> {
        let owns = move |file: &ProjectFile| {
            let beside = |named: &PathBuf| projects::companions(named).iter().any(|companion| companion == root);
            file.roots.iter().any(|named| named == root || beside(named))
        };
        self.projects.iter().filter(move |(_, file)| owns(file)).map(|(path, _)| path)
    }

    /// Whether a file at `path` can become anything.
    pub fn wants_file(&self, path: &Path) -> bool {
        let known = path.extension().and_then(|extension| extension.to_str()).is_some_and(|e| KNOWN.contains(&e));
        (known || self.own_rules || self.all.contains(path)) && !files::is_scratch(path)
    }

    /// Whether some project has rules of its own for which files become what.
    pub fn has_own_rules(&self) -> bool {
        self.own_rules
    }

    /// Whether the globs of the project that brings `path` in ignore it. Only for roots outside
    /// that project's folder, where librojo's own globs do not reach.
    pub fn ignores(&self, path: &Path) -> bool {
        let mut owners = self.outside.iter().filter(|(root, _)| path.starts_with(root) && path != root).peekable();
        owners.peek().is_some()
            && owners.all(|(_, owner)| {
                let (Some(file), Some(folder)) = (self.projects.get(owner), owner.parent()) else { return false };
                ignored(&file.project, &relative(folder, path))
            })
    }

    /// A project file has new contents.
    pub fn changed(&mut self, path: &Path) {
        self.unread.insert(path.to_path_buf());
    }

    /// The project files to be read.
    pub fn take_unread(&mut self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.unread)
    }

    /// Read one of them. Returns what must stand for it in memory, if not itself. A main project
    /// that cannot be read leaves the last good one in force.
    pub fn read(&mut self, vfs: &Vfs, path: &Path) -> Option<Vec<u8>> {
        let rewritten = match projects::load(vfs, path) {
            Ok(mut file) => {
                let rewritten = file.rewritten.take();
                self.projects.insert(path.to_path_buf(), file);
                rewritten
            }
            Err(_) if path == self.file => None, // its snapshot fails, and says why
            Err(_) => {
                self.projects.remove(path);
                None
            }
        };
        self.recompute();
        rewritten
    }

    /// Everything at and below `path` is gone. Returns whether a project file was among it.
    pub fn lost_below(&mut self, path: &Path) -> bool {
        self.unread.retain(|file| !file.starts_with(path));
        let main = &self.file;
        let before = self.projects.len();
        self.projects.retain(|file, _| file == main || !file.starts_with(path));
        let lost = before != self.projects.len();
        if lost {
            self.recompute();
        }
        lost
    }

    /// Roots that were not there before.
    pub fn take_fresh(&mut self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.fresh)
    }

    /// Roots that are none any more.
    pub fn take_dropped(&mut self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.dropped)
    }

    fn recompute(&mut self) {
        let named = self.projects.values().flat_map(|file| &file.roots);
        let companions = named.clone().flat_map(|root| projects::companions(root));
        let all: BTreeSet<PathBuf> = [self.file.clone()].into_iter().chain(named.cloned()).chain(companions).collect();
        let own_rules = self.projects.values().any(|file| !file.project.sync_rules.is_empty());
        if own_rules == self.own_rules {
            self.fresh.extend(all.difference(&self.all).cloned());
        } else {
            self.fresh.extend(all.iter().cloned()); // other files count now
        }
        self.dropped.extend(self.all.difference(&all).cloned());
        self.dropped.retain(|root| !all.contains(root));
        self.all = all;
        self.own_rules = own_rules;
        let outside = self.projects.iter().flat_map(|(path, file)| {
            let folder = path.parent().unwrap_or(path);
            let outside = file.roots.iter().filter(move |root| !root.starts_with(folder));
            outside.map(move |root| (root.clone(), path.clone()))
        });
        self.outside = outside.collect();
    }
}

/// Whether the globs of `project` ignore `path`, which is relative to its folder. The last glob
/// that matches decides.
pub(super) fn ignored(project: &Project, path: &Path) -> bool {
    let mut matching = project.glob_ignore_paths.iter().filter(|glob| glob.is_match(path));
    matching.next_back().is_some_and(|glob| !glob.is_negation())
}

/// The way from `folder` to `path`, with `..` where it has to climb.
pub(super) fn relative(folder: &Path, path: &Path) -> PathBuf {
    let common = folder.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(common).map(|_| Component::ParentDir);
    up.chain(path.components().skip(common)).collect()
}
