//! The project's tree as the plugin sees it.

use serde::{Deserialize, Serialize};

use crate::core::{
    ids::{NodeId, TreeId},
    text::TextHash,
    values::Properties,
};

/// One instance of the project's tree, without its children.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Rojo's referent.
    pub id: NodeId,
    /// Absent for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<NodeId>,
    /// `Instance.Name`.
    pub name: String,
    /// `Instance.ClassName`.
    pub class_name: String,
    /// Children that the project does not know are left alone and not reported.
    #[serde(default)]
    pub ignore_unknown: bool,
    /// For scripts: the hash of their text on disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<TextHash>,
    /// What the files specify of it.
    #[serde(default, skip_serializing_if = "Properties::is_empty")]
    pub properties: Properties,
}

/// `tree`: one part of the whole tree. Parents come before their children. The next part is sent
/// when the plugin has said `taken`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreePart {
    /// Which tree. Another one than before: the plugin drops all ids it holds.
    pub tree_id: TreeId,
    /// The version of the tree that the parts add up to.
    pub cursor: u32,
    /// Counts 0, 1, 2 …
    pub part: u32,
    /// No more parts follow; the plugin pairs and answers `treeReady`.
    pub last: bool,
    /// The instances.
    pub nodes: Vec<Node>,
}

/// `patch`: what changed in the tree, sent in every mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Patch {
    /// Which tree.
    pub tree_id: TreeId,
    /// The version after this patch.
    pub cursor: u32,
    /// `false`: only the plugin's picture of the tree changes, not the DataModel.
    pub apply: bool,
    /// In order; a parent is put before its children.
    pub ops: Vec<PatchOp>,
}

/// One step of a [`Patch`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase")]
pub enum PatchOp {
    /// The instance is new, or any of its fields changed.
    Put {
        /// Its state from now on.
        node: Node,
    },
    /// The instance and all below it are gone.
    Drop {
        /// Its id.
        id: NodeId,
    },
}

/// An instance to be made, with everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewNode {
    /// The id it has in the tree.
    pub id: NodeId,
    /// `Instance.Name`.
    pub name: String,
    /// `Instance.ClassName`.
    pub class_name: String,
    /// For scripts: the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What the files specify of it.
    #[serde(default, skip_serializing_if = "Properties::is_empty")]
    pub properties: Properties,
    /// What goes below it.
    #[serde(default)]
    pub children: Vec<NewNode>,
}
