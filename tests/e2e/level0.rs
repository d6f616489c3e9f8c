//! A plugin that speaks level 0, byte for byte.

use std::net::{Ipv4Addr, SocketAddr};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, client::IntoClientRequest},
};

use crate::support::{Agent, BOUND, TestServer, demo, save, until};

/// A scripted plugin.
pub struct FakePlugin(WebSocketStream<TcpStream>);

impl FakePlugin {
    pub async fn connect(port: u16) -> Self {
        Self::connect_with(port, &format!("localhost:{port}"), None).await
    }

    /// The same, for what was dialled as `host`, with the server's token.
    pub async fn connect_with(port: u16, host: &str, token: Option<&str>) -> Self {
        Self::connect_to((Ipv4Addr::LOCALHOST, port).into(), host, token).await
    }

    /// The same, to another address of this machine.
    pub async fn connect_to(address: SocketAddr, host: &str, token: Option<&str>) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        let mut request = format!("ws://{host}/api/mcp/stream").into_client_request().expect("a request");
        if let Some(token) = token {
            let bearer = format!("Bearer {token}").parse().expect("a header value");
            request.headers_mut().insert("authorization", bearer);
        }
        Self(tokio_tungstenite::client_async(request, stream).await.expect("an upgrade").0)
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

/// A server with the demo, and such a plugin on it.
async fn linked() -> (tempfile::TempDir, TestServer, FakePlugin) {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let mut plugin = FakePlugin::connect(server.port).await;
    plugin.send(hello(0)).await;
    server.until_live(1).await;
    (project, server, plugin)
}

/// The id that the tree has for the script of this file.
async fn id_of(agent: Agent, plugin: &mut FakePlugin, file: &'static str) -> Value {
    let call = tokio::spawn(async move { agent.call("get_script", json!({ "fsPath": file })).await });
    let request = plugin.next().await.expect("a request");
    let id = request["id"].clone();
    let expected = json!({ "type": "getScript", "requestId": request["requestId"], "id": id });
    assert_eq!(request, expected, "not a field more");
    plugin.send(json!({ "requestId": request["requestId"], "status": "error", "message": "not there" })).await;
    let told = call.await.expect("no panic");
    assert!(told.is_error && told.text.contains("not there"), "{}", told.text);
    id
}
#[tokio::test(flavor = "multi_thread")]
async fn a_level_0_plugin_gets_tools_and_get_script_and_nothing_it_does_not_know() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let agent = server.agent();
    let mut plugin = FakePlugin::connect(server.port).await;
    plugin.send(hello(0)).await;
    agent.until_live(1).await;

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

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_is_carried_out_by_the_plugin_and_its_receipt_names_files() {
    let (project, server, mut plugin) = linked().await;
    let agent = server.agent();
    let id = id_of(agent, &mut plugin, "src/shared/Config.luau").await;
    save(project.path(), "src/shared/New.luau", "return 1\n");
    let overrides = json!([{ "id": id, "direction": "push", "studioHash": "opaque" }]);
    let args = json!({ "mode": "manual", "overrides": overrides });
    let call = tokio::spawn(async move { agent.ask("sync", args).await });
    let request = plugin.next().await.expect("a request");
    let request_id = request["requestId"].clone();
    let expected = json!({ "type": "sync", "requestId": request_id, "mode": "manual", "overrides": overrides });
    assert_eq!(request, expected, "not a field more");
    let new = server.session.find(&rojo_mcp::session::Target::FsPath("src/shared/New.luau"));
    assert_eq!(new.len(), 1, "a save made just before the call is in the tree that the plugin reads");
    let change = |path: &str, direction: &str| {
        json!({
            "path": path, "direction": direction, "id": id, "className": "ModuleScript", "patchType": "Edit",
            "studioHash": "opaque", "properties": { "Source": { "current": "a", "incoming": "b" } }
        })
    };
    let mut foreign = change("Workspace.Mine", "unresolved");
    foreign["id"] = json!("the plugin's own");
    let changes = json!([change("ReplicatedStorage.Shared.Config", "push"), foreign]);
    plugin.send(json!({ "requestId": request_id, "status": "success", "changes": changes })).await;
    let receipt = call.await.expect("no panic");
    assert_eq!(
        (&receipt["status"], &receipt["pushed"], &receipt["unresolved"]),
        (&json!("success"), &json!(1), &json!(1))
    );
    let told = &receipt["changes"][0];
    assert_eq!((&told["fsPath"], &told["result"]), (&json!("src/shared/Config.luau"), &json!("done")), "{receipt}");
    assert_eq!((&told["id"], &told["studioHash"]), (&id, &json!("opaque")));
    assert_eq!(told["properties"]["Source"]["incoming"], "b");
    let told = &receipt["changes"][1];
    assert_eq!((&told["id"], &told["fsPath"]), (&json!("the plugin's own"), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_status_of_such_a_plugins_sync_reaches_the_caller() {
    let (_project, server, mut plugin) = linked().await;
    let agent = server.agent();
    for status in
        ["empty", "rejected", "dryrun", "fastfail_unresolved", "already_connected", "sync_in_progress", "error"]
    {
        let call = tokio::spawn(async move { agent.ask("sync", json!({})).await });
        let request = plugin.next().await.expect("a request");
        assert_eq!((&request["mode"], &request["overrides"]), (&json!("standard"), &json!([])));
        plugin.send(json!({ "requestId": request["requestId"], "status": status, "changes": [] })).await;
        assert_eq!(call.await.expect("no panic")["status"], status);
    }
    let told = agent.call("sync", json!({ "overrides": [{ "id": "7", "direction": "push" }] })).await;
    assert!(told.is_error && told.text.contains("`overrides[0].id`"), "{}", told.text);
    let told = agent.call("sync", json!({ "paths": ["src"] })).await;
    assert!(told.is_error && told.text.contains("`paths`"), "{}", told.text);
}

/// The events of a call that asks for progress, in a session of its own.
async fn call_with_progress(agent: Agent, tool: &str) -> hyper::body::Incoming {
    use http_body_util::Full;
    use hyper::{Request, body::Bytes};
    let json_type = ("content-type", "application/json");
    let rpc = |id: u32, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let client =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
    let (_, headers, _) = agent.http("POST", "/mcp", &[json_type], rpc(1, "initialize", client).to_string()).await;
    let session = headers["mcp-session-id"].to_str().expect("text").to_owned();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    agent.http("POST", "/mcp", &[json_type, ("mcp-session-id", &session)], ready.to_string()).await;
    let params = json!({ "name": tool, "arguments": {}, "_meta": { "progressToken": "p" } });
    let request = Request::post("/mcp")
        .header("host", format!("localhost:{}", agent.port))
        .header("content-type", "application/json")
        .header("mcp-session-id", &session)
        .body(Full::new(Bytes::from(rpc(2, "tools/call", params).to_string())))
        .expect("a request");
    let stream = TcpStream::connect(("127.0.0.1", agent.port)).await.expect("the server listens");
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.expect("HTTP");
    tokio::spawn(connection);
    sender.send_request(request).await.expect("answered").into_body()
}

/// Read events until one holds `wanted`.
async fn until_event(body: &mut hyper::body::Incoming, wanted: &str) {
    use http_body_util::BodyExt;
    let mut seen = String::new();
    while !seen.contains(wanted) {
        let frame =
            tokio::time::timeout(BOUND, body.frame()).await.expect("in time").expect("no end").expect("a frame");
        seen.push_str(&String::from_utf8_lossy(frame.data_ref().map_or(&[], |data| data)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_person_looks_at_the_changes_the_caller_is_kept_alive() {
    let (_project, server, mut plugin) = linked().await;
    let mut events = call_with_progress(server.agent(), "sync").await;
    let request = plugin.next().await.expect("a request");
    for _ in ["at once", "five seconds later"] {
        until_event(&mut events, "a person may be asked").await;
    }
    let result = json!({ "requestId": request["requestId"], "status": "rejected", "message": "a person said no" });
    plugin.send(result).await;
    until_event(&mut events, "a person said no").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_window_of_one_place_stays_if_the_first_is_alive_and_takes_over_if_not() {
    let (_project, server, mut first) = linked().await;
    let agent = server.agent();
    let mut second = FakePlugin::connect(server.port).await;
    second.send(hello(0)).await;
    let probe = first.next().await.expect("a probe");
    assert_eq!(probe, json!({ "type": "get_studio_mode", "requestId": probe["requestId"], "args": {} }));
    first.send(json!({ "requestId": probe["requestId"], "status": "success", "response": "edit" })).await;
    agent.until_live(2).await;
    let told = agent.call("run_code", json!({ "command": "x" })).await;
    assert_eq!(told.structure["error"]["code"], "ambiguous_studio", "{}", told.text);
    let args = json!({ "command": "x", "studio": "place:0#2" });
    let call = tokio::spawn(async move { agent.ask("run_code", args).await });
    let request = second.next().await.expect("a request");
    second.send(json!({ "requestId": request["requestId"], "status": "success", "response": "" })).await;
    call.await.expect("no panic");

    // The first answers no more, but its socket stays open.
    drop(second);
    agent.until_live(1).await;
    let mut third = FakePlugin::connect(server.port).await;
    third.send(hello(0)).await;
    assert_eq!(first.next().await.expect("a probe")["type"], "get_studio_mode");
    assert_eq!(first.next().await, None, "closed after five seconds");
    agent.until_live(1).await;
    let call = tokio::spawn(async move { agent.ask("run_code", json!({ "command": "x" })).await });
    let request = third.next().await.expect("a request");
    third.send(json!({ "requestId": request["requestId"], "status": "success", "response": "" })).await;
    call.await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_are_sent_before_the_upgrade_is_answered_are_read() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).await.expect("the server listens");
    let mut bytes = format!(
        "GET /api/mcp/stream HTTP/1.1\r\nHost: localhost:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.port
    )
    .into_bytes();
    let hello = hello(0).to_string();
    let length = u16::try_from(hello.len()).expect("a short frame");
    // A final text frame with a 16 bit length and a mask of zeroes.
    bytes.extend([0x81, 0x80 | 126]);
    bytes.extend(length.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(hello.as_bytes());
    stream.write_all(&bytes).await.expect("it is taken");
    server.until_live(1).await;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 101");
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_of_such_a_plugin_are_no_answer_and_its_goodbye_is_the_end_of_its_socket() {
    let (_project, server, mut plugin) = linked().await;
    let agent = server.agent();
    for level in 0..4 {
        plugin.send(json!({ "type": "roblox_log", "message": "hi", "level": level })).await;
    }
    plugin.send(json!({ "type": "roblox_log", "message": 7 })).await;
    plugin.send(json!({ "type": "somethingOfItsOwn", "x": 1 })).await;
    let call = tokio::spawn(async move { agent.ask("get_console_output", json!({})).await });
    let request = plugin.next().await.expect("a request");
    assert_eq!(request, json!({ "type": "get_console_output", "requestId": request["requestId"], "args": {} }));
    plugin.send(json!({ "requestId": request["requestId"], "status": "success", "response": "hi\nhi" })).await;
    assert_eq!(call.await.expect("no panic")["entries"][0]["text"], "hi\nhi");
    drop(plugin);
    until("it is gone", || async { agent.ask("status", json!({})).await["studios"] == json!([]) }).await;
}
