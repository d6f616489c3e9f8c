//! Changes with an id of their own, and changes that take turns.

use rojo_mcp::{state::StateFolder, store::Store};
use serde_json::{Value, json};

use crate::support::{Agent, TestServer, demo, until};

/// Counts in the DataModel how often it ran.
const COUNT: &str = "workspace:SetAttribute('Runs', (workspace:GetAttribute('Runs') or 0) + 1)
                     return workspace:GetAttribute('Runs')";
const RUNS: &str = "return workspace:GetAttribute('Runs')";

fn count(id: &str) -> Value {
    json!({ "command": COUNT, "operationId": id })
}

/// The same, and it takes its time.
fn count_slowly(id: &str) -> Value {
    json!({ "command": format!("task.wait(0.5) {COUNT}"), "operationId": id })
}

async fn state(agent: Agent, id: &str) -> Value {
    agent.ask("get_call", json!({ "id": id })).await["state"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn c62_the_same_operation_runs_once_also_across_a_restart_of_the_server_and_a_reload() {
    let project = demo();
    let state = tempfile::tempdir().expect("a folder");
    let folder = StateFolder::below(state.path(), project.path()).expect("a state folder");
    let server = TestServer::start_with(project.path(), Store::open(&folder), 0).await;
    let studio = server.studio().await;
    let first = server.agent().ask("run_code", count("one")).await;
    assert_eq!(first["returns"], json!([1]));
    assert_eq!(server.agent().ask("run_code", count("one")).await, first);

    let port = server.port;
    server.stop().await;
    let store = Store::open(&folder);
    assert_eq!(store.problem(), None, "the first server has let go of it");
    let server = TestServer::start_with(project.path(), store, port).await;
    let agent = server.agent();
    assert_eq!(agent.ask("run_code", count("one")).await, first, "with no Studio yet");
    server.until_live(1).await;
    studio.reload_plugin().await;
    until("the new plugin answers", || async {
        agent.call("run_code", json!({ "command": RUNS })).await.structure["ok"] == true
    })
    .await;
    assert_eq!(agent.ask("run_code", count("one")).await, first);
    assert_eq!(agent.eval(RUNS).await, json!(1));

    let kept = agent.ask("get_call", json!({ "id": "one" })).await;
    assert_eq!((&kept["state"], &kept["answer"], &kept["tool"]), (&json!("done"), &first, &json!("run_code")));
    let other = agent.call("run_code", json!({ "command": "return 2", "operationId": "one" })).await;
    assert_eq!(other.structure["error"]["code"], "bad_arguments", "{}", other.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn c62_an_answer_that_outlives_the_server_is_there_in_the_next_one() {
    let project = demo();
    let state_folder = tempfile::tempdir().expect("a folder");
    let folder = StateFolder::below(state_folder.path(), project.path()).expect("a state folder");
    let server = TestServer::start_with(project.path(), Store::open(&folder), 0).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let call = tokio::spawn(async move { agent.call("run_code", count_slowly("slow")).await });
    until("it runs", || async { state(agent, "slow").await == "running" }).await;
    let port = server.port;
    server.stop().await;
    assert_eq!(call.await.expect("no panic").structure["error"]["code"], "outcome_unknown");

    let server = TestServer::start_with(project.path(), Store::open(&folder), port).await;
    until("the plugin has brought the answer", || async { state(agent, "slow").await == "done" }).await;
    assert_eq!(agent.ask("run_code", count_slowly("slow")).await["returns"], json!([1]));
    server.until_live(1).await;
    assert_eq!(agent.eval(RUNS).await, json!(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn c62_an_operation_whose_caller_gave_up_is_joined_by_the_next() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let mut late = count_slowly("slow");
    late["timeout"] = json!(30);
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let args = late.clone();
            tokio::spawn(async move { agent.ask("run_code", args).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.expect("no panic")["returns"], json!([1]));
    }
    assert_eq!(agent.eval(RUNS).await, json!(1), "three callers, one run");
}

#[tokio::test(flavor = "multi_thread")]
async fn c62_a_late_answer_is_there_for_get_call() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    // Code that does not yield cannot be ended.
    let command = "local till = os.clock() + 1.5 while os.clock() < till do end return 'late'";
    let told = agent.call("run_code", json!({ "command": command, "timeout": 1 })).await;
    assert_eq!(told.structure["error"]["code"], "outcome_unknown", "{}", told.text);
    let hint = told.structure["error"]["hint"].as_str().expect("a hint").to_owned();
    let id = hint.split('"').nth(1).expect("the hint names the id").to_owned();
    assert!(hint.contains("get_call"), "{hint}");
    until("the late answer has come", || async { state(agent, &id).await == "done" }).await;
    let late = agent.ask("get_call", json!({ "id": id })).await;
    assert_eq!(late["answer"]["returns"], json!(["late"]));
    let unknown = agent.call("get_call", json!({ "id": "never" })).await;
    assert_eq!(unknown.structure["error"]["code"], "bad_arguments");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_take_turns_and_reads_do_not_wait() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let slow = tokio::spawn(async move {
        agent.ask("run_code", json!({ "command": "task.wait(1) workspace:SetAttribute('Done', true)" })).await
    });
    until("it runs", || async { agent.ask("status", json!({})).await["studios"][0]["busy"]["tool"] == "run_code" })
        .await;
    let queued = tokio::spawn(async move { agent.eval("return workspace:GetAttribute('Done')").await });
    until("another waits", || async { agent.ask("status", json!({})).await["studios"][0]["busy"]["queued"] == 1 })
        .await;
    agent.ask("get_studio_mode", json!({})).await;
    assert!(!slow.is_finished(), "the read did not wait");
    assert_eq!(queued.await.expect("no panic"), json!(true), "the second ran after the first");
    assert_eq!(slow.await.expect("no panic")["ok"], true);
    assert!(agent.ask("status", json!({})).await["studios"][0].get("busy").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_a_session_sees_its_place_in_the_queue_too() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    let slow = tokio::spawn(async move {
        let wait = "repeat task.wait() until workspace:GetAttribute('Go')";
        agent.ask("run_code", json!({ "command": wait })).await
    });
    until("it runs", || async { agent.ask("status", json!({})).await["studios"][0]["busy"]["tool"] == "run_code" })
        .await;
    let queued = tokio::spawn(async move {
        let params = json!({
            "name": "run_code", "arguments": { "command": "return 2" }, "_meta": { "progressToken": "mine" },
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let (_, _, body) = agent.http("POST", "/mcp", &[("content-type", "application/json")], body.to_string()).await;
        String::from_utf8(body.to_vec()).expect("text")
    });
    until("another waits", || async { agent.ask("status", json!({})).await["studios"][0]["busy"]["queued"] == 1 })
        .await;
    studio.run("workspace:SetAttribute('Go', true)").await.expect("set");
    let heard = queued.await.expect("no panic");
    let place = heard.find("1 call before this one").unwrap_or_else(|| panic!("no progress: {heard}"));
    assert!(heard.find("\"mine\"").is_some() && heard.find("returns").is_some_and(|end| place < end), "{heard}");
    assert_eq!(slow.await.expect("no panic")["ok"], true);
}
