//! Calls: opened when an agent asks, settled by the first of result, deadline, cancel and loss.

use std::time::Duration;

use serde_json::Value;

use super::{
    Answer, Ask, Bridge, Call, CallerId, Effect, StudioScript, Waiter, Waiting, What,
    level0::{late_catch_up, read_relayed},
    operations::Ran,
    plan_parts::first_part,
    runs::Stage,
    targets::Destination,
};
use crate::core::{
    calls::Moment,
    error::{ErrorCode, ToolError},
    ids::{OperationId, RequestId},
    protocol::{CancelReason, MAX_FRAME_BYTES, Outcome, PluginResult, Request, RequestBody},
    studios::{DataModel, StudioKey},
};

impl Bridge {
    pub(super) fn call(&mut self, now: Moment, caller: CallerId, call: Call) {
        let Call { studio, patience, ask, operation } = call;
        let deadline = now + patience;
        match ask {
            Ask::Status(asker) => {
                let status = self.status(now, asker);
                self.settle(caller, Ok(status));
            }
            Ask::Review(ask) => self.review_asked(now, patience, caller, ask),
            Ask::GetCall(id) => {
                let found = self.find_call(&id).map(Box::new);
                self.settle(caller, Ok(Answer::Call(found)));
            }
            ask => match operation {
                Some(claim) => self.claim(caller, deadline, claim, studio, ask),
                None => {
                    let id = (self.new_id)();
                    self.start(now, deadline, id, Waiter::Caller(caller), studio.as_deref(), ask);
                }
            },
        }
    }

    /// Begin what is asked, as request `id`.
    pub(super) fn start(
        &mut self,
        now: Moment,
        deadline: Moment,
        id: RequestId,
        who: Waiter,
        studio: Option<&str>,
        ask: Ask,
    ) {
        if let Ask::Console { target, query } = &ask
            && let Some(outcome) = self.read_console(studio, *target, query)
        {
            return self.finish(who, outcome, Ran::Known);
        }
        if let Ask::Play { mode, owner } = ask {
            return self.play(now, deadline, (id, who), studio, (mode, owner));
        }
        if let Ask::PlayScript { args, owner } = ask {
            return self.play_script(now, deadline, (id, who), studio, (args, owner));
        }
        let to = match self.destination(studio, &ask) {
            Ok(to) => to,
            Err(error) => return self.finish(who, Err(error), Ran::Never),
        };
        let (body, changes) = match ask {
            Ask::Tool { name, args, changes, .. } => (RequestBody::Tool { name: name.to_owned(), args }, changes),
            Ask::GetScript { id, from_draft } => {
                let from_draft = from_draft.then_some(true);
                (RequestBody::GetScript { id: Some(id), temp_id: None, from_draft }, false)
            }
            Ask::Mode { .. } => (bare_tool("get_studio_mode"), false),
            Ask::Console { .. } => (bare_tool("get_console_output"), false),
            Ask::Sync(args) => match self.refuse_in_play(to.data_model.studio, &args) {
                Some(error) => return self.finish(who, Err(error), Ran::Never),
                None => return self.start_run(deadline, to.data_model.studio, id, who, args),
            },
            Ask::Status(_) | Ask::GetCall(_) | Ask::Review(_) | Ask::Play { .. } | Ask::PlayScript { .. } => {
                unreachable!("answered above")
            }
        };
        self.open_request(deadline, to, id.clone(), who, body);
        self.dispatch(now, &id, changes);
    }

    /// Whoever waits has this outcome.
    pub(super) fn finish(&mut self, who: Waiter, outcome: Result<Answer, ToolError>, ran: Ran) {
        match who {
            Waiter::Caller(caller) => self.settle(caller, outcome),
            Waiter::Operation(id) => self.operation_over(&id, outcome, ran),
            Waiter::Review(_) => {}
            Waiter::Run(_) | Waiter::Probe { .. } | Waiter::Play(_) => unreachable!("they are told otherwise"),
        }
    }

    /// Open a call for `body` and send it, numbered.
    pub(super) fn ask(&mut self, now: Moment, deadline: Moment, key: StudioKey, who: Waiter, body: RequestBody) {
        let id = (self.new_id)();
        let changes = matches!(body, RequestBody::Plan { .. });
        self.open_request(deadline, Destination::link(key), id.clone(), who, body);
        self.dispatch(now, &id, changes);
    }

    pub(super) fn open_request(
        &mut self,
        deadline: Moment,
        to: Destination,
        id: RequestId,
        who: Waiter,
        body: RequestBody,
    ) {
        let Destination { data_model: DataModel { studio, client: logical_id }, target } = to;
        let (body, rest) = first_part(body);
        let request = Request { request_id: id.clone(), n: None, remaining_ms: None, logical_id, target, body };
        let what = What::Request { request, rest, next_part: 1, sent: false };
        let deadline = ledger_deadline(&who, deadline);
        self.calls.open(id, deadline, Waiting { studio, who, what });
    }

    /// The one result of a request has come. A repeated or unknown one changes nothing.
    pub(super) fn result(&mut self, now: Moment, from: StudioKey, result: PluginResult) {
        let id = result.request_id.clone();
        match self.calls.get(&id) {
            Some((Waiting { what: What::Request { sent: true, .. }, .. }, _)) => {}
            // A plugin cannot know the id of what was not sent, unless it guesses.
            Some(_) => return,
            None => return self.late_result(now, from, result),
        }
        if self.awaits_play(&id, &result) {
            return self.leave_lane(now, from, &id);
        }
        let Some(Waiting { studio, who, what }) = self.calls.settle(&id) else { return };
        let What::Request { request, .. } = what else { unreachable!("looked at above") };
        match who {
            Waiter::Caller(_) | Waiter::Operation(_) => {
                let outcome = self.read_answer(studio, &request.body, result);
                self.finish(who, outcome, Ran::Known);
            }
            Waiter::Run(run) => self.run_result(now, &run, &request.body, result),
            Waiter::Play(of) => {
                if let Err(error) = self.read_answer(studio, &request.body, result) {
                    self.play_step_failed(&of, &request.body, &error);
                }
            }
            Waiter::Review(_) => {}
            Waiter::Probe { newer } => self.probe_answered(studio, newer, from),
        }
        self.leave_lane(now, studio, &id);
    }

    pub(super) fn read_answer(
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
            RequestBody::Plan { .. } | RequestBody::GetInstance { .. } => unreachable!("only runs ask for these"),
        }
    }

    /// The call ends with an error, if it is still open.
    pub(super) fn fail(&mut self, now: Moment, id: &RequestId, error: ToolError, ran: Ran) {
        let Some(waiting) = self.calls.settle(id) else { return };
        let studio = waiting.studio;
        let told = matches!(waiting.who, Waiter::Caller(_) | Waiter::Operation(_));
        if let (Waiter::Run(run), Ran::Never) = (&waiting.who, ran) {
            self.set_stage(run, Stage::Plans);
        }
        if told && ran != Ran::Unknown && !matches!(waiting.what, What::Run(_)) {
            self.finish(waiting.who, Err(error), ran);
        } else {
            self.fail_waiting(id, waiting, &error);
        }
        self.leave_lane(now, studio, id);
    }

    pub(super) fn fail_waiting(&mut self, id: &RequestId, waiting: Waiting, error: &ToolError) {
        let Waiting { studio, who, what } = waiting;
        match (who, what) {
            (Waiter::Run(run), _) => self.run_failed(&run, error.clone()),
            (Waiter::Probe { newer }, _) => self.give_way(studio, newer),
            (Waiter::Play(of), What::Request { request, .. }) => self.play_step_lost(&of, &request.body, error),
            (who, What::Request { request, sent: true, .. }) => {
                self.late.insert(studio, request, operation_of(&who));
                self.finish(who, Err(error.clone().ask_get_call(id.as_str())), Ran::Unknown);
            }
            (who, What::Request { sent: false, .. } | What::CatchUp(_)) => {
                self.finish(who, Err(error.not_sent()), Ran::Never);
            }
            (who, What::Review(review)) => {
                self.drop_review(&review, &error.message);
                self.finish(who, Err(error.not_sent()), Ran::Never);
            }
            (who, What::Play(_, Some(response))) => self.finish(who, Ok(Answer::Tool(response)), Ran::Known),
            (who, What::Play(_, None)) => {
                self.drop_steps(id);
                self.finish(who, Err(error.clone()), Ran::Unknown);
            }
            (who, What::Run(run)) if self.let_run_go(&run) => {
                self.late.insert_run(studio, id.clone(), operation_of(&who));
                self.finish(who, Err(error.clone().ask_get_call(id.as_str())), Ran::Unknown);
            }
            (who, What::Run(_)) => self.finish(who, Err(error.not_sent()), Ran::Never),
        }
    }

    /// Everything that waits for this Studio ends with `error`.
    pub(super) fn fail_all_of(&mut self, key: StudioKey, error: &ToolError) {
        self.lanes.forget(key);
        self.turns.forget(key);
        // Runs first: their end takes their requests with them.
        for runs_only in [true, false] {
            for (id, waiting) in
                self.calls.settle_where(|call| call.studio == key && (!runs_only || matches!(call.what, What::Run(_))))
            {
                self.fail_waiting(&id, waiting, error);
            }
        }
    }

    pub(super) fn not_sent(&mut self, now: Moment, request: Option<RequestId>, size: usize) {
        let text =
            format!("the request is {size} bytes and the limit of a frame is {MAX_FRAME_BYTES}; it was not sent");
        match request {
            Some(id) => {
                self.call_off_plan(&id);
                let error = ToolError::new(ErrorCode::TooLarge, text, "send less at a time");
                self.fail(now, &id, error, Ran::Never);
                // Its caller may have gone meanwhile; its turn is over all the same.
                if let Some(studio) = self.lanes.held_by(&id) {
                    self.leave_lane(now, studio, &id);
                }
            }
            None => self.note(format!("a frame was too large to be sent: {text}")),
        }
    }

    pub(super) fn expire_calls(&mut self, now: Moment) {
        self.expire_operations(now);
        let mut expired = self.calls.expire(now);
        // Runs first, while it can still be seen what they were at.
        expired.sort_by_key(|(_, waiting)| !matches!(waiting.what, What::Run(_)));
        for (id, waiting) in expired {
            let (studio, name) = (waiting.studio, self.name_of(&waiting));
            let error = match &waiting.what {
                What::Request { sent: true, .. } => {
                    let told = self.cancel(&id, studio, CancelReason::Timeout);
                    ToolError::outcome_unknown(&name, self.after_deadline(studio, told))
                }
                What::Request { sent: false, .. } => never_sent(&name, "its deadline passed before its turn came"),
                What::Run(run) => self.late_run(run, &name),
                What::Review(_) => late_review(),
                What::CatchUp(_) => late_catch_up(&name),
                What::Play(goal, _) => self.late_play(&id, &name, *goal),
            };
            self.lanes.give_up(studio, &id);
            self.fail_waiting(&id, waiting, &error);
            self.tell_places(studio);
        }
    }

    fn after_deadline(&self, studio: StudioKey, told: bool) -> &'static str {
        let is_level0 = self.studios.get(studio).is_some_and(|studio| !studio.is_level1());
        match (told, is_level0) {
            (true, _) => "its deadline passed, and Studio was told to end it",
            (false, true) => "its deadline passed; its plugin knows no cancel, and further changes do not wait for it",
            (false, false) => "its deadline passed",
        }
    }

    pub(super) fn abandon(&mut self, caller: CallerId) {
        self.abandon_operation(caller);
        let given_up = self.calls.settle_where(|call| call.who == Waiter::Caller(caller));
        for (id, Waiting { studio, what, .. }) in given_up {
            match what {
                What::Request { request, sent: true, .. } => {
                    self.cancel(&id, studio, CancelReason::Aborted);
                    self.late.insert(studio, request, None);
                }
                What::Run(run) if self.let_run_go(&run) => self.late.insert_run(studio, id, None),
                What::Run(_) => {}
                What::Review(review) => self.drop_review(&review, "the agent does not wait any more"),
                What::Request { .. } | What::CatchUp(_) => self.lanes.give_up(studio, &id),
                What::Play(..) => self.drop_steps(&id),
            }
            self.settle(caller, Err(ToolError::cancelled()));
            self.tell_places(studio);
        }
    }

    pub(super) fn progress(&mut self, id: &RequestId, progress: f64, total: Option<f64>, message: Option<String>) {
        let Some((waiting, _)) = self.calls.get(id) else { return };
        for caller in self.callers(&waiting.who) {
            self.effects.push(Effect::Progress { caller, progress, total, message: message.clone() });
        }
    }
}

/// Nobody has answered, although the caller waited longer than an answer could count.
pub(super) fn late_review() -> ToolError {
    let what = "nobody answered in time; nothing was changed";
    ToolError::new(ErrorCode::TimedOut, what, "call again when somebody can answer")
}

fn bare_tool(name: &str) -> RequestBody {
    RequestBody::Tool { name: name.to_owned(), args: Value::Object(serde_json::Map::new()) }
}

/// It was not sent, and will not be.
pub(super) fn never_sent(studio: &str, why: &str) -> ToolError {
    ToolError::new(
        ErrorCode::TimedOut,
        format!("never sent to {studio}: {why}"),
        "call again; `status` says what runs there",
    )
}

fn operation_of(who: &Waiter) -> Option<OperationId> {
    match who {
        Waiter::Operation(id) => Some(id.clone()),
        Waiter::Caller(_) | Waiter::Run(_) | Waiter::Review(_) | Waiter::Probe { .. } | Waiter::Play(_) => None,
    }
}

/// The callers of an operation each have a deadline; the operation itself has none.
pub(super) fn ledger_deadline(who: &Waiter, deadline: Moment) -> Moment {
    if matches!(who, Waiter::Operation(_)) { Moment::MAX } else { deadline }
}

/// The plugin's failure, or ours to read its success, as one error.
pub(super) fn unwrap_outcome<T>(outcome: Result<Outcome<T>, String>) -> Result<T, ToolError> {
    match outcome {
        Ok(Outcome::Success(value)) => Ok(value),
        // It ran: the plugin says so of a result that it could not keep.
        Ok(Outcome::Failure { code: Some(code), message }) if code == "lost" => {
            Err(ToolError::new(ErrorCode::OutcomeUnknown, message, "it ran: read Studio's state, and return less"))
        }
        Ok(Outcome::Failure { code, message }) => {
            let code =
                code.and_then(|code| serde_json::from_value(Value::String(code)).ok()).unwrap_or(ErrorCode::Failed);
            Err(ToolError::new(code, message, "this is what Studio answered"))
        }
        Err(detail) => Err(ToolError::failed(detail, "update the plugin: its version and the server's differ")),
    }
}

/// Whole milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
