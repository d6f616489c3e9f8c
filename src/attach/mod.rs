//! How a program on this machine finds the running server of a project, and how the two come to
//! trust each other.
//!
//! ```text
//! server: claim (a lock) -> bind -> serve.json {pid, address, token, version, project}
//! client: serve.json -> GET /api/mcp/server?challenge=… -> proof (keyed by the token)
//!                    -> the same connection: Upgrade + Bearer token -> JSON-RPC, a line a message
//! ```
//!
//! Both files lie in the state folder of the project. The lock ends with the process that holds
//! it, so a `serve.json` that a killed server left behind is known to be stale; and a client gives
//! the token only to a peer that has shown that it has it.

mod claim;
mod dial;
mod route;
mod serve_file;
mod token;

pub use claim::Claim;
pub use dial::{DialError, Stream, connect, get, pairing_of, who_is_at};
pub use route::{Peer, ServerCard};
pub use serve_file::{ServeFile, from_this_machine};
pub use token::Token;
pub(crate) use token::same;

/// Where a server says who it is, and takes in the programs that attach to it.
pub const ROUTE: &str = "/api/mcp/server";

/// Where it says, to whoever has its token, how the pairing of Studios stands.
pub const PAIRING_ROUTE: &str = "/api/mcp/server/pairing";

/// What a connection becomes when a program attaches: lines of JSON-RPC, both ways.
pub const UPGRADE: &str = "mcp-lines";
