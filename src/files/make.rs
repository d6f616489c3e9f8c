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

/// Make files and folders (`None`) in `folder` that are all new, for an instance called `name`. If one
/// cannot be made, those that were are taken away again.
///
/// # Errors
/// Something is in the way.
pub fn create_all(
    sources: &Sources,
    folder: &Path,
    name: &str,
    files: &[(PathBuf, Option<Vec<u8>>)],
) -> Result<Vec<PathBuf>, WriteError> {
    check_create_all(sources, folder, name, files)?;
    let folder = sources.folder(folder)?;
    let mut made: Vec<Made<'_>> = Vec::new();
    for (path, bytes) in files {
        let path = folder.join(path);
        let done = match bytes {
            None => fs::create_dir(&path).map_err(|error| WriteError::io(&path, error)),
            Some(bytes) => Scratch::write(&path, bytes, None).and_then(|scratch| {
                exchange::place_new(&scratch.0, &path).map_err(|error| WriteError::io(&path, error))
            }),
        };
        if let Err(error) = done {
            take_away(&made);
            return Err(error);
        }
        made.push((path, bytes.as_deref()));
    }
    Ok(made.into_iter().map(|(path, _)| path).collect())
}

/// Whether [`create_all`] would find nothing in its way now.
///
/// # Errors
/// What is in its way.
pub fn check_create_all(
    sources: &Sources,
    folder: &Path,
    name: &str,
    files: &[(PathBuf, Option<Vec<u8>>)],
) -> Result<(), WriteError> {
    let folder = sources.folder(folder)?;
    for (path, _) in files.iter().filter(|(path, _)| path.components().count() == 1) {
        let file_name = path.to_string_lossy();
        if names::is_taken(&folder, &file_name, name).map_err(|error| WriteError::io(&folder, error))? {
            return Err(WriteError::Exists(folder.join(path)));
        }
    }
    Ok(())
}

/// A file that was made a moment ago, with what it holds, or a folder.
type Made<'a> = (PathBuf, Option<&'a [u8]>);

/// Take away what was made a moment ago: folders where nobody put anything into them, and files that
/// nobody has saved since.
#[expect(clippy::disallowed_methods, reason = "this is the one writer, and they are its own")]
pub(super) fn take_away(made: &[Made<'_>]) {
    for (path, bytes) in made.iter().rev() {
        let gone = match bytes {
            None => fs::remove_dir(path),
            Some(bytes) => match fs::read(path) {
                Ok(now) if now == *bytes => fs::remove_file(path),
                Ok(_) => Err(std::io::Error::other("somebody has saved it meanwhile")),
                Err(error) => Err(error),
            },
        };
        if let Err(error) = gone {
            log::warn!("{} stays: {error}", path.display());
        }
    }
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
    free_place_but(sources, folder, (name, &file_name, kind), None)
}

/// Where a script called `name` finds its place as `file_name`. The file `own` is not in the way.
pub(super) fn free_place_but(
    sources: &Sources,
    folder: &Path,
    (name, file_name, kind): (&str, &str, ScriptFile),
    own: Option<&str>,
) -> Result<PathBuf, WriteError> {
    sources.reads_back(&folder.join(file_name), name, kind)?;
    let folder = sources.folder(folder)?;
    let path = folder.join(file_name);
    if names::is_taken_but(&folder, file_name, name, own).map_err(|error| WriteError::io(&folder, error))? {
        return Err(WriteError::Exists(path));
    }
    Ok(path)
}

fn write_new(path: &Path, text: &ScriptText) -> Result<(), WriteError> {
    let scratch = Scratch::write(path, text.as_str().as_bytes(), None)?;
    exchange::place_new(&scratch.0, path).map_err(|error| WriteError::io(path, error))
}
