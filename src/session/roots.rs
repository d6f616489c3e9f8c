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
    /// Roots that globs count for which librojo does not apply there.
    outside: BTreeSet<Outside>,
    /// The other roots, each with the project file that names it.
    inside: BTreeSet<(PathBuf, PathBuf)>,
    unread: BTreeSet<PathBuf>,
    fresh: BTreeSet<PathBuf>,
    dropped: BTreeSet<PathBuf>,
    /// Some project has rules of its own for which files become what.
    own_rules: bool,
}

/// A root outside the folder of the project that names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Outside {
    root: PathBuf,
    /// The project file.
    owner: PathBuf,
    /// Its globs, to see whether they change.
    globs: String,
}

impl Roots {
    pub fn new(file: PathBuf) -> Self {
        let mut roots = Self {
            file,
            projects: BTreeMap::new(),
            all: BTreeSet::new(),
            outside: BTreeSet::new(),
            inside: BTreeSet::new(),
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

    /// Those at or below `path` that are none any more, and were not taken yet.
    pub fn dropped_below(&self, path: &Path) -> impl Iterator<Item = PathBuf> {
        self.dropped.iter().filter(move |root| root.starts_with(path)).cloned()
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
    /// that project's folder, where librojo's own globs do not reach; and not where another way
    /// leads to `path` too.
    pub fn ignores(&self, path: &Path) -> bool {
        let below = |root: &PathBuf| path.starts_with(root) && path != root;
        let ways: Vec<&Outside> = self.outside.iter().filter(|outside| below(&outside.root)).collect();
        let through_one = |owner: &PathBuf| ways.iter().any(|outside| owner.starts_with(&outside.root));
        !ways.is_empty()
            && !self.contains(path)
            && !self.inside.iter().any(|(root, owner)| below(root) && !through_one(owner))
            && ways.iter().all(|Outside { owner, .. }| {
                let (Some(file), Some(folder)) = (self.projects.get(owner), owner.parent()) else { return false };
                ignored(&file.project, &relative(folder, path))
            })
    }

    /// Whether some project has globs for what lies outside its folder.
    pub fn reach_outside(&self) -> bool {
        !self.outside.is_empty()
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
        self.sort_by_globs();
    }

    /// Find the roots whose globs we apply ourselves. Where that changes, they are looked at again.
    fn sort_by_globs(&mut self) {
        let (mut outside, mut inside) = (BTreeSet::new(), BTreeSet::new());
        for (path, file) in &self.projects {
            let folder = path.parent().unwrap_or(path);
            let globs = &file.project.glob_ignore_paths;
            for root in file.roots.iter().cloned() {
                if root.starts_with(folder) || globs.is_empty() {
                    inside.insert((root, path.clone()));
                } else {
                    let globs = serde_json::to_string(globs).unwrap_or_default();
                    outside.insert(Outside { root, owner: path.clone(), globs });
                }
            }
        }
        if outside != self.outside || (inside != self.inside && !outside.is_empty()) {
            let both = outside.iter().chain(&self.outside).map(|outside| &outside.root);
            let served = |root: &&PathBuf| self.all.iter().any(|above| root.starts_with(above));
            self.fresh.extend(both.filter(served).cloned());
        }
        (self.outside, self.inside) = (outside, inside);
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
