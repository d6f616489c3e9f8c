//! The tree, its version and its history: what readers share with the one thread that writes.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Instant,
};

use librojo::{InstanceSnapshot, InstanceWithMeta, RojoTree};
use rbx_dom_weak::{
    types::{Ref, Variant},
    ustr,
};

use super::{
    reconcile::{self, Applied, Wanted},
    refs::Pointers,
    types::{CursorGone, Message, MessageBatch},
    wire,
};
use crate::{clock, core::text::TextHash};

/// How many changes are kept for those who come back.
const HISTORY_MESSAGES: usize = 4096;

/// How many bytes those changes may hold together, roughly. The newest is kept whatever its size.
const HISTORY_BYTES: usize = 64 << 20;

/// How many earlier texts of a script are remembered, by their hashes.
const EARLIER_TEXTS: usize = 64;

/// A lock that a panic does not close: whoever holds it next finds the last state, and the loop
/// answers every panic with a full rescan.
#[derive(Debug, Default)]
pub(super) struct Shared<T>(RwLock<T>);

impl<T> Shared<T> {
    pub fn new(value: T) -> Self {
        Self(RwLock::new(value))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tree with its version.
pub(super) struct State {
    pub tree: RojoTree,
    pub cursor: u32,
    pointers: Pointers,
    hashes: Hashes,
    /// The texts that scripts had before, newest last.
    earlier: HashMap<Ref, VecDeque<TextHash>>,
    history: VecDeque<(usize, Arc<Message>)>,
    history_bytes: usize,
}

impl State {
    /// Version 0: `root` as it is at the start.
    pub fn new(root: InstanceSnapshot) -> Self {
        let mut tree = RojoTree::new(InstanceSnapshot::new());
        let mut pointers = Pointers::default();
        let id = tree.get_root_id();
        reconcile::apply(&mut tree, &mut pointers, Wanted { replaced: vec![(id, Some(root))], ..Wanted::default() });
        let (hashes, earlier) = (Hashes::default(), HashMap::new());
        Self { tree, cursor: 0, pointers, hashes, earlier, history: VecDeque::new(), history_bytes: 0 }
    }

    /// Change the tree; a change that changes nothing makes no message.
    pub fn apply(&mut self, wanted: Wanted) -> Option<Arc<Message>> {
        let applied = reconcile::apply(&mut self.tree, &mut self.pointers, wanted);
        if applied.is_empty() {
            return None;
        }
        self.hashes.forget(&applied);
        self.note_texts(&applied);
        self.cursor = self.cursor.checked_add(1).expect("four thousand million changes in one session");
        let message = Arc::new(Message {
            cursor: self.cursor,
            rojo: wire::web_message(&self.tree, &applied),
            ops: wire::patch_ops(&self.tree, &applied, |instance| self.hashes.of(instance)),
            at: clock::now(),
        });
        self.remember(Arc::clone(&message));
        Some(message)
    }

    /// The hash of a script's text.
    pub fn hash(&self, instance: InstanceWithMeta<'_>) -> Option<TextHash> {
        self.hashes.of(instance)
    }

    /// The script `id` had a text with this hash before it got the one that it has.
    pub fn had(&self, id: Ref, hash: TextHash) -> bool {
        self.earlier.get(&id).is_some_and(|texts| texts.contains(&hash))
    }

    fn note_texts(&mut self, applied: &Applied) {
        for id in &applied.gone {
            self.earlier.remove(id);
        }
        for (id, before) in applied.updated.iter().filter_map(|update| Some((update.id, update.text_before?))) {
            let texts = self.earlier.entry(id).or_default();
            texts.push_back(before);
            if texts.len() > EARLIER_TEXTS {
                texts.pop_front();
            }
        }
    }

    pub fn since(&self, cursor: u32) -> Result<MessageBatch, CursorGone> {
        let oldest = self.history.front().map_or(self.cursor, |(_, first)| first.cursor - 1);
        if cursor < oldest || cursor > self.cursor {
            return Err(CursorGone { asked: cursor, oldest, newest: self.cursor });
        }
        let known = self.history.iter().map(|(_, message)| message).filter(|message| message.cursor > cursor);
        Ok(MessageBatch { cursor: self.cursor, messages: known.cloned().collect() })
    }

    /// Whether the text of the script `id` changed at `since` or later, or after the version `seen`.
    pub fn text_moved(&self, id: Ref, since: Instant, seen: u32) -> bool {
        let recent = |message: &&Arc<Message>| message.at >= since || message.cursor > seen;
        let known = self.history.iter().rev().map(|(_, message)| message);
        let mut recent = known.take_while(recent).flat_map(|message| &message.rojo.updated);
        recent.any(|update| update.id == id && update.changed_properties.contains_key(&ustr("Source")))
    }

    fn remember(&mut self, message: Arc<Message>) {
        let bytes = weight(&message);
        self.history_bytes += bytes;
        self.history.push_back((bytes, message));
        while self.history.len() > 1 && (self.history.len() > HISTORY_MESSAGES || self.history_bytes > HISTORY_BYTES) {
            if let Some((bytes, _)) = self.history.pop_front() {
                self.history_bytes -= bytes;
            }
        }
    }
}

/// Roughly how much memory a message holds.
fn weight(message: &Message) -> usize {
    let value = |value: &Variant| match value {
        Variant::String(text) => text.len(),
        Variant::BinaryString(bytes) => AsRef::<[u8]>::as_ref(bytes).len(),
        _ => 64,
    };
    let added = message.rojo.added.values();
    let added: usize = added.map(|new| 256 + new.properties.values().map(|each| value(each)).sum::<usize>()).sum();
    let updated = message.rojo.updated.iter().flat_map(|update| update.changed_properties.values().flatten());
    let lists = 64 * message.ops.len() + 32 * message.rojo.removed.len() + 128 * message.rojo.updated.len();
    added + updated.map(value).sum::<usize>() + lists + 256
}

/// The hashes of scripts, made when first asked for.
#[derive(Debug, Default)]
struct Hashes(Mutex<HashMap<Ref, TextHash>>);

impl Hashes {
    fn of(&self, instance: InstanceWithMeta<'_>) -> Option<TextHash> {
        let text = wire::source(&instance)?;
        Some(*self.lock().entry(instance.id()).or_insert_with(|| TextHash::of(text)))
    }

    fn forget(&self, applied: &Applied) {
        let mut known = self.lock();
        for id in applied.gone.iter().chain(applied.updated.iter().map(|update| &update.id)) {
            known.remove(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Ref, TextHash>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
