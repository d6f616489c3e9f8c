//! What a review looks like to the plugin.

use serde::{Deserialize, Serialize};

use super::results::is_false;
use crate::core::{
    ids::{OpId, ReviewId},
    text::TextHash,
};

/// A list of changes that a person is asked about. Another one with the same id replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewFrame {
    /// Names it.
    pub review_id: ReviewId,
    /// Nobody waits for the answer.
    #[serde(default, skip_serializing_if = "is_false")]
    pub standing: bool,
    /// What is asked about.
    pub changes: Vec<ReviewLine>,
    /// How many changes there are besides. What is chosen for all is chosen for them too.
    #[serde(default)]
    pub more: usize,
}

/// One change of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewLine {
    /// Names it in the answer: a node, or an instance that only Studio has.
    pub id: OpId,
    /// Names from the root of the place, joined with dots.
    pub path: String,
    /// The file, relative to the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs_path: Option<String>,
    /// The instance's class.
    pub class_name: String,
    /// What is proposed: `push`, `pull`, `merge`; or `unresolved`.
    pub direction: String,
    /// What happens to the losing side: `Add`, `Edit`, `Remove`, `Rename`.
    pub patch_type: String,
    /// Hash of the file's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_hash: Option<TextHash>,
    /// Hash of Studio's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub studio_hash: Option<TextHash>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
