//! The agent's client asks its person.

use std::{process::Stdio, sync::Mutex};

use http_body_util::{BodyExt, Full};
use hyper::{StatusCode, body::Bytes};
use hyper_util::rt::TokioIo;
use rmcp::{
    ClientHandler, ErrorData, RoleClient, ServiceExt,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    },
    service::{RequestContext, RunningService},
};
use serde_json::{Value, json};
use tokio::{net::TcpStream, process::Command, sync::Notify};

use super::{CONFIG, MINE, asked, post, read};
use crate::support::{Agent, BOUND, TestServer, demo, program, save, until};

/// A client whose person gives this answer, and what they were asked.
struct Person {
    answer: ElicitResult,
    asked: Mutex<Vec<Value>>,
    /// They answer when told to.
    may_answer: Notify,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.capabilities = ClientCapabilities::builder().enable_elicitation().build();
        info
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.asked.lock().expect("no panic").push(serde_json::to_value(&request).expect("JSON"));
        tokio::select! {
            () = self.may_answer.notified() => Ok(self.answer.clone()),
            () = context.ct.cancelled() => {
                self.asked.lock().expect("no panic").push(json!("withdrawn"));
                Ok(ElicitResult::new(ElicitationAction::Cancel))
            }
        }
    }
}

struct Client {
    service: RunningService<RoleClient, Person>,
    _child: tokio::process::Child,
}

impl Client {
    async fn start(project: &std::path::Path, answer: ElicitResult) -> Self {
        let mut child = Command::from(program(project))
            .arg("mcp")
            .arg(project)
            .arg("--headless")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary runs");
        let pipes = (child.stdout.take().expect("piped"), child.stdin.take().expect("piped"));
        let person = Person { answer, asked: Mutex::default(), may_answer: Notify::new() };
        let service = person.serve(pipes).await.expect("a handshake");
        let client = Self { service, _child: child };
        until("the Studio is live", || async {
            client.call("status", json!({})).await["studios"][0]["link"] == "live"
        })
        .await;
        client
    }

    async fn call(&self, tool: &'static str, args: Value) -> Value {
        let Value::Object(args) = args else { unreachable!("arguments are objects") };
        let request = CallToolRequestParams::new(tool).with_arguments(args);
        let result = tokio::time::timeout(BOUND, self.service.call_tool(request)).await.expect("in time");
        result.expect("an answer").structured_content.expect("structured")
    }

    fn asked(&self) -> Vec<Value> {
        self.service.service().asked.lock().expect("no panic").clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manual_sync_is_answered_in_the_agents_client() {
    let project = demo();
    let content = json!({});
    let client =
        Client::start(project.path(), ElicitResult::new(ElicitationAction::Accept).with_content(content)).await;
    save(project.path(), CONFIG, MINE);
    let answer = async {
        until("the person is asked", || async { client.asked().len() == 1 }).await;
        client.service.service().may_answer.notify_one();
    };
    let (receipt, ()) = tokio::join!(client.call("sync", json!({ "mode": "manual" })), answer);
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("success"), &json!(1)), "{receipt}");
    let asked = &client.asked()[0];
    let message = asked["message"].as_str().expect("a message");
    assert!(message.contains("- ReplicatedStorage.Shared.Config: push edit"), "{message}");
    let properties = asked["requestedSchema"]["properties"].as_object().expect("properties");
    let (_, choice) = properties.iter().next().expect("one change");
    assert_eq!((&choice["default"], properties.len()), (&json!("accept"), 1));
    let value =
        client.call("run_code", json!({ "command": "return game.ReplicatedStorage.Shared.Config.Source" })).await;
    assert_eq!(value["returns"], json!([MINE]));
}

#[tokio::test(flavor = "multi_thread")]
async fn declining_in_the_agents_client_changes_nothing() {
    let project = demo();
    let client = Client::start(project.path(), ElicitResult::new(ElicitationAction::Decline)).await;
    save(project.path(), CONFIG, MINE);
    client.service.service().may_answer.notify_one();
    let receipt = client.call("sync", json!({ "mode": "manual" })).await;
    assert_eq!(receipt["status"], "rejected", "{receipt}");
    assert_eq!(receipt["message"], "declined in the agent's client, so nothing was changed");
    assert_eq!(read(project.path(), CONFIG), MINE);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_form_goes_when_somebody_else_has_answered() {
    let project = demo();
    let client = Client::start(project.path(), ElicitResult::new(ElicitationAction::Cancel)).await;
    save(project.path(), CONFIG, MINE);
    let url = client.call("status", json!({})).await["server"]["url"].as_str().expect("an address").to_owned();
    let port = url.trim_end_matches('/').rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let agent = Agent { port };
    let answer = async {
        until("the person is asked", || async { client.asked().len() == 1 }).await;
        let review = asked(&agent).await;
        let (status, _) = post(&agent, &review["id"], &json!({ "all": "accept" })).await;
        assert_eq!(status, StatusCode::OK);
    };
    let (receipt, ()) = tokio::join!(client.call("sync", json!({ "mode": "manual" })), answer);
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("success"), &json!(1)), "{receipt}");
    until("the form is withdrawn", || async { client.asked().get(1) == Some(&json!("withdrawn")) }).await;
}

/// A session over HTTP, as agents keep it, with the events of one answer as they come.
struct Session {
    agent: Agent,
    id: String,
}

impl Session {
    async fn open(agent: Agent) -> Self {
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "test", "version": "0" },
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let json_type = ("content-type", "application/json");
        let (status, headers, _) = agent.http("POST", "/mcp", &[json_type], body.to_string()).await;
        assert_eq!(status, StatusCode::OK);
        let id = headers["mcp-session-id"].to_str().expect("text").to_owned();
        let session = Self { agent, id };
        session.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        session
    }

    async fn say(&self, message: &Value) {
        let headers = [("content-type", "application/json"), ("mcp-session-id", self.id.as_str())];
        let (status, _, _) = self.agent.http("POST", "/mcp", &headers, message.to_string()).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{message}");
    }

    /// Call a tool; `react` is given each message of the stream until the result.
    async fn call(&self, params: Value, mut react: impl AsyncFnMut(&Self, &Value)) -> Value {
        let stream = TcpStream::connect(("127.0.0.1", self.agent.port)).await.expect("the server listens");
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        let body = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }).to_string();
        let request = hyper::Request::post("/mcp")
            .header("host", format!("localhost:{}", self.agent.port))
            .header("content-type", "application/json")
            .header("mcp-session-id", &self.id)
            .body(Full::new(Bytes::from(body)))
            .expect("a request");
        let mut body = sender.send_request(request).await.expect("answered").into_body();
        let mut text = String::new();
        loop {
            let frame = tokio::time::timeout(BOUND, body.frame()).await.expect("in time");
            let frame = frame.expect("the result comes before the end").expect("no error");
            text.push_str(&String::from_utf8_lossy(frame.data_ref().map_or(&[][..], |data| data)));
            while let Some((event, rest)) =
                text.split_once("\n\n").map(|(event, rest)| (event.to_owned(), rest.to_owned()))
            {
                text = rest;
                let data: String = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
                let Ok(message) = serde_json::from_str::<Value>(&data) else { continue };
                if message["id"] == 2 && message.get("method").is_none() {
                    return message["result"]["structuredContent"].clone();
                }
                react(self, &message).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manual_sync_over_http_is_answered_on_its_own_stream() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    save(project.path(), CONFIG, MINE);
    let session = Session::open(server.agent()).await;
    let params = json!({ "name": "sync", "arguments": { "mode": "manual" }, "_meta": { "progressToken": "p" } });
    let mut heard = Vec::new();
    let receipt = session
        .call(params, async |session, message| {
            heard.push(message["params"]["message"].clone());
            if message["method"] == "elicitation/create" {
                let properties = message["params"]["requestedSchema"]["properties"].as_object().expect("properties");
                let name = properties.keys().next().expect("one change");
                let result = json!({ "action": "accept", "content": { name.as_str(): "push" } });
                session.say(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).await;
            }
        })
        .await;
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("success"), &json!(1)), "{receipt}");
    assert!(heard.contains(&json!("a person is asked in the agent's client (1 change)")), "{heard:?}");
}

/// A call in a protocol in which the server does not ask: the result, whatever it is.
async fn call_again(agent: &Agent, more: Value) -> Value {
    const PROTOCOL: &str = "2026-07-28";
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": PROTOCOL,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let mut params = json!({ "name": "sync", "arguments": { "mode": "manual" }, "_meta": meta });
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let headers = [
        ("content-type", "application/json"),
        ("mcp-protocol-version", PROTOCOL),
        ("mcp-method", "tools/call"),
        ("mcp-name", "sync"),
    ];
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string();
    let (status, _, body) = agent.http("POST", "/mcp", &headers, body).await;
    let text = String::from_utf8(body.to_vec()).expect("text");
    assert_eq!(status, StatusCode::OK, "{text}");
    let json = text.lines().find_map(|line| line.strip_prefix("data:")).unwrap_or(&text);
    let answer: Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(answer.get("error"), None, "{answer}");
    answer["result"].clone()
}

/// The answer to what `asked` asks: this for every change.
fn input(asked: &Value, choice: &str) -> Value {
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let request = &asked["inputRequests"]["review"];
    assert_eq!(request["method"], "elicitation/create", "{asked}");
    let properties = request["params"]["requestedSchema"]["properties"].as_object().expect("properties");
    let content: Value = properties.keys().map(|name| (name.clone(), json!(choice))).collect();
    json!({
        "requestState": asked["requestState"],
        "inputResponses": { "review": { "action": "accept", "content": content } },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_not_asked_during_a_call_is_answered_what_to_ask() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    save(project.path(), CONFIG, MINE);
    let asked = call_again(&agent, json!({})).await;
    // A call without a word about it is asked again, one that is another call is told so.
    let state = json!({ "requestState": asked["requestState"] });
    let again = call_again(&agent, state.clone()).await;
    let other = json!({ "requestState": again["requestState"], "arguments": { "mode": "standard" } });
    let told = call_again(&agent, other).await;
    assert_eq!(
        (&told["isError"], &told["structuredContent"]["error"]["code"]),
        (&json!(true), &json!("bad_arguments"))
    );
    let nonsense = json!({ "requestState": again["requestState"], "inputResponses": { "review": 5 } });
    let told = call_again(&agent, nonsense).await;
    assert!(told["content"][0]["text"].as_str().is_some_and(|text| text.contains("inputResponses.review")), "{told}");
    let source = "return game.ReplicatedStorage.Shared.Config.Source";
    assert_ne!(agent.eval(source).await, MINE, "nobody has answered");

    let answer = input(&again, "push");
    let receipt = call_again(&agent, answer.clone()).await["structuredContent"].clone();
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("success"), &json!(1)), "{receipt}");
    assert_eq!(agent.eval(source).await, MINE);
    // Neither the same answer nor the first question counts once more.
    for more in [answer, state] {
        let told = call_again(&agent, more).await;
        assert!(told["content"][0]["text"].as_str().is_some_and(|text| text.contains("answered before")), "{told}");
    }
    assert_eq!(studio.census().await.expect("it lives").data_models, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_calls_again_after_somebody_else_has_answered_is_told_what_came_of_it() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    save(project.path(), CONFIG, MINE);
    let question = call_again(&agent, json!({})).await;
    let review = asked(&agent).await;
    let (status, _) = post(&agent, &review["id"], &json!({ "all": "push" })).await;
    assert_eq!(status, StatusCode::OK);
    let receipt = call_again(&agent, input(&question, "pull")).await["structuredContent"].clone();
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("success"), &json!(1)), "{receipt}");
    assert_eq!(super::read(project.path(), CONFIG), MINE);

    // One that puts the question away has nothing changed.
    save(project.path(), CONFIG, "return 'once more'\n");
    let question = call_again(&agent, json!({})).await;
    let declined =
        json!({ "requestState": question["requestState"], "inputResponses": { "review": { "action": "decline" } } });
    let receipt = call_again(&agent, declined).await["structuredContent"].clone();
    assert_eq!(receipt["pushed"], 0, "{receipt}");
}
