//! What of one Studio is to be compared without anybody asking for it.
//!
//! Live mode is ordinary runs over a part of the tree: a file that was saved, or a script that a
//! person changed, is a part to be compared. One run at a time; what comes meanwhile waits.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::core::{
    calls::Moment,
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

/// More deletions in Studio than these, within [`AT_ONCE`], are held.
const MAX_DELETIONS: usize = 20;
const AT_ONCE: Duration = Duration::from_secs(2);

/// With `Large Changes` a person is asked about more pushes than these when Studio connects, as the
/// official plugin does unless it is told otherwise.
const LARGE: usize = 4;

const WAITS: &str = "it differed when Studio connected, and the plugin's setting `confirmationBehavior` asks first: call \
                     `sync`";

/// What waits to be compared, and what is being compared.
#[derive(Debug, Default)]
pub struct Live {
    pending: Part,
    running: Option<(RunId, Part)>,
    /// What nobody could decide, by its path.
    held: BTreeMap<(String, Option<OpId>), Held>,
    /// This plugin session has been compared by itself before.
    begun: bool,
    /// The comparison of the tree that was just taken in is not done; with more pushes than these
    /// it waits for a person.
    asking: Option<usize>,
    /// When a person deleted how many scripts.
    deletions: Vec<(Moment, usize)>,
}

/// What a person did in Studio.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edited {
    /// The plugin's number for it.
    pub seq: u64,
    /// Nodes that are not what the tree says.
    pub nodes: Vec<NodeId>,
    /// Nodes whose instances were deleted.
    pub deleted: Vec<NodeId>,
    /// Nodes below which something was made, or came to.
    pub below: Vec<NodeId>,
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
    pub fn edited(&mut self, now: Moment, Edited { seq, nodes, deleted, below }: Edited) {
        self.pending.nodes.extend(nodes.into_iter().chain(deleted.iter().copied()));
        self.pending.below.extend(below);
        if !deleted.is_empty() {
            self.deletions.push((now, deleted.len()));
        }
        self.pending.deleted.extend(deleted);
        self.pending.edits.insert(seq);
    }

    /// The plugin has taken the whole tree in, and its comparison follows. What differs is gone
    /// about at once, or waits for a person, as `behavior` says (the plugin's setting
    /// `confirmationBehavior`). `listed`: the project names this place as one that it serves.
    pub fn tree_ready(&mut self, behavior: &str, listed: bool) {
        let most = match behavior {
            "Never" => None,
            "Large Changes" => Some(LARGE),
            "Unlisted PlaceId" if listed => None,
            "Initial" if self.begun => None,
            _ => Some(0),
        };
        self.begun = true;
        self.asking = most;
        self.pending.all |= most.is_none();
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
    pub fn begin(&mut self, now: Moment, run: RunId) -> (Option<Scope>, Vec<NodeId>) {
        self.deletions.retain(|(at, _)| *at + AT_ONCE > now);
        let at_once: usize = self.deletions.iter().map(|(_, count)| count).sum();
        let part = std::mem::take(&mut self.pending);
        let scope = Scope { nodes: part.nodes.iter().copied().collect(), below: part.below.iter().copied().collect() };
        let few = at_once.max(part.deleted.len()) <= MAX_DELETIONS;
        let deleted = Some(&part.deleted).filter(|_| few);
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
        let planned = receipt.changes.iter().filter(|change| change.result == ChangeResult::Planned).count();
        let asked = self.asking.take_if(|_| whole);
        let waits = asked.is_some_and(|most| planned > most);
        self.pending.all |= asked.is_some() && planned > 0 && !waits;
        self.release(receipt, whole);
        for change in &receipt.changes {
            let change = match change.result {
                ChangeResult::Planned if waits => change.clone().unresolved(WAITS),
                ChangeResult::Done | ChangeResult::Planned => continue,
                _ => change.clone(),
            };
            let names = change.id.map(OpId::from).into_iter().chain(change.temp_id.clone().map(OpId::from));
            let seen = names.filter_map(|name| Some((name.clone(), *seen.get(&name)?))).collect();
            self.held.insert((change.path.clone(), name_of(&change)), Held { change, seen });
        }
    }

    /// What the run dealt with is held no more.
    fn release(&mut self, receipt: &Receipt, whole: bool) {
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
            hello if !edits || hello.one_shot_sync => LiveMode::Off,
            hello if hello.two_way_sync => LiveMode::TwoWay,
            _ => LiveMode::Push,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deleted(live: &mut Live, seconds: u64, count: u128) -> usize {
        let now = Duration::from_secs(seconds);
        let deleted: Vec<NodeId> = (0..count).map(|id| NodeId(u128::from(seconds) << 64 | id)).collect();
        live.edited(now, Edited { seq: seconds, deleted, ..Edited::default() });
        let (_, followed) = live.begin(now, RunId::from("run"));
        live.ended();
        followed.len()
    }

    #[test]
    fn more_than_twenty_deletions_within_two_seconds_are_not_followed() {
        let mut live = Live::default();
        assert_eq!(deleted(&mut live, 1, 20), 20);
        assert_eq!(deleted(&mut live, 2, 1), 0, "with those of a second ago");
        assert_eq!(deleted(&mut live, 4, 20), 20);
        assert_eq!(deleted(&mut Live::default(), 9, 21), 0);
    }

    /// What a comparison after the tree was taken in comes to, with so many pushes.
    fn connected(behavior: &str, listed: bool, again: bool, pushes: usize) -> (bool, usize) {
        let mut live = Live::default();
        if again {
            live.tree_ready("Never", listed);
            live.begin(Duration::ZERO, RunId::from("first"));
            live.ended();
        }
        live.tree_ready(behavior, listed);
        let change: Change = serde_json::from_value(serde_json::json!({
            "path": "Root.A", "className": "ModuleScript", "direction": "push", "patchType": "Edit", "result": "planned",
        }))
        .expect("a change");
        let changes = (0..pushes).map(|push| Change { path: format!("Root.{push}"), ..change.clone() }).collect();
        live.note(&Receipt::new(crate::core::sync::SyncStatus::Dryrun, 1, changes, None), true, &Seen::new());
        (live.is_due(), live.held().count())
    }

    #[test]
    fn what_differs_when_studio_connects_waits_where_the_plugins_setting_asks_first() {
        assert_eq!(connected("Initial", true, false, 2), (false, 2));
        assert_eq!(connected("Initial", true, true, 2), (true, 0), "the second time nobody is asked");
        assert_eq!(connected("Always", true, true, 2), (false, 2));
        assert_eq!(connected("Unlisted PlaceId", false, true, 1), (false, 1));
        assert_eq!(connected("Unlisted PlaceId", true, false, 9), (true, 0));
        assert_eq!(connected("Large Changes", false, false, 5), (false, 5));
        assert_eq!(connected("Large Changes", false, false, 4), (true, 0));
        assert_eq!(connected("Never", false, false, 9), (true, 0));
        assert_eq!(connected("something newer", false, false, 1), (false, 1));
    }
}
