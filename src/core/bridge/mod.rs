//! Who is linked and what waits: every decision about Studios, calls and syncs.
//!
//! [`Bridge::handle`] takes one event and answers with what is to be done. It does nothing itself:
//! whoever owns it (the hub, or a test) carries the effects out and brings their results back as
//! events. `now` is the time since the owner started.

mod acks;
mod bases;
mod calls;
mod cancels;
mod clients;
mod copies;
mod events;
mod late;
mod level0;
mod links;
mod live;
mod operations;
mod places;
mod plan_parts;
mod play;
mod play_steps;
mod read;
mod review_faces;
mod reviews;
mod run_ends;
mod run_turns;
mod runs;
mod standing;
mod targets;
#[cfg(test)]
mod tests;
mod ticks;
mod trees;
mod turns;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};

use acks::Owed;
pub use events::{Effect, Event, Work, Worked};
use late::Late;
pub use late::{CallRecord, CallState};
use operations::{Operations, Ran};
pub use places::PlacePolicy;
pub use read::StudioScript;
use reviews::Reviews;
use run_turns::RunTurns;
use runs::ActiveRun;

use super::{
    calls::{Calls, Moment},
    console::{Page, Query},
    error::ToolError,
    ids::{NodeId, OperationId, RequestId, ReviewId, RunId, ServerId, TreeId},
    lanes::Lanes,
    operations::Claim,
    play::{Goal, Leases, OwnerId, PlayMode},
    protocol::{HEARTBEAT, PlanOp, Request, RequestBody, ServerFrame},
    review::{ReviewAsk, ReviewReply, ReviewState},
    status::StudioStatus,
    studios::{LinkId, StudioKey, Studios},
    sync::{Receipt, SyncArgs},
    targets::Target,
    text::TextHash,
};

/// Someone who waits for the outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallerId(pub u64);

/// What an agent wants.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Which Studio; `None`: the only one.
    pub studio: Option<String>,
    /// How long the caller waits.
    pub patience: Duration,
    /// What.
    pub ask: Ask,
    /// For a change that its caller may repeat: it has one outcome.
    pub operation: Option<Claim>,
}

/// What can be asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// A tool of the plugin's.
    Tool {
        /// Its name.
        name: &'static str,
        /// Its arguments.
        args: serde_json::Value,
        /// It may change something, so it waits for its turn.
        changes: bool,
        /// In which DataModel.
        target: Target,
    },
    /// Studio's text of a script.
    GetScript {
        /// Which.
        id: NodeId,
        /// The unsaved text, where there is one.
        from_draft: bool,
    },
    /// What it printed. Settled at once; a foreign plugin is asked.
    Console {
        /// Which DataModel.
        target: Target,
        /// Which lines.
        query: Query,
    },
    /// Whether it edits or plays, as the DataModel says; `None`: the one that says it of all.
    Mode {
        /// Which DataModel.
        target: Option<Target>,
    },
    /// A sync run.
    Sync(SyncArgs),
    /// Start or end a play test.
    Play {
        /// What is wanted.
        mode: PlayMode,
        /// Who holds the lease of a test that starts.
        owner: OwnerId,
    },
    /// Run code in a play test that is started for it. Settled by the plugin's result.
    PlayScript {
        /// The tool's arguments.
        args: serde_json::Value,
        /// Who holds the lease of the test.
        owner: OwnerId,
    },
    /// About reviews.
    Review(ReviewAsk),
    /// What became of a call, by the id of its request or operation. Settled at once.
    GetCall(String),
    /// How things are, for this caller. Needs no Studio and is settled at once.
    Status(OwnerId),
}

/// What a call can come to.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The tool's response.
    Tool(serde_json::Value),
    /// Studio's text.
    Script {
        /// As the plugin sent it.
        script: StudioScript,
        /// The text that this Studio and the tree last agreed on.
        base: Option<TextHash>,
    },
    /// Printed lines.
    Console(Page),
    /// The receipt of a sync run.
    Receipt(Receipt),
    /// A call, if this server knows it. (The store may know more.)
    Call(Option<Box<CallRecord>>),
    /// Reviews.
    Reviews(Vec<ReviewState>),
    /// What becomes of an answer to a review.
    Reviewed(ReviewReply),
    /// How things are.
    Status {
        /// The Studios.
        studios: Vec<StudioStatus>,
        /// How many calls wait.
        waiting: usize,
    },
}

/// What the bridge says of the server in its welcome.
#[derive(Debug, Clone)]
pub struct Introduction {
    /// New with every server process.
    pub server_id: ServerId,
    /// Our version.
    pub server_version: String,
    /// The tree of the serve session.
    pub tree_id: TreeId,
    /// The project's name.
    pub project: String,
}

/// The state of everything that is linked or waits.
pub struct Bridge {
    intro: Introduction,
    places: PlacePolicy,
    links: BTreeMap<LinkId, Link>,
    studios: Studios,
    calls: Calls<Waiting>,
    operations: Operations,
    lanes: Lanes,
    leases: Leases,
    turns: RunTurns,
    late: Late,
    owed: Owed,
    runs: HashMap<RunId, ActiveRun>,
    reviews: Reviews,
    next_beat: Moment,
    stopping: bool,
    /// The official plugin syncs by itself, so we do not.
    official: bool,
    ignored_frames: u64,
    new_id: Box<dyn FnMut() -> RequestId + Send>,
    effects: Vec<Effect>,
}

/// What a connection is.
#[derive(Debug)]
enum Link {
    /// No hello yet.
    New { opened_at: Moment },
    /// The connection of a Studio.
    Of(StudioKey),
    /// Being closed; its frames no longer count.
    Closing,
}

/// What is known about an open call.
#[derive(Debug)]
struct Waiting {
    studio: StudioKey,
    who: Waiter,
    what: What,
}

/// Who waits for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Waiter {
    Caller(CallerId),
    Run(RunId),
    /// The person who answered it.
    Review(ReviewId),
    /// All who call with the same id.
    Operation(OperationId),
    /// A play call that takes several requests.
    Play(RequestId),
    /// A newer window of the same place wants to know whether this one is alive.
    Probe {
        newer: StudioKey,
    },
}

/// What is waited for.
#[derive(Debug)]
enum What {
    /// A result of the plugin. Until it is sent it has no number.
    Request { request: Request, rest: VecDeque<Vec<PlanOp>>, next_part: u32, sent: bool },
    /// The end of a run.
    Run(RunId),
    /// A person's answer.
    Review(ReviewId),
    /// The disk is read before this is sent.
    CatchUp(RequestBody),
    /// The plugin does it; the DataModels must still say so. What it answered, if that is the answer.
    Play(Goal, Option<serde_json::Value>),
}

impl Bridge {
    /// A bridge with nothing linked. `new_id` makes a new UUID with every call.
    pub fn new(intro: Introduction, places: PlacePolicy, new_id: impl FnMut() -> RequestId + Send + 'static) -> Self {
        Self {
            intro,
            places,
            links: BTreeMap::new(),
            studios: Studios::default(),
            calls: Calls::default(),
            operations: Operations::default(),
            lanes: Lanes::default(),
            leases: Leases::default(),
            turns: RunTurns::default(),
            late: Late::default(),
            owed: Owed::default(),
            runs: HashMap::new(),
            reviews: Reviews::default(),
            next_beat: HEARTBEAT,
            stopping: false,
            official: false,
            ignored_frames: 0,
            new_id: Box::new(new_id),
            effects: Vec::new(),
        }
    }

    /// Take one event in and say what is to be done, in this order.
    pub fn handle(&mut self, now: Moment, event: Event) -> Vec<Effect> {
        match event {
            Event::Opened { link } => self.opened(now, link),
            Event::Frame { link, frame } => self.frame(now, link, frame),
            Event::Pong { link } => self.heard(now, link),
            Event::NotSent { request, size } => self.not_sent(now, request, size),
            Event::Closed { link, reason } => self.closed(now, link, &reason),
            Event::Call { caller, call } => self.call(now, caller, call),
            Event::Abandon { caller } => self.abandon(caller),
            Event::TreeBuilt { link, parts } => self.tree_built(link, parts),
            Event::Patched(patch) => self.patched(&patch),
            Event::TreeRestarted => self.restart_trees(),
            Event::CaughtUp { run, result } => self.caught_up(now, &run, result),
            Event::Looked { run, views } => self.looked(now, &run, views),
            Event::Intended { operation, intention } => self.intended(now, &operation, intention),
            Event::Recorded { request } => self.recorded(&request),
            Event::BasesLoaded { place, kept, cut_off, unseen } => {
                self.bases_loaded(now, &place, (kept, &cut_off, unseen));
            }
            Event::Worked { run, done } => self.worked(now, &run, done),
            Event::FileRead { link, review, id, source } => self.file_read(link, review, id, source),
            Event::Places(places) => self.apply_places(now, places),
            Event::Tick => self.tick(now),
            Event::OwnerLeft(owner) => self.leases.owner_left(owner, now),
            Event::Official(linked) => self.official = linked,
            Event::Shutdown => self.shutdown(),
        }
        self.end_answers();
        self.play_turn(now);
        self.live_turn(now);
        std::mem::take(&mut self.effects)
    }

    fn send(&mut self, link: LinkId, frame: ServerFrame) {
        self.effects.push(Effect::Send { link, frame });
    }

    fn settle(&mut self, caller: CallerId, outcome: Result<Answer, ToolError>) {
        self.effects.push(Effect::Settle { caller, outcome });
    }

    fn note(&mut self, text: impl Into<String>) {
        self.effects.push(Effect::Note(text.into()));
    }

    fn studio_name(&self, key: StudioKey) -> String {
        self.studios.get(key).map_or_else(|| "a Studio that has left".to_owned(), |studio| studio.name.clone())
    }
}
