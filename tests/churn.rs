//! What a busy day does to a served project, in short: edits, deletions, renames and git, at
//! random, while two clients read, a third reads slowly, a fourth has stopped reading, and somebody
//! types in Studio with two-way sync. At the end the live tree must be the one of a fresh start, the
//! clients' copies must be the live tree, id by id; nothing may have panicked, the log may hold
//! nothing but what was broken on purpose, and the process may not have grown.
//!
//! `ROJO_MCP_CHURN_SECONDS=3600` goes on for longer, `ROJO_MCP_CHURN_SEED=7` does other things.
#![expect(clippy::disallowed_methods, reason = "an editor and git are not the server")]

#[path = "support/client.rs"]
mod client;
#[path = "churn/picture.rs"]
mod picture;
#[path = "churn/repository.rs"]
mod repository;
#[path = "support/shape.rs"]
mod shape;
#[path = "churn/watch.rs"]
mod watch;

use std::{
    collections::HashMap,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use hyper::Method;
use librojo::web_api::{InstanceUpdate, ReadResponse, WriteRequest};
use picture::Picture;
use rbx_dom_weak::types::{Ref, Variant};
use repository::{Dice, Repository};
use rojo_mcp::{
    Server, ServerConfig,
    session::{Health, ServeSession},
};
use serde::Serialize;
use shape::Shape;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_tungstenite::WebSocketStream;
use tokio_util::sync::CancellationToken;
use watch::Memory;

/// How long after the last change everything may take to settle, on a busy machine.
const SETTLE: Duration = Duration::from_secs(60);

/// How much of a growth in a short run is none, in MiB: the history of the tree fills up.
const FILLING_UP: f64 = 16.0;

/// Longer runs have filled it up before their second quarter.
const FILLED_UP: Duration = Duration::from_secs(600);

async fn socket(port: u16, cursor: u32) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    let url = format!("ws://localhost:{port}/api/socket/{cursor}");
    tokio_tungstenite::client_async(url, stream).await.expect("an upgrade").0
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

/// Types in Studio: edits some script again and again, as the plugin would send it. A conflict is
/// an answer like others. Returns how many edits were written and how many refused.
async fn type_in_studio(port: u16, stop: CancellationToken) -> (usize, usize) {
    let (mut dice, mut written, mut refused) = (Dice(99), 0, 0);
    while !stop.is_cancelled() {
        let read = client::read(port).await.expect("an answer");
        let scripts: Vec<Ref> =
            read.instances.values().filter(|each| each.class_name == "ModuleScript").map(|each| each.id).collect();
        for number in 0..5 {
            if scripts.is_empty() {
                break;
            }
            let id = scripts[dice.roll(scripts.len())];
            let text = Variant::from(format!("return 'studio {number}'"));
            let edit = InstanceUpdate {
                id,
                changed_name: None,
                changed_class_name: None,
                changed_properties: [("Source".into(), Some(text))].into_iter().collect(),
                changed_metadata: None,
            };
            let request = WriteRequest {
                session_id: read.session_id,
                removed: Vec::new(),
                added: HashMap::new(),
                updated: vec![edit],
            };
            let mut body = Vec::new();
            let mut writer = rmp_serde::Serializer::new(&mut body).with_human_readable().with_struct_map();
            request.serialize(&mut writer).expect("it encodes");
            match client::send(port, Method::POST, "/api/write", body.into()).await {
                Ok(_) => written += 1,
                Err(silence) if silence.contains("409") => refused += 1,
                Err(silence) => panic!("{silence}"),
            }
        }
    }
    (written, refused)
}

async fn open(project: &Path) -> Arc<ServeSession> {
    let project = project.to_path_buf();
    let started = tokio::task::spawn_blocking(move || ServeSession::start(&project)).await;
    started.expect("no panic").expect("the project starts")
}

async fn serve(session: &Arc<ServeSession>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let server = Server::start(listener, ServerConfig::new(Arc::clone(session), CancellationToken::new()));
    server.expect("it starts").address.port()
}

/// Work on the project until `end`, and leave it as it began. Returns the number of steps.
fn work(repository: &mut Repository, end: Instant) -> usize {
    let mut steps = 0;
    while Instant::now() < end {
        repository.step();
        steps += 1;
        if repository.dice.roll(4) == 0 {
            std::thread::sleep(Duration::from_millis(repository.dice.roll(200) as u64)); // a person thinks
        }
    }
    repository.write("default.project.json", repository::PROJECT);
    steps
}

/// The live tree, once it is `fresh`, or when it has had its time.
async fn settled(port: u16, fresh: &Shape) -> ReadResponse<'static> {
    let begun = Instant::now();
    loop {
        let read = client::read(port).await.expect("an answer");
        if shape::of(&read.instances) == *fresh || begun.elapsed() > SETTLE {
            return read;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Clients that follow the tree: two as fast as they can, and a slow one.
async fn clients(port: u16, last: &tokio::sync::watch::Receiver<u32>) -> Vec<JoinHandle<Picture>> {
    let mut clients = Vec::new();
    for slow in [None, None, Some(Duration::from_secs(2))] {
        let picture = Picture::new(client::read(port).await.expect("an answer"));
        let socket = socket(port, picture.cursor()).await;
        clients.push(tokio::spawn(picture.follow(socket, slow, last.clone())));
    }
    clients
}

fn assert_flat(memory: &Memory, took: Duration) -> String {
    let [Some(first), Some(second), Some(last)] = [0, 1, 3].map(|quarter| memory.quarter(quarter)) else {
        return "unknown here".to_owned();
    };
    let summary = format!("{first:.0} MiB in the first quarter, {second:.0} in the second, {last:.0} in the last");
    let filling_up = if took < FILLED_UP { FILLING_UP } else { 0.0 };
    assert!(last <= second * 1.2 + filling_up, "memory grows: {summary}");
    summary
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
// long: one day, from its start to its judgement.
async fn a_busy_day() {
    watch::begin();
    let seconds = number("ROJO_MCP_CHURN_SECONDS", 12);
    let mut repository = Repository::new(number("ROJO_MCP_CHURN_SEED", 1));
    let session = open(repository.folder.path()).await;
    let port = serve(&session).await;
    let (told, last) = tokio::sync::watch::channel(u32::MAX);
    let clients = clients(port, &last).await;
    let _stopped_reading = socket(port, 0).await;

    let stop = CancellationToken::new();
    let typing = tokio::spawn(type_in_studio(port, stop.clone()));
    let end = Instant::now() + Duration::from_secs(seconds);
    let memory = tokio::task::spawn_blocking(move || Memory::watch(end));
    let steps = tokio::task::spawn_blocking(move || (work(&mut repository, end), repository));
    let (steps, repository) = steps.await.expect("no panic");
    stop.cancel();
    let (written, refused) = typing.await.expect("every edit has its answer");
    let nothing_left = repository.everything().iter().all(|path| !path.to_string_lossy().contains("rojo-mcp"));
    assert!(nothing_left, "nothing of ours stays");

    let fresh_session = open(repository.folder.path()).await;
    let fresh = shape::of(&client::read(serve(&fresh_session).await).await.expect("an answer").instances);
    let read = settled(port, &fresh).await;
    told.send_replace(read.message_cursor);
    let live = shape::of(&read.instances);
    assert!(live == fresh, "after {steps} steps: {}", shape::difference(("live", &live), ("fresh", &fresh)));
    let mut patches = 0;
    for client in clients {
        let picture = tokio::time::timeout(SETTLE, client).await.expect("in time").expect("no panic");
        let seen = shape::of(picture.instances());
        assert!(seen == live, "{}", shape::difference(("a client", &seen), ("the server", &live)));
        assert_eq!(picture::tree(picture.instances()), picture::tree(&read.instances), "the same ids");
        patches = picture.patches;
    }
    assert_eq!(*session.health().borrow(), Health::Live);
    assert_eq!(watch::panics(), 0, "after {steps} steps");
    let (expected, unexpected) = watch::said();
    assert!(unexpected.is_empty(), "the log holds what no broken file explains: {unexpected:#?}");
    let memory = assert_flat(&memory.await.expect("no panic"), Duration::from_secs(seconds));
    eprintln!(
        "churn: {seconds} s, {steps} steps ({} branch switches), {patches} patches, {written} edits from Studio \
         written and {refused} refused, {expected} expected warnings; memory: {memory}",
        repository.switches
    );
}
