//! What is no JSON-RPC message is answered here, in JSON-RPC's own words: the library answers it as
//! a wrong media type.

use std::fmt;

use hyper::{Response, StatusCode, body::Bytes, header};
use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, ErrorCode, InitializeRequestParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::http::{Body, text, with_header};

/// A message, as far as the transport needs to know it.
#[derive(Debug, PartialEq)]
pub(super) struct Envelope {
    /// Of a request or notification.
    pub method: Option<String>,
    /// Of a request: a number or a text.
    pub id: Option<Value>,
}

/// Why something is no message.
#[derive(Debug, PartialEq)]
pub(super) struct NoMessage {
    code: ErrorCode,
    id: Value,
    why: String,
}

impl fmt::Display for NoMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl NoMessage {
    pub fn invalid(id: Value, why: impl Into<String>) -> Self {
        Self { code: ErrorCode::INVALID_REQUEST, id, why: why.into() }
    }

    /// As the client gets it.
    pub fn answer(&self) -> Response<Body> {
        let body = json!({ "jsonrpc": "2.0", "id": self.id, "error": { "code": self.code.0, "message": self.why } });
        let answer = text(StatusCode::BAD_REQUEST, Bytes::from(body.to_string()));
        with_header(answer, header::CONTENT_TYPE, "application/json")
    }
}

/// Read a message's envelope.
///
/// # Errors
/// It is none.
pub(super) fn read(body: &[u8]) -> Result<Envelope, NoMessage> {
    let message: Value = serde_json::from_slice(body).map_err(|error| NoMessage {
        code: ErrorCode::PARSE_ERROR,
        id: Value::Null,
        why: format!("the body is not JSON: {error}"),
    })?;
    let invalid = NoMessage::invalid;
    let fields = match message {
        Value::Object(fields) => fields,
        Value::Array(_) => return Err(invalid(Value::Null, "batches are not supported; send each message by itself")),
        _ => return Err(invalid(Value::Null, "a message is a JSON object")),
    };
    let id = match fields.get("id") {
        None => None,
        Some(id) if id.is_string() || id.is_i64() => Some(id.clone()),
        Some(_) => return Err(invalid(Value::Null, "field `id` must be a text or a whole number")),
    };
    let named = || id.clone().unwrap_or_default();
    if fields.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(invalid(named(), "field `jsonrpc` must be \"2.0\""));
    }
    let method = match fields.get("method") {
        Some(Value::String(method)) => Some(method.clone()),
        Some(_) => return Err(invalid(named(), "field `method` must be a text")),
        None if fields.contains_key("result") || fields.contains_key("error") => None,
        None => return Err(invalid(named(), "a message has a `method`, a `result` or an `error`")),
    };
    if fields.get("params").is_some_and(|params| !params.is_object() && !params.is_null()) {
        return Err(NoMessage {
            code: ErrorCode::INVALID_PARAMS,
            id: named(),
            why: "field `params` must be an object".into(),
        });
    }
    if method.as_deref() == Some("initialize") && id.is_some() {
        let params = fields.get("params").cloned().unwrap_or_default();
        check::<InitializeRequestParams>(params).map_err(|why| NoMessage {
            code: ErrorCode::INVALID_PARAMS,
            id: named(),
            why,
        })?;
    }
    Ok(Envelope { method, id })
}

/// What a request that the library could not read is answered. It takes one whose params are wrong
/// for one of an unknown method.
pub(super) fn unreadable(method: String, params: Option<Value>) -> ErrorData {
    let checked = match method.as_str() {
        "tools/call" => check::<CallToolRequestParams>(params.unwrap_or_default()),
        _ => Ok(()),
    };
    match checked {
        Ok(()) => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None),
        Err(why) => ErrorData::invalid_params(why, None),
    }
}

fn check<T: DeserializeOwned>(params: Value) -> Result<(), String> {
    serde_json::from_value::<T>(params).map(drop).map_err(|error| format!("field `params`: {error}"))
}
