//! Script files that go because their scripts were deleted in Studio, through Rojo's own API; and
//! come back by `undo`.
//!
//! ```text
//! check (the text that the tree has? nothing else in the folder?) -> journal -> remove -> journal
//! undo:  journal -> nothing there again? -> journal -> put back, byte for byte -> journal
//! ```
//!
//! No Studio of ours has a part in it: Rojo's plugin does not say which place it is in, and hears of
//! these files as of any other change. So the entries belong to no place.

mod undo;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use undo::{bring_back, last};

use crate::{
    core::{
        journal::{Entry, Line},
        merge::Side,
        sync::{ChangeResult, Direction, PatchType},
        text::{ScriptText, TextHash},
    },
    files::{self, Displaced, WriteError},
    session::{OwnFiles, OwnScript, ServeSession},
    store::{EntryState, Store, StoreError},
};

/// What stands in an entry where others have their place.
const NO_PLACE: &str = "files";

/// An entry of the journal about files alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct FilesEntry {
    #[serde(flatten)]
    entry: Entry,
    /// Files that held more than their text (a byte order mark, other line endings), byte for byte.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    held: BTreeMap<String, String>,
}

/// Whether an entry of the journal is about files alone. What one that was cut off has done can be
/// seen on the disk, so it leaves nothing to be settled.
pub fn is_about_files_alone(entry: &Value) -> bool {
    entry["place"] == NO_PLACE
}

/// Remove these files, or none of them. What is gone already needs no removal.
///
/// # Errors
/// In words: one holds a newer text, or something else would be lost. The files are as they were.
pub fn delete(session: &ServeSession, store: &Store, own: &OwnFiles) -> Result<Vec<Displaced>, String> {
    own.are_alone()?;
    let sources = session.sources();
    let mut there = Vec::new();
    for script in &own.scripts {
        match files::removable(&sources, &script.file, script.hash) {
            Ok(held) => there.push(There { script, held }),
            Err(WriteError::Gone(_)) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    let displaced = if there.is_empty() { Vec::new() } else { delete_noted(session, store, &there)? };
    for folder in &own.folders {
        if let Err(error) = files::remove_empty_folder(&sources, folder) {
            log::debug!("a folder stays: {error}");
        }
    }
    Ok(displaced)
}

/// A file that is there, with all that it holds.
struct There<'a> {
    script: &'a OwnScript,
    held: String,
}

fn delete_noted(session: &ServeSession, store: &Store, there: &[There<'_>]) -> Result<Vec<Displaced>, String> {
    let mut noted = FilesEntry::deletion(there);
    let texts: Vec<(TextHash, ScriptText)> =
        there.iter().map(|one| (one.script.hash, ScriptText::new(&one.held))).collect();
    let id = noted
        .begin(store, &texts)
        .map_err(|error| format!("the journal could not be written, so nothing was deleted: {error}"))?;
    let removed = remove_all(session, there);
    let (state, result) = match &removed {
        Ok(_) => (EntryState::Done, ChangeResult::Done),
        Err(_) => (EntryState::Undone, ChangeResult::Skipped),
    };
    noted.entry.changes.iter_mut().for_each(|line| line.result = Some(result));
    if let Err(error) = noted.finish(store, id, state) {
        log::error!("what became of deletion {id} could not be noted: {error}");
    }
    removed
}

fn remove_all(session: &ServeSession, there: &[There<'_>]) -> Result<Vec<Displaced>, String> {
    let sources = session.sources();
    let mut displaced = Vec::new();
    for (at, one) in there.iter().enumerate() {
        match files::remove(&sources, &one.script.file, one.script.hash) {
            Ok(removed) => displaced.push(removed.displaced),
            Err(WriteError::Gone(_)) => {}
            Err(error) => {
                for There { script, held } in there.iter().take(at) {
                    if let Err(error) = files::restore(&sources, &script.file, held.as_bytes()) {
                        log::error!("a file that was to stay could not be put back; the journal has it: {error}");
                    }
                }
                return Err(error.to_string());
            }
        }
    }
    Ok(displaced)
}

impl FilesEntry {
    fn deletion(there: &[There<'_>]) -> Self {
        let changes = there.iter().map(|one| line(one.script)).collect();
        let entry = Entry {
            what: "deletion in Studio".to_owned(),
            place: NO_PLACE.to_owned(),
            who: Some("Rojo's plugin".to_owned()),
            undoes: None,
            changes,
        };
        let odd = there.iter().filter(|one| ScriptText::new(&one.held).as_str() != one.held);
        Self { entry, held: odd.map(|one| (one.script.fs_path.clone(), one.held.clone())).collect() }
    }

    fn begin(&self, store: &Store, texts: &[(TextHash, ScriptText)]) -> Result<u64, StoreError> {
        let texts: Vec<(TextHash, &str)> = texts.iter().map(|(hash, text)| (*hash, text.as_str())).collect();
        store.begin(&serde_json::to_value(self)?, &texts)
    }

    fn finish(&self, store: &Store, id: u64, state: EntryState) -> Result<(), StoreError> {
        store.finish(id, state, &serde_json::to_value(self)?)
    }
}

fn line(script: &OwnScript) -> Line {
    let gone: (Side, Side) = (Some(script.hash), None);
    Line {
        path: script.path.clone(),
        direction: Direction::Pull,
        patch_type: PatchType::Remove,
        id: None,
        key: None,
        parent: None,
        name: None,
        base: None,
        class_name: script.class_name.clone(),
        fs_path: Some(script.fs_path.clone()),
        disk: gone,
        studio: (None, None),
        below: Vec::new(),
        properties: None,
        specified: BTreeMap::new(),
        lost: None,
        made: Vec::new(),
        held: Vec::new(),
        was: None,
        then: None,
        result: None,
    }
}
