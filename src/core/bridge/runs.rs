//! Sync runs: the bridge carries out what each [`Run`] wants next.

use std::collections::HashMap;

use super::{
    Answer, Bridge, Effect, Waiter, Waiting, What, Work,
    calls::{ledger_deadline, unwrap_outcome},
    operations::Ran,
    read::{Applied, Compared, Described, StudioScript},
};
use crate::core::{
    calls::Moment,
    classes::kept,
    error::ToolError,
    ids::{InstanceId, NodeId, OpId, RequestId, RunId},
    live::LiveMode,
    protocol::{Fact, PluginResult, RequestBody},
    studios::{LinkId, StudioKey, TreeState},
    sync::{NodeView, Run, Step, SyncArgs},
};

/// A run and where it belongs.
#[derive(Debug)]
pub(super) struct ActiveRun {
    pub(super) run: Run,
    pub(super) studio: StudioKey,
    /// Until when its caller waits.
    pub(super) deadline: Moment,
    pub(super) stage: Stage,
    /// It may go on, with this version of the tree, once the plugin has taken the tree in.
    pub(super) parked: Option<u32>,
    /// The ledger's entry for the caller, which may be over before the run is; `None` for a run that
    /// nobody called.
    pub(super) entry: Option<RequestId>,
}

/// How far a run is.
#[derive(Debug)]
pub(super) enum Stage {
    /// It waits for its turn, and begins with this.
    Waits(Step),
    /// It looks at both sides.
    Compares,
    /// Its plan waits for the changes before it.
    Plans,
    /// It may have changed something.
    Changes,
}

impl ActiveRun {
    /// A run that nobody called.
    pub(super) fn unasked(run: Run, studio: StudioKey, deadline: Moment) -> Self {
        Self { run, studio, deadline, stage: Stage::Compares, parked: None, entry: None }
    }
}

impl Bridge {
    pub(super) fn start_run(
        &mut self,
        deadline: Moment,
        studio: StudioKey,
        entry: RequestId,
        who: Waiter,
        mut args: SyncArgs,
    ) {
        if !self.studios.get(studio).is_some_and(|studio| studio.is_level1()) {
            return self.relay_sync(deadline, studio, entry, who, args);
        }
        // Not the entry's id: the plugin learns the run's, and may name it in a result.
        let found = self.studios.get(studio);
        let alone = found.is_some_and(|studio| studio.is_alone());
        if let Some(undo) = &mut args.undo {
            undo.both_live = found.is_some_and(|studio| studio.live_mode() == LiveMode::TwoWay);
        }
        let (run, first) = Run::start(RunId::from((self.new_id)().as_str()), args, alone);
        let id = run.id().clone();
        let what = What::Run(id.clone());
        self.calls.open(entry.clone(), ledger_deadline(&who, deadline), Waiting { studio, who, what });
        let stage = Stage::Waits(first);
        let active = ActiveRun { stage, entry: Some(entry), ..ActiveRun::unasked(run, studio, deadline) };
        self.runs.insert(id.clone(), active);
        self.run_comes(&id);
    }

    /// The plugin has paired the tree: what it does not report is equal on both sides. The rest of
    /// a run is needed for this, without a caller and without a plan.
    pub(super) fn tree_ready(
        &mut self,
        now: Moment,
        link: LinkId,
        studio: StudioKey,
        cursor: u32,
        (parts, last): (u32, Vec<Fact>),
    ) {
        let Some(found) = self.studios.get_mut(studio) else { return };
        let (known, facts) = (found.agreement.clone(), found.gathered.all(None, parts, last));
        if !self.release_patches(link, studio, cursor) {
            return self.note(format!("ignored a treeReady at {cursor}, which was not the tree that was sent"));
        }
        let Some(facts) = facts else {
            let name = self.studio_name(studio);
            self.note(format!("{name} differs in more than could be taken in; nothing is taken for equal"));
            return self.resume_parked(now, studio);
        };
        self.live_tree_ready(studio);
        let id = RunId::from((self.new_id)().as_str());
        let (mut run, _) = Run::start(id.clone(), SyncArgs::comparison(), false);
        run.caught_up(cursor, &known);
        self.runs.insert(id.clone(), ActiveRun::unasked(run, studio, Moment::MAX));
        self.advance(now, &id, |run, agreement| run.compared(Some(cursor), facts, agreement));
        self.resume_parked(now, studio);
    }

    /// Runs that waited for the tree go on, with the version the plugin has by now.
    pub(super) fn resume_parked(&mut self, now: Moment, studio: StudioKey) {
        let parked = |active: &ActiveRun| active.parked.filter(|_| active.studio == studio);
        let mut waiting: Vec<(RunId, u32)> =
            self.runs.iter().filter_map(|(id, active)| Some((id.clone(), parked(active)?))).collect();
        waiting.sort();
        for (id, cursor) in waiting {
            self.caught_up(now, &id, Ok(cursor));
        }
    }

    pub(super) fn caught_up(&mut self, now: Moment, id: &RunId, result: Result<u32, ToolError>) {
        if !self.runs.contains_key(id) {
            return self.relay_caught_up(now, id, result);
        }
        let cursor = match result {
            Ok(cursor) => cursor,
            Err(error) => return self.run_failed(id, error),
        };
        let Some(active) = self.runs.get_mut(id) else { return };
        let studio = self.studios.get(active.studio);
        // What was not paired yet cannot be compared, and nothing is decided without the bases.
        // What live mode has under way comes first.
        let waits = studio.is_some_and(|studio| {
            let live = studio.live.running().is_some_and(|run| run != id);
            matches!(studio.tree, TreeState::Sending { .. }) || !studio.recalled || live
        });
        active.parked = waits.then_some(cursor);
        if active.parked.is_none() {
            self.advance(now, id, |run, agreement| run.caught_up(cursor, agreement));
        }
    }

    pub(super) fn looked(&mut self, now: Moment, id: &RunId, views: HashMap<NodeId, NodeView>) {
        self.advance(now, id, |run, agreement| run.looked(views, agreement));
    }

    pub(super) fn run_result(&mut self, now: Moment, id: &RunId, asked: &RequestBody, result: PluginResult) {
        match asked {
            RequestBody::Sync { .. } => {
                let request = result.request_id.clone();
                let compared = unwrap_outcome(result.read::<Compared>());
                match compared.and_then(|compared| self.gather(id, &request, compared)) {
                    Ok((cursor, facts)) => {
                        self.advance(now, id, |run, agreement| run.compared(cursor, facts, agreement))
                    }
                    Err(error) => self.run_failed(id, error),
                }
            }
            RequestBody::Plan { .. } => match unwrap_outcome(result.read::<Applied>()) {
                Ok(applied) => self.advance(now, id, |run, agreement| run.applied(&applied.results, agreement)),
                Err(error) => self.run_failed(id, error),
            },
            RequestBody::GetScript { id: node, temp_id, .. } => {
                let Some(of) = node.map(OpId::from).or_else(|| temp_id.clone().map(OpId::from)) else { return };
                let text = unwrap_outcome(result.read::<StudioScript>()).map(|script| script.source);
                self.advance(now, id, |run, agreement| run.fetched(&of, text, agreement));
            }
            RequestBody::GetInstance { temp_id, .. } => {
                let node = unwrap_outcome(result.read::<Described>()).map(|described| described.node);
                self.advance(now, id, |run, agreement| run.described(temp_id, node, agreement));
            }
            RequestBody::Tool { .. } => unreachable!("a run asks for comparisons, texts and plans"),
        }
    }

    /// Differences that one frame could not hold.
    pub(super) fn facts_part(&mut self, studio: StudioKey, request: Option<RequestId>, part: u32, facts: Vec<Fact>) {
        let Some(studio) = self.studios.get_mut(studio) else { return };
        let calls = &self.calls;
        studio.gathered.retain(|request| calls.get(request).is_some());
        if request.as_ref().is_none_or(|request| calls.get(request).is_some()) {
            studio.gathered.take_in(request, part, facts);
        }
    }

    /// The last differences of a comparison with those that came before.
    fn gather(
        &mut self,
        run: &RunId,
        request: &RequestId,
        Compared { cursor, parts, facts }: Compared,
    ) -> Result<(Option<u32>, Vec<Fact>), ToolError> {
        let studio = self.runs.get(run).and_then(|active| self.studios.get_mut(active.studio));
        let facts = studio.and_then(|studio| studio.gathered.all(Some(request), parts, facts)).ok_or_else(|| {
            let what = "the differences did not all arrive: the link was lost between them, or they are too many";
            ToolError::failed(format!("{what}; nothing was changed"), "call again")
        })?;
        if facts.iter().all(Fact::is_whole) { Ok((cursor, facts)) } else { Err(nameless_fact()) }
    }

    pub(super) fn advance(
        &mut self,
        now: Moment,
        id: &RunId,
        turn: impl FnOnce(&mut Run, &mut crate::core::agreement::Agreement) -> Step,
    ) {
        let Some(active) = self.runs.get_mut(id) else { return };
        let Some(studio) = self.studios.get_mut(active.studio) else { return };
        let step = turn(&mut active.run, &mut studio.agreement);
        self.follow(now, id, step);
    }

    pub(super) fn follow(&mut self, now: Moment, id: &RunId, step: Step) {
        let run = id.clone();
        match step {
            Step::CatchUp { paths } => self.effects.push(Effect::CatchUp { run, paths }),
            Step::Look { ids, subtrees } => self.effects.push(Effect::Look { run, ids, subtrees }),
            Step::Compare { cursor, scope } => {
                let mode = self.runs.get(id).map(|active| active.run.mode()).unwrap_or_default();
                let body =
                    RequestBody::Sync { run_id: Some(run), cursor: Some(cursor), scope, mode, overrides: Vec::new() };
                self.ask_for_run(now, id, body);
            }
            Step::Fetch(wanted) | Step::Read(wanted) => {
                for of in wanted {
                    let (node, temp_id) = match of {
                        OpId::Node(id) => (Some(id), None),
                        OpId::Temp(id) => (None, Some(id)),
                    };
                    self.ask_for_run(now, id, RequestBody::GetScript { id: node, temp_id, from_draft: None });
                }
            }
            Step::Describe { temp_id, classes } => {
                let classes = classes.into_iter().map(|class| (class.clone(), kept(&class))).collect();
                self.ask_for_run(now, id, RequestBody::GetInstance { temp_id, classes });
            }
            Step::Apply { ops, all_or_nothing } => {
                self.set_stage(id, Stage::Plans);
                let undoes = self.runs.get(id).and_then(|active| active.run.undoes());
                let undo_name = undoes.map_or_else(|| "Sync from files".to_owned(), |of| format!("Undo sync {of}"));
                let body = RequestBody::Plan { run_id: run, undo_name, all_or_nothing, part: 0, last: true, ops };
                self.ask_for_run(now, id, body);
            }
            Step::Merge(jobs) => self.effects.push(Effect::Work { run, work: Work::Merge(jobs) }),
            Step::Recall(undo) => {
                let place = self.studio_of(id).and_then(|key| self.place_of(key));
                let place = place.unwrap_or_else(|| InstanceId::from(""));
                self.effects.push(Effect::Work { run, work: Work::Recall { place, undo } });
            }
            Step::History(versions) => self.effects.push(Effect::Work { run, work: Work::History(versions) }),
            Step::Check(writes) => self.effects.push(Effect::Work { run, work: Work::Check(writes) }),
            Step::Begin(draft) => self.begin_entry(id, draft),
            Step::Write(writes) => {
                self.set_stage(id, Stage::Changes);
                self.effects.push(Effect::Work { run, work: Work::Write(writes) });
            }
            Step::Conclude { journal, entry } => self.conclude(id, journal, entry),
            Step::Ask { receipt, again } => {
                let Some(active) = self.end_run(id) else { return };
                self.open_review(now, active, receipt, *again);
            }
            Step::Done(receipt) => {
                let Some(active) = self.end_run(id) else { return };
                self.remember(active.studio);
                self.note_session(active.studio);
                self.clear_cut_off(active.studio, active.run.clears(&receipt));
                self.note_receipt(active.studio, id, &receipt, &active.run);
                self.note_answered(active.entry.as_ref(), &receipt);
                self.settle_entry(active.entry, Ok(Answer::Receipt(receipt)), Ran::Known);
            }
        }
    }

    pub(super) fn studio_of(&self, id: &RunId) -> Option<StudioKey> {
        Some(self.runs.get(id)?.studio)
    }

    fn ask_for_run(&mut self, now: Moment, id: &RunId, body: RequestBody) {
        let Some(active) = self.runs.get(id) else { return };
        let (studio, deadline) = (active.studio, active.deadline);
        match self.studios.get(studio) {
            Some(found) if found.link.is_some() => {
                self.ask(now, deadline, studio, Waiter::Run(id.clone()), body);
            }
            Some(found) => {
                let error = ToolError::reconnecting(&found.name);
                self.run_failed(id, error);
            }
            None => self.run_failed(id, ToolError::no_studio()),
        }
    }
}

fn nameless_fact() -> ToolError {
    let what = "the plugin reported a difference of a node and did not say which; nothing was changed";
    ToolError::failed(what, "update the plugin: its version and the server's differ")
}
