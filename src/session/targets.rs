//! From paths that changed to the parts of the tree that must be made anew: as little as is right.

use std::{
    collections::{BTreeSet, HashSet},
    path::{Path, PathBuf},
};

use librojo::{DEFAULT_PROJECT_NAMES, InstanceContext, Project, RojoTree};
use rbx_dom_weak::types::Ref;

use super::{globs::is_ignored, mirror::Mirror, plain, projects};

/// One part of the tree to be made anew.
#[derive(Debug)]
pub(super) struct Job {
    pub kind: Kind,
    /// What to snapshot.
    pub path: PathBuf,
    pub context: InstanceContext,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The instance shall become what the path gives; nothing: it goes.
    Replace(Ref),
    /// What the path gives is a new child.
    Add { parent: Ref },
}

/// Finds the jobs for a set of paths.
pub(super) struct Planner<'a> {
    pub tree: &'a RojoTree,
    pub mirror: &'a Mirror,
    pub root_context: &'a InstanceContext,
}

impl Planner<'_> {
    /// The jobs for `touched`; no part of the tree is in two of them.
    pub fn plan(&self, touched: &BTreeSet<PathBuf>) -> Vec<Job> {
        let mut replaced = HashSet::new();
        let mut added = HashSet::new();
        for path in touched {
            self.trace(path, &mut replaced, &mut added);
        }
        let covered = |id: Ref| self.ancestors(id).any(|above| replaced.contains(&above));
        let replace = replaced.iter().filter(|&&id| !covered(id)).filter_map(|&id| self.replace(id));
        let mut added: Vec<(PathBuf, Ref)> = added.into_iter().collect();
        added.sort_by(|(a, _), (b, _)| a.cmp(b));
        let add = added.into_iter().filter(|(_, parent)| !replaced.contains(parent) && !covered(*parent));
        let add = add.filter_map(|(path, parent)| {
            let context = self.tree.get_metadata(parent)?.context.clone();
            Some(Job { kind: Kind::Add { parent }, path, context })
        });
        replace.chain(add).collect()
    }

    /// The job that makes the whole tree anew.
    pub fn root(&self) -> Option<Job> {
        self.replace(self.tree.get_root_id())
    }

    fn trace(&self, path: &Path, replaced: &mut HashSet<Ref>, added: &mut HashSet<(PathBuf, Ref)>) {
        // A folder with a nested project is known by the project file only, and a plain script
        // knows of no companion.
        let defaults = DEFAULT_PROJECT_NAMES.iter().map(|name| path.join(name));
        let spellings = defaults.chain([path.to_path_buf()]).chain(plain::beside_companion(path));
        let known: Vec<Ref> = spellings.flat_map(|path| self.tree.get_ids_at_path(&path)).copied().collect();
        if !known.is_empty() {
            replaced.extend(known.into_iter().filter_map(|id| self.top(id)));
            return;
        }
        if self.mirror.roots.contains(path) {
            replaced.extend(self.owners(path)); // and it may lie in another root besides
        }
        let mut item = path;
        while let Some(folder) = item.parent() {
            let parents = self.tree.get_ids_at_path(folder);
            if parents.is_empty() {
                let mut defaults = DEFAULT_PROJECT_NAMES.iter().map(|name| folder.join(name));
                if let Some(file) = defaults.find(|file| !self.tree.get_ids_at_path(file).is_empty()) {
                    // In a nested project's folder, but not in what its `$path`s brought in so far.
                    // The project file itself may just have gone.
                    replaced.extend(self.tree.get_ids_at_path(&file).iter().filter_map(|&id| self.top(id)));
                    return;
                }
                item = folder;
                continue;
            }
            if item == path && changes_its_folder(path) {
                replaced.extend(parents.iter().filter_map(|&id| self.top(id)));
            } else if self.mirror.exists(item) {
                let takes = |parent: &&Ref| {
                    let metadata = self.tree.get_metadata(**parent);
                    metadata.is_some_and(|metadata| !is_ignored(&metadata.context, item))
                };
                added.extend(parents.iter().filter(takes).map(|&parent| (item.to_path_buf(), parent)));
            }
            return;
        }
    }

    /// The instances that the projects made which name the root `path`.
    fn owners(&self, path: &Path) -> Vec<Ref> {
        let made = |file: &PathBuf| self.tree.get_ids_at_path(file).iter().filter_map(|&id| self.top(id));
        let mut made: Vec<Ref> = self.mirror.roots.owners(path).flat_map(made).collect();
        if self.mirror.roots.file() == path {
            made.push(self.tree.get_root_id());
        }
        made
    }

    fn source(&self, id: Ref) -> Option<&Path> {
        self.tree.get_metadata(id)?.instigating_source.as_ref().map(|source| source.path())
    }

    /// The instance that can be made anew if `id` must be. A node of a project cannot be on its
    /// own: librojo keeps that to itself. So it is the instance that the whole project file made.
    fn top(&self, mut id: Ref) -> Option<Ref> {
        let path = self.source(id)?;
        if Project::is_project_file(path) {
            while let Some(parent) = self.parent(id).filter(|&parent| self.source(parent) == Some(path)) {
                id = parent;
            }
        }
        Some(id)
    }

    fn replace(&self, id: Ref) -> Option<Job> {
        let kind = Kind::Replace(id);
        let parent = self.parent(id);
        let Some(parent) = parent else {
            let path = self.mirror.roots.file().to_path_buf();
            return Some(Job { kind, path, context: self.root_context.clone() });
        };
        let path = self.source(id)?;
        if !Project::is_project_file(path) {
            let context = self.tree.get_metadata(id)?.context.clone();
            return Some(Job { kind, path: path.to_path_buf(), context });
        }
        let context = self.tree.get_metadata(parent)?.context.clone();
        // Where the project file has gone, its folder is a plain one.
        let path = if projects::is_default(path) { path.parent()? } else { path };
        Some(Job { kind, path: path.to_path_buf(), context })
    }

    fn parent(&self, id: Ref) -> Option<Ref> {
        Some(self.tree.get_instance(id)?.parent()).filter(Ref::is_some)
    }

    fn ancestors(&self, id: Ref) -> impl Iterator<Item = Ref> {
        std::iter::successors(self.parent(id), |&id| self.parent(id))
    }
}

/// Whether a file with that name makes its folder another instance, instead of being one itself.
fn changes_its_folder(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("init.") || projects::is_default(path)
}
