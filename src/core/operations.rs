//! Operations: calls with an id of their caller's, each of which has one outcome.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    error::ToolError,
    ids::{OperationId, RequestId, SessionId},
    sync::Receipt,
};

/// A call's claim to be an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The caller's id.
    pub id: OperationId,
    /// The tool.
    pub tool: String,
    /// Of the tool and its arguments, so that an id is not used for another call.
    pub args_hash: String,
}

/// What is about to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// Which tool.
    pub tool: String,
    /// Of the tool and its arguments.
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
    /// What came of it, as an [`Outcome`]. `None`: it is under way, or nobody knows.
    pub outcome: Option<Value>,
    /// It provably never ran, so the id may be used again.
    #[serde(default)]
    pub never_ran: bool,
}

/// The answer to an intent.
#[derive(Debug, Clone, PartialEq)]
pub enum Intention {
    /// It is new, and kept now.
    Fresh,
    /// The id was used before.
    Known(Box<Operation>),
}

/// What came of a call that changes something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The tool's response.
    Tool(Value),
    /// The receipt of a sync.
    Receipt(Receipt),
    /// It failed.
    Failed(ToolError),
}
