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

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The time of day at `unix_millis`, for people; where that is long ago, with the days since.
pub fn time_of_day(unix_millis: u64) -> String {
    since(unix_millis, self::unix_millis())
}

fn since(at: u64, now: u64) -> String {
    let minutes = at % DAY_MS / 60_000;
    let time = format!("{:02}:{:02} UTC", minutes / 60, minutes % 60);
    match now.saturating_sub(at) / DAY_MS {
        0 => time,
        1 => format!("{time} a day ago"),
        days => format!("{time} {days} days ago"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_as_people_tell_it() {
        let at = 20_000 * DAY_MS + (14 * 60 + 2) * 60_000 + 59_999;
        assert_eq!(since(at, at + 1), "14:02 UTC");
        assert_eq!(since(at, at + DAY_MS), "14:02 UTC a day ago");
        assert_eq!(since(at, at + 9 * DAY_MS), "14:02 UTC 9 days ago");
        assert_eq!(since(at, 0), "14:02 UTC", "a clock that was set back");
    }
}
