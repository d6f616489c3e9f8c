//! Whether the files that a run is going to write could be written, before anything is changed.

use std::path::Path;

use super::{
    work::Worker,
    writes::{problem, script_file},
};
use crate::{
    core::{
        ids::NodeId,
        sync::{FileWrite, Wrote},
    },
    files::{self, NewName, Sources, WriteError},
};

impl Worker {
    /// What stands in the way of each of `writes`, if anything does. What lies in a folder that is not
    /// there yet is not looked at, and what another of them takes away is in nobody's way.
    pub(super) fn check(&self, writes: &[FileWrite]) -> Vec<Option<Wrote>> {
        let folder = self.session.project().folder.clone();
        let leaving = |path: &Path| {
            writes.iter().any(|write| match write {
                FileWrite::Remove { path: gone, .. } | FileWrite::Move { path: gone, .. } => {
                    is_beside(&folder.join(gone), path)
                }
                _ => false,
            })
        };
        let sources = self.session.sources();
        let checked = writes.iter().map(|write| match self.check_one(&sources, &folder, write) {
            Err(WriteError::Exists(path)) if leaving(&path) => None,
            Err(error) => Some(problem(&error)),
            Ok(found) => found,
        });
        checked.collect()
    }

    fn check_one(&self, sources: &Sources, folder: &Path, write: &FileWrite) -> Result<Option<Wrote>, WriteError> {
        match write {
            FileWrite::Replace { path, base, .. } => files::check_held(sources, &folder.join(path), *base)?,
            FileWrite::Remove { path, base } => _ = files::removable(sources, &folder.join(path), *base)?,
            FileWrite::Create { name, class, holds: false, folder: within, .. } => {
                files::check_name(name)?;
                if folder.join(within).is_dir() {
                    files::check_create(sources, &folder.join(within), name, script_file(class))?;
                }
            }
            FileWrite::Move { path, base, folder: within, was, name, class, .. } => {
                let to = NewName { folder: &folder.join(within), was, name, kind: script_file(class) };
                files::check_move(sources, &folder.join(path), *base, to)?;
            }
            FileWrite::MoveFolder { id, path, folder: within, name } => {
                if let Some(wrote) = self.check_folder(sources, *id, path)? {
                    return Ok(Some(wrote));
                }
                files::check_move_folder(sources, &folder.join(path), (&folder.join(within), name))?;
            }
            FileWrite::Create { name, .. } | FileWrite::Folder { name, .. } => files::check_name(name)?,
            // Nothing is left to be done.
            FileWrite::Unmake { files } if !files::check_unmake(sources, folder, files)? => {
                return Ok(Some(Wrote::Done(None)));
            }
            FileWrite::Unmake { .. } | FileWrite::Files { .. } => {}
            FileWrite::Restore { files } => match files::check_restore(folder, files) {
                // Somebody has put something there since.
                Err(error @ WriteError::Exists(_)) => return Ok(Some(Wrote::MovedOn(error.to_string()))),
                checked => checked?,
            },
            FileWrite::Instance { folder: within, expect, node, .. } => {
                files::check_name(expect.name.as_deref().unwrap_or_default())?;
                let Some(node) = node else { return Ok(None) };
                match self.session.new_files(node) {
                    Ok(new) => files::check_create_all(sources, &folder.join(within), &node.name, &new.files)?,
                    Err(reason) => return Ok(Some(Wrote::Failed(reason))),
                }
            }
        }
        Ok(None)
    }
}

impl Worker {
    /// Why the folder of `id` may not be moved: what lies in it is not what the tree has.
    pub(super) fn check_folder(&self, sources: &Sources, id: NodeId, path: &str) -> Result<Option<Wrote>, WriteError> {
        match self.session.scripts_of_folder(id, path) {
            Ok(scripts) => {
                scripts.iter().try_for_each(|(file, hash)| files::check_held(sources, file, *hash)).map(|()| None)
            }
            Err(reason) => Ok(Some(Wrote::Failed(reason))),
        }
    }
}

/// Both are files of one folder, for instances of one name but for the size of its letters.
fn is_beside(gone: &Path, path: &Path) -> bool {
    let stem = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let endings = [".luau", ".lua", ".meta.json", ".meta.jsonc"];
        endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name).to_owned()
    };
    let folder = |path: &Path| path.parent().and_then(|folder| folder.canonicalize().ok());
    stem(gone) == stem(path) && folder(gone) == folder(path)
}
