//! What was renamed or moved in Studio with all that lies in it, and whose folder followed.

use super::{Back, MOVED_ON, THERE_AGAIN, TYPING, renamed::expected};
use crate::core::{
    ids::NodeId,
    journal::{Line, Seat},
    protocol::{NewNode, PlanOp},
    sync::{
        Change, Decision, Direction, FileWrite, NodeView, PatchType,
        decision::{Place, Then},
        plan::listed,
        removals::folder_of,
    },
    text::TextHash,
};

impl Back<'_> {
    /// The folder `own` of a node goes back to its old place; so does the instance, where both sides
    /// go back.
    pub(super) fn move_folder_back(
        &self,
        line: &Line,
        change: Change,
        (id, view): (NodeId, &NodeView),
        own: String,
        (was, parent): (&Seat, NodeId),
    ) -> Decision {
        let to = self.views.get(&parent).and_then(folder_of);
        let (Some(folder), Some(node), Some(key)) = (to, &view.subtree, &line.key) else {
            return Decision::unresolved(change, MOVED_ON);
        };
        let op = match self.follows(line).then(|| self.instance_back(line, id, node, (was, parent))).transpose() {
            Ok(op) => op,
            Err(reason) => return Decision::unresolved(change, reason),
        };
        let direction = if op.is_some() { Direction::Merge } else { Direction::Pull };
        // No text is replaced.
        let change = Change { disk_hash: None, studio_hash: None, ..change }.planned(direction, PatchType::Rename);
        let write = FileWrite::MoveFolder { id, path: own, folder, name: was.name.clone() };
        let then = Then::Moved { from: key.clone(), to: was.parent.child(&was.name, &line.class_name) };
        let mut decision = Decision::new(change).writes(write).then(then).at(parent, &was.name);
        decision.op = op;
        decision.was = self.agreement.parent(id).map(|parent| Place { parent, name: node.name.clone() });
        decision
    }

    fn instance_back(
        &self,
        line: &Line,
        id: NodeId,
        node: &NewNode,
        (was, parent): (&Seat, NodeId),
    ) -> Result<PlanOp, &'static str> {
        let there = self.in_studio(node);
        if there.draft {
            return Err(TYPING);
        }
        let class = &line.class_name;
        if self.extra(parent, &was.name).is_some() || self.agreement.has_child(parent, &was.name, class) {
            return Err(THERE_AGAIN);
        }
        if self.is_missing(id) || !there.is(node.source.as_deref().map(TextHash::of), &listed(node)) {
            return Err(MOVED_ON);
        }
        let expect = expected(&node.name, line, there);
        Ok(PlanOp::Rename { temp_id: None, id, parent, name: was.name.clone(), source: None, expect })
    }
}
