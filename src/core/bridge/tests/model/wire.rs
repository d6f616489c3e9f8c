//! One link as the world sees it, and what must hold for each request on it.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use super::{super::*, plugin::TEXT};
use crate::core::{
    ids::RunId,
    protocol::{NewNode, Request, RequestBody, ServerFrame},
    sync::NodeView,
};

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
    assert!(request.remaining_ms <= first.remaining_ms, "time does not grow");
    assert!(!links.contains(&link), "sent twice on one link");
    assert!(links.is_empty() || wire.level1, "nothing is ever sent again to a level-0 plugin");
    links.push(link);
}

/// Any node is a script that carries its run's name.
pub(super) fn view(id: NodeId, run: &RunId) -> NodeView {
    let source = Some(TEXT.to_owned());
    let node =
        NewNode { id, name: "New".into(), class_name: "ModuleScript".into(), source: source.clone(), children: vec![] };
    NodeView {
        parent: Some(NodeId(0)),
        path: run.to_string(),
        class_name: "ModuleScript".into(),
        fs_path: None,
        source,
        hash: Some(TextHash::of(TEXT)),
        subtree: Some(node),
        has_more: false,
    }
}
