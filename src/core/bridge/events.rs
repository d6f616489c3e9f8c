//! What the bridge is told, and what it wants done.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::{Answer, Call, CallerId, PlacePolicy};
use crate::core::{
    agreement::{Kept, News},
    error::ToolError,
    ids::{InstanceId, NodeId, OperationId, RequestId, ReviewId, RunId, SessionId},
    journal::Entry,
    operations::{Intent, Intention, Outcome},
    paths::InstanceKey,
    play::OwnerId,
    protocol::{FrameError, Patch, PluginFrame, ServerFrame, TreePart},
    review::Review,
    studios::LinkId,
    sync::{Asked, Begun, Cleared, Draft, FileWrite, MergeJob, Merged, NodeView, Recalled, Undo, Version, Wrote},
};

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// A WebSocket was opened.
    Opened {
        /// Which.
        link: LinkId,
    },
    /// A frame came, or something that should have been one.
    Frame {
        /// From where.
        link: LinkId,
        /// What.
        frame: Result<PluginFrame, FrameError>,
    },
    /// A WebSocket's other end answered [`Effect::Ping`].
    Pong {
        /// Which.
        link: LinkId,
    },
    /// A frame was too large to be sent and was not.
    NotSent {
        /// The request it was, if it was one.
        request: Option<RequestId>,
        /// Its size in bytes.
        size: usize,
    },
    /// A WebSocket is gone, from whichever side.
    Closed {
        /// Which.
        link: LinkId,
        /// As far as it is known.
        reason: String,
    },
    /// An agent calls.
    Call {
        /// Who waits.
        caller: CallerId,
        /// For what.
        call: Call,
    },
    /// A caller no longer waits.
    Abandon {
        /// Who.
        caller: CallerId,
    },
    /// The answer to [`Effect::BuildTree`].
    TreeBuilt {
        /// For whom.
        link: LinkId,
        /// The parts, at least one.
        parts: Vec<TreePart>,
    },
    /// The tree changed.
    Patched(Arc<Patch>),
    /// Changes of the tree were lost on the way.
    TreeRestarted,
    /// The answer to [`Effect::CatchUp`].
    CaughtUp {
        /// For which run.
        run: RunId,
        /// The tree's version, or why the disk could not be read.
        result: Result<u32, ToolError>,
    },
    /// The answer to [`Effect::Look`].
    Looked {
        /// For which run.
        run: RunId,
        /// What there is.
        views: HashMap<NodeId, NodeView>,
    },
    /// The answer to [`Effect::LoadBases`].
    BasesLoaded {
        /// Of which place.
        place: InstanceId,
        /// What the store knows of it.
        kept: Vec<Kept>,
        /// Runs in it of which nobody saw the end, oldest first.
        cut_off: Vec<Entry>,
        /// What the plugin session has not seen, if the store knows that session.
        unseen: Option<Vec<InstanceKey>>,
    },
    /// The answer to [`Effect::Work`].
    Worked {
        /// For which run.
        run: RunId,
        /// What came of it.
        done: Worked,
    },
    /// The answer to [`Effect::Intend`].
    Intended {
        /// For which operation.
        operation: OperationId,
        /// Whether it is new, or why that cannot be kept.
        intention: Result<Intention, ToolError>,
    },
    /// The answer to [`Effect::ReadFile`].
    FileRead {
        /// For whom.
        link: LinkId,
        /// For which review.
        review: ReviewId,
        /// Whose.
        id: NodeId,
        /// The text in the tree; `None`: there is none.
        source: Option<String>,
    },
    /// The answer to [`Effect::Record`] and [`Effect::Recover`]: it is on the disk, or cannot be.
    Recorded {
        /// The request that had this outcome.
        request: RequestId,
    },
    /// The project's place lists were read again.
    Places(PlacePolicy),
    /// Official plugins have live sockets, or have none any more.
    Official(bool),
    /// A client of ours is gone.
    OwnerLeft(OwnerId),
    /// Time has passed.
    Tick,
    /// The server stops.
    Shutdown,
}

/// What is to be done.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// Put a frame into a link's outbox.
    Send {
        /// Where.
        link: LinkId,
        /// What.
        frame: ServerFrame,
    },
    /// Ask a WebSocket's other end for a sign of life, below the frames.
    Ping {
        /// Which.
        link: LinkId,
    },
    /// Close a link once its outbox is empty.
    Close {
        /// Which.
        link: LinkId,
        /// For the close frame.
        reason: String,
    },
    /// A call has its outcome.
    Settle {
        /// Who waited.
        caller: CallerId,
        /// What came of it.
        outcome: Result<Answer, ToolError>,
    },
    /// Tell a caller how far its call is.
    Progress {
        /// Who waits.
        caller: CallerId,
        /// Grows.
        progress: f64,
        /// Where it ends.
        total: Option<f64>,
        /// In words.
        message: Option<String>,
    },
    /// Ask a caller's person, if the caller can.
    Offer {
        /// Who waits.
        caller: CallerId,
        /// What is asked.
        review: Arc<Review>,
    },
    /// What a caller's person was asked has been answered elsewhere.
    Withdraw {
        /// Who waits.
        caller: CallerId,
    },
    /// Read a script's text in the tree.
    ReadFile {
        /// For whom.
        link: LinkId,
        /// For which review.
        review: ReviewId,
        /// Whose.
        id: NodeId,
    },
    /// Make the parts of the tree.
    BuildTree {
        /// For whom.
        link: LinkId,
    },
    /// Have the serve session read the disk now.
    CatchUp {
        /// For which run.
        run: RunId,
        /// Only these, or everything.
        paths: Option<Vec<String>>,
    },
    /// Look nodes up in the tree.
    Look {
        /// For which run.
        run: RunId,
        /// Which.
        ids: Vec<NodeId>,
        /// Of these with all that is below them.
        subtrees: Vec<NodeId>,
    },
    /// Read what both sides agreed on, from the store.
    LoadBases {
        /// In which place.
        place: InstanceId,
        /// By which plugin session.
        session: SessionId,
    },
    /// Keep what both sides agreed on.
    Remember {
        /// In which place.
        place: InstanceId,
        /// What is new.
        news: Vec<News>,
    },
    /// Keep what a plugin session has not seen, for a server that comes after this one.
    KeepSession {
        /// Of which place.
        place: InstanceId,
        /// Which.
        session: SessionId,
        /// Scripts that differed when it began.
        unseen: Vec<InstanceKey>,
    },
    /// A place that was never published has been, so it has another name.
    MovePlace {
        /// The name it had.
        from: InstanceId,
        /// The name it has.
        to: InstanceId,
    },
    /// An entry of the journal is not going to be finished.
    CutOff {
        /// Which.
        journal: u64,
    },
    /// What is left of entries that were cut off has been said.
    Clear {
        /// In which place.
        place: InstanceId,
        /// Which.
        cleared: Cleared,
    },
    /// Work for a run, on the store or on files.
    Work {
        /// For which run.
        run: RunId,
        /// What.
        work: Work,
    },
    /// Commit what is meant, before it is sent.
    Intend {
        /// The caller's id for it.
        operation: OperationId,
        /// What is meant.
        intent: Intent,
    },
    /// Keep what came of an operation, after all that was to be kept before.
    Record {
        /// Which.
        operation: OperationId,
        /// Its request, for [`Event::Recorded`].
        request: RequestId,
        /// `None`: it provably never ran.
        outcome: Option<Outcome>,
    },
    /// A result came that this server did not ask for: if a server before it did, for an operation without
    /// an outcome, keep it as that.
    Recover {
        /// The request that it names, for [`Event::Recorded`].
        request: RequestId,
        /// What it says.
        outcome: Outcome,
    },
    /// A line of a Studio's output.
    Output {
        /// Which Studio.
        studio: String,
        /// `Enum.MessageType` as a number.
        level: u8,
        /// Its text.
        message: String,
    },
    /// Something for the log.
    Note(String),
}

/// Work for a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Merge texts.
    Merge(Vec<MergeJob>),
    /// Ask git which of these their files had in earlier commits.
    History(Vec<Asked>),
    /// Begin an entry of the journal, on the disk before anything else is done.
    Begin(Draft),
    /// Read an entry of the journal, with its texts.
    Recall {
        /// In which place it was written.
        place: InstanceId,
        /// Which.
        undo: Undo,
    },
    /// Say whether files could be written.
    Check(Vec<FileWrite>),
    /// Write files.
    Write(Vec<FileWrite>),
    /// Keep what was agreed, and finish the entry.
    Conclude {
        /// In which place.
        place: InstanceId,
        /// What is new.
        news: Vec<News>,
        /// The entry's id.
        journal: u64,
        /// With what became of each change.
        entry: Entry,
    },
}

/// What came of [`Work`].
#[derive(Debug, Clone, PartialEq)]
pub enum Worked {
    /// In the order of the jobs.
    Merged(Vec<Merged>),
    /// Those that they had.
    History(BTreeSet<Version>),
    /// Whether there is an entry.
    Begun(Begun),
    /// The entry, or why it cannot be had.
    Recalled(Result<Recalled, String>),
    /// What stands in the way of each, if anything does; in the order of the writes.
    Checked(Vec<Option<Wrote>>),
    /// In the order of the writes.
    Written(Vec<Wrote>),
    /// It is kept, or why not.
    Concluded(Result<(), String>),
}
