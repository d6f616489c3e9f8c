//! Files read by other threads while the walk goes on looking for more.

use std::{
    io,
    path::PathBuf,
    thread::{Scope, available_parallelism},
};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::disk::{self, Stamp};

/// So many files go to a thread at once. Fewer are read by the thread that wants them.
const BATCH: usize = 64;

/// A file to be read.
pub(super) struct Wanted {
    pub path: PathBuf,
    /// Its folder is new: what is in that is not touched on its own.
    pub inside_new: bool,
}

/// What came of it.
pub(super) struct Read {
    pub wanted: Wanted,
    pub contents: io::Result<(Vec<u8>, Stamp)>,
}

/// Takes files to be read, and hands out their contents.
pub(super) struct Reader<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    batch: Vec<Wanted>,
    /// To the threads, once there are any.
    threads: Option<Sender<Vec<Wanted>>>,
    done: (Sender<Vec<Read>>, Receiver<Vec<Read>>),
}

impl<'scope, 'env> Reader<'scope, 'env> {
    /// One whose threads, if it needs any, end with `scope`.
    pub fn new(scope: &'scope Scope<'scope, 'env>) -> Self {
        Self { scope, batch: Vec::new(), threads: None, done: unbounded() }
    }

    /// Read this one, too.
    pub fn want(&mut self, wanted: Wanted) {
        self.batch.push(wanted);
        if self.batch.len() == BATCH {
            self.hand_over();
        }
    }

    /// All that was wanted, in the order in which it is there.
    pub fn finish(mut self) -> impl Iterator<Item = Read> {
        if self.threads.is_some() {
            self.hand_over();
        } else {
            _ = self.done.0.send(read(std::mem::take(&mut self.batch))); // we hold the other end
        }
        let (sender, done) = self.done;
        drop((sender, self.threads)); // so that it ends
        done.into_iter().flatten()
    }

    fn hand_over(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        let (scope, done) = (self.scope, &self.done.0);
        let threads = self.threads.get_or_insert_with(|| start(scope, done));
        _ = threads.send(batch); // they end after us
    }
}

/// One thread less than there are cores: the walk has one.
fn start<'scope>(scope: &'scope Scope<'scope, '_>, done: &Sender<Vec<Read>>) -> Sender<Vec<Wanted>> {
    let (batches, work) = unbounded();
    let threads = available_parallelism().map_or(1, usize::from).saturating_sub(1).clamp(1, 8);
    for _ in 0..threads {
        let (work, done): (Receiver<Vec<Wanted>>, _) = (work.clone(), done.clone());
        scope.spawn(move || work.into_iter().for_each(|batch| _ = done.send(read(batch)))); // the walk waits for it
    }
    batches
}

fn read(batch: Vec<Wanted>) -> Vec<Read> {
    let read = |wanted: Wanted| Read { contents: disk::read(&wanted.path), wanted };
    batch.into_iter().map(read).collect()
}
