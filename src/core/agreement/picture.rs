//! The shape of the tree as one Studio has it: who lies below whom, under which key.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use serde_json::{Value, json};

use crate::core::{
    ids::NodeId,
    paths::InstanceKey,
    protocol::{Node, PatchOp},
};

/// All nodes with their places.
#[derive(Debug, Clone, Default)]
pub(super) struct Picture {
    seats: HashMap<NodeId, Seat>,
    root: Option<NodeId>,
    /// How many siblings share a name and a class.
    crowds: HashMap<u64, u32>,
}

#[derive(Debug, Clone)]
struct Seat {
    parent: Option<NodeId>,
    name: Box<str>,
    class: Box<str>,
    children: Vec<NodeId>,
}

impl Seat {
    fn crowd(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.parent, &self.name, &self.class).hash(&mut hasher);
        hasher.finish()
    }
}

impl Picture {
    /// Whether `node` stands at another place than it did. New is not another.
    pub fn moves(&self, node: &Node) -> bool {
        self.seats.get(&node.id).is_some_and(|seat| {
            seat.parent != node.parent || *seat.name != *node.name || *seat.class != *node.class_name
        })
    }

    pub fn put(&mut self, node: &Node) {
        if self.seats.contains_key(&node.id) && !self.moves(node) {
            return;
        }
        if node.parent.is_none() {
            self.root = Some(node.id);
        }
        let children = self.unseat(node.id).map(|seat| seat.children).unwrap_or_default();
        let seat = Seat {
            parent: node.parent,
            name: node.name.as_str().into(),
            class: node.class_name.as_str().into(),
            children,
        };
        *self.crowds.entry(seat.crowd()).or_default() += 1;
        if let Some(parent) = seat.parent.and_then(|parent| self.seats.get_mut(&parent)) {
            parent.children.push(node.id);
        }
        self.seats.insert(node.id, seat);
    }

    /// Forget `id` and all below it.
    pub fn drop(&mut self, id: NodeId) {
        for id in self.subtree(id) {
            self.unseat(id);
        }
    }

    fn unseat(&mut self, id: NodeId) -> Option<Seat> {
        let seat = self.seats.remove(&id)?;
        let crowd = seat.crowd();
        if let Some(count) = self.crowds.get_mut(&crowd) {
            *count -= 1;
            if *count == 0 {
                self.crowds.remove(&crowd);
            }
        }
        let siblings = seat.parent.and_then(|parent| self.seats.get_mut(&parent)).map(|parent| &mut parent.children);
        if let Some(siblings) = siblings
            && let Some(at) = siblings.iter().position(|sibling| *sibling == id)
        {
            siblings.swap_remove(at);
        }
        Some(seat)
    }

    /// `id` and all below it.
    pub fn subtree(&self, id: NodeId) -> Vec<NodeId> {
        let mut all = vec![id];
        let mut at = 0;
        while let Some(id) = all.get(at) {
            if let Some(seat) = self.seats.get(id) {
                all.extend_from_slice(&seat.children);
            }
            at += 1;
        }
        all
    }

    pub fn ids(&self) -> impl Iterator<Item = NodeId> {
        self.seats.keys().copied()
    }

    /// The node at `key`, or one of several.
    pub fn find(&self, key: &InstanceKey) -> Option<NodeId> {
        let Some((above, name, class)) = key.split_last() else { return self.root };
        let parent = self.find(&above)?;
        self.children(parent, &name, &class).next()
    }

    /// The node above `id`.
    pub fn parent(&self, id: NodeId) -> Option<NodeId> {
        self.seats.get(&id)?.parent
    }

    /// The key of `id`; `None` if it is not in the tree. The root has no name in it.
    pub fn key(&self, id: NodeId) -> Option<InstanceKey> {
        self.seats.get(&id)?;
        let mut chain = Vec::new();
        let mut at = id;
        while let Some(seat) = self.seats.get(&at) {
            let Some(parent) = seat.parent else { break };
            chain.push(seat);
            at = parent;
        }
        let root = InstanceKey::root();
        Some(chain.into_iter().rev().fold(root, |key, seat| key.child(&seat.name, &seat.class)))
    }

    /// `value`; of a reference to a node, the node's path as the plugin would say it.
    pub fn by_path(&self, value: Value) -> Value {
        let id = value.get("Ref").and_then(Value::as_str).and_then(|id| id.parse::<NodeId>().ok());
        let up = id.map(|id| std::iter::successors(self.seats.get(&id), |seat| self.seats.get(&seat.parent?)));
        let Some(up) = up else { return value };
        let mut names: Vec<&str> = up.filter(|seat| seat.parent.is_some()).map(|seat| &*seat.name).collect();
        names.push("game");
        names.reverse();
        json!({ "Ref": names.join(".") })
    }

    /// Another node has the same key.
    pub fn is_twin(&self, id: NodeId) -> bool {
        let up = std::iter::successors(self.seats.get(&id), |seat| self.seats.get(&seat.parent?));
        up.into_iter().any(|seat| self.crowds.get(&seat.crowd()).is_some_and(|count| *count > 1))
    }

    /// The children of `parent` with that name and class.
    pub fn children<'a>(
        &'a self,
        parent: NodeId,
        name: &'a str,
        class: &'a str,
    ) -> impl Iterator<Item = NodeId> + use<'a> {
        let children = self.seats.get(&parent).map_or(&[][..], |seat| &seat.children);
        children
            .iter()
            .copied()
            .filter(move |child| self.seats.get(child).is_some_and(|seat| *seat.name == *name && *seat.class == *class))
    }
}

impl super::Agreement {
    /// A value as it is kept in a base: a reference leads to a path.
    pub fn by_path(&self, value: &Value) -> Value {
        self.picture.by_path(value.clone())
    }

    /// The node above one.
    pub fn parent(&self, id: NodeId) -> Option<NodeId> {
        self.picture.parent(id)
    }

    /// How many children a node has in the tree.
    pub fn child_count(&self, parent: NodeId) -> u32 {
        let count = self.picture.seats.get(&parent).map_or(0, |seat| seat.children.len());
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The node of a put stands at its place already.
    pub fn stays(&self, op: &PatchOp) -> bool {
        matches!(op, PatchOp::Put { node } if self.picture.key(node.id).is_some() && !self.picture.moves(node))
    }
}
