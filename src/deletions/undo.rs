//! Deleted files come back.

use std::path::PathBuf;

use serde_json::Map;

use super::{FilesEntry, NO_PLACE, is_about_files_alone};
use crate::{
    clock,
    core::{
        journal::{Entry, Line},
        sync::{Change, ChangeResult, Direction, PatchType, Receipt, SyncStatus},
        text::{ScriptText, TextHash},
    },
    files,
    session::ServeSession,
    store::{EntryState, Store, StoreError},
};

/// How far back the last entry is looked for.
const MAX_LOOKED_THROUGH: usize = 500;

/// The entry that an `undo` takes back, if it is about files alone: `change`, or else the last that
/// changed something and was not taken back.
///
/// # Errors
/// The disk fails.
pub fn last(store: &Store, change: Option<u64>) -> Result<Option<u64>, StoreError> {
    let entry = match change {
        Some(id) => store.entry(id)?,
        None => {
            let all = store.entries(MAX_LOOKED_THROUGH)?.into_iter();
            let mut standing = all.filter(|entry| entry.state != EntryState::Undone);
            standing.find(|entry| {
                let said = serde_json::from_value::<Entry>(entry.entry.clone());
                said.is_ok_and(|said| said.undoes.is_none() && said.changed_something())
            })
        }
    };
    Ok(entry.filter(|entry| is_about_files_alone(&entry.entry)).map(|entry| entry.id))
}

/// Put the files of the deletion `id` back where they were. All of them, unless `partial`; none over
/// a file that is there again.
///
/// # Errors
/// The disk fails. Nothing was put back.
pub fn bring_back(
    session: &ServeSession,
    store: &Store,
    (id, who): (u64, Option<String>),
    partial: bool,
) -> Result<Receipt, StoreError> {
    let noted = store.entry(id)?.ok_or(StoreError::NoEntry(id))?;
    let deletion: FilesEntry = serde_json::from_value(noted.entry)?;
    let when = clock::time_of_day(noted.at_ms);
    let cursor = *session.cursor().borrow();
    let ended = |status, changes, message: &str| Receipt::new(status, cursor, changes, Some(message.to_owned()));
    if noted.state == EntryState::Undone {
        return Ok(ended(SyncStatus::Error, Vec::new(), &format!("entry {id} was taken back already")));
    }
    if deletion.entry.undoes.is_some() {
        let message = "that undo brought files back; to take it back, delete them again";
        return Ok(ended(SyncStatus::Error, Vec::new(), message));
    }
    let mut back = Back { session, who, files: Vec::new(), held: Vec::new() };
    for line in &deletion.entry.changes {
        back.look(store, &deletion, line)?;
    }
    if back.files.is_empty() && back.held.is_empty() {
        let message = "all of it is as it was before; there is nothing to take back";
        return Ok(ended(SyncStatus::Empty, Vec::new(), message));
    }
    if back.files.is_empty() || !back.held.is_empty() && !partial {
        let message = "something cannot be taken back, so nothing was changed: see each unresolved line, or take back \
                       the rest with `partial`";
        return Ok(ended(SyncStatus::FastfailUnresolved, back.untried(), message));
    }
    back.restore(store, (id, &when), &deletion)
}

/// What can come back, and what cannot.
struct Back<'a> {
    session: &'a ServeSession,
    who: Option<String>,
    files: Vec<Deleted>,
    held: Vec<Change>,
}

struct Deleted {
    change: Change,
    line: Line,
    hash: TextHash,
    held: String,
}

impl Back<'_> {
    fn place(&self, fs_path: &str) -> PathBuf {
        self.session.project().folder.join(fs_path)
    }

    fn look(&mut self, store: &Store, deletion: &FilesEntry, line: &Line) -> Result<(), StoreError> {
        let (Some(fs_path), Some(hash)) = (&line.fs_path, line.disk.0) else { return Ok(()) };
        let change = change(line, hash);
        let place = self.place(fs_path);
        if place.symlink_metadata().is_ok() {
            let same = std::fs::read_to_string(&place).is_ok_and(|now| TextHash::of(&now) == hash);
            if !same {
                self.held.push(change.unresolved("there is a file again, with another text"));
            }
            return Ok(());
        }
        let kept = match deletion.held.get(fs_path) {
            Some(held) => Some(held.clone()),
            None => store.text(hash)?,
        };
        match kept {
            Some(held) => self.files.push(Deleted { change, line: line.clone(), hash, held }),
            None => self.held.push(change.unresolved("the text that it had is not kept any more")),
        }
        Ok(())
    }

    fn untried(self) -> Vec<Change> {
        let planned = self.files.into_iter().map(|file| file.change.planned(Direction::Pull, PatchType::Add));
        self.held.into_iter().chain(planned).collect()
    }

    fn restore(self, store: &Store, (id, when): (u64, &str), deletion: &FilesEntry) -> Result<Receipt, StoreError> {
        let lines = self.files.iter().map(|file| Line {
            patch_type: PatchType::Add,
            disk: (None, Some(file.hash)),
            result: None,
            ..file.line.clone()
        });
        let entry = Entry {
            what: "undo".into(),
            place: NO_PLACE.into(),
            who: self.who.clone(),
            undoes: Some(id),
            changes: lines.collect(),
        };
        let mut undo = FilesEntry { entry, ..FilesEntry::default() };
        let texts: Vec<(TextHash, ScriptText)> =
            self.files.iter().map(|file| (file.hash, ScriptText::new(&file.held))).collect();
        let journal = undo.begin(store, &texts)?;
        let sources = self.session.sources();
        let (mut changes, mut written) = (self.held, Vec::new());
        for (Deleted { change, line, held, .. }, noted) in self.files.into_iter().zip(&mut undo.entry.changes) {
            let place = self.session.project().folder.join(line.fs_path.unwrap_or_default());
            let mut change = change.planned(Direction::Pull, PatchType::Add);
            match files::restore(&sources, &place, held.as_bytes()) {
                Ok(()) => change.result = ChangeResult::Done,
                Err(error) => change.ended(ChangeResult::Failed, error.to_string()),
            }
            noted.result = Some(change.result);
            written.push(place);
            changes.push(change);
        }
        let all = changes.iter().all(|change| change.result == ChangeResult::Done);
        let any = changes.iter().any(|change| change.result == ChangeResult::Done);
        let noted = undo.finish(store, journal, EntryState::Done);
        let noted = noted.and_then(|()| if all { deletion.finish(store, id, EntryState::Undone) } else { Ok(()) });
        // The files are back all the same.
        let noted = noted.map_err(|error| format!("what it came to could not be noted: {error}"));
        let read = self.session.take_in(&written);
        let status = match (all, any) {
            (true, _) => SyncStatus::Success,
            (false, true) => SyncStatus::Partial,
            (false, false) => SyncStatus::Error,
        };
        let undid = || format!("undid {} {id}{} at {when}", deletion.entry.what, deletion.entry.by());
        let problem = read.as_ref().err().map(ToString::to_string).or(noted.err());
        let message = problem.or_else(|| any.then(undid));
        let receipt = Receipt::new(status, read.unwrap_or_default(), changes, message);
        Ok(Receipt { journal: Some(journal), ..receipt })
    }
}

fn change(line: &Line, hash: TextHash) -> Change {
    Change {
        path: line.path.clone(),
        fs_path: line.fs_path.clone(),
        id: None,
        temp_id: None,
        class_name: line.class_name.clone(),
        direction: Direction::Unresolved,
        patch_type: PatchType::Add,
        disk_hash: Some(hash),
        studio_hash: None,
        result: ChangeResult::Unresolved,
        reason: None,
        conflict: Vec::new(),
        foreign: Map::new(),
    }
}
