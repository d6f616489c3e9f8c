//! Whether a folder can get another name or place without the project falling apart.

use std::path::{Path, PathBuf};

use rbx_dom_weak::types::Ref;

use super::{query::Looker, state::State};
use crate::core::text::TextHash;

/// The scripts of `id` and all below it with their files, if all of it comes from the folder at `path`
/// and nothing names that folder or what is in it. `roots` are the project's `$path`s.
///
/// # Errors
/// In words: what hangs on the folder's name.
pub(super) fn scripts_of_folder(
    state: &State,
    looker: &Looker,
    roots: &[PathBuf],
    id: Ref,
    path: &Path,
) -> Result<Vec<(PathBuf, TextHash)>, String> {
    if let Some(root) = roots.iter().find(|root| root.starts_with(path)) {
        return Err(format!("a project file names {}: rename it there and on disk", root.display()));
    }
    if state.tree.get_ids_at_path(path).len() > 1 {
        return Err(format!("{} is in the project twice", path.display()));
    }
    let mut scripts = Vec::new();
    for instance in state.tree.descendants(id) {
        let Some(look) = looker.look(state, instance.id()) else { continue };
        // A script in a model has no file of its own, and the model is looked at for itself.
        let Some(file) = look.fs_path.map(|file| looker.absolute(&file)) else { continue };
        if !file.starts_with(path) {
            return Err(format!("{} does not come from that folder", look.path));
        }
        scripts.extend(look.hash.map(|hash| (file, hash)));
    }
    Ok(scripts)
}
