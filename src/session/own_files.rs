//! Which files an instance and all below it come from, if they come from nothing else.

use std::path::{Path, PathBuf};

use librojo::{InstanceWithMeta, Project};
use rbx_dom_weak::types::Ref;

use super::{query::Looker, state::State, types::Look};
use crate::core::{ids::NodeId, text::TextHash};

/// Files without which an instance and all below it would not be there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OwnFiles {
    /// Its scripts.
    pub scripts: Vec<OwnScript>,
    /// Its folders (absolute), those within others first.
    pub folders: Vec<PathBuf>,
}

/// A script with its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnScript {
    /// Which.
    pub id: NodeId,
    /// Names from the root, joined by `.`.
    pub path: String,
    /// `Instance.ClassName`.
    pub class_name: String,
    /// Its file, relative to the project's folder, with `/`.
    pub fs_path: String,
    /// Its file, absolute.
    pub file: PathBuf,
    /// Of the text that the tree has.
    pub hash: TextHash,
}

impl OwnFiles {
    /// Those of `id`. `None`: there is no such instance.
    ///
    /// # Errors
    /// In words: some of it does not come from a script file or a folder of its own.
    pub(super) fn of(state: &State, looker: &Looker, id: Ref) -> Option<Result<Self, String>> {
        state.tree.get_instance(id)?;
        let mut own = Self::default();
        let all = state.tree.descendants(id).try_for_each(|instance| own.add(state, looker, instance));
        // Parents come first, and must go last.
        own.folders.reverse();
        Some(all.map(|()| own))
    }

    fn add(&mut self, state: &State, looker: &Looker, instance: InstanceWithMeta<'_>) -> Result<(), String> {
        let Some(Look { id, path, class_name, fs_path, hash, .. }) = looker.look(state, instance.id()) else {
            return Ok(());
        };
        let made_by = instance.metadata().instigating_source.as_ref().map(|source| source.path());
        let made_by = made_by.filter(|file| !Project::is_project_file(file));
        let (Some(made_by), Some(fs_path)) = (made_by, fs_path) else {
            return Err(format!(
                "{path} does not come from a file of its own; the project's files say that it is there"
            ));
        };
        let file = looker.absolute(&fs_path);
        if state.tree.get_ids_at_path(&file).len() > 1 {
            return Err(format!("{} is in the project twice", file.display()));
        }
        let is_script = matches!(file.extension().and_then(|ending| ending.to_str()), Some("lua" | "luau"));
        match hash {
            Some(hash) if is_script => {
                if made_by != file {
                    self.folders.push(made_by.to_path_buf());
                }
                let fs_path = fs_path.to_string_lossy().into_owned();
                self.scripts.push(OwnScript { id, path, class_name, fs_path, file, hash });
                Ok(())
            }
            None if class_name == "Folder" && file.is_dir() => {
                self.folders.push(file);
                Ok(())
            }
            _ => Err(format!("{path} does not come from a script file of its own ({})", file.display())),
        }
    }

    /// Everything that lies in the folders is one of the files, or a folder with such.
    ///
    /// # Errors
    /// In words: what else lies there.
    pub fn are_alone(&self) -> Result<(), String> {
        let known = |path: &Path| {
            self.folders.iter().any(|folder| folder == path) || self.scripts.iter().any(|script| script.file == path)
        };
        for folder in &self.folders {
            let unreadable = |error| format!("{} cannot be read: {error}", folder.display());
            for entry in std::fs::read_dir(folder).map_err(unreadable)? {
                let path = entry.map_err(unreadable)?.path();
                if !known(&path) {
                    return Err(format!("{} would be lost, which is not a script of it", path.display()));
                }
            }
        }
        Ok(())
    }
}
