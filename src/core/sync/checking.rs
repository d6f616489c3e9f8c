//! The part of a run that looks at the files before anything is changed: where all or nothing is
//! wanted, and before a run is taken back.

use super::{
    Decision, FileWrite, Run, Step, Wrote, plan,
    receipt::{ChangeResult, SyncStatus},
    words,
};
use crate::core::{agreement::Agreement, protocol::SyncMode};

impl Run {
    pub(super) fn check_writes(&mut self, agreement: &Agreement) -> Step {
        let writes: Vec<FileWrite> = plan::writes(&self.decisions);
        if writes.is_empty() { self.begin(agreement) } else { Step::Check(writes) }
    }

    /// What stands in the way of each of the writes, if anything does.
    pub fn checked(&mut self, found: Vec<Option<Wrote>>, agreement: &Agreement) -> Step {
        if found.iter().all(Option::is_none) {
            return self.begin(agreement);
        }
        let is_undo = self.recalled.is_some();
        let mut over = Vec::new();
        let writing = self.decisions.iter_mut().filter(|decision| decision.write.is_some());
        for (decision, problem) in writing.zip(found) {
            match problem {
                Some(Wrote::MovedOn(reason)) if is_undo => {
                    decision.drop_it(format!("{reason}, so it is left as it is"))
                }
                // Somebody has done it already.
                Some(Wrote::Done(_)) => {
                    (decision.op, decision.write) = (None, None);
                    over.push(decision.change.clone());
                }
                problem @ Some(_) => {
                    plan::note_problem(&mut decision.change, problem, "");
                    (decision.op, decision.write) = (None, None);
                }
                None => {}
            }
        }
        self.decisions.retain(|decision| !over.contains(&decision.change));
        if self.decisions.is_empty() {
            return self.nothing_to_do();
        }
        if self.args.mode == SyncMode::Fastfail && self.decisions.iter().any(|decision| !decision.is_resolved()) {
            let moved_on = |result| matches!(result, ChangeResult::Unresolved);
            let held = self.decisions.iter().any(|decision| moved_on(decision.change.result));
            let words = if held { words::nothing_changed(is_undo) } else { words::CANNOT_BE_WRITTEN };
            return self.end(SyncStatus::FastfailUnresolved, words);
        }
        if self.decisions.iter().any(Decision::is_resolved) {
            return self.begin(agreement);
        }
        self.end(SyncStatus::Rejected, words::NOTHING_RESOLVED)
    }
}
