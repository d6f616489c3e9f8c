//! Requests go out at once, or in turn if they change something.

use super::{Bridge, CallerId, Effect, Waiter, Waiting, What, calls::millis, late::tool_of, runs::Stage};
use crate::core::{
    calls::Moment,
    error::ToolError,
    ids::RequestId,
    lanes::Holder,
    protocol::{Request, RequestBody, Role, ServerFrame},
    status::Busy,
    studios::{DataModel, StudioKey},
};

impl Bridge {
    /// Send a request, numbered; if it `changes` something, once the changes before it are done.
    pub(super) fn dispatch(&mut self, now: Moment, id: &RequestId, changes: bool) {
        if changes && !self.takes_its_turn(now, id) {
            return;
        }
        self.transmit(now, id);
    }

    fn takes_its_turn(&mut self, now: Moment, id: &RequestId) -> bool {
        let Some((Waiting { studio, what: What::Request { request, .. }, .. }, _)) = self.calls.get(id) else {
            return false;
        };
        let studio = *studio;
        let data_model = DataModel { studio, client: request.logical_id.clone() };
        if self.lanes.enter(data_model, id.clone(), tool_of(&request.body), now) {
            return true;
        }
        let before = self.lanes.before(studio, id).unwrap_or_default();
        self.tell_place(id, before);
        false
    }

    fn transmit(&mut self, now: Moment, id: &RequestId) {
        let Some((waiting, deadline)) = self.calls.get(id) else { return };
        let (key, deadline) = (waiting.studio, self.patience_of(waiting, deadline));
        let Some(studio) = self.studios.get_mut(key) else { return };
        // A plugin of level 0 cannot be told to end a call, nor say that it still runs.
        let (n, remaining_ms, until) = if studio.is_level1() {
            let n = studio.next_n;
            studio.next_n += 1;
            (Some(n), Some(millis(deadline.saturating_sub(now))), None)
        } else {
            (None, None, Some(deadline))
        };
        let link = studio.link;
        let Some(Waiting { what: What::Request { request, sent, .. }, .. }) = self.calls.get_mut(id) else { return };
        *sent = true;
        request.n = n;
        request.remaining_ms = remaining_ms;
        let request = request.clone();
        self.lanes.sent(key, id, n, until);
        self.plan_goes_out(id);
        if let Some(link) = link {
            self.send(link, ServerFrame::Request(request));
        }
    }

    /// From here on its run may change something, and is carried to its end whoever still waits.
    fn plan_goes_out(&mut self, id: &RequestId) {
        let Some((Waiting { who: Waiter::Run(run), what: What::Request { request, .. }, .. }, _)) = self.calls.get(id)
        else {
            return;
        };
        if matches!(request.body, RequestBody::Plan { .. }) {
            let run = run.clone();
            self.set_stage(&run, Stage::Changes);
            if self.runs.get(&run).is_some_and(|active| active.entry.is_some()) {
                self.calls.postpone(id, Moment::MAX);
            }
        }
    }

    /// Send a request again that provably never arrived.
    pub(super) fn send_again(&mut self, now: Moment, id: &RequestId) {
        let Some((waiting, deadline)) = self.calls.get(id) else { return };
        let remaining_ms = Some(millis(self.patience_of(waiting, deadline).saturating_sub(now)));
        let What::Request { request, .. } = &waiting.what else { return };
        let request = Request { remaining_ms, ..request.clone() };
        if let Some(link) = self.studios.get(waiting.studio).and_then(|studio| studio.link) {
            self.send(link, ServerFrame::Request(request));
        }
    }

    /// Until when the callers wait.
    pub(super) fn patience_of(&self, waiting: &Waiting, deadline: Moment) -> Moment {
        match &waiting.who {
            Waiter::Operation(id) => self.operations.deadline(id).unwrap_or(deadline),
            Waiter::Run(id) => self.runs.get(id).map_or(deadline, |active| active.deadline),
            Waiter::Play(of) => self.calls.get(of).map_or(deadline, |(call, until)| self.patience_of(call, until)),
            Waiter::Caller(_) | Waiter::Review(_) | Waiter::Probe { .. } => deadline,
        }
    }

    /// The plugin is done with a request; if it held the lane, it is the next one's turn.
    pub(super) fn leave_lane(&mut self, now: Moment, studio: StudioKey, id: &RequestId) {
        if let Some(next) = self.lanes.leave(studio, id, now) {
            self.its_turn(now, studio, &next);
        }
    }

    pub(super) fn its_turn(&mut self, now: Moment, studio: StudioKey, id: &RequestId) {
        self.transmit(now, id);
        self.tell_places(studio);
    }

    /// The deadlines of calls at level 0 end their turns, or one lost result would hold up all changes.
    pub(super) fn free_level0_lanes(&mut self, now: Moment) {
        for (studio, request) in self.lanes.overdue(now) {
            self.leave_lane(now, studio, &request);
        }
    }

    /// A lane is held by a call that nobody waits for: it is free, unless the plugin is at it.
    pub(super) fn free_lane(
        &mut self,
        now: Moment,
        key: StudioKey,
        is_there: impl Fn(&RequestId, Option<u64>) -> bool,
    ) {
        let over = |bridge: &Self| {
            let is_over =
                |Holder { request, n, .. }: &&Holder| bridge.calls.get(request).is_none() && !is_there(request, *n);
            bridge.lanes.holders(key).find(is_over).map(|holder| holder.request.clone())
        };
        // The next one may be over as well.
        while let Some(request) = over(self) {
            self.leave_lane(now, key, &request);
        }
    }

    /// The link is lost: what waits for its turn does not wait for its return.
    pub(super) fn fail_unsent(&mut self, key: StudioKey) {
        let unsent = self
            .calls
            .settle_where(|call| call.studio == key && matches!(call.what, What::Request { sent: false, .. }));
        for (id, waiting) in unsent {
            self.lanes.give_up(key, &id);
            let error = ToolError::reconnecting(&self.name_of(&waiting));
            self.fail_waiting(&id, waiting, &error);
        }
        self.fail_unsent_runs(key);
    }

    /// Tell everyone in the queue how many are before them.
    pub(super) fn tell_places(&mut self, studio: StudioKey) {
        let queue: Vec<(usize, RequestId)> =
            self.lanes.queues(studio).map(|(before, id)| (before, id.clone())).collect();
        for (before, id) in queue {
            self.tell_place(&id, before);
        }
    }

    pub(super) fn tell_place(&mut self, id: &RequestId, before: usize) {
        let Some((waiting, _)) = self.calls.get(id) else { return };
        let message =
            if before == 1 { "1 call before this one".to_owned() } else { format!("{before} calls before this one") };
        for caller in self.callers(&waiting.who) {
            self.effects.push(Effect::Progress { caller, progress: 0.0, total: None, message: Some(message.clone()) });
        }
    }

    /// Those who wait for a call, a run or an operation.
    pub(super) fn callers(&self, who: &Waiter) -> Vec<CallerId> {
        match who {
            Waiter::Caller(caller) => vec![*caller],
            Waiter::Run(run) => self.callers_of(run),
            Waiter::Operation(id) => self.operations.callers(id).collect(),
            Waiter::Play(of) => self.calls.get(of).map(|(call, _)| self.callers(&call.who)).unwrap_or_default(),
            Waiter::Review(_) | Waiter::Probe { .. } => Vec::new(),
        }
    }

    /// What `status` says of a DataModel's lane.
    pub(super) fn busy(&self, now: Moment, data_model: &DataModel) -> Option<Busy> {
        let (holder, queued) = self.lanes.holder(data_model)?;
        let operation = self.operations.find(holder.request.as_str());
        let call = operation.map_or_else(|| holder.request.to_string(), |(operation, _, _)| operation.to_string());
        let next = (queued > 0 || holder.cannot_end).then(|| self.next_of(data_model, holder, &call));
        Some(Busy {
            tool: holder.tool.clone(),
            call,
            seconds: now.saturating_sub(holder.since).as_secs(),
            queued,
            cannot_end: holder.cannot_end,
            next,
        })
    }

    /// What to do about a call that others wait for.
    fn next_of(&self, data_model: &DataModel, holder: &Holder, call: &str) -> String {
        let waits = self.calls.get(&holder.request).is_some_and(|(waiting, _)| !self.is_given_up(waiting));
        let edits = self.studios.get(data_model.studio).is_none_or(|studio| studio.role() == Role::Edit);
        let by_hand = if edits { "close the place in Studio and open it again" } else { "stop the play test" };
        if holder.cannot_end {
            format!("Studio cannot end its code: wait for it, or {by_hand}")
        } else if waits {
            format!("wait for it: `get_call` with id {call:?} says where it stands")
        } else {
            format!("nobody waits for it any more, and Studio was told to end it: wait for that, or {by_hand}")
        }
    }
}
