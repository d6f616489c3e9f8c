//! Which plugin session a place was last synced by, and what that has not seen.

use redb::{TableDefinition, TableError};
use serde::{Deserialize, Serialize};

use super::{Done, Store, StoreError};

/// place -> [`Session`] as JSON.
const SESSIONS: TableDefinition<&str, &[u8]> = TableDefinition::new("sessions");

/// One plugin session. Of all that was agreed with its place it has seen the last state in Studio,
/// but for these scripts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// The instance paths of what differed when it began.
    pub unseen: Vec<String>,
}

impl Store {
    /// The last plugin session of a place.
    ///
    /// # Errors
    /// The disk fails.
    pub fn session(&self, place: &str) -> Result<Option<Session>, StoreError> {
        let tx = self.read()?;
        let sessions = match tx.open_table(SESSIONS) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            other => other?,
        };
        let row = sessions.get(place)?;
        row.map(|row| Ok(serde_json::from_slice(row.value())?)).transpose()
    }

    /// This is the last plugin session of a place.
    ///
    /// # Errors
    /// The disk fails.
    pub fn keep_session(&self, place: &str, session: &Session) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(session)?;
        self.write(|tx| {
            tx.open_table(SESSIONS)?.insert(place, bytes.as_slice())?;
            Ok(Done::changed(()))
        })
    }
}
