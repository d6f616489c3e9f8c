//! What the tree and one Studio last agreed on, script by script.
//!
//! The *base* of a script is what both sides had at the same time. It advances only when both are
//! known to be equal: when the plugin compared them, or when it confirmed a step by its hash. What
//! is known of scripts that left the tree is kept by key, so that their instances in Studio can be
//! told from those that somebody made there.

mod picture;
mod properties;
mod restore;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use picture::Picture;
pub use properties::PropertyBase;
use properties::{Settled, Unconfirmed};
pub use restore::News;

use super::{
    ids::NodeId,
    merge::{Base, Side},
    paths::InstanceKey,
    protocol::{Node, PatchOp},
    text::TextHash,
};

/// The bases of one Studio, and the texts of the tree that it has not confirmed yet.
#[derive(Debug, Clone, Default)]
pub struct Agreement {
    bases: HashMap<NodeId, Base>,
    /// Of what is not in the tree.
    gone: HashMap<InstanceKey, Base>,
    unconfirmed: HashMap<NodeId, TextHash>,
    picture: Picture,
    settled: Settled,
    /// What the store does not know yet.
    news: HashSet<NodeId>,
    gone_news: HashSet<InstanceKey>,
    /// What the store has to forget, or to have exactly as it is here.
    rewritten: HashSet<InstanceKey>,
    /// What the store knows to be unseen by this plugin session.
    told_unseen: Option<BTreeSet<InstanceKey>>,
}

/// A base as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Whose.
    pub key: InstanceKey,
    /// The node it has in the tree, if any.
    pub id: Option<NodeId>,
    /// The last agreed state.
    pub last: Side,
    /// Those before it; of news, only the one that the store may not know.
    pub earlier: Vec<Side>,
    /// The text of the last state, where no script has it: agreed properties.
    pub text: Option<String>,
}

impl Agreement {
    /// The last agreed text of `id`.
    pub fn base(&self, id: NodeId) -> Option<TextHash> {
        self.bases.get(&id)?.last.flatten()
    }

    /// All that was agreed about `id`.
    pub fn standing(&self, id: NodeId) -> Base {
        self.bases.get(&id).cloned().unwrap_or_default()
    }

    /// All that was agreed about what the tree no longer has.
    pub fn gone(&self, key: &InstanceKey) -> Option<&Base> {
        self.gone.get(key)
    }

    /// The key of a node.
    pub fn key(&self, id: NodeId) -> Option<InstanceKey> {
        self.picture.key(id)
    }

    /// The tree has an instance of this name and class there.
    pub fn has_child(&self, parent: NodeId, name: &str, class: &str) -> bool {
        self.picture.children(parent, name, class).next().is_some()
    }

    /// The tree has this text now.
    pub fn tree_has(&mut self, id: NodeId, hash: TextHash) {
        let known = self.bases.get(&id).is_some_and(|base| base.seen && base.last == Some(Some(hash)));
        if known {
            self.unconfirmed.remove(&id);
        } else {
            self.unconfirmed.insert(id, hash);
        }
    }

    /// The tree has this node now. At another place than before, what was agreed about it and all
    /// below it was about other instances in Studio.
    pub fn tree_has_node(&mut self, node: &Node) {
        let moves = self.picture.moves(node);
        if moves {
            self.retire(node.id);
        }
        self.picture.put(node);
        if moves {
            self.picture.subtree(node.id).into_iter().for_each(|id| self.adopt(id));
        } else {
            self.adopt(node.id);
        }
        if let Some(hash) = node.hash {
            self.tree_has(node.id, hash);
        }
        self.settled.tree_has(node);
    }

    /// The tree has these nodes and no others.
    pub fn tree_is(&mut self, ids: &HashSet<NodeId>) {
        let left: Vec<NodeId> = self.picture.ids().filter(|id| !ids.contains(id)).collect();
        self.retire_all(&left);
        for id in left {
            self.picture.drop(id);
            self.unconfirmed.remove(&id);
            self.settled.left(id);
        }
    }

    /// The tree changed.
    pub fn patched(&mut self, ops: &[PatchOp]) {
        for op in ops {
            match op {
                PatchOp::Put { node } => self.tree_has_node(node),
                PatchOp::Drop { id } => {
                    let all = self.picture.subtree(*id);
                    self.retire_all(&all);
                    self.picture.drop(*id);
                    for id in &all {
                        self.unconfirmed.remove(id);
                        self.settled.left(*id);
                    }
                }
            }
        }
    }

    /// What was agreed about `id` and all below it is kept by key.
    fn retire(&mut self, id: NodeId) {
        let all = self.picture.subtree(id);
        self.retire_all(&all);
    }

    fn retire_all(&mut self, ids: &[NodeId]) {
        for id in ids.iter().filter(|id| self.bases.contains_key(id)) {
            if let Some(key) = self.unique_key(*id) {
                if self.news.contains(id) {
                    self.gone_news.insert(key.clone());
                }
                self.gone.extend(self.bases.get(id).map(|base| (key, base.clone())));
            }
        }
        for id in ids {
            self.bases.remove(id);
            self.news.remove(id);
        }
        for id in ids.iter().filter(|id| self.settled.holds(**id)).copied().collect::<Vec<_>>() {
            let (key, is_twin) = (self.picture.key(id), self.unique_key(id).is_none());
            self.settled.retire(id, key, is_twin);
        }
    }

    /// What was agreed about an instance that is in the tree again holds again.
    fn adopt(&mut self, id: NodeId) {
        if self.gone.is_empty() && self.settled.none_gone() {
            return;
        }
        let Some(key) = self.unique_key(id) else {
            return self.picture.key(id).iter().for_each(|key| self.settled.forget_twins(key));
        };
        if !self.settled.holds(id) {
            self.settled.adopt(id, &key);
        }
        if self.bases.contains_key(&id) {
            return;
        }
        if let Some(base) = self.gone.remove(&key) {
            self.bases.insert(id, base);
            if self.gone_news.remove(&key) {
                self.news.insert(id);
            }
        }
    }

    fn unique_key(&self, id: NodeId) -> Option<InstanceKey> {
        if self.picture.is_twin(id) { None } else { self.picture.key(id) }
    }

    /// Both sides have this text.
    pub fn agree(&mut self, id: NodeId, hash: TextHash) {
        if self.bases.entry(id).or_default().agree(Some(hash)) {
            self.news.insert(id);
        }
        if self.unconfirmed.get(&id) == Some(&hash) {
            self.unconfirmed.remove(&id);
        }
    }

    /// Studio did not have `id`, nor did the files before; it is about to be made.
    pub fn was_absent(&mut self, id: NodeId) {
        self.bases.entry(id).or_insert_with(|| Base::of(None));
    }

    /// Both sides have this text at `key`, whether or not the tree has a node there by now.
    pub fn agree_at(&mut self, parent: NodeId, name: &str, class: &str, hash: TextHash) {
        let node = self.picture.children(parent, name, class).next();
        if let Some(node) = node {
            return self.agree(node, hash);
        }
        if let Some(key) = self.picture.key(parent) {
            self.agree_gone(&key.child(name, class), Some(hash));
        }
    }

    /// Neither side has anything at `key`, or both have `side`, where the tree has no node there.
    pub fn agree_gone(&mut self, key: &InstanceKey, side: Side) {
        if self.gone.entry(key.clone()).or_default().agree(side) {
            self.gone_news.insert(key.clone());
        }
    }

    /// The instance that was at `from` is the one of `id`.
    pub fn renamed(&mut self, from: &InstanceKey, id: NodeId, hash: TextHash) {
        if let Some(base) = self.gone.get(from) {
            self.bases.insert(id, base.clone());
            self.news.insert(id);
        }
        self.settled.adopt(id, from);
        self.agree(id, hash);
        self.agree_gone(from, None);
    }

    /// What was at `from`, and all below it, is at `to`: what was agreed about it goes along, whether
    /// or not the tree has followed by now.
    pub fn moved(&mut self, from: &InstanceKey, to: &InstanceKey) {
        let still: Vec<NodeId> = self.node(from).map(|id| self.picture.subtree(id)).unwrap_or_default();
        for id in still {
            if let (Some(key), Some(base)) = (self.unique_key(id), self.bases.get(&id)) {
                self.gone.insert(key, base.clone());
            }
        }
        let old: Vec<InstanceKey> = self.gone.keys().filter(|key| key.is_within(from)).cloned().collect();
        for key in old {
            let (Some(new), Some(base)) = (key.moved(from, to), self.gone.get(&key).cloned()) else { continue };
            self.agree_gone(&key, None);
            // It may have come back to a place that it had left.
            let is_agreed = |id: &NodeId| self.bases.get(id).is_some_and(|base| base.last.flatten().is_some());
            match self.node(&new) {
                Some(id) if is_agreed(&id) => {}
                Some(id) => {
                    self.bases.insert(id, base);
                    self.news.insert(id);
                }
                None => {
                    self.gone.insert(new.clone(), base);
                    self.gone_news.insert(new);
                }
            }
        }
        let node = |key: &InstanceKey| {
            let found = self.picture.find(key)?;
            (!self.picture.is_twin(found)).then_some(found)
        };
        self.settled.moved(from, to, node);
    }

    /// What the store knew when this Studio came. What was agreed since is newer.
    pub fn recall(&mut self, kept: Vec<Kept>) {
        let mut by_key: BTreeMap<InstanceKey, Kept> = kept.into_iter().map(|one| (one.key.clone(), one)).collect();
        let ids: Vec<NodeId> = self.picture.ids().collect();
        let mut of_key = HashMap::new();
        for id in ids {
            let Some(key) = self.unique_key(id) else { continue };
            let known = by_key.remove(&key);
            of_key.insert(key, id);
            let Some(known) = known else { continue };
            let base = self.bases.entry(id).or_default();
            if recall_into(base, known) {
                self.news.remove(&id);
            }
        }
        for (key, known) in by_key {
            if let Some(owner) = key.owner() {
                let id = of_key.get(&owner).copied();
                known.text.into_iter().for_each(|text| self.settled.recall(owner.clone(), id, &text));
                continue;
            }
            if recall_into(self.gone.entry(key.clone()).or_default(), known) {
                self.gone_news.remove(&key);
            }
        }
    }

    /// The texts that a comparison which starts now would confirm.
    pub fn unconfirmed(&self) -> Comparison {
        let texts = self.unconfirmed.iter().map(|(id, hash)| (*id, Compared { hash: *hash, base: self.base(*id) }));
        Comparison { texts: texts.collect(), properties: self.settled.unconfirmed() }
    }

    /// A comparison has ended: of its texts, all that it did not report are equal on both sides.
    /// A base that moved meanwhile is newer than what was compared and stays.
    pub fn confirm(&mut self, comparison: Comparison, reported: impl Fn(NodeId) -> bool) {
        self.confirm_each(comparison, &reported, &reported);
    }

    /// The same where texts and properties were not reported alike.
    pub fn confirm_each(
        &mut self,
        comparison: Comparison,
        texts: impl Fn(NodeId) -> bool,
        properties: impl Fn(NodeId) -> bool,
    ) {
        for (id, compared) in comparison.texts {
            if !texts(id) && self.base(id) == compared.base {
                self.agree(id, compared.hash);
            }
        }
        self.settled.confirm(comparison.properties, &self.picture, properties);
    }
}

/// Put what the store knew below what is known since. Whether there is nothing new to it.
fn recall_into(base: &mut Base, known: Kept) -> bool {
    let same = base.last.is_none_or(|last| last == known.last);
    for state in known.earlier.into_iter().chain([known.last]) {
        if base.last != Some(state) && !base.earlier.contains(&state) {
            base.earlier.push(state);
        }
    }
    if base.last.is_none() {
        base.earlier.retain(|state| *state != known.last);
        base.last = Some(known.last);
    }
    same
}

/// What a comparison that is under way would confirm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    texts: HashMap<NodeId, Compared>,
    properties: Unconfirmed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Compared {
    hash: TextHash,
    base: Option<TextHash>,
}

impl Comparison {
    /// Only these nodes are compared.
    pub fn only(mut self, nodes: &[NodeId]) -> Self {
        let nodes: HashSet<NodeId> = nodes.iter().copied().collect();
        self.texts.retain(|id, _| nodes.contains(id));
        self.properties.retain(|id, _| nodes.contains(id));
        self
    }

    /// It would confirm nothing.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.properties.is_empty()
    }
}

#[cfg(test)]
mod tests;
