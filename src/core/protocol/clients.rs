//! What a play server says of the clients that answer through it.

use serde::{Deserialize, Deserializer};

use crate::core::{
    ids::{LogicalId, RequestId},
    targets::Target,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attach {
    pub logical_id: LogicalId,
    #[serde(deserialize_with = "client_role")]
    pub role: Option<Target>,
    #[serde(default)]
    pub player: String,
    #[serde(default)]
    pub in_flight: Vec<RequestId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Detach {
    pub logical_id: LogicalId,
}

/// `client` asks for any name, `client-2` for that one.
fn client_role<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Target>, D::Error> {
    let word = String::deserialize(deserializer)?;
    match word.parse() {
        _ if word == "client" => Ok(None),
        Ok(role @ Target::Client(_)) => Ok(Some(role)),
        _ => Err(serde::de::Error::custom(format!("expected client or client-2, got {word:?}"))),
    }
}
