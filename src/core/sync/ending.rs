//! The end of a run: its receipt.

use super::{
    Run, Step,
    receipt::{ChangeResult, Receipt, SyncStatus},
    words,
};

impl Run {
    /// What was done and agreed is kept, or could not be.
    pub fn concluded(&mut self, kept: Result<(), String>) -> Step {
        let status = self.ended.unwrap_or(SyncStatus::Error);
        let unresolved = self.decisions.iter().any(|decision| decision.change.result == ChangeResult::Unresolved);
        let message = match kept {
            Err(reason) => Some(format!("what was done could not be noted: {reason}")),
            Ok(()) => unresolved.then(|| words::LEFT_ALONE.to_owned()),
        };
        let mut step = self.finish(status, message);
        if let Step::Done(receipt) = &mut step {
            receipt.journal = self.journal.as_ref().map(|(id, _)| *id);
        }
        step
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
