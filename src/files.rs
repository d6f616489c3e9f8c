//! The only writer of the project's sources.
//!
//! ```text
//! decide (the disk holds the base?) -> write beside it -> exchange -> verify what was displaced
//!                                                             \-> not what was decided on: swap back
//! ```
//!
//! Nothing is written outside the project's sources, over a text that is newer than the base, or
//! where a file is gone; a text that is on the disk already is not written again. What was
//! displaced is held open for a moment, though it has no name any more: an editor may have the file
//! open too, and still write into it.

mod beside;
pub(crate) mod displaced;
mod exchange;
mod folders;
mod lines;
mod make;
mod moved;
mod names;
mod place;
mod remove;
#[cfg(test)]
mod tests;
mod unmake;

use std::{
    fs,
    io::{self, Read, Seek},
    path::{Path, PathBuf},
};

pub use displaced::Displaced;
pub use folders::{check_move_folder, move_folder};
pub use make::{check_create, check_create_all, check_held, create, create_all, create_folder, create_init};
pub use moved::{Moved, NewName, check_move, move_to};
pub use names::{NameError, ScriptFile, check_name};
pub use place::{Rules, Sources};
pub use remove::{Removed, removable, remove, remove_empty_folder, restore};
pub use unmake::{check_restore, check_unmake, restore_all, unmake};

use self::exchange::Means;
use crate::core::text::{ScriptText, TextHash};

/// How long what was displaced should be held before [`Displaced::settle`].
pub const KEEP_DISPLACED: std::time::Duration = std::time::Duration::from_secs(2);

/// How often a text is written again whose folder went and came back.
const KEEP_TRIES: u32 = 5;

/// So often theirs and ours change places before we give up; each time needs another save of the
/// same file within microseconds.
const MAX_SWAPS: usize = 8;

/// Why a file was not written. The disk is as it was.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Not inside a `$path` of the project, or not once links are resolved.
    #[error("{} lies outside the project's sources", .0.display())]
    Outside(PathBuf),
    /// There is no such file any more.
    #[error("{} is gone", .0.display())]
    Gone(PathBuf),
    /// The file holds another text than the change was made to.
    #[error("{} has changed meanwhile (its text is now {now})", .path.display())]
    Changed {
        /// Which file.
        path: PathBuf,
        /// What it holds.
        now: TextHash,
    },
    /// It, or its folder, may not be written.
    #[error("{} is read-only", .0.display())]
    ReadOnly(PathBuf),
    /// It is a folder or something odder, or not UTF-8.
    #[error("{} is not a text file", .0.display())]
    NotText(PathBuf),
    /// It leads to a file elsewhere.
    #[error("{} is a link to another file", .0.display())]
    Link(PathBuf),
    /// Something stands there already, perhaps in other letters.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// It says more of several instances of one name.
    #[error("{} is of several instances of one name", .0.display())]
    Shared(PathBuf),
    /// It lies in a folder that was made for other things, which it would be lost with.
    #[error("{} is no work of that sync", .0.display())]
    Holds(PathBuf),
    /// No file name gives an instance of that name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The project's own rules make something else of it, or nothing.
    #[error("{} would not be read as that script: {why}", .path.display())]
    NotReadBack {
        /// Which file.
        path: PathBuf,
        /// What would become of it.
        why: String,
    },
    /// The system's words.
    #[error("{} cannot be written: {source}", .path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
}

impl WriteError {
    fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotFound => Self::Gone(path),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly(path),
            io::ErrorKind::AlreadyExists => Self::Exists(path),
            io::ErrorKind::InvalidData | io::ErrorKind::IsADirectory => Self::NotText(path),
            _ => Self::Io { path, source },
        }
    }
}

/// What a write did.
#[derive(Debug)]
pub struct Written {
    /// The hash of the text that the file holds now.
    pub hash: TextHash,
    /// What was there before. `None`: the text was there already, nothing was written.
    pub displaced: Option<Displaced>,
}

/// Give the script at `path`, which must hold the text `base`, another text. Its byte order mark,
/// its mode and the endings of lines that stay are kept.
///
/// # Errors
/// The disk is left, or put back, as it was.
pub fn replace(sources: &Sources, path: &Path, base: TextHash, text: &ScriptText) -> Result<Written, WriteError> {
    Replace { means: Means::best(), before_exchange: &mut || {} }.run(sources, path, base, text)
}

/// One replacement, with what a test may put in its way.
struct Replace<'a> {
    means: Means,
    before_exchange: &'a mut dyn FnMut(),
}

impl Replace<'_> {
    fn run(self, sources: &Sources, path: &Path, base: TextHash, text: &ScriptText) -> Result<Written, WriteError> {
        let place = sources.file(path)?;
        let held = read_text(&place)?;
        let hash = text.hash();
        if TextHash::of(&held) == hash {
            return Ok(Written { hash, displaced: None });
        }
        let held = decide(&place, base)?;
        let ours = lines::render(&held, text).into_bytes();
        let metadata = fs::metadata(&place).map_err(|error| WriteError::io(&place, error))?;
        if metadata.permissions().readonly() || !exchange::may_write(&place) {
            return Err(WriteError::ReadOnly(place));
        }
        let scratch = Scratch::write(&place, &ours, Some(&metadata))?;
        (self.before_exchange)();
        let swap = Swap { place: &place, held: held.as_bytes(), ours: &ours, means: self.means };
        let file = swap.run(&scratch)?;
        let displaced = Displaced { file, place, held: held.into_bytes(), ours: Some(ours), means: self.means };
        Ok(Written { hash, displaced: Some(displaced) })
    }
}

/// Ours takes the place of what was decided on, and of nothing else.
struct Swap<'a> {
    place: &'a Path,
    held: &'a [u8],
    ours: &'a [u8],
    means: Means,
}

impl Swap<'_> {
    /// Put ours, which is in `scratch`, in its place. Returns what was displaced, open.
    fn run(&self, scratch: &Scratch) -> Result<fs::File, WriteError> {
        let failed = |error| WriteError::io(self.place, error);
        let there = exchange::swap(&scratch.0, self.place, self.means);
        let opened = fs::File::open(&scratch.0).and_then(|mut file| Ok((read_all(&mut file)?, file)));
        let (displaced, file) = match (opened, &there) {
            (Ok(opened), _) => opened,
            // It may be anybody's text, and goes when `scratch` does: unread it must not.
            (Err(_), Err(error)) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(WriteError::io(self.place, io::Error::new(error.kind(), error.to_string())));
            }
            (Err(error), _) => return Err(scratch.keep(self.place, None, error)),
        };
        match there {
            Ok(()) if displaced == self.held => Ok(file),
            Ok(()) => Err(self.back(scratch, displaced)),
            // Somebody has put a newer file there while the place was empty.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if displaced != self.held && displaced != self.ours {
                    scratch.keep_as_file(self.place, Some(&displaced));
                }
                let now = fs::read(self.place).map_err(failed)?;
                Err(changed(self.place, &now))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// `theirs` was displaced, and is newer than what was decided on: it goes back. So does what
    /// that displaces, unless it is ours.
    fn back(&self, scratch: &Scratch, theirs: Vec<u8>) -> WriteError {
        let (mut going_back, mut expected) = (theirs, self.ours.to_vec());
        for _ in 0..MAX_SWAPS {
            let swapped = exchange::swap(&scratch.0, self.place, self.means);
            let displaced = match swapped.and_then(|()| fs::read(&scratch.0)) {
                Ok(displaced) => displaced,
                Err(error) => return scratch.keep(self.place, Some(&going_back), error),
            };
            if displaced == expected {
                return changed(self.place, &going_back);
            }
            expected = std::mem::replace(&mut going_back, displaced);
        }
        scratch.keep(self.place, Some(&going_back), io::Error::other("it is being written all the time"))
    }
}

fn read_all(file: &mut fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file of ours beside the place that it is for. Goes when dropped.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn beside(place: &Path) -> Self {
        Self(place.with_file_name(place::scratch_name(place)))
    }

    /// With `bytes`, and owner and mode as `like`.
    fn write(place: &Path, bytes: &[u8], like: Option<&fs::Metadata>) -> Result<Self, WriteError> {
        let scratch = Self::beside(place);
        exchange::write_new(&scratch.0, bytes, like).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => WriteError::Gone(place.to_path_buf()),
            _ => WriteError::io(place, error),
        })?;
        Ok(scratch)
    }

    /// It holds somebody's text, `text` where that is known, that cannot go back: it stays, under a
    /// name that is seen.
    fn keep_as_file(&self, place: &Path, text: Option<&[u8]>) {
        let kept = kept_name(place);
        let moved = fs_rename(&self.0, &kept).or_else(|error| match text {
            Some(text) if error.kind() == io::ErrorKind::NotFound => write_kept(&kept, text),
            _ => Err(error),
        });
        tell_kept(place, &kept, moved);
    }

    fn keep(&self, place: &Path, text: Option<&[u8]>, error: io::Error) -> WriteError {
        self.keep_as_file(place, text);
        WriteError::io(place, error)
    }
}

fn kept_name(place: &Path) -> PathBuf {
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(format!(".kept-{}", uuid::Uuid::new_v4().simple()));
    place.with_file_name(name)
}

/// Write what is kept. Its folder may go and come back at any moment, as with a switch of branches.
fn write_kept(kept: &Path, text: &[u8]) -> io::Result<()> {
    write_kept_or_look(kept, text, &mut || {})
}

/// The same, with what a test may do before it is looked whether the folder is there again.
fn write_kept_or_look(kept: &Path, text: &[u8], before_look: &mut dyn FnMut()) -> io::Result<()> {
    let write = || exchange::write_new(kept, text, None);
    let mut came_back = |error: &io::Error| {
        error.kind() == io::ErrorKind::NotFound && {
            before_look();
            kept.parent().is_some_and(|folder| folder.exists())
        }
    };
    (0..KEEP_TRIES).fold(write(), |wrote, _| match wrote {
        Err(error) if came_back(&error) => write(),
        other => other,
    })
}

/// Say what has become of a text that somebody saved to `place` while we replaced it.
fn tell_kept(place: &Path, kept: &Path, outcome: io::Result<()>) {
    match outcome {
        Ok(()) => log::warn!("a text that was saved to {} meanwhile is kept in {}", place.display(), kept.display()),
        // Whoever removed the folder after that save has removed the text with it.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound || place.parent().is_some_and(|folder| !folder.exists()) =>
        {
            log::info!("{} was saved by another program and then removed with its folder", place.display());
        }
        Err(error) => log::error!("a text that was saved to {} could not be kept: {error}", place.display()),
    }
}

impl Drop for Scratch {
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0); // it may have been moved
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn fs_rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// The file's text, if it is the base.
fn decide(place: &Path, base: TextHash) -> Result<String, WriteError> {
    let held = read_text(place)?;
    let now = TextHash::of(&held);
    if now == base { Ok(held) } else { Err(WriteError::Changed { path: place.to_path_buf(), now }) }
}

fn read_text(place: &Path) -> Result<String, WriteError> {
    fs::read_to_string(place).map_err(|error| WriteError::io(place, error))
}

fn changed(place: &Path, now: &[u8]) -> WriteError {
    match std::str::from_utf8(now) {
        Ok(text) => WriteError::Changed { path: place.to_path_buf(), now: TextHash::of(text) },
        Err(_) => WriteError::NotText(place.to_path_buf()),
    }
}

/// Whether a file of that name is one of ours, and no source.
pub fn is_scratch(path: &Path) -> bool {
    place::is_scratch(path)
}
