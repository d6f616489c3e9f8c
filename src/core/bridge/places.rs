//! Which places may link.

use std::collections::HashSet;

/// Which places the project serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacePolicy {
    /// Only these; `None`: any.
    pub serve: Option<HashSet<u64>>,
    /// Never these.
    pub blocked: HashSet<u64>,
}

impl PlacePolicy {
    /// This place may link.
    pub fn admits(&self, place: u64) -> bool {
        !self.blocked.contains(&place) && self.serve.as_ref().is_none_or(|serve| serve.contains(&place))
    }
}
