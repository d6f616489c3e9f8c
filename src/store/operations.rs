//! Calls with an `operationId`: what was meant, and what came of it.

use redb::{ReadableTable, WriteTransaction};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Done, OPERATIONS, Store, StoreError};
use crate::{
    clock,
    core::ids::{RequestId, SessionId},
};

/// For how long an outcome can be asked for.
const MAX_AGE_MS: u64 = 24 * 60 * 60 * 1000;

/// What is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// Of the tool and its arguments, so that an id is not used for another call.
    pub args_hash: String,
    /// As which request.
    pub request_id: RequestId,
    /// To which plugin session, where that has one.
    pub session: Option<SessionId>,
}

/// An operation as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// What was meant.
    #[serde(flatten)]
    pub intent: Intent,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What came of it. `None`: it is under way, or nobody knows.
    pub outcome: Option<Value>,
}

/// The answer to an intent.
#[derive(Debug, Clone, PartialEq)]
pub enum Intention {
    /// It is new, and kept now.
    Fresh,
    /// The id was used before, for this.
    Known(Operation),
}

impl Operation {
    fn is_old(&self, now_ms: u64) -> bool {
        self.at_ms.saturating_add(MAX_AGE_MS) < now_ms
    }
}

impl Store {
    /// Keep what is about to be sent, unless the id is known. On the disk when this returns.
    ///
    /// # Errors
    /// The disk fails: then nothing may be sent.
    pub fn intend(&self, operation_id: &str, intent: &Intent) -> Result<Intention, StoreError> {
        self.write(|tx| {
            let mut operations = tx.open_table(OPERATIONS)?;
            let now = clock::unix_millis();
            if let Some(known) = operations.get(operation_id)? {
                let known: Operation = serde_json::from_slice(known.value())?;
                if !known.is_old(now) {
                    return Ok(Done { value: Intention::Known(known), changed: false });
                }
            }
            let operation = Operation { intent: intent.clone(), at_ms: now, outcome: None };
            operations.insert(operation_id, serde_json::to_vec(&operation)?.as_slice())?;
            Ok(Done::changed(Intention::Fresh))
        })
    }

    /// Keep the outcome of an operation. One that is no longer kept stays so.
    ///
    /// # Errors
    /// The disk fails.
    pub fn settle(&self, operation_id: &str, outcome: Value) -> Result<(), StoreError> {
        self.write(|tx| {
            let mut operations = tx.open_table(OPERATIONS)?;
            let known = operations.get(operation_id)?.map(|bytes| serde_json::from_slice(bytes.value()));
            let Some(known) = known else { return Ok(Done { value: (), changed: false }) };
            let operation = Operation { outcome: Some(outcome), ..known? };
            operations.insert(operation_id, serde_json::to_vec(&operation)?.as_slice())?;
            Ok(Done::changed(()))
        })
    }

    /// An operation, by the id that its caller gave it.
    ///
    /// # Errors
    /// The disk fails.
    pub fn operation(&self, operation_id: &str) -> Result<Option<Operation>, StoreError> {
        let tx = self.read()?;
        let bytes = tx.open_table(OPERATIONS)?.get(operation_id)?;
        Ok(bytes.map(|bytes| serde_json::from_slice(bytes.value())).transpose()?)
    }

    /// An operation, by the request that carried it. Reads them all.
    ///
    /// # Errors
    /// The disk fails.
    pub fn operation_of_request(&self, request: &RequestId) -> Result<Option<Operation>, StoreError> {
        let tx = self.read()?;
        for row in tx.open_table(OPERATIONS)?.iter()? {
            let operation: Operation = serde_json::from_slice(row?.1.value())?;
            if operation.intent.request_id == *request {
                return Ok(Some(operation));
            }
        }
        Ok(None)
    }
}

/// Drop what is too old. Whether there was any.
pub(super) fn drop_old(tx: &WriteTransaction, now_ms: u64) -> Result<bool, StoreError> {
    let mut operations = tx.open_table(OPERATIONS)?;
    let mut old = Vec::new();
    for row in operations.iter()? {
        let (id, bytes) = row?;
        let operation: Operation = serde_json::from_slice(bytes.value())?;
        if operation.is_old(now_ms) {
            old.push(id.value().to_owned());
        }
    }
    for id in &old {
        operations.remove(id.as_str())?;
    }
    Ok(!old.is_empty())
}
