//! The Studio link: WebSockets on `/api/mcp/stream`, and the task that owns the bridge.

mod checks;
mod effects;
mod gate;
mod hub;
mod link;
mod outbox;
mod queue;
mod records;
mod work;
mod writes;

pub use gate::Gate;
pub use hub::{Hub, HubConfig, Progress, Report};
