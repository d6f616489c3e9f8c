//! What of one Studio is to be compared without anybody asking for it.
//!
//! Live mode is ordinary runs over a part of the tree: a file that was saved, or a script that a
//! person changed, is a part to be compared. One run at a time; what comes meanwhile waits.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::{
    ids::{NodeId, OpId, RunId},
    protocol::{PatchOp, Role, Scope},
    review::{Seen, name_of},
    studios::Studio,
    sync::{Change, ChangeResult, Receipt},
    text::TextHash,
};

/// Which changes are carried over as they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveMode {
    /// None: only `sync` changes anything.
    Off,
    /// Those of the files.
    Push,
    /// Those of both sides.
    TwoWay,
}

/// Deletions in Studio that are followed at once; more of them are held.
const MAX_DELETIONS: usize = 20;

/// What waits to be compared, and what is being compared.
#[derive(Debug, Default)]
pub struct Live {
    pending: Part,
    running: Option<(RunId, Part)>,
    /// What nobody could decide, by its path.
    held: BTreeMap<(String, Option<OpId>), Held>,
    /// This plugin session has been compared by itself before.
    begun: bool,
}

/// What nobody could decide.
#[derive(Debug)]
struct Held {
    change: Change,
    /// What was seen of it; none: it cannot be chosen about without another look.
    seen: Vec<(OpId, TextHash)>,
}

/// A part of the tree.
#[derive(Debug, Clone, Default)]
struct Part {
    /// Everything.
    all: bool,
    nodes: BTreeSet<NodeId>,
    below: BTreeSet<NodeId>,
    /// Deleted by a person in Studio.
    deleted: BTreeSet<NodeId>,
    /// The plugin's frames that told of it.
    edits: BTreeSet<u64>,
}

impl Part {
    fn is_empty(&self) -> bool {
        !self.all && self.nodes.is_empty() && self.below.is_empty() && self.edits.is_empty()
    }

    fn add(&mut self, other: Self) {
        self.all |= other.all;
        self.nodes.extend(other.nodes);
        self.below.extend(other.below);
        self.deleted.extend(other.deleted);
        self.edits.extend(other.edits);
    }
}

impl Live {
    /// The tree is going to change by `ops`. `place` gives where a node stands: its parent, and
    /// whether it stands there with the same name and class already.
    pub fn patching(
        &mut self,
        ops: &[PatchOp],
        parent: impl Fn(NodeId) -> Option<NodeId>,
        stays: impl Fn(&PatchOp) -> bool,
    ) {
        for op in ops {
            match op {
                PatchOp::Put { node } => {
                    self.pending.nodes.insert(node.id);
                    if !stays(op) {
                        self.pending.below.extend(parent(node.id).into_iter().chain(node.parent));
                    }
                }
                PatchOp::Drop { id } => self.pending.below.extend(parent(*id)),
            }
        }
    }

    /// A person changed these in Studio.
    pub fn edited(&mut self, seq: u64, nodes: Vec<NodeId>, deleted: Vec<NodeId>) {
        self.pending.nodes.extend(nodes.into_iter().chain(deleted.iter().copied()));
        self.pending.deleted.extend(deleted);
        self.pending.edits.insert(seq);
    }

    /// The plugin has taken the whole tree in. `unasked`: what differs may be decided at once, even
    /// the first time.
    pub fn tree_ready(&mut self, unasked: bool) {
        self.pending.all |= unasked || self.begun;
        self.begun = true;
    }

    /// Nothing is compared and nothing waits.
    pub fn is_settled(&self) -> bool {
        self.running.is_none() && self.pending.is_empty()
    }

    /// Something waits, and nothing is in its way.
    pub fn is_due(&self) -> bool {
        self.running.is_none() && !self.pending.is_empty()
    }

    /// The run that is under way.
    pub fn running(&self) -> Option<&RunId> {
        self.running.as_ref().map(|(id, _)| id)
    }

    /// `run` compares what waits: this part, with these deletions.
    pub fn begin(&mut self, run: RunId) -> (Option<Scope>, Vec<NodeId>) {
        let part = std::mem::take(&mut self.pending);
        let scope = Scope { nodes: part.nodes.iter().copied().collect(), below: part.below.iter().copied().collect() };
        let deleted = Some(&part.deleted).filter(|deleted| deleted.len() <= MAX_DELETIONS);
        let begun = ((!part.all).then_some(scope), deleted.into_iter().flatten().copied().collect());
        self.running = Some((run, part));
        begun
    }

    /// The run has ended. Gives the plugin's frames that it dealt with.
    pub fn ended(&mut self) -> Vec<u64> {
        self.running.take().map(|(_, part)| part.edits.into_iter().collect()).unwrap_or_default()
    }

    /// The run has ended and did not get to its end: its part waits again.
    pub fn interrupted(&mut self) {
        if let Some((_, part)) = self.running.take() {
            self.pending.add(part);
        }
    }

    /// What a run came to, and what it had seen. `whole`: it was about everything.
    pub fn note(&mut self, receipt: &Receipt, whole: bool, seen: &Seen) {
        let told: BTreeSet<&str> = receipt
            .changes
            .iter()
            .filter(|change| change.result != ChangeResult::Planned)
            .map(|change| change.path.as_str())
            .collect();
        // What was chosen and does not differ any more has no change.
        let gone: BTreeSet<&str> = receipt.rejected.iter().map(|rejected| rejected.id.as_str()).collect();
        self.held.retain(|(path, name), _| {
            let is_gone = name.as_ref().is_some_and(|name| gone.contains(name.to_string().as_str()));
            !whole && !told.contains(path.as_str()) && !is_gone
        });
        for change in &receipt.changes {
            if matches!(change.result, ChangeResult::Done | ChangeResult::Planned) {
                continue;
            }
            let names = change.id.map(OpId::from).into_iter().chain(change.temp_id.clone().map(OpId::from));
            let seen = names.filter_map(|name| Some((name.clone(), *seen.get(&name)?))).collect();
            let held = Held { change: change.clone(), seen };
            self.held.insert((change.path.clone(), name_of(change)), held);
        }
    }

    /// What nobody could decide, by path.
    pub fn held(&self) -> impl Iterator<Item = &Change> {
        self.held.values().map(|held| &held.change)
    }

    /// What a person could choose about, and what was seen of it.
    pub fn standing(&self) -> (Vec<Change>, Seen) {
        let known = || self.held.values().filter(|held| !held.seen.is_empty());
        let changes = known().map(|held| held.change.clone()).collect();
        (changes, known().flat_map(|held| held.seen.iter().cloned()).collect())
    }
}

impl Studio {
    /// Which changes are carried over as they are made.
    pub fn live_mode(&self) -> LiveMode {
        let edits = self.hello.level1.as_ref().is_some_and(|hello| hello.role == Role::Edit);
        match &self.hello {
            // Who wants to be asked about each change cannot be: there is no view for it yet.
            hello if !edits || hello.one_shot_sync || hello.confirmation_behavior == "Always" => LiveMode::Off,
            hello if hello.two_way_sync => LiveMode::TwoWay,
            _ => LiveMode::Push,
        }
    }
}
