//! A plugin that speaks level 0, byte for byte.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

use crate::support::{Agent, BOUND, TestServer, demo};

/// A scripted plugin.
pub struct FakePlugin(WebSocketStream<TcpStream>);

impl FakePlugin {
    pub async fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the server listens");
        let url = format!("ws://localhost:{port}/api/mcp/stream");
        Self(tokio_tungstenite::client_async(url, stream).await.expect("an upgrade").0)
    }

    pub async fn send(&mut self, frame: Value) {
        self.send_text(&frame.to_string()).await;
    }

    pub async fn send_text(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.expect("the link is open");
    }

    /// The next frame; `None` once the link is closed.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            match tokio::time::timeout(BOUND, self.0.next()).await.expect("a frame in time") {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).expect("JSON")),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }
}

pub fn hello(place: u64) -> Value {
    json!({
        "type": "hello", "twoWaySync": false, "oneShotSync": true, "confirmationBehavior": "Initial", "placeId": place
    })
}

async fn linked(agent: &Agent) {
    agent.until_live(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_level_0_plugin_gets_tools_and_get_script_and_nothing_it_does_not_know() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let agent = server.agent();
    let mut plugin = FakePlugin::connect(server.port).await;
    plugin.send(hello(0)).await;
    linked(&agent).await;

    let call = tokio::spawn(async move { agent.ask("run_code", json!({ "command": "print(1)" })).await });
    let request = plugin.next().await.expect("a request");
    let id = request["requestId"].clone();
    assert_eq!(request, json!({ "type": "run_code", "requestId": id, "args": { "command": "print(1)" } }));
    plugin.send(json!({ "type": "roblox_log", "message": "1", "level": 0 })).await;
    plugin.send(json!({ "requestId": id, "status": "success", "response": "1" })).await;
    let answer = call.await.expect("no panic");
    assert_eq!(answer["output"], json!([{ "level": "output", "text": "1" }]));

    let call =
        tokio::spawn(async move { agent.ask("get_script", json!({ "fsPath": "src/shared/Config.luau" })).await });
    let request = plugin.next().await.expect("a request");
    assert_eq!(request["type"], "getScript");
    assert_eq!(request["id"].as_str().expect("an id").len(), 32);
    plugin
        .send(json!({
            "requestId": request["requestId"], "status": "success", "source": "return 1", "studioHash": "opaque",
            "className": "ModuleScript", "instancePath": "ReplicatedStorage.Shared.Config", "isDraft": false
        }))
        .await;
    let script = call.await.expect("no panic");
    assert_eq!(script["source"], "return 1");
    assert_eq!(script["studioHash"], "opaque");
    assert_eq!(script["verdict"], "unknown");

    let told = agent.call("sync", json!({})).await;
    assert_eq!(told.structure["error"]["code"], "unsupported", "{}", told.text);

    let call = tokio::spawn(async move { agent.call("run_code", json!({ "command": "x" })).await });
    let request = plugin.next().await.expect("a request");
    plugin.send(json!({ "requestId": request["requestId"], "status": "error", "response": "it broke" })).await;
    let told = call.await.expect("no panic");
    assert!(told.is_error && told.text.contains("it broke"), "{}", told.text);

    let call = tokio::spawn(async move { agent.call("run_code", json!({ "command": "x" })).await });
    plugin.next().await.expect("a request");
    drop(plugin);
    let told = call.await.expect("no panic");
    assert_eq!(told.structure["error"]["code"], "outcome_unknown", "{}", told.text);
}
