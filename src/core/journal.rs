//! What the journal says of a run: enough to take it back.
//!
//! Texts are named by their hashes; the store keeps them with the entry.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use serde::{Deserialize, Serialize};

use super::{
    ids::NodeId,
    merge::Side,
    paths::InstanceKey,
    protocol::{Below, NewNode},
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
    /// Who had it done: the name of a client, or of what begins runs by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
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
    /// The instance that went, in Studio or with its files, as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Box<NewNode>>,
    /// The files and folders that were made, each after the folder that it lies in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<MadeFile>,
    /// The files and folders that were removed, each after the folder that it lies in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldFile>,
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

/// A file or folder that a run made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeFile {
    /// Relative to the project, with `/`.
    pub path: String,
    /// Of its bytes as they were written; absent: a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<TextHash>,
}

/// A file or folder that a run removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldFile {
    /// Relative to the project, with `/`.
    pub path: String,
    /// What it held, byte for byte; absent: a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
}

impl HeldFile {
    /// The same as one that was made.
    pub fn as_made(&self) -> MadeFile {
        let hash = self.bytes.as_ref().map(|bytes| TextHash::of_bytes(bytes.as_slice()));
        MadeFile { path: self.path.clone(), hash }
    }
}

/// What a file held. In JSON a text where it is one, else hex digits.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct Bytes(Vec<u8>);

impl Bytes {
    /// All of them.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({})", self.0.len())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Written {
    Text(String),
    Hex(String),
}

impl From<Bytes> for Written {
    fn from(Bytes(bytes): Bytes) -> Self {
        String::from_utf8(bytes).map_or_else(
            |error| {
                let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or('0');
                Self::Hex(error.as_bytes().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
            },
            Self::Text,
        )
    }
}

impl TryFrom<Written> for Bytes {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let digits = match written {
            Written::Text(text) => return Ok(Self(text.into_bytes())),
            Written::Hex(digits) => digits,
        };
        let wrong = || "bytes are pairs of hex digits".to_owned();
        let halves: Option<Vec<u32>> = digits.chars().map(|digit| digit.to_digit(16)).collect();
        let halves = halves.filter(|halves| halves.len() % 2 == 0).ok_or_else(wrong)?;
        let byte = |pair: &[u32]| pair.iter().fold(0, |sum, half| sum << 4 | half);
        halves.chunks(2).map(|pair| u8::try_from(byte(pair)).map_err(|_| wrong())).collect::<Result<_, _>>().map(Self)
    }
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
    /// ` by ` whoever had it done, where that is known.
    pub fn by(&self) -> String {
        self.who.as_ref().map(|who| format!(" by {who}")).unwrap_or_default()
    }

    /// Nothing was done, and nothing may have been.
    pub fn did_nothing(&self) -> bool {
        use ChangeResult::{Guard, MovedOn, Skipped, Unresolved};
        let tried =
            |line: &Line| line.result.is_none_or(|result| !matches!(result, Guard | MovedOn | Skipped | Unresolved));
        !self.changes.iter().any(tried)
    }

    /// A change of it was made, or may have been.
    pub fn changed_something(&self) -> bool {
        self.changes.iter().any(|line| line.result.is_none_or(|result| result == ChangeResult::Done))
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_held_is_written_down_byte_for_byte() {
        for bytes in [&b""[..], b"\xef\xbb\xbfa\r\nb\r", b"<roblox!\x89\xff\r\n\x00\xf0", b"\x80"] {
            let held = HeldFile { path: "a".into(), bytes: Some(bytes.to_vec().into()) };
            let text = serde_json::to_string(&held).expect("JSON");
            assert_eq!(serde_json::from_str::<HeldFile>(&text).expect("read"), held, "{text}");
        }
        for wrong in ["f", "xy", "é0"] {
            let text = format!("{{\"path\":\"a\",\"bytes\":{{\"hex\":\"{wrong}\"}}}}");
            assert!(serde_json::from_str::<HeldFile>(&text).is_err(), "{wrong}");
        }
    }
}
