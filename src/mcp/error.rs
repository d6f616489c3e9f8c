//! The one mapping from a failed call to what MCP clients see.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;

use crate::core::error::ToolError;

/// A failed call is a result with `isError`: its text says what to do, its structure has the code.
pub fn error_result(error: &ToolError) -> CallToolResult {
    let text = format!("{} ({})\nNext: {}", error.message, error.code, error.hint);
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.structured_content = Some(json!({ "error": error }));
    result
}
