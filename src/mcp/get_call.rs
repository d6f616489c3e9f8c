//! `get_call`: what became of a call.

use std::{fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    answers::Synced,
    backend::{Backend, ProgressSink},
    tools::{STATUS_PATIENCE, run_code_answer},
};
use crate::core::{
    bridge::{Answer, Ask, CallRecord, CallState},
    error::ToolError,
    ids::{OperationId, RequestId},
    operations::{Operation, Outcome},
    text::word,
};

/// What became of a call: its answer, or whether it runs, waits, or may have run. Outcomes with an operationId are kept for a day.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetCallArgs {
    /// The operationId that the call had, or the id that its error named
    pub id: String,
}

/// The answer of `get_call`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallAnswer {
    /// The request's id.
    pub id: String,
    /// The caller's id for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// The tool that was called.
    pub tool: String,
    /// Where it stands.
    pub state: State,
    /// How many calls come before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<usize>,
    /// What the tool answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub failure: Option<ToolError>,
    #[serde(skip)]
    #[schemars(skip)]
    text: String,
}

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It waits for its turn.
    Queued,
    /// It is under way.
    Running,
    /// It has its answer.
    Done,
    /// It has failed.
    Failed,
    /// It was sent; no answer has come.
    Unknown,
    /// It provably did not run.
    NeverRan,
}

impl fmt::Display for CallAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.tool, self.operation_id.as_ref().unwrap_or(&self.id), word(&self.state))?;
        match self.state {
            State::Queued => write!(f, "; {} call(s) before it", self.before.unwrap_or_default()),
            State::Running => write!(f, "; ask again"),
            State::Done => write!(f, "\n\n{}", self.text),
            State::Failed => write!(f, "\n\n{}", self.failure.as_ref().map_or("", |failure| &failure.message)),
            State::Unknown => write!(f, "; it may have run: read Studio's state before you repeat it"),
            State::NeverRan => write!(f, "; it can be called again"),
        }
    }
}

/// What became of a call: from this server, or from what it or one before it kept.
pub(super) async fn get_call(
    backend: Arc<Backend>,
    GetCallArgs { id }: GetCallArgs,
    _progress: Option<ProgressSink>,
) -> Result<CallAnswer, ToolError> {
    let known = match backend.call(None, STATUS_PATIENCE, Ask::GetCall(id.clone()), None).await? {
        Answer::Call(known) => known.map(|record| *record),
        _ => None,
    };
    let record = match known {
        Some(record) => record,
        None => kept(&backend, id).await?,
    };
    Ok(answer(&backend, record))
}

/// What the store knows.
async fn kept(backend: &Backend, id: String) -> Result<CallRecord, ToolError> {
    let store = backend.store.clone();
    let wanted = id.clone();
    let found = tokio::task::spawn_blocking(move || -> Result<_, ToolError> {
        let operation = OperationId::from(wanted.as_str());
        if let Some(known) = store.operation(&operation)? {
            return Ok(Some((operation, known)));
        }
        Ok(store.operation_of_request(&RequestId::from(wanted))?)
    });
    let found = found.await.map_err(|error| ToolError::failed(error.to_string(), "report this"))??;
    let Some((operation, Operation { intent, outcome, never_ran, .. })) = found else {
        let text = format!("argument `id`: no call {id:?} is known; outcomes are kept for 24 hours, others less");
        return Err(ToolError::bad_arguments(text));
    };
    let state = match outcome.map(serde_json::from_value::<Outcome>) {
        _ if never_ran => CallState::NeverRan,
        Some(Ok(Outcome::Tool(response))) => CallState::Done(Ok(Answer::Tool(response))),
        Some(Ok(Outcome::Receipt(receipt))) => CallState::Done(Ok(Answer::Receipt(receipt))),
        Some(Ok(Outcome::Failed(error))) => CallState::Done(Err(error)),
        Some(Err(_)) | None => CallState::Unknown,
    };
    Ok(CallRecord { id: intent.request_id, operation: Some(operation), tool: intent.tool, state })
}

fn answer(backend: &Backend, record: CallRecord) -> CallAnswer {
    let mut answer = CallAnswer {
        id: record.id.to_string(),
        operation_id: record.operation.map(|id| id.to_string()),
        tool: record.tool,
        state: State::Unknown,
        before: None,
        answer: None,
        failure: None,
        text: String::new(),
    };
    match record.state {
        CallState::Queued { before } => {
            answer.state = State::Queued;
            answer.before = Some(before);
        }
        CallState::Running => answer.state = State::Running,
        CallState::Unknown => {}
        CallState::NeverRan => answer.state = State::NeverRan,
        CallState::Done(outcome) => match outcome.and_then(|outcome| as_seen(backend, &answer.tool, outcome)) {
            Ok((structure, text)) => {
                answer.state = State::Done;
                answer.answer = Some(structure);
                answer.text = text;
            }
            Err(error) => {
                answer.state = State::Failed;
                answer.failure = Some(error);
            }
        },
    }
    answer
}

/// An answer as its own tool gives it.
fn as_seen(backend: &Backend, tool: &str, outcome: Answer) -> Result<(Value, String), ToolError> {
    fn both<T: Serialize + fmt::Display>(answer: &T) -> (Value, String) {
        (serde_json::to_value(answer).expect("answers hold only what JSON can say"), answer.to_string())
    }
    match outcome {
        Answer::Tool(response) if matches!(tool, "run_code" | "run_script_in_play_mode") => {
            run_code_answer(response).map(|answer| both(&answer))
        }
        Answer::Tool(response) => Ok((response.clone(), response.to_string())),
        Answer::Receipt(mut receipt) => {
            backend.name_files(&mut receipt);
            Ok(both(&Synced::new(receipt, &backend.session.problems(), backend.session.warning())))
        }
        Answer::Script { script, .. } => Ok((Value::String(script.source.clone()), script.source)),
        Answer::Console(_) | Answer::Call(_) | Answer::Status { .. } | Answer::Reviews(_) | Answer::Reviewed(_) => {
            Ok((Value::Null, String::new()))
        }
    }
}
