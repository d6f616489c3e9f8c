//! The session on real folders. Every test waits on conditions, bounded by [`PATIENCE`].
#![expect(clippy::disallowed_methods, reason = "tests write fixtures")]

mod kit;
mod live;
mod odd;
mod plain;
mod query;
mod reconcile;
