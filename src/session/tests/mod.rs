//! The session on real folders. Every test waits on conditions, bounded by [`PATIENCE`].
#![expect(clippy::disallowed_methods, reason = "tests write fixtures")]

mod above;
mod cases;
mod during;
mod kit;
mod live;
mod lost;
mod odd;
mod plain;
mod query;
mod reconcile;
mod saves;

pub(super) use during::looked_at;
