//! The same with plugins of level 0, which know nothing of numbers, and whose connection is all that
//! they are: nothing is ever sent to them again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::Notify, task::JoinHandle};
use tokio_tungstenite::tungstenite::Message;

use crate::{
    callers::{Budget, Caller, Known, Sums, until_live},
    counted::{CALLERS, CALLS, SEED, Served, file},
    kill::{KILLS, LANES, call, free_port, is_live, serve},
    number, proxy,
    random::Random,
    say,
    support::{demo, until},
};

/// Such a plugin gives up a connection on which it heard nothing for so long.
const SILENCE: Duration = Duration::from_secs(20);

/// A plugin of level 0 that counts what it is told to, and comes back by itself.
struct Plugin {
    counts: Arc<Mutex<HashMap<String, u64>>>,
    task: JoinHandle<()>,
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Plugin {
    fn start(port: u16, place: u64) -> Self {
        let counts = Arc::<Mutex<HashMap<String, u64>>>::default();
        let counting = Arc::clone(&counts);
        let task = tokio::spawn(async move {
            loop {
                // However it ended, the next one begins from nothing.
                let _ = serve_once(port, place, &counting).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Self { counts, task }
    }

    fn counts(&self) -> HashMap<String, u64> {
        self.counts.lock().expect("no panic").clone()
    }
}

/// One connection. Returns when it has ended.
async fn serve_once(port: u16, place: u64, counts: &Mutex<HashMap<String, u64>>) -> Option<()> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    stream.set_nodelay(true).ok()?;
    let url = format!("ws://127.0.0.1:{port}/api/mcp/stream");
    let upgrade = tokio::time::timeout(SILENCE, tokio_tungstenite::client_async(url, stream)).await;
    let (mut socket, _) = upgrade.ok()?.ok()?;
    let hello = json!({
        "type": "hello", "twoWaySync": false, "oneShotSync": true, "confirmationBehavior": "Initial", "placeId": place
    });
    socket.send(Message::text(hello.to_string())).await.ok()?;
    loop {
        let message = tokio::time::timeout(SILENCE, socket.next()).await.ok()??.ok()?;
        let Message::Text(text) = message else { continue };
        let request: Value = serde_json::from_str(&text).expect("frames are JSON");
        socket.send(Message::text(answer(&request, place, counts).to_string())).await.ok()?;
    }
}

fn answer(request: &Value, place: u64, counts: &Mutex<HashMap<String, u64>>) -> Value {
    let count = |key: &str| *counts.lock().expect("no panic").entry(key.to_owned()).or_default() += 1;
    let id = &request["requestId"];
    match request["type"].as_str() {
        Some("run_code") => {
            let key = request["args"]["command"].as_str().expect("code");
            count(key);
            json!({ "requestId": id, "status": "success", "response": json!([key, place]).to_string() })
        }
        Some("sync") => json!({ "requestId": id, "status": "success", "changes": [] }),
        Some("get_studio_mode") => json!({ "requestId": id, "status": "success", "response": "edit" }),
        other => panic!("a plugin of level 0 does not know {other:?}: {request}"),
    }
}

fn returned(response: &Value) -> Value {
    serde_json::from_str(response.as_str().expect("a text")).expect("as it was written")
}

#[tokio::test(flavor = "multi_thread")]
async fn c61_through_connections_that_break_a_level_0_plugin_makes_each_change_at_most_once() {
    let (seed, calls) = (number(SEED.0, SEED.1), number(CALLS.0, CALLS.1));
    let served = Served::start(seed, proxy::Twice::FromPlugin).await;
    let backend = Arc::clone(&served.server.backend);
    let budget = Budget::new(calls);
    let (mut plugins, mut callers) = (Vec::new(), Vec::new());
    for (id, (port, _)) in (1..).zip(&served.proxies) {
        let plugin = Plugin::start(*port, id);
        let studio = format!("place:{id}");
        until_live(&backend, &studio).await;
        for number in 1..=CALLERS {
            let caller = Caller {
                backend: Arc::clone(&backend),
                studio: studio.clone(),
                place: id,
                number,
                budget: Arc::clone(&budget),
                file: (served.project.path().to_path_buf(), file(id, number)),
                command: |_, key| key.to_owned(),
                returned,
                syncs_files: false,
            };
            callers.push((id, tokio::spawn(caller.run())));
        }
        plugins.push((id, studio, plugin));
    }
    let mut known: HashMap<u64, HashMap<String, Known>> = HashMap::new();
    for (id, caller) in callers {
        known.entry(id).or_default().extend(caller.await.expect("no panic"));
    }
    let mut sums = Sums::default();
    for (id, studio, plugin) in &plugins {
        until_live(&backend, studio).await;
        sums.add(&known[id], &plugin.counts());
    }
    say(&format!("level 0: {calls} calls (seed {seed}) {}: {sums:?}", served.deeds()));
    assert!(served.total(|deeds| &deeds.faults) > 0 && sums.done as u64 > calls / 2);
    served.stop().await;
}

/// Call until the server dies; whether each was answered as done.
async fn caller(port: u16, prefix: String, each: Arc<Notify>) -> HashMap<String, bool> {
    let mut known = HashMap::new();
    for round in 0.. {
        let key = format!("{prefix}_{round}");
        each.notify_one();
        let answer = call(port, "run_code", json!({ "command": key, "timeout": 20 })).await;
        known.insert(key, answer.as_ref().is_some_and(|answer| answer["ok"] == true));
        if answer.is_none() {
            break;
        }
    }
    known
}

/// One server's lives with such a plugin.
async fn lane(lane: u64, kills: u64) -> (usize, usize) {
    let mut random = Random::new(1_000 + lane);
    let project = demo();
    let port = free_port();
    let plugin = Plugin::start(port, 0);
    let mut known: HashMap<String, bool> = HashMap::new();
    for life in 0..kills {
        let server = serve(project.path(), port);
        until("the plugin is back without a hand", || is_live(port)).await;
        let each = Arc::new(Notify::new());
        let callers: Vec<_> = (0..CALLERS)
            .map(|number| tokio::spawn(caller(port, format!("l{life}_{number}"), Arc::clone(&each))))
            .collect();
        for _ in 0..1 + random.below(25) {
            each.notified().await;
        }
        drop(server);
        for caller in callers {
            known.extend(caller.await.expect("no panic"));
        }
    }
    let _server = serve(project.path(), port);
    until("the plugin is back without a hand", || is_live(port)).await;
    let ran = plugin.counts();
    for (key, done) in &known {
        let times = ran.get(key).copied().unwrap_or(0);
        assert!(times <= 1, "{key} ran {times} times");
        assert!(!done || times == 1, "{key} was answered as done and ran {times} times");
    }
    let done = known.values().filter(|done| **done).count();
    (done, known.len() - done)
}

#[tokio::test(flavor = "multi_thread")]
async fn c53_a_level_0_plugin_finds_a_killed_server_again_and_nothing_runs_twice() {
    let kills = number(KILLS.0, KILLS.1);
    let lanes: Vec<_> = (0..LANES).map(|number| tokio::spawn(lane(number, kills.div_ceil(LANES)))).collect();
    let (mut done, mut open) = (0, 0);
    for lane in lanes {
        let (more_done, more_open) = lane.await.expect("no panic");
        done += more_done;
        open += more_open;
    }
    say(&format!("level 0, {kills} kills: {done} calls were answered as done, {open} were cut off"));
    assert!(done > 0 && open > 0, "the kills came while there was work");
}
