//! Errors the engine raises: plain text without a script position, as in Roblox.

use mlua::prelude::*;

/// Raise `message` the way an engine member does.
pub(super) fn raise<T>(message: impl Into<String>) -> LuaResult<T> {
    Err(LuaError::RuntimeError(message.into()))
}

/// The text of an error without what mlua adds to it: kind, traceback, wrapping.
pub(super) fn text_of(error: &LuaError) -> String {
    match error {
        LuaError::CallbackError { cause, .. } => text_of(cause),
        LuaError::WithContext { cause, .. } => text_of(cause),
        LuaError::SyntaxError { message, .. } => message.clone(),
        LuaError::RuntimeError(message) => without_traceback(message).to_owned(),
        LuaError::BadArgument { pos, cause, .. } => format!("invalid argument #{pos}: {}", text_of(cause)),
        LuaError::FromLuaConversionError { from, to, .. } => format!("{} expected, got {from}", luau_type(to)),
        other => without_traceback(&other.to_string()).to_owned(),
    }
}

/// Rust's name for what a host function takes, in the reader's terms.
fn luau_type(rust: &str) -> &str {
    match rust {
        "String" | "LuaString" => "string",
        "f64" | "u32" | "i32" | "i64" | "u64" => "number",
        "bool" => "boolean",
        "Inst" | "userdata" => "Instance",
        other => other,
    }
}

fn without_traceback(message: &str) -> &str {
    message.split_once("\nstack traceback:").map_or(message, |(text, _)| text)
}
