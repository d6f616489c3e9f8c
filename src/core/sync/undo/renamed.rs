//! What was renamed or moved in Studio because its file was.

use super::{
    Back, MOVED_ON, NO_PARENT, THERE_AGAIN, TYPING,
    look::{InStudio, scripts, stray},
};
use crate::core::{
    ids::NodeId,
    journal::{Line, Seat},
    paths::InstanceKey,
    protocol::{Expected, NewNode, PlanOp},
    sync::{
        Change, Decision, Direction, FileWrite, NodeView, PatchType,
        decision::{Place, Restored, Then},
        plan::listed,
        removals::folder_of,
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
        if line.direction != Direction::Push {
            return self.move_file_back(line, change, was, parent);
        }
        match self.node(line) {
            Some((id, view)) => self.leave(line, change, (id, view), Place { parent, name: was.name.clone() }),
            None => self.become_node(line, change, was, parent),
        }
    }

    /// The instance of a node goes back to a place that is no node's.
    fn leave(&self, line: &Line, mut change: Change, of: (NodeId, &NodeView), to: Place) -> Option<Decision> {
        let (id, view) = of;
        (change.id, change.disk_hash, change.fs_path) = (Some(id), view.hash, view.fs_path.clone());
        let (Some(node), Some(parent)) = (&view.subtree, view.parent) else {
            return Some(Decision::unresolved(change, "its place in the tree is not known"));
        };
        let key = self.agreement.key(to.parent)?.child(&to.name, &line.class_name);
        if self.is_missing(id) {
            let Some(there) = self.extra(to.parent, &to.name).filter(|fact| fact.class_name == line.class_name) else {
                return Some(Decision::unresolved(change, MOVED_ON));
            };
            let is_back = stray(there, &line.below).is(line.studio.1, &line.below);
            return is_back.then(|| restored(Decision::new(change), line, node, &key));
        }
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
        let op = PlanOp::Rename { temp_id: None, id, parent: to.parent, name: to.name.clone(), source: None, expect };
        let mut decision = Decision::new(change).does(op).at(to.parent, &to.name);
        decision.was = Some(Place { parent, name: node.name.clone() });
        Some(restored(decision, line, node, &key))
    }

    /// The file of what was renamed in Studio goes back to its old place.
    fn move_file_back(&self, line: &Line, mut change: Change, was: &Seat, parent: NodeId) -> Option<Decision> {
        let Some((id, view)) = self.node(line) else {
            let is_back = self.at(&was.parent.child(&was.name, &line.class_name)).is_some();
            return (!is_back).then(|| Decision::unresolved(change, MOVED_ON));
        };
        (change.id, change.fs_path, change.disk_hash) = (Some(id), view.fs_path.clone(), view.hash);
        if let Some(own) = folder_of(view).filter(|_| line.disk.1 == view.hash || line.disk.1.is_none()) {
            return Some(self.move_folder_back(line, change, (id, view), own, (was, parent)));
        }
        let folder = self.views.get(&parent).and_then(folder_of);
        let (Some(path), Some(base), Some(folder), Some(text)) =
            (&view.fs_path, view.hash, folder, self.text(line.disk.0))
        else {
            return Some(Decision::unresolved(change, MOVED_ON));
        };
        if line.disk.1 != Some(base) {
            return Some(Decision::unresolved(change, MOVED_ON));
        }
        let in_studio = match self.follows(line) {
            true => match self.renamed_back(line, (id, view), was, parent) {
                Ok(op) => Some(op),
                Err(reason) => return Some(Decision::unresolved(change, reason)),
            },
            false => None,
        };
        let (key, from) = line.key.as_ref().and_then(|key| Some((key.clone(), key.split_last()?.1)))?;
        let (name, class) = (was.name.clone(), line.class_name.clone());
        let old = was.parent.child(&name, &class);
        let (path, text) = (path.clone(), Some(text.clone()));
        let write = FileWrite::Move { path, base, folder, was: from.clone(), name, class, text };
        let direction = if in_studio.is_some() { Direction::Merge } else { Direction::Pull };
        change.studio_hash = line.studio.1;
        let change = change.planned(direction, PatchType::Rename);
        let mut decision = Decision::new(change).writes(write).at(parent, &was.name);
        decision.op = in_studio;
        decision.was = self.agreement.parent(id).map(|parent| Place { parent, name: from });
        let decision = decision.then(Then::Moved { from: key.clone(), to: old.clone() });
        let decision = decision.restores(Restored::At(key), None, Some(base));
        Some(decision.restores(Restored::At(old), line.base, Some(base)))
    }

    /// The step that renames it back in Studio as well; from then on it is the instance of whatever
    /// its file at the old place gives.
    fn renamed_back(
        &self,
        line: &Line,
        (id, view): (NodeId, &NodeView),
        was: &Seat,
        parent: NodeId,
    ) -> Result<PlanOp, &'static str> {
        let node = view.subtree.as_ref().ok_or(MOVED_ON)?;
        if self.is_missing(id) {
            return Err(MOVED_ON);
        }
        let there = self.in_studio(node);
        let class = &line.class_name;
        let taken = self.extra(parent, &was.name).is_some() || self.agreement.has_child(parent, &was.name, class);
        if let Some(reason) = objection(&there, line, taken) {
            return Err(reason);
        }
        let source = self.text(line.disk.0).filter(|_| there.hash != line.disk.0).cloned();
        let expect = expected(&node.name, line, there);
        Ok(PlanOp::Rename { temp_id: None, id, parent, name: was.name.clone(), source, expect })
    }

    /// What only Studio has becomes the instance of a node again, or of none if there is none any more.
    fn become_node(&self, line: &Line, mut change: Change, was: &Seat, parent: NodeId) -> Option<Decision> {
        let key = line.key.as_ref()?;
        let (above, name, class) = key.split_last()?;
        let old = was.parent.child(&was.name, &class);
        let from = self.at(&above).map(|(from, _)| from);
        let stray_at = |parent: NodeId, name: &str| self.extra(parent, name).filter(|fact| fact.class_name == class);
        let Some((from, fact)) = from.and_then(|from| Some((from, stray_at(from, &name)?))) else {
            let is_back = self.at(&old).is_some_and(|(id, _)| !self.is_missing(id));
            let is_back = is_back || stray_at(parent, &was.name).is_some();
            return (!is_back).then(|| Decision::unresolved(change, MOVED_ON));
        };
        let there = stray(fact, &line.below);
        (change.temp_id, change.studio_hash) = (fact.temp_id.clone(), there.hash);
        let target = self.at(&old).map(|(id, view)| (id, view.subtree.as_ref()));
        let is_shape = |node: &NewNode| {
            let hash = node.source.as_deref().map(TextHash::of);
            InStudio { hash, below: listed(node), ..InStudio::default() }.is(line.studio.0, &line.below)
        };
        let fits = |(id, node): (NodeId, Option<&NewNode>)| self.is_missing(id) && node.is_some_and(is_shape);
        if !target.is_none_or(fits) {
            return Some(Decision::unresolved(change, "its file is not as it was then, so it is left as it is"));
        }
        let taken = target.is_none() && self.extra(parent, &was.name).is_some();
        if let Some(reason) = objection(&there, line, taken) {
            return Some(Decision::unresolved(change, reason));
        }
        let expect = expected(&name, line, there);
        change.id = target.map(|(id, _)| id);
        change.reason = Some(format!("it was called {name}"));
        let change = change.planned(Direction::Push, PatchType::Rename);
        let (temp_id, id) = (fact.temp_id.clone(), change.id.unwrap_or_else(|| self.new_id(line, 0)));
        let op = PlanOp::Rename { temp_id, id, parent, name: was.name.clone(), source: None, expect };
        let mut decision = Decision::new(change).does(op).at(parent, &was.name);
        decision.was = Some(Place { parent: from, name });
        Some(match target {
            Some((_, node)) => self.became(decision, node?, (key, &old)),
            None => stayed_stray(decision, line, (key, &old)),
        })
    }

    /// What was agreed of what stood at `from` is agreed of the node at `to`.
    fn became(&self, decision: Decision, node: &NewNode, (from, to): (&InstanceKey, &InstanceKey)) -> Decision {
        scripts(node).into_iter().fold(decision, |decision, (id, hash)| {
            let from = self.agreement.key(id).and_then(|key| key.moved(to, from));
            from.into_iter().fold(decision, |decision, from| decision.then(Then::Renamed { from, id, hash }))
        })
    }
}

/// What was agreed before of what stood at `to` is agreed of it again, and nothing of what stood at `from`.
fn stayed_stray(decision: Decision, line: &Line, (from, to): (&InstanceKey, &InstanceKey)) -> Decision {
    let left = line
        .scripts(from)
        .into_iter()
        .fold(decision, |decision, (script, hash)| decision.restores(Restored::At(script), Some(None), Some(hash)));
    agreed_again(left, line, to)
}

/// What the line is about is what both sides had last at `key`.
fn agreed_again(decision: Decision, line: &Line, key: &InstanceKey) -> Decision {
    let again = |decision: Decision, (script, hash)| decision.restores(Restored::At(script), Some(Some(hash)), None);
    line.scripts(key).into_iter().fold(decision, again)
}

/// What was agreed of the node is agreed of what stands at the old place, `key`, again.
fn restored(decision: Decision, line: &Line, node: &NewNode, key: &InstanceKey) -> Decision {
    let of_node =
        |decision: Decision, (script, hash)| decision.restores(Restored::Node(script), Some(None), Some(hash));
    let decision = scripts(node).into_iter().fold(decision, of_node);
    agreed_again(decision, line, key)
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

pub(super) fn expected(name: &str, line: &Line, there: InStudio) -> Expected {
    let (name, class_name) = (Some(name.to_owned()), line.class_name.clone());
    Expected { name, class_name, studio_hash: there.hash, subtree: there.below, subtree_digest: None }
}
