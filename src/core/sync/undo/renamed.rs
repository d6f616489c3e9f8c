//! What was renamed or moved in Studio because its file was.

use super::{
    Back, MOVED_ON, NO_PARENT, THERE_AGAIN, TYPING,
    look::{InStudio, scripts, stray},
};
use crate::core::{
    ids::NodeId,
    journal::{Line, Seat},
    protocol::{Expected, NewNode, PlanOp},
    sync::{
        Change, Decision, Direction, NodeView, PatchType,
        decision::{Place, Restored, Then},
        plan::listed,
    },
    text::TextHash,
};

impl Back<'_> {
    pub(super) fn rename(&self, line: &Line) -> Option<Decision> {
        let change = self.change(line);
        let Some(was) = &line.was else {
            let reason = "where it stood before is not known: rename its file and sync, or undo in Studio";
            return Some(Decision::unresolved(change, reason));
        };
        let Some((parent, _)) = self.at(&was.parent) else {
            return Some(Decision::unresolved(change, NO_PARENT));
        };
        match self.node(line) {
            Some((id, view)) => self.leave(line, change, (id, view), Place { parent, name: was.name.clone() }),
            None => self.become_node(line, change, was, parent),
        }
    }

    /// The instance of a node goes back to a place that is no node's.
    fn leave(&self, line: &Line, mut change: Change, of: (NodeId, &NodeView), to: Place) -> Option<Decision> {
        let (id, view) = of;
        (change.id, change.disk_hash, change.fs_path) = (Some(id), view.hash, view.fs_path.clone());
        if self.is_missing(id) {
            return None;
        }
        let (Some(node), Some(parent)) = (&view.subtree, view.parent) else {
            return Some(Decision::unresolved(change, "its place in the tree is not known"));
        };
        let there = self.in_studio(node);
        change.studio_hash = there.hash;
        let class = &line.class_name;
        let taken = self.extra(to.parent, &to.name).is_some() || self.agreement.has_child(to.parent, &to.name, class);
        if let Some(reason) = objection(&there, line, taken) {
            return Some(Decision::unresolved(change, reason));
        }
        let expect = expected(&node.name, line, there);
        change.reason = Some(format!("it was called {}", node.name));
        let change = change.planned(Direction::Push, PatchType::Rename);
        let op = PlanOp::Rename { temp_id: None, id, parent: to.parent, name: to.name.clone(), expect };
        let key = self.agreement.key(to.parent)?.child(&to.name, class);
        let mut decision = Decision::new(change).does(op).at(to.parent, &to.name);
        decision.was = Some(Place { parent, name: node.name.clone() });
        for (script, hash) in scripts(node) {
            decision = decision.restores(Restored::Node(script), Some(None), Some(hash));
        }
        for (script, hash) in line.scripts(&key) {
            decision = decision.restores(Restored::At(script), Some(Some(hash)), None);
        }
        Some(decision)
    }

    /// What only Studio has becomes the instance of a node again.
    fn become_node(&self, line: &Line, mut change: Change, was: &Seat, parent: NodeId) -> Option<Decision> {
        let (above, name, class) = line.key.as_ref()?.split_last()?;
        let (from, _) = self.at(&above)?;
        let fact = self.extra(from, &name).filter(|fact| fact.class_name == class)?;
        let there = stray(fact);
        (change.temp_id, change.studio_hash) = (fact.temp_id.clone(), there.hash);
        let target = self.at(&was.parent.child(&was.name, &class));
        let node = target.and_then(|(id, view)| Some((id, view.subtree.as_ref()?)));
        let is_shape = |node: &NewNode| {
            let hash = node.source.as_deref().map(TextHash::of);
            InStudio { hash, below: listed(node), ..InStudio::default() }.is(line.studio.0, &line.below)
        };
        let Some((id, node)) = node.filter(|(id, node)| self.is_missing(*id) && is_shape(node)) else {
            return Some(Decision::unresolved(change, "its file is not as it was then, so it is left as it is"));
        };
        if let Some(reason) = objection(&there, line, false) {
            return Some(Decision::unresolved(change, reason));
        }
        let expect = expected(&name, line, there);
        (change.id, change.reason) = (Some(id), Some(format!("it was called {name}")));
        let change = change.planned(Direction::Push, PatchType::Rename);
        let op = PlanOp::Rename { temp_id: fact.temp_id.clone(), id, parent, name: was.name.clone(), expect };
        let mut decision = Decision::new(change).does(op).at(parent, &was.name);
        decision.was = Some(Place { parent: from, name });
        let (old, new) = (line.key.as_ref()?, self.agreement.key(id)?);
        for (id, hash) in scripts(node) {
            let from = self.agreement.key(id).and_then(|key| key.moved(&new, old));
            decision.then.extend(from.map(|from| Then::Renamed { from, id, hash }));
        }
        Some(decision)
    }
}

fn objection(there: &InStudio, line: &Line, taken: bool) -> Option<&'static str> {
    if there.draft {
        return Some(TYPING);
    }
    if taken {
        return Some(THERE_AGAIN);
    }
    (!there.is(line.studio.1, &line.below)).then_some(MOVED_ON)
}

fn expected(name: &str, line: &Line, there: InStudio) -> Expected {
    let (name, class_name) = (Some(name.to_owned()), line.class_name.clone());
    Expected { name, class_name, studio_hash: there.hash, subtree: there.below }
}
