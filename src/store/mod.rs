//! What survives the process: bases, the journal, and the outcomes of operations.
//!
//! One file in the project's state folder. Everything here blocks on the disk, so it is called off
//! the async tasks. Each method is one transaction: after a crash it has happened or it has not,
//! and what was returned from has.

mod bases;
mod journal;
mod open;
mod operations;
mod sessions;
#[cfg(test)]
mod tests;
mod texts;

use std::sync::Arc;

use redb::{Database, ReadTransaction, TableDefinition, WriteTransaction};

pub use bases::{Agreed, Base};
pub use journal::{EntryState, JournalEntry};
pub use sessions::Session;

use crate::core::error::ToolError;

/// A hash as a key.
type HashKey = &'static [u8; 20];

/// (place, key) -> the agreed hash, then the earlier ones, oldest first; 20 bytes each.
const BASES: TableDefinition<(&str, &str), &[u8]> = TableDefinition::new("bases");
/// Normalised texts by their hash.
const TEXTS: TableDefinition<HashKey, &str> = TableDefinition::new("texts");
/// id -> (at, state, the entry as JSON).
const JOURNAL: TableDefinition<u64, (u64, u8, &[u8])> = TableDefinition::new("journal");
/// The texts that a journal entry needs.
const JOURNAL_TEXTS: TableDefinition<(u64, HashKey), ()> = TableDefinition::new("journal_texts");
/// operationId -> [`Operation`] as JSON.
const OPERATIONS: TableDefinition<&str, &[u8]> = TableDefinition::new("operations");
/// Single numbers.
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

/// The store of one project. Clones share it.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    database: Database,
    problem: Option<StoreProblem>,
}

/// Why a store does not hold what it could, for `status` and the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreProblem {
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub next: String,
}

/// Something could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk or the file fails.
    #[error("the project's state could not be kept: {0}")]
    Database(Box<redb::Error>),
    /// What was kept is not what this version writes.
    #[error("the project's state holds something malformed: {0}")]
    Malformed(String),
    /// It was written by another version.
    #[error("it has format {0}, and this version reads {format}", format = open::FORMAT)]
    Format(u64),
    /// There is no such journal entry, or no longer.
    #[error("the journal has no entry {0}")]
    NoEntry(u64),
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        Self::failed(error.to_string(), "free some disk space, start the server again, and see `status`")
    }
}

macro_rules! database_errors {
    ($($error:ident),*) => {
        $(impl From<redb::$error> for StoreError {
            fn from(error: redb::$error) -> Self {
                Self::Database(Box::new(error.into()))
            }
        })*
    };
}

database_errors!(DatabaseError, TransactionError, TableError, StorageError, CommitError);

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl Store {
    /// Why this store is not the one that was kept, if it is not.
    pub fn problem(&self) -> Option<&StoreProblem> {
        self.0.problem.as_ref()
    }

    /// Drop what is too old to be asked for, and the texts that nothing needs any more. A tenth of a
    /// second for 20,000 scripts: for once in a while.
    ///
    /// # Errors
    /// The disk fails.
    pub fn tend(&self, now_ms: u64) -> Result<(), StoreError> {
        self.write(|tx| {
            let operations = operations::drop_old(tx, now_ms)?;
            let entries = journal::drop_old(tx, now_ms)?;
            let texts = texts::collect(tx)?;
            Ok(Done { value: (), changed: operations || entries || texts })
        })
    }

    fn read(&self) -> Result<ReadTransaction, StoreError> {
        use redb::ReadableDatabase as _;
        Ok(self.0.database.begin_read()?)
    }

    /// One transaction, on the disk when this returns. What changed nothing is not written.
    fn write<T>(&self, work: impl FnOnce(&WriteTransaction) -> Result<Done<T>, StoreError>) -> Result<T, StoreError> {
        let tx = self.0.database.begin_write()?;
        let Done { value, changed } = work(&tx)?;
        if changed {
            tx.commit()?;
        }
        Ok(value)
    }
}

/// What a transaction came to.
struct Done<T> {
    value: T,
    changed: bool,
}

impl<T> Done<T> {
    fn changed(value: T) -> Self {
        Self { value, changed: true }
    }
}
