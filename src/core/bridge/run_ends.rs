//! How a run ends before its last step, and what its caller is told.

use super::{
    Answer, Bridge, CallerId, Ran, Waiter,
    calls::never_sent,
    runs::{ActiveRun, Stage},
};
use crate::core::{
    error::{ErrorCode, ToolError},
    ids::{RequestId, RunId},
    studios::StudioKey,
};

impl Bridge {
    /// A step of the run failed: so does the run.
    pub(super) fn run_failed(&mut self, id: &RunId, error: ToolError) {
        let Some(active) = self.end_run(id) else { return };
        self.cancel_requests_of(id);
        self.cut_off(&active.run);
        self.note_unasked_failure(active.entry.is_none(), active.studio, &error);
        let ran = match error.code {
            _ if !matches!(active.stage, Stage::Changes) => Ran::Never,
            ErrorCode::OutcomeUnknown | ErrorCode::StudioLeft | ErrorCode::Reconnecting | ErrorCode::TimedOut => {
                Ran::Unknown
            }
            _ => Ran::Known,
        };
        self.settle_entry(active.entry, Err(error), ran);
    }

    /// The run's end is known. A caller that was told that nobody knows can ask for it.
    pub(super) fn settle_entry(&mut self, entry: Option<RequestId>, outcome: Result<Answer, ToolError>, ran: Ran) {
        let Some(entry) = entry else { return };
        match self.calls.settle(&entry) {
            Some(waiting) => self.finish(waiting.who, outcome, ran),
            None => self.late_run_ended(&entry, outcome, ran),
        }
    }

    /// Its plan was sent or its files are being written: from here on, it may have changed something.
    pub(super) fn changes_something(&self, id: &RunId) -> bool {
        self.runs.get(id).is_some_and(|active| matches!(active.stage, Stage::Changes))
    }

    pub(super) fn set_stage(&mut self, id: &RunId, stage: Stage) {
        if let Some(active) = self.runs.get_mut(id) {
            active.stage = stage;
        }
    }

    /// The run's caller has its answer; whatever the run was doing no longer counts.
    pub(super) fn forget_run(&mut self, id: &RunId) {
        if let Some(active) = self.end_run(id) {
            self.cancel_requests_of(id);
            self.cut_off(&active.run);
        }
    }

    /// Nobody waits for the run any more. One that may have changed something is carried to its end.
    /// `false`: it is over.
    pub(super) fn let_run_go(&mut self, id: &RunId) -> bool {
        let goes_on = self.changes_something(id);
        if !goes_on {
            self.forget_run(id);
        }
        goes_on
    }

    /// What to tell the caller of a run whose deadline has passed.
    pub(super) fn late_run(&self, id: &RunId, studio: &str) -> ToolError {
        let what = match self.runs.get(id).map(|active| &active.stage) {
            Some(Stage::Waits(_)) => return never_sent(studio, "its deadline passed before its turn came"),
            Some(Stage::Changes) => {
                return ToolError::outcome_unknown(studio, "the plan was sent and its deadline passed");
            }
            Some(Stage::Plans) => format!("{studio} was busy with another change"),
            Some(Stage::Compares) | None => format!("{studio} took too long to compare"),
        };
        ToolError::new(ErrorCode::TimedOut, format!("{what}; nothing was changed"), "call again, or sync fewer `paths`")
    }

    pub(super) fn callers_of(&self, id: &RunId) -> Vec<CallerId> {
        let entry = self.runs.get(id).and_then(|active| active.entry.as_ref());
        match entry.and_then(|entry| self.calls.get(entry)) {
            Some((waiting, _)) => self.callers(&waiting.who),
            None => Vec::new(),
        }
    }

    /// It was called, and whoever called no longer waits.
    pub(super) fn is_run_given_up(&self, id: &RunId) -> bool {
        let Some(entry) = self.runs.get(id).and_then(|active| active.entry.as_ref()) else { return false };
        let who = self.calls.get(entry).map(|(waiting, _)| &waiting.who);
        // A person has no caller and waits all the same.
        !matches!(who, Some(Waiter::Review(_))) && who.is_none_or(|who| self.callers(who).is_empty())
    }

    /// The Studio has left: a comparison that nobody waits for ends with it.
    pub(super) fn forget_runs_of(&mut self, studio: StudioKey) {
        let gone: Vec<ActiveRun> =
            self.runs.extract_if(|_, active| active.studio == studio).map(|(_, run)| run).collect();
        gone.iter().for_each(|active| self.cut_off(&active.run));
    }
}
