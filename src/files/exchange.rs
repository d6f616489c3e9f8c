//! What the system does for the writer: two files change places in one step, where it can.

use std::{
    fs::{self, Metadata},
    io::{self, Write},
    path::Path,
};

/// How two files change places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Means {
    /// In one step, with what follows where the file system cannot.
    Exchange,
    /// What is there is moved aside first, and nothing that has come meanwhile is replaced. For a
    /// moment nothing is there; our watcher, like an editor's, takes that for a save.
    Aside,
}

impl Means {
    /// The best that this system has.
    pub fn best() -> Self {
        let has = cfg!(any(target_os = "linux", target_os = "android", target_vendor = "apple"));
        if has { Self::Exchange } else { Self::Aside }
    }
}

/// `scratch` goes to `place`, and what was there is at `scratch` afterwards.
///
/// # Errors
/// Nothing has moved; or, with `AlreadyExists`, another file has come to `place`, and what was
/// there before is at `scratch`.
pub(super) fn swap(scratch: &Path, place: &Path, means: Means) -> io::Result<()> {
    match means {
        Means::Exchange => match exchange(scratch, place) {
            Err(error) if cannot(&error) => aside(scratch, place),
            other => other,
        },
        Means::Aside => aside(scratch, place),
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The file system has no such operation.
fn cannot(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}

fn aside(scratch: &Path, place: &Path) -> io::Result<()> {
    let mut name = scratch.file_name().unwrap_or_default().to_owned();
    name.push(".aside");
    let aside = scratch.with_file_name(name);
    super::fs_rename(place, &aside)?;
    match place_new(scratch, place) {
        Ok(()) => super::fs_rename(&aside, scratch),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            super::fs_rename(&aside, scratch)?;
            Err(error)
        }
        Err(error) => {
            place_new(&aside, place)?;
            Err(error)
        }
    }
}

/// `from` goes to `to`, where nothing may stand.
///
/// # Errors
/// With `AlreadyExists`: something does.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(super) fn place_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // A file system without hard links.
        Err(_) if fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

/// A new file, written through to the disk, with the mode and owner of another.
pub(super) fn write_new(path: &Path, bytes: &[u8], like: Option<&Metadata>) -> io::Result<()> {
    let mut file = fs::File::options().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    if let Some(like) = like {
        own(path, like);
        file.set_permissions(like.permissions())?;
    }
    file.sync_data()
}

/// A server that runs as root must not take people's files from them.
#[cfg(unix)]
fn own(path: &Path, like: &Metadata) {
    use std::os::unix::fs::MetadataExt;
    _ = std::os::unix::fs::chown(path, None, Some(like.gid())); // a member of the group may
    _ = std::os::unix::fs::chown(path, Some(like.uid()), None); // only root may
}

#[cfg(not(unix))]
fn own(_: &Path, _: &Metadata) {}

/// Whether the system lets us write to an existing file. A rename would not ask.
#[cfg(unix)]
pub(super) fn may_write(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(not(unix))]
pub(super) fn may_write(_: &Path) -> bool {
    true
}
