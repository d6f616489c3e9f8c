//! What waits to be sent to one Studio, bounded in frames and in bytes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::mpsc::{self, error::TrySendError};
use tokio_util::sync::CancellationToken;

use super::link::Out;

/// How many frames may wait for a plugin that does not read.
const MAX_FRAMES: usize = 1024;

/// How many bytes of them, about. A frame that waits alone may be any size.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The end that frames are put into.
pub(super) struct Outbox {
    frames: mpsc::Sender<Queued>,
    bytes: Arc<AtomicUsize>,
    cut: CancellationToken,
}

/// The end that they are sent from.
pub(super) struct Inside(mpsc::Receiver<Queued>);

/// Something to send, with its place in the bounds until it is dropped.
pub(super) struct Queued {
    pub out: Out,
    weight: usize,
    bytes: Arc<AtomicUsize>,
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.bytes.fetch_sub(self.weight, Ordering::Relaxed);
    }
}

/// An empty outbox. `cut` ends the link at once.
pub(super) fn outbox(cut: CancellationToken) -> (Outbox, Inside) {
    let (frames, inside) = mpsc::channel(MAX_FRAMES);
    (Outbox { frames, bytes: Arc::default(), cut }, Inside(inside))
}

impl Outbox {
    /// Put something in. `false`: there is no room, and the link is cut, for its plugin does not read.
    pub fn put(&self, out: Out) -> bool {
        // A link that has ended, or is about to, says so by itself.
        if self.cut.is_cancelled() {
            return true;
        }
        let weight = match &out {
            Out::Frame(frame) => frame.weight(),
            Out::Ping | Out::Close(_) => 0,
        };
        let waiting = self.bytes.fetch_add(weight, Ordering::Relaxed);
        let queued = Queued { out, weight, bytes: Arc::clone(&self.bytes) };
        let fits = waiting == 0 || waiting + weight <= MAX_BYTES;
        if fits && !matches!(self.frames.try_send(queued), Err(TrySendError::Full(_))) {
            return true;
        }
        self.cut.cancel();
        false
    }

    /// What ends the link at once.
    pub fn cut(&self) -> CancellationToken {
        self.cut.clone()
    }
}

impl Inside {
    /// What is to be sent next. Its bytes count until it is dropped.
    pub async fn next(&mut self) -> Option<Queued> {
        self.0.recv().await
    }
}

/// How much is put in at most.
pub(super) fn bounds() -> String {
    format!("{MAX_FRAMES} messages or {} MiB waited for it", MAX_BYTES / (1024 * 1024))
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::protocol::{Notice, Request, RequestBody, ServerFrame};

    fn small() -> Out {
        Out::Frame(Box::new(ServerFrame::Notice(Notice::Heartbeat { timestamp: 1 })))
    }

    fn large(mebibytes: usize) -> Out {
        let args = json!({ "command": "x".repeat(mebibytes * 1024 * 1024) });
        let body = RequestBody::Tool { name: "run_code".into(), args };
        Out::Frame(Box::new(ServerFrame::Request(Request {
            request_id: "r".into(),
            n: Some(1),
            remaining_ms: Some(1),
            logical_id: None,
            target: None,
            body,
        })))
    }

    #[tokio::test]
    async fn a_plugin_that_does_not_read_is_cut_off_at_1024_frames() {
        let cut = CancellationToken::new();
        let (outbox, mut inside) = outbox(cut.clone());
        for _ in 0..MAX_FRAMES {
            assert!(outbox.put(small()));
        }
        drop(inside.next().await);
        assert!(outbox.put(small()), "one was read");
        assert!(!outbox.put(small()) && cut.is_cancelled());
        assert!(outbox.put(small()), "it is said once");
    }

    #[tokio::test]
    async fn a_plugin_that_does_not_read_is_cut_off_at_64_mebibytes() {
        let cut = CancellationToken::new();
        let (outbox, mut inside) = outbox(cut.clone());
        for _ in 0..4 {
            assert!(outbox.put(large(15)));
        }
        let first = inside.next().await;
        assert!(!outbox.put(large(15)) && cut.is_cancelled(), "the first is not sent yet: {}", first.is_some());
    }

    #[tokio::test]
    async fn what_was_sent_makes_room_and_one_frame_may_always_wait() {
        let cut = CancellationToken::new();
        let (outbox, mut inside) = outbox(cut.clone());
        for _ in 0..8 {
            assert!(outbox.put(large(40)));
            drop(inside.next().await);
        }
        assert!(outbox.put(large(80)) && !cut.is_cancelled());
    }
}
