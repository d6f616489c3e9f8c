//! Telling plugins that nobody waits for a call any more.

use super::{Bridge, Waiter, Waiting, What};
use crate::core::{
    ids::{RequestId, RunId},
    protocol::{CancelReason, Notice, ServerFrame},
    studios::StudioKey,
};

impl Bridge {
    /// Tell the plugin that a call's end is no longer waited for. `false`: it could not be told.
    pub(super) fn cancel(&mut self, id: &RequestId, key: StudioKey, reason: CancelReason) -> bool {
        let studio = self.studios.get(key).filter(|studio| studio.is_level1());
        let Some(link) = studio.and_then(|studio| studio.link) else { return false };
        self.send(link, ServerFrame::Notice(Notice::Cancel { request_id: id.clone(), reason }));
        true
    }

    /// Drop the requests of a run that no longer counts; those already sent are cancelled.
    pub(super) fn cancel_requests_of(&mut self, run: &RunId) {
        let owner = Waiter::Run(run.clone());
        for (id, Waiting { studio, what, .. }) in self.calls.settle_where(|call| call.who == owner) {
            if matches!(what, What::Request { sent: true, .. }) {
                self.cancel(&id, studio, CancelReason::Aborted);
            } else {
                self.lanes.give_up(studio, &id);
            }
        }
    }

    /// Nobody waits for it, but the plugin may still be at it.
    pub(super) fn is_given_up(&self, waiting: &Waiting) -> bool {
        match &waiting.who {
            Waiter::Operation(id) => self.operations.is_given_up(id),
            Waiter::Run(id) => self.is_run_given_up(id),
            Waiter::Caller(_) | Waiter::Review(_) | Waiter::Probe { .. } | Waiter::Play(_) => false,
        }
    }
}
