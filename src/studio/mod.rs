//! The Studio link: WebSockets on `/api/mcp/stream`, and the task that owns the bridge.

mod effects;
mod hub;
mod link;
mod records;
mod work;

pub use hub::{Hub, HubConfig, Progress, Report};
