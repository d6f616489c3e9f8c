//! What became of calls whose callers were told that nobody knows: a late result is kept for
//! `get_call` and never given to another call.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use super::{
    Answer, Bridge, Effect, What,
    operations::{Ran, kept},
    play,
};
use crate::core::{
    calls::Moment,
    error::{ErrorCode, ToolError},
    ids::{OperationId, RequestId},
    protocol::{PluginResult, Request, RequestBody},
    studios::StudioKey,
};

/// How many such calls are remembered.
const REMEMBERED: usize = 256;
/// How large a late answer may be, in bytes, to be kept.
const LARGEST: usize = 512 * 1024;

/// A call, for `get_call`.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    /// Its request.
    pub id: RequestId,
    /// Its caller's id for it.
    pub operation: Option<OperationId>,
    /// The tool.
    pub tool: String,
    /// Where it stands.
    pub state: CallState,
}

/// Where a call stands.
#[derive(Debug, Clone, PartialEq)]
pub enum CallState {
    /// It waits for its turn.
    Queued {
        /// How many come before it.
        before: usize,
    },
    /// It is under way.
    Running,
    /// It has this outcome.
    Done(Result<Answer, ToolError>),
    /// It was sent; no answer has come.
    Unknown,
    /// It provably did not run.
    NeverRan,
}

/// Calls that are over for their callers, but not known to have ended.
#[derive(Debug, Default)]
pub(super) struct Late {
    calls: HashMap<RequestId, LateCall>,
    order: VecDeque<RequestId>,
}

#[derive(Debug)]
struct LateCall {
    studio: StudioKey,
    n: Option<u64>,
    /// `None`: it is a run.
    body: Option<RequestBody>,
    operation: Option<OperationId>,
    state: CallState,
}

impl Late {
    pub fn insert(&mut self, studio: StudioKey, request: Request, operation: Option<OperationId>) {
        let Request { request_id: id, n, mut body, .. } = request;
        // To read a late answer needs no more than its kind, and the code may have megabytes.
        if let RequestBody::Tool { args, .. } = &mut body {
            *args = Value::Null;
        }
        self.keep(id, LateCall { studio, n, body: Some(body), operation, state: CallState::Unknown });
    }

    /// The run of this entry goes on although nobody waits for it.
    pub fn insert_run(&mut self, studio: StudioKey, entry: RequestId, operation: Option<OperationId>) {
        self.keep(entry, LateCall { studio, n: None, body: None, operation, state: CallState::Unknown });
    }

    fn keep(&mut self, id: RequestId, call: LateCall) {
        if self.calls.insert(id.clone(), call).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
    }

    /// The call is known to have come to this. Its operation, if that is news.
    fn settle(&mut self, id: &RequestId, state: CallState) -> Option<OperationId> {
        let call = self.calls.get_mut(id).filter(|call| call.state == CallState::Unknown)?;
        call.state = state;
        call.operation.clone()
    }
}

impl Bridge {
    /// A result came for a call that is over, or never was.
    pub(super) fn late_result(&mut self, now: Moment, from: StudioKey, result: PluginResult) {
        let id = result.request_id.clone();
        let outcome = match self.late.calls.get(&id) {
            Some(LateCall { studio, body: Some(body), .. }) => self.read_answer(*studio, body, result),
            // Of an earlier server only operations are known, and those that are one request are tools.
            _ => self.read_answer(from, &RequestBody::Tool { name: String::new(), args: Value::Null }, result),
        };
        self.late_end(from, &id, outcome);
        self.leave_lane(now, from, &id);
    }

    /// A call that is over for its caller, here or in an earlier server, has come to this.
    pub(super) fn late_end(&mut self, from: StudioKey, id: &RequestId, outcome: Result<Answer, ToolError>) {
        match self.late.calls.get(id) {
            Some(LateCall { body: Some(_), .. }) => self.late_outcome(id, outcome),
            // Its plugin does not know the id of a run's entry.
            Some(LateCall { body: None, .. }) => {}
            None => self.recover(from, id.clone(), &outcome),
        }
    }

    fn late_outcome(&mut self, id: &RequestId, outcome: Result<Answer, ToolError>) {
        let outcome_kept = kept(&outcome);
        if let Some(operation) = self.late.settle(id, CallState::Done(bounded(outcome))) {
            self.effects.push(Effect::Record { operation, request: id.clone(), outcome: outcome_kept });
        }
    }

    /// A run has ended whose caller was told that nobody knows.
    pub(super) fn late_run_ended(&mut self, entry: &RequestId, outcome: Result<Answer, ToolError>, ran: Ran) {
        match ran {
            Ran::Known => self.late_outcome(entry, outcome),
            Ran::Never => self.late_never(entry),
            Ran::Unknown => {}
        }
    }

    fn late_never(&mut self, id: &RequestId) {
        if let Some(operation) = self.late.settle(id, CallState::NeverRan) {
            self.effects.push(Effect::Record { operation, request: id.clone(), outcome: None });
        }
    }

    /// The plugin has ended a call, as it was told to.
    pub(super) fn cancelled(&mut self, now: Moment, from: StudioKey, id: &RequestId) {
        let error =
            || ToolError::new(ErrorCode::Cancelled, "it was ended; part of it may have run", "read Studio's state");
        let given_up = self.calls.get(id).map(|(waiting, _)| self.is_given_up(waiting));
        match given_up {
            Some(true) => self.fail(now, id, error(), Ran::Known),
            // It is still wanted, so this is about something else.
            Some(false) => {}
            None => {
                self.late_outcome(id, Err(error()));
                self.leave_lane(now, from, id);
            }
        }
    }

    /// The plugin has received nothing above `last_n`: what was sent as more never ran.
    pub(super) fn late_never_ran(&mut self, studio: StudioKey, last_n: u64) {
        let never = |call: &LateCall| call.studio == studio && call.n.is_some_and(|n| n > last_n);
        let ids: Vec<RequestId> =
            self.late.calls.iter().filter(|(_, call)| never(call)).map(|(id, _)| id.clone()).collect();
        ids.iter().for_each(|id| self.late_never(id));
    }

    /// The call that an agent asks about, by the request's id or the operation's.
    pub(super) fn find_call(&self, wanted: &str) -> Option<CallRecord> {
        if let Some((operation, request, tool)) = self.operations.find(wanted) {
            let state = self.state_of(request);
            return Some(CallRecord {
                id: request.clone(),
                operation: Some(operation.clone()),
                tool: tool.to_owned(),
                state,
            });
        }
        let id = RequestId::from(wanted);
        if let Some((waiting, _)) = self.calls.get(&id) {
            let tool = match &waiting.what {
                What::Request { request, .. } => tool_of(&request.body),
                What::Run(_) | What::Review(_) | What::CatchUp(_) => "sync",
                What::Play(_, answered) => play::tool(answered.is_some()),
            };
            return Some(CallRecord { tool: tool.to_owned(), operation: None, state: self.state_of(&id), id });
        }
        let is_it = |id: &&RequestId| {
            let operation = self.late.calls.get(*id).and_then(|call| call.operation.as_ref());
            id.as_str() == wanted || operation.is_some_and(|operation| operation.as_str() == wanted)
        };
        let id = self.late.order.iter().rev().find(is_it)?;
        let LateCall { body, operation, state, .. } = self.late.calls.get(id)?;
        let tool = body.as_ref().map_or("sync", tool_of).to_owned();
        Some(CallRecord { id: id.clone(), operation: operation.clone(), tool, state: state.clone() })
    }

    fn state_of(&self, request: &RequestId) -> CallState {
        let waits = self.calls.get(request).and_then(|(waiting, _)| {
            let studio = waiting.studio;
            self.lanes.before(studio, request).or_else(|| self.turns.before(studio, request))
        });
        waits.map_or(CallState::Running, |before| CallState::Queued { before })
    }
}

fn bounded(outcome: Result<Answer, ToolError>) -> Result<Answer, ToolError> {
    let size = match &outcome {
        Ok(Answer::Tool(response)) => response.to_string().len(),
        Ok(Answer::Script { script, .. }) => script.source.len(),
        Ok(Answer::Receipt(receipt)) => serde_json::to_string(receipt).map_or(0, |text| text.len()),
        _ => 0,
    };
    if size <= LARGEST {
        return outcome;
    }
    let text = format!("it ran and succeeded; its late answer of {size} bytes was too large to be kept");
    Err(ToolError::new(ErrorCode::TooLarge, text, "read what is needed of it again"))
}

/// The tool that a request belongs to.
pub(super) fn tool_of(body: &RequestBody) -> &str {
    match body {
        RequestBody::Tool { name, .. } => name,
        RequestBody::GetScript { .. } => "get_script",
        RequestBody::Sync { .. } | RequestBody::GetInstance { .. } | RequestBody::Plan { .. } => "sync",
    }
}
