//! One sync run as a state machine: it is told what happened and says what comes next.
//!
//! ```text
//! start -> CatchUp -> caught_up -> Compare -> compared -> Look -> looked
//!   -> Read, History -> knows_history              is a text without a base an old one?
//!   -> Fetch -> fetched -> Merge -> merged        what Studio's texts are needed for
//!   -> Check -> checked                           could the files be written?
//!   -> Begin -> begun                             the journal knows before anything changes
//!   -> Apply -> applied -> Write -> written       Studio first, then the files
//!   -> Conclude -> concluded -> Done
//! ```
//!
//! In manual mode a run ends with a question (`Ask`) where it would begin its entry; the answer is
//! another run, with what a person chose. A run that finds nothing to do, or may not do it, is `Done` earlier; steps with nothing to do
//! are left out. Nothing changes anywhere before `Apply`.

mod answered;
mod args;
mod blocked;
mod checking;
mod deciding;
mod decision;
mod describing;
mod earlier;
mod ending;
mod merging;
mod overrides;
mod plan;
mod properties;
mod receipt;
mod removals;
mod renames;
mod scope;
mod taken;
mod undo;
mod verdicts;
mod words;
mod writes;

use std::collections::{HashMap, HashSet, VecDeque};

pub use args::SyncArgs;
pub use decision::{Decision, NodeView, Rules};
pub use earlier::{Asked, Version};
pub use merging::{MergeJob, Merged};
pub use overrides::{Forced, Override, OverrideDirection, Resolution};
pub use plan::{Begun, Draft, Wrote};
pub use receipt::{Change, ChangeResult, Direction, PatchType, Receipt, Rejected, SyncStatus};
pub use scope::{Cleared, Unasked};
pub use undo::{Recalled, Undo};
pub use writes::FileWrite;

use super::{
    agreement::{Agreement, Comparison},
    ids::{NodeId, OpId, RunId, TempId},
    journal::Entry,
    protocol::{Fact, FactKind, OpResult, PlanOp, Scope, SyncMode},
    review::Seen,
};

/// One run.
#[derive(Debug)]
pub struct Run {
    id: RunId,
    args: SyncArgs,
    rules: Rules,
    cursor: u32,
    comparison: Comparison,
    facts: Vec<Fact>,
    views: HashMap<NodeId, NodeView>,
    decisions: Vec<Decision>,
    rejected: Vec<Rejected>,
    to_fetch: VecDeque<OpId>,
    /// How many texts are on their way.
    fetching: usize,
    journal: Option<(u64, Entry)>,
    ended: Option<SyncStatus>,
    recalled: Option<Recalled>,
    seen: Seen,
    questions: earlier::Questions,
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
        /// Only this part.
        scope: Option<Scope>,
    },
    /// Read an entry of the journal, then [`Run::recalled`].
    Recall(Undo),
    /// Look these nodes up in the tree, then [`Run::looked`].
    Look {
        /// Those that differ, and those that stand above what only Studio has.
        ids: Vec<NodeId>,
        /// Of these the whole subtree is wanted.
        subtrees: Vec<NodeId>,
    },
    /// Ask the plugin for these texts, as with [`Step::Fetch`]: they are asked about next.
    Read(Vec<OpId>),
    /// Ask which of these their files had before, by git or by us, then [`Run::knows_history`].
    History(Vec<Asked>),
    /// Ask the plugin for these texts, then [`Run::fetched`] for each. May be none: others are
    /// still on their way.
    Fetch(Vec<OpId>),
    /// Ask the plugin for an instance that only Studio has, then [`Run::described`].
    Describe {
        /// Which.
        temp_id: TempId,
        /// The classes that are in it.
        classes: Vec<String>,
    },
    /// Merge texts, then [`Run::merged`].
    Merge(Vec<MergeJob>),
    /// Say whether these files could be written, then [`Run::checked`].
    Check(Vec<FileWrite>),
    /// Begin an entry of the journal, then [`Run::begun`].
    Begin(Draft),
    /// Ask the plugin to carry out a plan, then [`Run::applied`].
    Apply {
        /// Its steps.
        ops: Vec<PlanOp>,
        /// A step that fails takes back all of them.
        all_or_nothing: bool,
    },
    /// Write files, then [`Run::written`].
    Write(Vec<FileWrite>),
    /// Finish the entry, then [`Run::concluded`]. What was agreed is to be kept first.
    Conclude {
        /// Its id.
        journal: u64,
        /// With what became of each change.
        entry: Entry,
    },
    /// Ask a person. The run is over; `again`, with the answer, is another one.
    Ask {
        /// What was found, as the answer if nobody can be asked or nobody answers.
        receipt: Receipt,
        /// What the run was called with.
        again: Box<SyncArgs>,
    },
    /// The run has ended.
    Done(Receipt),
}

/// How many texts are asked for at a time.
const FETCHES: usize = 8;

impl Run {
    /// Begin a run.
    pub fn start(id: RunId, args: SyncArgs, alone: bool) -> (Self, Step) {
        let step = Step::CatchUp { paths: args.paths.clone() };
        let rules = args.rules(alone);
        let run = Self {
            id,
            args,
            rules,
            cursor: 0,
            comparison: Comparison::default(),
            facts: Vec::new(),
            views: HashMap::new(),
            decisions: Vec::new(),
            rejected: Vec::new(),
            to_fetch: VecDeque::new(),
            fetching: 0,
            journal: None,
            ended: None,
            recalled: None,
            seen: Seen::new(),
            questions: earlier::Questions::default(),
        };
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

    /// It may change something on either side.
    pub fn may_change(&self) -> bool {
        self.args.mode != SyncMode::Dryrun
    }

    fn scope(&self) -> Option<&Scope> {
        self.args.unasked.as_ref()?.scope.as_ref()
    }

    /// It takes an earlier run back.
    pub fn is_undo(&self) -> bool {
        self.args.undo.is_some()
    }

    /// It is about everything.
    pub fn is_whole(&self) -> bool {
        let chosen = self.args.chosen.as_ref().is_some_and(|chosen| chosen.is_only());
        self.scope().is_none() && self.args.paths.is_none() && self.args.resolution.is_none() && !chosen
    }

    /// The tree holds what the disk held when the run began.
    pub fn caught_up(&mut self, cursor: u32, agreement: &Agreement) -> Step {
        self.cursor = cursor;
        let comparison = agreement.unconfirmed();
        self.comparison = match self.scope() {
            Some(scope) => comparison.only(&scope.nodes),
            None => comparison,
        };
        Step::Compare { cursor, scope: self.scope().cloned() }
    }

    /// The plugin has compared, with the tree as of `cursor` (`None`: as it was asked to). With
    /// another version the facts hold all the same, but what they leave out proves nothing.
    pub fn compared(&mut self, cursor: Option<u32>, facts: Vec<Fact>, agreement: &mut Agreement) -> Step {
        if cursor.is_some_and(|cursor| cursor != self.cursor) {
            self.comparison = Comparison::default();
        }
        if let Some(undo) = self.args.undo.clone() {
            self.facts = facts;
            return Step::Recall(undo);
        }
        if facts.is_empty() {
            agreement.confirm(std::mem::take(&mut self.comparison), |_| false);
            self.rejected = answered::of_args(&mut self.args).finish();
            self.rejected.extend(answered::settled_meanwhile(self.args.chosen.as_deref(), &[]));
            return self.nothing_to_do();
        }
        self.facts = facts;
        let of_kind = |wanted: &[FactKind]| -> Vec<NodeId> {
            self.facts.iter().filter(|fact| wanted.contains(&fact.kind)).filter_map(|fact| fact.id).collect()
        };
        let mut ids = of_kind(&[FactKind::Differs, FactKind::Missing]);
        let above: HashSet<NodeId> = self.facts.iter().filter_map(|fact| fact.parent).collect();
        let mut above: Vec<NodeId> = above.into_iter().filter(|id| !ids.contains(id)).collect();
        above.sort_unstable();
        ids.extend(above);
        Step::Look { ids, subtrees: of_kind(&[FactKind::Missing]) }
    }

    /// The entry that is to be taken back.
    pub fn recalled(&mut self, recalled: Result<Recalled, String>, agreement: &Agreement) -> Step {
        match recalled {
            Ok(recalled) => {
                let (ids, subtrees) = undo::nodes(&recalled, agreement);
                self.recalled = Some(recalled);
                Step::Look { ids, subtrees }
            }
            Err(reason) => self.end(SyncStatus::Error, &reason),
        }
    }

    pub(super) fn go_on(&mut self, agreement: &Agreement) -> Step {
        let resolved = self.decisions.iter().filter(|decision| decision.is_resolved()).count();
        let unresolved = self.decisions.len() - resolved;
        match self.args.mode {
            SyncMode::Dryrun => self.end(SyncStatus::Dryrun, "nothing was changed"),
            SyncMode::Fastfail if unresolved > 0 => {
                self.end(SyncStatus::FastfailUnresolved, words::nothing_changed(self.recalled.is_some()))
            }
            SyncMode::Fastfail if !self.rejected.is_empty() => {
                self.end(SyncStatus::Rejected, "an override was rejected, so nothing was changed")
            }
            SyncMode::Manual if self.asks_first() => self.ask(),
            SyncMode::Standard | SyncMode::Manual if resolved == 0 => {
                self.end(SyncStatus::Rejected, words::NOTHING_RESOLVED)
            }
            SyncMode::Fastfail | SyncMode::Standard | SyncMode::Manual => self.begin(agreement),
        }
    }

    fn begin(&mut self, agreement: &Agreement) -> Step {
        let undoes = self.undoes();
        let mut draft = plan::draft(&mut self.decisions, agreement, undoes);
        draft.entry.who = self.who(&draft.entry);
        Step::Begin(draft)
    }

    /// The journal has the entry, or cannot keep one.
    pub fn begun(&mut self, begun: Begun, agreement: &mut Agreement) -> Step {
        match begun {
            Begun::Entry(id, entry) => self.journal = Some((id, entry)),
            Begun::Lacks(texts) => return self.fetch_lost(&texts, agreement),
            Begun::Failed(reason) => {
                let reason = format!("the journal could not be written, so nothing was changed: {reason}");
                return self.end(SyncStatus::Error, &reason);
            }
        }
        let ops = plan::ops(&self.decisions);
        if ops.is_empty() {
            return self.write(agreement);
        }
        Step::Apply { ops, all_or_nothing: self.args.mode == SyncMode::Fastfail }
    }

    /// The plugin has carried out the plan.
    pub fn applied(&mut self, results: &[OpResult], agreement: &mut Agreement) -> Step {
        plan::note_results(&mut self.decisions, results);
        let failed =
            |decision: &Decision| !matches!(decision.change.result, ChangeResult::Planned | ChangeResult::Unresolved);
        if self.args.mode == SyncMode::Fastfail && self.decisions.iter().any(failed) {
            for decision in self.decisions.iter_mut().filter(|decision| decision.write.is_some()) {
                decision.write = None;
                decision.change.ended(ChangeResult::Skipped, "another change failed");
            }
        }
        self.write(agreement)
    }

    fn write(&mut self, agreement: &mut Agreement) -> Step {
        let writes = plan::writes(&self.decisions);
        if writes.is_empty() { self.conclude(agreement) } else { Step::Write(writes) }
    }

    /// The files were written, or not.
    pub fn written(&mut self, wrote: Vec<Wrote>, agreement: &mut Agreement) -> Step {
        plan::note_writes(&mut self.decisions, wrote);
        self.conclude(agreement)
    }

    fn conclude(&mut self, agreement: &mut Agreement) -> Step {
        let (all, any) = plan::settle(&mut self.decisions, agreement);
        self.ended = Some(match (all, any) {
            (true, _) => SyncStatus::Success,
            (false, true) => SyncStatus::Partial,
            (false, false) => SyncStatus::Error,
        });
        match &self.journal {
            Some((journal, entry)) => {
                Step::Conclude { journal: *journal, entry: plan::finished(entry.clone(), &self.decisions) }
            }
            None => self.concluded(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests;
