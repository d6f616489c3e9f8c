//! Calls with an `operationId`: what was meant, and what came of it.

use redb::{ReadableTable, WriteTransaction};
use serde_json::Value;

use super::{Done, OPERATIONS, Store, StoreError};
use crate::{
    clock,
    core::{
        ids::{OperationId, RequestId},
        operations::{Intent, Intention, Operation},
    },
};

/// For how long an outcome can be asked for.
const MAX_AGE_MS: u64 = 24 * 60 * 60 * 1000;

impl Store {
    /// Keep what is about to be sent, unless the id is known. On the disk when this returns.
    ///
    /// # Errors
    /// The disk fails: then nothing may be sent.
    pub fn intend(&self, id: &OperationId, intent: &Intent) -> Result<Intention, StoreError> {
        self.write(|tx| {
            let mut operations = tx.open_table(OPERATIONS)?;
            let now = clock::unix_millis();
            if let Some(known) = operations.get(id.as_str())? {
                let known: Operation = serde_json::from_slice(known.value())?;
                if !known.never_ran && !is_old(&known, now) {
                    return Ok(Done { value: Intention::Known(Box::new(known)), changed: false });
                }
            }
            let operation = Operation { intent: intent.clone(), at_ms: now, outcome: None, never_ran: false };
            operations.insert(id.as_str(), serde_json::to_vec(&operation)?.as_slice())?;
            Ok(Done::changed(Intention::Fresh))
        })
    }

    /// Keep the outcome of an operation. One that is no longer kept stays so.
    ///
    /// # Errors
    /// The disk fails.
    pub fn settle(&self, id: &OperationId, outcome: Value) -> Result<(), StoreError> {
        self.amend(id, |operation| operation.outcome = Some(outcome))
    }

    /// It was not sent, or never arrived: the id may be used for it again.
    ///
    /// # Errors
    /// The disk fails.
    pub fn never_ran(&self, id: &OperationId) -> Result<(), StoreError> {
        self.amend(id, |operation| operation.never_ran = true)
    }

    /// Keep the outcome of the operation that this request carried, if it has none yet. Gives its id.
    ///
    /// # Errors
    /// The disk fails.
    pub fn recover(&self, request: &RequestId, outcome: Value) -> Result<Option<OperationId>, StoreError> {
        let found = self.operation_of_request(request)?;
        let Some((id, _)) = found.filter(|(_, known)| known.outcome.is_none() && !known.never_ran) else {
            return Ok(None);
        };
        self.settle(&id, outcome)?;
        Ok(Some(id))
    }

    fn amend(&self, id: &OperationId, change: impl FnOnce(&mut Operation)) -> Result<(), StoreError> {
        self.write(|tx| {
            let mut operations = tx.open_table(OPERATIONS)?;
            let known = operations.get(id.as_str())?.map(|bytes| serde_json::from_slice(bytes.value()));
            let Some(known) = known else { return Ok(Done { value: (), changed: false }) };
            let mut operation: Operation = known?;
            change(&mut operation);
            operations.insert(id.as_str(), serde_json::to_vec(&operation)?.as_slice())?;
            Ok(Done::changed(()))
        })
    }

    /// An operation, by the id that its caller gave it.
    ///
    /// # Errors
    /// The disk fails.
    pub fn operation(&self, id: &OperationId) -> Result<Option<Operation>, StoreError> {
        let tx = self.read()?;
        let bytes = tx.open_table(OPERATIONS)?.get(id.as_str())?;
        Ok(bytes.map(|bytes| serde_json::from_slice(bytes.value())).transpose()?)
    }

    /// An operation, by the request that carried it. Reads them all.
    ///
    /// # Errors
    /// The disk fails.
    pub fn operation_of_request(&self, request: &RequestId) -> Result<Option<(OperationId, Operation)>, StoreError> {
        let tx = self.read()?;
        for row in tx.open_table(OPERATIONS)?.iter()? {
            let (id, bytes) = row?;
            let operation: Operation = serde_json::from_slice(bytes.value())?;
            if operation.intent.request_id == *request {
                return Ok(Some((OperationId::from(id.value()), operation)));
            }
        }
        Ok(None)
    }
}

fn is_old(operation: &Operation, now_ms: u64) -> bool {
    operation.at_ms.saturating_add(MAX_AGE_MS) < now_ms
}

/// Drop what is too old. Whether there was any.
pub(super) fn drop_old(tx: &WriteTransaction, now_ms: u64) -> Result<bool, StoreError> {
    let mut operations = tx.open_table(OPERATIONS)?;
    let mut old = Vec::new();
    for row in operations.iter()? {
        let (id, bytes) = row?;
        let operation: Operation = serde_json::from_slice(bytes.value())?;
        if is_old(&operation, now_ms) {
            old.push(id.value().to_owned());
        }
    }
    for id in &old {
        operations.remove(id.as_str())?;
    }
    Ok(!old.is_empty())
}
