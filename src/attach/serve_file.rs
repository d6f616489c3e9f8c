//! `serve.json`: where the running server of a project is.

use std::{
    fs, io,
    io::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::Token;
use crate::state::StateFolder;

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
        let beside = state.path(&format!("{NAME}.{}.tmp", self.pid));
        let written = write_private(&beside, &text).and_then(|()| replace(&beside, &state.path(NAME)));
        if written.is_err() {
            remove(&beside);
        }
        written
    }

    /// Take it away, if it is still this one.
    pub(super) fn remove(&self, state: &StateFolder) {
        if Self::read(state).is_some_and(|found| found.token == self.token) {
            remove(&state.path(NAME));
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

/// Write a new file that only the user may read.
fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    remove(path);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text)?;
    file.sync_all()
}

#[expect(clippy::disallowed_methods, reason = "a file of ours in the user's state folder, not one of the project")]
fn replace(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

#[expect(clippy::disallowed_methods, reason = "a file of ours in the user's state folder, not one of the project")]
fn remove(path: &Path) {
    // It may be gone already; that is what is wanted.
    let _ = fs::remove_file(path);
}
