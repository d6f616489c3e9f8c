//! Texts by their hash, each kept once.

use std::collections::HashSet;

use redb::{ReadableTable, Table, WriteTransaction};

use super::{BASES, HashKey, JOURNAL_TEXTS, Store, StoreError, TEXTS, bases::Base};
use crate::core::text::TextHash;

impl Store {
    /// The normalised text of a base or of a journal entry.
    ///
    /// # Errors
    /// The disk fails.
    pub fn text(&self, hash: TextHash) -> Result<Option<String>, StoreError> {
        let tx = self.read()?;
        let text = tx.open_table(TEXTS)?.get(hash.as_bytes())?;
        Ok(text.map(|text| text.value().to_owned()))
    }
}

/// Keep a text. Whether it is new.
pub(super) fn keep(
    texts: &mut Table<'_, HashKey, &'static str>,
    hash: TextHash,
    text: &str,
) -> Result<bool, StoreError> {
    debug_assert_eq!(hash, TextHash::of(text), "a text is kept under its own hash");
    if texts.get(hash.as_bytes())?.is_some() {
        return Ok(false);
    }
    texts.insert(hash.as_bytes(), text)?;
    Ok(true)
}

/// Drop the texts that nothing refers to. Whether there were any.
pub(super) fn collect(tx: &WriteTransaction) -> Result<bool, StoreError> {
    let mut needed = HashSet::new();
    for row in tx.open_table(BASES)?.iter()? {
        needed.insert(Base::from_bytes(row?.1.value())?.hash);
    }
    for row in tx.open_table(JOURNAL_TEXTS)?.iter()? {
        let key = row?.0;
        let (_, hash) = key.value();
        needed.insert(TextHash::from(*hash));
    }
    let mut texts = tx.open_table(TEXTS)?;
    let mut dropped = false;
    texts.retain(|hash, _| {
        let keep = needed.contains(&TextHash::from(*hash));
        dropped |= !keep;
        keep
    })?;
    Ok(dropped)
}
