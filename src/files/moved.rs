//! Files of scripts that get another name or folder, with what lies beside them.
//!
//! ```text
//! decide -> what lies beside it goes -> the new file is made -> the old one is removed
//!                  \-> back             \-> away again        \-> not what was decided on
//! ```

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    Displaced, Scratch, ScriptFile, Sources, WriteError,
    beside::Beside,
    exchange, lines,
    make::free_place_but,
    names, removable,
    remove::{Guard, Remove, restore},
};
use crate::core::text::{ScriptText, TextHash};

/// What becomes of a script's file.
#[derive(Debug, Clone, Copy)]
pub struct NewName<'a> {
    /// The folder that it goes to.
    pub folder: &'a Path,
    /// The instance's name until now.
    pub was: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What it is, where the file's name does not say so by what follows the instance's.
    pub kind: ScriptFile,
}

/// A file that has moved.
#[derive(Debug)]
pub struct Moved {
    /// Its place.
    pub path: PathBuf,
    /// What was removed.
    pub displaced: Displaced,
    /// Where files lay, and lie, that went along.
    pub beside: Vec<PathBuf>,
}

/// Give the script at `path`, which must hold the text `base`, another name or folder, and `text`.
/// How its file's name ends, its byte order mark, its mode and the endings of lines that stay are kept, and
/// its `.meta.json` goes along. The new file is made before the old one goes.
///
/// # Errors
/// As [`create`](super::create) and [`remove`](super::remove). The disk is left, or put back, as it was.
pub fn move_to(
    sources: &Sources,
    path: &Path,
    base: TextHash,
    to: NewName<'_>,
    text: &ScriptText,
) -> Result<Moved, WriteError> {
    Move { before_remove: &mut || {} }.run(sources, path, base, to, text)
}

/// Whether [`move_to`] would find nothing in its way now.
///
/// # Errors
/// What is in its way.
pub fn check_move(sources: &Sources, path: &Path, base: TextHash, to: NewName<'_>) -> Result<(), WriteError> {
    removable(sources, path, base)?;
    Places::find(sources, path, to).map(drop)
}

/// One move, with what a test may put in its way.
pub(super) struct Move<'a> {
    pub before_remove: &'a mut dyn FnMut(),
}

impl Move<'_> {
    pub fn run(
        self,
        sources: &Sources,
        path: &Path,
        base: TextHash,
        to: NewName<'_>,
        text: &ScriptText,
    ) -> Result<Moved, WriteError> {
        let held = removable(sources, path, base)?;
        let Places { new, is_own, beside } = Places::find(sources, path, to)?;
        let metadata = fs::metadata(path).map_err(|error| WriteError::io(path, error))?;
        let ours = lines::render(&held, text).into_bytes();
        let scratch = Scratch::write(&new, &ours, Some(&metadata))?;
        beside.go()?;
        let done = if is_own {
            self.in_its_own_place(sources, (path, base), &new, &scratch)
        } else {
            self.beside_the_old(sources, (path, base), (&new, &ours), &scratch)
        };
        match done {
            Ok(displaced) => Ok(Moved { path: new, displaced, beside: beside.places().collect() }),
            Err(error) => {
                beside.back();
                Err(error)
            }
        }
    }

    /// Only its own file is in the way, so that goes first.
    fn in_its_own_place(
        self,
        sources: &Sources,
        (path, base): (&Path, TextHash),
        new: &Path,
        scratch: &Scratch,
    ) -> Result<Displaced, WriteError> {
        let (held, displaced) = self.remove(sources, path, base)?;
        let placed = exchange::place_new(&scratch.0, new).map_err(|error| WriteError::io(new, error));
        placed.or_else(|error| restore(sources, path, &held).and(Err(error)))?;
        Ok(displaced)
    }

    fn beside_the_old(
        self,
        sources: &Sources,
        (path, base): (&Path, TextHash),
        (new, ours): (&Path, &[u8]),
        scratch: &Scratch,
    ) -> Result<Displaced, WriteError> {
        exchange::place_new(&scratch.0, new).map_err(|error| WriteError::io(new, error))?;
        let removed = self.remove(sources, path, base);
        if removed.is_err()
            && let Err(error) = away_again(sources, new, ours)
        {
            log::warn!("{} stays beside {}: {error}", new.display(), path.display());
        }
        removed.map(|(_, displaced)| displaced)
    }

    fn remove(self, sources: &Sources, path: &Path, base: TextHash) -> Result<(Vec<u8>, Displaced), WriteError> {
        let one = Remove { before_move: self.before_remove, before_verify: &mut || {} };
        one.run_with(sources, path, Guard::Text(base))
    }
}

/// What was made a moment ago goes, unless somebody has saved it since.
fn away_again(sources: &Sources, new: &Path, ours: &[u8]) -> Result<(), WriteError> {
    let one = Remove { before_move: &mut || {}, before_verify: &mut || {} };
    one.run_with(sources, new, Guard::Bytes(TextHash::of_bytes(ours))).map(drop)
}

/// Where a script's file and what lies beside it go.
struct Places {
    new: PathBuf,
    /// Nothing but its own file is in the way: it gets the same name in letters of another size, say. Some
    /// file systems do not tell those apart.
    is_own: bool,
    beside: Beside,
}

impl Places {
    fn find(sources: &Sources, path: &Path, to: NewName<'_>) -> Result<Self, WriteError> {
        let NewName { folder, was, name, kind } = to;
        let own = path.file_name().and_then(|own| own.to_str()).unwrap_or_default();
        let usual = names::file_name(name, kind)?;
        let kept = names::renamed(own, was, name);
        let file_name = kept.as_deref().unwrap_or(&usual);
        let kind = if file_name.contains(".client.") { ScriptFile::Client } else { kind };
        let wanted = (name, file_name, kind);
        let stays = path.parent().is_some_and(|old| sources.folder(old).ok() == sources.folder(folder).ok());
        let (new, is_own) = match free_place_but(sources, folder, wanted, None) {
            Err(WriteError::Exists(_)) if stays => (free_place_but(sources, folder, wanted, Some(own))?, true),
            free => (free?, false),
        };
        let beside = if kept.is_some() { Beside::of((path, was), (&new, name))? } else { Beside::default() };
        Ok(Self { new, is_own, beside })
    }
}
