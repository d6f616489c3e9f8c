//! One port: Rojo's API, the Studio link and MCP, behind one guard.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    attach::{Peer, ServerCard},
    clock,
    guard::{Face, Guard, Refusal, dialled},
    mcp::McpEndpoint,
    pairing::Pairing,
    rojo_api::RojoApi,
    session::ServeSession,
    studio::{Gate, Hub},
    upgrade::upgrade,
};

/// What every route answers with.
pub type Body = BoxBody<Bytes, Infallible>;

/// How long open connections may take to end once the server stops.
const DRAIN: Duration = Duration::from_millis(1500);

/// How long answers that were just settled may take to leave, before the streams are ended that
/// agents keep open.
const ANSWERS_LEAVE: Duration = Duration::from_millis(250);

/// How often the log says that there are more connections than the system lets us have.
const BETWEEN_COMPLAINTS: Duration = Duration::from_secs(60);

/// Everything that a request can reach.
pub struct Routes {
    /// Files and tree.
    pub session: Arc<ServeSession>,
    /// Rojo's plugin.
    pub rojo: Arc<RojoApi>,
    /// Studios.
    pub hub: Hub,
    /// Agents.
    pub mcp: McpEndpoint,
    /// Programs that attach.
    pub peer: Peer,
    /// Who may come in.
    pub guard: Guard,
    /// Which Studios, where they must prove themselves.
    pub pairing: Arc<Pairing>,
}

/// Accept connections until `shutdown`, then let them end.
pub async fn serve(listener: TcpListener, routes: Arc<Routes>, shutdown: CancellationToken) {
    let connections = TaskTracker::new();
    let mut told = None;
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                connections.spawn(connection(stream, peer, Arc::clone(&routes), shutdown.clone()));
            }
            Err(error) => {
                // Out of file handles, most likely: let some connections end first.
                let now = clock::now();
                if told.is_none_or(|at| now.duration_since(at) > BETWEEN_COMPLAINTS) {
                    log::warn!("connections cannot be accepted at the moment: {error}");
                    told = Some(now);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    connections.close();
    routes.hub.ended().await;
    tokio::time::sleep(ANSWERS_LEAVE).await;
    routes.mcp.end_streams();
    routes.peer.end.cancel();
    let drained = async {
        connections.wait().await;
        routes.hub.links_closed().await;
    };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        log::info!("some connections did not end by themselves and are cut");
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, routes: Arc<Routes>, shutdown: CancellationToken) {
    if let Err(error) = stream.set_nodelay(true) {
        log::debug!("no TCP_NODELAY for {peer}: {error}");
    }
    let service = service_fn(move |request| {
        let routes = Arc::clone(&routes);
        async move { Ok::<_, Infallible>(route(&routes, peer, request).await) }
    });
    let connection =
        http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        log::debug!("the connection of {peer} ended: {error}");
    }
}

async fn route(routes: &Routes, peer: SocketAddr, mut request: Request<Incoming>) -> Response<Body> {
    let face = Face::of(request.uri().path());
    if let Err(refusal) = routes.guard.admit(face, peer.ip(), request.uri().authority(), request.headers()) {
        log::debug!("refused {peer}: {refusal}");
        return match (face, refusal) {
            // As Rojo answers them.
            (Face::Rojo, Refusal::Host(_) | Refusal::Origin(_)) => text(StatusCode::NOT_FOUND, ""),
            (_, refusal) => text(StatusCode::FORBIDDEN, format!("{refusal}\n")),
        };
    }
    match face {
        Face::Studio => {
            let hub = routes.hub.clone();
            let gate = gate(routes, peer, &request);
            let upgraded = upgrade(&mut request, Some(Hub::web_socket_config()), move |socket| async move {
                hub.serve_link(socket, gate).await;
            });
            upgraded.unwrap_or_else(|error| {
                let why = format!("this is the Studio plugin's WebSocket; agents use /mcp ({error})\n");
                with_header(text(StatusCode::UPGRADE_REQUIRED, why), header::UPGRADE, "websocket")
            })
        }
        Face::Mcp => routes.mcp.handle(request).await,
        Face::Reviews => crate::reviews::answer(&routes.hub, &routes.session, request).await,
        Face::Rojo => Arc::clone(&routes.rojo).call(peer.ip(), request).await,
        Face::Peer => {
            let card = card(routes, routes.guard.trusts(peer.ip(), request.headers()));
            routes.peer.answer(card, &mut request)
        }
        Face::Page => page(routes, request.uri().path(), routes.guard.trusts(peer.ip(), request.headers())),
    }
}

/// What a Studio that asks so must show first.
fn gate(routes: &Routes, peer: SocketAddr, request: &Request<Incoming>) -> Option<Gate> {
    let trusted = routes.guard.trusts(peer.ip(), request.headers());
    (!trusted).then(|| Gate::new(Arc::clone(&routes.pairing), dialled(request.headers())))
}

/// What the server says of itself; what it serves, to whom it trusts.
fn card(routes: &Routes, trusted: bool) -> ServerCard {
    let project = trusted.then(|| routes.session.project());
    ServerCard {
        rojo_mcp: crate::VERSION.to_owned(),
        project: project.as_ref().map(|project| project.name.clone()).unwrap_or_default(),
        folder: project.as_ref().map(|project| project.folder.display().to_string()).unwrap_or_default(),
        pid: std::process::id(),
        proof: None,
    }
}

fn page(routes: &Routes, path: &str, trusted: bool) -> Response<Body> {
    if path != "/" {
        return text(StatusCode::NOT_FOUND, "there is nothing here; agents use /mcp\n");
    }
    if !trusted {
        let what = format!("rojo-mcp {}; what it serves is told to whoever sends its token\n", crate::VERSION);
        return text(StatusCode::OK, what);
    }
    let project = routes.session.project();
    let problems: String = routes.session.problems().iter().map(|problem| format!("problem: {problem}\n")).collect();
    text(
        StatusCode::OK,
        format!(
            "rojo-mcp {} serves {}\nfolder:  {}\nagents:  /mcp\nStudio:  /api/mcp/stream\n{problems}",
            env!("CARGO_PKG_VERSION"),
            project.name,
            project.folder.display()
        ),
    )
}

/// A plain answer.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()).boxed());
    *response.status_mut() = status;
    with_header(response, header::CONTENT_TYPE, "text/plain; charset=utf-8")
}

/// The answer with one more header.
pub fn with_header(mut response: Response<Body>, name: header::HeaderName, value: &'static str) -> Response<Body> {
    response.headers_mut().insert(name, header::HeaderValue::from_static(value));
    response
}
