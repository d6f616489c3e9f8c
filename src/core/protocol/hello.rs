//! What a plugin says of itself in its first frame.

use serde::{Deserialize, Deserializer, Serialize};

use crate::core::ids::{InstanceId, RequestId, ServerId, SessionId, TreeId};

/// Who the plugin is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// Plugin setting: both directions.
    pub two_way_sync: bool,
    /// Plugin setting: only `sync` changes anything.
    pub one_shot_sync: bool,
    /// Plugin setting: when a push asks first.
    pub confirmation_behavior: String,
    /// `game.PlaceId`; 0 for a place that was never published.
    #[serde(deserialize_with = "whole_number")]
    pub place_id: u64,
    /// What only our own plugin says. `None`: level 0.
    #[serde(skip)]
    pub level1: Option<HelloLevel1>,
}

/// What our own plugin adds to its hello.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HelloLevel1 {
    /// The protocol the plugin speaks.
    pub protocol: u32,
    /// Its version.
    pub plugin_version: String,
    /// New with every load of the plugin.
    pub session_id: SessionId,
    /// The place.
    pub instance_id: InstanceId,
    /// Which DataModel of a play test (or the edit one).
    pub role: Role,
    /// The place's name.
    #[serde(default)]
    pub place_name: String,
    /// `game.Name`.
    #[serde(default)]
    pub data_model_name: String,
    /// `game.GameId`.
    #[serde(default, deserialize_with = "whole_number")]
    pub game_id: u64,
    /// A play test runs.
    #[serde(default)]
    pub is_running: bool,
    /// How many other people edit this place.
    #[serde(default)]
    pub other_editors: u32,
    /// The tools it offers.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Somebody at its screen can be asked.
    #[serde(default)]
    pub reviews: bool,
    /// The last server it spoke to.
    #[serde(default)]
    pub server_id: Option<ServerId>,
    /// The highest request number it received from that server.
    #[serde(default)]
    pub last_n: u64,
    /// The tree it holds.
    #[serde(default)]
    pub tree_id: Option<TreeId>,
    /// As of which version.
    #[serde(default)]
    pub cursor: Option<u32>,
    /// Requests that still run.
    #[serde(default)]
    pub in_flight: Vec<RequestId>,
    /// Requests whose results were not acknowledged; they follow.
    #[serde(default)]
    pub pending: Vec<RequestId>,
}

/// Which DataModel of a Studio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The place as it is edited.
    Edit,
    /// The server of a play test.
    Server,
    /// A player's client in a play test.
    Client,
}

/// Luau writes every number as a float.
pub(super) fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    // 2^53: above it a float no longer holds every whole number.
    if number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        return Ok(number as u64);
    }
    Err(serde::de::Error::custom(format!("expected a whole number that is not negative, got {number}")))
}
