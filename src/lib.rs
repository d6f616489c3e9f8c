//! `rojo-mcp`: one server for Rojo, Roblox Studio and AI agents.
//!
//! One arrow is one message; nothing polls, nothing fetches after it was told.
//!
//! ```text
//! file saved -> watch -> reconcile -> tree -> rojo_api sockets          (the official plugin)
//!                                        \-> bridge -patch-> plugin     (ours)
//! agent -> mcp -> hub -Event::Call-> bridge -request-> plugin
//!                                    bridge <-result-- plugin;  bridge -Settle-> agent
//! ```
//!
//! [`core`] decides and does nothing; [`session`] knows the files; [`studio`] carries frames and
//! owns the bridge; [`mcp`] speaks to agents; [`rojo_api`] speaks Rojo's protocol; [`http`] puts
//! them on one port behind one [`guard`]; [`headless`] is a Studio without Studio.

pub mod attach;
pub mod cli;
pub mod clock;
pub mod core;
pub mod deletions;
pub mod files;
pub mod git;
pub mod guard;
#[cfg(feature = "headless")]
pub mod headless;
pub mod http;
pub mod mcp;
pub mod pairing;
pub mod plugin_model;
pub mod reviews;
pub mod rojo_api;
pub mod session;
pub mod state;
pub mod store;
pub mod studio;
pub mod upgrade;

use std::{io, sync::Arc, time::Duration};

use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    attach::{Peer, Token},
    guard::Guard,
    http::Routes,
    mcp::{Backend, BackendCell, McpEndpoint, McpHandler, ServerInfo},
    pairing::{Pairing, PairingList},
    rojo_api::RojoApi,
    session::ServeSession,
    store::Store,
    studio::{Hub, HubConfig},
};

/// Our version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// When the store is tended first: the start has other things to do.
const FIRST_TENDING: Duration = Duration::from_secs(60);
/// And how often then.
const TENDING: Duration = Duration::from_secs(60 * 60);

/// What a server is made of.
pub struct ServerConfig {
    /// The project.
    pub session: Arc<ServeSession>,
    /// What is remembered of it.
    pub store: Store,
    /// What `Host` and `Origin` may say besides this machine.
    pub allowed_hosts: Vec<String>,
    /// Which Studios may come in, where they must prove themselves.
    pub pairing: Arc<Pairing>,
    /// Ends it.
    pub shutdown: CancellationToken,
}

impl ServerConfig {
    /// A server of `session` that remembers nothing after its end and admits this machine only.
    pub fn new(session: Arc<ServeSession>, shutdown: CancellationToken) -> Self {
        let pairing = Arc::new(Pairing::new(PairingList::in_memory(), false));
        Self { session, store: Store::in_memory(), allowed_hosts: Vec::new(), pairing, shutdown }
    }
}

/// A running server.
pub struct Server {
    /// What the tools work on; stdio shares it with HTTP.
    pub backend: Arc<Backend>,
    /// Where it listens.
    pub address: std::net::SocketAddr,
    /// By which programs of this user know it, and it them.
    pub token: Token,
    /// Which Studios may come in, where they must prove themselves.
    pub pairing: Arc<Pairing>,
    task: JoinHandle<()>,
}

impl Server {
    /// Serve on `listener`. The caller supplies it and the end, so that a test can bind port 0 and
    /// stop when it likes.
    ///
    /// # Errors
    /// The listener has no address.
    pub fn start(listener: TcpListener, config: ServerConfig) -> io::Result<Self> {
        let ServerConfig { session, store, allowed_hosts, pairing, shutdown } = config;
        let address = listener.local_addr()?;
        let rojo = RojoApi::new(Arc::clone(&session), store.clone());
        let hub = Hub::start(HubConfig {
            session: Arc::clone(&session),
            official: rojo.open_sockets(),
            store: store.clone(),
            version: VERSION.to_owned(),
            shutdown: shutdown.clone(),
        });
        let server = ServerInfo { version: VERSION.to_owned(), url: format!("http://{}", host_and_port(address)) };
        let backend = Arc::new(Backend {
            session: Arc::clone(&session),
            hub: hub.clone(),
            store: store.clone(),
            server,
            who: None,
            pairing: Arc::clone(&pairing),
        });
        let handler = McpHandler::new(BackendCell::ready(Arc::clone(&backend)));
        let token = Token::random();
        let peer = Peer {
            token: token.clone(),
            port: address.port(),
            handler: handler.clone(),
            end: CancellationToken::new(),
            pairing: Arc::clone(&pairing),
        };
        let guard = Guard::new(address.ip(), address.port(), allowed_hosts)
            .with_token(token.clone())
            .requiring_token(pairing.is_required());
        let mcp = McpEndpoint::new(&handler);
        let routes = Arc::new(Routes { rojo, session, hub, mcp, peer, guard, pairing: Arc::clone(&pairing) });
        tokio::spawn(tend(store, shutdown.clone()));
        let task = tokio::spawn(http::serve(listener, routes, shutdown));
        Ok(Self { backend, address, token, pairing, task })
    }

    /// Wait until it has stopped.
    pub async fn stopped(self) {
        if let Err(error) = self.task.await {
            log::error!("the server task ended badly: {error}");
        }
    }
}

/// Keep the store small, now and then.
async fn tend(store: Store, shutdown: CancellationToken) {
    let mut hours = tokio::time::interval_at(tokio::time::Instant::now() + FIRST_TENDING, TENDING);
    while shutdown.run_until_cancelled(hours.tick()).await.is_some() {
        let store = store.clone();
        let tended = tokio::task::spawn_blocking(move || store.tend(clock::unix_millis())).await;
        if let Ok(Err(error)) = tended {
            log::warn!("{error}");
        }
    }
}

/// How a program on this machine reaches `address`.
pub fn host_and_port(address: std::net::SocketAddr) -> String {
    let ip = address.ip();
    if ip.is_loopback() || ip.is_unspecified() { format!("localhost:{}", address.port()) } else { address.to_string() }
}
