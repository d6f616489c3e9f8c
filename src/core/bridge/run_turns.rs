//! Runs that may change something take turns in each Studio, from their beginning on: what one does,
//! the next one finds done. Otherwise both would compare, and the guards of the second would fail on
//! what the first has done.

use std::collections::{BTreeMap, VecDeque};

use super::{
    Bridge, Effect, What,
    runs::{ActiveRun, Stage},
};
use crate::core::{
    error::ToolError,
    ids::{RequestId, RunId},
    studios::StudioKey,
    sync::Step,
};

/// The called runs of each Studio, by their entries in the ledger. The first has its turn.
#[derive(Debug, Default)]
pub(super) struct RunTurns(BTreeMap<StudioKey, VecDeque<RequestId>>);

impl RunTurns {
    fn enter(&mut self, studio: StudioKey, entry: RequestId) {
        self.0.entry(studio).or_default().push_back(entry);
    }

    /// A run no longer counts, wherever it stood. `false`: it stood nowhere.
    fn leave(&mut self, studio: StudioKey, entry: &RequestId) -> bool {
        let Some(queue) = self.0.get_mut(&studio) else { return false };
        let before = queue.len();
        queue.retain(|queued| queued != entry);
        let left = queue.len() < before;
        if queue.is_empty() {
            self.0.remove(&studio);
        }
        left
    }

    pub fn forget(&mut self, studio: StudioKey) {
        self.0.remove(&studio);
    }

    fn first(&self, studio: StudioKey) -> Option<&RequestId> {
        self.0.get(&studio)?.front()
    }

    /// How many runs come before this one. `None`: it has its turn, or needs none.
    pub fn before(&self, studio: StudioKey, entry: &RequestId) -> Option<usize> {
        self.0.get(&studio)?.iter().position(|queued| queued == entry).filter(|before| *before > 0)
    }

    fn waiting(&self, studio: StudioKey) -> impl Iterator<Item = &RequestId> {
        self.0.get(&studio).into_iter().flat_map(|queue| queue.iter().skip(1))
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Bridge {
    /// A run was called. One that only looks needs no turn.
    pub(super) fn run_comes(&mut self, id: &RunId) {
        let Some(ActiveRun { run, studio, entry: Some(entry), .. }) = self.runs.get(id) else { return };
        if !run.may_change() {
            return self.begin_run(id);
        }
        let (studio, entry) = (*studio, entry.clone());
        self.turns.enter(studio, entry.clone());
        match self.turns.before(studio, &entry) {
            Some(before) => self.tell_place(&entry, before),
            None => self.begin_run(id),
        }
    }

    fn begin_run(&mut self, id: &RunId) {
        let Some(active) = self.runs.get_mut(id) else { return };
        if let Stage::Waits(Step::CatchUp { paths }) = &mut active.stage {
            let paths = paths.take();
            active.stage = Stage::Compares;
            self.effects.push(Effect::CatchUp { run: id.clone(), paths });
        }
    }

    /// A run is over, or no longer counts; if it had its turn, the next one begins.
    pub(super) fn end_run(&mut self, id: &RunId) -> Option<ActiveRun> {
        let active = self.runs.remove(id)?;
        let studio = active.studio;
        if !active.entry.as_ref().is_some_and(|entry| self.turns.leave(studio, entry)) {
            return Some(active);
        }
        // One whose call has ended in the same moment is about to leave the queue as well.
        let next = self.turns.first(studio).and_then(|entry| self.calls.get(entry));
        if let Some(What::Run(next)) = next.map(|(waiting, _)| &waiting.what) {
            let next = next.clone();
            self.begin_run(&next);
        }
        let waiting: Vec<RequestId> = self.turns.waiting(studio).cloned().collect();
        for (before, entry) in (1..).zip(&waiting) {
            self.tell_place(entry, before);
        }
        Some(active)
    }

    /// The link is lost: called runs that have sent nothing do not wait for its return.
    pub(super) fn fail_unsent_runs(&mut self, key: StudioKey) {
        let sent_nothing = |active: &ActiveRun| {
            active.studio == key && (matches!(active.stage, Stage::Waits(_)) || active.parked.is_some())
        };
        let mut unsent: Vec<(bool, RunId)> = self
            .runs
            .iter()
            .filter(|(_, active)| active.entry.is_some() && sent_nothing(active))
            .map(|(id, active)| (active.parked.is_some(), id.clone()))
            .collect();
        // First those in the queue, so that none of them begins.
        unsent.sort();
        for (_, id) in unsent {
            self.run_failed(&id, ToolError::reconnecting(&self.studio_name(key)));
        }
    }
}
