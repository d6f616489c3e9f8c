//! Telling plugins that nobody waits for a call any more.

use super::{Bridge, Waiter, Waiting, What};
use crate::core::{
    ids::{RequestId, RunId},
    protocol::{CancelReason, Notice, RequestBody, ServerFrame},
    studios::StudioKey,
};

impl Bridge {
    /// Tell the plugin that a call's end is no longer waited for. `false`: it could not be told.
    pub(super) fn cancel(&mut self, id: &RequestId, key: StudioKey, reason: CancelReason) -> bool {
        // What still runs when the server stops was told so.
        if self.stopping && reason != CancelReason::Shutdown {
            return false;
        }
        let studio = self.studios.get(key).filter(|studio| studio.is_level1());
        let Some(link) = studio.and_then(|studio| studio.link) else { return false };
        self.send(link, ServerFrame::Notice(Notice::Cancel { request_id: id.clone(), reason }));
        true
    }

    /// The server stops: the plugin is to end what it can. A plan is never interrupted, and what an operation
    /// asked for goes on: its caller asks the next server, to which the plugin brings the result.
    pub(super) fn cancel_all_of(&mut self, key: StudioKey) {
        let runs = |call: &Waiting| match &call.what {
            What::Request { request, sent: true, .. } if call.studio == key => {
                let goes_on =
                    matches!(request.body, RequestBody::Plan { .. }) || matches!(call.who, Waiter::Operation(_));
                (!goes_on).then_some(request.n)
            }
            _ => None,
        };
        let mut running: Vec<(Option<u64>, RequestId)> =
            self.calls.iter().filter_map(|(id, call)| Some((runs(call)?, id.clone()))).collect();
        running.sort_unstable();
        for (_, id) in running {
            self.cancel(&id, key, CancelReason::Shutdown);
        }
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
