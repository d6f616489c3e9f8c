//! The steps of a plan.

use serde::{Deserialize, Serialize};

use super::{
    MAX_FRAME_BYTES,
    results::{Below, Fact},
    tree::NewNode,
};
use crate::core::{
    ids::{NodeId, OpId, TempId},
    text::TextHash,
    values::{self, Properties},
};

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PlanOp {
    /// Replace a script's text.
    SetSource {
        /// Which script.
        id: NodeId,
        /// The new text.
        source: String,
        /// Guard: the hash that the text must still have.
        expect: TextHash,
    },
    /// Set properties, attributes and tags.
    SetProperties {
        /// Of which instance.
        id: NodeId,
        /// The new values.
        properties: Properties,
        /// Guard: what each of them must still be.
        expect: Properties,
    },
    /// Make an instance that the tree has and the DataModel lacks.
    Add {
        /// Below which node.
        parent: NodeId,
        /// What.
        node: NewNode,
    },
    /// Take an instance out of the DataModel, with all below it.
    Remove {
        /// Which.
        #[serde(flatten)]
        of: Whose,
        /// Guard: what it and all below it must still be.
        expect: Expected,
    },
    /// Give an instance another name and parent; it and all below it stay the same instances.
    Rename {
        /// One that only Studio has, and that is the one of node `id` from then on. Absent: it is
        /// the one of node `id`, and no node's from then on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temp_id: Option<TempId>,
        /// The node.
        id: NodeId,
        /// Below which node.
        parent: NodeId,
        /// Its new name.
        name: String,
        /// The text that it gets as well; its guard is the one in `expect`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
        /// Guard: what it and all below it must still be.
        expect: Expected,
    },
}

/// Names an instance in Studio.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum Whose {
    /// One that only Studio has.
    Extra {
        /// As its fact names it.
        temp_id: TempId,
    },
    /// The one of a node.
    Node {
        /// Which.
        id: NodeId,
    },
}

impl From<&Whose> for OpId {
    fn from(whose: &Whose) -> Self {
        match whose {
            Whose::Extra { temp_id } => temp_id.clone().into(),
            Whose::Node { id } => (*id).into(),
        }
    }
}

/// What an instance must still be, with all below it, in any order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Expected {
    /// Its name; absent if that is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its class.
    pub class_name: String,
    /// For scripts: the hash of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub studio_hash: Option<TextHash>,
    /// Everything below it, no more and no less.
    #[serde(default)]
    pub subtree: Vec<Below>,
    /// The [`digest`] of that, where `subtree` would be long; it is empty then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtree_digest: Option<TextHash>,
}

/// A longer list is sent as its digest.
const LONGEST_LISTED: usize = 500;

/// Stands for a list of everything below an instance, in any order.
pub fn digest(below: &[Below]) -> TextHash {
    let hash = |one: &Below| one.studio_hash.map(|hash| hash.to_string()).unwrap_or_default();
    let mut lines: Vec<String> =
        below.iter().map(|one| format!("{}\0\0{}\0{}", one.path.join("\0"), one.class_name, hash(one))).collect();
    lines.sort_unstable();
    TextHash::of(&lines.join("\n"))
}

impl Expected {
    /// What `fact` says. `None`: not all below it was listed, so nothing can be expected of it.
    pub fn of(fact: &Fact) -> Option<Self> {
        Some(Self {
            name: fact.name.clone(),
            class_name: fact.class_name.clone(),
            studio_hash: fact.studio_hash,
            subtree: fact.subtree.clone()?,
            subtree_digest: None,
        })
    }

    /// A long list becomes its digest.
    pub fn shorten(&mut self) {
        if self.subtree.len() > LONGEST_LISTED {
            self.subtree_digest = Some(digest(&self.subtree));
            self.subtree.clear();
        }
    }

    fn weight(&self) -> usize {
        if self.subtree.len() > LONGEST_LISTED {
            return 200 + self.name.as_ref().map_or(0, String::len);
        }
        let below = |one: &Below| 120 + one.path.iter().map(|name| 3 + name.len()).sum::<usize>();
        120 + self.name.as_ref().map_or(0, String::len) + self.subtree.iter().map(below).sum::<usize>()
    }
}

/// What a frame needs besides its only step.
const ENVELOPE: usize = 1024;

impl PlanOp {
    /// How many bytes it has, if no frame can hold it.
    pub fn oversize(&self) -> Option<usize> {
        // No character takes more than six bytes as JSON.
        if self.weight() * 6 < MAX_FRAME_BYTES - ENVELOPE {
            return None;
        }
        let bytes = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        Some(bytes).filter(|bytes| *bytes > MAX_FRAME_BYTES - ENVELOPE)
    }

    /// What the plugin's result of this step is about.
    pub fn subject(&self) -> OpId {
        match self {
            Self::SetSource { id, .. } | Self::SetProperties { id, .. } => (*id).into(),
            Self::Add { node, .. } => node.id.into(),
            Self::Remove { of, .. } => of.into(),
            Self::Rename { temp_id: Some(temp_id), .. } => temp_id.clone().into(),
            Self::Rename { temp_id: None, id, .. } => (*id).into(),
        }
    }

    /// Its name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SetSource { .. } => "setSource",
            Self::SetProperties { .. } => "setProperties",
            Self::Add { .. } => "add",
            Self::Remove { .. } => "remove",
            Self::Rename { .. } => "rename",
        }
    }

    /// About how many bytes it takes on the wire.
    pub fn weight(&self) -> usize {
        fn node(new: &NewNode) -> usize {
            160 + new.name.len()
                + new.source.as_ref().map_or(0, String::len)
                + values::weight(&new.properties)
                + new.children.iter().map(node).sum::<usize>()
        }
        match self {
            Self::SetSource { source, .. } => 160 + source.len(),
            Self::SetProperties { properties, expect, .. } => 160 + values::weight(properties) + values::weight(expect),
            Self::Add { node: new, .. } => 80 + node(new),
            Self::Remove { expect, .. } => 80 + expect.weight(),
            Self::Rename { name, source, expect, .. } => {
                160 + name.len() + source.as_ref().map_or(0, String::len) + expect.weight()
            }
        }
    }
}
