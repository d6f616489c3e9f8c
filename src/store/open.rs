//! Opening the store. It never keeps the server from starting and never deletes: what cannot be
//! read is set aside under a name that can be seen, and what is in use is left alone.

use std::{
    fs::{File, OpenOptions},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
};

use redb::{
    Builder, Database, DatabaseError, ReadableTable, StorageError,
    backends::{FileBackend, InMemoryBackend},
};

use super::{BASES, Inner, JOURNAL, JOURNAL_TEXTS, META, OPERATIONS, Store, StoreError, StoreProblem, TEXTS};
use crate::state::{STATE_FOLDER_VARIABLE, StateFolder};

/// What this version writes and reads.
pub(super) const FORMAT: u64 = 1;
const FORMAT_KEY: &str = "format";

/// How much of the file is kept in memory. It is read once, when a Studio connects, and else only written;
/// a larger cache would only fill up with a journal that nobody reads.
const CACHE_BYTES: usize = 1024 * 1024;

/// Why the file is not used.
enum Refusal {
    /// Another process has it.
    Locked,
    /// The disk or its rights do not allow it.
    Unusable(String),
    /// It is damaged, or another version's.
    Unreadable(String),
}

impl Store {
    /// The store of the project at `project`, in the user's state folder.
    pub fn of_project(project: &Path) -> Self {
        match StateFolder::of(project) {
            Ok(folder) => Self::open(&folder),
            Err(error) => Self::without(StoreProblem {
                what: format!("there is no folder for this project's state, so this server remembers nothing: {error}"),
                next: format!("name one in the environment, as {STATE_FOLDER_VARIABLE}, and start the server again"),
            }),
        }
    }

    /// The store in `folder`. Where it cannot be used, another that says so ([`Self::problem`]).
    pub fn open(folder: &StateFolder) -> Self {
        Self::open_at(&folder.path("store.redb"))
    }

    pub(super) fn open_at(path: &Path) -> Self {
        match open_file(path) {
            Ok(database) => Self::over(database, None).with_cut_off(),
            Err(Refusal::Locked) => Self::without(StoreProblem {
                what: format!("another server of this project has {} open; this one remembers nothing", path.display()),
                next: "stop the other server and start this one again".into(),
            }),
            Err(Refusal::Unusable(reason)) => Self::without(StoreProblem {
                what: format!("{} cannot be used, so this server remembers nothing: {reason}", path.display()),
                next: "see to its rights and the free disk space, and start the server again".into(),
            }),
            Err(Refusal::Unreadable(reason)) => Self::anew(path, &reason),
        }
    }

    /// A store that ends with the process.
    pub fn in_memory() -> Self {
        Self::over(in_memory(), None)
    }

    fn without(problem: StoreProblem) -> Self {
        Self::over(in_memory(), Some(problem))
    }

    /// Begin a new file, with the old one beside it.
    fn anew(path: &Path, reason: &str) -> Self {
        let begun = set_aside(path).map_err(|error| error.to_string()).and_then(|kept_as| {
            let database = open_file(path).map_err(|refusal| match refusal {
                Refusal::Locked => "another server was faster".to_owned(),
                Refusal::Unusable(reason) | Refusal::Unreadable(reason) => reason,
            })?;
            Ok((kept_as, database))
        });
        match begun {
            Ok((kept_as, database)) => Self::over(
                database,
                Some(StoreProblem {
                    what: format!(
                        "what this project's state held could not be read and was set aside as {}: {reason}",
                        kept_as.display()
                    ),
                    next: "go on: scripts that differ are compared anew, without a common base. If a newer rojo-mcp \
                           wrote it, stop, rename it back and use that version"
                        .into(),
                }),
            ),
            Err(error) => Self::without(StoreProblem {
                what: format!("{} cannot be read ({reason}) nor set aside ({error})", path.display()),
                next: "rename it by hand and start the server again".into(),
            }),
        }
    }

    /// What was being done when the last process ended is not being done any more.
    fn with_cut_off(self) -> Self {
        match self.cut_off_all() {
            Ok(ids) if ids.is_empty() => {}
            Ok(ids) => log::warn!("the server ended during a sync (journal {ids:?}); `status` says what to do"),
            Err(error) => log::warn!("what the last server was doing could not be read: {error}"),
        }
        self
    }

    fn over(database: Database, problem: Option<StoreProblem>) -> Self {
        if let Some(StoreProblem { what, next }) = &problem {
            log::warn!("{what}; next: {next}");
        }
        Self(Arc::new(Inner { database, problem }))
    }
}

fn in_memory() -> Database {
    let database = Builder::new()
        .set_cache_size(CACHE_BYTES)
        .create_with_backend(InMemoryBackend::new())
        .expect("memory does not fail");
    prepare(&database).expect("memory does not fail");
    database
}

fn open_file(path: &Path) -> Result<Database, Refusal> {
    let file = private_file(path).map_err(|error| Refusal::Unusable(error.to_string()))?;
    // A damaged file can make the library panic, and must not end the server.
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let backend = FileBackend::new(file)?;
        let mut builder = Builder::new();
        builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
        let database = builder.create_with_backend(backend)?;
        prepare(&database)?;
        Ok(database)
    }));
    opened.unwrap_or_else(|_| Err(Refusal::Unreadable("it is damaged".into())))
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Make the tables of a new file.
fn prepare(database: &Database) -> Result<(), StoreError> {
    let tx = database.begin_write()?;
    let format = tx.open_table(META)?.get(FORMAT_KEY)?.map(|number| number.value());
    match format {
        Some(FORMAT) => return Ok(()),
        Some(other) => return Err(StoreError::Format(other)),
        None => {}
    }
    tx.open_table(META)?.insert(FORMAT_KEY, FORMAT)?;
    tx.open_table(BASES)?;
    tx.open_table(TEXTS)?;
    tx.open_table(JOURNAL)?;
    tx.open_table(JOURNAL_TEXTS)?;
    tx.open_table(OPERATIONS)?;
    Ok(tx.commit()?)
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Database(error) => match *error {
                redb::Error::Io(error) if is_of_the_disk(&error) => Self::Unusable(error.to_string()),
                error => Self::Unreadable(error.to_string()),
            },
            error => Self::Unreadable(error.to_string()),
        }
    }
}

impl From<DatabaseError> for Refusal {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => Self::Locked,
            DatabaseError::Storage(StorageError::Unsupported) => Self::Unusable("the disk has no file locks".into()),
            error => StoreError::from(error).into(),
        }
    }
}

/// The others say that the file holds too little or nonsense.
fn is_of_the_disk(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// Rename the file to a free name beside it.
#[expect(clippy::disallowed_methods, reason = "it is no file of the project, and nothing is written or removed")]
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let free = (1u32..)
        .map(|number| path.with_file_name(format!("store.set-aside-{number}.redb")))
        .find(|name| !name.exists())
        .expect("some number is free");
    std::fs::rename(path, &free)?;
    Ok(free)
}
