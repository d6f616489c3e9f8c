//! Who listens on a port.

use std::{fmt, net::SocketAddr};

use librojo::web_api::ServerInfoResponse;
use serde::Deserialize;

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
}

impl Holder {
    /// Ask what listens at `address`.
    pub(super) async fn of(address: SocketAddr) -> Self {
        let address = attach::from_this_machine(address);
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

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RojoMcp(ServerCard { rojo_mcp, folder, pid, .. }) if folder.is_empty() => {
                write!(f, "rojo-mcp {rojo_mcp} (process {pid}), which does not say what it serves")
            }
            Self::RojoMcp(ServerCard { rojo_mcp, project, folder, pid, .. }) => {
                write!(f, "rojo-mcp {rojo_mcp} (process {pid}), which serves {project:?} in {folder}")
            }
            Self::Rojo { project, version } => write!(f, "Rojo {version}, which serves {project:?}"),
            Self::Other => f.write_str("another program"),
        }
    }
}
