//! Calls that wait for what their client was asked. From protocol 2026-07-28 on a server does not ask
//! during a call: it answers that it needs input, and the client calls again with that. What was begun
//! goes on meanwhile and is begun only once; the second call is given its end.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rmcp::model::{CallToolRequestParams, JsonObject};
use tokio::sync::mpsc;

use super::tools::Running;
use crate::{
    clock,
    core::{
        error::{ErrorCode, ToolError},
        review::Review,
    },
    studio::Report,
};

/// How long a call is kept for its client. Nobody waits longer for an answer.
const KEPT: Duration = Duration::from_secs(12 * 60);
/// How many are kept.
const MOST: usize = 64;

/// All of them, by the `requestState` that their clients were given. It says nothing: whoever makes one up
/// finds nothing under it.
#[derive(Default)]
pub(super) struct Parked(Mutex<BTreeMap<String, Call>>);

/// A call that was begun.
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: Option<JsonObject>,
    pub(super) work: Running,
    pub(super) reports: mpsc::UnboundedReceiver<Report>,
    /// What was asked.
    pub(super) review: Arc<Review>,
    since: Instant,
}

impl Call {
    pub(super) fn new(
        (name, arguments): (String, Option<JsonObject>),
        work: Running,
        reports: mpsc::UnboundedReceiver<Report>,
        review: Arc<Review>,
    ) -> Self {
        Self { name, arguments, work, reports, review, since: clock::now() }
    }
}

impl Parked {
    /// Keep a call: the `requestState` for its client.
    pub(super) fn put(&self, call: Call) -> String {
        let state = uuid::Uuid::new_v4().to_string();
        let mut calls = self.calls();
        let now = clock::now();
        calls.retain(|_, call| now.saturating_duration_since(call.since) < KEPT);
        if calls.len() >= MOST
            && let Some(oldest) = calls.iter().min_by_key(|(_, call)| call.since).map(|(state, _)| state.clone())
        {
            calls.remove(&oldest);
        }
        calls.insert(state.clone(), call);
        state
    }

    /// It goes on waiting.
    pub(super) fn put_back(&self, state: &str, call: Call) {
        self.calls().insert(state.to_owned(), call);
    }

    /// The call that this one goes on with.
    ///
    /// # Errors
    /// There is none, or it was another one.
    pub(super) fn take(&self, state: &str, again: &CallToolRequestParams) -> Result<Call, ToolError> {
        let mut calls = self.calls();
        let Some(call) = calls.get(state) else { return Err(over()) };
        if call.name != again.name || call.arguments != again.arguments {
            let what = "`requestState` belongs to another call: the tool and its arguments must be the same";
            return Err(ToolError::bad_arguments(what));
        }
        calls.remove(state).ok_or_else(over)
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<String, Call>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn over() -> ToolError {
    let what = "`requestState`: no call waits for this; it was answered before, or nobody answered for too long";
    ToolError::new(ErrorCode::BadArguments, what, "call again without `requestState` and `inputResponses`")
}
