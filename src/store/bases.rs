//! What both sides last agreed on, script by script.

use std::collections::HashMap;

use redb::{ReadableTable, Table};

use super::{BASES, Done, Store, StoreError, TEXTS, texts};
use crate::core::text::TextHash;

/// How many earlier agreed states are remembered.
const EARLIER: usize = 64;
/// Bytes of a hash.
const WIDTH: usize = 20;

/// The agreed states of one script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The text that both sides last had at the same time.
    pub hash: TextHash,
    /// All agreed before, newest last.
    pub earlier: Vec<TextHash>,
}

/// A text that both sides have.
#[derive(Debug, Clone, Copy)]
pub struct Agreed<'a> {
    /// The script's instance path.
    pub key: &'a str,
    /// Of the text.
    pub hash: TextHash,
    /// The normalised text, if it is at hand; a merge needs it later.
    pub text: Option<&'a str>,
}

impl Base {
    fn first(hash: TextHash) -> Self {
        Self { hash, earlier: Vec::new() }
    }

    /// Agree on `hash`. Whether that is new.
    fn advance(&mut self, hash: TextHash) -> bool {
        if self.hash == hash {
            return false;
        }
        let before = std::mem::replace(&mut self.hash, hash);
        self.earlier.retain(|earlier| *earlier != before);
        self.earlier.push(before);
        self.drop_surplus();
        true
    }

    fn drop_surplus(&mut self) {
        let surplus = self.earlier.len().saturating_sub(EARLIER);
        self.earlier.drain(..surplus);
    }

    fn to_bytes(&self) -> Vec<u8> {
        std::iter::once(&self.hash).chain(&self.earlier).flat_map(|hash| *hash.as_bytes()).collect()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        let malformed = || StoreError::Malformed(format!("a base of {} bytes", bytes.len()));
        if !bytes.len().is_multiple_of(WIDTH) {
            return Err(malformed());
        }
        let mut hashes = bytes.chunks_exact(WIDTH).map(|hash| {
            let hash: [u8; WIDTH] = hash.try_into().expect("the chunks are exact");
            TextHash::from(hash)
        });
        let hash = hashes.next().ok_or_else(malformed)?;
        Ok(Self { hash, earlier: hashes.collect() })
    }
}

impl Store {
    /// The bases of a place, by the scripts' instance paths.
    ///
    /// # Errors
    /// The disk fails.
    pub fn bases(&self, place: &str) -> Result<HashMap<String, Base>, StoreError> {
        let tx = self.read()?;
        Ok(of_place(&tx.open_table(BASES)?, place)?.into_iter().collect())
    }

    /// Both sides have these texts now, and the disk and Studio are known to hold them.
    ///
    /// # Errors
    /// The disk fails; then none of them is agreed.
    pub fn agree(&self, place: &str, agreed: &[Agreed<'_>]) -> Result<(), StoreError> {
        self.write(|tx| {
            let mut changed = false;
            let mut bases = tx.open_table(BASES)?;
            let mut kept = tx.open_table(TEXTS)?;
            for Agreed { key, hash, text } in agreed {
                let before = base_of(&bases, place, key)?;
                let advanced = match before {
                    None => Some(Base::first(*hash)),
                    Some(mut base) => base.advance(*hash).then_some(base),
                };
                if let Some(base) = advanced {
                    bases.insert((place, *key), base.to_bytes().as_slice())?;
                    changed = true;
                }
                if let Some(text) = text {
                    changed |= texts::keep(&mut kept, *hash, text)?;
                }
            }
            Ok(Done { value: (), changed })
        })
    }

    /// Of these scripts exactly this is known; `None`: nothing.
    ///
    /// # Errors
    /// The disk fails; then all is known of them that was.
    pub fn restore<'a>(
        &self,
        place: &str,
        bases_of: impl IntoIterator<Item = (&'a str, Option<Base>)>,
    ) -> Result<(), StoreError> {
        self.write(|tx| {
            let mut changed = false;
            let mut bases = tx.open_table(BASES)?;
            for (key, base) in bases_of {
                changed = true;
                match base {
                    Some(mut base) => {
                        base.drop_surplus();
                        bases.insert((place, key), base.to_bytes().as_slice())?;
                    }
                    None => _ = bases.remove((place, key))?,
                }
            }
            Ok(Done { value: (), changed })
        })
    }

    /// A place is known by another name now, as when it was published. What was kept under that
    /// name was about another DataModel and goes.
    ///
    /// # Errors
    /// The disk fails.
    pub fn move_place(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.write(|tx| {
            let mut bases = tx.open_table(BASES)?;
            let moving = of_place(&bases, from)?;
            if moving.is_empty() || from == to {
                return Ok(Done { value: (), changed: false });
            }
            for (key, _) in of_place(&bases, to)? {
                bases.remove((to, key.as_str()))?;
            }
            for (key, base) in moving {
                bases.remove((from, key.as_str()))?;
                bases.insert((to, key.as_str()), base.to_bytes().as_slice())?;
            }
            Ok(Done::changed(()))
        })
    }

    /// A script was renamed on both sides.
    ///
    /// # Errors
    /// The disk fails.
    pub fn move_key(&self, place: &str, from: &str, to: &str) -> Result<(), StoreError> {
        self.write(|tx| {
            let mut bases = tx.open_table(BASES)?;
            let Some(base) = base_of(&bases, place, from)?.filter(|_| from != to) else {
                return Ok(Done { value: (), changed: false });
            };
            bases.remove((place, from))?;
            bases.insert((place, to), base.to_bytes().as_slice())?;
            Ok(Done::changed(()))
        })
    }
}

fn base_of(
    bases: &Table<'_, (&'static str, &'static str), &'static [u8]>,
    place: &str,
    key: &str,
) -> Result<Option<Base>, StoreError> {
    bases.get((place, key))?.map(|bytes| Base::from_bytes(bytes.value())).transpose()
}

fn of_place(
    bases: &impl ReadableTable<(&'static str, &'static str), &'static [u8]>,
    place: &str,
) -> Result<Vec<(String, Base)>, StoreError> {
    let mut found = Vec::new();
    for row in bases.range((place, "")..)? {
        let (key, bytes) = row?;
        let (of, key) = key.value();
        if of != place {
            break;
        }
        found.push((key.to_owned(), Base::from_bytes(bytes.value())?));
    }
    Ok(found)
}
