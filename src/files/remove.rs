//! Taking files away, and putting them back.
//!
//! ```text
//! decide (the disk holds the base?) -> move aside -> verify what was moved -> let go of it
//!                                          \-> not what was decided on: back to its place
//! ```

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use super::{Displaced, Means, Scratch, Sources, WriteError, changed, exchange, fs_rename, read_all};
use crate::core::text::TextHash;

/// A file that was removed.
#[derive(Debug)]
pub struct Removed {
    /// What it held, byte for byte.
    pub held: String,
    /// An editor may have it open, and still write into it.
    pub displaced: Displaced,
}

/// Remove the script at `path`, which must hold the text `base`. A link is not followed.
///
/// # Errors
/// The disk is left, or put back, as it was.
pub fn remove(sources: &Sources, path: &Path, base: TextHash) -> Result<Removed, WriteError> {
    Remove { before_move: &mut || {}, before_verify: &mut || {} }.run(sources, path, base)
}

/// What [`remove`] would remove now, byte for byte.
///
/// # Errors
/// As [`remove`] would say.
pub fn removable(sources: &Sources, path: &Path, base: TextHash) -> Result<String, WriteError> {
    Guard::Text(base).check(sources, path).map(|(_, held)| as_text(held))
}

/// Remove the folder at `path` if nothing is in it. Whether it is gone.
///
/// # Errors
/// It is none of the project's, or the system does not let us.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn remove_empty_folder(sources: &Sources, path: &Path) -> Result<bool, WriteError> {
    let folder = sources.folder(path)?;
    match fs::remove_dir(&folder) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(false),
        Err(error) => Err(WriteError::io(path, error)),
    }
}

/// Put a file that was removed back where it was, with the folders that it was in.
///
/// # Errors
/// Something is there again, or it may not be written there.
pub fn restore(sources: &Sources, path: &Path, held: &[u8]) -> Result<(), WriteError> {
    let folder = path.parent().ok_or_else(|| WriteError::Outside(path.to_path_buf()))?;
    let folder = make_folders(sources, folder)?;
    let place = folder.join(path.file_name().ok_or_else(|| WriteError::Outside(path.to_path_buf()))?);
    let scratch = Scratch::write(&place, held, None)?;
    exchange::place_new(&scratch.0, &place).map_err(|error| WriteError::io(&place, error))
}

/// The folder at `path`, made where it is lacking. Only what lies in the sources counts as there.
pub(super) fn make_folders(sources: &Sources, path: &Path) -> Result<PathBuf, WriteError> {
    let there = path.ancestors().find(|path| path.is_dir()).ok_or_else(|| WriteError::Gone(path.to_path_buf()))?;
    let lacking = path.strip_prefix(there).unwrap_or(Path::new(""));
    if !lacking.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(WriteError::Outside(path.to_path_buf()));
    }
    let folder = sources.folder(there)?.join(lacking);
    fs::create_dir_all(&folder).map_err(|error| WriteError::io(&folder, error))?;
    Ok(folder)
}

/// What a file must hold.
#[derive(Debug, Clone, Copy)]
pub(super) enum Guard {
    /// This text, whatever its line endings.
    Text(TextHash),
    /// These bytes.
    Bytes(TextHash),
}

/// One removal, with what a test may put in its way.
pub(super) struct Remove<'a> {
    pub before_move: &'a mut dyn FnMut(),
    pub before_verify: &'a mut dyn FnMut(),
}

impl Remove<'_> {
    pub fn run(self, sources: &Sources, path: &Path, base: TextHash) -> Result<Removed, WriteError> {
        let (held, displaced) = self.run_with(sources, path, Guard::Text(base))?;
        Ok(Removed { held: as_text(held), displaced })
    }

    /// What it held, and the file itself.
    pub fn run_with(self, sources: &Sources, path: &Path, guard: Guard) -> Result<(Vec<u8>, Displaced), WriteError> {
        let (place, held) = guard.check(sources, path)?;
        let aside = Scratch::beside(&place);
        (self.before_move)();
        fs_rename(&place, &aside.0).map_err(|error| WriteError::io(&place, error))?;
        (self.before_verify)();
        // What was moved aside goes when `aside` does; unread it must not.
        let opened = fs::File::open(&aside.0).and_then(|mut file| Ok((read_all(&mut file)?, file)));
        let (moved, file) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                exchange::place_new(&aside.0, &place).map_err(|error| aside.keep(&place, None, error))?;
                return Err(WriteError::io(&place, error));
            }
        };
        if moved != held {
            exchange::place_new(&aside.0, &place).map_err(|error| aside.keep(&place, Some(&moved), error))?;
            return Err(changed(&place, &moved));
        }
        let displaced = Displaced { file, place, held: moved, ours: None, means: Means::best() };
        Ok((held, displaced))
    }
}

/// Bytes of which it is known that they are a text.
fn as_text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
