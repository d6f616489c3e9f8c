//! What was done, so that it can be taken back.

use redb::{ReadableTable, ReadableTableMetadata, WriteTransaction};
use serde_json::Value;

use super::{Done, JOURNAL, JOURNAL_TEXTS, META, Store, StoreError, TEXTS, texts};
use crate::{clock, core::text::TextHash};

/// How many entries are kept.
const ENTRIES: u64 = 500;
/// For how long.
const MAX_AGE_MS: u64 = 30 * 24 * 60 * 60 * 1000;
/// Ids are never used again, even when their entries are gone.
const NEXT_ID: &str = "next_journal_entry";

/// Where an entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryState {
    /// Begun, and being done.
    Open,
    /// Done, as the entry says.
    Done,
    /// Taken back.
    Undone,
    /// Begun, and its end was not seen: it is not known how much of it was done.
    CutOff,
}

/// One entry of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    /// Counts up.
    pub id: u64,
    /// When it was begun, in milliseconds since 1970.
    pub at_ms: u64,
    /// Where it stands.
    pub state: EntryState,
    /// What it says; its shape is the writer's.
    pub entry: Value,
}

impl EntryState {
    fn number(self) -> u8 {
        match self {
            Self::Open => 0,
            Self::Done => 1,
            Self::Undone => 2,
            Self::CutOff => 3,
        }
    }

    fn from_number(number: u8) -> Result<Self, StoreError> {
        match number {
            0 => Ok(Self::Open),
            1 => Ok(Self::Done),
            2 => Ok(Self::Undone),
            3 => Ok(Self::CutOff),
            other => Err(StoreError::Malformed(format!("a journal entry in state {other}"))),
        }
    }
}

impl Store {
    /// Say what is about to be done. On the disk when this returns, with the texts that taking it
    /// back will need (normalised, by their hashes).
    ///
    /// # Errors
    /// The disk fails: then nothing may be done.
    pub fn begin(&self, entry: &Value, texts: &[(TextHash, &str)]) -> Result<u64, StoreError> {
        let bytes = serde_json::to_vec(entry)?;
        self.write(|tx| {
            let id = next_id(tx)?;
            let row = (clock::unix_millis(), EntryState::Open.number(), bytes.as_slice());
            tx.open_table(JOURNAL)?.insert(id, row)?;
            attach(tx, id, texts)?;
            drop_surplus(tx)?;
            Ok(Done::changed(id))
        })
    }

    /// Say what became of it.
    ///
    /// # Errors
    /// There is no such entry, or the disk fails.
    pub fn finish(&self, id: u64, state: EntryState, entry: &Value) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(entry)?;
        self.write(|tx| {
            let mut journal = tx.open_table(JOURNAL)?;
            let at_ms = journal.get(id)?.map(|row| row.value().0).ok_or(StoreError::NoEntry(id))?;
            journal.insert(id, (at_ms, state.number(), bytes.as_slice()))?;
            Ok(Done::changed(()))
        })
    }

    /// Nothing was done: there is no such entry.
    ///
    /// # Errors
    /// The disk fails.
    pub fn forget(&self, id: u64) -> Result<(), StoreError> {
        self.write(|tx| {
            remove(tx, &[id])?;
            Ok(Done::changed(()))
        })
    }

    /// Keep further texts for as long as the entry is kept.
    ///
    /// # Errors
    /// There is no such entry, or the disk fails.
    pub fn keep_texts(&self, id: u64, texts: &[(TextHash, &str)]) -> Result<(), StoreError> {
        self.write(|tx| {
            if tx.open_table(JOURNAL)?.get(id)?.is_none() {
                return Err(StoreError::NoEntry(id));
            }
            attach(tx, id, texts)?;
            Ok(Done { value: (), changed: !texts.is_empty() })
        })
    }

    /// Whoever did this does not do it any more, and did not say what became of it.
    ///
    /// # Errors
    /// The disk fails.
    pub fn cut_off(&self, id: u64) -> Result<(), StoreError> {
        self.change_state(EntryState::Open, EntryState::CutOff, |entry| entry.id == id).map(drop)
    }

    /// At the start nobody does anything yet: what is open was cut off by the end of the last process.
    pub(super) fn cut_off_all(&self) -> Result<Vec<u64>, StoreError> {
        self.change_state(EntryState::Open, EntryState::CutOff, |_| true)
    }

    /// What is left of these entries has been looked at and said.
    ///
    /// # Errors
    /// The disk fails.
    pub fn clear(&self, which: impl Fn(&JournalEntry) -> bool) -> Result<(), StoreError> {
        self.change_state(EntryState::CutOff, EntryState::Done, which).map(drop)
    }

    /// Entries that were cut off and that nobody looked at since, oldest first.
    ///
    /// # Errors
    /// The disk fails.
    pub fn cut_off_entries(&self) -> Result<Vec<JournalEntry>, StoreError> {
        of_state(&self.read()?.open_table(JOURNAL)?, EntryState::CutOff)
    }

    fn change_state(
        &self,
        from: EntryState,
        to: EntryState,
        which: impl Fn(&JournalEntry) -> bool,
    ) -> Result<Vec<u64>, StoreError> {
        self.write(|tx| {
            let mut journal = tx.open_table(JOURNAL)?;
            let entries = of_state(&journal, from)?;
            let meant: Vec<JournalEntry> = entries.into_iter().filter(which).collect();
            for JournalEntry { id, at_ms, entry, .. } in &meant {
                journal.insert(id, (*at_ms, to.number(), serde_json::to_vec(entry)?.as_slice()))?;
            }
            let ids: Vec<u64> = meant.iter().map(|entry| entry.id).collect();
            Ok(Done { changed: !ids.is_empty(), value: ids })
        })
    }

    /// The latest entries, newest first.
    ///
    /// # Errors
    /// The disk fails.
    pub fn entries(&self, limit: usize) -> Result<Vec<JournalEntry>, StoreError> {
        let tx = self.read()?;
        let rows = tx.open_table(JOURNAL)?.range::<u64>(..)?;
        rows.rev().take(limit).map(|row| row.map(|(id, row)| read(id.value(), row.value()))?).collect()
    }

    /// One entry, if it is still kept.
    ///
    /// # Errors
    /// The disk fails.
    pub fn entry(&self, id: u64) -> Result<Option<JournalEntry>, StoreError> {
        let tx = self.read()?;
        let row = tx.open_table(JOURNAL)?.get(id)?;
        row.map(|row| read(id, row.value())).transpose()
    }
}

type Row = (u64, u8, &'static [u8]);

fn of_state(journal: &impl ReadableTable<u64, Row>, state: EntryState) -> Result<Vec<JournalEntry>, StoreError> {
    let mut entries = Vec::new();
    for row in journal.iter()? {
        let (id, row) = row?;
        if row.value().1 == state.number() {
            entries.push(read(id.value(), row.value())?);
        }
    }
    Ok(entries)
}

fn read(id: u64, (at_ms, state, entry): (u64, u8, &[u8])) -> Result<JournalEntry, StoreError> {
    Ok(JournalEntry { id, at_ms, state: EntryState::from_number(state)?, entry: serde_json::from_slice(entry)? })
}

fn next_id(tx: &WriteTransaction) -> Result<u64, StoreError> {
    let mut meta = tx.open_table(META)?;
    let id = meta.get(NEXT_ID)?.map_or(1, |number| number.value());
    meta.insert(NEXT_ID, id + 1)?;
    Ok(id)
}

fn attach(tx: &WriteTransaction, id: u64, kept: &[(TextHash, &str)]) -> Result<(), StoreError> {
    let mut needed = tx.open_table(JOURNAL_TEXTS)?;
    let mut all = tx.open_table(TEXTS)?;
    for (hash, text) in kept {
        texts::keep(&mut all, *hash, text)?;
        needed.insert((id, hash.as_bytes()), ())?;
    }
    Ok(())
}

fn drop_surplus(tx: &WriteTransaction) -> Result<(), StoreError> {
    let surplus = tx.open_table(JOURNAL)?.len()?.saturating_sub(ENTRIES);
    let mut ids = Vec::new();
    for row in tx.open_table(JOURNAL)?.iter()?.take(usize::try_from(surplus).unwrap_or(usize::MAX)) {
        ids.push(row?.0.value());
    }
    remove(tx, &ids)
}

/// Drop what is too old. Whether there was any.
pub(super) fn drop_old(tx: &WriteTransaction, now_ms: u64) -> Result<bool, StoreError> {
    let mut ids = Vec::new();
    for row in tx.open_table(JOURNAL)?.iter()? {
        let (id, row) = row?;
        if row.value().0.saturating_add(MAX_AGE_MS) < now_ms {
            ids.push(id.value());
        }
    }
    remove(tx, &ids)?;
    Ok(!ids.is_empty())
}

fn remove(tx: &WriteTransaction, ids: &[u64]) -> Result<(), StoreError> {
    let mut journal = tx.open_table(JOURNAL)?;
    let mut needed = tx.open_table(JOURNAL_TEXTS)?;
    for id in ids {
        journal.remove(id)?;
        needed.retain_in((*id, &[0; 20])..=(*id, &[0xff; 20]), |_, ()| false)?;
    }
    Ok(())
}
