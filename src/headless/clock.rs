//! The one place the headless Studio reads the time.

use std::time::Duration;
pub(super) use tokio::time::Instant;

/// Frames on a fixed grid: everything that waits wakes on a boundary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    started: Instant,
    frame: Duration,
}

impl Clock {
    pub(super) fn start(frame: Duration) -> Self {
        Self { started: now(), frame: frame.max(Duration::from_micros(100)) }
    }

    /// The first frame at or after `time`, and never the frame that is running now.
    pub(super) fn frame_after(&self, time: Instant) -> Instant {
        let frames = time.duration_since(self.started).as_nanos() / self.frame.as_nanos() + 1;
        self.started + self.frame * u32::try_from(frames).unwrap_or(u32::MAX)
    }
}

/// Now, on the clock of the runtime.
pub(super) fn now() -> Instant {
    Instant::now()
}
