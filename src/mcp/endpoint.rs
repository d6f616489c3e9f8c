//! `/mcp`: the Streamable HTTP transport, with and without sessions.

use std::{sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ACCEPT, ALLOW, HeaderValue},
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::handler::McpHandler;
use crate::http::{Body, text, with_header};

/// A session that nobody used for so long is dropped. A working day with its breaks must fit.
const SESSION_KEEP_ALIVE: Duration = Duration::from_secs(24 * 60 * 60);

/// Largest request body. A script of 1.2 MB in a call is fine.
const MAX_BODY: usize = 16 * 1024 * 1024;

const SESSION_ID: &str = "mcp-session-id";

type Service = StreamableHttpService<McpHandler, LocalSessionManager>;

/// The two ways in: clients that keep a session, and clients that just call.
#[derive(Clone)]
pub struct McpEndpoint {
    with_sessions: Service,
    stateless: Service,
    streams: CancellationToken,
}

impl McpEndpoint {
    /// An endpoint for these tools.
    pub fn new(handler: &McpHandler) -> Self {
        let streams = CancellationToken::new();
        let service = |sessions: bool| {
            // Host and Origin are checked for every route alike before a request comes here.
            let config = StreamableHttpServerConfig::default()
                .disable_allowed_hosts()
                .disable_allowed_origins()
                .with_max_request_body_bytes(MAX_BODY)
                .with_legacy_session_mode(sessions)
                .with_json_response(!sessions)
                .with_cancellation_token(streams.clone());
            let mut manager = LocalSessionManager::default();
            manager.session_config.keep_alive = Some(SESSION_KEEP_ALIVE);
            let handler = handler.clone();
            StreamableHttpService::new(move || Ok(handler.session()), Arc::new(manager), config)
        };
        Self { with_sessions: service(true), stateless: service(false), streams }
    }

    /// End the streams that clients keep open, and all sessions.
    pub fn end_streams(&self) {
        self.streams.cancel();
    }

    /// Answer one request.
    pub async fn handle(&self, mut request: Request<Incoming>) -> Response<Body> {
        let in_session = request.headers().contains_key(SESSION_ID);
        let accept = match (request.method(), in_session) {
            (&Method::GET | &Method::DELETE, false) => {
                let answer = text(StatusCode::METHOD_NOT_ALLOWED, "there is no session; POST a JSON-RPC request\n");
                return with_header(answer, ALLOW, "POST");
            }
            (&Method::GET, true) => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        // Clients that say `*/*` or only one of the two mean the same.
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
        if in_session || request.method() != Method::POST {
            return self.with_sessions.handle(request).await;
        }
        match collect(request).await {
            Ok((request, true)) => self.with_sessions.handle(request).await,
            Ok((request, false)) => self.stateless.handle(request).await,
            Err(answer) => answer,
        }
    }
}

/// Read the body of a request without a session, to see whether it opens one.
async fn collect(request: Request<Incoming>) -> Result<(Request<Full<Bytes>>, bool), Response<Body>> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow, default)]
        method: Option<std::borrow::Cow<'a, str>>,
    }
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            let why = format!("the body could not be read (the limit is {MAX_BODY} bytes): {error}\n");
            return Err(text(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
    };
    let opens = serde_json::from_slice::<Head<'_>>(&body)
        .is_ok_and(|head| head.method.is_some_and(|method| method == "initialize"));
    Ok((Request::from_parts(head, Full::new(body)), opens))
}
