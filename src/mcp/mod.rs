//! What agents see: the Model Context Protocol over HTTP and stdio, on rmcp.

mod answers;
mod args;
mod asking;
mod backend;
mod caller;
mod endpoint;
mod error;
mod get_call;
mod handler;
mod journal;
mod messages;
mod operations;
mod parked;
mod playing;
mod printed;
mod schema;
mod sessions;
mod syncing;
mod tools;

pub use backend::{Backend, ServerInfo};
pub use endpoint::McpEndpoint;
pub use error::error_result;
pub use handler::{BackendCell, McpHandler, Started};
pub use tools::{Kind, Tool, catalogue};
