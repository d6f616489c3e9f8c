//! Rojo's own live-sync API, protocol 5, as the official Studio plugin speaks it: one file per
//! route. Who may call is decided before, in the HTTP layer.

mod answer;
mod info;
mod read;
mod ref_patch;
mod serialize;
mod socket;
#[cfg(test)]
mod tests;

use std::{convert::Infallible, sync::Arc};

use http_body_util::combinators::BoxBody;
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
};

use crate::session::ServeSession;

/// The body of every answer.
pub type Body = BoxBody<Bytes, Infallible>;

/// Answer a request below `/api`.
pub async fn call(session: Arc<ServeSession>, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let route = path.strip_prefix("/api/").unwrap_or_default();
    match (request.method(), route.split_once('/').unwrap_or((route, ""))) {
        (&Method::GET, ("rojo", "")) if route == "rojo" => info::answer(&session),
        (&Method::GET, ("read", ids)) => read::answer(session, ids.to_owned()).await,
        (&Method::GET, ("socket", cursor)) => socket::answer(session, cursor, request),
        (&Method::POST, ("serialize", "")) => serialize::answer(session, request.into_body()).await,
        (&Method::POST, ("ref-patch", "")) => ref_patch::answer(session, request.into_body()).await,
        _ => answer::not_found(&path),
    }
}
