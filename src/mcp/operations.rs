//! `operationId`, as agents give it.

use serde::Serialize;

use super::tools::to_json;
use crate::core::{error::ToolError, ids::OperationId, operations::Claim, text::TextHash};

/// How long an id may be.
const LONGEST: usize = 200;

/// What makes a call with this `operationId` the same call again: the tool and its arguments.
pub(super) fn claim(tool: &str, id: Option<&str>, args: &impl Serialize) -> Result<Option<Claim>, ToolError> {
    let Some(id) = id else { return Ok(None) };
    if id.is_empty() || id.len() > LONGEST || id.chars().any(char::is_control) {
        let text = format!("argument `operationId`: from 1 to {LONGEST} printable characters");
        return Err(ToolError::bad_arguments(text));
    }
    let args_hash = TextHash::of(&format!("{tool} {}", to_json(args))).to_string();
    Ok(Some(Claim { id: OperationId::from(id), tool: tool.to_owned(), args_hash }))
}
