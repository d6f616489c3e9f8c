//! Files that a run made and removed, byte for byte: away again, and back again.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    Displaced, Sources, WriteError, exchange, is_scratch,
    remove::{Guard, Remove, remove_empty_folder, restore},
};
use crate::core::{
    journal::{HeldFile, MadeFile},
    text::TextHash,
};

/// Whether these files and folders, below `folder`, are exactly as they were made, and nothing else
/// is in them. What is gone is no hindrance; `false`: all of it is.
///
/// # Errors
/// What is otherwise.
pub fn check_unmake(sources: &Sources, folder: &Path, files: &[MadeFile]) -> Result<bool, WriteError> {
    let places: Vec<PathBuf> = files.iter().map(|file| folder.join(&file.path)).collect();
    let mut is_there = false;
    for (file, place) in files.iter().zip(&places) {
        let checked = match file.hash {
            Some(hash) => Guard::Bytes(hash).check(sources, place).map(drop),
            None => check_folder(sources, place, &places),
        };
        match checked {
            Ok(()) => is_there = true,
            Err(WriteError::Gone(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(is_there)
}

fn check_folder(sources: &Sources, place: &Path, known: &[PathBuf]) -> Result<(), WriteError> {
    if !place.is_dir() && place.symlink_metadata().is_ok() {
        return Err(WriteError::Exists(place.to_path_buf()));
    }
    sources.folder(place)?;
    for entry in fs::read_dir(place).map_err(|error| WriteError::io(place, error))? {
        let path = entry.map_err(|error| WriteError::io(place, error))?.path();
        if !known.contains(&path) && !is_scratch(&path) {
            return Err(WriteError::Holds(path));
        }
    }
    Ok(())
}

/// Take these files and folders away, or none of them.
///
/// # Errors
/// One of them is not as it was made. The disk is left, or put back, as it was.
pub fn unmake(sources: &Sources, folder: &Path, files: &[MadeFile]) -> Result<Vec<Displaced>, WriteError> {
    check_unmake(sources, folder, files)?;
    let mut gone: Vec<Displaced> = Vec::new();
    for (file, hash) in files.iter().filter_map(|file| Some((file, file.hash?))) {
        let place = folder.join(&file.path);
        let guard = Guard::Bytes(hash);
        match (Remove { before_move: &mut || {}, before_verify: &mut || {} }).run_with(sources, &place, guard) {
            Ok((_, displaced)) => gone.push(displaced),
            Err(WriteError::Gone(_)) => {}
            Err(error) => {
                for displaced in gone {
                    if let Err(error) = restore(sources, &displaced.place, &displaced.held) {
                        log::error!("{} could not be put back: {error}", displaced.place.display());
                    }
                }
                return Err(error);
            }
        }
    }
    for file in files.iter().rev().filter(|file| file.hash.is_none()) {
        match remove_empty_folder(sources, &folder.join(&file.path)) {
            Ok(true) | Err(WriteError::Gone(_)) => {}
            Ok(false) => log::warn!("{} stays: something has come into it", file.path),
            Err(error) => log::warn!("{} stays: {error}", file.path),
        }
    }
    Ok(gone)
}

/// Whether these files and folders, below `folder`, could come back: nothing else is in their place.
///
/// # Errors
/// What is there.
pub fn check_restore(folder: &Path, files: &[HeldFile]) -> Result<(), WriteError> {
    files.iter().map(|file| is_back(&folder.join(&file.path), file)).find_map(Result::err).map_or(Ok(()), Err)
}

/// Whether it is there as it was. An error: something else is.
fn is_back(place: &Path, file: &HeldFile) -> Result<bool, WriteError> {
    if place.symlink_metadata().is_err() {
        return Ok(false);
    }
    let same = match &file.bytes {
        Some(bytes) => fs::read(place).is_ok_and(|now| now == bytes.as_slice()),
        None => place.is_dir(),
    };
    if same { Ok(true) } else { Err(WriteError::Exists(place.to_path_buf())) }
}

/// Put these files and folders back, each after the folder that it lies in. Returns their places.
///
/// # Errors
/// Something is in the way, or one cannot be written; those that were put back are taken away again.
pub fn restore_all(sources: &Sources, folder: &Path, files: &[HeldFile]) -> Result<Vec<PathBuf>, WriteError> {
    check_restore(folder, files)?;
    let mut back: Vec<MadeFile> = Vec::new();
    for file in files {
        let place = folder.join(&file.path);
        let done = match &file.bytes {
            _ if is_back(&place, file)? => continue,
            Some(bytes) => restore(sources, &place, bytes.as_slice()),
            None => make_folder(sources, &place),
        };
        if let Err(error) = done {
            if let Err(error) = unmake(sources, folder, &back) {
                log::error!("what was put back could not be taken away again: {error}");
            }
            return Err(error);
        }
        back.push(file.as_made());
    }
    Ok(files.iter().map(|file| folder.join(&file.path)).collect())
}

fn make_folder(sources: &Sources, place: &Path) -> Result<(), WriteError> {
    let parent = place.parent().ok_or_else(|| WriteError::Outside(place.to_path_buf()))?;
    let parent = super::remove::make_folders(sources, parent)?;
    let own = parent.join(place.file_name().unwrap_or_default());
    match fs::create_dir(&own) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(WriteError::io(&own, error)),
        _ => Ok(()),
    }
}

impl Guard {
    /// Where the file is, and what it holds, if that is what was expected.
    pub(super) fn check(self, sources: &Sources, path: &Path) -> Result<(PathBuf, Vec<u8>), WriteError> {
        let place = sources.file(path)?;
        let own = fs::symlink_metadata(path).map_err(|error| WriteError::io(path, error))?;
        if own.is_symlink() {
            return Err(WriteError::Link(path.to_path_buf()));
        }
        let held = match self {
            Self::Text(base) => super::decide(&place, base)?.into_bytes(),
            Self::Bytes(hash) => {
                let held = fs::read(&place).map_err(|error| WriteError::io(&place, error))?;
                let now = TextHash::of_bytes(&held);
                if now != hash {
                    return Err(WriteError::Changed { path: place, now });
                }
                held
            }
        };
        if own.permissions().readonly() || !exchange::may_write(&place) {
            return Err(WriteError::ReadOnly(place));
        }
        Ok((place, held))
    }
}
