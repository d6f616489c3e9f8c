//! Frames from the plugin to the server. They come from outside, so nothing is taken on trust:
//! [`PluginFrame::parse`] says which field of which request was wrong.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{
    MAX_FRAME_BYTES,
    clients::{Attach, Detach},
    fields::read_fields,
    hello::{Hello, whole_number},
    request_id::find_request_id,
    results::{Fact, PluginResult},
};
use crate::core::{
    ids::{LogicalId, NodeId, OpId, RequestId, ReviewId, TreeId},
    review::{ChangeChoice, Choice, ReviewAnswer},
    targets::Target,
};

/// Anything that a plugin sends.
#[derive(Debug, Clone, PartialEq)]
pub enum PluginFrame {
    /// The first frame.
    Hello(Box<Hello>),
    /// A line of Studio's output.
    RobloxLog {
        /// Its text.
        message: String,
        /// `Enum.MessageType`: 0 output, 1 info, 2 warning, 3 error.
        level: u8,
        /// The play client that printed it; absent: the DataModel of the link.
        logical_id: Option<LogicalId>,
    },
    /// A play client answers through this play server from now on. Said again after each welcome.
    Attach {
        /// Which.
        logical_id: LogicalId,
        /// What it is called: `client`, or the name that it had before.
        role: Option<Target>,
        /// Whose client it is.
        player: String,
        /// The requests that it still runs, if any.
        in_flight: Vec<RequestId>,
    },
    /// A play client is gone.
    Detach {
        /// Which.
        logical_id: LogicalId,
    },
    /// The one result of a request.
    Result(PluginResult),
    /// A cancelled request has ended (or was never known).
    Cancelled {
        /// Which.
        request_id: RequestId,
    },
    /// A cancelled request cannot be stopped.
    StillRunning {
        /// Which.
        request_id: RequestId,
    },
    /// A part of a tree (no `requestId`) or plan was taken in; the next may come.
    Taken {
        /// The plan's request.
        request_id: Option<RequestId>,
        /// Which part.
        part: u32,
    },
    /// The whole tree was taken in and paired with the DataModel.
    TreeReady {
        /// Which tree.
        tree_id: TreeId,
        /// As of which version.
        cursor: u32,
        /// How many [`PluginFrame::Facts`] went before.
        parts: u32,
        /// What differs; everything else is equal.
        facts: Vec<Fact>,
    },
    /// A person changed something in Studio. Sent again until `edited` answers.
    Edit {
        /// Counts up with each new one of a plugin session.
        seq: u64,
        /// Nodes that are not what the tree says.
        nodes: Vec<NodeId>,
        /// Nodes whose instances were deleted.
        removed: Vec<NodeId>,
        /// Nodes below which something was made, or came to.
        below: Vec<NodeId>,
    },
    /// A person has answered a review.
    Reviewed {
        /// Which.
        review_id: ReviewId,
        /// What was chosen.
        answer: ReviewAnswer,
    },
    /// The window wants to show the file's side of a change; answered by the notice of this name.
    ReviewText {
        /// Of which review.
        review_id: ReviewId,
        /// Which change.
        id: OpId,
    },
    /// A part of what differs, before the `treeReady` (no `requestId`) or result that ends it.
    Facts {
        /// The sync's request.
        request_id: Option<RequestId>,
        /// Counts 0, 1, 2 …
        part: u32,
        /// Some of what differs.
        facts: Vec<Fact>,
    },
    /// How far a long request is.
    Progress {
        /// Which request.
        request_id: RequestId,
        /// Grows.
        progress: f64,
        /// Where it will end, if known.
        total: Option<f64>,
        /// For the person or agent that waits.
        message: Option<String>,
    },
    /// Answers `challenge`: for each key that the plugin has, that it has it.
    Proof {
        /// 40 hex digits each.
        proofs: Vec<String>,
    },
    /// Answers `challenge` with the code that a person typed.
    Pair {
        /// As typed.
        code: String,
        /// That of the key that the plugin uses from then on; 40 hex digits.
        hash: String,
    },
    /// Answers `heartbeat`.
    Alive,
    /// The plugin is unloading.
    Bye {
        /// Why.
        reason: String,
    },
    /// A type that we do not know.
    Unknown {
        /// Its name.
        kind: String,
    },
}

/// Why a frame could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct FrameError {
    /// The request that it was about, where that could still be made out.
    pub request_id: Option<RequestId>,
    /// What was wrong, with the field's name.
    pub detail: String,
}

impl PluginFrame {
    /// Read one frame.
    ///
    /// # Errors
    /// Too large, not JSON, not an object, or a field that is absent or of the wrong type. A frame
    /// with a bare `nan` (which Luau's encoder writes) is an error of its request only.
    pub fn parse(text: &str) -> Result<Self, FrameError> {
        if text.len() > MAX_FRAME_BYTES {
            let detail = format!("the frame is {} bytes and the limit is {MAX_FRAME_BYTES}", text.len());
            return Err(FrameError { request_id: find_request_id(text), detail });
        }
        let fields = match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Err(FrameError { request_id: None, detail: "a frame must be a JSON object".into() }),
            Err(error) => {
                let request_id = find_request_id(text);
                return Err(FrameError { request_id, detail: format!("the frame is not JSON: {error}") });
            }
        };
        let request_id = fields.get("requestId").and_then(Value::as_str).map(RequestId::from);
        let kind = match fields.get("type") {
            None | Some(Value::Null) => None,
            Some(Value::String(kind)) => Some(kind.clone()),
            Some(_) => return Err(FrameError { request_id, detail: "field `type` must be a string".into() }),
        };
        Self::from_fields(kind.as_deref(), fields).map_err(|detail| FrameError { request_id, detail })
    }

    fn from_fields(kind: Option<&str>, fields: Map<String, Value>) -> Result<Self, String> {
        let Some(kind) = kind else { return read_result(fields).map(Self::Result) };
        let fields = &fields;
        Ok(match kind {
            "hello" => Self::Hello(Box::new(read_hello(fields)?)),
            "roblox_log" => {
                let Log { message, level, logical_id } = read(kind, fields)?;
                Self::RobloxLog { message, level, logical_id }
            }
            "attach" => {
                let Attach { logical_id, role, player, in_flight } = read(kind, fields)?;
                Self::Attach { logical_id, role, player, in_flight }
            }
            "detach" => Self::Detach { logical_id: read::<Detach>(kind, fields)?.logical_id },
            "cancelled" => Self::Cancelled { request_id: read::<Named>(kind, fields)?.request_id },
            "stillRunning" => Self::StillRunning { request_id: read::<Named>(kind, fields)?.request_id },
            "taken" => {
                let Taken { request_id, part } = read(kind, fields)?;
                Self::Taken { request_id, part }
            }
            "treeReady" => {
                let TreeReady { tree_id, cursor, parts, facts } = read(kind, fields)?;
                Self::TreeReady { tree_id, cursor, parts, facts }
            }
            "facts" => {
                let Facts { request_id, part, facts } = read(kind, fields)?;
                Self::Facts { request_id, part, facts }
            }
            "edit" => {
                let Edit { seq, nodes, removed, below } = read(kind, fields)?;
                Self::Edit { seq, nodes, removed, below }
            }
            "reviewed" => {
                let Reviewed { review_id, choices, all } = read(kind, fields)?;
                Self::Reviewed { review_id, answer: ReviewAnswer { choices, all } }
            }
            "reviewText" => {
                let ReviewText { review_id, id } = read(kind, fields)?;
                Self::ReviewText { review_id, id }
            }
            "progress" => {
                let Progress { request_id, progress, total, message } = read(kind, fields)?;
                Self::Progress { request_id, progress, total, message }
            }
            "proof" => Self::Proof { proofs: read::<Proof>(kind, fields)?.proofs },
            "pair" => {
                let Pair { code, hash } = read(kind, fields)?;
                Self::Pair { code, hash }
            }
            "alive" => Self::Alive,
            "bye" => Self::Bye { reason: read::<Bye>(kind, fields)?.reason },
            _ => Self::Unknown { kind: kind.chars().take(80).collect() },
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Log {
    message: String,
    level: u8,
    #[serde(default)]
    logical_id: Option<LogicalId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    request_id: RequestId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Taken {
    #[serde(default)]
    request_id: Option<RequestId>,
    part: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TreeReady {
    tree_id: TreeId,
    cursor: u32,
    #[serde(default)]
    parts: u32,
    #[serde(default)]
    facts: Vec<Fact>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Facts {
    #[serde(default)]
    request_id: Option<RequestId>,
    part: u32,
    facts: Vec<Fact>,
}

#[derive(Deserialize)]
struct Edit {
    #[serde(deserialize_with = "whole_number")]
    seq: u64,
    #[serde(default)]
    nodes: Vec<NodeId>,
    #[serde(default)]
    removed: Vec<NodeId>,
    #[serde(default)]
    below: Vec<NodeId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reviewed {
    review_id: ReviewId,
    #[serde(default)]
    choices: Vec<ChangeChoice>,
    #[serde(default)]
    all: Option<Choice>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReviewText {
    review_id: ReviewId,
    id: OpId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    request_id: RequestId,
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

#[derive(Deserialize)]
struct Proof {
    proofs: Vec<String>,
}

#[derive(Deserialize)]
struct Pair {
    code: String,
    hash: String,
}

#[derive(Deserialize)]
struct Bye {
    #[serde(default)]
    reason: String,
}

fn read<T: DeserializeOwned>(kind: &str, fields: &Map<String, Value>) -> Result<T, String> {
    read_fields(fields).map_err(|error| format!("frame {kind:?}: {error}"))
}

fn read_hello(fields: &Map<String, Value>) -> Result<Hello, String> {
    let level1 = match fields.get("protocol") {
        None | Some(Value::Null) => None,
        Some(_) => Some(read("hello", fields)?),
    };
    Ok(Hello { level1, ..read("hello", fields)? })
}

fn read_result(mut fields: Map<String, Value>) -> Result<PluginResult, String> {
    let mut text = |key: &str| match fields.remove(key) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("field `{key}` must be a string")),
        None => Err(format!("a frame needs `type`, or `requestId` and `status`; `{key}` is absent")),
    };
    let (request_id, status) = (text("requestId")?.into(), text("status")?);
    Ok(PluginResult { request_id, status, fields })
}
