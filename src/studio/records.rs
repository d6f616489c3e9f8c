//! The thread that keeps intents and outcomes, in the order in which they were decided.

use tokio::sync::mpsc::UnboundedSender;

use super::{hub::Reply, queue::Queue};
use crate::{
    core::{
        bridge::{Answer, Event},
        error::ToolError,
        ids::{OperationId, RequestId},
        operations::{Intent, Outcome},
    },
    store::{Store, StoreError},
};

/// Something to keep.
pub(super) enum Keep {
    Intent(OperationId, Intent),
    /// Of an operation, which was this request. `None`: it never ran.
    Outcome(OperationId, RequestId, Option<Outcome>),
    /// Of a request that an earlier server may have sent.
    Recovered(RequestId, Outcome),
    /// Nothing; but all that was to be kept before is kept when the caller hears of its outcome.
    Reply(Reply, Result<Answer, ToolError>),
}

/// The way to the thread.
pub(super) struct Records(Queue<Keep>);

impl Records {
    pub fn start(store: Store, results: UnboundedSender<Event>) -> Self {
        Self(Queue::start("records", move |what| keep(&store, what, &results)))
    }

    pub fn keep(&self, what: Keep) {
        if let Err(what) = self.0.put(what) {
            log::error!("outcomes are no longer kept: their thread has ended");
            if let Keep::Reply(reply, outcome) = what {
                reply.give(outcome);
            }
        }
    }

    /// Wait until all is kept.
    pub async fn finish(self) {
        if !self.0.finish().await {
            log::error!("keeping the last outcomes failed");
        }
    }
}

fn keep(store: &Store, what: Keep, results: &UnboundedSender<Event>) {
    match what {
        Keep::Intent(operation, intent) => {
            let intention = store.intend(&operation, &intent).map_err(not_noted);
            // Without an owner nobody wants the result.
            let _ = results.send(Event::Intended { operation, intention });
        }
        Keep::Reply(reply, outcome) => reply.give(outcome),
        Keep::Outcome(operation, request, outcome) => {
            if let Err(error) = keep_outcome(store, &operation, outcome) {
                log::error!("the outcome of operation {operation} is not kept: {error}");
            }
            let _ = results.send(Event::Recorded { request });
        }
        Keep::Recovered(request, outcome) => {
            match recover(store, &request, outcome) {
                Ok(Some(operation)) => log::info!("operation {operation} of an earlier server has its outcome"),
                Ok(None) => {}
                Err(error) => log::error!("the outcome of request {request} is not kept: {error}"),
            }
            let _ = results.send(Event::Recorded { request });
        }
    }
}

fn keep_outcome(store: &Store, operation: &OperationId, outcome: Option<Outcome>) -> Result<(), StoreError> {
    match outcome {
        Some(outcome) => store.settle(operation, serde_json::to_value(outcome)?),
        None => store.never_ran(operation),
    }
}

fn recover(store: &Store, request: &RequestId, outcome: Outcome) -> Result<Option<OperationId>, StoreError> {
    store.recover(request, serde_json::to_value(outcome)?)
}

fn not_noted(error: StoreError) -> ToolError {
    let ToolError { message, hint, .. } = error.into();
    ToolError::failed(format!("nothing was sent, because what is meant could not be noted first: {message}"), hint)
}
