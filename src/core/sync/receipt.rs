//! What a sync run answers: one line for each change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::core::{
    ids::{NodeId, TempId},
    merge::Hunk,
    protocol::SyncMode,
    text::TextHash,
};

/// How many hunks of a conflict a receipt shows.
const MAX_HUNKS: usize = 4;
/// How many characters of each of its texts.
const MAX_HUNK_TEXT: usize = 400;

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The outcome in one word.
    pub status: SyncStatus,
    /// The version of the project's tree that was compared.
    pub cursor: u32,
    /// Changes that were pushed to Studio.
    pub pushed: usize,
    /// Changes that were pulled into files.
    pub pulled: usize,
    /// Texts that both sides had changed, merged on both.
    pub merged: usize,
    /// Instances that were removed in Studio because their files are gone.
    pub removed: usize,
    /// Instances that were renamed in Studio because their files were, or on both sides by an undo.
    pub renamed: usize,
    /// Changes that nobody decided yet.
    pub unresolved: usize,
    /// Changes that were tried and did not hold.
    pub failed: usize,
    /// Every change.
    pub changes: Vec<Change>,
    /// Overrides that were not followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<Rejected>,
    /// The journal's entry, for `undo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<u64>,
    /// Why the run ended as it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The outcome of a run in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncStatus {
    /// All was applied.
    Success,
    /// There was nothing to do.
    Empty,
    /// Something was applied, and something failed or is unresolved.
    Partial,
    /// Nothing was applied, because nobody agreed to it.
    Rejected,
    /// Nothing was applied, because only a report was wanted.
    Dryrun,
    /// Nothing was applied, because something is unresolved.
    FastfailUnresolved,
    /// Nothing could be applied; of a foreign plugin it is not known.
    Error,
    /// A foreign plugin did not sync, because it is connected to Rojo already.
    AlreadyConnected,
    /// A foreign plugin did not sync, because it is at another one.
    SyncInProgress,
}

/// An override that was not followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rejected {
    /// Its `id`.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// One difference between files and Studio, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Names from the root of the place, joined with dots.
    pub path: String,
    /// The file, relative to the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs_path: Option<String>,
    /// The instance's id in the project's tree; absent when only Studio has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub id: Option<NodeId>,
    /// The id of an instance that only Studio has, for `overrides`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub temp_id: Option<TempId>,
    /// The instance's class.
    pub class_name: String,
    /// Which side wins.
    pub direction: Direction,
    /// What happens to the losing side.
    pub patch_type: PatchType,
    /// Hash of the text in the file; after the run, if it wrote there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub disk_hash: Option<TextHash>,
    /// Hash of the text in Studio, after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub studio_hash: Option<TextHash>,
    /// What became of it.
    pub result: ChangeResult,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The first lines that both sides changed, each in its own way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflict: Vec<Hunk>,
    /// Besides: `properties` that differ, each with what Studio has (`current`, short) and what the
    /// file specifies (`incoming`); of a foreign plugin its own `studioHash` and `defaultSelection`.
    #[serde(flatten)]
    #[schemars(skip)]
    pub foreign: Map<String, Value>,
}

/// Which side wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// What the files have goes to Studio.
    Push,
    /// What Studio has goes to the files.
    Pull,
    /// Both sides get the text with the changes of both.
    Merge,
    /// Nobody decided yet.
    Unresolved,
}

/// What happens to the losing side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PatchType {
    /// It is made.
    Add,
    /// Its text is replaced.
    Edit,
    /// It is removed.
    Remove,
    /// It gets another name or place.
    Rename,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeResult {
    /// Applied and confirmed.
    Done,
    /// It would be applied.
    Planned,
    /// Nobody decided yet.
    Unresolved,
    /// Studio had changed meanwhile, so nothing was applied.
    Guard,
    /// Its file or its text in Studio changed during the run, so it was left alone.
    MovedOn,
    /// Tried, and it failed.
    Failed,
    /// Not tried.
    Skipped,
    /// A foreign plugin did not say.
    Unknown,
}

impl Receipt {
    /// Count `changes` and put them into a receipt.
    pub fn new(status: SyncStatus, cursor: u32, changes: Vec<Change>, message: Option<String>) -> Self {
        let count = |wanted: &[ChangeResult]| changes.iter().filter(|c| wanted.contains(&c.result)).count();
        let done = |direction: Direction, types: &[PatchType]| {
            let done = changes.iter().filter(|change| change.result == ChangeResult::Done);
            done.filter(|change| change.direction == direction && types.contains(&change.patch_type)).count()
        };
        let any = [PatchType::Add, PatchType::Edit, PatchType::Remove, PatchType::Rename];
        Self {
            status,
            cursor,
            pushed: done(Direction::Push, &[PatchType::Add, PatchType::Edit]),
            pulled: done(Direction::Pull, &any),
            merged: done(Direction::Merge, &[PatchType::Add, PatchType::Edit, PatchType::Remove]),
            removed: done(Direction::Push, &[PatchType::Remove]),
            renamed: done(Direction::Push, &[PatchType::Rename]) + done(Direction::Merge, &[PatchType::Rename]),
            unresolved: count(&[ChangeResult::Unresolved]),
            failed: count(&[ChangeResult::Guard, ChangeResult::Failed, ChangeResult::Skipped, ChangeResult::MovedOn]),
            changes,
            rejected: Vec::new(),
            journal: None,
            message,
        }
    }

    /// Nothing to do. A dry run stays a dry run.
    pub fn empty(cursor: u32, mode: SyncMode) -> Self {
        let status = if mode == SyncMode::Dryrun { SyncStatus::Dryrun } else { SyncStatus::Empty };
        Self::new(
            status,
            cursor,
            Vec::new(),
            Some("what the files specify is equal on both sides; there is nothing to do".into()),
        )
    }
}

impl Change {
    /// It is left to somebody else, for this reason.
    pub fn unresolved(self, reason: impl Into<String>) -> Self {
        let reason = Some(reason.into());
        Self { direction: Direction::Unresolved, result: ChangeResult::Unresolved, reason, ..self }
    }

    /// It is going to be done.
    pub fn planned(self, direction: Direction, patch_type: PatchType) -> Self {
        Self { direction, patch_type, result: ChangeResult::Planned, ..self }
    }

    /// It came to this.
    pub fn ended(&mut self, result: ChangeResult, reason: impl Into<String>) {
        self.result = result;
        self.reason = Some(reason.into());
    }

    /// Show the first of `hunks`.
    pub fn show(&mut self, hunks: Vec<Hunk>) {
        let short = |text: String| match text.char_indices().nth(MAX_HUNK_TEXT) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        };
        let shown = hunks.into_iter().take(MAX_HUNKS);
        let shown = shown.map(|Hunk { line, base, disk, studio }| Hunk {
            line,
            base: short(base),
            disk: short(disk),
            studio: short(studio),
        });
        self.conflict = shown.collect();
    }
}
