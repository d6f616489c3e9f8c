//! Frames from the server to the plugin.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Patch, TreePart, hello::Role, plan::PlanOp, results::is_false, review::ReviewFrame};
use crate::core::{
    classes::PropertyTypes,
    ids::{InstanceId, LogicalId, NodeId, OpId, RequestId, ReviewId, RunId, ServerId, TempId, TreeId},
    targets::Target,
};

/// Anything that the server sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ServerFrame {
    /// A frame that wants no result.
    Notice(Notice),
    /// A frame that wants exactly one result.
    Request(Request),
}

/// A frame that wants no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Notice {
    /// The hello was accepted. Level 1.
    Welcome(Welcome),
    /// The plugin must show that it is paired; answered by `proof` or `pair`, before the welcome. Level 1.
    Challenge {
        /// Whose list of pairings it is about.
        realm: String,
        /// Used once.
        nonce: String,
    },
    /// Every 5 s; answered by `alive`. Level 1.
    Heartbeat {
        /// Milliseconds since the server started; echoed.
        timestamp: u64,
    },
    /// A part of the tree. Level 1.
    Tree(TreePart),
    /// A change of the tree. Level 1.
    Patch(Patch),
    /// A further part of a plan, after `taken`. Level 1.
    PlanPart {
        /// The plan's request.
        request_id: RequestId,
        /// Counts on from the request's own part 0.
        part: u32,
        /// The plan is complete and runs.
        last: bool,
        /// More of its steps.
        ops: Vec<PlanOp>,
    },
    /// The request's caller no longer waits. Answered by `cancelled`, `stillRunning` or the result.
    Cancel {
        /// Which request.
        request_id: RequestId,
        /// Why.
        reason: CancelReason,
    },
    /// A result has arrived; the plugin forgets it.
    Ack {
        /// Which request.
        request_id: RequestId,
        /// What became of the result.
        disposition: AckDisposition,
    },
    /// Answers `attach`. Level 1.
    Attached {
        /// Which client.
        logical_id: LogicalId,
        /// What it is called from now on.
        role: Target,
    },
    /// How this Studio stands, when that has changed; at most with every heartbeat. Level 1.
    Status {
        /// How many callers wait for it.
        agents: usize,
        /// How many requests it has not answered.
        pending: usize,
        /// Another window wants this place and is refused; for the person at the screen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rival: Option<String>,
    },
    /// What an `edit` told is dealt with; the plugin need not send it again. Level 1.
    Edited {
        /// Which.
        seq: u64,
    },
    /// A person is to be asked, or has something to look at. Level 1, and only if the hello says `reviews`.
    Review(ReviewFrame),
    /// A review is over.
    ReviewClosed {
        /// Which.
        review_id: ReviewId,
        /// For the person at the screen.
        reason: String,
    },
    /// The file's side of a change, as it is now. Answers `reviewText`.
    ReviewText {
        /// Of which review.
        review_id: ReviewId,
        /// Which change.
        id: OpId,
        /// The text; absent: there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
    },
    /// What came of an answer.
    ReviewOutcome {
        /// Of which review.
        review_id: ReviewId,
        /// It was carried out.
        ok: bool,
        /// For the person at the screen.
        text: String,
    },
    /// The link is refused; a close frame follows.
    Rejected {
        /// What was wrong.
        code: RejectCode,
        /// For the person at the screen.
        reason: String,
        /// Seconds after which another try may succeed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u32>,
    },
    /// The server leaves; a close frame follows.
    Bye {
        /// For the person at the screen.
        reason: String,
    },
}

/// The server's side of the hello.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// The protocol that both sides speak from here on.
    pub protocol: u32,
    /// Our version.
    pub server_version: String,
    /// New with every server process.
    pub server_id: ServerId,
    /// The tree that will be sent.
    pub tree_id: TreeId,
    /// The project's name.
    pub project: String,
    /// The role this link has from now on.
    pub assigned_role: Role,
    /// The place is a copy of one that is open as well: this is its own name from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<InstanceId>,
    /// Seconds between heartbeats.
    pub heartbeat_seconds: u32,
    /// What neither side may exceed.
    pub limits: Limits,
}

/// Bounds, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Of one frame.
    pub max_frame_bytes: usize,
    /// Of one part of a tree or plan.
    pub max_part_bytes: usize,
    /// Of all results that were not acknowledged.
    pub max_pending_bytes: usize,
}

/// Why a request is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CancelReason {
    /// Its deadline passed.
    Timeout,
    /// Its caller cancelled or went away.
    Aborted,
    /// The server is stopping.
    Shutdown,
}

/// What became of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AckDisposition {
    /// It reached its caller.
    Accepted,
    /// The request had an outcome before.
    AlreadySettled,
    /// No such request.
    Unknown,
}

/// Why a hello is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectCode {
    /// No hello within 10 s.
    HelloTimeout,
    /// The first frame was not a hello, or a field of it was wrong.
    BadHello,
    /// The project names the places it serves, and this is none of them (or is blocked).
    PlaceNotServed,
    /// Another live plugin holds this place and role.
    DuplicateSession,
    /// The plugin is too old or too new.
    Unsupported,
    /// 64 Studios are linked already.
    TooManyStudios,
    /// Only paired plugins are taken in here, and this one is not.
    NotPaired,
    /// That code is not taken.
    BadCode,
}

/// A frame that wants exactly one result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Names the request for ever.
    pub request_id: RequestId,
    /// Its number on this (server, plugin session), from 1. The plugin ignores a number that is
    /// not above all it has seen. Level 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// Milliseconds until the caller gives up. Level 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_ms: Option<u64>,
    /// The play client that it is for; the play server on the link hands it on. Level 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_id: Option<LogicalId>,
    /// The DataModel of a play test that it is for. A plugin that is not there refuses it. Level 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// What is asked.
    #[serde(flatten)]
    pub body: RequestBody,
}

/// What a request asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RequestBody {
    /// Compare the DataModel with the tree as of `cursor`; the result carries the facts.
    Sync {
        /// Joins the requests of one run. Level 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<RunId>,
        /// The tree version to compare with. Level 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<u32>,
        /// Only a part of the tree. Level 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<Scope>,
        /// How the run treats what it finds.
        mode: SyncMode,
        /// Decisions taken beforehand.
        overrides: Vec<Value>,
    },
    /// Read one script.
    GetScript {
        /// Which.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<NodeId>,
        /// Which, if only Studio has it. Level 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temp_id: Option<TempId>,
        /// The unsaved editor text instead of `Source`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_draft: Option<bool>,
    },
    /// Read an instance that only Studio has, with all below it; the result carries it as a `node`.
    /// Level 1.
    GetInstance {
        /// Which.
        temp_id: TempId,
        /// Of each class that is in it: its properties and their types.
        classes: BTreeMap<String, PropertyTypes>,
    },
    /// Change the DataModel: all guards first, then every step inside one undo recording. Level 1.
    Plan {
        /// The run it belongs to.
        run_id: RunId,
        /// What Studio's undo menu shows.
        undo_name: String,
        /// A step that fails takes back all of them.
        #[serde(default, skip_serializing_if = "is_false")]
        all_or_nothing: bool,
        /// Always 0 here; `planPart` carries the rest.
        part: u32,
        /// No `planPart` follows.
        last: bool,
        /// The first steps.
        ops: Vec<PlanOp>,
    },
    /// Any other type is a tool of the plugin's that we pass through.
    #[serde(untagged)]
    Tool {
        /// The tool's name.
        #[serde(rename = "type")]
        name: String,
        /// Its arguments, a JSON object.
        args: Value,
    },
}

/// A part of the tree, to be compared by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    /// These nodes, without what lies below them.
    pub nodes: Vec<NodeId>,
    /// What only Studio has directly below these.
    pub below: Vec<NodeId>,
}

/// How a sync run treats what it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncMode {
    /// Apply when all is resolved; else ask.
    #[default]
    Standard,
    /// Always ask.
    Manual,
    /// Give up when anything is unresolved.
    Fastfail,
    /// Only report.
    Dryrun,
}
