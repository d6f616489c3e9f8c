//! Carries out what the bridge decides.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

use tokio::sync::mpsc;

use super::{
    hub::{Progress, Reply, Report},
    link::{CLOSE_PATIENCE, Out},
    outbox::{Outbox, bounds},
    queue::Queue,
    records::{Keep, Records},
    work::Worker,
};
use crate::{
    core::{
        bridge::{CallerId, Effect, Event, Work},
        error::ToolError,
        ids::{NodeId, RunId},
        protocol::{MAX_PART_BYTES, Node, Patch, PatchOp, TreePart},
        studios::LinkId,
        sync::NodeView,
        text::for_terminal,
    },
    session::ServeSession,
    store::Store,
};

/// Something about what is kept of a place.
type Job = Box<dyn FnOnce() + Send>;

/// The outside of the bridge: outboxes, waiting callers, and the serve session.
pub(super) struct Effects {
    session: Arc<ServeSession>,
    records: Records,
    /// What is known of a place is read and written in one order: a base that overtakes another, or the
    /// name that its place has now, would be lost.
    places: Queue<Job>,
    worker: Worker,
    results: mpsc::UnboundedSender<Event>,
    links: HashMap<LinkId, Outbox>,
    pub(super) callers: HashMap<CallerId, Reply>,
}

impl Effects {
    pub(super) fn new(session: Arc<ServeSession>, store: Store, results: mpsc::UnboundedSender<Event>) -> Self {
        let records = Records::start(store.clone(), results.clone());
        let worker = Worker { session: Arc::clone(&session), store };
        let places = Queue::start("places", |job: Job| job());
        Self { session, records, places, worker, results, links: HashMap::new(), callers: HashMap::new() }
    }

    /// Wait until all is kept that was to be.
    pub(super) async fn finish(self) {
        self.records.finish().await;
        if !self.places.finish().await {
            log::error!("keeping what was agreed last failed");
        }
    }

    pub(super) fn open_link(&mut self, link: LinkId, outbox: Outbox) {
        self.links.insert(link, outbox);
    }

    pub(super) fn forget_link(&mut self, link: LinkId) {
        self.links.remove(&link);
    }

    pub(super) fn patch(&self, cursor: u32, ops: Vec<PatchOp>) -> Arc<Patch> {
        Arc::new(Patch { tree_id: self.session.tree_id(), cursor, apply: false, ops })
    }

    /// Carry out what one event came to. Where it is an outcome to be kept, its callers hear of it
    /// when it is on the disk: whoever was answered is answered the same after a crash.
    pub(super) fn carry_out_all(&mut self, effects: Vec<Effect>) {
        let mut records = false;
        for effect in effects {
            records |= matches!(effect, Effect::Record { .. });
            match effect {
                Effect::Settle { caller, outcome } if records => {
                    if let Some(reply) = self.callers.remove(&caller) {
                        self.records.keep(Keep::Reply(reply, outcome));
                    }
                }
                other => self.carry_out(other),
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Send { link, frame } => self.put(link, Out::Frame(Box::new(frame))),
            Effect::Ping { link } => self.put(link, Out::Ping),
            Effect::Close { link, reason } => self.close(link, reason),
            Effect::Settle { caller, outcome } => {
                if let Some(reply) = self.callers.remove(&caller) {
                    reply.give(outcome);
                }
            }
            Effect::Progress { caller, progress, total, message } => {
                self.report(caller, Report::Progress(Progress { progress, total, message }));
            }
            Effect::Offer { caller, review } => self.report(caller, Report::Review(review)),
            Effect::Withdraw { caller } => self.report(caller, Report::ReviewOver),
            Effect::ReadFile { link, review, id } => self.off_task(move |session| {
                let source = session.look(&[id]).1.into_iter().flatten().next().and_then(|look| look.source);
                Event::FileRead { link, review, id, source }
            }),
            Effect::BuildTree { link } => self.off_task(move |session| {
                let parts = tree_parts(session);
                Event::TreeBuilt { link, parts }
            }),
            Effect::CatchUp { run, paths } => self.off_task(move |session| catch_up(session, run, paths)),
            Effect::Look { run, ids, subtrees } => self.off_task(move |session| {
                let views = look(session, &ids, &subtrees.into_iter().collect());
                Event::Looked { run, views }
            }),
            Effect::Intend { operation, intent } => self.records.keep(Keep::Intent(operation, intent)),
            Effect::Record { operation, request, outcome } => {
                self.records.keep(Keep::Outcome(operation, request, outcome));
            }
            Effect::Recover { request, outcome } => self.records.keep(Keep::Recovered(request, outcome)),
            Effect::LoadBases { place, session } => self.answer_in_order(move |worker| {
                let (kept, cut_off) = (worker.bases(&place), worker.cut_off_runs(&place));
                let unseen = worker.unseen(&place, &session);
                Event::BasesLoaded { place, kept, cut_off, unseen }
            }),
            Effect::Remember { place, news } => self.in_order(move |worker| worker.remember(&place, &news)),
            Effect::KeepSession { place, session, unseen } => {
                self.in_order(move |worker| worker.keep_session(&place, &session, &unseen))
            }
            Effect::CutOff { journal } => self.in_order(move |worker| worker.cut_off(journal)),
            Effect::Clear { place, cleared } => self.in_order(move |worker| worker.clear(&place, cleared)),
            Effect::MovePlace { from, to } => self.in_order(move |worker| worker.move_place(&from, &to)),
            // Of what is kept, these want the last, and say the last.
            Effect::Work { run, work: work @ (Work::Recall { .. } | Work::Conclude { .. }) } => {
                self.answer_in_order(move |worker| Event::Worked { run, done: worker.work(work) });
            }
            Effect::Work { run, work } => {
                let worker = self.worker.clone();
                self.off_task(move |_| Event::Worked { run, done: worker.work(work) });
            }
            Effect::Output { studio, level, message } => {
                log::log!(target: "studio", loudness(level), "{}: {}", for_terminal(&studio), for_terminal(&message));
            }
            Effect::Note(text) => log::info!("{}", for_terminal(&text)),
        }
    }

    /// Tell a caller something, if it listens.
    fn report(&self, caller: CallerId, report: Report) {
        if let Some(to) = self.callers.get(&caller).and_then(|reply| reply.reports.as_ref()) {
            let _ = to.send(report);
        }
    }

    fn put(&mut self, link: LinkId, out: Out) {
        if self.links.get(&link).is_some_and(|outbox| !outbox.put(out)) {
            log::warn!("a Studio does not read what it is sent ({}); its link is closed", bounds());
        }
    }

    fn close(&mut self, link: LinkId, reason: String) {
        self.put(link, Out::Close(reason));
        if let Some(outbox) = self.links.get(&link) {
            let cut = outbox.cut();
            tokio::spawn(async move {
                tokio::time::sleep(CLOSE_PATIENCE).await;
                cut.cancel();
            });
        }
    }

    /// Work on what is kept of places, after all such work before it.
    fn in_order(&self, work: impl FnOnce(&Worker) + Send + 'static) {
        let worker = self.worker.clone();
        if self.places.put(Box::new(move || work(&worker))).is_err() {
            log::error!("what was agreed is no longer kept: its thread has ended");
        }
    }

    /// The same, and the result comes back as an event.
    fn answer_in_order(&self, work: impl FnOnce(&Worker) -> Event + Send + 'static) {
        let results = self.results.clone();
        self.in_order(move |worker| {
            // Without an owner nobody wants the result.
            let _ = results.send(work(worker));
        });
    }

    /// Work that may take long runs aside and comes back as an event.
    fn off_task(&self, work: impl FnOnce(&ServeSession) -> Event + Send + 'static) {
        let (session, results) = (Arc::clone(&self.session), self.results.clone());
        tokio::task::spawn_blocking(move || {
            // Without an owner nobody wants the result.
            let _ = results.send(work(&session));
        });
    }
}

/// How loud a line of a Studio's output is here.
fn loudness(level: u8) -> log::Level {
    match level {
        0 | 1 => log::Level::Info,
        2 => log::Level::Warn,
        _ => log::Level::Error,
    }
}

fn tree_parts(session: &ServeSession) -> Vec<TreePart> {
    let (cursor, nodes) = session.nodes();
    let mut chunks: Vec<Vec<Node>> = vec![Vec::new()];
    let mut size = 0;
    for node in nodes {
        let weight = node.weight();
        if size + weight > MAX_PART_BYTES && size > 0 {
            chunks.push(Vec::new());
            size = 0;
        }
        size += weight;
        chunks.last_mut().expect("there is always a chunk").push(node);
    }
    let count = chunks.len();
    chunks
        .into_iter()
        .zip(0u32..)
        .map(|(nodes, part)| TreePart {
            tree_id: session.tree_id(),
            cursor,
            part,
            last: usize::try_from(part).is_ok_and(|part| part + 1 == count),
            nodes,
        })
        .collect()
}

fn catch_up(session: &ServeSession, run: RunId, paths: Option<Vec<String>>) -> Event {
    let folder = session.project().folder.clone();
    let paths: Option<Vec<PathBuf>> = paths.map(|paths| paths.iter().map(|path| folder.join(path)).collect());
    let result = session
        .catch_up(paths.as_deref())
        .map_err(|error| ToolError::failed(format!("the project could not be read: {error}"), error.hint()));
    Event::CaughtUp { run, result }
}

fn look(session: &ServeSession, ids: &[NodeId], subtrees: &HashSet<NodeId>) -> HashMap<NodeId, NodeView> {
    let (_, looks) = session.look(ids);
    looks
        .into_iter()
        .flatten()
        .map(|look| {
            let subtree = if subtrees.contains(&look.id) { session.new_node(look.id) } else { None };
            let view = NodeView {
                parent: look.parent,
                path: look.path,
                class_name: look.class_name,
                fs_path: look.fs_path.map(|path| path.to_string_lossy().replace('\\', "/")),
                source: look.source,
                hash: look.hash,
                properties: look.properties,
                subtree,
            };
            (look.id, view)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::oneshot;

    use super::*;
    use crate::core::{
        agreement::{Kept, News},
        bridge::Answer,
        ids::{InstanceId, OperationId, RequestId, SessionId},
        operations::{Intent, Outcome},
        paths::InstanceKey,
        text::TextHash,
    };

    #[tokio::test]
    async fn c62_whoever_is_answered_finds_the_outcome_kept() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        #[expect(clippy::disallowed_methods, reason = "a person is not the server")]
        std::fs::write(folder.path().join("default.project.json"), r#"{"name":"Kept","tree":{"$className":"Folder"}}"#)
            .expect("a file can be written");
        let session = ServeSession::start(folder.path()).expect("the project starts");
        let store = Store::in_memory();
        let mut effects = Effects::new(session, store.clone(), mpsc::unbounded_channel().0);
        for round in 0..50_u64 {
            let operation = OperationId::from(format!("operation {round}").as_str());
            let request_id = RequestId::from(format!("request {round}").as_str());
            let request = request_id.clone();
            let intent = Intent { tool: "run_code".into(), args_hash: String::new(), request_id, session: None };
            let (outcome, answered) = oneshot::channel();
            let caller = CallerId(round);
            effects.callers.insert(caller, Reply { outcome, reports: None });
            let kept = Some(Outcome::Tool(json!(round)));
            effects.carry_out_all(vec![
                Effect::Intend { operation: operation.clone(), intent },
                Effect::Record { operation: operation.clone(), request, outcome: kept },
                Effect::Settle { caller, outcome: Ok(Answer::Tool(json!(round))) },
            ]);
            assert_eq!(answered.await.expect("an answer"), Ok(Answer::Tool(json!(round))));
            let known = store.operation(&operation).expect("the store is read").expect("it is known");
            assert_eq!(known.outcome, Some(json!({ "tool": round })));
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_kept_of_a_place_is_kept_in_the_order_in_which_it_was_decided() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        #[expect(clippy::disallowed_methods, reason = "a person is not the server")]
        std::fs::write(folder.path().join("default.project.json"), r#"{"name":"Kept","tree":{"$className":"Folder"}}"#)
            .expect("a file can be written");
        let session = ServeSession::start(folder.path()).expect("the project starts");
        let (results, mut events) = mpsc::unbounded_channel();
        let mut effects = Effects::new(session, Store::in_memory(), results);
        let place = |name: &str| InstanceId::from(name);
        for round in 0..100_u64 {
            let (from, to) = (place(&format!("anon:{round}")), place(&format!("place:{round}")));
            let texts = [format!("{round} before"), format!("{round} after")];
            let agree = |text: &String| {
                let kept = Kept {
                    key: InstanceKey::from("Main"),
                    id: None,
                    last: Some(TextHash::of(text)),
                    earlier: Vec::new(),
                    text: Some(text.clone()),
                };
                Effect::Remember { place: from.clone(), news: vec![News::Agreed(kept)] }
            };
            let session = SessionId::from("session");
            effects.carry_out_all(vec![
                agree(&texts[0]),
                agree(&texts[1]),
                Effect::MovePlace { from: from.clone(), to: to.clone() },
                Effect::LoadBases { place: to.clone(), session },
            ]);
            let Some(Event::BasesLoaded { kept, .. }) = events.recv().await else { panic!("it is read") };
            let last: Vec<_> = kept.iter().map(|kept| kept.last).collect();
            assert_eq!(last, [Some(TextHash::of(&texts[1]))], "round {round}");
        }
    }
}
