//! The server binary is killed at random points, again and again. The plugin comes back without a
//! hand, nothing runs twice, and what was answered to a call with an id is answered again.

use std::{
    collections::HashMap,
    net::TcpListener,
    path::Path,
    process::{Child, Stdio},
    sync::Arc,
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes};
use hyper_util::rt::TokioIo;
use rojo_mcp::{headless::HeadlessStudio, session::ServeSession};
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::Notify};

use crate::{
    number,
    random::Random,
    say,
    support::{demo, headless, program, until},
};

/// How many kills there are in all; the variable asks for more.
pub const KILLS: (&str, u64) = ("ROJO_MCP_KILLS", 100);
/// Servers that are killed side by side, each with a Studio of its own.
pub const LANES: u64 = 10;
const CALLERS: u64 = 3;

pub struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn serve(project: &Path, port: u16) -> Killed {
    serve_through(project, port, port)
}

/// One that plugins reach by another port.
pub fn serve_through(project: &Path, port: u16, proxy: u16) -> Killed {
    let child = program(project)
        .args(["serve", "--port", &port.to_string(), "--allowed-hosts", &format!("127.0.0.1:{proxy}")])
        .arg(project)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    Killed(child)
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// Call a tool of a server that may die meanwhile. `None`: it did.
pub async fn call(port: u16, tool: &str, args: Value) -> Option<Value> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    let params = json!({ "name": tool, "arguments": args });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = Request::post("/mcp")
        .header("host", format!("localhost:{port}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    let answer = tokio::time::timeout(Duration::from_secs(60), async {
        sender.send_request(request).await.ok()?.into_body().collect().await.ok()
    });
    let bytes = answer.await.expect("no call hangs")?.to_bytes();
    let answer: Value = serde_json::from_slice(&bytes).ok()?;
    Some(answer["result"]["structuredContent"].clone())
}

pub async fn is_live(port: u16) -> bool {
    call(port, "status", json!({})).await.is_some_and(|status| status["studios"][0]["link"] == "live")
}

/// What is known of the changes of one Studio.
#[derive(Default)]
struct Known {
    /// Whether each was answered as done, by its key.
    done: HashMap<String, bool>,
    /// The answer to each that has an id; null while there is none.
    operations: HashMap<String, Value>,
}

fn count(key: &str) -> Value {
    let command = format!("workspace:SetAttribute('{key}', (workspace:GetAttribute('{key}') or 0) + 1) return '{key}'");
    json!({ "command": command, "timeout": 20 })
}

/// The same, as an operation.
fn count_once(key: &str) -> Value {
    let mut args = count(key);
    args["operationId"] = json!(key);
    args
}

/// Call until the server dies. Every third call has an id.
async fn caller(port: u16, prefix: String, each: Arc<Notify>) -> Known {
    let mut known = Known::default();
    for round in 0.. {
        let key = format!("{prefix}_{round}");
        let is_operation = round % 3 == 0;
        each.notify_one();
        let args = if is_operation { count_once(&key) } else { count(&key) };
        let answer = call(port, "run_code", args).await;
        let done = answer.as_ref().is_some_and(|answer| answer["ok"] == true);
        if done {
            assert_eq!(answer.as_ref().expect("done")["returns"], json!([key]), "the answer of another call");
        }
        let died = answer.is_none();
        if is_operation {
            known.operations.insert(key.clone(), answer.filter(|_| done).unwrap_or_default());
        }
        known.done.insert(key, done);
        if died {
            break;
        }
    }
    known
}

/// Call every operation again. One that has an answer has the same; one that has none may get it now.
async fn call_again(port: u16, known: &mut Known) {
    for (key, before) in &mut known.operations {
        let answer = call(port, "run_code", count_once(key)).await.expect("the server lives");
        if !before.is_null() {
            assert_eq!(answer, *before, "{key}, after a restart");
        } else if answer["ok"] == true {
            known.done.insert(key.clone(), true);
            *before = answer;
        } else {
            assert_eq!(answer["error"]["code"], "outcome_unknown", "{key}: {answer}");
        }
    }
}

async fn counts(studio: &HeadlessStudio) -> serde_json::Map<String, Value> {
    match studio.run("return workspace:GetAttributes()").await.expect("it runs").into_iter().next() {
        Some(Value::Object(all)) => all,
        _ => serde_json::Map::new(),
    }
}

/// How many calls were answered as done, how many were not, and how many of the first have an id.
struct Counted {
    done: usize,
    open: usize,
    operations: usize,
}

/// One server's lives.
async fn lane(lane: u64, kills: u64) -> Counted {
    let mut random = Random::new(lane);
    let project = demo();
    let port = free_port();
    let folder = project.path().to_path_buf();
    let session = tokio::task::spawn_blocking(move || ServeSession::start(&folder)).await.expect("no panic");
    let studio = headless(port, session.expect("the project loads").place_model());
    let mut known = Known::default();
    for life in 0..kills {
        let server = serve(project.path(), port);
        if random.below(6) == 0 {
            // In its start, or while the plugin is being welcomed.
            until("it listens", || async { TcpStream::connect(("127.0.0.1", port)).await.is_ok() }).await;
            continue;
        }
        until("the plugin is back without a hand", || is_live(port)).await;
        call_again(port, &mut known).await;
        let each = Arc::new(Notify::new());
        let callers: Vec<_> = (0..CALLERS)
            .map(|number| tokio::spawn(caller(port, format!("l{life}_{number}"), Arc::clone(&each))))
            .collect();
        for _ in 0..1 + random.below(25) {
            each.notified().await;
        }
        drop(server);
        for caller in callers {
            let more: Known = caller.await.expect("no panic");
            known.done.extend(more.done);
            known.operations.extend(more.operations);
        }
    }
    let _server = serve(project.path(), port);
    until("the plugin is back without a hand", || is_live(port)).await;
    call_again(port, &mut known).await;
    let ran = counts(&studio).await;
    for (key, done) in &known.done {
        let times = ran.get(key).map_or(0.0, |times| times.as_f64().expect("a number"));
        assert!(times <= 1.0, "{key} ran {times} times");
        assert!(!done || times == 1.0, "{key} was answered as done and ran {times} times");
    }
    let done = known.done.values().filter(|done| **done).count();
    let operations = known.operations.values().filter(|answer| !answer.is_null()).count();
    Counted { done, open: known.done.len() - done, operations }
}

#[tokio::test(flavor = "multi_thread")]
async fn c53_a_server_that_is_killed_again_and_again_is_found_again_and_nothing_runs_twice() {
    let kills = number(KILLS.0, KILLS.1);
    let lanes: Vec<_> = (0..LANES).map(|number| tokio::spawn(lane(number, kills.div_ceil(LANES)))).collect();
    let mut sum = Counted { done: 0, open: 0, operations: 0 };
    for lane in lanes {
        let Counted { done, open, operations } = lane.await.expect("no panic");
        sum = Counted { done: sum.done + done, open: sum.open + open, operations: sum.operations + operations };
    }
    let Counted { done, open, operations } = sum;
    say(&format!(
        "{kills} kills: {done} calls were answered as done ({operations} of them with an id, again after each restart), \
         {open} were cut off"
    ));
    assert!(done > 0 && open > 0 && operations > 0, "the kills came while there was work");
}
