//! The store as the world sees it, and what operations promise.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::super::*;
use crate::core::{
    ids::OperationId,
    operations::{Intent, Intention, Operation, Outcome},
    protocol::{Request, RequestBody},
};

/// Above all callers, so that an operation's response is that of no plain call.
pub(super) const FIRST: u64 = 1_000_000_000;

/// What a plugin says of code that failed.
pub(super) const BOOM: &str = "boom";

/// What survives a crash, and what each operation did.
#[derive(Default)]
pub(super) struct Kept {
    operations: HashMap<OperationId, Operation>,
    ran: HashMap<u64, RequestId>,
    /// Whether the answer that an operation's callers had was a success.
    told: HashMap<u64, bool>,
}

impl Kept {
    pub fn intend(&mut self, id: &OperationId, intent: Intent, well: bool) -> Result<Intention, ToolError> {
        if !well {
            return Err(ToolError::failed("the disk is full", "free some space"));
        }
        if let Some(known) = self.operations.get(id).filter(|known| !known.never_ran) {
            return Ok(Intention::Known(Box::new(known.clone())));
        }
        self.operations.insert(id.clone(), Operation { intent, at_ms: 0, outcome: None, never_ran: false });
        Ok(Intention::Fresh)
    }

    pub fn record(&mut self, id: &OperationId, request: &RequestId, outcome: Option<Outcome>) {
        let operation = self.operations.get_mut(id).expect("what has an outcome was meant");
        match outcome {
            Some(outcome) => operation.outcome = Some(json!(outcome)),
            None => {
                assert!(!self.ran.values().any(|ran| ran == request), "{id} ran, and is said not to have");
                operation.never_ran = true;
            }
        }
    }

    /// A result that a server before this one asked for.
    pub fn recover(&mut self, request: &RequestId, outcome: &Outcome) {
        let lacks = |known: &&mut Operation| known.intent.request_id == *request && known.outcome.is_none();
        if let Some(operation) = self.operations.values_mut().find(lacks).filter(|known| !known.never_ran) {
            operation.outcome = Some(json!(outcome));
        }
    }

    /// A plugin is told that a result was taken, and forgets it.
    pub fn acknowledged(&self, request: &RequestId) {
        let lost = |known: &&Operation| known.intent.request_id == *request && known.outcome.is_none();
        let found = self.operations.values().find(lost);
        assert!(found.is_none(), "acknowledged before it was kept: {found:?}");
    }

    /// All callers of an operation are told the same, if they are told how it ended.
    pub fn told(&mut self, wanted: &Value, outcome: &Result<Answer, ToolError>) {
        let Some(number) = wanted.as_u64().filter(|number| *number >= FIRST) else { return };
        let succeeded = match outcome {
            Ok(_) => true,
            Err(error) if error.message == BOOM => false,
            Err(_) => return,
        };
        assert_eq!(*self.told.entry(number).or_insert(succeeded), succeeded, "operation {number} ended in two ways");
    }

    /// A plugin begins a request: no operation is begun as two.
    pub fn begins(&mut self, request: &Request) {
        let Some(number) = operation_of(&request.body) else { return };
        let first = self.ran.entry(number).or_insert_with(|| request.request_id.clone());
        assert_eq!(*first, request.request_id, "operation {number} runs twice");
    }
}

/// Which operation a request belongs to.
pub(super) fn operation_of(body: &RequestBody) -> Option<u64> {
    match body {
        RequestBody::Tool { args, .. } => args["caller"].as_u64().filter(|caller| *caller >= FIRST),
        _ => None,
    }
}

/// The call of an operation, with what it answers.
pub(super) fn change(number: u64, place: u64, otherwise: bool, patience: Duration) -> (Call, Value) {
    let answer = json!(FIRST + number);
    let args = json!({"caller": answer, "place": place});
    let claim = Claim {
        id: format!("operation-{number}").as_str().into(),
        tool: "run_code".into(),
        args_hash: if otherwise { "of other code".into() } else { "of this code".into() },
    };
    let ask = Ask::Tool { name: "run_code", args, changes: true, target: Target::Edit };
    (Call { studio: Some(format!("place:{place}")), patience, ask, operation: Some(claim) }, answer)
}
