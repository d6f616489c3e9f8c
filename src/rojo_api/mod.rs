//! Rojo's own live-sync API, protocol 5, as the official Studio plugin speaks it: one file per
//! route. Who may call is decided before, in the HTTP layer.

mod answer;
mod info;
mod open;
mod read;
mod ref_patch;
mod serialize;
mod socket;
#[cfg(test)]
mod tests;
mod write;

use std::{convert::Infallible, net::IpAddr, sync::Arc, time::Duration};

use http_body_util::combinators::BoxBody;
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
};

use tokio::sync::watch;

use self::{open::Opener, socket::Sockets, write::Writes};
use crate::{session::ServeSession, store::Store};

/// The body of every answer.
pub type Body = BoxBody<Bytes, Infallible>;

/// Rojo's API over one session.
pub struct RojoApi {
    session: Arc<ServeSession>,
    store: Store,
    sockets: Sockets,
    writes: Writes,
    opener: Opener,
    /// A client of a socket that takes nothing for so long is dropped.
    patience: Duration,
}

impl RojoApi {
    /// The API over `session`. What an edit in Studio deletes is noted in `store`.
    pub fn new(session: Arc<ServeSession>, store: Store) -> Arc<Self> {
        Self::with(session, store, open::with_the_system, socket::PATIENCE)
    }

    fn with(session: Arc<ServeSession>, store: Store, opener: Opener, patience: Duration) -> Arc<Self> {
        Arc::new(Self { session, store, sockets: Sockets::default(), writes: Writes::default(), opener, patience })
    }

    /// How many official plugins are connected, now and from now on.
    pub fn open_sockets(&self) -> watch::Receiver<usize> {
        self.sockets.count()
    }

    /// Answer a request below `/api` from `peer`, the other end of the connection.
    pub async fn call(self: Arc<Self>, peer: IpAddr, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let route = path.strip_prefix("/api/").unwrap_or_default();
        let session = Arc::clone(&self.session);
        match (request.method(), route.split_once('/').unwrap_or((route, ""))) {
            (&Method::GET, ("rojo", "")) if route == "rojo" => info::answer(&session),
            (&Method::GET, ("read", ids)) => read::answer(self, ids.to_owned()).await,
            (&Method::GET, ("socket", cursor)) => socket::answer(self, cursor, request),
            (&Method::POST, ("serialize", "")) => serialize::answer(session, request.into_body()).await,
            (&Method::POST, ("ref-patch", "")) => ref_patch::answer(session, request.into_body()).await,
            (&Method::POST, ("write", "")) => write::answer(self, request.into_body()).await,
            (&Method::POST, ("open", id)) => open::answer(&self, peer, id).await,
            _ => answer::not_found(&path),
        }
    }
}
