//! The one place where time is read; everywhere else it is handed on.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since 1970, UTC. 0 on a machine whose clock stands before that.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
