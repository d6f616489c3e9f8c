//! Decisions that the caller of a sync takes beforehand.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::core::ids::NodeId;

/// Which side wins for one difference, as long as Studio is as the caller saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Override {
    /// The instance's id in the project
    #[schemars(with = "String")]
    pub id: NodeId,
    /// push: the file wins; pull: Studio wins
    pub direction: OverrideDirection,
    /// Studio's hash as a receipt named it; it must still hold
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub studio_hash: Option<String>,
    /// Properties in Studio as a receipt named them; they must still hold
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_properties: Option<Map<String, Value>>,
}

/// Which side wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OverrideDirection {
    /// The file.
    Push,
    /// Studio.
    Pull,
}
