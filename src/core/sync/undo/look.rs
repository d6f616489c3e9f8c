//! How both sides are now that a run is taken back.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::Recalled;
use crate::core::{
    agreement::Agreement,
    ids::NodeId,
    journal::Line,
    merge::Side,
    paths::InstanceKey,
    protocol::{Below, Fact, FactKind, NewNode},
    sync::{Change, ChangeResult, Direction, NodeView},
    text::TextHash,
};

/// An entry of the journal beside what there is.
pub(super) struct Back<'a> {
    pub recalled: &'a Recalled,
    pub facts: &'a [Fact],
    pub views: &'a HashMap<NodeId, NodeView>,
    pub agreement: &'a Agreement,
}

/// An instance as Studio has it, with all below it.
#[derive(Debug, Default)]
pub(super) struct InStudio {
    pub hash: Side,
    pub below: Vec<Below>,
    /// Somebody types in it.
    pub draft: bool,
    /// It holds things that were not listed.
    pub more: bool,
}

impl InStudio {
    /// It is this, and nothing else is in it.
    pub fn is(&self, hash: Side, below: &[Below]) -> bool {
        let sorted = |below: &[Below]| {
            let mut all: Vec<_> =
                below.iter().map(|one| (one.path.clone(), one.class_name.clone(), one.studio_hash)).collect();
            all.sort();
            all
        };
        !self.more && self.hash == hash && sorted(&self.below) == sorted(below)
    }
}

/// The node of a line, also where others have the same name.
pub(super) fn node_of(line: &Line, agreement: &Agreement) -> Option<NodeId> {
    let key = line.key.as_ref()?;
    agreement.node(key).or_else(|| line.id.filter(|id| agreement.is_at(*id, key)))
}

impl<'a> Back<'a> {
    pub fn change(&self, line: &Line) -> Change {
        Change {
            path: line.path.clone(),
            fs_path: line.fs_path.clone(),
            id: None,
            temp_id: None,
            class_name: line.class_name.clone(),
            direction: Direction::Unresolved,
            patch_type: line.patch_type,
            disk_hash: None,
            studio_hash: None,
            result: ChangeResult::Unresolved,
            reason: None,
            conflict: Vec::new(),
            foreign: serde_json::Map::new(),
        }
    }

    /// The node of a line.
    pub fn node(&self, line: &Line) -> Option<(NodeId, &'a NodeView)> {
        self.seen(node_of(line, self.agreement))
    }

    /// The node at a key.
    pub fn at(&self, key: &InstanceKey) -> Option<(NodeId, &'a NodeView)> {
        self.seen(self.agreement.node(key))
    }

    fn seen(&self, id: Option<NodeId>) -> Option<(NodeId, &'a NodeView)> {
        let id = id?;
        Some((id, self.views.get(&id)?))
    }

    pub fn text(&self, side: Side) -> Option<&'a String> {
        self.recalled.texts.get(&side?)
    }

    pub fn fact(&self, id: NodeId) -> Option<&'a Fact> {
        self.facts.iter().find(|fact| fact.id == Some(id))
    }

    /// Studio has no instance of the node.
    pub fn is_missing(&self, id: NodeId) -> bool {
        let mut up = std::iter::successors(Some(id), |id| self.agreement.parent(*id));
        up.any(|id| self.fact(id).is_some_and(|fact| fact.kind == FactKind::Missing))
    }

    /// What only Studio has below a node, of that name.
    pub fn extra(&self, parent: NodeId, name: &str) -> Option<&'a Fact> {
        self.facts.iter().find(|fact| {
            fact.kind == FactKind::Extra && fact.parent == Some(parent) && fact.name.as_deref() == Some(name)
        })
    }

    /// The instance of `node`, which Studio has.
    pub fn in_studio(&self, node: &NewNode) -> InStudio {
        let mut found = InStudio { hash: self.side(node), ..InStudio::default() };
        self.walk(node, &[], &mut found);
        found
    }

    fn side(&self, node: &NewNode) -> Side {
        let tree = node.source.as_deref().map(TextHash::of);
        self.fact(node.id).map_or(tree, |fact| fact.studio_hash.or(tree))
    }

    fn walk(&self, node: &NewNode, above: &[String], found: &mut InStudio) {
        found.draft |= self.fact(node.id).is_some_and(|fact| fact.is_draft);
        for fact in self.facts.iter().filter(|fact| fact.kind == FactKind::Extra && fact.parent == Some(node.id)) {
            let name = fact.name.clone().unwrap_or_default();
            found.more = true;
            found.draft |= fact.is_draft;
            let (path, class_name) = ([above, &[name]].concat(), fact.class_name.clone());
            found.below.push(Below { path, class_name, studio_hash: fact.studio_hash, is_draft: fact.is_draft });
        }
        let there = |child: &&NewNode| self.fact(child.id).is_none_or(|fact| fact.kind != FactKind::Missing);
        for child in node.children.iter().filter(there) {
            let path = [above, std::slice::from_ref(&child.name)].concat();
            let class_name = child.class_name.clone();
            found.below.push(Below { path: path.clone(), class_name, studio_hash: self.side(child), is_draft: false });
            self.walk(child, &path, found);
        }
    }

    /// An id for what the tree does not have; the plugin forgets it at its next comparison.
    pub fn new_id(&self, key: &InstanceKey) -> NodeId {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, self.recalled.id, key).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        NodeId(half(1) << 64 | half(2) | 1)
    }
}

/// What only Studio has, as its fact lists it.
pub(super) fn stray(fact: &Fact) -> InStudio {
    InStudio {
        hash: fact.studio_hash,
        below: fact.subtree.clone().unwrap_or_default(),
        draft: fact.is_draft || fact.subtree.iter().flatten().any(|one| one.is_draft),
        more: fact.subtree.is_none(),
    }
}

/// The scripts of a node and of all below it.
pub(super) fn scripts(node: &NewNode) -> Vec<(NodeId, TextHash)> {
    let own = node.source.as_deref().map(|source| (node.id, TextHash::of(source)));
    own.into_iter().chain(node.children.iter().flat_map(scripts)).collect()
}
