//! A peer that vanishes without a word: nothing passes any more, and both sockets stay open. The
//! times are the real ones, so each test takes as long as the two sides do to give a silent link up.

use std::sync::{Arc, Mutex};

use rojo_mcp::{headless::HeadlessStudio, store::Store};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

use crate::support::{Agent, TestServer, demo, headless};

/// No step of this takes longer: 11 s to notice, 30 s to give up, 15 s to wait for a return.
const BOUND: std::time::Duration = std::time::Duration::from_secs(60);

/// Carries to a server until it is told to stop.
struct Gate {
    port: u16,
    open: Arc<Mutex<watch::Sender<bool>>>,
}

impl Gate {
    async fn listen() -> (Self, TcpListener) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        (Self { port, open: Arc::new(Mutex::new(watch::Sender::new(true))) }, listener)
    }

    fn carry_to(&self, server: u16, listener: TcpListener) {
        let opened = Arc::clone(&self.open);
        tokio::spawn(async move {
            while let Ok((plugin, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { continue };
                let is_open = opened.lock().expect("no panic").subscribe();
                let ((from_plugin, to_plugin), (from_server, to_server)) = (plugin.into_split(), server.into_split());
                tokio::spawn(carry(from_plugin, to_server, is_open.clone()));
                tokio::spawn(carry(from_server, to_plugin, is_open));
            }
        });
    }

    /// Nothing passes any more on the connections that there are. Those that come later are whole.
    fn fall(&self) {
        let fallen = std::mem::replace(&mut *self.open.lock().expect("no panic"), watch::Sender::new(true));
        fallen.send_replace(false);
        // Whoever waits for it to open waits for ever, and keeps its sockets.
        std::mem::forget(fallen);
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut is_open: watch::Receiver<bool>) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer).await.unwrap_or(0);
        if is_open.wait_for(|open| *open).await.is_err() || read == 0 || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

struct Linked {
    _project: tempfile::TempDir,
    server: TestServer,
    gate: Gate,
    studio: HeadlessStudio,
}

async fn linked() -> Linked {
    let project = demo();
    let (gate, listener) = Gate::listen().await;
    let hosts = vec![format!("127.0.0.1:{}", gate.port)];
    let server = TestServer::start_for(project.path(), Store::in_memory(), 0, hosts).await;
    gate.carry_to(server.port, listener);
    let studio = headless(gate.port, server.session.place_model());
    server.until_live(1).await;
    Linked { _project: project, server, gate, studio }
}

/// Wait for the word that status has for the link; null where no Studio is listed any more.
async fn until_link(agent: Agent, wanted: &Value) {
    let wait = async {
        while agent.ask("status", json!({})).await["studios"][0]["link"] != *wanted {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(BOUND, wait).await.is_ok(), "not {wanted} within {BOUND:?}");
}

/// Counts under `key`, and takes so many seconds before that.
fn count(key: &str, seconds: u32, timeout: u32) -> Value {
    let command = format!(
        "workspace:SetAttribute('began', true) task.wait({seconds})
         workspace:SetAttribute('{key}', (workspace:GetAttribute('{key}') or 0) + 1) return '{key}'"
    );
    json!({ "command": command, "timeout": timeout, "operationId": key })
}

async fn times(studio: &HeadlessStudio, key: &str) -> Value {
    let values = studio.run(&format!("return workspace:GetAttribute('{key}')")).await.expect("it runs");
    values.into_iter().next().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn c54_a_half_open_link_is_noticed_and_comes_back_and_each_call_learns_the_truth() {
    let Linked { _project, server, gate, studio } = linked().await;
    let agent = server.agent();
    // One runs while the link falls silent, and ends in the silence.
    let during = tokio::spawn(async move { agent.call("run_code", count("during", 3, 60)).await });
    crate::support::until("it runs", || async { times(&studio, "began").await == json!(true) }).await;
    gate.fall();
    // One reads, so it does not wait for its turn: it is sent into the silence, and gives up in it.
    let lost = agent.call("get_studio_mode", json!({})).await;
    assert_eq!(lost.structure["error"]["code"], "outcome_unknown", "{}", lost.text);
    let after = tokio::spawn(async move { agent.call("run_code", count("after", 0, 60)).await });
    until_link(agent, &json!("silent")).await;
    until_link(agent, &json!("live")).await;
    for (call, key) in [(during, "during"), (after, "after")] {
        let told = call.await.expect("no panic");
        assert_eq!(told.structure["returns"], json!([key]), "{key}: {}", told.text);
        assert_eq!(times(&studio, key).await, json!(1), "{key} ran once");
    }
    assert_eq!(agent.eval("return 'alive'").await, json!("alive"));
}

#[tokio::test(flavor = "multi_thread")]
async fn c54_a_half_open_link_whose_studio_never_returns_is_given_up_and_its_calls_are_settled() {
    let Linked { _project, server, gate, studio } = linked().await;
    let agent = server.agent();
    let running = tokio::spawn(async move { agent.call("run_code", count("running", 600, 600)).await });
    crate::support::until("it runs", || async { times(&studio, "began").await == json!(true) }).await;
    let queued = tokio::spawn(async move { agent.call("run_code", count("queued", 0, 600)).await });
    gate.fall();
    drop(studio);
    until_link(agent, &json!("silent")).await;
    until_link(agent, &json!("reconnecting")).await;
    let told = agent.call("run_code", json!({ "command": "return 1" })).await;
    assert_eq!(told.structure["error"]["code"], "reconnecting", "a new call fails at once: {}", told.text);
    let told = queued.await.expect("no panic");
    assert_eq!(told.structure["error"]["code"], "reconnecting", "what waited for its turn: {}", told.text);
    let told = running.await.expect("no panic");
    assert_eq!(told.structure["error"]["code"], "outcome_unknown", "what was sent: {}", told.text);
    until_link(agent, &Value::Null).await;
    let told = agent.call("run_code", json!({ "command": "return 1" })).await;
    assert_eq!(told.structure["error"]["code"], "no_studio", "{}", told.text);
    let kept = agent.ask("get_call", json!({ "id": "running" })).await;
    assert_eq!(kept["state"], "unknown", "{kept}");
    let kept = agent.ask("get_call", json!({ "id": "queued" })).await;
    assert_eq!(kept["state"], "never_ran", "{kept}");
}
