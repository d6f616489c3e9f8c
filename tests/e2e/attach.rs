//! Several programs and one server: who serves, who attaches, and what happens when it goes away.

use std::{path::Path, process::Stdio, time::Duration};

use rmcp::{RoleClient, ServiceExt, model::CallToolRequestParams, service::RunningService};
use rojo_mcp::{
    attach::{self, Claim, DialError, ServeFile, Token},
    state::StateFolder,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    process::{Child, Command},
};

use crate::support::{Agent, BOUND, TestServer, demo, program, state_root, until};

/// An agent that started `rojo-mcp mcp`.
pub struct StdioAgent {
    client: RunningService<RoleClient, ()>,
    child: Child,
}

impl StdioAgent {
    pub async fn start(project: &Path, extra: &[&str]) -> Self {
        let mut command = Command::from(program(project));
        command.arg("mcp").arg(project).args(extra).kill_on_drop(true);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
        let pipes = (child.stdout.take().expect("piped"), child.stdin.take().expect("piped"));
        let client = tokio::time::timeout(BOUND, ().serve(pipes)).await.expect("in time").expect("a handshake");
        Self { client, child }
    }

    /// The structure of a tool's answer.
    pub async fn call(&self, tool: &'static str, args: Value) -> Value {
        let Value::Object(args) = args else { unreachable!("arguments are objects") };
        let call = self.client.call_tool(CallToolRequestParams::new(tool).with_arguments(args));
        let result = tokio::time::timeout(BOUND, call).await.expect("in time").expect("an answer");
        result.structured_content.expect("structured")
    }

    async fn server(&self) -> String {
        let status = self.call("status", json!({})).await;
        status["server"]["url"].as_str().unwrap_or_else(|| panic!("no server: {status}")).to_owned()
    }

    async fn end(mut self) -> Option<i32> {
        self.client.cancel().await.expect("closed");
        tokio::time::timeout(BOUND, self.child.wait()).await.expect("it ends").expect("a status").code()
    }
}

/// `rojo-mcp serve` on a free port.
async fn serve(project: &Path) -> (Child, u16) {
    serve_with(project, &[]).await
}

/// The same, with more flags. It ends with what is returned.
pub async fn serve_with(project: &Path, extra: &[&str]) -> (Child, u16) {
    let mut command = Command::from(program(project));
    command.arg("serve").arg(project).args(["--port", "0"]).args(extra).kill_on_drop(true);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let port = async {
        loop {
            let line = lines.next_line().await.expect("text").expect("it names its port");
            if let Some(port) = line.trim().strip_prefix("Port:") {
                return port.trim().parse().expect("a number");
            }
        }
    };
    let port = tokio::time::timeout(BOUND, port).await.expect("in time");
    // The rest of what it says must have somewhere to go.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, port)
}

fn state(project: &Path) -> StateFolder {
    StateFolder::below(&state_root(project), &project.join("default.project.json")).expect("a state folder")
}

fn serve_file(project: &Path) -> Option<ServeFile> {
    ServeFile::read(&state(project))
}

#[tokio::test(flavor = "multi_thread")]
async fn c56_nine_agents_on_one_project_share_one_server() {
    let project = demo();
    let starts = (0..9).map(|_| StdioAgent::start(project.path(), &["--headless"]));
    let agents = futures_util::future::join_all(starts).await;
    let answers = futures_util::future::join_all(agents.iter().map(|agent| agent.call("status", json!({})))).await;
    for answer in &answers {
        assert_eq!(answer["server"], answers[0]["server"], "{answer}");
        assert_eq!(answer["studios"].as_array().map(Vec::len), Some(1), "{answer}");
        assert_eq!(answer["studios"][0]["link"], "live");
    }
    let told = agents[3].call("run_code", json!({ "command": "workspace:SetAttribute('By', 'three')" })).await;
    assert_eq!(told["ok"], true, "{told}");
    let told = agents[7].call("run_code", json!({ "command": "return workspace:GetAttribute('By')" })).await;
    assert_eq!(told["returns"], json!(["three"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_answered_while_another_process_starts_the_server_and_its_call_is_handed_on() {
    let project = demo();
    let mut starting = Claim::take(&state(project.path())).expect("it can be locked").expect("nobody serves");
    let agent = StdioAgent::start(project.path(), &["--port", "0"]).await;
    assert!(!agent.client.list_all_tools().await.expect("a list").is_empty(), "it needs no server");
    let mut waiting = Box::pin(agent.call("status", json!({})));
    let early = tokio::time::timeout(Duration::from_millis(300), &mut waiting).await;
    assert!(early.is_err(), "nobody can answer it yet");

    let server = TestServer::start(project.path()).await;
    starting.publish(server.serve_file(project.path())).expect("written");
    assert_eq!(waiting.await["server"]["url"], json!(format!("http://localhost:{}", server.port)));

    server.stop().await;
    drop(starting);
    assert_ne!(agent.server().await, "", "now it serves itself");
    assert_eq!(agent.end().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn c53_an_agent_outlives_the_process_that_served_it() {
    let project = demo();
    let mut first = StdioAgent::start(project.path(), &["--headless"]).await;
    let url = first.server().await;
    let second = StdioAgent::start(project.path(), &["--headless"]).await;
    assert_eq!(second.server().await, url, "it attached");

    let endless = second.call("run_code", json!({ "command": "while true do task.wait() end", "timeout": 300 }));
    let kill = async {
        let agent = Agent { port: url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port") };
        until("the call is under way", || async { agent.ask("status", json!({})).await["calls"] == 1 }).await;
        first.child.kill().await.expect("killed");
    };
    let (lost, ()) = tokio::join!(endless, kill);
    assert_eq!(lost["error"]["code"], "outcome_unknown", "{lost}");

    let status = second.call("status", json!({})).await;
    assert_ne!(status["server"]["url"], json!(url), "it serves now: {status}");
    assert_eq!(second.call("run_code", json!({ "command": "return 1" })).await["returns"], json!([1]));
    assert_eq!(second.end().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_moves_from_a_server_that_stops_to_the_next() {
    let project = demo();
    let (mut serving, port) = serve(project.path()).await;
    let agent = StdioAgent::start(project.path(), &["--headless"]).await;
    assert_eq!(agent.server().await, format!("http://localhost:{port}"));
    let pid = serving.id().expect("it runs").to_string();
    #[cfg(unix)]
    std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("asked to stop");
    #[cfg(not(unix))]
    serving.start_kill().expect("stopped");
    serving.wait().await.expect("it ends");
    assert_ne!(agent.server().await, format!("http://localhost:{port}"));
    assert_ne!(serve_file(project.path()).map(|file| file.pid.to_string()), Some(pid));
    assert_eq!(agent.end().await, Some(0));
    assert_eq!(serve_file(project.path()), None, "a clean stop leaves nothing behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn c56_a_server_of_another_version_is_named_and_not_used() {
    let project = demo();
    let (serving, _port) = serve(project.path()).await;
    let path = ServeFile::path(&state(project.path()));
    let told = std::fs::read_to_string(&path).expect("it is there");
    let other = told.replace(&format!("\"{}\"", rojo_mcp::VERSION), "\"0.0.9\"");
    assert_ne!(told, other);
    replace(&path, &other);
    let agent = StdioAgent::start(project.path(), &[]).await;
    let error = agent.call("status", json!({})).await["error"]["message"].to_string();
    let pid = serving.id().expect("it runs").to_string();
    assert!(error.contains("0.0.9") && error.contains(rojo_mcp::VERSION) && error.contains(&pid), "{error}");
    replace(&path, &told);
    assert!(agent.server().await.starts_with("http://localhost"), "the next call finds what was put right");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_attach_are_told_apart_and_leave_one_by_one() {
    let project = demo();
    let (_serving, _port) = serve_with(project.path(), &["--headless"]).await;
    let one = StdioAgent::start(project.path(), &[]).await;
    let other = StdioAgent::start(project.path(), &[]).await;
    let started = one.call("start_stop_play", json!({ "mode": "run_server" })).await;
    assert_eq!(started["mode"], "run", "{started}");
    let played = async |agent: &StdioAgent| agent.call("status", json!({})).await["studios"][0]["played"]["by"].clone();
    assert_eq!((played(&one).await, played(&other).await), (json!("you"), json!("another caller")));
    let restarted = other.call("start_stop_play", json!({ "mode": "restart" })).await;
    assert!(restarted["error"]["message"].to_string().contains("by another caller"), "{restarted}");
    assert_eq!(one.end().await, Some(0));
    until("the other hears that it has left", || async { played(&other).await == "a caller that has left" }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_wants_a_token_required_uses_no_server_that_requires_none() {
    let project = demo();
    let (mut serving, _port) = serve(project.path()).await;
    let agent = StdioAgent::start(project.path(), &["--port", "0", "--require-token"]).await;
    let error = agent.call("status", json!({})).await["error"].clone();
    let pid = serving.id().expect("it runs").to_string();
    let message = error["message"].as_str().expect("a text");
    assert!(message.contains("without --require-token") && message.contains(&pid), "{error}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("start it with --require-token")), "{error}");

    serving.kill().await.expect("killed");
    assert!(agent.server().await.starts_with("http://localhost"), "now it serves itself");
    let second = StdioAgent::start(project.path(), &["--require-token"]).await;
    assert_eq!(second.server().await, agent.server().await, "that one requires it");
    assert_eq!(second.end().await, Some(0));
    let third = StdioAgent::start(project.path(), &[]).await;
    assert_eq!(third.server().await, agent.server().await, "whoever does not ask gets more than it wants");
}

#[expect(clippy::disallowed_methods, reason = "a test puts another file there")]
fn replace(path: &Path, text: &str) {
    std::fs::write(path, text).expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn c56_a_foreign_program_on_the_port_is_said_and_the_next_call_tries_again() {
    let project = demo();
    let foreign = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = foreign.local_addr().expect("an address").port().to_string();
    let silent = tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = foreign.accept().await {
            kept.push(stream);
        }
    });
    let agent = StdioAgent::start(project.path(), &["--port", &port]).await;
    let error = agent.call("status", json!({})).await["error"]["message"].to_string();
    assert!(error.contains(&port) && error.contains("another program"), "{error}");
    silent.abort();
    let _ = silent.await;
    assert_eq!(agent.server().await, format!("http://localhost:{port}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn c56_a_second_serve_names_the_first_and_a_port_its_holder() {
    let (project, other) = (demo(), demo());
    let (serving, port) = serve(project.path()).await;
    let run = async |project: &Path, port: u16| {
        let mut command = Command::from(program(project));
        let output = command.arg("serve").arg(project).args(["--port", &port.to_string()]).output();
        let output = tokio::time::timeout(BOUND, output).await.expect("it ends").expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).expect("text")
    };
    let pid = serving.id().expect("it runs").to_string();
    let text = run(project.path(), 0).await;
    assert!(text.contains("served already") && text.contains(&port.to_string()) && text.contains(&pid), "{text}");
    let text = run(other.path(), port).await;
    assert!(text.contains("in use by rojo-mcp") && text.contains("Lantern Run") && text.contains(&pid), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_leaves_a_file_that_fools_nobody() {
    let project = demo();
    let (mut serving, port) = serve(project.path()).await;
    serving.kill().await.expect("killed");
    assert!(serve_file(project.path()).is_some(), "nobody could take it away");
    let (_again, other) = serve(project.path()).await;
    assert_ne!(port, other);
    assert_eq!(serve_file(project.path()).map(|file| file.address.port()), Some(other));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_on_the_port_never_sees_the_token() {
    let stranger = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let file = ServeFile {
        pid: std::process::id(),
        address: stranger.local_addr().expect("an address"),
        token: Token::random(),
        version: rojo_mcp::VERSION.into(),
        requires_token: false,
        project: "default.project.json".into(),
    };
    let listen = async {
        let mut heard = String::new();
        let (mut stream, _) = stranger.accept().await.expect("it dials");
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut part).await {
            heard.push_str(&String::from_utf8_lossy(part.get(..count).expect("as much as was read")));
            let card =
                json!({ "rojoMcp": "0.1.0", "project": "x", "folder": "x", "pid": 1, "proof": "00" }).to_string();
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{card}", card.len());
            stream.write_all(answer.as_bytes()).await.expect("it listens");
        }
        heard
    };
    let (tried, heard) = tokio::join!(attach::connect(&file), listen);
    assert!(matches!(tried, Err(DialError::Stranger(_))));
    assert!(heard.contains("challenge=") && !heard.contains(file.token.secret()), "{heard}");
    assert_eq!(heard.matches("GET ").count(), 1, "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_attaches_with_the_token_and_only_with_it() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let agent = server.agent();
    let (status, _, body) = agent.http("GET", "/api/mcp/server", &[], String::new()).await;
    assert_eq!(status, 200);
    let card: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!((&card["project"], &card["pid"]), (&json!("Lantern Run"), &json!(std::process::id())));
    let upgrade = [("connection", "Upgrade"), ("upgrade", "mcp-lines")];
    for wrong in ["", "Bearer ", "Bearer 0000"] {
        let headers = [&upgrade[..], &[("authorization", wrong)]].concat();
        let (status, _, _) = agent.http("GET", "/api/mcp/server", &headers, String::new()).await;
        assert_eq!(status, 401, "{wrong:?}");
    }
    let (status, _, _) = agent.http("GET", "/api/mcp/server", &[("roblox-id", "1")], String::new()).await;
    assert_eq!(status, 403, "a running game");
    let (status, _, _) =
        agent.http("GET", &format!("/api/mcp/server?challenge={}", "a".repeat(129)), &[], String::new()).await;
    assert_eq!(status, 400);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn junk_and_long_lines_do_not_end_an_attached_agent() {
    let project = demo();
    let (_serving, _port) = serve(project.path()).await;
    let mut command = Command::from(program(project.path()));
    command.arg("mcp").arg(project.path()).kill_on_drop(true);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("piped");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let hello = json!({ "jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" }
    } });
    let long = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "status", "arguments": { "pad": "x".repeat(10_000_000) }
    } });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "status" } });
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let text = format!("\u{feff}{hello}\n{initialized}\n\nnot JSON\n{{\"half\":\n{long}\n{call}\n");
    tokio::spawn(async move {
        stdin.write_all(text.as_bytes()).await.expect("it listens");
        std::future::pending::<()>().await;
    });
    let mut seen = std::collections::BTreeMap::new();
    let read = async {
        while seen.len() < 3 {
            let line = lines.next_line().await.expect("text").expect("it goes on");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            seen.insert(message["id"].to_string(), message);
        }
    };
    tokio::time::timeout(BOUND, read).await.expect("three answers");
    assert_eq!(seen["\"a\""]["result"]["serverInfo"]["name"], "rojo-mcp");
    assert_eq!(seen["2"]["result"]["isError"], true);
    assert_eq!(seen["3"]["result"]["structuredContent"]["project"]["name"], "Lantern Run");
    tokio::time::timeout(Duration::from_secs(5), child.kill()).await.expect("it ends").expect("killed");
}
