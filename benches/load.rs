//! The Studio link under load and at rest, beside bare WebSockets in the same run.
//!
//! `cargo bench --bench load` prints its figures. Nothing is asserted: machines are shared.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{SinkExt, StreamExt};
use rojo_mcp::{
    Server, ServerConfig,
    core::{
        bridge::{Answer, Ask, Call},
        targets::Target,
    },
    mcp::Backend,
    session::ServeSession,
};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};
use tokio_util::sync::CancellationToken;

const CALLERS: usize = 8;
const CALLS: usize = 20_000;
const READS: usize = 2_000;
const LINKS: usize = 64;
const REST: Duration = Duration::from_secs(10);
const LARGE: usize = 15 << 20;

type Socket = WebSocketStream<TcpStream>;

#[tokio::main]
async fn main() {
    let floor = per_second(CALLS, echo().await);
    eprintln!("bare WebSocket echo, {CALLERS} in flight      {floor:9.0} a second");
    let project = tempfile::tempdir().expect("a temporary folder");
    let (backend, port) = serve(project.path()).await;
    tokio::spawn(fake_plugin(port, 1));
    until_live(&backend, 1).await;
    let begun = now();
    calls(&backend).await;
    let rate = per_second(CALLS, begun.elapsed());
    eprintln!(
        "{CALLERS} callers on one plugin               {rate:9.0} a second, {:.1} x the floor's time",
        floor / rate
    );
    let idle = reads(&backend).await;
    let change = tokio::spawn({
        let backend = Arc::clone(&backend);
        async move { ask(&backend, "place:1", "change").await }
    });
    let busy = reads(&backend).await;
    assert!(!change.is_finished(), "the change runs longer than the reads");
    eprintln!("p99 of a read: idle {:.0} us, while a change runs {:.0} us", micros(idle), micros(busy));
    let begun = now();
    let length = ask(&backend, "place:1", "large").await.as_str().map_or(0, str::len);
    eprintln!("a result of {} MiB: {:.3} s", length >> 20, begun.elapsed().as_secs_f64());
    for place in 2..=LINKS {
        tokio::spawn(fake_plugin(port, place));
    }
    until_live(&backend, LINKS).await;
    let before = cpu();
    tokio::time::sleep(REST).await;
    match before.zip(cpu()) {
        Some((before, after)) => {
            let share = (after - before).as_secs_f64() / REST.as_secs_f64();
            eprintln!("{LINKS} links at rest, both ends: {:.2} % of one core", share * 100.0);
        }
        None => eprintln!("{LINKS} links at rest: this system does not say how much CPU a process took"),
    }
    std::process::exit(0);
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn now() -> Instant {
    Instant::now()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[expect(clippy::cast_precision_loss, reason = "a small count")]
fn per_second(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// What this process took of the CPUs so far, where the system says it in hundredths of a second.
fn cpu() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let after_name = stat.rsplit_once(')')?.1;
    let fields: Vec<u64> = after_name.split_whitespace().skip(11).take(2).filter_map(|one| one.parse().ok()).collect();
    Some(Duration::from_millis(fields.iter().sum::<u64>() * 10))
}

async fn serve(folder: &Path) -> (Arc<Backend>, u16) {
    write(&folder.join("default.project.json"), r#"{"name": "Bench", "tree": {"$className": "DataModel"}}"#);
    let folder = folder.to_path_buf();
    let session = tokio::task::spawn_blocking(move || ServeSession::start(&folder)).await.expect("no panic");
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let config = ServerConfig::new(session.expect("it loads"), CancellationToken::new());
    let server = Server::start(listener, config).expect("it starts");
    (Arc::clone(&server.backend), server.address.port())
}

#[expect(clippy::disallowed_methods, reason = "a bench writes its project")]
fn write(file: &Path, text: &str) {
    std::fs::write(file, text).expect("a write");
}

/// As many echoes as there are calls, with as many in flight.
async fn echo() -> Duration {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a client");
        stream.set_nodelay(true).expect("no delay");
        let mut socket = tokio_tungstenite::accept_async(stream).await.expect("an upgrade");
        while let Some(Ok(message)) = socket.next().await {
            if socket.send(message).await.is_err() {
                break;
            }
        }
    });
    let mut socket = dial(port, "/").await;
    let frame = || Message::text(r#"{"type":"read","requestId":"00000000-0000-0000-0000-000000000000","args":{}}"#);
    let begun = now();
    for _ in 0..CALLERS {
        socket.send(frame()).await.expect("open");
    }
    for _ in 0..CALLS - CALLERS {
        socket.next().await.expect("open").expect("a frame");
        socket.send(frame()).await.expect("open");
    }
    for _ in 0..CALLERS {
        socket.next().await.expect("open").expect("a frame");
    }
    begun.elapsed()
}

async fn dial(port: u16, path: &str) -> Socket {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    stream.set_nodelay(true).expect("no delay");
    tokio_tungstenite::client_async(format!("ws://localhost:{port}{path}"), stream).await.expect("an upgrade").0
}

async fn ask(backend: &Backend, studio: &str, name: &'static str) -> Value {
    let ask = Ask::Tool { name, args: json!({}), changes: name == "change", target: Target::Edit };
    let call = Call { studio: Some(studio.to_owned()), patience: Duration::from_secs(30), ask, operation: None };
    match backend.hub.call(call, None).await {
        Ok(Answer::Tool(response)) => response,
        other => panic!("{name}: {other:?}"),
    }
}

async fn calls(backend: &Arc<Backend>) {
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let backend = Arc::clone(backend);
            tokio::spawn(async move {
                for _ in 0..CALLS / CALLERS {
                    ask(&backend, "place:1", "read").await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("no panic");
    }
}

/// The time that all but one in a hundred reads stay below.
async fn reads(backend: &Backend) -> Duration {
    let mut times = Vec::with_capacity(READS);
    for _ in 0..READS {
        let begun = now();
        ask(backend, "place:1", "read").await;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    times[READS * 99 / 100]
}

async fn until_live(backend: &Backend, count: usize) {
    loop {
        let status = Call {
            studio: None,
            patience: Duration::from_secs(2),
            ask: Ask::Status(backend.hub.owner()),
            operation: None,
        };
        let Ok(Answer::Status { studios, .. }) = backend.hub.call(status, None).await else { continue };
        let live = studios.iter().filter(|studio| studio.link == rojo_mcp::core::status::LinkStatus::Live).count();
        if live == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Answers every request at once; a `change` takes ten seconds.
async fn fake_plugin(port: u16, place: usize) {
    let (mut sink, mut stream) = dial(port, "/api/mcp/stream").await.split();
    let hello = json!({
        "type": "hello", "twoWaySync": false, "oneShotSync": true, "confirmationBehavior": "Never", "placeId": place,
        "protocol": 1, "pluginVersion": "0", "sessionId": format!("bench-{place}"),
        "instanceId": format!("place:{place}"), "role": "edit"
    });
    sink.send(Message::text(hello.to_string())).await.expect("open");
    let (say, mut said) = tokio::sync::mpsc::unbounded_channel::<Value>();
    tokio::spawn(async move {
        while let Some(frame) = said.recv().await {
            sink.send(Message::text(frame.to_string())).await.expect("open");
        }
    });
    while let Some(Ok(message)) = stream.next().await {
        let Ok(text) = message.to_text() else { continue };
        let Ok(frame) = serde_json::from_str::<Value>(text) else { continue };
        let result =
            |response: Value| json!({ "requestId": frame["requestId"], "status": "success", "response": response });
        let answer = match frame["type"].as_str() {
            Some("heartbeat") => json!({ "type": "alive", "timestamp": frame["timestamp"] }),
            Some("tree") if frame["last"] == true => {
                json!({ "type": "treeReady", "treeId": frame["treeId"], "cursor": frame["cursor"], "facts": [] })
            }
            Some("tree") => json!({ "type": "taken", "part": frame["part"] }),
            Some("read") => result(json!({})),
            Some("large") => result(json!("x".repeat(LARGE))),
            Some("change") => {
                let (say, late) = (say.clone(), result(json!({})));
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_secs(10)).await;
                    say.send(late)
                });
                continue;
            }
            _ => continue,
        };
        say.send(answer).expect("the writer lives");
    }
}
