//! What a result carries, by the kind of request.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::fields::read_fields;
use crate::core::{
    ids::{NodeId, OpId, RequestId, TempId},
    text::TextHash,
    values::Properties,
};

/// The one result of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginResult {
    /// Which request.
    pub request_id: RequestId,
    /// `success`, `error`, or one of sync's words.
    pub status: String,
    /// The other fields.
    pub fields: Map<String, Value>,
}

/// What a result says, read as the request's kind demands.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<T> {
    /// The fields of a success.
    Success(T),
    /// The plugin's own words for what went wrong, with its code where it gave one.
    Failure {
        /// A machine's word for it.
        code: Option<String>,
        /// A person's.
        message: String,
    },
}

impl PluginResult {
    /// Read the fields of a success as `T`.
    ///
    /// # Errors
    /// The text names the field that is absent or wrong.
    pub fn read<T: DeserializeOwned>(self) -> Result<Outcome<T>, String> {
        if self.status == "success" {
            return read_fields(&self.fields)
                .map(Outcome::Success)
                .map_err(|error| format!("the plugin's result is malformed: {error}"));
        }
        let text = |key: &str| self.fields.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(Outcome::Failure {
            code: text("code"),
            message: text("message")
                .or_else(|| text("response"))
                .unwrap_or_else(|| format!("the plugin answered {:?} and gave no reason", self.status)),
        })
    }
}

/// One difference between the DataModel and the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    /// In which way.
    pub kind: FactKind,
    /// The node; absent for `extra`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<NodeId>,
    /// For `extra`: names the instance for as long as only Studio has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp_id: Option<TempId>,
    /// For `extra`: the node it stands below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<NodeId>,
    /// For `extra`: its exact name; absent if that is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Names from the root, joined with dots.
    pub path: String,
    /// The class in Studio (for `missing`: in the tree).
    pub class_name: String,
    /// For scripts in Studio: the hash of their text there. Absent from `differs` where the text
    /// is equal and only properties differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub studio_hash: Option<TextHash>,
    /// Studio's text is an unsaved editor draft.
    #[serde(default)]
    pub is_draft: bool,
    /// For `differs`: what Studio has of the properties that are not as the files specify.
    #[serde(default, skip_serializing_if = "Properties::is_empty")]
    pub properties: Properties,
    /// For `extra`: everything below it, depth first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtree: Option<Vec<Below>>,
    /// For `extra`: there is too much below it to be listed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub subtree_cut: bool,
    /// For `extra`: the digest of everything below it, where that is too much to be listed and
    /// nobody types in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtree_digest: Option<TextHash>,
    /// For `extra`: how many children its parent has in Studio, the engine's own not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub siblings: Option<u32>,
    /// For `extra`: a person was seen to make it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_new: bool,
    /// For `extra`: the node that it was the script of until a person renamed or moved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<NodeId>,
}

/// An instance below one that only Studio has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Below {
    /// Names from that one down to this one. Bytes that are not UTF-8 are replaced.
    pub path: Vec<String>,
    /// Its class.
    pub class_name: String,
    /// For scripts: the hash of their text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub studio_hash: Option<TextHash>,
    /// That text is an unsaved editor draft.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_draft: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_false(value: &bool) -> bool {
    !value
}

impl Fact {
    /// Whatever text it has is the same on both sides; properties differ.
    pub fn is_of_properties(&self) -> bool {
        self.kind == FactKind::Differs && self.studio_hash.is_none() && !self.properties.is_empty()
    }

    /// It says which node it is about, where it is about one.
    pub fn is_whole(&self) -> bool {
        self.kind == FactKind::Extra || self.id.is_some()
    }
}

/// In which way the DataModel differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FactKind {
    /// A script's text is another, or properties are.
    Differs,
    /// The tree has it, Studio lacks it, and so all below it.
    Missing,
    /// Studio has it below a node that is fully managed; the tree lacks it.
    Extra,
}

/// What became of one step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpResult {
    /// What the step was about: the instance that only Studio had where the step named one, else
    /// the node.
    pub id: OpId,
    /// The step's `op`: of one node the text and the properties may be set by two steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// Done or not.
    pub status: OpStatus,
    /// For scripts: the hash of the text that Studio has now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<TextHash>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Whether a step of a plan was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpStatus {
    /// It holds now.
    Done,
    /// Its guard did not hold; nothing of the plan was applied.
    Guard,
    /// It was tried and failed; the instance is as before.
    Failed,
    /// It was not tried.
    Skipped,
}
