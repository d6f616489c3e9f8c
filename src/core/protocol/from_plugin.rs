//! Frames from the plugin to the server. They come from outside, so nothing is taken on trust:
//! [`PluginFrame::parse`] says which field of which request was wrong.

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{
    MAX_FRAME_BYTES,
    clients::{Attach, Detach},
    fields::read_fields,
    request_id::find_request_id,
    results::{Fact, PluginResult},
};
use crate::core::{
    ids::{InstanceId, LogicalId, NodeId, RequestId, ServerId, SessionId, TreeId},
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

/// Who the plugin is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// Plugin setting: both directions.
    pub two_way_sync: bool,
    /// Plugin setting: only `sync` changes anything.
    pub one_shot_sync: bool,
    /// Plugin setting: when a push asks first.
    pub confirmation_behavior: String,
    /// `game.PlaceId`; 0 for a place that was never published.
    #[serde(deserialize_with = "whole_number")]
    pub place_id: u64,
    /// What only our own plugin says. `None`: level 0.
    #[serde(skip)]
    pub level1: Option<HelloLevel1>,
}

/// What our own plugin adds to its hello.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HelloLevel1 {
    /// The protocol the plugin speaks.
    pub protocol: u32,
    /// Its version.
    pub plugin_version: String,
    /// New with every load of the plugin.
    pub session_id: SessionId,
    /// The place.
    pub instance_id: InstanceId,
    /// Which DataModel of a play test (or the edit one).
    pub role: Role,
    /// The place's name.
    #[serde(default)]
    pub place_name: String,
    /// `game.Name`.
    #[serde(default)]
    pub data_model_name: String,
    /// `game.GameId`.
    #[serde(default, deserialize_with = "whole_number")]
    pub game_id: u64,
    /// A play test runs.
    #[serde(default)]
    pub is_running: bool,
    /// How many other people edit this place.
    #[serde(default)]
    pub other_editors: u32,
    /// The tools it offers.
    #[serde(default)]
    pub tools: Vec<String>,
    /// The last server it spoke to.
    #[serde(default)]
    pub server_id: Option<ServerId>,
    /// The highest request number it received from that server.
    #[serde(default)]
    pub last_n: u64,
    /// The tree it holds.
    #[serde(default)]
    pub tree_id: Option<TreeId>,
    /// As of which version.
    #[serde(default)]
    pub cursor: Option<u32>,
    /// Requests that still run.
    #[serde(default)]
    pub in_flight: Vec<RequestId>,
    /// Requests whose results were not acknowledged; they follow.
    #[serde(default)]
    pub pending: Vec<RequestId>,
}

/// Which DataModel of a Studio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The place as it is edited.
    Edit,
    /// The server of a play test.
    Server,
    /// A player's client in a play test.
    Client,
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
                let Attach { logical_id, role, player } = read(kind, fields)?;
                Self::Attach { logical_id, role, player }
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
            "progress" => {
                let Progress { request_id, progress, total, message } = read(kind, fields)?;
                Self::Progress { request_id, progress, total, message }
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
struct Progress {
    request_id: RequestId,
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
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

/// Luau writes every number as a float.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    // 2^53: above it a float no longer holds every whole number.
    if number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        return Ok(number as u64);
    }
    Err(serde::de::Error::custom(format!("expected a whole number that is not negative, got {number}")))
}
