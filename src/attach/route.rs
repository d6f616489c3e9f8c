//! The server's side: who it is, and taking in a program that attaches.

use std::sync::Arc;

use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header,
};
use hyper_util::rt::TokioIo;
use rmcp::ServiceExt;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use http_body_util::{BodyExt, Full};

use super::{PAIRING_ROUTE, Token, UPGRADE};
use crate::{
    http::{Body, text, with_header},
    mcp::McpHandler,
    pairing::Pairing,
};

/// How long a challenge may be. Ours has 64 digits.
const MAX_CHALLENGE: usize = 128;

/// What a server says of itself to any program of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerCard {
    /// Its version of rojo-mcp.
    pub rojo_mcp: String,
    /// The name of the project that it serves; empty for whom that is none of their business.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// The project's folder; the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// Its process.
    pub pid: u32,
    /// The answer to the challenge, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// The part of a server that talks to programs which attach to it.
pub struct Peer {
    /// By which both know each other.
    pub token: Token,
    /// Where the server listens.
    pub port: u16,
    /// What attached programs speak to, each to a session of its own.
    pub handler: McpHandler,
    /// Ends what is attached.
    pub end: CancellationToken,
    /// Which Studios may come in.
    pub pairing: Arc<Pairing>,
}

impl Peer {
    /// Answer a request for [`super::ROUTE`] or [`PAIRING_ROUTE`].
    pub fn answer(&self, card: ServerCard, request: &mut Request<Incoming>) -> Response<Body> {
        if request.uri().path() == PAIRING_ROUTE {
            return self.tell_pairing(request);
        }
        if request.headers().contains_key(header::UPGRADE) {
            return self.take_in(request);
        }
        let challenge = request.uri().query().and_then(|query| query.strip_prefix("challenge="));
        if challenge.is_some_and(|challenge| challenge.len() > MAX_CHALLENGE) {
            return text(StatusCode::BAD_REQUEST, format!("a challenge has at most {MAX_CHALLENGE} characters\n"));
        }
        let proof = challenge.map(|challenge| self.token.prove(self.port, challenge));
        json(&ServerCard { proof, ..card })
    }

    /// For a person at a terminal: agents do not get the code.
    fn tell_pairing(&self, request: &Request<Incoming>) -> Response<Body> {
        if !self.token.is_in(request.headers()) {
            return needs_token("this");
        }
        json(&self.pairing.report())
    }

    /// From here on the connection carries JSON-RPC, a line a message, as standard input and
    /// output would.
    fn take_in(&self, request: &mut Request<Incoming>) -> Response<Body> {
        if !self.token.is_in(request.headers()) {
            return needs_token("attaching");
        }
        let wanted = request.headers().get(header::UPGRADE);
        if wanted.is_none_or(|wanted| wanted.as_bytes() != UPGRADE.as_bytes()) {
            let why = format!("only an upgrade to {UPGRADE} leads anywhere here\n");
            return with_header(text(StatusCode::UPGRADE_REQUIRED, why), header::UPGRADE, UPGRADE);
        }
        let (switched, handler, end) = (hyper::upgrade::on(request), self.handler.session(), self.end.clone());
        tokio::spawn(async move {
            let talk = async {
                let io = switched.await.map_err(|error| error.to_string())?;
                let service = handler.serve(TokioIo::new(io)).await.map_err(|error| error.to_string())?;
                service.waiting().await.map_err(|error| error.to_string())
            };
            tokio::select! {
                ended = talk => if let Err(why) = ended {
                    log::debug!("an attached program has left: {why}");
                },
                () = end.cancelled() => {}
            }
        });
        let mut response = text(StatusCode::SWITCHING_PROTOCOLS, "");
        response.headers_mut().remove(header::CONTENT_TYPE);
        with_header(with_header(response, header::CONNECTION, "Upgrade"), header::UPGRADE, UPGRADE)
    }
}

fn json(answer: &impl Serialize) -> Response<Body> {
    let body = serde_json::to_vec(answer).expect("texts and numbers are JSON");
    let response = Response::new(Full::new(Bytes::from(body)).boxed());
    with_header(response, header::CONTENT_TYPE, "application/json")
}

fn needs_token(what: &str) -> Response<Body> {
    let why = format!("{what} needs this server's token, as Authorization: Bearer\n");
    with_header(text(StatusCode::UNAUTHORIZED, why), header::WWW_AUTHENTICATE, "Bearer")
}
