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

/// What survives a crash, and what each operation did.
#[derive(Default)]
pub(super) struct Kept {
    operations: HashMap<OperationId, Operation>,
    ran: HashMap<u64, RequestId>,
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

    pub fn record(&mut self, id: &OperationId, outcome: Option<Outcome>) {
        let operation = self.operations.get_mut(id).expect("what has an outcome was meant");
        match outcome {
            Some(outcome) => operation.outcome = Some(json!(outcome)),
            None => operation.never_ran = true,
        }
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
