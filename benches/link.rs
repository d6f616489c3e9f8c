//! How long the server's own part of the way takes, beside bare peers in the same run.
//!
//! `cargo bench --bench link` prints one line a path with p50, p99 and its ratio to the bare
//! WebSocket echo. Nothing is asserted: machines are shared.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use rojo_mcp::{Server, ServerConfig, session::ServeSession};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 3000;
const SAVES: usize = 60;

type Socket = WebSocketStream<TcpStream>;

#[tokio::main]
async fn main() {
    let floor = report("bare WebSocket echo", echo().await, None);
    let project = tempfile::tempdir().expect("a temporary folder");
    write_project(project.path());
    let folder = project.path().to_path_buf();
    let session = tokio::task::spawn_blocking(move || ServeSession::start(&folder)).await.expect("no panic");
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let shutdown = CancellationToken::new();
    let session = session.expect("it loads");
    let server = Server::start(listener, ServerConfig::new(Arc::clone(&session), shutdown)).expect("it starts");
    let port = server.address.port();
    let mut http = connect(port).await;
    report("plain HTTP (GET /)", plain(&mut http, port).await, Some(floor));
    tokio::spawn(fake_plugin(port));
    until_live(&mut http, port).await;
    report("HTTP -> MCP status -> back", calls(&mut http, port, "status", json!({})).await, Some(floor));
    let code = json!({ "command": "return 1" });
    report("HTTP -> MCP -> plugin -> back", calls(&mut http, port, "run_code", code).await, Some(floor));
    report("file saved -> socket message", saves(project.path(), port).await, Some(floor));
    std::process::exit(0);
}

/// Print one path, and give its p50 in microseconds.
fn report(name: &str, mut times: Vec<Duration>, floor: Option<f64>) -> f64 {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e6;
    let ratio = floor.map_or(String::new(), |floor| format!("  {:6.1} x echo", at(50) / floor));
    eprintln!("{name:32} n={:5}  p50 {:8.0} us  p99 {:8.0} us{ratio}", times.len(), at(50), at(99));
    at(50)
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
async fn timed<T>(times: &mut Vec<Duration>, work: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let value = work.await;
    times.push(begun.elapsed());
    value
}

async fn echo() -> Vec<Duration> {
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
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        timed(&mut times, async {
            socket.send(Message::text("{\"type\":\"run_code\"}")).await.expect("open");
            socket.next().await.expect("open").expect("a frame")
        })
        .await;
    }
    times
}

async fn dial(port: u16, path: &str) -> Socket {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    stream.set_nodelay(true).expect("no delay");
    tokio_tungstenite::client_async(format!("ws://localhost:{port}{path}"), stream).await.expect("an upgrade").0
}

async fn connect(port: u16) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    stream.set_nodelay(true).expect("no delay");
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(connection);
    sender
}

async fn send(http: &mut SendRequest<Full<Bytes>>, port: u16, method: &str, path: &str, body: String) -> Bytes {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", format!("localhost:{port}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    http.ready().await.expect("open");
    let response = http.send_request(request).await.expect("an answer");
    response.into_body().collect().await.expect("a body").to_bytes()
}

async fn plain(http: &mut SendRequest<Full<Bytes>>, port: u16) -> Vec<Duration> {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        timed(&mut times, send(http, port, "GET", "/", String::new())).await;
    }
    times
}

async fn call(http: &mut SendRequest<Full<Bytes>>, port: u16, tool: &str, args: &Value) -> Value {
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": args } });
    let answer: Value =
        serde_json::from_slice(&send(http, port, "POST", "/mcp", body.to_string()).await).expect("JSON");
    assert_ne!(answer["result"]["isError"], json!(true), "{answer}");
    answer["result"]["structuredContent"].clone()
}

async fn calls(http: &mut SendRequest<Full<Bytes>>, port: u16, tool: &str, args: Value) -> Vec<Duration> {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        timed(&mut times, call(http, port, tool, &args)).await;
    }
    times
}

async fn until_live(http: &mut SendRequest<Full<Bytes>>, port: u16) {
    while call(http, port, "status", &json!({})).await["studios"][0]["link"] != "live" {
        tokio::task::yield_now().await;
    }
}

/// Answers every request at once.
async fn fake_plugin(port: u16) {
    let mut socket = dial(port, "/api/mcp/stream").await;
    let hello = json!({
        "type": "hello", "twoWaySync": false, "oneShotSync": true, "confirmationBehavior": "Never", "placeId": 1,
        "protocol": 1, "pluginVersion": "0", "sessionId": "bench", "instanceId": "place:1", "role": "edit"
    });
    socket.send(Message::text(hello.to_string())).await.expect("open");
    while let Some(Ok(message)) = socket.next().await {
        let Ok(text) = message.to_text() else { continue };
        let Ok(frame) = serde_json::from_str::<Value>(text) else { continue };
        let answer = match frame["type"].as_str() {
            Some("heartbeat") => json!({ "type": "alive", "timestamp": frame["timestamp"] }),
            Some("tree") if frame["last"] == true => {
                json!({ "type": "treeReady", "treeId": frame["treeId"], "cursor": frame["cursor"], "facts": [] })
            }
            Some("tree") => json!({ "type": "taken", "part": frame["part"] }),
            Some("run_code") => {
                json!({ "requestId": frame["requestId"], "status": "success", "response": { "ok": true, "returns": [1] } })
            }
            _ => continue,
        };
        socket.send(Message::text(answer.to_string())).await.expect("open");
    }
}

async fn saves(project: &Path, port: u16) -> Vec<Duration> {
    let mut socket = dial(port, "/api/socket/0").await;
    let mut times = Vec::with_capacity(SAVES);
    for number in 0..SAVES {
        // Saves of a person: what follows closely on another is gathered with it.
        tokio::time::sleep(Duration::from_millis(60)).await;
        let file = project.join(format!("src/Folder{}/Script7.luau", number % 10));
        timed(&mut times, async {
            write(&file, &format!("return {number} -- {}", "x".repeat(500)));
            socket.next().await.expect("open").expect("a frame")
        })
        .await;
    }
    times
}

#[expect(clippy::disallowed_methods, reason = "a bench writes its project")]
fn write(file: &Path, text: &str) {
    std::fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
    std::fs::write(file, text).expect("a write");
}

/// 1,000 scripts in ten folders.
fn write_project(folder: &Path) {
    let tree = json!({ "name": "Bench", "tree": { "$className": "DataModel", "ReplicatedStorage": { "Src": { "$path": "src" } } } });
    write(&folder.join("default.project.json"), &tree.to_string());
    for number in 0..1000 {
        let file = folder.join(format!("src/Folder{}/Script{}.luau", number % 10, number / 10));
        write(&file, &format!("-- script {number}\nreturn {{}}\n"));
    }
}
