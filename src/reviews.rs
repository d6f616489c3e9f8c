//! `/api/mcp/reviews`: reviews over HTTP, for the browser page and for programs.
//!
//! | request | answer |
//! |---|---|
//! | `GET /api/mcp/reviews` | all of them, newest last; who asks counts as somebody who can be asked |
//! | `GET /api/mcp/reviews/<id>` | one |
//! | `GET /api/mcp/reviews/<id>/<change>` | both texts of a change, with their hashes |
//! | `POST /api/mcp/reviews/<id>` | answers it: `{"choices": [{"id", "choice"}], "all"}` |

use std::{sync::Arc, time::Duration};

use http_body_util::{BodyExt, Limited};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, header};
use serde_json::{Value, json};

use crate::{
    core::{
        bridge::{Answer, Ask, Call},
        error::{ErrorCode, ToolError},
        ids::{OpId, ReviewId},
        review::{Face, ReviewAnswer, ReviewAsk, ReviewReply, ReviewState},
        text::TextHash,
    },
    http::{Body, text, with_header},
    session::ServeSession,
    studio::Hub,
};

/// Where it is.
pub const ROUTE: &str = "/api/mcp/reviews";

/// How long Studio's text may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Largest answer: thousands of choices.
const MAX_BODY: usize = 4 * 1024 * 1024;

/// Answer one request.
pub async fn answer(hub: &Hub, session: &Arc<ServeSession>, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let rest = path.strip_prefix(ROUTE).unwrap_or_default();
    let names: Vec<&str> = rest.split('/').filter(|name| !name.is_empty()).collect();
    let done = match (request.method(), &names[..]) {
        (&Method::GET, []) => list(hub).await,
        (&Method::GET, [id]) => one(hub, id).await,
        (&Method::GET, [id, change]) => texts(hub, session, id, change).await,
        (&Method::POST, [id]) => {
            let id = (*id).into();
            take_answer(hub, id, request).await
        }
        (_, [] | [_] | [_, _]) => {
            let answer = text(StatusCode::METHOD_NOT_ALLOWED, "GET shows reviews, POST answers one\n");
            return with_header(answer, header::ALLOW, "GET, POST");
        }
        _ => Err(Failure::new(StatusCode::NOT_FOUND, "there is nothing here")),
    };
    match done {
        Ok(value) => json_answer(StatusCode::OK, &value),
        Err(Failure { status, message }) => json_answer(status, &json!({ "error": message })),
    }
}

/// Why a request comes to nothing.
struct Failure {
    status: StatusCode,
    message: String,
}

impl Failure {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        let status = match error.code {
            ErrorCode::BadArguments => StatusCode::NOT_FOUND,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.message)
    }
}

fn json_answer(status: StatusCode, value: &Value) -> Response<Body> {
    with_header(text(status, value.to_string()), header::CONTENT_TYPE, "application/json")
}

async fn ask(hub: &Hub, ask: ReviewAsk) -> Result<Answer, ToolError> {
    hub.call(Call { studio: None, patience: PATIENCE, ask: Ask::Review(ask), operation: None }, None).await
}

async fn list(hub: &Hub) -> Result<Value, Failure> {
    match ask(hub, ReviewAsk::List).await? {
        Answer::Reviews(reviews) => Ok(json!({ "reviews": reviews })),
        _ => Err(wrong()),
    }
}

async fn found(hub: &Hub, id: &str) -> Result<ReviewState, Failure> {
    match ask(hub, ReviewAsk::One(id.into())).await? {
        Answer::Reviews(mut reviews) => {
            reviews.pop().ok_or_else(|| Failure::new(StatusCode::NOT_FOUND, format!("there is no review {id}")))
        }
        _ => Err(wrong()),
    }
}

async fn one(hub: &Hub, id: &str) -> Result<Value, Failure> {
    let review = found(hub, id).await?;
    Ok(serde_json::to_value(review).expect("a review is plain data"))
}

/// Both texts of a change, as they are now; a side that has none is null.
async fn texts(hub: &Hub, session: &Arc<ServeSession>, id: &str, change: &str) -> Result<Value, Failure> {
    let wanted: OpId = serde_json::from_value(json!(change))
        .map_err(|error| Failure::new(StatusCode::BAD_REQUEST, format!("the change's id: {error}")))?;
    let disk = match &wanted {
        OpId::Node(node) => session.look(&[*node]).1.into_iter().flatten().next().and_then(|look| look.source),
        OpId::Temp(_) => None,
    };
    let studio = match ask(hub, ReviewAsk::Text { review: id.into(), id: wanted }).await {
        Ok(Answer::Script { script, .. }) => Some(script.source),
        Ok(_) => return Err(wrong()),
        // It is not there, or no script.
        Err(error) if error.code == ErrorCode::Failed => None,
        Err(error) => return Err(error.into()),
    };
    let hash = |text: &Option<String>| text.as_deref().map(TextHash::of);
    Ok(json!({ "diskHash": hash(&disk), "studioHash": hash(&studio), "disk": disk, "studio": studio }))
}

async fn take_answer(hub: &Hub, id: ReviewId, request: Request<Incoming>) -> Result<Value, Failure> {
    let body = Limited::new(request.into_body(), MAX_BODY).collect().await.map_err(|error| {
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body could not be read (at most {MAX_BODY}): {error}"))
    })?;
    let answer = serde_json::from_slice::<ReviewAnswer>(&body.to_bytes())
        .map_err(|error| Failure::new(StatusCode::BAD_REQUEST, format!("the answer: {error}")))?;
    match ask(hub, ReviewAsk::Answer { review: id, by: Face::Page, answer }).await? {
        Answer::Reviewed(ReviewReply::Taken) => Ok(json!({ "taken": true })),
        Answer::Reviewed(ReviewReply::Wrong(problem)) => Err(Failure::new(StatusCode::BAD_REQUEST, problem)),
        Answer::Reviewed(ReviewReply::Over(why)) => Err(Failure::new(StatusCode::CONFLICT, why)),
        Answer::Reviewed(ReviewReply::Unknown) => Err(Failure::new(StatusCode::NOT_FOUND, "there is no such review")),
        _ => Err(wrong()),
    }
}

fn wrong() -> Failure {
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer of another call came; report this")
}
