//! The task that owns the bridge. Everyone else sends it events and waits for outcomes.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::{
    sync::{broadcast, mpsc, oneshot, watch},
    time::Instant,
};
use tokio_tungstenite::WebSocketStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    effects::Effects,
    gate::{Admitted, Gate},
    link::{self, In},
    outbox::{Outbox, outbox},
};
use crate::{
    core::{
        bridge::{Answer, Bridge, Call, CallerId, Event, Introduction, PlacePolicy},
        error::ToolError,
        ids::{RequestId, ServerId},
        play::OwnerId,
        protocol::PluginFrame,
        review::Review,
        studios::LinkId,
    },
    session::ServeSession,
    store::Store,
};

/// How many events may wait for the owner before their senders do.
const QUEUE: usize = 4096;

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Grows.
    pub progress: f64,
    /// Where it ends.
    pub total: Option<f64>,
    /// In words.
    pub message: Option<String>,
}

/// What a caller hears while it waits.
#[derive(Debug, Clone)]
pub enum Report {
    /// How far its call is.
    Progress(Progress),
    /// A person is to be asked, if the caller can.
    Review(Arc<Review>),
    /// That was answered elsewhere.
    ReviewOver,
}

/// What a hub needs to know.
pub struct HubConfig {
    /// The tree and the files.
    pub session: Arc<ServeSession>,
    /// What outlives the process.
    pub store: Store,
    /// Our version.
    pub version: String,
    /// How many official plugins are connected.
    pub official: watch::Receiver<usize>,
    /// Ends the hub.
    pub shutdown: CancellationToken,
}

/// A handle to the task that owns the bridge. Clones share it.
#[derive(Clone)]
pub struct Hub {
    queue: mpsc::Sender<Command>,
    urgent: mpsc::UnboundedSender<Event>,
    next_link: Arc<AtomicU64>,
    next_caller: Arc<AtomicU64>,
    links: TaskTracker,
    /// Whose calls these are.
    owner: OwnerId,
}

/// What reaches the owner in order.
pub(super) enum Command {
    /// For the bridge.
    Event(Event),
    /// A new WebSocket with its outbox.
    Open { link: LinkId, outbox: Outbox },
    /// A call with the place for its outcome.
    Call { caller: CallerId, call: Call, reply: Reply },
}

/// Where an outcome goes.
pub(super) struct Reply {
    pub(super) outcome: oneshot::Sender<Result<Answer, ToolError>>,
    pub(super) reports: Option<mpsc::UnboundedSender<Report>>,
}

impl Reply {
    pub(super) fn give(self, outcome: Result<Answer, ToolError>) {
        // A caller that went away has taken its call back already.
        let _ = self.outcome.send(outcome);
    }
}

impl Hub {
    /// Start the owner.
    pub fn start(config: HubConfig) -> Self {
        let (queue, commands) = mpsc::channel(QUEUE);
        let (urgent, urgent_events) = mpsc::unbounded_channel();
        let hub = Self {
            queue: queue.clone(),
            urgent: urgent.clone(),
            next_link: Arc::default(),
            next_caller: Arc::default(),
            links: TaskTracker::new(),
            owner: OwnerId(0),
        };
        let project = config.session.project();
        let intro = Introduction {
            server_id: ServerId::from(uuid::Uuid::new_v4().to_string()),
            server_version: config.version,
            tree_id: config.session.tree_id(),
            project: project.name.clone(),
        };
        let places = place_policy(&config.session);
        let bridge = Bridge::new(intro, places.clone(), || RequestId::from(uuid::Uuid::new_v4().to_string()));
        let owner = Owner {
            bridge,
            effects: Effects::new(Arc::clone(&config.session), config.store, urgent),
            cursor: config.session.cursor(),
            files: config.session.subscribe_paths(),
            session: config.session,
            official: config.official,
            patched: 0,
            places,
            started: Instant::now(),
            commands,
            urgent: urgent_events,
        };
        tokio::spawn(owner.run(config.shutdown));
        hub
    }

    /// The same hub, for the calls of `owner`.
    pub fn of(&self, owner: OwnerId) -> Self {
        Self { owner, ..self.clone() }
    }

    /// Whose calls these are.
    pub fn owner(&self) -> OwnerId {
        self.owner
    }

    /// `owner` calls no more.
    pub fn owner_left(&self, owner: OwnerId) {
        // Without a bridge there is nothing to let go of.
        let _ = self.urgent.send(Event::OwnerLeft(owner));
    }

    /// Serve one Studio's WebSocket until it ends; with a `gate`, once it is through that.
    pub async fn serve_link(&self, mut socket: WebSocketStream<TokioIo<Upgraded>>, gate: Option<Gate>) {
        let Some(gate) = gate else { return self.run_link(socket, None, std::future::pending()).await };
        let Some(Admitted { hello, key }) = gate.admit(&mut socket).await else { return };
        self.run_link(socket, Some(hello), gate.revoked(&key)).await;
    }

    /// Carry frames, of which `first` has been read, until either side ends it, or `revoked` does.
    async fn run_link(
        &self,
        socket: WebSocketStream<TokioIo<Upgraded>>,
        first: Option<PluginFrame>,
        revoked: impl Future<Output = ()>,
    ) {
        let link = LinkId(self.next_link.fetch_add(1, Ordering::Relaxed));
        let cut = CancellationToken::new();
        let (outbox, out) = outbox(cut.clone());
        let open = Command::Open { link, outbox };
        if self.queue.send(open).await.is_err() {
            return;
        }
        if let Some(first) = first {
            // The owner ends only with the server.
            let _ = self.queue.send(Command::Event(link_event(link, In::Frame(Ok(first))))).await;
        }
        let report = |report: In| async move {
            // The owner ends only with the server.
            let _ = self.queue.send(Command::Event(link_event(link, report))).await;
        };
        let report_unsent = |report: In| {
            let _ = self.urgent.send(link_event(link, report));
        };
        let reason = tokio::select! {
            reason = self.links.track_future(link::run(socket, out, cut, report, report_unsent)) => reason,
            () = revoked => "its pairing was revoked".to_owned(),
        };
        let _ = self.queue.send(Command::Event(Event::Closed { link, reason })).await;
    }

    /// The bounds of a Studio's WebSocket.
    pub fn web_socket_config() -> tokio_tungstenite::tungstenite::protocol::WebSocketConfig {
        link::web_socket_config()
    }

    /// Call and wait. Dropping the future takes the call back.
    ///
    /// # Errors
    /// As the bridge settles it.
    pub async fn call(&self, call: Call, reports: Option<mpsc::UnboundedSender<Report>>) -> Result<Answer, ToolError> {
        let caller = CallerId(self.next_caller.fetch_add(1, Ordering::Relaxed));
        let (outcome, wait) = oneshot::channel();
        let command = Command::Call { caller, call, reply: Reply { outcome, reports } };
        if self.queue.send(command).await.is_err() {
            return Err(ToolError::shutting_down());
        }
        let mut guard = AbandonOnDrop { caller, urgent: &self.urgent, armed: true };
        let outcome = wait.await.unwrap_or_else(|_| Err(ToolError::shutting_down()));
        guard.armed = false;
        outcome
    }

    /// Wait until the owner has settled every call and ended.
    pub async fn ended(&self) {
        self.queue.closed().await;
    }

    /// Wait until all links have ended.
    pub async fn links_closed(&self) {
        self.links.close();
        self.links.wait().await;
    }
}

struct AbandonOnDrop<'a> {
    caller: CallerId,
    urgent: &'a mpsc::UnboundedSender<Event>,
    armed: bool,
}

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            // Without an owner there is nothing to take back.
            let _ = self.urgent.send(Event::Abandon { caller: self.caller });
        }
    }
}

fn link_event(link: LinkId, report: In) -> Event {
    match report {
        In::Frame(frame) => Event::Frame { link, frame },
        In::Pong => Event::Pong { link },
        In::NotSent { request, size } => Event::NotSent { request, size },
    }
}

fn place_policy(session: &ServeSession) -> PlacePolicy {
    let project = session.project();
    let all = |places: &Option<HashSet<u64>>| places.clone();
    PlacePolicy { serve: all(&project.serve_place_ids), blocked: all(&project.blocked_place_ids).unwrap_or_default() }
}

/// The bridge with all that it needs to act.
struct Owner {
    bridge: Bridge,
    effects: Effects,
    session: Arc<ServeSession>,
    cursor: watch::Receiver<u32>,
    files: broadcast::Receiver<Arc<Vec<PathBuf>>>,
    official: watch::Receiver<usize>,
    patched: u32,
    places: PlacePolicy,
    started: Instant,
    commands: mpsc::Receiver<Command>,
    urgent: mpsc::UnboundedReceiver<Event>,
}

impl Owner {
    async fn run(mut self, shutdown: CancellationToken) {
        self.patched = *self.cursor.borrow_and_update();
        loop {
            let wake = self.started.checked_add(self.bridge.next_tick());
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                Some(event) = self.urgent.recv() => self.urgent_event(event),
                Some(command) = self.commands.recv() => self.command(command),
                changed = self.cursor.changed() => match changed {
                    Ok(()) => self.forward_patches(),
                    Err(_) => break,
                },
                Ok(()) = self.official.changed() => {
                    let linked = *self.official.borrow_and_update() > 0;
                    self.event(Event::Official(linked));
                }
                // A project's settings can change without its tree; which file it was is not asked.
                changed = self.files.recv() => match changed {
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => self.check_places(),
                    Err(broadcast::error::RecvError::Closed) => break,
                },
                () = sleep_until(wake) => self.event(Event::Tick),
            }
        }
        self.event(Event::Shutdown);
        self.refuse_the_rest().await;
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Event(event) => self.event(event),
            Command::Open { link, outbox } => {
                self.effects.open_link(link, outbox);
                self.event(Event::Opened { link });
            }
            // Its end is told by the quicker way, and so may have come before it.
            Command::Call { reply, .. } if reply.outcome.is_closed() => {}
            Command::Call { caller, call, reply } => {
                self.effects.callers.insert(caller, reply);
                self.event(Event::Call { caller, call });
            }
        }
    }

    fn urgent_event(&mut self, event: Event) {
        // What the disk held is in the bridge's hands before the run that asked for it goes on.
        if matches!(event, Event::CaughtUp { .. } | Event::Worked { .. }) {
            self.forward_patches();
        }
        self.event(event);
    }

    fn event(&mut self, event: Event) {
        if let Event::Closed { link, .. } = &event {
            self.effects.forget_link(*link);
        }
        let now = self.started.elapsed();
        let effects = self.bridge.handle(now, event);
        self.effects.carry_out_all(effects);
    }

    fn forward_patches(&mut self) {
        self.cursor.borrow_and_update();
        match self.session.messages_since(self.patched) {
            Ok(batch) => {
                self.patched = batch.cursor;
                for message in batch.messages {
                    let patch = self.effects.patch(message.cursor, message.ops.clone());
                    self.event(Event::Patched(patch));
                }
            }
            Err(_) => {
                log::warn!("the tree changed faster than it could be passed on; Studios take it in anew");
                self.patched = *self.cursor.borrow();
                self.event(Event::TreeRestarted);
            }
        }
    }

    fn check_places(&mut self) {
        let places = place_policy(&self.session);
        if places != self.places {
            self.places = places.clone();
            self.event(Event::Places(places));
        }
    }

    /// The bridge is shut; whoever still calls is told so.
    async fn refuse_the_rest(mut self) {
        self.commands.close();
        self.effects.finish().await;
        while let Some(command) = self.commands.recv().await {
            if let Command::Call { reply, .. } = command {
                // A caller that is gone needs no answer.
                let _ = reply.outcome.send(Err(ToolError::shutting_down()));
            }
        }
    }
}

/// Sleep until `wake`, or for ever.
async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
