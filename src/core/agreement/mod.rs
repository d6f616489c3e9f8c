//! What the tree and one Studio last agreed on, script by script.
//!
//! The *base* of a script is the text both sides had at the same time. It advances only when both
//! are known to be equal: when the plugin compared them, or when it confirmed a push by its hash.

use std::collections::HashMap;

use super::{
    ids::NodeId,
    protocol::{Node, PatchOp},
    text::TextHash,
};

/// The bases of one Studio, and the texts of the tree that it has not confirmed yet.
#[derive(Debug, Clone, Default)]
pub struct Agreement {
    base: HashMap<NodeId, TextHash>,
    unconfirmed: HashMap<NodeId, TextHash>,
    /// Parent and name of each script in the tree.
    places: HashMap<NodeId, (Option<NodeId>, String)>,
}

impl Agreement {
    /// The last agreed text of `id`.
    pub fn base(&self, id: NodeId) -> Option<TextHash> {
        self.base.get(&id).copied()
    }

    /// The tree has this text now.
    pub fn tree_has(&mut self, id: NodeId, hash: TextHash) {
        if self.base(id) == Some(hash) {
            self.unconfirmed.remove(&id);
        } else {
            self.unconfirmed.insert(id, hash);
        }
    }

    /// The tree has this node now. At another place than before, what was agreed about it was
    /// about another instance in Studio.
    pub fn tree_has_node(&mut self, node: &Node) {
        let Some(hash) = node.hash else { return };
        let place = (node.parent, node.name.clone());
        if self.places.insert(node.id, place.clone()).is_some_and(|before| before != place) {
            self.base.remove(&node.id);
        }
        self.tree_has(node.id, hash);
    }

    /// The tree changed.
    pub fn patched(&mut self, ops: &[PatchOp]) {
        for op in ops {
            match op {
                PatchOp::Put { node } => self.tree_has_node(node),
                PatchOp::Drop { id } => {
                    self.places.remove(id);
                    self.base.remove(id);
                    self.unconfirmed.remove(id);
                }
            }
        }
    }

    /// Both sides have this text.
    pub fn agree(&mut self, id: NodeId, hash: TextHash) {
        self.base.insert(id, hash);
        if self.unconfirmed.get(&id) == Some(&hash) {
            self.unconfirmed.remove(&id);
        }
    }

    /// The texts that a comparison which starts now would confirm.
    pub fn unconfirmed(&self) -> Comparison {
        let texts = self.unconfirmed.iter().map(|(id, hash)| (*id, Compared { hash: *hash, base: self.base(*id) }));
        Comparison(texts.collect())
    }

    /// A comparison has ended: of its texts, all that it did not report are equal on both sides.
    /// A base that moved meanwhile is newer than what was compared and stays.
    pub fn confirm(&mut self, comparison: Comparison, reported: impl Fn(NodeId) -> bool) {
        for (id, compared) in comparison.0 {
            if !reported(id) && self.base(id) == compared.base {
                self.agree(id, compared.hash);
            }
        }
    }
}

/// What a comparison that is under way would confirm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison(HashMap<NodeId, Compared>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Compared {
    hash: TextHash,
    base: Option<TextHash>,
}

impl Comparison {
    /// It would confirm nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: NodeId = NodeId(7);

    #[test]
    fn a_base_advances_only_when_both_sides_are_known_to_be_equal() {
        let (one, two) = (TextHash::of("1"), TextHash::of("2"));
        let mut agreement = Agreement::default();
        agreement.tree_has(ID, one);
        assert_eq!(agreement.base(ID), None);
        agreement.confirm(agreement.unconfirmed(), |_| false);
        assert_eq!(agreement.base(ID), Some(one));

        agreement.tree_has(ID, two);
        agreement.confirm(agreement.unconfirmed(), |id| id == ID);
        assert_eq!(agreement.base(ID), Some(one), "reported as different: not agreed");
        agreement.agree(ID, two);
        assert_eq!(agreement.base(ID), Some(two));
        assert!(agreement.unconfirmed().is_empty());
    }

    #[test]
    fn a_renamed_script_has_no_base_because_studio_never_had_it_there() {
        let hash = TextHash::of("1");
        let node = |name: &str| Node {
            id: ID,
            parent: Some(NodeId(1)),
            name: name.into(),
            class_name: "ModuleScript".into(),
            ignore_unknown: false,
            hash: Some(hash),
        };
        let mut agreement = Agreement::default();
        agreement.tree_has_node(&node("Old"));
        agreement.agree(ID, hash);
        agreement.tree_has_node(&node("Old"));
        assert_eq!(agreement.base(ID), Some(hash));
        agreement.patched(&[PatchOp::Put { node: node("New") }]);
        assert_eq!(agreement.base(ID), None);
    }

    #[test]
    fn an_older_comparison_does_not_move_a_base_back() {
        let (one, two) = (TextHash::of("1"), TextHash::of("2"));
        let mut agreement = Agreement::default();
        agreement.tree_has(ID, one);
        let older = agreement.unconfirmed();
        agreement.tree_has(ID, two);
        agreement.confirm(agreement.unconfirmed(), |_| false);
        agreement.confirm(older, |_| false);
        assert_eq!(agreement.base(ID), Some(two));
    }

    #[test]
    fn a_change_of_the_tree_during_a_comparison_is_not_confirmed_by_it() {
        let (one, two) = (TextHash::of("1"), TextHash::of("2"));
        let mut agreement = Agreement::default();
        agreement.tree_has(ID, one);
        let compared = agreement.unconfirmed();
        agreement.tree_has(ID, two);
        agreement.confirm(compared, |_| false);
        assert_eq!(agreement.base(ID), Some(one));
        agreement.confirm(agreement.unconfirmed(), |_| false);
        assert_eq!(agreement.base(ID), Some(two), "the next one confirms it");
    }
}
