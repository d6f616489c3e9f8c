//! What `status` says about Studios.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::targets::Target;

/// What `status` says about a Studio.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StudioStatus {
    /// The name to give as `studio`.
    pub studio: String,
    /// The place's name, as Studio says it.
    pub place: String,
    /// 0: never published.
    pub place_id: u64,
    /// The DataModel that the rest is about: edit, or server while only a play test is linked.
    #[schemars(with = "String")]
    pub role: Target,
    /// How the link is.
    pub link: LinkStatus,
    /// one-shot, live or two-way: what the plugin's settings say.
    pub mode: String,
    /// A play test runs.
    pub running: bool,
    /// Why live mode waits although it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// Paths of what differs and nobody could decide, as the last runs found it; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<String>,
    /// What a person is asked there, or could choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// Absent for a foreign plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_version: Option<String>,
    /// 0 for a foreign plugin.
    pub protocol: u32,
    /// What runs there and may change something; further changes wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<Busy>,
    /// Who has started the play test, where an agent has: nobody else may start one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<Played>,
    /// What `target` can name.
    pub data_models: Vec<DataModelStatus>,
}

/// What `status` says about one DataModel of a Studio.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DataModelStatus {
    /// edit, server, client-1, client-2 …
    #[schemars(with = "String")]
    pub target: Target,
    /// How the link is. A client's is that of its server.
    pub link: LinkStatus,
    /// Whose client it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub player: Option<String>,
    /// What runs there and may change something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<Busy>,
}

/// A call that changes something and is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Busy {
    /// What it runs.
    pub tool: String,
    /// Its id, for `get_call`.
    pub call: String,
    /// For how long.
    pub seconds: u64,
    /// How many wait for it.
    pub queued: usize,
    /// It was told to end, and its plugin cannot end it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cannot_end: bool,
    /// What to do, where something waits for it or it cannot be ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Who plays, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Played {
    /// you, another caller, or a caller that has left.
    pub by: String,
    /// For how long.
    pub seconds: u64,
    /// What to do.
    pub next: String,
}

/// How a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkStatus {
    /// Ready.
    Live,
    /// Linked; it is still taking in the tree.
    Loading,
    /// Linked, but it has missed two heartbeats.
    Silent,
    /// Lost; it may come back.
    Reconnecting,
}
