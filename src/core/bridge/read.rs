//! What the results of a run's requests carry.

use serde::Deserialize;

use crate::core::protocol::{Fact, NewNode, OpResult};

/// Studio's text of a script.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StudioScript {
    /// The text.
    pub source: String,
    /// Its hash, as the plugin computes it. A foreign plugin's is opaque.
    pub studio_hash: String,
    /// The instance's class.
    #[serde(default)]
    pub class_name: String,
    /// `Instance:GetFullName()`.
    #[serde(default)]
    pub instance_path: String,
    /// The text is an unsaved editor draft.
    #[serde(default)]
    pub is_draft: bool,
}

#[derive(Deserialize)]
pub(super) struct Compared {
    #[serde(default)]
    pub cursor: Option<u32>,
    #[serde(default)]
    pub parts: u32,
    #[serde(default)]
    pub facts: Vec<Fact>,
}

#[derive(Deserialize)]
pub(super) struct Described {
    pub node: NewNode,
}

#[derive(Deserialize)]
pub(super) struct Applied {
    pub results: Vec<OpResult>,
}
