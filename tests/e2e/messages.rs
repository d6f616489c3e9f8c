//! What the transport makes of messages that are none, of sessions, and of ids.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Agent, BOUND, TestServer, demo, save, until};

const JSON: (&str, &str) = ("content-type", "application/json");
const SESSION: &str = "mcp-session-id";
/// As many as there may be.
const MAX_SESSIONS: usize = 128;

impl Agent {
    async fn post(&self, session: Option<&str>, body: &str) -> (u16, Value) {
        let headers: Vec<(&str, &str)> = [JSON].into_iter().chain(session.map(|session| (SESSION, session))).collect();
        let (status, _, body) = self.http("POST", "/mcp", &headers, body.to_owned()).await;
        (status.as_u16(), answer(&String::from_utf8_lossy(&body)))
    }

    async fn open_session(&self) -> String {
        self.open_session_as("t").await
    }

    async fn open_session_as(&self, name: &str) -> String {
        let client = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": name, "version": "0" }
        });
        let body = rpc(json!(0), "initialize", &client);
        let (status, headers, _) = self.http("POST", "/mcp", &[JSON], body).await;
        assert_eq!(status, 200);
        let session = headers[SESSION].to_str().expect("a text").to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(Some(&session), &ready.to_string()).await.0, 202);
        session
    }
}

fn rpc(id: Value, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// The message in a body, which is JSON or events.
fn answer(body: &str) -> Value {
    let events = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let parsed = events.chain([body]).filter_map(|text| serde_json::from_str(text.trim()).ok());
    parsed.into_iter().find(Value::is_object).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_is_answered_with_what_is_wrong() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let agent = server.agent();
    let session = agent.open_session().await;
    for session in [None, Some(session.as_str())] {
        for (body, code, id, words) in [
            ("{\"jsonrpc\":", -32700, json!(null), "not JSON"),
            ("", -32700, json!(null), "not JSON"),
            ("7", -32600, json!(null), "object"),
            ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600, json!(null), "batches"),
            ("{\"id\":1,\"method\":\"ping\"}", -32600, json!(1), "`jsonrpc`"),
            ("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600, json!(null), "`id`"),
            ("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600, json!(null), "`id`"),
            ("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":5}", -32600, json!("a"), "`method`"),
            ("{\"jsonrpc\":\"2.0\",\"id\":2}", -32600, json!(2), "`method`"),
            ("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\",\"params\":[1]}", -32602, json!(3), "`params`"),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"initialize\",\"params\":{}}",
                -32602,
                json!(4),
                "protocolVersion",
            ),
        ] {
            let (status, answer) = agent.post(session, body).await;
            let error = &answer["error"];
            assert_eq!((status, &error["code"], &answer["id"]), (400, &json!(code), &id), "{body}: {answer}");
            assert!(error["message"].as_str().expect("words").contains(words), "{body}: {answer}");
        }
    }
    let ping = rpc(json!(1), "ping", &json!({}));
    let (status, ..) = agent.http("POST", "/mcp", &[("content-type", "text/plain")], ping.clone()).await;
    assert_eq!(status, 415);
    let (status, ..) = agent.http("POST", "/mcp", &[("content-type", "application/json; charset=utf-8")], ping).await;
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_params_are_not_an_unknown_method() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let agent = server.agent();
    let session = agent.open_session().await;
    for session in [None, Some(session.as_str())] {
        for (method, params, code, words) in [
            ("tools/call", json!({}), -32602, "`name`"),
            ("tools/call", json!({ "name": 5 }), -32602, "string"),
            ("tools/call", json!({ "name": "status", "arguments": [] }), -32602, "map"),
            ("tools/call", json!({ "name": "status", "arguments": "x" }), -32602, "map"),
            ("tools/fly", json!({}), -32601, "tools/fly"),
        ] {
            let (_, answer) = agent.post(session, &rpc(json!(9), method, &params)).await;
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &json!(9)), "{params}: {answer}");
            assert!(answer["error"]["message"].as_str().expect("words").contains(words), "{params}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c66_a_session_that_is_not_there_is_not_found_and_none_is_needed() {
    let project = demo();
    let before = TestServer::start(project.path()).await;
    let port = before.port;
    let older = before.agent().open_session().await;
    before.stop().await;
    let server = TestServer::start_with(project.path(), rojo_mcp::store::Store::in_memory(), port).await;
    let agent = server.agent();
    let session = agent.open_session().await;
    let ping = rpc(json!(1), "ping", &json!({}));
    assert_eq!(agent.post(Some(&session), &ping).await.0, 200);
    let delete = async |session: &str| agent.http("DELETE", "/mcp", &[(SESSION, session)], "").await.0.as_u16();
    assert_eq!(delete(&session).await, 202);
    for gone in [session.as_str(), older.as_str(), "never-was"] {
        assert_eq!(delete(gone).await, 404, "{gone}");
        assert_eq!(agent.http("GET", "/mcp", &[(SESSION, gone)], "").await.0, 404, "{gone}");
        assert_eq!(agent.post(Some(gone), &ping).await.0, 404, "{gone}");
    }
    let call = rpc(json!(2), "tools/call", &json!({ "name": "status", "arguments": {} }));
    let (status, answer) = agent.post(None, &call).await;
    assert_eq!(
        (status, &answer["result"]["isError"]),
        (200, &json!(false)),
        "who keeps no session needs none: {answer}"
    );
}

/// The head of an answer whose body may never end.
async fn head(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    stream.write_all(request.as_bytes()).await.expect("it takes the request");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = tokio::time::timeout(BOUND, stream.read_u8()).await.expect("in time").expect("an answer");
        head.push(byte);
    }
    String::from_utf8(head).expect("text").to_ascii_lowercase()
}

#[tokio::test(flavor = "multi_thread")]
async fn c69_whatever_is_accepted_a_get_streams_or_names_the_method_to_use() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let agent = server.agent();
    let session = agent.open_session().await;
    let ping = rpc(json!(1), "ping", &json!({}));
    for accept in ["*/*", "application/json", "text/event-stream", "text/html", ""] {
        let accept = if accept.is_empty() { String::new() } else { format!("accept: {accept}\r\n") };
        let get = format!("GET /mcp HTTP/1.1\r\nhost: localhost:{}\r\n{accept}", server.port);
        let refused = head(server.port, &format!("{get}\r\n")).await;
        assert!(refused.starts_with("http/1.1 405") && refused.contains("allow: post"), "{accept:?}: {refused}");
        let streams = head(server.port, &format!("{get}{SESSION}: {session}\r\n\r\n")).await;
        let is_stream = streams.starts_with("http/1.1 200") && streams.contains("content-type: text/event-stream");
        assert!(is_stream, "{accept:?}: {streams}");
        let post = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost:{}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{accept}",
            server.port,
            ping.len()
        );
        for session in [String::new(), format!("{SESSION}: {session}\r\n")] {
            let answered = head(server.port, &format!("{post}{session}\r\n{ping}")).await;
            assert!(answered.starts_with("http/1.1 200"), "{accept:?} {session:?}: {answered}");
        }
    }
}

fn slow(id: u32, seconds: f64) -> String {
    let command = format!("workspace:SetAttribute('Began', {id}) task.wait({seconds}) return {id}");
    rpc(json!(id), "tools/call", &json!({ "name": "run_code", "arguments": { "command": command } }))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_requests_with_one_id_do_not_lose_an_answer() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    let (session, other) = (agent.open_session().await, agent.open_session().await);
    let of = session.clone();
    let first = tokio::spawn(async move { agent.post(Some(&of), &slow(7, 1.0)).await });
    until("it runs", || async {
        studio.run("return workspace:GetAttribute('Began')").await.is_ok_and(|values| values == vec![json!(7)])
    })
    .await;
    let (status, answer) = agent.post(Some(&session), &slow(7, 0.0)).await;
    assert_eq!((status, &answer["error"]["code"], &answer["id"]), (400, &json!(-32600), &json!(7)), "{answer}");
    let (_, answer) = agent.post(Some(&other), &rpc(json!(7), "ping", &json!({}))).await;
    assert_eq!(answer["result"], json!({}), "the ids of another session are its own");
    let (status, answer) = first.await.expect("no panic");
    assert_eq!((status, &answer["result"]["structuredContent"]["returns"]), (200, &json!([7])), "{answer}");
    let (_, answer) = agent.post(Some(&session), &slow(7, 0.0)).await;
    assert_eq!(answer["result"]["structuredContent"]["returns"], json!([7]), "it may be used again: {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_too_many_sessions_the_one_that_was_idle_for_longest_goes() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    let (busy, oldest) = (agent.open_session().await, agent.open_session().await);
    let of = busy.clone();
    let running = tokio::spawn(async move { agent.post(Some(&of), &slow(1, 600.0)).await });
    until("it runs", || async {
        studio.run("return workspace:GetAttribute('Began')").await.is_ok_and(|values| values == vec![json!(1)])
    })
    .await;
    let mut others = Vec::new();
    for _ in 2..MAX_SESSIONS {
        others.push(agent.open_session().await);
    }
    let ping = rpc(json!(2), "ping", &json!({}));
    assert_eq!(agent.post(Some(&oldest), &ping).await.0, 200, "there is room for all of these");
    let newest = agent.open_session().await;
    for (session, status) in [(&others[0], 404), (&others[1], 200), (&oldest, 200), (&busy, 200), (&newest, 200)] {
        assert_eq!(agent.post(Some(session), &ping).await.0, status);
    }
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_says_who_had_done_what_it_takes_back() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let session = agent.open_session_as("claude-code\u{1b}[2J").await;
    save(project.path(), "src/shared/Config.luau", "return 1\n");
    let call = |id: i32, tool: &str| rpc(json!(id), "tools/call", &json!({ "name": tool, "arguments": {} }));
    let (_, synced) = agent.post(Some(&session), &call(1, "sync")).await;
    assert_eq!(synced["result"]["structuredContent"]["pushed"], 1, "{synced}");
    let undone = agent.call("undo", json!({})).await;
    assert!(undone.text.contains("undid sync 1 by claude-code\u{fffd}[2J at "), "{}", undone.text);
    let (_, redone) = agent.post(Some(&session), &call(2, "sync")).await;
    assert_eq!(redone["result"]["structuredContent"]["pushed"], 1, "{redone}");
    let (_, undone) = agent.post(Some(&session), &call(3, "undo")).await;
    let text = undone["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("undid sync 3 by claude-code"), "{text}");
}
