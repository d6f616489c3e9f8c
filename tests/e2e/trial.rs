//! Code that runs in a play test of its own.

use rojo_mcp::headless::{HeadlessConfig, HeadlessStudio, Knobs, Side};
use serde_json::{Value, json};
use std::time::Duration;

use crate::support::{Agent, BOUND, TestServer, Told, demo};

const TOOL: &str = "run_script_in_play_mode";

/// A server with a Studio that ends code which does not yield for three seconds.
async fn editing(project: &std::path::Path) -> (TestServer, HeadlessStudio, Agent) {
    let server = TestServer::start(project).await;
    let settings = [("RojoMcpServer".to_owned(), json!(format!("127.0.0.1:{}", server.port)))].into_iter().collect();
    let studio = HeadlessStudio::start(HeadlessConfig {
        place: server.session.place_model(),
        plugin: rojo_mcp::plugin_model::build().expect("the plugin builds"),
        settings,
        knobs: Knobs { script_timeout: Duration::from_secs(3), ..Knobs::default() },
        ..HeadlessConfig::default()
    });
    let studio = studio.expect("the headless Studio starts");
    server.until_live(1).await;
    let agent = server.agent();
    (server, studio, agent)
}

fn printed(answer: &Value) -> Vec<&str> {
    let lines = answer["output"].as_array().expect("lines").iter();
    lines.map(|line| line["text"].as_str().expect("a text")).collect()
}

impl Agent {
    /// Begin a call that lasts and wait until its code has printed `word`.
    async fn begun(self, word: &str) -> tokio::task::JoinHandle<Told> {
        let args = json!({ "code": format!("print({word:?}) task.wait(600)"), "timeout": 600 });
        let call = tokio::spawn(async move { self.call(TOOL, args).await });
        self.until_printed("server", word).await;
        call
    }
}

async fn told(call: tokio::task::JoinHandle<Told>) -> Told {
    tokio::time::timeout(BOUND, call).await.expect("in time").expect("no panic")
}

#[tokio::test(flavor = "multi_thread")]
async fn c64_code_runs_in_a_play_test_of_its_own_and_studio_edits_again() {
    let project = demo();
    let (_server, studio, agent) = editing(project.path()).await;
    let code = "workspace:SetAttribute('Mark', 1) print('by the code')
        local players = game:GetService('Players'):GetPlayers()
        return game:GetService('RunService'):IsServer(), #players, #game.ReplicatedStorage.Shared:GetChildren() > 0";
    for (mode, players) in [(json!("start_play"), 1), (json!("run_server"), 0), (Value::Null, 1)] {
        let answer = agent.ask(TOOL, json!({ "code": code, "mode": mode })).await;
        assert_eq!((&answer["ok"], &answer["returns"]), (&json!(true), &json!([true, players, true])), "{answer}");
        assert!(printed(&answer).contains(&"by the code"), "{answer}");
        agent.until_targets(&["edit"]).await;
    }
    assert_eq!(agent.eval("return workspace:GetAttribute('Mark') == nil").await, json!(true), "a copy was played");
    assert_eq!(studio.census().await.expect("it lives").data_models, 1);
    for (args, part) in [
        (json!({ "code": "", "mode": "stop" }), "argument `mode`"),
        (json!({ "code": "", "timeout": 0 }), "argument `timeout`"),
        (json!({}), "`code`"),
    ] {
        let told = agent.call(TOOL, args).await;
        assert!(told.is_error && told.text.contains(part), "{}", told.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c64_a_script_that_fails_or_loops_is_told_with_its_output_and_ends() {
    let project = demo();
    let (_server, studio, agent) = editing(project.path()).await;
    for (rest, problem) in [
        ("error('boom')", "boom"),
        ("return return", "Expected"),
        ("task.wait(60)", "timed out after 1 s"),
        ("task.spawn(function() while true do task.wait() end end) task.wait(60)", "timed out after 1 s"),
        ("while true do end", "Studio stopped the code"),
    ] {
        let code = format!("print('begun')\n{rest}");
        let answer = agent.ask(TOOL, json!({ "code": code, "timeout": 1, "mode": "run_server" })).await;
        assert_eq!(answer["ok"], json!(false), "{rest}: {answer}");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains(problem), "{rest}: {message}");
        let ran = rest != "return return";
        assert_eq!(printed(&answer).contains(&"begun"), ran, "{rest}: {answer}");
        agent.until_targets(&["edit"]).await;
    }
    let code = "game:GetService('StudioTestService'):EndTest('mine') task.wait(60)";
    let answer = agent.ask(TOOL, json!({ "code": code })).await;
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("the game ended")), "{answer}");
    assert_eq!(studio.census().await.expect("it lives").data_models, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn c64_who_stops_the_test_of_a_script_settles_it() {
    let project = demo();
    let (_server, studio, agent) = editing(project.path()).await;
    let call = agent.begun("script 1").await;
    for (tool, args) in [("start_stop_play", json!({ "mode": "start_play" })), (TOOL, json!({ "code": "" }))] {
        let told = agent.call(tool, args).await;
        assert!(told.is_error && told.text.contains("plays already"), "{}", told.text);
    }
    studio.stop_play().await;
    let answer = told(call).await;
    assert!(!answer.is_error && answer.text.contains("was stopped before"), "{}", answer.text);

    let call = agent.begun("script 2").await;
    assert_eq!(agent.ask("start_stop_play", json!({ "mode": "stop" })).await["mode"], "edit");
    let answer = told(call).await;
    assert!(!answer.is_error && answer.text.contains("was stopped before"), "{}", answer.text);

    // Who goes away takes its test along.
    let call = agent.begun("script 3").await;
    call.abort();
    agent.until_targets(&["edit"]).await;

    let call = agent.begun("script 4").await;
    studio.stop().await;
    let answer = told(call).await;
    assert_eq!(answer.structure["error"]["code"], "studio_left", "{}", answer.text);
    assert!(answer.text.contains("may have run"), "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_with_an_operation_id_plays_once() {
    let project = demo();
    let (_server, studio, agent) = editing(project.path()).await;
    let args = json!({ "code": "print('once') return 7", "operationId": "the one", "mode": "run_server" });
    let (first, second) = tokio::join!(agent.ask(TOOL, args.clone()), agent.ask(TOOL, args.clone()));
    assert_eq!((&first["returns"], &first), (&json!([7]), &second));
    assert_eq!(agent.ask(TOOL, args).await, first);
    let said = studio.log().iter().filter(|line| line.side == Side::Server && line.text == b"once").count();
    assert_eq!(said, 1);
    let kept = agent.ask("get_call", json!({ "id": "the one" })).await;
    assert_eq!((&kept["tool"], &kept["answer"]["returns"]), (&json!(TOOL), &json!([7])), "{kept}");
}
