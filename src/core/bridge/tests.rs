//! The bridge, driven event by event. [`Rig`] is a bridge with a clock; what a plugin says is
//! given as the JSON text it would send.

mod calls;
mod hello;
mod level0;
mod live;
mod loss;
mod model;
mod operations;
mod play;
mod play_steps;
mod reviews;
mod runs;
mod targets;
mod trees;
mod turns;

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

use super::{Answer, Ask, Bridge, Call, CallerId, Effect, Event, Introduction, PlacePolicy, Work, Worked};
use crate::core::{
    calls::Moment,
    error::{ErrorCode, ToolError},
    ids::{NodeId, RequestId},
    operations::Claim,
    play::OwnerId,
    protocol::{Node, Patch, PatchOp, PluginFrame, TreePart},
    studios::LinkId,
    sync::{Begun, SyncArgs, SyncStatus},
    targets::Target,
    text::TextHash,
};

const SERVER: &str = "server-1";
const TREE: &str = "tree-1";
/// How long [`Rig::tool`] waits: less than a link may be silent.
const PATIENCE: Duration = Duration::from_secs(25);

/// A bridge and its clock.
struct Rig {
    bridge: Bridge,
    /// Its id.
    server: String,
    now: Moment,
    links: u64,
    callers: u64,
    /// How many ids were made.
    made: Arc<AtomicU64>,
    /// The store says at once that an outcome is kept.
    keeps: bool,
}

fn new_bridge(server: &str, places: PlacePolicy, made: &Arc<AtomicU64>) -> Bridge {
    let intro = Introduction {
        server_id: server.into(),
        server_version: "9.8.7".into(),
        tree_id: TREE.into(),
        project: "game".into(),
    };
    let made = Arc::clone(made);
    let new_id = move || RequestId::from(format!("id-{}", made.fetch_add(1, Ordering::Relaxed) + 1));
    Bridge::new(intro, places, new_id)
}

/// What one event led to.
#[derive(Debug, Default)]
struct Out(Vec<Effect>);

impl Rig {
    fn new() -> Self {
        Self::serving(PlacePolicy::default())
    }

    fn serving(places: PlacePolicy) -> Self {
        let made = Arc::default();
        let bridge = new_bridge(SERVER, places, &made);
        Self { bridge, server: SERVER.to_owned(), now: Moment::ZERO, links: 0, callers: 0, made, keeps: true }
    }

    /// The server is killed and started again: another process, which knows nothing.
    fn restart(&mut self) {
        self.server = format!("server-after-{}", self.links);
        self.bridge = new_bridge(&self.server, PlacePolicy::default(), &self.made);
        self.now = Moment::ZERO;
    }

    /// Handle an event, and then what it leads to. A store that knows nothing answers each question
    /// once all that was decided together is carried out, as every owner of a bridge does.
    fn event(&mut self, event: Event) -> Out {
        let mut out = Out::default();
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for effect in self.bridge.handle(self.now, event) {
                match effect {
                    Effect::LoadBases { place, .. } => {
                        events.push_back(Event::BasesLoaded { place, kept: vec![], cut_off: vec![], unseen: None });
                    }
                    Effect::Remember { .. }
                    | Effect::KeepSession { .. }
                    | Effect::MovePlace { .. }
                    | Effect::CutOff { .. }
                    | Effect::Clear { .. } => {}
                    Effect::Work { run, work: Work::Begin(draft) } => {
                        let done = Worked::Begun(Begun::Entry(1, draft.entry));
                        events.push_back(Event::Worked { run, done });
                    }
                    Effect::Work { run, work: Work::History(_) } => {
                        events.push_back(Event::Worked { run, done: Worked::History(BTreeSet::new()) });
                    }
                    Effect::Work { run, work: Work::Check(writes) } => {
                        let done = Worked::Checked(vec![None; writes.len()]);
                        events.push_back(Event::Worked { run, done });
                    }
                    Effect::Work { run, work: Work::Conclude { .. } } => {
                        events.push_back(Event::Worked { run, done: Worked::Concluded(Ok(())) });
                    }
                    other => {
                        if let Effect::Record { request, .. } | Effect::Recover { request, .. } = &other
                            && self.keeps
                        {
                            events.push_back(Event::Recorded { request: request.clone() });
                        }
                        out.0.push(other);
                    }
                }
            }
        }
        out
    }

    /// Let time pass, with a tick whenever the bridge wants one.
    fn pass(&mut self, time: Duration) -> Out {
        let until = self.now + time;
        let mut out = Out::default();
        while self.bridge.next_tick() <= until {
            self.now = self.now.max(self.bridge.next_tick());
            out.0.extend(self.event(Event::Tick).0);
            assert!(self.bridge.next_tick() > self.now, "a tick leaves nothing to do at the same moment");
        }
        self.now = until;
        out
    }

    fn open(&mut self) -> LinkId {
        self.links += 1;
        let link = LinkId(self.links);
        self.event(Event::Opened { link });
        link
    }

    /// The plugin says `frame`.
    fn say(&mut self, link: LinkId, frame: &Value) -> Out {
        self.say_text(link, &frame.to_string())
    }

    fn say_text(&mut self, link: LinkId, text: &str) -> Out {
        self.event(Event::Frame { link, frame: PluginFrame::parse(text) })
    }

    /// A new link whose hello is accepted.
    fn link(&mut self, hello: &Value) -> LinkId {
        let (link, out) = self.try_link(hello);
        assert!(out.closed(link).is_none(), "refused: {out:?}");
        link
    }

    /// A new link that says `hello`.
    fn try_link(&mut self, hello: &Value) -> (LinkId, Out) {
        let link = self.open();
        let out = self.say(link, hello);
        (link, out)
    }

    fn close(&mut self, link: LinkId) -> Out {
        self.event(Event::Closed { link, reason: "the test cut it".into() })
    }

    fn call(&mut self, studio: Option<&str>, patience: Duration, ask: Ask) -> (CallerId, Out) {
        self.callers += 1;
        let caller = CallerId(self.callers);
        let call = Call { studio: studio.map(str::to_owned), patience, ask, operation: None };
        (caller, self.event(Event::Call { caller, call }))
    }

    /// Run code in the only Studio as operation `id`.
    fn change(&mut self, id: &str, patience: Duration) -> (CallerId, Out) {
        self.callers += 1;
        let caller = CallerId(self.callers);
        let claim = Claim { id: id.into(), tool: "run_code".into(), args_hash: "of the code".into() };
        let call = Call { studio: None, patience, ask: run_code(), operation: Some(claim) };
        (caller, self.event(Event::Call { caller, call }))
    }

    /// Call a tool of the only Studio that changes nothing.
    fn tool(&mut self) -> (CallerId, Out) {
        self.call(None, PATIENCE, look())
    }

    /// Call a tool of the only Studio; the id of the request that it became.
    fn tool_request(&mut self, link: LinkId) -> (CallerId, String) {
        let (caller, out) = self.tool();
        (caller, out.one(link)["requestId"].as_str().expect("a request has an id").to_owned())
    }

    fn status(&mut self) -> Answer {
        let (caller, out) = self.call(None, PATIENCE, Ask::Status(OwnerId(1)));
        out.outcome(caller).clone().expect("status always answers")
    }

    /// Names and link states of the Studios, as `status` has them.
    fn studios(&mut self) -> Vec<String> {
        let Answer::Status { studios, .. } = self.status() else { panic!("not a status") };
        studios.iter().map(|studio| format!("{} {:?}", studio.studio, studio.link)).collect()
    }

    /// Bring the tree of `nodes` to the plugin on `link`, which finds `facts`.
    fn load(&mut self, link: LinkId, cursor: u32, nodes: Vec<Node>, facts: &Value) -> Out {
        let part = TreePart { tree_id: TREE.into(), cursor, part: 0, last: true, nodes };
        self.event(Event::TreeBuilt { link, parts: vec![part] });
        self.say(link, &json!({"type": "treeReady", "treeId": TREE, "cursor": cursor, "facts": facts}))
    }
}

impl Out {
    /// The frames for `link`, as JSON.
    fn frames(&self, link: LinkId) -> Vec<Value> {
        self.0
            .iter()
            .filter_map(|effect| match effect {
                Effect::Send { link: to, frame } if *to == link => {
                    Some(serde_json::to_value(frame).expect("frames are JSON"))
                }
                _ => None,
            })
            .collect()
    }

    /// The types of the frames for `link`.
    fn kinds(&self, link: LinkId) -> Vec<String> {
        self.frames(link).iter().map(|frame| frame["type"].as_str().expect("every frame has a type").into()).collect()
    }

    /// The frames of one type for `link`.
    fn of_type(&self, link: LinkId, kind: &str) -> Vec<Value> {
        self.frames(link).into_iter().filter(|frame| frame["type"] == kind).collect()
    }

    /// The only frame for `link`.
    fn one(&self, link: LinkId) -> Value {
        let frames = self.frames(link);
        assert_eq!(frames.len(), 1, "one frame for {link:?}: {self:?}");
        frames.into_iter().next().expect("counted above")
    }

    /// Why `link` is closed, if it is. Never twice.
    fn closed(&self, link: LinkId) -> Option<String> {
        let reasons: Vec<&String> = self
            .0
            .iter()
            .filter_map(|effect| match effect {
                Effect::Close { link: which, reason } if *which == link => Some(reason),
                _ => None,
            })
            .collect();
        assert!(reasons.len() <= 1, "closed more than once: {reasons:?}");
        reasons.first().map(|reason| (*reason).clone())
    }

    fn settled(&self) -> Vec<(CallerId, &Result<Answer, ToolError>)> {
        self.0
            .iter()
            .filter_map(|effect| match effect {
                Effect::Settle { caller, outcome } => Some((*caller, outcome)),
                _ => None,
            })
            .collect()
    }

    /// What `caller` was told, once.
    fn outcome(&self, caller: CallerId) -> &Result<Answer, ToolError> {
        let mine: Vec<_> = self.settled().into_iter().filter(|(who, _)| *who == caller).collect();
        assert_eq!(mine.len(), 1, "settled once: {self:?}");
        mine[0].1
    }

    /// The error that `caller` was told.
    fn error(&self, caller: CallerId) -> &ToolError {
        self.outcome(caller).as_ref().expect_err("an error")
    }

    fn code(&self, caller: CallerId) -> ErrorCode {
        self.error(caller).code
    }
}

/// A hello of level 0.
fn hello0(place: u64) -> Value {
    json!({
        "type": "hello", "twoWaySync": false, "oneShotSync": true, "confirmationBehavior": "Never", "placeId": place,
    })
}

/// A hello of our plugin, in edit mode.
fn hello(session: &str, place: u64) -> Value {
    let level1 = json!({
        "protocol": 1, "pluginVersion": "0.1.0", "sessionId": session, "instanceId": format!("place:{place}"),
        "role": "edit", "placeName": format!("Place {place}"),
    });
    with(hello0(place), level1)
}

/// A hello of a plugin that has spoken to this server before.
fn hello_again(session: &str, last_n: u64, in_flight: &[&str], pending: &[&str]) -> Value {
    let memory = json!({"serverId": SERVER, "lastN": last_n, "inFlight": in_flight, "pending": pending});
    with(hello(session, 11), memory)
}

/// `base` with the fields of `more` put in. Null removes a field.
fn with(base: Value, more: Value) -> Value {
    let (Value::Object(mut base), Value::Object(more)) = (base, more) else { panic!("two objects") };
    for (key, value) in more {
        if value.is_null() {
            base.remove(&key);
        } else {
            base.insert(key, value);
        }
    }
    Value::Object(base)
}

fn run_code() -> Ask {
    Ask::Tool { name: "run_code", args: json!({"command": "return 1"}), changes: true, target: Target::Edit }
}

/// As [`run_code`], of a tool that changes nothing.
fn look() -> Ask {
    Ask::Tool { name: "look", args: json!({"at": "it"}), changes: false, target: Target::Edit }
}

fn success(request: &str, response: &Value) -> Value {
    json!({"requestId": request, "status": "success", "response": response})
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn serves(places: &[u64]) -> PlacePolicy {
    PlacePolicy { serve: Some(places.iter().copied().collect()), ..PlacePolicy::default() }
}

/// A script below the root.
fn script(id: u128, text: &str) -> Node {
    Node {
        id: NodeId(id),
        parent: Some(NodeId(0)),
        name: format!("Script{id}"),
        class_name: "ModuleScript".into(),
        ignore_unknown: false,
        properties: Default::default(),
        hash: Some(TextHash::of(text)),
    }
}

fn patch(cursor: u32, node: Node) -> Event {
    let ops = vec![PatchOp::Put { node }];
    Event::Patched(Arc::new(Patch { tree_id: TREE.into(), cursor, apply: false, ops }))
}
