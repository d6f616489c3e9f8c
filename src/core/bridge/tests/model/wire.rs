//! One link as the world sees it, and what must hold for each request on it.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde_json::{Value, json};

use super::{
    super::*,
    PLAYS, PLUGINS,
    kept::operation_of,
    plugin::{Plugin, TEXT},
};
use crate::core::{
    ids::{OperationId, RunId},
    operations::{Intent, Outcome},
    protocol::{NewNode, Request, RequestBody, ServerFrame},
    sync::NodeView,
};

/// What the serve session and the store were asked.
pub(super) enum Task {
    Tree(LinkId),
    CatchUp(RunId),
    Look(RunId, Vec<NodeId>),
    Intend(OperationId, Intent),
    Record(OperationId, RequestId, Option<Outcome>),
    Recover(RequestId, Outcome),
}

/// A link as the world sees it.
pub(super) struct Wire {
    pub place: u64,
    pub level1: bool,
    pub to_plugin: VecDeque<ServerFrame>,
    /// How many pings the other end has not read.
    pub pings: usize,
    pub to_server: VecDeque<Value>,
    /// The bridge asked for its end.
    pub closing: bool,
    /// The bridge was told of its end.
    pub closed: bool,
    /// Nothing gets through any more.
    pub broken: bool,
    /// Of the last request on it; at first what the hello told.
    pub last_n: u64,
}

impl Wire {
    /// A link that this plugin has opened.
    pub fn of(plugin: &Plugin, last_n: u64) -> Self {
        Self {
            place: plugin.place,
            level1: plugin.level1,
            to_plugin: VecDeque::new(),
            pings: 0,
            to_server: VecDeque::new(),
            closing: false,
            closed: false,
            broken: false,
            last_n,
        }
    }

    /// The request was too large to be sent after all, if it was not read yet.
    pub fn takes_back(&mut self, id: &RequestId) -> bool {
        let before = self.to_plugin.len();
        self.to_plugin.retain(|frame| !matches!(frame, ServerFrame::Request(request) if request.request_id == *id));
        self.to_plugin.len() < before
    }
}

/// It is numbered above all before it on this link, goes to the Studio that was meant, and when it
/// is sent again it is the same request on another link.
pub(super) fn check_request(
    wire: &mut Wire,
    link: LinkId,
    request: &Request,
    sent: &mut BTreeMap<RequestId, (Request, Vec<LinkId>)>,
) {
    match (wire.level1, request.n, request.remaining_ms) {
        (true, Some(n), Some(_)) => {
            assert!(n > wire.last_n, "{request:?} after number {}", wire.last_n);
            wire.last_n = n;
        }
        (false, None, None) => {}
        _ => panic!("numbered if and only if the plugin is ours: {request:?}"),
    }
    if let RequestBody::Tool { args, .. } = &request.body
        && !args["caller"].is_null()
    {
        assert_eq!(args["place"], json!(wire.place), "a call of another place");
    }
    let (first, links) = sent.entry(request.request_id.clone()).or_insert_with(|| (request.clone(), Vec::new()));
    let again = Request { remaining_ms: first.remaining_ms, ..request.clone() };
    assert_eq!(&again, first, "sent again, but not the same");
    // A more patient caller may have joined an operation.
    let grew = request.remaining_ms > first.remaining_ms;
    assert!(!grew || operation_of(&request.body).is_some(), "time does not grow");
    assert!(!links.contains(&link), "sent twice on one link");
    assert!(links.is_empty() || wire.level1, "nothing is ever sent again to a level-0 plugin");
    links.push(link);
}

/// What a sync of this caller is about, so that its run can be told from others.
pub(super) fn folder_of(caller: CallerId) -> String {
    format!("of/{}", caller.0)
}

pub(super) fn caller_of(folder: &str) -> CallerId {
    CallerId(folder.trim_start_matches("of/").parse().expect("callers are counted"))
}

/// Any node is a script that carries its run's name.
pub(super) fn view(id: NodeId, run: &RunId, caller: Option<CallerId>) -> NodeView {
    let source = Some(TEXT.to_owned());
    let node = NewNode {
        id,
        name: "New".into(),
        class_name: "ModuleScript".into(),
        source: source.clone(),
        properties: Default::default(),
        children: vec![],
    };
    NodeView {
        parent: Some(NodeId(0)),
        path: run.to_string(),
        class_name: "ModuleScript".into(),
        fs_path: caller.map(|caller| format!("{}/New.luau", folder_of(caller))),
        source,
        hash: Some(TextHash::of(TEXT)),
        subtree: Some(node),
        properties: Default::default(),
    }
}

/// Something that no plugin has reason to say.
pub(super) fn noise(which: usize) -> Value {
    match which {
        0 => json!({"requestId": "of another server", "status": "success", "response": "not yours"}),
        1 => json!({"type": "progress", "requestId": "id-2", "progress": 1}),
        2 => json!({"type": "telepathy"}),
        3 => json!({"type": "taken", "part": which}),
        4 => json!({"type": "treeReady", "treeId": TREE, "cursor": which}),
        5 => json!({"type": "taken"}),
        6 => json!({"type": "roblox_log", "message": "hi", "level": 0}),
        _ => json!({"type": "taken", "requestId": "id-3", "part": 0}),
    }
}

/// A caller has its own result, or a reason why there is none.
pub(super) fn check_outcome(
    caller: CallerId,
    outcome: Result<Answer, ToolError>,
    wanted: &Value,
    runs: &HashMap<RunId, CallerId>,
) {
    match outcome {
        Ok(Answer::Tool(response)) => assert_eq!(response, *wanted, "the result of another call"),
        Ok(Answer::Script { script, .. }) => assert_eq!(script.source, caller.0.to_string(), "another call's script"),
        Ok(Answer::Receipt(receipt)) => {
            for change in &receipt.changes {
                let run = RunId::from(change.path.as_str());
                assert_eq!(runs.get(&run), Some(&caller), "the receipt of another run");
            }
        }
        Ok(Answer::Reviewed(_)) => {}
        Ok(Answer::Status { .. } | Answer::Console(_) | Answer::Call(_) | Answer::Reviews(_)) => panic!("nobody asked"),
        Err(error) => assert!(!error.message.is_empty() && !error.hint.is_empty(), "{error:?}"),
    }
}

/// The plugins of a new world.
pub(super) fn plugins() -> Vec<Plugin> {
    let mut plugins = PLUGINS.map(|(place, level1)| Plugin::new(place, level1));
    plugins[PLAYS] = Plugin::new(PLUGINS[PLAYS].0, true).playing();
    plugins.into()
}

/// Code that tells its caller, in edit mode (0), the play server (4) or one of its clients.
pub(super) fn run_code_in(caller: CallerId, place: u64, ask: usize) -> Ask {
    let target = match ask {
        4 => Target::Server,
        5 => Target::client(1).expect("from 1"),
        6 => Target::client(2).expect("from 1"),
        _ => Target::Edit,
    };
    Ask::Tool { name: "run_code", args: json!({"caller": caller.0, "place": place}), changes: true, target }
}
