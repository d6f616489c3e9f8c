//! How a run ends: with a receipt of what became of each change.

use super::{
    Run, Step,
    receipt::{Receipt, SyncStatus},
};

impl Run {
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

    pub(super) fn finish(&mut self, status: SyncStatus, message: Option<String>) -> Step {
        let changes = std::mem::take(&mut self.decisions).into_iter().map(|decision| decision.change).collect();
        let receipt = Receipt::new(status, self.cursor, changes, message);
        Step::Done(Receipt { rejected: std::mem::take(&mut self.rejected), ..receipt })
    }
}
