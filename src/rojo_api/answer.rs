//! Answers and questions in msgpack, byte for byte as Rojo makes them.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
};
use librojo::web_api::ErrorResponse;
use serde::{Serialize, de::DeserializeOwned};

use super::Body;

/// Requests of the plugin are lists of ids, and edited scripts.
const MAX_REQUEST_BYTES: usize = 16 << 20;

/// How long a request's body may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Structs as maps, and ids as text: how the plugin reads msgpack.
pub(super) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, rmp_serde::encode::Error> {
    let mut bytes = Vec::new();
    value.serialize(&mut rmp_serde::Serializer::new(&mut bytes).with_human_readable().with_struct_map())?;
    Ok(bytes)
}

pub(super) fn ok<T: Serialize>(value: &T) -> Response<Body> {
    msgpack(StatusCode::OK, value)
}

pub(super) fn bad_request(details: impl Into<String>) -> Response<Body> {
    msgpack(StatusCode::BAD_REQUEST, &ErrorResponse::bad_request(details))
}

pub(super) fn internal_error(details: impl Into<String>) -> Response<Body> {
    msgpack(StatusCode::INTERNAL_SERVER_ERROR, &ErrorResponse::internal_error(details))
}

pub(super) fn not_found(path: &str) -> Response<Body> {
    msgpack(StatusCode::NOT_FOUND, &ErrorResponse::not_found(format!("Route not found: {path}")))
}

/// Read a request's body.
pub(super) async fn read<T: DeserializeOwned>(body: Incoming) -> Result<T, Response<Body>> {
    let body = tokio::time::timeout(PATIENCE, Limited::new(body, MAX_REQUEST_BYTES).collect()).await;
    let body = body.map_err(|_| bad_request(format!("Invalid body: it did not come within {PATIENCE:?}")))?;
    let body = body.map_err(|error| bad_request(format!("Invalid body: {error}")))?.to_bytes();
    let mut deserializer = rmp_serde::Deserializer::new(body.as_ref()).with_human_readable();
    T::deserialize(&mut deserializer).map_err(|error| bad_request(format!("Invalid body: {error}")))
}

pub(super) fn msgpack<T: Serialize>(status: StatusCode, value: &T) -> Response<Body> {
    match encode(value) {
        Ok(bytes) => respond(status, "application/msgpack", bytes.into()),
        Err(error) => respond(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", error.to_string().into()),
    }
}

fn respond(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(body).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
