//! What a busy day does to a served project, in short: edits, deletions, renames and git, at
//! random, while two clients read, a third has stopped reading, and somebody types in Studio with
//! two-way sync. At the end the live tree must be the one of a fresh start, the clients' pictures
//! too, and nothing may have panicked.
//!
//! `ROJO_MCP_CHURN_SECONDS=600` goes on for longer, `ROJO_MCP_CHURN_SEED=7` does other things.
#![expect(clippy::disallowed_methods, reason = "an editor and git are not the server")]

#[path = "support/client.rs"]
mod client;
#[path = "churn/picture.rs"]
mod picture;
#[path = "churn/repository.rs"]
mod repository;
#[path = "support/shape.rs"]
mod shape;

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use hyper::Method;
use librojo::web_api::{InstanceUpdate, WriteRequest};
use picture::Picture;
use rbx_dom_weak::types::{Ref, Variant};
use repository::{Dice, Repository};
use rojo_mcp::{
    Server, ServerConfig,
    session::{Health, ServeSession},
};
use serde::Serialize;
use shape::Shape;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_util::sync::CancellationToken;

/// How long after the last change everything may take to settle, on a busy machine.
const SETTLE: Duration = Duration::from_secs(60);

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

/// Panics on any thread: the session survives some, and none must happen.
fn count_panics() -> Arc<AtomicUsize> {
    let panics = Arc::new(AtomicUsize::new(0));
    let (counted, report) = (Arc::clone(&panics), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        counted.fetch_add(1, Ordering::SeqCst);
        report(panic);
    }));
    panics
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

/// The live tree with its version, once it is `fresh`, or when it has had its time.
async fn settled(port: u16, fresh: &Shape) -> (Shape, u32) {
    let begun = Instant::now();
    loop {
        let read = client::read(port).await.expect("an answer");
        let live = shape::of(&read.instances);
        if live == *fresh || begun.elapsed() > SETTLE {
            return (live, read.message_cursor);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_busy_day() {
    let panics = count_panics();
    let mut repository = Repository::new(number("ROJO_MCP_CHURN_SEED", 1));
    let session = open(repository.folder.path()).await;
    let port = serve(&session).await;
    let (told, last) = tokio::sync::watch::channel(u32::MAX);
    let mut pictures = Vec::new();
    for _ in 0..2 {
        let read = client::read(port).await.expect("an answer");
        let picture = Picture { cursor: read.message_cursor, instances: read.instances };
        let socket = socket(port, picture.cursor).await;
        pictures.push(tokio::spawn(picture.follow(socket, last.clone())));
    }
    let _stopped_reading = socket(port, 0).await;

    let stop = CancellationToken::new();
    let typing = tokio::spawn(type_in_studio(port, stop.clone()));
    let end = Instant::now() + Duration::from_secs(number("ROJO_MCP_CHURN_SECONDS", 12));
    let steps = tokio::task::spawn_blocking(move || (work(&mut repository, end), repository));
    let (steps, repository) = steps.await.expect("no panic");
    stop.cancel();
    let (written, refused) = typing.await.expect("every edit has its answer");
    assert!(
        repository.everything().iter().all(|path| !path.to_string_lossy().contains("rojo-mcp")),
        "nothing of ours stays"
    );

    let fresh_session = open(repository.folder.path()).await;
    let fresh = shape::of(&client::read(serve(&fresh_session).await).await.expect("an answer").instances);
    let (live, cursor) = settled(port, &fresh).await;
    told.send_replace(cursor);
    assert!(live == fresh, "after {steps} steps: {}", shape::difference(("live", &live), ("fresh", &fresh)));
    for picture in pictures {
        let picture = tokio::time::timeout(SETTLE, picture).await.expect("in time").expect("no panic");
        let seen = shape::of(&picture.instances);
        assert!(seen == live, "{}", shape::difference(("a client", &seen), ("the server", &live)));
    }
    assert_eq!(*session.health().borrow(), Health::Live);
    assert_eq!(panics.load(Ordering::SeqCst), 0, "after {steps} steps");
    eprintln!(
        "{steps} steps, {written} edits written, {refused} refused, {} versions of the tree",
        *session.cursor().borrow()
    );
}
