//! A plugin that keeps to the protocol.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    super::{hello, hello0, seconds, with},
    PLAYS,
    clients::Clients,
    kept::BOOM,
    play::{asked, starts},
    reviews::CHOICES,
};
use crate::core::{
    ids::{NodeId, RequestId, ReviewId},
    protocol::{Notice, PlanOp, Request, RequestBody, ServerFrame, SyncMode},
    studios::LinkId,
    text::TextHash,
};

/// The text of each script in the model's tree.
pub(super) const TEXT: &str = "return 'tree'";

/// One plugin: what it remembers and what runs in it.
pub(super) struct Plugin {
    pub place: u64,
    pub level1: bool,
    pub link: Option<LinkId>,
    loads: u64,
    welcomed: bool,
    server: Option<Value>,
    highest: u64,
    running: Vec<(RequestId, RequestBody)>,
    /// What it ran already when it connected.
    older: HashSet<RequestId>,
    /// Results that were not acknowledged.
    pending: Vec<(RequestId, Value)>,
    /// What the person at its screen is shown.
    shown: Vec<ReviewId>,
    /// What it says next.
    pub says: VecDeque<Value>,
    /// How long it has heard nothing, by its own clock.
    silence: Duration,
    /// Those of a play server; others have none.
    clients: Option<Clients>,
}

impl Plugin {
    pub fn new(place: u64, level1: bool) -> Self {
        Self {
            place,
            level1,
            link: None,
            loads: 0,
            welcomed: false,
            server: None,
            highest: 0,
            running: Vec::new(),
            older: HashSet::new(),
            pending: Vec::new(),
            shown: Vec::new(),
            says: VecDeque::new(),
            silence: Duration::ZERO,
            clients: None,
        }
    }

    /// A play server with two players.
    pub fn playing(self) -> Self {
        let clients = Some(Clients::two(self.loads));
        Self { clients, ..self }
    }

    /// Time passes for it. `true`: it takes its link for dead. (Level 0 may wait for ever.)
    pub fn silent_for(&mut self, time: Duration) -> bool {
        self.silence += time;
        self.level1 && self.link.is_some() && self.silence > seconds(20)
    }

    pub fn reload(&mut self) {
        let plays = self.clients.is_some();
        let fresh = Self { loads: self.loads + 1, ..Self::new(self.place, self.level1) };
        *self = if plays { fresh.playing() } else { fresh };
    }

    /// It opens `link` and says hello. What it told its last link is gone with that.
    pub fn connect(&mut self, link: LinkId, index: usize) {
        self.link = Some(link);
        self.silence = Duration::ZERO;
        self.welcomed = false;
        self.says.clear();
        if !self.level1 {
            self.running.clear();
            return self.says.push_back(hello0(self.place));
        }
        self.older = self.running.iter().map(|(id, _)| id.clone()).collect();
        let ids = |requests: Vec<&RequestId>| json!(requests);
        let memory = json!({
            "reviews": self.place == 1, "serverId": self.server, "lastN": self.highest,
            "inFlight": ids(self.running.iter().map(|(id, _)| id).collect()),
            "pending": ids(self.pending.iter().map(|(id, _)| id).collect()),
        });
        let role = if index == PLAYS { "server" } else { "edit" };
        let hello = with(hello(&format!("session-{index}-{}", self.loads), self.place), json!({"role": role}));
        self.says.push_back(with(hello, memory));
    }

    /// The highest request number of `server` that the hello told.
    pub fn last_n(&self, server: &str) -> u64 {
        if self.server == Some(json!(server)) { self.highest } else { 0 }
    }

    /// It reads a frame; the request that it begins to run.
    pub fn read(&mut self, frame: ServerFrame) -> Option<Request> {
        self.silence = Duration::ZERO;
        match frame {
            ServerFrame::Request(request) => return Some(self.begin(request)),
            ServerFrame::Notice(Notice::Welcome(welcome)) => {
                let server = Some(json!(welcome.server_id));
                if self.server != server {
                    self.server = server;
                    self.highest = 0;
                }
                self.welcomed = true;
                self.shown.clear();
                let running: Vec<RequestId> = self.running.iter().map(|(id, _)| id.clone()).collect();
                self.says.extend(self.clients.iter().flat_map(|clients| clients.announce(&running)));
                self.says.extend(self.pending.iter().map(|(_, result)| result.clone()));
            }
            ServerFrame::Notice(Notice::Heartbeat { timestamp }) => {
                self.says.push_back(json!({"type": "alive", "timestamp": timestamp}));
            }
            ServerFrame::Notice(Notice::Tree(part)) => {
                self.says.push_back(json!({"type": "taken", "part": part.part}));
                if part.last {
                    self.says.push_back(json!({"type": "treeReady", "treeId": part.tree_id, "cursor": part.cursor}));
                }
            }
            ServerFrame::Notice(Notice::Cancel { request_id, .. }) => self.cancel(&request_id),
            ServerFrame::Notice(Notice::Ack { request_id, .. }) => self.pending.retain(|(id, _)| *id != request_id),
            ServerFrame::Notice(Notice::Review(review)) => self.shown.push(review.review_id),
            ServerFrame::Notice(Notice::ReviewClosed { review_id, .. }) => self.shown.retain(|id| *id != review_id),
            ServerFrame::Notice(Notice::Attached { logical_id, role }) => {
                let clients = self.clients.as_mut().expect("only a play server has clients");
                clients.attached(&logical_id, role);
            }
            ServerFrame::Notice(
                Notice::Patch(_)
                | Notice::PlanPart { .. }
                | Notice::Edited { .. }
                | Notice::ReviewText { .. }
                | Notice::ReviewOutcome { .. }
                | Notice::Status { .. }
                | Notice::Challenge { .. }
                | Notice::Rejected { .. }
                | Notice::Bye { .. },
            ) => {}
        }
        None
    }

    fn begin(&mut self, request: Request) -> Request {
        if self.level1 {
            let n = request.n.expect("a request of level 1 is numbered");
            assert!(n > self.highest, "{request:?} would be ignored: {} was received", self.highest);
            self.highest = n;
        }
        let is_here = match &mut self.clients {
            Some(clients) => clients.take(&request),
            None => {
                assert_eq!((&request.logical_id, request.target), (&None, None), "for another DataModel: {request:?}");
                true
            }
        };
        let together =
            |id: &RequestId| self.clients.as_ref().is_none_or(|clients| clients.are_together(id, &request.request_id));
        let others = self.running.iter().filter(|(id, body)| changes(body) && together(id));
        // A plugin of level 0 may lose its turn at a deadline.
        let alone = !self.level1 || others.count() == 0;
        assert!(!changes(&request.body) || alone, "two changes at a time: {request:?}");
        if let RequestBody::Sync { run_id: Some(_), mode: SyncMode::Standard, .. } = &request.body {
            let plans = self
                .running
                .iter()
                .filter(|(id, body)| matches!(body, RequestBody::Plan { .. }) && !self.older.contains(id));
            assert_eq!(plans.count(), 0, "a sync compares while another changes: {request:?}");
        }
        if is_here {
            self.running.push((request.request_id.clone(), request.body.clone()));
        } else {
            self.fail(&request.request_id, "no_target");
        }
        request
    }

    /// A client comes or goes. What one that goes was asked may have run.
    pub fn client(&mut self, which: usize) {
        let Some(clients) = &mut self.clients else { return };
        let (said, left) = clients.change(which);
        if self.welcomed {
            self.says.push_back(said);
        }
        for id in left {
            if self.running.iter().any(|(running, _)| *running == id) {
                self.running.retain(|(running, _)| *running != id);
                self.fail(&id, "outcome_unknown");
            }
        }
    }

    fn fail(&mut self, id: &RequestId, code: &str) {
        let result = json!({"requestId": id, "status": "error", "code": code, "message": "the client is gone"});
        self.pending.push((id.clone(), result.clone()));
        if self.welcomed {
            self.says.push_back(result);
        }
    }

    pub fn runs(&self) -> bool {
        !self.running.is_empty()
    }

    /// A server has let it in.
    pub fn is_welcome(&self) -> bool {
        self.level1 && self.welcomed
    }

    /// It runs something, or keeps results that nobody acknowledged.
    pub fn is_busy(&self) -> bool {
        !self.running.is_empty() || !self.pending.is_empty()
    }

    /// A plan is never interrupted, and code that runs cannot always be stopped.
    fn cancel(&mut self, request: &RequestId) {
        if self.pending.iter().any(|(id, _)| id == request) {
            return; // its result is the answer
        }
        let stops = |body: &RequestBody| match body {
            RequestBody::Sync { .. } | RequestBody::GetScript { .. } | RequestBody::GetInstance { .. } => true,
            RequestBody::Tool { args, .. } => args["caller"].as_u64().is_some_and(|caller| caller.is_multiple_of(2)),
            RequestBody::Plan { .. } => false,
        };
        if self.running.iter().any(|(id, body)| id == request && !stops(body)) {
            return self.says.push_back(json!({"type": "stillRunning", "requestId": request}));
        }
        self.running.retain(|(id, _)| id != request);
        self.says.push_back(json!({"type": "cancelled", "requestId": request}));
    }

    /// It finishes one of its requests.
    pub fn finish(&mut self, which: usize) {
        if self.running.is_empty() {
            return;
        }
        let (id, body) = self.running.remove(which % self.running.len());
        let result = with(answer(&id, &body, which), json!({ "requestId": id }));
        if self.level1 {
            self.pending.push((id, result.clone()));
        }
        if self.welcomed || !self.level1 {
            self.says.push_back(result);
        }
    }

    /// The person at its screen answers the last question, or one that is over.
    pub fn answers(&mut self, which: usize) {
        let choice = CHOICES[which % CHOICES.len()];
        let last = self.shown.last().map_or("nobody's", |id| id.as_str());
        if self.welcomed {
            self.says.push_back(json!({"type": "reviewed", "reviewId": last, "all": choice}));
        }
    }

    pub fn repeat(&mut self, which: usize) {
        let result = self.pending.get(which % self.pending.len().max(1)).map(|(_, result)| result.clone());
        if self.welcomed {
            self.says.extend(result);
        }
    }
}

/// It may change something, so it runs alone.
fn changes(body: &RequestBody) -> bool {
    match body {
        RequestBody::Plan { .. } => true,
        RequestBody::Tool { name, .. } => name == "run_code" || starts(body),
        RequestBody::Sync { .. } | RequestBody::GetScript { .. } | RequestBody::GetInstance { .. } => false,
    }
}

/// The result of a request. It carries the caller, so that a mix-up shows.
fn answer(request: &RequestId, body: &RequestBody, which: usize) -> Value {
    match body {
        RequestBody::Tool { .. } if which == 3 => json!({"status": "error", "response": BOOM}),
        RequestBody::Tool { .. } if which == 5 => json!({"status": 7}),
        RequestBody::Tool { name, args } if name == "start_stop_play" => {
            json!({"status": "success", "response": asked(args, which)})
        }
        RequestBody::Tool { args, .. } => json!({"status": "success", "response": args["caller"]}),
        RequestBody::GetScript { id, .. } => {
            let source = id.expect("a script is asked for by its id").0.to_string();
            json!({"status": "success", "source": source, "studioHash": "opaque"})
        }
        RequestBody::GetInstance { .. } => json!({"status": "error", "message": "not here"}),
        // Only a level-0 plugin is asked without a run.
        RequestBody::Sync { run_id: None, .. } => {
            let status = ["success", "rejected", "already_connected", "sync_in_progress"][which % 4];
            let change = json!({"path": request, "direction": "push", "className": "Script", "patchType": "Edit"});
            json!({"status": status, "changes": [change]})
        }
        RequestBody::Sync { .. } if which == 3 => json!({"status": "success", "facts": []}),
        RequestBody::Sync { run_id, .. } => {
            let run = run_id.as_ref().expect("a run has a name").to_string();
            let id = NodeId(1_000 + run.trim_start_matches("id-").parse::<u128>().expect("ids are counted"));
            let kind = if which == 2 { "differs" } else { "missing" };
            let fact = json!({
                "kind": kind, "id": id, "path": "x", "className": "ModuleScript", "studioHash": TextHash::of("mine"),
            });
            json!({"status": "success", "facts": [fact]})
        }
        RequestBody::Plan { ops, .. } => {
            let results: Vec<Value> = ops
                .iter()
                .map(PlanOp::subject)
                .map(|id| match which {
                    4 => json!({"id": id, "status": "failed", "error": "locked"}),
                    _ => json!({"id": id, "status": "done", "hash": TextHash::of(TEXT)}),
                })
                .collect();
            json!({"status": "success", "results": results})
        }
    }
}
