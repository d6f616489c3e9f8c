//! The part of a run that looks at the files before anything is changed: what cannot be done is not
//! begun.

use super::{Decision, Run, Step, Wrote, plan, receipt::SyncStatus, words};
use crate::core::{agreement::Agreement, protocol::SyncMode};

impl Run {
    /// All texts that were wanted are here, and merged.
    pub(super) fn ready(&mut self, agreement: &Agreement) -> Step {
        match plan::writes(&self.decisions) {
            writes if writes.is_empty() || self.args.unread => self.go_on(agreement),
            writes => Step::Check(writes),
        }
    }

    /// What stands in the way of each of the writes, if anything does.
    pub fn checked(&mut self, found: Vec<Option<Wrote>>, agreement: &Agreement) -> Step {
        let (is_undo, is_all_or_nothing) = (self.recalled.is_some(), self.args.mode == SyncMode::Fastfail);
        let (mut over, mut failed) = (Vec::new(), false);
        let writing = self.decisions.iter_mut().filter(|decision| decision.write.is_some());
        for (decision, problem) in writing.zip(found) {
            match problem {
                None => {}
                // Somebody has done it already.
                Some(Wrote::Done(_) | Wrote::Made(..)) => over.push(decision.change.clone()),
                Some(Wrote::MovedOn(reason)) if is_undo => {
                    decision.drop_it(format!("{reason}, so it is left as it is"));
                }
                Some(problem) if is_undo || is_all_or_nothing => {
                    plan::note_problem(&mut decision.change, Some(problem), "");
                    (decision.op, decision.write) = (None, None);
                    failed = true;
                }
                Some(problem) => plan::cannot(decision, problem),
            }
        }
        self.decisions.retain(|decision| !over.contains(&decision.change));
        if self.decisions.is_empty() && !over.is_empty() {
            return self.nothing_to_do();
        }
        if failed && is_all_or_nothing && !self.decisions.iter().any(Decision::is_left) {
            return self.end(SyncStatus::FastfailUnresolved, words::CANNOT_BE_WRITTEN);
        }
        self.go_on(agreement)
    }
}
