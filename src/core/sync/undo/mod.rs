//! Taking a run back: each of its changes the other way round, where nothing moved on since.
//!
//! For each side of each change there are three cases: it is as the run left it, then it goes
//! back; it is as it was before, then there is nothing to do; it is anything else, then the change
//! is held. The earlier base comes back with the text, so a sync afterwards finds what the first
//! one found. Only what was deleted comes back on both sides, whichever side had deleted it.

mod deleted;
mod edited;
mod look;
mod made;
mod moved;
mod properties;
mod renamed;

use std::collections::{HashMap, HashSet};

use look::Back;

use super::{
    decision::{Decision, NodeView},
    receipt::{ChangeResult, Direction, PatchType, SyncStatus},
};
use crate::core::{
    agreement::Agreement,
    ids::NodeId,
    journal::{Entry, Line},
    paths::InstanceKey,
    protocol::Fact,
    text::TextHash,
};

const MOVED_ON: &str = "it was changed since, so it is left as it is";
const TYPING: &str = "a person is editing it in Studio and has not saved";
const THERE_AGAIN: &str = "something of its name is there again";
const NOT_KEPT: &str = "the text that it had is not kept any more";
const NO_PARENT: &str = "what it stood below is not in the project any more";

/// What is to be taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undo {
    /// An entry of the journal; `None`: the last one that changed something.
    pub journal: Option<u64>,
    /// Both sides are live: what was taken from Studio goes back there too, or it would be taken again.
    pub both_live: bool,
}

/// An entry of the journal with its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recalled {
    /// Its id.
    pub id: u64,
    /// What it says.
    pub entry: Entry,
    /// What it needs.
    pub texts: HashMap<TextHash, String>,
    /// When it was done, for people.
    pub when: String,
}

impl Recalled {
    /// What was taken back, if any of it was.
    pub(super) fn undid(&self, status: SyncStatus) -> Option<String> {
        let part = match status {
            SyncStatus::Success => "",
            SyncStatus::Partial => "part of ",
            _ => return None,
        };
        Some(format!("undid {part}{} {}{} at {}", self.entry.what, self.id, self.entry.by(), self.when))
    }
}

/// The nodes that have to be looked up, and those of them of which all below is wanted.
pub(super) fn nodes(recalled: &Recalled, agreement: &Agreement) -> (Vec<NodeId>, Vec<NodeId>) {
    let (mut ids, mut subtrees) = (HashSet::new(), HashSet::new());
    for line in &recalled.entry.changes {
        let whole = line.patch_type != PatchType::Edit;
        let was = line.was.as_ref().map(|was| was.parent.child(&was.name, &line.class_name));
        let own = [look::node_of(line, agreement), was.as_ref().and_then(|key| agreement.node(key))];
        for id in own.into_iter().flatten() {
            ids.insert(id);
            if whole {
                subtrees.insert(id);
            }
        }
        let above = line.key.as_ref().and_then(InstanceKey::split_last).map(|(above, ..)| above);
        let parents = [above.as_ref(), line.was.as_ref().map(|was| &was.parent)];
        ids.extend(parents.into_iter().flatten().filter_map(|key| agreement.node(key)));
    }
    let sorted = |ids: HashSet<NodeId>| {
        let mut ids: Vec<NodeId> = ids.into_iter().collect();
        ids.sort_unstable();
        ids
    };
    (sorted(ids), sorted(subtrees))
}

/// What takes `recalled` back.
pub(super) fn decide(
    (recalled, both_live): (&Recalled, bool),
    facts: &[Fact],
    views: &HashMap<NodeId, NodeView>,
    agreement: &Agreement,
) -> Vec<Decision> {
    let back = Back { recalled, both_live, facts, views, agreement };
    let lines = recalled.entry.changes.iter().rev();
    // Of properties some may have been set where others were refused.
    let is_meant = |line: &&Line| {
        line.result.is_none_or(|result| {
            result == ChangeResult::Done || (result == ChangeResult::Failed && line.properties.is_some())
        })
    };
    let mut all: Vec<Decision> = lines.filter(is_meant).flat_map(|line| back.line(line)).collect();
    // The journal has what the file holds also where only Studio goes back.
    for decision in &mut all {
        let view = decision.change.id.and_then(|id| views.get(&id));
        decision.keeps.extend(view.and_then(|view| view.source.clone()));
    }
    all
}

/// Both sides are as they were before; only what counts as agreed is not.
pub(super) fn is_back(decision: &Decision) -> bool {
    !decision.is_resolved() && !decision.then.is_empty()
}

impl Back<'_> {
    /// What was done to its file is taken back in Studio too: both sides are live, or it was done on
    /// both.
    fn follows(&self, line: &Line) -> bool {
        self.both_live || line.direction == Direction::Merge
    }

    fn line(&self, line: &Line) -> Vec<Decision> {
        let before = [line.disk.0, line.studio.0].into_iter().flatten();
        let removed = line.below.iter().filter(|_| line.patch_type == PatchType::Remove);
        let mut before = before.chain(removed.filter_map(|one| one.studio_hash));
        if line.patch_type != PatchType::Rename && before.any(|hash| !self.recalled.texts.contains_key(&hash)) {
            return vec![Decision::unresolved(self.change(line), NOT_KEPT)];
        }
        if let Some(set) = &line.properties {
            return self.set_back(line, set);
        }
        match (line.direction, line.patch_type) {
            (_, PatchType::Remove) => self.bring_back(line),
            (_, PatchType::Edit) => self.edit(line).into_iter().collect(),
            (Direction::Pull, PatchType::Add) => self.remove_file(line).into_iter().collect(),
            (_, PatchType::Add) => self.unmake(line).into_iter().collect(),
            (_, PatchType::Rename) => self.rename(line).into_iter().collect(),
        }
    }
}
