//! What the journal says of a run: enough to take it back.
//!
//! Texts are named by their hashes; the store keeps them with the entry.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::{
    ids::NodeId,
    merge::Side,
    paths::InstanceKey,
    protocol::Below,
    sync::{ChangeResult, Direction, PatchType},
    text::TextHash,
    values::Properties,
};

/// One run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// What it did, in a word or two.
    pub what: String,
    /// The place it was done in.
    pub place: String,
    /// The entry that it takes back, if it is an undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u64>,
    /// Every change, in order.
    pub changes: Vec<Line>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Names from the root, joined with dots.
    pub path: String,
    /// Which side won.
    pub direction: Direction,
    /// What was done.
    pub patch_type: PatchType,
    /// The node, while this server runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<NodeId>,
    /// The instance, in every process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<InstanceKey>,
    /// What it stands below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<InstanceKey>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What both sides had agreed on before (absent: nothing).
    #[serde(default, skip_serializing_if = "Option::is_none", with = "known")]
    pub base: Option<Side>,
    /// Its class.
    pub class_name: String,
    /// Its file, relative to the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs_path: Option<String>,
    /// The text on disk before and after.
    pub disk: (Side, Side),
    /// The text in Studio before and after.
    pub studio: (Side, Side),
    /// The properties that were set in Studio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<PropertyLine>,
    /// What files specified of it and of what was below it, by instance, where it was removed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub specified: BTreeMap<InstanceKey, Properties>,
    /// What is below it in Studio, where it was made, renamed or removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<Below>,
    /// Where it stood before, if it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<Seat>,
    /// Of an undo: what both sides are taken to have agreed on after it (absent: nothing).
    #[serde(default, skip_serializing_if = "Option::is_none", with = "known")]
    pub then: Option<Side>,
    /// What became of it. Absent: not known, the server ended in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ChangeResult>,
}

/// Properties of one instance that were set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PropertyLine {
    /// Their values before.
    pub before: Properties,
    /// Their values after.
    pub after: Properties,
    /// What both sides had agreed on before (absent: nothing).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Properties>,
}

/// Where an instance stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// Below what.
    pub parent: InstanceKey,
    /// Under which name.
    pub name: String,
}

/// An absent text that is known to be absent is null, one that is not known is left out.
mod known {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Side;

    #[expect(clippy::ref_option, reason = "serde passes a reference")]
    pub fn serialize<S: Serializer>(side: &Option<Side>, serializer: S) -> Result<S::Ok, S::Error> {
        side.flatten().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Side>, D::Error> {
        Side::deserialize(deserializer).map(Some)
    }
}

impl Entry {
    /// The texts that taking it back needs.
    pub fn texts(&self) -> impl Iterator<Item = TextHash> {
        self.changes.iter().flat_map(Line::texts)
    }
}

impl Line {
    /// The texts that taking it back needs. A rename leaves all texts where they are.
    pub fn texts(&self) -> impl Iterator<Item = TextHash> {
        let sides = [self.disk.0, self.studio.0, self.disk.1, self.studio.1];
        let below = if self.patch_type == PatchType::Rename { &[][..] } else { &self.below };
        sides.into_iter().flatten().chain(below.iter().filter_map(|one| one.studio_hash))
    }

    /// The keys of `below`, where the instance itself has `key`.
    pub fn keys_below(&self, key: &InstanceKey) -> Vec<InstanceKey> {
        let mut keys = HashMap::from([(&[][..], key.clone())]);
        for one in &self.below {
            let above = one.path.split_last().and_then(|(name, above)| Some((keys.get(above)?, name)));
            let own = above.map_or_else(|| key.clone(), |(above, name)| above.child(name, &one.class_name));
            keys.insert(&one.path, own);
        }
        self.below.iter().filter_map(|one| keys.get(&one.path[..]).cloned()).collect()
    }

    /// The scripts that it is about, where the instance itself has `key`.
    pub fn scripts(&self, key: &InstanceKey) -> Vec<(InstanceKey, TextHash)> {
        let own = self.studio.0.or(self.studio.1).map(|hash| (key.clone(), hash));
        let below = self.keys_below(key).into_iter().zip(&self.below);
        own.into_iter().chain(below.filter_map(|(key, one)| Some((key, one.studio_hash?)))).collect()
    }
}
