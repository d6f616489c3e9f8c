//! Calls: opened when an agent asks, settled by the first of result, deadline, cancel and loss.

use std::{collections::VecDeque, time::Duration};

use serde_json::Value;

use super::{
    Answer, Ask, Bridge, Call, CallerId, Effect, StudioScript, Waiter, Waiting, What,
    level0::{late_catch_up, read_relayed},
};
use crate::core::{
    calls::Moment,
    console::Query,
    error::{ErrorCode, ToolError},
    ids::{RequestId, RunId},
    protocol::{
        CancelReason, MAX_FRAME_BYTES, MAX_PART_BYTES, Notice, Outcome, PlanOp, PluginResult, Request, RequestBody,
        ServerFrame,
    },
    studios::{LinkId, Studio, StudioKey, StudioStatus},
};

impl Bridge {
    pub(super) fn call(&mut self, now: Moment, caller: CallerId, call: Call) {
        let Call { studio, patience, ask } = call;
        if ask == Ask::Status {
            let status =
                |studio: &Studio| StudioStatus { paused: self.paused(studio).map(str::to_owned), ..studio.status(now) };
            let studios = self.studios.iter().map(status).collect();
            let waiting = self.calls.iter().filter(|(_, call)| matches!(call.who, Waiter::Caller(_))).count();
            return self.settle(caller, Ok(Answer::Status { studios, waiting }));
        }
        if let Ask::Console(query) = &ask
            && let Some(outcome) = self.read_console(studio.as_deref(), query)
        {
            return self.settle(caller, outcome);
        }
        let key = match self.ready_studio(studio.as_deref()) {
            Ok(key) => key,
            Err(error) => return self.settle(caller, Err(error)),
        };
        let deadline = now + patience;
        let who = Waiter::Caller(caller);
        match ask {
            Ask::Tool { name, args } => {
                let body = RequestBody::Tool { name: name.to_owned(), args };
                self.ask(now, deadline, key, who, body);
            }
            Ask::GetScript { id, from_draft } => {
                let body =
                    RequestBody::GetScript { id: Some(id), temp_id: None, from_draft: from_draft.then_some(true) };
                self.ask(now, deadline, key, who, body);
            }
            Ask::Console(_) => {
                let args = Value::Object(serde_json::Map::new());
                let body = RequestBody::Tool { name: "get_console_output".to_owned(), args };
                self.ask(now, deadline, key, who, body);
            }
            Ask::Sync(args) => self.start_run(now, deadline, key, caller, args),
            Ask::Status => unreachable!("answered above"),
        }
    }

    /// What a Studio printed, from what is kept of it, even while its link is lost. `None`: a
    /// foreign plugin that may not forward its output has to be asked.
    fn read_console(&self, wanted: Option<&str>, query: &Query) -> Option<Result<Answer, ToolError>> {
        match self.studios.target(wanted) {
            Ok(studio) if studio.is_level1() => Some(Ok(Answer::Console(studio.console.read(query)))),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        }
    }

    fn ready_studio(&self, wanted: Option<&str>) -> Result<StudioKey, ToolError> {
        let studio = self.studios.target(wanted)?;
        match studio.link {
            Some(_) => Ok(studio.key),
            None => Err(ToolError::reconnecting(&studio.name)),
        }
    }

    /// Open a call for `body` and send it, numbered.
    pub(super) fn ask(&mut self, now: Moment, deadline: Moment, key: StudioKey, who: Waiter, body: RequestBody) {
        let request_id = (self.new_id)();
        let (body, rest) = first_part(body);
        let Some(studio) = self.studios.get_mut(key) else { return };
        let (n, remaining_ms) = if studio.is_level1() {
            let n = studio.next_n;
            studio.next_n += 1;
            (Some(n), Some(millis(deadline.saturating_sub(now))))
        } else {
            (None, None)
        };
        let link = studio.link;
        let request = Request { request_id: request_id.clone(), n, remaining_ms, body };
        let what = What::Request { request: request.clone(), rest, next_part: 1 };
        self.calls.open(request_id, deadline, Waiting { studio: key, who, what });
        if let Some(link) = link {
            self.send(link, ServerFrame::Request(request));
        }
    }

    pub(super) fn plan_part_taken(&mut self, link: LinkId, id: &RequestId, part: u32) {
        let Some((_, waiting)) = self.calls.iter_mut().find(|(open, _)| *open == id) else { return };
        let What::Request { rest, next_part, .. } = &mut waiting.what else { return };
        if *next_part != part + 1 {
            return;
        }
        let Some(ops) = rest.pop_front() else { return };
        *next_part += 1;
        let notice = Notice::PlanPart { request_id: id.clone(), part: part + 1, last: rest.is_empty(), ops };
        self.send(link, ServerFrame::Notice(notice));
    }

    /// The one result of a request has come. A repeated or unknown one changes nothing.
    pub(super) fn result(&mut self, now: Moment, from: StudioKey, result: PluginResult) {
        let id = result.request_id.clone();
        // A plugin cannot know the id of what was not sent, unless it guesses.
        if !matches!(self.calls.get(&id), Some((Waiting { what: What::Request { .. }, .. }, _))) {
            return;
        }
        let Some(waiting) = self.calls.settle(&id) else { return };
        let What::Request { request, .. } = waiting.what else { unreachable!("looked at above") };
        match waiting.who {
            Waiter::Caller(caller) => {
                let outcome = self.read_answer(waiting.studio, &request.body, result);
                self.settle(caller, outcome);
            }
            Waiter::Run(run) => self.run_result(now, &run, &request.body, result),
            Waiter::Probe { newer } => self.probe_answered(waiting.studio, newer, from),
        }
    }

    fn read_answer(
        &self,
        studio: StudioKey,
        asked: &RequestBody,
        mut result: PluginResult,
    ) -> Result<Answer, ToolError> {
        match asked {
            RequestBody::GetScript { id, .. } => {
                let script: StudioScript = unwrap_outcome(result.read())?;
                let agreement = self.studios.get(studio).map(|studio| &studio.agreement);
                let base = agreement.zip(*id).and_then(|(agreement, id)| agreement.base(id));
                Ok(Answer::Script { script, base })
            }
            RequestBody::Tool { .. } if result.status == "success" => {
                Ok(Answer::Tool(result.fields.remove("response").unwrap_or(Value::Null)))
            }
            RequestBody::Tool { .. } => unwrap_outcome(result.read()).map(Answer::Tool),
            RequestBody::Sync { cursor, .. } => {
                read_relayed(&self.studio_name(studio), cursor.unwrap_or(0), result).map(Answer::Receipt)
            }
            RequestBody::Plan { .. } => unreachable!("only runs ask for these"),
        }
    }

    /// The call ends with an error, if it is still open.
    pub(super) fn fail(&mut self, id: &RequestId, error: ToolError) {
        let Some(waiting) = self.calls.settle(id) else { return };
        self.fail_waiting(waiting, error);
    }

    fn fail_waiting(&mut self, waiting: Waiting, error: ToolError) {
        match (waiting.who, waiting.what) {
            (Waiter::Caller(caller), What::Request { .. } | What::CatchUp(_)) => self.settle(caller, Err(error)),
            (Waiter::Caller(caller), What::Run(run)) => {
                self.forget_run(&run);
                self.settle(caller, Err(error));
            }
            (Waiter::Run(run), _) => self.run_failed(&run, error),
            (Waiter::Probe { newer }, _) => self.give_way(waiting.studio, newer),
        }
    }

    /// Everything that waits for this Studio ends with `error`.
    pub(super) fn fail_all_of(&mut self, key: StudioKey, error: &ToolError) {
        // Runs first: their end takes their requests with them.
        for runs_only in [true, false] {
            for (_, waiting) in
                self.calls.settle_where(|call| call.studio == key && (!runs_only || matches!(call.what, What::Run(_))))
            {
                self.fail_waiting(waiting, error.clone());
            }
        }
    }

    pub(super) fn not_sent(&mut self, request: Option<RequestId>, size: usize) {
        let text =
            format!("the request is {size} bytes and the limit of a frame is {MAX_FRAME_BYTES}; it was not sent");
        match request {
            Some(id) => {
                self.call_off_plan(&id);
                self.fail(&id, ToolError::new(ErrorCode::TooLarge, text, "send less at a time"));
            }
            None => self.note(format!("a frame was too large to be sent: {text}")),
        }
    }

    /// The plugin has taken parts of this plan and would wait for the others for ever.
    fn call_off_plan(&mut self, id: &RequestId) {
        let Some((waiting, _)) = self.calls.get(id) else { return };
        if matches!(waiting.what, What::Request { next_part: 2.., .. }) {
            self.cancel(id, waiting.studio, CancelReason::Aborted);
        }
    }

    pub(super) fn expire_calls(&mut self, now: Moment) {
        let mut expired = self.calls.expire(now);
        // Runs first, while it can still be seen what they were at.
        expired.sort_by_key(|(_, waiting)| !matches!(waiting.what, What::Run(_)));
        for (id, waiting) in expired {
            let name = self.studio_name(waiting.studio);
            let error = match &waiting.what {
                What::Request { .. } => {
                    let told = self.cancel(&id, waiting.studio, CancelReason::Timeout);
                    ToolError::outcome_unknown(
                        &name,
                        if told { "its deadline passed, and Studio was told to end it" } else { "its deadline passed" },
                    )
                }
                What::Run(run) => self.late_run(run, &name),
                What::CatchUp(_) => late_catch_up(&name),
            };
            self.fail_waiting(waiting, error);
        }
    }

    /// Tell the plugin that a call's end is no longer waited for. `false`: it could not be told.
    pub(super) fn cancel(&mut self, id: &RequestId, key: StudioKey, reason: CancelReason) -> bool {
        let studio = self.studios.get(key).filter(|studio| studio.is_level1());
        let Some(link) = studio.and_then(|studio| studio.link) else { return false };
        self.send(link, ServerFrame::Notice(Notice::Cancel { request_id: id.clone(), reason }));
        true
    }

    pub(super) fn abandon(&mut self, caller: CallerId) {
        let given_up = self.calls.settle_where(|call| call.who == Waiter::Caller(caller));
        for (id, waiting) in given_up {
            match &waiting.what {
                What::Request { .. } => {
                    self.cancel(&id, waiting.studio, CancelReason::Aborted);
                }
                What::Run(run) => self.abandon_run(run),
                What::CatchUp(_) => {}
            }
            self.settle(caller, Err(ToolError::cancelled()));
        }
    }

    /// Drop the requests of a run that no longer counts; those already sent are cancelled.
    pub(super) fn cancel_requests_of(&mut self, run: &RunId) {
        let owner = Waiter::Run(run.clone());
        for (id, waiting) in self.calls.settle_where(|call| call.who == owner) {
            self.cancel(&id, waiting.studio, CancelReason::Aborted);
        }
    }

    pub(super) fn progress(&mut self, id: &RequestId, progress: f64, total: Option<f64>, message: Option<String>) {
        let Some((waiting, _)) = self.calls.get(id) else { return };
        let caller = match &waiting.who {
            Waiter::Caller(caller) => Some(*caller),
            Waiter::Run(run) => self.caller_of(run),
            Waiter::Probe { .. } => None,
        };
        if let Some(caller) = caller {
            self.effects.push(Effect::Progress { caller, progress, total, message });
        }
    }
}

/// The plugin's failure, or ours to read its success, as one error.
pub(super) fn unwrap_outcome<T>(outcome: Result<Outcome<T>, String>) -> Result<T, ToolError> {
    match outcome {
        Ok(Outcome::Success(value)) => Ok(value),
        Ok(Outcome::Failure { code, message }) => {
            let code =
                code.and_then(|code| serde_json::from_value(Value::String(code)).ok()).unwrap_or(ErrorCode::Failed);
            Err(ToolError::new(code, message, "this is what Studio answered"))
        }
        Err(detail) => Err(ToolError::failed(detail, "update the plugin: its version and the server's differ")),
    }
}

/// A plan goes out in parts; anything else is one frame.
fn first_part(body: RequestBody) -> (RequestBody, VecDeque<Vec<PlanOp>>) {
    match body {
        RequestBody::Plan { run_id, undo_name, all_or_nothing, ops, .. } => {
            let mut parts = plan_parts(ops);
            let ops = parts.pop_front().unwrap_or_default();
            let last = parts.is_empty();
            (RequestBody::Plan { run_id, undo_name, all_or_nothing, part: 0, last, ops }, parts)
        }
        body => (body, VecDeque::new()),
    }
}

/// Cut a plan into parts of at most [`MAX_PART_BYTES`], or one step that is larger by itself.
fn plan_parts(ops: Vec<PlanOp>) -> VecDeque<Vec<PlanOp>> {
    let mut parts = VecDeque::from([Vec::new()]);
    let mut size = 0;
    for op in ops {
        let weight = op.weight();
        if size + weight > MAX_PART_BYTES && size > 0 {
            parts.push_back(Vec::new());
            size = 0;
        }
        size += weight;
        parts.back_mut().expect("there is always a part").push(op);
    }
    parts
}

/// Whole milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
