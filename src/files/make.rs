//! New files, and whether they could be made.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Scratch, ScriptFile, Sources, WriteError, decide, exchange, names};
use crate::core::text::{ScriptText, TextHash};

/// Make a script of that name in `folder`.
///
/// # Errors
/// No file name would be read back as that name, by Rojo's rules or the project's own, or something
/// is in the way.
pub fn create(
    sources: &Sources,
    folder: &Path,
    name: &str,
    kind: ScriptFile,
    text: &ScriptText,
) -> Result<PathBuf, WriteError> {
    let path = free_place(sources, folder, name, kind)?;
    write_new(&path, text)?;
    Ok(path)
}

/// Make a script that others lie below: the `init` file of the folder `name` in `folder`, which is
/// made if it is not there.
///
/// # Errors
/// As [`create`].
pub fn create_init(
    sources: &Sources,
    folder: &Path,
    name: &str,
    kind: ScriptFile,
    text: &ScriptText,
) -> Result<PathBuf, WriteError> {
    let init = names::init_name(kind);
    sources.reads_back(&folder.join(names::folder_name(name)?).join(&init), name, kind)?;
    let own = create_folder(sources, folder, name)?;
    let listed = fs::read_dir(&own).map_err(|error| WriteError::io(&own, error))?;
    let is_init = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().to_lowercase().starts_with("init.");
    if listed.flatten().any(|entry| is_init(&entry)) {
        return Err(WriteError::Exists(own));
    }
    let path = own.join(init);
    write_new(&path, text)?;
    Ok(path)
}

/// Make the folder `name` in `folder`, unless it is there.
///
/// # Errors
/// It may not have that name, or something else is in the way.
pub fn create_folder(sources: &Sources, folder: &Path, name: &str) -> Result<PathBuf, WriteError> {
    let name = names::folder_name(name)?;
    let folder = sources.folder(folder)?;
    let own = folder.join(name);
    if own.is_dir() {
        return sources.folder(&own);
    }
    if names::is_taken(&folder, name, name).map_err(|error| WriteError::io(&folder, error))? {
        return Err(WriteError::Exists(own));
    }
    fs::create_dir(&own).map_err(|error| WriteError::io(&own, error))?;
    Ok(own)
}

/// Whether [`create`] would find nothing in its way now.
///
/// # Errors
/// What is in its way.
pub fn check_create(sources: &Sources, folder: &Path, name: &str, kind: ScriptFile) -> Result<(), WriteError> {
    free_place(sources, folder, name, kind).map(drop)
}

/// Whether the script at `path` holds `base` and may be written now.
///
/// # Errors
/// What is in the way.
pub fn check_held(sources: &Sources, path: &Path, base: TextHash) -> Result<(), WriteError> {
    let place = sources.file(path)?;
    decide(&place, base)?;
    let metadata = fs::metadata(&place).map_err(|error| WriteError::io(&place, error))?;
    if metadata.permissions().readonly() || !exchange::may_write(&place) {
        return Err(WriteError::ReadOnly(place));
    }
    Ok(())
}

fn free_place(sources: &Sources, folder: &Path, name: &str, kind: ScriptFile) -> Result<PathBuf, WriteError> {
    let file_name = names::file_name(name, kind)?;
    sources.reads_back(&folder.join(&file_name), name, kind)?;
    let folder = sources.folder(folder)?;
    let path = folder.join(&file_name);
    if names::is_taken(&folder, &file_name, name).map_err(|error| WriteError::io(&folder, error))? {
        return Err(WriteError::Exists(path));
    }
    Ok(path)
}

fn write_new(path: &Path, text: &ScriptText) -> Result<(), WriteError> {
    let scratch = Scratch::write(path, text.as_str().as_bytes(), None)?;
    exchange::place_new(&scratch.0, path).map_err(|error| WriteError::io(path, error))
}
