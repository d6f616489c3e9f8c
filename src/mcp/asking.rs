//! The agent's client as a face of a review: it shows its person a form (elicitation).

use std::{pin::Pin, sync::Arc};

use rmcp::{
    RoleServer,
    model::{
        ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
        InputRequest, InputRequiredResult, InputResponses, ProtocolVersion, ServerRequest,
    },
    service::{ElicitationMode, PeerRequestOptions, RequestContext},
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::backend::Backend;
use crate::core::{
    error::ToolError,
    review::{Choice, Face, Review, ReviewAnswer, ReviewAsk, name_of},
    sync::{Change, Direction},
    text::for_terminal,
};

/// Up to so many changes each has a choice of its own; more are chosen about together.
const EACH: usize = 12;
/// The name of the only question of a call.
const QUESTION: &str = "review";
/// How many changes the message names.
const NAMED: usize = 30;

/// A form that is shown.
pub(super) struct Asking {
    shown: Pin<Box<dyn Future<Output = ()> + Send>>,
    over: CancellationToken,
}

impl Asking {
    /// Show `review` to the caller's person, and take the answer to the bridge.
    pub(super) fn about(review: Arc<Review>, backend: Arc<Backend>, context: &RequestContext<RoleServer>) -> Self {
        let over = CancellationToken::new();
        let shown = Box::pin(ask(review, backend, context.peer.clone(), over.clone()));
        Self { shown, over }
    }

    /// It was answered elsewhere.
    pub(super) fn end(&self) {
        self.over.cancel();
    }

    /// Until it is answered or put away.
    pub(super) async fn ended(&mut self) {
        self.shown.as_mut().await;
    }
}

/// The client says that it can show a form, in a protocol in which a server may ask.
pub(super) fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    !is_newer(context) && context.peer.supported_elicitation_modes().contains(&ElicitationMode::Form)
}

/// The client says that it can show a form and call again, in a protocol in which a server may not ask.
pub(super) fn can_call_again(context: &RequestContext<RoleServer>) -> bool {
    let elicitation = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    is_newer(context) && elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

fn is_newer(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// What such a client is answered: what to ask, and what to say with the answer.
pub(super) fn input_required(review: &Review, state: String) -> InputRequiredResult {
    let request = InputRequest::Elicitation(ElicitRequest::new(form(review)));
    InputRequiredResult::new(Some([(QUESTION.to_owned(), request)].into()), Some(state))
}

/// What it says then. `None`: not a word about the question.
///
/// # Errors
/// It is no answer to a form; the text names the field.
pub(super) fn read_input(review: &Review, said: Option<&InputResponses>) -> Result<Option<ReviewAsk>, ToolError> {
    let Some(said) = said.and_then(|said| said.get(QUESTION)) else { return Ok(None) };
    let result: ElicitResult = serde_json::from_value(said.clone())
        .map_err(|error| ToolError::bad_arguments(format!("`inputResponses.{QUESTION}`: {error}")))?;
    Ok(Some(ask_of(review, read(review, &result))))
}

/// What is told to the bridge.
fn ask_of(review: &Review, answer: Option<ReviewAnswer>) -> ReviewAsk {
    let review = review.id.clone();
    match answer {
        Some(answer) => ReviewAsk::Answer { review, by: Face::Agent, answer },
        None => ReviewAsk::Withdraw(review),
    }
}

async fn ask(review: Arc<Review>, backend: Arc<Backend>, peer: rmcp::Peer<RoleServer>, over: CancellationToken) {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form(&review)));
    let answer = match peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await {
        Ok(mut asked) => tokio::select! {
            answer = &mut asked.rx => answer.ok().and_then(Result::ok),
            () = over.cancelled() => {
                // A client that is gone shows nothing.
                let _ = asked.cancel(Some("it was answered elsewhere, or is over".into())).await;
                return;
            }
        },
        Err(error) => {
            log::info!("a client that announced elicitation could not be asked: {error}");
            None
        }
    };
    let said = match answer {
        Some(ClientResult::ElicitResult(result)) => read(&review, &result),
        _ => None,
    };
    // Too late, or the server stops: the call itself says how it ended.
    let _ = backend.review(ask_of(&review, said)).await;
}

/// What a client shows.
fn form(review: &Review) -> ElicitRequestParams {
    let schema = if review.changes.len() <= EACH { each(review) } else { together(review) };
    let Value::Object(schema) = schema else { unreachable!("made as an object") };
    let requested_schema = ElicitationSchema::from_json_schema(schema).expect("it is of the demanded form");
    ElicitRequestParams::FormElicitationParams { meta: None, message: message(review), requested_schema }
}

fn message(review: &Review) -> String {
    let mut text = format!(
        "A sync with {} asks what to do. push: the files win; pull: Studio wins; skip: leave it alone.\n",
        for_terminal(&review.studio)
    );
    for change in review.changes.iter().take(NAMED) {
        let reason = change.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        text.push_str(&for_terminal(&format!("- {}: {}{reason}\n", change.path, proposal(change))));
    }
    let more = review.changes.len().saturating_sub(NAMED);
    if more > 0 {
        text.push_str(&format!("… and {more} more\n"));
    }
    text
}

/// What is proposed for a change, in two words.
fn proposal(change: &Change) -> String {
    let direction = match change.direction {
        Direction::Push => "push",
        Direction::Pull => "pull",
        Direction::Merge => "merge",
        Direction::Unresolved => "undecided",
    };
    format!("{direction} {}", format!("{:?}", change.patch_type).to_lowercase())
}

/// A choice for each change.
fn each(review: &Review) -> Value {
    let mut properties = Map::new();
    for change in &review.changes {
        let Some(name) = name_of(change) else { continue };
        let title = for_terminal(&change.path);
        let proposed = change.direction != Direction::Unresolved;
        let (words, default) = if proposed {
            (vec!["accept", "push", "pull", "skip"], "accept")
        } else {
            (vec!["skip", "push", "pull"], "skip")
        };
        let about = proposal(change);
        let choice =
            json!({ "type": "string", "title": title, "description": about, "enum": words, "default": default });
        properties.insert(name.to_string(), choice);
    }
    json!({ "type": "object", "properties": properties })
}

/// One choice for all changes.
fn together(review: &Review) -> Value {
    let about = format!("What to do about all {} changes; accept: as proposed", review.changes.len());
    let words = ["accept", "push", "pull", "skip"];
    let all =
        json!({ "type": "string", "title": "All changes", "description": about, "enum": words, "default": "accept" });
    json!({ "type": "object", "properties": { "all": all }, "required": ["all"] })
}

/// What a person answered. `None`: the client put the form away, or what it says makes no sense.
fn read(review: &Review, result: &ElicitResult) -> Option<ReviewAnswer> {
    match result.action {
        ElicitationAction::Accept => {
            let answer = answer_of(result.content.as_ref());
            if let Err(problem) = answer.as_ref().map_err(String::clone).and_then(|answer| review.chosen(answer)) {
                log::warn!("a client's answer to a review does not count: {problem}");
                return None;
            }
            answer.ok()
        }
        ElicitationAction::Decline => Some(ReviewAnswer { choices: Vec::new(), all: Some(Choice::Skip) }),
        _ => None,
    }
}

fn answer_of(content: Option<&Value>) -> Result<ReviewAnswer, String> {
    let mut content = content.and_then(Value::as_object).cloned().unwrap_or_default();
    let all = content.remove("all");
    let choices: Vec<Value> = content.into_iter().map(|(id, choice)| json!({ "id": id, "choice": choice })).collect();
    let all = all.unwrap_or_else(|| if choices.is_empty() { json!("accept") } else { Value::Null });
    serde_json::from_value(json!({ "choices": choices, "all": all })).map_err(|error| error.to_string())
}
