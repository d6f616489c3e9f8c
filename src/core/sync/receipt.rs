//! What a sync run answers: one line for each change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::core::{ids::NodeId, protocol::SyncMode, text::TextHash};

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
    #[serde(default)]
    pub pulled: usize,
    /// Changes that nobody decided yet.
    pub unresolved: usize,
    /// Changes that were tried and did not hold.
    pub failed: usize,
    /// Every change.
    pub changes: Vec<Change>,
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
    /// Something was applied and something failed.
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
    /// The instance's class.
    pub class_name: String,
    /// Which side wins.
    pub direction: Direction,
    /// What happens to the losing side.
    pub patch_type: PatchType,
    /// Hash of the text in the file.
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
    /// What a foreign plugin says besides: its own `studioHash`, `properties`, `defaultSelection`.
    #[serde(flatten)]
    #[schemars(skip)]
    pub foreign: Map<String, Value>,
}

/// Which side wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The file's text goes to Studio.
    Push,
    /// Studio's text goes to the file.
    Pull,
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
        let pulled =
            changes.iter().filter(|c| c.direction == Direction::Pull && c.result == ChangeResult::Done).count();
        Self {
            status,
            cursor,
            pushed: count(&[ChangeResult::Done]) - pulled,
            pulled,
            unresolved: count(&[ChangeResult::Unresolved]),
            failed: count(&[ChangeResult::Guard, ChangeResult::Failed, ChangeResult::Skipped]),
            changes,
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
            Some("scripts and folders are equal on both sides; there is nothing to do".into()),
        )
    }
}
