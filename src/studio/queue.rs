//! A thread that does one thing after the other, in the order in which they were decided.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{SendError, Sender, channel},
    thread::{self, JoinHandle},
};

/// The way to the thread.
pub(super) struct Queue<T> {
    things: Sender<T>,
    thread: JoinHandle<()>,
}

impl<T: Send + 'static> Queue<T> {
    /// A thread of this name that does `work` with each thing.
    pub fn start(name: &str, mut work: impl FnMut(T) + Send + 'static) -> Self {
        let (things, wanted) = channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                for thing in wanted {
                    // What fails so must not take along what comes after it. The log has the panic.
                    let _ = catch_unwind(AssertUnwindSafe(|| work(thing)));
                }
            })
            .expect("the system has room for a thread at the start");
        Self { things, thread }
    }

    /// Have this done too.
    ///
    /// # Errors
    /// The thread has ended; the thing comes back.
    pub fn put(&self, thing: T) -> Result<(), T> {
        self.things.send(thing).map_err(|SendError(thing)| thing)
    }

    /// Wait until all is done. `false`: that is not known.
    pub async fn finish(self) -> bool {
        drop(self.things);
        matches!(tokio::task::spawn_blocking(move || self.thread.join()).await, Ok(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn things_are_done_in_their_order_and_a_panic_ends_one_of_them() {
        let (done, seen) = channel();
        let queue = Queue::start("test", move |number: u32| {
            assert_ne!(number, 3, "the third");
            done.send(number).expect("somebody looks");
        });
        for number in 0..6 {
            queue.put(number).expect("the thread goes on");
        }
        assert!(queue.finish().await);
        assert_eq!(seen.iter().collect::<Vec<_>>(), [0, 1, 2, 4, 5]);
    }
}
