//! What was made: an instance in Studio, or a file.

use super::{
    Back, MOVED_ON, TYPING,
    look::{InStudio, scripts, stray},
};
use crate::core::{
    ids::NodeId,
    journal::Line,
    paths::InstanceKey,
    protocol::{Expected, NewNode, PlanOp, Whose},
    sync::{
        Decision, Direction, FileWrite, PatchType,
        decision::{Restored, Then},
        verdicts::others,
    },
};

impl Back<'_> {
    /// An instance that was made in Studio is removed there.
    pub(super) fn unmake(&self, line: &Line) -> Option<Decision> {
        let mut change = self.change(line);
        let Some((id, view)) = self.node(line) else { return self.unmake_stray(line) };
        (change.id, change.fs_path, change.disk_hash) = (Some(id), view.fs_path.clone(), view.hash);
        let (Some(node), Some(parent)) = (&view.subtree, view.parent) else {
            return Some(Decision::unresolved(change, "its place in the tree is not known"));
        };
        if self.is_missing(id) {
            return Some(restored(Decision::new(change), line, (id, node)));
        }
        let there = self.in_studio(node);
        change.studio_hash = there.hash;
        if let Some(reason) = objection(&there, line) {
            return Some(Decision::unresolved(change, reason));
        }
        let expect = expected(&node.name, line, there);
        let change = change.planned(Direction::Push, PatchType::Remove);
        let decision = Decision::new(change).does(PlanOp::Remove { of: Whose::Node { id }, expect });
        Some(restored(decision, line, (id, node)).at(parent, &node.name))
    }

    /// The same, of which the file is gone meanwhile.
    fn unmake_stray(&self, line: &Line) -> Option<Decision> {
        let key = line.key.as_ref()?;
        let (above, name, class) = key.split_last()?;
        let (parent, _) = self.at(&above)?;
        let fact = self.extra(parent, &name).filter(|fact| fact.class_name == class)?;
        let mut change = self.change(line);
        let there = stray(fact, &line.below);
        (change.temp_id, change.studio_hash, change.fs_path) = (fact.temp_id.clone(), there.hash, None);
        if let Some(reason) = objection(&there, line) {
            return Some(Decision::unresolved(change, reason));
        }
        let expect = expected(&name, line, there);
        let of = Whose::Extra { temp_id: fact.temp_id.clone()? };
        let change = change.planned(Direction::Push, PatchType::Remove);
        let mut decision = Decision::new(change).does(PlanOp::Remove { of, expect }).at(parent, &name);
        for (script, hash) in line.scripts(key) {
            decision = decision.restores(Restored::At(script), None, Some(hash));
        }
        Some(decision)
    }

    /// A file that was made from what was made in Studio.
    pub(super) fn remove_file(&self, line: &Line) -> Option<Decision> {
        let mut change = self.change(line);
        if !line.made.is_empty() {
            return self.remove_files(line);
        }
        if line.class_name == "Folder" {
            return None; // as a place for other files it does no harm
        }
        let (id, view) = self.node(line)?;
        (change.id, change.disk_hash) = (Some(id), view.hash);
        let (Some(path), Some(base)) = (view.fs_path.clone(), view.hash.filter(|hash| line.disk.1 == Some(*hash)))
        else {
            return Some(Decision::unresolved(change, MOVED_ON));
        };
        let key: InstanceKey = self.agreement.key(id)?;
        let change = change.planned(Direction::Pull, PatchType::Remove);
        let keep = view.source.clone().unwrap_or_default();
        let decision = Decision::new(change).writes(FileWrite::Remove { path, base }).keeps(&keep);
        Some(decision.restores(Restored::At(key), line.base, Some(base)))
    }
}

impl Back<'_> {
    /// The files and folders go that were made, where they are as they were made.
    fn remove_files(&self, line: &Line) -> Option<Decision> {
        let mut change = self.change(line);
        let write = FileWrite::Unmake { files: line.made.clone() };
        // Its files are gone, or are no such instance any more.
        let Some((id, view)) = self.node(line) else {
            return Some(Decision::new(change.planned(Direction::Pull, PatchType::Remove)).writes(write));
        };
        (change.id, change.disk_hash, change.fs_path) = (Some(id), view.hash, view.fs_path.clone());
        let Some(node) = &view.subtree else { return Some(Decision::unresolved(change, MOVED_ON)) };
        let change = change.planned(Direction::Pull, PatchType::Remove);
        let mut decision = Decision::new(change).writes(write).loses(node);
        for (script, hash) in scripts(node) {
            let base = line.base.filter(|_| script == id);
            let key = self.agreement.key(script)?;
            decision = decision.restores(Restored::At(key), base, Some(hash));
        }
        for other in others(node) {
            let key = self.agreement.key(other.id)?;
            // Whether or not the tree has it by then.
            decision = decision.then(Then::RestoreProperties(other.id, None)).then(Then::PropertiesGone(key, None));
        }
        Some(decision)
    }
}

/// To have had nothing is what a file that is new for Studio begins with.
fn restored(decision: Decision, line: &Line, (id, node): (NodeId, &NewNode)) -> Decision {
    let decision = scripts(node).into_iter().fold(decision, |decision, (script, hash)| {
        let base = line.base.filter(|_| script == id).unwrap_or(None);
        decision.restores(Restored::Node(script), Some(base), Some(hash))
    });
    others(node).into_iter().fold(decision, |decision, other| decision.then(Then::RestoreProperties(other.id, None)))
}

/// Why it is not removed again.
fn objection(there: &InStudio, line: &Line) -> Option<&'static str> {
    if there.draft {
        return Some(TYPING);
    }
    (!there.is(line.studio.1, &line.below)).then_some(MOVED_ON)
}

fn expected(name: &str, line: &Line, there: InStudio) -> Expected {
    let (name, class_name) = (Some(name.to_owned()), line.class_name.clone());
    Expected { name, class_name, studio_hash: there.hash, subtree: there.below, subtree_digest: None }
}
