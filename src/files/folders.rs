//! Folders that get another name or place, with everything that lies in them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{Sources, WriteError, fs_rename, names, place::scratch_name};

/// Give the folder at `path` another name or another folder to lie in: what is in it, whatever that is,
/// moves along. Returns its new place.
///
/// # Errors
/// It may not have that name, or something else has it already. The disk is as it was.
pub fn move_folder(sources: &Sources, path: &Path, (folder, name): (&Path, &str)) -> Result<PathBuf, WriteError> {
    let (old, new) = places(sources, path, (folder, name))?;
    give_name(&old, &new).map_err(|error| WriteError::io(&new, error))?;
    Ok(new)
}

/// The file or folder `old` gets the name `new`, which nothing else may have.
pub(super) fn give_name(old: &Path, new: &Path) -> io::Result<()> {
    match rename_to_new(old, new) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_same(old, new) => {
            by_way_of_a_scratch(old, new)
        }
        other => other,
    }
}

/// Both are one: this file system does not tell letters apart by their size.
pub(super) fn is_same(old: &Path, new: &Path) -> bool {
    matches!((old.canonicalize(), new.canonicalize()), (Ok(old), Ok(new)) if old == new)
}

pub(super) fn by_way_of_a_scratch(old: &Path, new: &Path) -> io::Result<()> {
    let between = old.with_file_name(scratch_name(old));
    fs_rename(old, &between)?;
    let moved = rename_to_new(&between, new);
    if moved.is_err()
        && let Err(lost) = rename_to_new(&between, old)
    {
        log::error!("{} could not get its name back: {lost}", between.display());
    }
    moved
}

/// Whether [`move_folder`] would find nothing in its way now.
///
/// # Errors
/// What is in its way.
pub fn check_move_folder(sources: &Sources, path: &Path, to: (&Path, &str)) -> Result<(), WriteError> {
    places(sources, path, to).map(drop)
}

/// Where the folder is, and where it goes.
fn places(sources: &Sources, path: &Path, (folder, name): (&Path, &str)) -> Result<(PathBuf, PathBuf), WriteError> {
    let name = names::folder_name(name)?;
    let above = path.parent().ok_or_else(|| WriteError::Outside(path.to_path_buf()))?;
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        return Err(WriteError::Link(path.to_path_buf()));
    }
    let old = sources.folder(path)?;
    // A `$path` of the project is what its project file calls it.
    let (above, into) = (sources.folder(above)?, sources.folder(folder)?);
    let own = path.file_name().and_then(|own| own.to_str()).filter(|_| above == into);
    if into.starts_with(&old) {
        return Err(WriteError::Outside(into));
    }
    let taken = names::is_taken_but(&into, name, name, own).map_err(|error| WriteError::io(&into, error))?;
    if taken { Err(WriteError::Exists(into.join(name))) } else { Ok((old, into.join(name))) }
}

/// `from` gets the name `to`, which nothing may have.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from) {
            Err(error) if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) => {}
            other => return other,
        }
    }
    if fs::symlink_metadata(to).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs_rename(from, to)
}
