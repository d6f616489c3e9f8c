//! The end of a run: its receipt.

use super::{
    Run, Step,
    receipt::{ChangeResult, Direction, Receipt, SyncStatus},
    words,
};
use crate::core::journal::Entry;

impl Run {
    /// What was done and agreed is kept, or could not be.
    pub fn concluded(&mut self, kept: Result<(), String>) -> Step {
        let status = self.ended.unwrap_or(SyncStatus::Error);
        let unresolved = self.decisions.iter().any(|decision| decision.change.result == ChangeResult::Unresolved);
        let left = match kept {
            Err(reason) => Some(format!("what was done could not be noted: {reason}")),
            Ok(()) => unresolved.then(|| words::LEFT_ALONE.to_owned()),
        };
        let undid = self.recalled.as_ref().and_then(|recalled| recalled.undid(status));
        let said: Vec<String> = undid.into_iter().chain(left).collect();
        let message = (!said.is_empty()).then(|| said.join("; "));
        // An undo of which nothing was done leaves no entry.
        let journal = self.journal.as_ref().filter(|_| !self.came_to_nothing()).map(|(id, _)| *id);
        let mut step = self.finish(status, message);
        if let Step::Done(receipt) = &mut step {
            receipt.journal = journal;
        }
        step
    }

    fn came_to_nothing(&self) -> bool {
        use ChangeResult::{Done, Failed};
        let is_tried = |decision: &super::Decision| matches!(decision.change.result, Done | Failed);
        self.recalled.is_some() && !self.decisions.iter().any(is_tried)
    }

    /// Who has a run done whose changes are those of `entry`.
    pub(super) fn who(&self, entry: &Entry) -> Option<String> {
        let live = self.args.unasked.as_ref().map(|_| {
            let pushes = entry.changes.iter().all(|line| line.direction == Direction::Push);
            if pushes { "files (live)" } else { "Studio (live)" }
        });
        live.map(str::to_owned).or_else(|| self.args.who.clone())
    }

    pub(super) fn nothing_to_do(&mut self) -> Step {
        let mut receipt = Receipt::empty(self.cursor, self.args.mode);
        if self.recalled.is_some() {
            receipt.message = Some("all of it is as it was before; there is nothing to take back".into());
        } else if self.args.paths.is_some() {
            receipt.message = Some("nothing that `paths` names differs; there is nothing to do".into());
        }
        receipt.rejected = std::mem::take(&mut self.rejected);
        Step::Done(receipt)
    }

    pub(super) fn end(&mut self, status: SyncStatus, message: &str) -> Step {
        self.finish(status, Some(message.to_owned()))
    }

    fn finish(&mut self, status: SyncStatus, message: Option<String>) -> Step {
        let changes = std::mem::take(&mut self.decisions).into_iter().map(|decision| decision.change).collect();
        let receipt = Receipt::new(status, self.cursor, changes, message);
        Step::Done(Receipt { rejected: std::mem::take(&mut self.rejected), ..receipt })
    }
}
