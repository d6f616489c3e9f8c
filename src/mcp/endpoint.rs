//! `/mcp`: the Streamable HTTP transport, with and without sessions.

use std::{sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue},
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    handler::McpHandler,
    messages::{self, Envelope, NoMessage},
    sessions::Sessions,
};
use crate::http::{Body, text, with_header};

/// A session that nobody used for so long is dropped. A working day with its breaks must fit.
const SESSION_KEEP_ALIVE: Duration = Duration::from_secs(24 * 60 * 60);

/// Largest request body. A script of 1.2 MB in a call is fine.
const MAX_BODY: usize = 16 * 1024 * 1024;

const SESSION_ID: &str = "mcp-session-id";
const JSON: &str = "application/json";

type Service = StreamableHttpService<McpHandler, LocalSessionManager>;

/// The two ways in: clients that keep a session, and clients that just call.
#[derive(Clone)]
pub struct McpEndpoint {
    with_sessions: Service,
    stateless: Service,
    sessions: Arc<Sessions>,
    streams: CancellationToken,
}

impl McpEndpoint {
    /// An endpoint for these tools.
    pub fn new(handler: &McpHandler) -> Self {
        let streams = CancellationToken::new();
        let manager = Arc::new(manager());
        let service = |sessions: bool| {
            // Host and Origin are checked for every route alike before a request comes here.
            let config = StreamableHttpServerConfig::default()
                .disable_allowed_hosts()
                .disable_allowed_origins()
                .with_max_request_body_bytes(MAX_BODY)
                .with_legacy_session_mode(sessions)
                .with_json_response(!sessions)
                .with_cancellation_token(streams.clone());
            let handler = handler.clone();
            StreamableHttpService::new(move || Ok(handler.session()), Arc::clone(&manager), config)
        };
        Self { with_sessions: service(true), stateless: service(false), sessions: Sessions::new(manager), streams }
    }

    /// End the streams that clients keep open, and all sessions.
    pub fn end_streams(&self) {
        self.streams.cancel();
    }

    /// Answer one request.
    pub async fn handle(&self, mut request: Request<Incoming>) -> Response<Body> {
        let session = request.headers().get(SESSION_ID).map(|id| id.to_str().unwrap_or_default().to_owned());
        let accept = match (request.method(), &session) {
            (&Method::GET | &Method::DELETE, None) => {
                let answer = text(StatusCode::METHOD_NOT_ALLOWED, "there is no session; POST a JSON-RPC request\n");
                return with_header(answer, ALLOW, "POST");
            }
            (&Method::GET, Some(_)) => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        // Clients that say `*/*` or only one of the two mean the same.
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
        match session {
            Some(session) => self.in_session(&session, request).await,
            None if request.method() == Method::POST => self.without_session(request).await,
            None => self.with_sessions.handle(request).await,
        }
    }

    async fn in_session(&self, session: &str, request: Request<Incoming>) -> Response<Body> {
        if !self.sessions.has(session).await {
            return text(StatusCode::NOT_FOUND, "there is no such session, or no longer; initialize another one\n");
        }
        if request.method() != Method::POST {
            let Some(in_use) = self.sessions.begin(session, None) else { return busy(Value::Null) };
            return self.with_sessions.handle(request).await.map(|body| in_use.during(body));
        }
        let (request, message) = match collect(request).await {
            Ok(read) => read,
            Err(answer) => return answer,
        };
        let id = message.id.filter(|_| message.method.is_some());
        let Some(in_use) = self.sessions.begin(session, id.as_ref()) else { return busy(id.unwrap_or_default()) };
        self.with_sessions.handle(request).await.map(|body| in_use.during(body))
    }

    async fn without_session(&self, request: Request<Incoming>) -> Response<Body> {
        let (request, message) = match collect(request).await {
            Ok(read) => read,
            Err(answer) => return answer,
        };
        if message.method.as_deref() != Some("initialize") {
            return self.stateless.handle(request).await;
        }
        if !self.sessions.make_room().await {
            return text(StatusCode::SERVICE_UNAVAILABLE, "too many agents are at work here; end one of them\n");
        }
        let answer = self.with_sessions.handle(request).await;
        let session = answer.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
        match session.and_then(|session| self.sessions.begin(&session, None)) {
            Some(in_use) => answer.map(|body| in_use.during(body)),
            None => answer,
        }
    }
}

/// Keeps sessions for longer than rmcp does by itself, which is five minutes.
fn manager() -> LocalSessionManager {
    let mut manager = LocalSessionManager::default();
    manager.session_config.keep_alive = Some(SESSION_KEEP_ALIVE);
    manager
}

/// Its answer could not be told from that of the first.
fn busy(id: Value) -> Response<Body> {
    NoMessage::invalid(id, "field `id`: a request with this id is under way in this session").answer()
}

/// Read the body of a request, and what it is.
async fn collect(request: Request<Incoming>) -> Result<(Request<Full<Bytes>>, Envelope), Response<Body>> {
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            let why = format!("the body could not be read (the limit is {MAX_BODY} bytes): {error}\n");
            return Err(text(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
    };
    let json = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let json = json.and_then(|kind| kind.split(';').next()).is_some_and(|kind| kind.trim().eq_ignore_ascii_case(JSON));
    if !json {
        return Err(text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json\n"));
    }
    let message = messages::read(&body).map_err(|none| none.answer())?;
    Ok((Request::from_parts(head, Full::new(body)), message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c67_a_session_outlives_a_working_day() {
        assert!(manager().session_config.keep_alive.is_none_or(|kept| kept > Duration::from_secs(8 * 60 * 60)));
    }
}
