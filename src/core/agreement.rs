//! What the tree and one Studio last agreed on, script by script.
//!
//! The *base* of a script is the text both sides had at the same time. It advances only when both
//! are known to be equal: when the plugin compared them, or when it confirmed a push by its hash.

use std::collections::HashMap;

use super::{ids::NodeId, protocol::PatchOp, text::TextHash};

/// The bases of one Studio, and the texts of the tree that it has not confirmed yet.
#[derive(Debug, Clone, Default)]
pub struct Agreement {
    base: HashMap<NodeId, TextHash>,
    unconfirmed: HashMap<NodeId, TextHash>,
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

    /// The tree changed.
    pub fn patched(&mut self, ops: &[PatchOp]) {
        for op in ops {
            match op {
                PatchOp::Put { node } => {
                    if let Some(hash) = node.hash {
                        self.tree_has(node.id, hash);
                    }
                }
                PatchOp::Drop { id } => {
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
    pub fn unconfirmed(&self) -> HashMap<NodeId, TextHash> {
        self.unconfirmed.clone()
    }

    /// A comparison has ended: of `compared` (see [`Self::unconfirmed`]), all that it did not
    /// report are equal on both sides.
    pub fn confirm(&mut self, compared: HashMap<NodeId, TextHash>, reported: impl Fn(NodeId) -> bool) {
        for (id, hash) in compared {
            if !reported(id) {
                self.agree(id, hash);
            }
        }
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
    fn a_change_of_the_tree_during_a_comparison_is_not_confirmed_by_it() {
        let (one, two) = (TextHash::of("1"), TextHash::of("2"));
        let mut agreement = Agreement::default();
        agreement.tree_has(ID, one);
        let compared = agreement.unconfirmed();
        agreement.tree_has(ID, two);
        agreement.confirm(compared, |_| false);
        assert_eq!(agreement.base(ID), Some(one));
        assert_eq!(agreement.unconfirmed().get(&ID), Some(&two));
    }
}
