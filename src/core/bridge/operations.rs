//! Operations in the bridge: the intent is committed before anything is sent, whoever calls with
//! the same id joins, and the one outcome goes to all of them and into the store.

use std::collections::BTreeMap;

use super::{
    Answer, Ask, Bridge, CallerId, Effect, Waiter, Waiting, What,
    calls::{late_review, never_sent},
    level0::late_catch_up,
};
use crate::core::{
    calls::Moment,
    error::{ErrorCode, ToolError},
    ids::{OperationId, RequestId},
    operations::{Claim, Intent, Intention, Operation, Outcome},
    protocol::CancelReason,
};

/// The operations that are under way.
#[derive(Debug, Default)]
pub(super) struct Operations(BTreeMap<OperationId, Active>);

#[derive(Debug)]
struct Active {
    claim: Claim,
    /// Its request, or what stands for its run in the ledger.
    request: RequestId,
    /// Whoever waits, each until its own deadline.
    callers: Vec<(CallerId, Moment)>,
    /// Of the most patient of them.
    deadline: Moment,
    /// What is asked once the intent is committed.
    intending: Option<(Option<String>, Ask)>,
}

/// What is known about a call that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ran {
    /// It has this outcome.
    Known,
    /// It provably did not run.
    Never,
    /// It may have run.
    Unknown,
}

impl Operations {
    pub fn callers(&self, id: &OperationId) -> impl Iterator<Item = CallerId> {
        self.0.get(id).into_iter().flat_map(|active| active.callers.iter().map(|(caller, _)| *caller))
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many callers wait.
    pub fn waiting(&self) -> usize {
        self.0.values().map(|active| active.callers.len()).sum()
    }

    pub fn deadline(&self, id: &OperationId) -> Option<Moment> {
        self.0.get(id).map(|active| active.deadline)
    }

    pub fn next_deadline(&self) -> Option<Moment> {
        self.0.values().flat_map(|active| active.callers.iter().map(|(_, deadline)| *deadline)).min()
    }

    /// By its own id or that of its request.
    pub fn find(&self, id: &str) -> Option<(&OperationId, &RequestId, &str)> {
        let fits =
            |(operation, active): &(&OperationId, &Active)| operation.as_str() == id || active.request.as_str() == id;
        let (operation, active) = self.0.iter().find(fits)?;
        Some((operation, &active.request, &active.claim.tool))
    }

    /// Nobody waits for it any more; its plugin was told so.
    pub fn is_given_up(&self, id: &OperationId) -> bool {
        self.0.get(id).is_some_and(|active| active.callers.is_empty())
    }
}

impl Bridge {
    /// A call with an id: join the operation, or commit the intent to begin it.
    pub(super) fn claim(&mut self, caller: CallerId, deadline: Moment, claim: Claim, studio: Option<String>, ask: Ask) {
        if let Some(active) = self.operations.0.get_mut(&claim.id) {
            if active.claim.args_hash != claim.args_hash {
                let error = used_otherwise(&claim.id, &active.claim.tool);
                return self.settle(caller, Err(error));
            }
            active.callers.push((caller, deadline));
            active.deadline = active.deadline.max(deadline);
            return;
        }
        let request = (self.new_id)();
        let target = self.studios.target(studio.as_deref()).ok();
        let intent = Intent {
            tool: claim.tool.clone(),
            args_hash: claim.args_hash.clone(),
            request_id: request.clone(),
            session: target.and_then(|studio| Some(studio.hello.level1.as_ref()?.session_id.clone())),
        };
        self.effects.push(Effect::Intend { operation: claim.id.clone(), intent });
        let id = claim.id.clone();
        let intending = Some((studio, ask));
        self.operations.0.insert(id, Active { claim, request, callers: vec![(caller, deadline)], deadline, intending });
    }

    /// The store has answered.
    pub(super) fn intended(&mut self, now: Moment, id: &OperationId, intention: Result<Intention, ToolError>) {
        let Some(active) = self.operations.0.get_mut(id) else { return };
        let Some((studio, ask)) = active.intending.take() else { return };
        match intention {
            Ok(Intention::Fresh) if active.callers.is_empty() => {
                self.operation_over(id, Err(ToolError::cancelled()), Ran::Never);
            }
            Ok(Intention::Fresh) => {
                let (request, deadline) = (active.request.clone(), active.deadline);
                self.start(now, deadline, request, Waiter::Operation(id.clone()), studio.as_deref(), ask);
            }
            Ok(Intention::Known(known)) => {
                let outcome = remembered(&active.claim, *known);
                self.answer_all(id, &outcome);
            }
            Err(error) => self.answer_all(id, &Err(error)),
        }
    }

    fn answer_all(&mut self, id: &OperationId, outcome: &Result<Answer, ToolError>) {
        let Some(active) = self.operations.0.remove(id) else { return };
        for (caller, _) in active.callers {
            self.settle(caller, outcome.clone());
        }
    }

    /// An operation has ended.
    pub(super) fn operation_over(&mut self, id: &OperationId, outcome: Result<Answer, ToolError>, ran: Ran) {
        let record = match ran {
            Ran::Known => Some(kept(&outcome)),
            Ran::Never => Some(None),
            Ran::Unknown => None,
        };
        let request = self.operations.0.get(id).map(|active| active.request.clone());
        if let Some((outcome, request)) = record.zip(request) {
            self.effects.push(Effect::Record { operation: id.clone(), request, outcome });
        }
        let outcome = match ran {
            Ran::Unknown => outcome.map_err(|error| error.ask_get_call(id.as_str())),
            Ran::Known | Ran::Never => outcome,
        };
        self.answer_all(id, &outcome);
    }

    /// The callers whose patience is at its end.
    pub(super) fn expire_operations(&mut self, now: Moment) {
        let late: Vec<OperationId> = self
            .operations
            .0
            .iter()
            .filter(|(_, active)| active.callers.iter().any(|(_, deadline)| *deadline <= now))
            .map(|(id, _)| id.clone())
            .collect();
        for id in late {
            let error = self.late_operation(&id);
            let Some(active) = self.operations.0.get_mut(&id) else { continue };
            let (expired, waiting) = active.callers.drain(..).partition(|(_, deadline)| *deadline <= now);
            active.callers = waiting;
            let expired: Vec<(CallerId, Moment)> = expired;
            for (caller, _) in expired {
                self.settle(caller, Err(error.clone()));
            }
            self.let_go(&id, CancelReason::Timeout);
        }
    }

    /// A caller no longer waits. `false`: it waits for no operation.
    pub(super) fn abandon_operation(&mut self, caller: CallerId) {
        let found = self.operations.0.iter_mut().find(|(_, active)| active.callers.iter().any(|(id, _)| *id == caller));
        let Some((id, active)) = found else { return };
        active.callers.retain(|(id, _)| *id != caller);
        let id = id.clone();
        self.settle(caller, Err(ToolError::cancelled()));
        self.let_go(&id, CancelReason::Aborted);
    }

    fn late_operation(&self, id: &OperationId) -> ToolError {
        let request = self.operations.0.get(id).map(|active| &active.request);
        let waiting = request.and_then(|request| Some((request, self.calls.get(request)?.0)));
        let Some((request, waiting)) = waiting else {
            return never_sent("Studio", "its deadline passed before it could be noted that it was meant");
        };
        let name = self.name_of(waiting);
        match &waiting.what {
            What::Request { sent: true, .. } => {
                ToolError::outcome_unknown(&name, "its deadline passed").ask_get_call(id.as_str())
            }
            What::Request { sent: false, .. } => never_sent(&name, "its deadline passed before its turn came"),
            What::Run(run) => self.late_run(run, &name).ask_get_call(id.as_str()),
            What::Review(_) => late_review(),
            What::CatchUp(_) => late_catch_up(&name),
            What::Play(goal, _) => self.late_play(request, &name, *goal),
        }
    }

    /// If nobody waits for it any more: end it, as far as it can be ended.
    fn let_go(&mut self, id: &OperationId, reason: CancelReason) {
        let Some(active) = self.operations.0.get(id).filter(|active| active.callers.is_empty()) else { return };
        let request = active.request.clone();
        let Some((Waiting { studio, what, .. }, _)) = self.calls.get(&request) else { return };
        match what {
            What::Request { sent: true, .. } => {
                let studio = *studio;
                self.cancel(&request, studio, reason);
            }
            What::Run(run) if self.changes_something(run) => {}
            What::Play(..) => {}
            What::Request { .. } | What::Run(_) | What::Review(_) | What::CatchUp(_) => {
                let Some(waiting) = self.calls.settle(&request) else { return };
                self.lanes.give_up(waiting.studio, &request);
                match &waiting.what {
                    What::Run(run) => self.forget_run(run),
                    What::Review(review) => self.drop_review(review, "the agent does not wait any more"),
                    What::Request { .. } | What::CatchUp(_) | What::Play(..) => {}
                }
                self.operation_over(id, Err(ToolError::cancelled()), Ran::Never);
                self.tell_places(waiting.studio);
            }
        }
    }

    /// The server stops before the store has answered: an id may be that of an earlier call that ran, so
    /// nothing is noted of it.
    pub(super) fn drop_operations(&mut self, error: &ToolError) {
        let left: Vec<OperationId> = self.operations.0.keys().cloned().collect();
        for id in left {
            self.operation_over(&id, Err(error.clone()), Ran::Unknown);
        }
    }
}

fn used_otherwise(id: &OperationId, tool: &str) -> ToolError {
    let text = format!("argument `operationId`: {:?} was used for {tool} with other arguments", id.as_str());
    ToolError::new(ErrorCode::BadArguments, text, "use a new id for each change; the same one only to repeat a call")
}

/// The outcome of an operation that the store knows.
fn remembered(claim: &Claim, known: Operation) -> Result<Answer, ToolError> {
    if known.intent.args_hash != claim.args_hash {
        return Err(used_otherwise(&claim.id, &known.intent.tool));
    }
    let unknown = |why: &str| ToolError::outcome_unknown("Studio", why).ask_get_call(claim.id.as_str());
    match known.outcome.map(serde_json::from_value::<Outcome>) {
        Some(Ok(Outcome::Tool(response))) => Ok(Answer::Tool(response)),
        Some(Ok(Outcome::Receipt(receipt))) => Ok(Answer::Receipt(receipt)),
        Some(Ok(Outcome::Failed(error))) => Err(error),
        Some(Err(error)) => Err(unknown(&format!("another version kept its outcome: {error}"))),
        None => Err(unknown("it was sent before, and no answer has come")),
    }
}

/// An outcome as it is kept.
pub(super) fn kept(outcome: &Result<Answer, ToolError>) -> Option<Outcome> {
    match outcome {
        Ok(Answer::Tool(response)) => Some(Outcome::Tool(response.clone())),
        Ok(Answer::Receipt(receipt)) => Some(Outcome::Receipt(receipt.clone())),
        Ok(_) => None,
        Err(error) => Some(Outcome::Failed(error.clone())),
    }
}
