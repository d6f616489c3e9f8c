//! Who listens on a port.

use std::{fmt, io, net::SocketAddr};

use librojo::web_api::ServerInfoResponse;
use serde::Deserialize;
use tokio::net::TcpStream;

use crate::attach::{self, ServerCard};

/// What listens at an address, as far as it says so itself.
#[derive(Debug)]
pub(super) enum Holder {
    /// A server of ours.
    RojoMcp(ServerCard),
    /// Rojo, or what speaks like it.
    Rojo { project: String, version: String },
    /// Another program.
    Other,
    /// None that listens: the system keeps a port for a while after its last connection.
    Nobody,
}

impl Holder {
    /// Ask what listens at `address`.
    pub(super) async fn of(address: SocketAddr) -> Self {
        let address = attach::from_this_machine(address);
        let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        if TcpStream::connect(address).await.is_err_and(refused) {
            return Self::Nobody;
        }
        if let Some(card) = attach::who_is_at(address).await {
            return Self::RojoMcp(card);
        }
        let answer = attach::get(address, "/api/rojo").await.unwrap_or_default();
        let mut reader = rmp_serde::Deserializer::new(answer.as_ref()).with_human_readable();
        match ServerInfoResponse::deserialize(&mut reader) {
            Ok(info) => Self::Rojo { project: info.project_name, version: info.server_version },
            Err(_) => Self::Other,
        }
    }
}

impl Holder {
    /// What to do about it before another can listen there.
    pub(super) fn next(&self) -> &'static str {
        match self {
            Self::Nobody => "wait a minute",
            _ => "stop that",
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RojoMcp(ServerCard { rojo_mcp, folder, pid, .. }) if folder.is_empty() => {
                write!(f, "rojo-mcp {rojo_mcp} (process {pid}), which does not say what it serves")
            }
            Self::RojoMcp(ServerCard { rojo_mcp, project, folder, pid, .. }) => {
                write!(f, "in use by rojo-mcp {rojo_mcp} (process {pid}), which serves {project:?} in {folder}")
            }
            Self::Rojo { project, version } => write!(f, "in use by Rojo {version}, which serves {project:?}"),
            Self::Other => f.write_str("in use by another program"),
            Self::Nobody => {
                f.write_str("held by a connection that was just closed, or by a program that does not listen")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    #[tokio::test]
    async fn a_port_that_nobody_listens_at_is_no_other_programs() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let held = TcpSocket::new_v4().expect("a socket");
        held.bind(any).expect("a free port");
        let holder = Holder::of(held.local_addr().expect("an address")).await;
        assert!(matches!(holder, Holder::Nobody), "{holder}");
        assert_eq!(holder.next(), "wait a minute");

        let listener = TcpListener::bind(any).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { while listener.accept().await.is_ok() {} });
        assert_eq!(Holder::of(address).await.to_string(), "in use by another program");
    }
}
