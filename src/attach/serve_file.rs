//! `serve.json`: where the running server of a project is.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::Token;
use crate::state::{StateFolder, remove_own, write_private};

const NAME: &str = "serve.json";

/// What a running server says of itself, for the eyes of its user alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServeFile {
    /// Its process.
    pub pid: u32,
    /// Where it listens.
    pub address: SocketAddr,
    /// By which it is known.
    pub token: Token,
    /// Its version of rojo-mcp.
    pub version: String,
    /// It wants its token of everybody.
    #[serde(default)]
    pub requires_token: bool,
    /// The project file that it serves.
    pub project: PathBuf,
}

impl ServeFile {
    /// Where it is.
    pub fn path(state: &StateFolder) -> PathBuf {
        state.path(NAME)
    }

    /// The one in `state`. `None`: no server of this project runs or it says nothing readable. What
    /// it says may be out of date.
    pub fn read(state: &StateFolder) -> Option<Self> {
        serde_json::from_slice(&fs::read(state.path(NAME)).ok()?).ok()
    }

    /// Put it into `state`, whole or not at all.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn write(&self, state: &StateFolder) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::other)?;
        write_private(&state.path(NAME), &text)
    }

    /// Take it away, if it is still this one.
    pub(super) fn remove(&self, state: &StateFolder) {
        if Self::read(state).is_some_and(|found| found.token == self.token) {
            remove_own(&state.path(NAME));
        }
    }

    /// Where to dial: a server that listens everywhere is reached through loopback.
    pub fn dial(&self) -> SocketAddr {
        from_this_machine(self.address)
    }
}

/// The address by which this machine reaches a server that listens at `address`.
pub fn from_this_machine(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), address.port()),
        _ => address,
    }
}
