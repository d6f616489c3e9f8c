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
pub mod files;
pub mod guard;
#[cfg(feature = "headless")]
pub mod headless;
pub mod http;
pub mod mcp;
pub mod plugin_model;
pub mod rojo_api;
pub mod session;
pub mod state;
pub mod studio;
pub mod upgrade;

use std::{io, sync::Arc};

use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    attach::{Peer, Token},
    guard::Guard,
    http::Routes,
    mcp::{Backend, BackendCell, McpEndpoint, McpHandler, ServerInfo},
    rojo_api::RojoApi,
    session::ServeSession,
    studio::{Hub, HubConfig},
};

/// Our version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A running server.
pub struct Server {
    /// What the tools work on; stdio shares it with HTTP.
    pub backend: Arc<Backend>,
    /// Where it listens.
    pub address: std::net::SocketAddr,
    /// By which programs of this user know it, and it them.
    pub token: Token,
    task: JoinHandle<()>,
}

impl Server {
    /// Serve `session` on `listener` until `shutdown`. The caller supplies both, so that a test
    /// can bind port 0 and choose the end. `allowed_hosts` are what `Host` and `Origin` may say
    /// besides this machine.
    ///
    /// # Errors
    /// The listener has no address.
    pub fn start(
        listener: TcpListener,
        session: Arc<ServeSession>,
        allowed_hosts: Vec<String>,
        shutdown: CancellationToken,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let hub = Hub::start(HubConfig {
            session: Arc::clone(&session),
            version: VERSION.to_owned(),
            shutdown: shutdown.clone(),
        });
        let server = ServerInfo { version: VERSION.to_owned(), url: format!("http://{}", host_and_port(address)) };
        let backend = Arc::new(Backend { session: Arc::clone(&session), hub: hub.clone(), server });
        let handler = McpHandler::new(BackendCell::ready(Arc::clone(&backend)));
        let token = Token::random();
        let peer = Peer {
            token: token.clone(),
            port: address.port(),
            handler: handler.clone(),
            end: CancellationToken::new(),
        };
        let guard = Guard::new(address.ip(), address.port(), allowed_hosts).with_token(token.clone());
        let routes = Arc::new(Routes {
            rojo: RojoApi::new(Arc::clone(&session)),
            session,
            hub,
            mcp: McpEndpoint::new(&handler),
            peer,
            guard,
        });
        let task = tokio::spawn(http::serve(listener, routes, shutdown));
        Ok(Self { backend, address, token, task })
    }

    /// Wait until it has stopped.
    pub async fn stopped(self) {
        if let Err(error) = self.task.await {
            log::error!("the server task ended badly: {error}");
        }
    }
}

/// How a program on this machine reaches `address`.
pub fn host_and_port(address: std::net::SocketAddr) -> String {
    let ip = address.ip();
    if ip.is_loopback() || ip.is_unspecified() { format!("localhost:{}", address.port()) } else { address.to_string() }
}
