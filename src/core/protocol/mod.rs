//! The Studio link, frame by frame: one JSON object per WebSocket text frame on
//! `GET /api/mcp/stream`. `docs/protocol.md` tells the story; this is the shape.
//!
//! `type` names a frame. A frame from the plugin without `type` but with `requestId` is the
//! result of that request. Names are camelCase. Unknown types and fields are ignored and counted,
//! an absent field stands for null, and `[]` is taken for `{}` (Luau cannot tell them apart).
//!
//! Two levels share the socket. Level 0 is any plugin that says hello without `protocol`; it gets
//! no frame that it does not know. Level 1 is ours.

mod clients;
mod fields;
mod from_plugin;
mod hello;
mod plan;
mod request_id;
mod results;
mod review;
mod to_plugin;
mod tree;
mod weight;

use std::time::Duration;

pub use from_plugin::{FrameError, PluginFrame};
pub use hello::{Hello, HelloLevel1, Role};
pub use plan::{Expected, PlanOp, Whose, digest};
pub use results::{Below, Fact, FactKind, OpResult, OpStatus, Outcome, PluginResult};
pub use review::{ReviewFrame, ReviewLine};
pub use to_plugin::{
    AckDisposition, CancelReason, Limits, Notice, RejectCode, Request, RequestBody, Scope, ServerFrame, SyncMode,
    Welcome,
};
pub use tree::{NewNode, Node, Patch, PatchOp, TreePart};

/// The version of this protocol that we speak.
pub const PROTOCOL: u32 = 1;

/// Largest frame that either side may send, in bytes of JSON text.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

/// A frame above this closes the link (close code 1009). The space between the two limits lets
/// us answer "too large" to a request instead of losing the link.
pub const HARD_FRAME_BYTES: usize = 17 * 1024 * 1024;

/// Largest part of a tree or plan, in bytes, unless one item alone is larger.
pub const MAX_PART_BYTES: usize = 512 * 1024;

/// How many bytes of unacknowledged results a plugin keeps.
pub const MAX_PENDING_BYTES: usize = 64 * 1024 * 1024;

/// How often the server says `heartbeat`.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// How long after the upgrade the first frame may take.
pub const HELLO_DEADLINE: Duration = Duration::from_secs(10);
