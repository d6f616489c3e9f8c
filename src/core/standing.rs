//! How a Studio stands, as the person at its screen is told.

use super::{calls::Moment, ids::SessionId};

/// A session that wants the place of a live one.
#[derive(Debug)]
pub struct Rival {
    /// Which.
    pub session: SessionId,
    /// When it said so first.
    pub since: Moment,
    /// When it said so last.
    pub last: Moment,
}

/// How a Studio stands, for the person at its screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// How many callers wait for it.
    pub agents: usize,
    /// How many requests it has not answered.
    pub pending: usize,
    /// Another window is refused.
    pub rival: bool,
}
