//! Looking at the disk without being held up or misled by it: links resolved, only regular files
//! opened, sizes bounded, and a stamp that tells whether a file was touched.

use std::{
    fs::{self, Metadata},
    io::{self, Read},
    path::{Component, Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::clock;

/// Larger files are not read. Roblox itself takes no model near this size.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// A file whose time of change is younger than this when it is read may change again without
/// another time or size: clocks of file systems tick every few milliseconds.
const UNSETTLED: Duration = Duration::from_millis(50);

/// Whether the file at `path` was neither written nor moved since `time`.
pub(super) fn changed_before(path: &Path, time: SystemTime) -> bool {
    let Ok(metadata) = fs::symlink_metadata(path) else { return false };
    let [seconds, nanos, ..] = identity(&metadata).map(|number| u64::try_from(number).unwrap_or_default());
    let changed = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanos);
    changed <= time && metadata.modified().is_ok_and(|modified| modified <= time)
}

/// Changes whenever the file does, as far as the file system tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    /// Changed time and inode, where the system has them.
    identity: [i64; 4],
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { len: metadata.len(), modified: metadata.modified().ok(), identity: identity(metadata) }
    }

    /// Whether an equal stamp later on will mean an equal file.
    pub fn settled(&self) -> bool {
        let now = UNIX_EPOCH + Duration::from_millis(clock::unix_millis());
        self.modified.is_some_and(|modified| now.duration_since(modified).is_ok_and(|age| age > UNSETTLED))
    }
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> [i64; 4] {
    use std::os::unix::fs::MetadataExt;
    [metadata.ctime(), metadata.ctime_nsec(), metadata.ino().cast_signed(), metadata.dev().cast_signed()]
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> [i64; 4] {
    [0; 4]
}

/// What stands at a path.
#[derive(Debug)]
pub(super) struct Seen {
    pub what: What,
    /// Where the link at the path leads, whether or not there is something. `None`: no link.
    pub link: Option<PathBuf>,
}

#[derive(Debug)]
pub(super) enum What {
    Nothing,
    /// `None`: it was not looked at yet, and reading it will tell.
    File(Option<Stamp>),
    Folder,
    /// It cannot be served, and why.
    Unfit(String),
}

/// Look at `path`. Reads no contents.
pub(super) fn look(path: &Path) -> Seen {
    match fs::symlink_metadata(path) {
        // Some file systems find a file under another spelling too; it is not there under this one.
        Ok(metadata) if cfg!(any(windows, target_vendor = "apple")) && !metadata.is_symlink() && is_respelled(path) => {
            Seen { what: What::Nothing, link: None }
        }
        Ok(metadata) => judge(path, &metadata),
        Err(error) => Seen { what: missing(&error), link: None },
    }
}

/// What is at `path` has that name in letters of another size.
fn is_respelled(path: &Path) -> bool {
    let real = fs::canonicalize(path);
    let names = real.as_ref().ok().and_then(|real| real.file_name()).zip(path.file_name());
    names.is_some_and(|(real, spelled)| is_other_case(&real.to_string_lossy(), &spelled.to_string_lossy()))
}

fn is_other_case(one: &str, other: &str) -> bool {
    one != other && one.to_lowercase() == other.to_lowercase()
}

/// The same for one that its folder lists.
pub(super) fn look_listed(entry: &fs::DirEntry) -> Seen {
    // Quicker than by the path; says nothing of what a link leads to.
    match entry.metadata() {
        Ok(metadata) => judge(&entry.path(), &metadata),
        Err(_) => look(&entry.path()),
    }
}

fn judge(path: &Path, metadata: &Metadata) -> Seen {
    if !metadata.is_symlink() {
        return Seen { what: classify(metadata), link: None };
    }
    match fs::canonicalize(path).and_then(|real| Ok((fs::metadata(&real)?, real))) {
        Ok((metadata, real)) => Seen { what: classify(&metadata), link: Some(real) },
        Err(error) => {
            let target = fs::read_link(path).ok();
            let link = target.map(|target| normal(&path.parent().unwrap_or(path).join(target)));
            Seen { what: missing(&error), link }
        }
    }
}

fn missing(error: &io::Error) -> What {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => What::Nothing,
        _ => What::Unfit(error.to_string()),
    }
}

/// Whether the reason passes by itself: the process has no more handles, the system no more memory, or
/// on Windows another program has the file for itself for a moment.
pub(super) fn is_passing(error: &io::Error) -> bool {
    let known: &[i32] = if cfg!(windows) { &[4, 8, 14, 32, 33] } else { &[12, 23, 24] };
    error.raw_os_error().is_some_and(|code| known.contains(&code))
        || matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

fn classify(metadata: &Metadata) -> What {
    if metadata.is_dir() {
        What::Folder
    } else if !metadata.is_file() {
        What::Unfit("neither a file nor a folder".to_owned())
    } else if metadata.len() > MAX_FILE_BYTES {
        What::Unfit(too_large())
    } else {
        What::File(Some(Stamp::of(metadata)))
    }
}

fn too_large() -> String {
    format!("larger than {} MiB", MAX_FILE_BYTES >> 20)
}

/// A file's contents and the stamp they belong to.
pub(super) fn read(path: &Path) -> io::Result<(Vec<u8>, Stamp)> {
    let mut file = fs::File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("no longer a regular file"));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(io::Error::other(too_large()));
    }
    // In one piece, with room for one byte more: where that stays empty, this was the end.
    let mut bytes = vec![0; usize::try_from(metadata.len()).unwrap_or_default() + 1];
    let read = file.read(&mut bytes)?;
    let is_all = read + 1 == bytes.len();
    bytes.truncate(read);
    if !is_all {
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    }
    Ok((bytes, Stamp::of(&metadata)))
}

/// The same for a file that was just read as `contents`: where it is empty, and was emptied just
/// now, whoever did that gets a moment to write.
pub(super) fn read_written(path: &Path, mut contents: (Vec<u8>, Stamp)) -> io::Result<(Vec<u8>, Stamp)> {
    for _ in 0..10 {
        if !contents.0.is_empty() || contents.1.settled() {
            break;
        }
        std::thread::sleep(UNSETTLED / 10);
        contents = read(path)?;
    }
    Ok(contents)
}

/// Where `path` is once links are resolved, as far as it exists.
pub(super) fn real(path: &Path) -> PathBuf {
    let exists = |above: &&Path| fs::symlink_metadata(above).is_ok();
    let Some(existing) = path.ancestors().find(exists) else { return path.to_path_buf() };
    let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
    let real = fs::canonicalize(existing).unwrap_or_else(|_| existing.to_path_buf());
    if rest.as_os_str().is_empty() { real } else { real.join(rest) }
}

/// `path` without `.` and `..`. What stands before a `..` is resolved on the disk, where it
/// exists: it may be a link.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out = fs::canonicalize(&out).unwrap_or(out);
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_only_as_it_is_spelled() {
        assert!(is_other_case("Foo.luau", "foo.luau") && is_other_case("\u{c9}t\u{e9}", "\u{e9}t\u{e9}"));
        assert!(!is_other_case("Foo.luau", "Foo.luau") && !is_other_case("FOO~1.LUA", "foo.luau"));
    }
}
