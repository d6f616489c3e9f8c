//! Project files that lead back to themselves. librojo would follow them until its stack is full,
//! which ends the process: so they are found before each snapshot.

use std::{
    collections::BTreeMap,
    ops::Bound,
    path::{Path, PathBuf},
};

use librojo::DEFAULT_PROJECT_NAMES;

use super::{
    projects::{ProjectFile, is_default},
    roots::{ignored, relative},
};

/// Project files nested deeper are taken for a cycle.
const MAX_CHAIN: usize = 32;

/// A project file whose `$path` leads back to `to`, or that lies too deep.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    pub file: PathBuf,
    pub to: PathBuf,
}

/// The first cycle that following the project at `main` meets. `skip`: not followed.
pub(super) fn find(
    projects: &BTreeMap<PathBuf, ProjectFile>,
    main: &Path,
    skip: impl Fn(&Path) -> bool,
) -> Option<Cycle> {
    Walk { projects, skip, chain: Vec::new() }.follow(main)
}

struct Walk<'a, F> {
    projects: &'a BTreeMap<PathBuf, ProjectFile>,
    skip: F,
    /// The project files that led here.
    chain: Vec<PathBuf>,
}

impl<F: Fn(&Path) -> bool> Walk<'_, F> {
    fn follow(&mut self, path: &Path) -> Option<Cycle> {
        let projects = self.projects;
        let file = projects.get(path)?;
        if let Some(last) = self.chain.last()
            && (self.chain.iter().any(|above| above == path) || self.chain.len() >= MAX_CHAIN)
        {
            return Some(Cycle { file: last.clone(), to: path.to_path_buf() });
        }
        if (self.skip)(path) {
            return None;
        }
        self.chain.push(path.to_path_buf());
        let met = file.roots.iter().flat_map(|root| self.met_below(root)).collect::<Vec<_>>();
        let cycle = met.iter().find_map(|next| self.follow(next));
        self.chain.pop();
        cycle
    }

    /// The project files that librojo meets when it reads `root`.
    fn met_below(&self, root: &Path) -> Vec<PathBuf> {
        let range = self.projects.range::<Path, _>((Bound::Included(root), Bound::Unbounded));
        let below = range.map(|(path, _)| path).take_while(|path| path.starts_with(root));
        below.filter(|path| self.is_met(root, path)).cloned().collect()
    }

    fn is_met(&self, root: &Path, path: &Path) -> bool {
        let inside = |part: &&Path| part.starts_with(root) && *part != root;
        let shadowed = path.ancestors().skip(1).take_while(|folder| folder.starts_with(root)).any(|folder| {
            let default = DEFAULT_PROJECT_NAMES.iter().map(|name| folder.join(name));
            default.into_iter().find(|default| self.projects.contains_key(default)).is_some_and(|file| file != path)
        });
        // Globs do not keep librojo from the project file of a folder that it has come to.
        let by_its_folder = usize::from(is_default(path));
        let hidden = path.ancestors().take_while(inside).skip(by_its_folder).any(|part| {
            self.chain.iter().any(|above| {
                let (Some(file), Some(folder)) = (self.projects.get(above), above.parent()) else { return false };
                ignored(&file.project, &relative(folder, part))
            })
        });
        !shadowed && !hidden
    }
}
