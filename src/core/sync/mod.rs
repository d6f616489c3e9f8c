//! One sync run as a state machine: it is told what happened and says what comes next.
//!
//! ```text
//! start -> CatchUp -> caught_up -> Compare -> compared -> Look -> looked -> Apply -> applied -> Done
//! ```
//!
//! A run that finds nothing to do, or may not do it, is `Done` earlier. Nothing in the DataModel
//! changes before `Apply`.

mod decide;
mod overrides;
mod receipt;

use std::collections::{HashMap, HashSet};

pub use decide::{Decision, NodeView, decide};
pub use overrides::Override;
pub use receipt::{Change, ChangeResult, Direction, PatchType, Receipt, SyncStatus};

use super::{
    agreement::{Agreement, Comparison},
    ids::{NodeId, OpId, RunId},
    protocol::{Fact, FactKind, NewNode, OpResult, OpStatus, PlanOp, SyncMode},
};

/// What the caller of `sync` asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncArgs {
    /// How to treat what is found.
    pub mode: SyncMode,
    /// Only these files and folders, relative to the project with `/`; `None` is everything.
    pub paths: Option<Vec<String>>,
    /// Decisions taken beforehand.
    pub overrides: Vec<Override>,
}

/// Why a run that found something unresolved ended, and the way on.
const NOTHING_CHANGED: &str = "something is unresolved, so nothing was changed: settle each unresolved line as it \
                               says, or sync the rest by `paths`";

/// One run.
#[derive(Debug)]
pub struct Run {
    id: RunId,
    args: SyncArgs,
    cursor: u32,
    comparison: Comparison,
    facts: Vec<Fact>,
    decisions: Vec<Decision>,
}

/// What a run wants next.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Have the serve session read the disk now, then [`Run::caught_up`].
    CatchUp {
        /// Only these, or everything.
        paths: Option<Vec<String>>,
    },
    /// Ask the plugin to compare, then [`Run::compared`].
    Compare {
        /// As of this version of the tree.
        cursor: u32,
    },
    /// Look these nodes up in the tree, then [`Run::looked`].
    Look {
        /// Those that differ.
        ids: Vec<NodeId>,
        /// Of these the whole subtree is wanted.
        subtrees: Vec<NodeId>,
    },
    /// Ask the plugin to carry out a plan, then [`Run::applied`].
    Apply {
        /// Its steps.
        ops: Vec<PlanOp>,
    },
    /// The run has ended.
    Done(Receipt),
}

impl Run {
    /// Begin a run.
    pub fn start(id: RunId, args: SyncArgs) -> (Self, Step) {
        let step = Step::CatchUp { paths: args.paths.clone() };
        let run =
            Self { id, args, cursor: 0, comparison: Comparison::default(), facts: Vec::new(), decisions: Vec::new() };
        (run, step)
    }

    /// The run's name.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The caller's wish.
    pub fn mode(&self) -> SyncMode {
        self.args.mode
    }

    /// The tree holds what the disk held when the run began.
    pub fn caught_up(&mut self, cursor: u32, agreement: &Agreement) -> Step {
        self.cursor = cursor;
        self.comparison = agreement.unconfirmed();
        Step::Compare { cursor }
    }

    /// The plugin has compared, with the tree as of `cursor` (`None`: as it was asked to). With
    /// another version the facts hold all the same, but what they leave out proves nothing.
    pub fn compared(&mut self, cursor: Option<u32>, facts: Vec<Fact>, agreement: &mut Agreement) -> Step {
        if cursor.is_some_and(|cursor| cursor != self.cursor) {
            self.comparison = Comparison::default();
        }
        if facts.is_empty() {
            agreement.confirm(std::mem::take(&mut self.comparison), |_| false);
            return Step::Done(Receipt::empty(self.cursor, self.args.mode));
        }
        self.facts = facts;
        let of_kind = |wanted: &[FactKind]| -> Vec<NodeId> {
            self.facts.iter().filter(|fact| wanted.contains(&fact.kind)).filter_map(|fact| fact.id).collect()
        };
        Step::Look { ids: of_kind(&[FactKind::Differs, FactKind::Missing]), subtrees: of_kind(&[FactKind::Missing]) }
    }

    /// The nodes that differ, as the tree has them. Those that are gone are absent.
    pub fn looked(&mut self, views: HashMap<NodeId, NodeView>, agreement: &mut Agreement) -> Step {
        let facts = std::mem::take(&mut self.facts);
        let reported = reported_ids(&facts, &views);
        agreement.confirm(std::mem::take(&mut self.comparison), |id| reported.contains(&id));
        self.decisions = facts
            .into_iter()
            .filter_map(|fact| {
                let view = fact.id.and_then(|id| views.get(&id));
                decide(fact, view, agreement)
            })
            .filter(|decision| self.in_scope(&decision.change))
            .collect();
        let unresolved = self.decisions.iter().any(|decision| decision.op.is_none());
        match self.args.mode {
            _ if self.decisions.is_empty() => Step::Done(self.nothing_to_do()),
            SyncMode::Dryrun => self.end(SyncStatus::Dryrun, "nothing was changed"),
            SyncMode::Fastfail if unresolved => self.end(SyncStatus::FastfailUnresolved, NOTHING_CHANGED),
            SyncMode::Manual => {
                self.end(SyncStatus::Rejected, "manual mode asks a person, and nobody can be asked here yet")
            }
            SyncMode::Standard if unresolved => self.end(SyncStatus::Rejected, NOTHING_CHANGED),
            SyncMode::Standard | SyncMode::Fastfail => {
                Step::Apply { ops: self.decisions.iter_mut().filter_map(|decision| decision.op.take()).collect() }
            }
        }
    }

    /// The plugin has carried out the plan.
    pub fn applied(&mut self, results: &[OpResult], agreement: &mut Agreement) -> Step {
        let by_id: HashMap<&OpId, &OpResult> = results.iter().map(|result| (&result.id, result)).collect();
        let mut changes = Vec::with_capacity(self.decisions.len());
        for decision in std::mem::take(&mut self.decisions) {
            let mut change = decision.change;
            change.note(change.id.and_then(|id| by_id.get(&OpId::Node(id)).copied()));
            if change.result == ChangeResult::Done {
                for (id, hash) in decision.agrees {
                    agreement.agree(id, hash);
                }
            }
            changes.push(change);
        }
        let all_done = changes.iter().all(|change| change.result == ChangeResult::Done);
        let any_done = changes.iter().any(|change| change.result == ChangeResult::Done);
        let status = match (all_done, any_done) {
            (true, _) => SyncStatus::Success,
            (false, true) => SyncStatus::Partial,
            (false, false) => SyncStatus::Error,
        };
        Step::Done(Receipt::new(status, self.cursor, changes, None))
    }

    fn nothing_to_do(&self) -> Receipt {
        let mut receipt = Receipt::empty(self.cursor, self.args.mode);
        if self.args.paths.is_some() {
            receipt.message = Some("nothing that `paths` names differs; there is nothing to do".into());
        }
        receipt
    }

    fn end(&mut self, status: SyncStatus, message: &str) -> Step {
        let changes = std::mem::take(&mut self.decisions).into_iter().map(|decision| decision.change).collect();
        Step::Done(Receipt::new(status, self.cursor, changes, Some(message.to_owned())))
    }

    fn in_scope(&self, change: &Change) -> bool {
        let Some(paths) = &self.args.paths else { return true };
        let Some(file) = &change.fs_path else { return false };
        // A new file reaches Studio with the new folder that it lies in.
        let folder = (change.patch_type == PatchType::Add).then(|| folder_of(file));
        paths.iter().any(|path| {
            let path = path.trim_end_matches('/');
            path == "." || path.is_empty() || is_within(file, path) || folder.is_some_and(|new| is_within(path, new))
        })
    }
}

/// `path` is `parent` or lies below it.
fn is_within(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The folder that an instance stands for, if it has one: its own, or that of its `init` file.
fn folder_of(file: &str) -> &str {
    match file.rsplit_once('/') {
        Some((folder, name)) if name.starts_with("init.") => folder,
        _ => file,
    }
}

/// The nodes that a comparison did not find equal: those it named, and all below a missing one.
fn reported_ids(facts: &[Fact], views: &HashMap<NodeId, NodeView>) -> HashSet<NodeId> {
    fn add_subtree(node: &NewNode, ids: &mut HashSet<NodeId>) {
        ids.insert(node.id);
        node.children.iter().for_each(|child| add_subtree(child, ids));
    }
    let mut ids: HashSet<NodeId> = facts.iter().filter_map(|fact| fact.id).collect();
    views.values().filter_map(|view| view.subtree.as_ref()).for_each(|node| add_subtree(node, &mut ids));
    ids
}

impl Change {
    /// Take over what the plugin says became of it.
    fn note(&mut self, result: Option<&OpResult>) {
        let Some(result) = result else {
            self.result = ChangeResult::Failed;
            self.reason = Some("the plugin did not say what became of it".into());
            return;
        };
        self.studio_hash = result.hash.or(self.studio_hash);
        self.reason = result.error.clone().or(self.reason.take());
        self.result = match result.status {
            OpStatus::Done if result.hash != self.disk_hash => {
                self.reason = Some("Studio did not name the text that was sent as the one that it has now".into());
                ChangeResult::Failed
            }
            OpStatus::Done => ChangeResult::Done,
            OpStatus::Guard => ChangeResult::Guard,
            OpStatus::Failed => ChangeResult::Failed,
            OpStatus::Skipped => ChangeResult::Skipped,
        };
    }
}

#[cfg(test)]
mod tests;
