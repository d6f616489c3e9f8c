//! Wrong input of every kind gets an answer that says what to do.

use std::time::Duration;

use serde_json::json;

use crate::support::{TestServer, demo};

#[tokio::test(flavor = "multi_thread")]
async fn c81_without_a_studio_the_tools_are_the_same_and_calls_fail_at_once() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let agent = server.agent();
    let before = agent.rpc("tools/list", json!({})).await;
    for (tool, args) in [
        ("run_code", json!({ "command": "return 1" })),
        ("sync", json!({})),
        ("get_script", json!({ "fsPath": "src/shared/Config.luau" })),
    ] {
        let told = tokio::time::timeout(Duration::from_secs(2), agent.call(tool, args)).await.expect("within 2 s");
        assert!(told.is_error);
        assert_eq!(told.structure["error"]["code"], "no_studio", "{tool}");
        assert!(told.text.contains("--headless"), "{tool} says what to do: {}", told.text);
    }
    let status = agent.ask("status", json!({})).await;
    assert_eq!(status["studios"], json!([]));
    assert_eq!(status["problems"][0]["what"], "no Studio is connected");
    let studio = server.studio().await;
    assert_eq!(agent.rpc("tools/list", json!({})).await, before);
    drop(studio);
    assert_eq!(agent.rpc("tools/list", json!({})).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_name_the_argument() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    for (tool, args, expected) in [
        ("run_code", json!({}), "missing field `command`"),
        ("run_code", json!({ "command": 5 }), "argument `command`"),
        ("run_code", json!({ "command": "", "timeout": 0 }), "argument `timeout`"),
        ("sync", json!({ "mode": "fast" }), "argument `mode`"),
        ("sync", json!({ "paths": "src" }), "argument `paths`"),
        ("sync", json!({ "paths": ["../elsewhere"] }), "argument `paths`"),
        ("sync", json!({ "dry": true }), "unknown field `dry`"),
        ("get_script", json!({}), "exactly one of"),
        ("get_script", json!({ "id": "7" }), "argument `id`"),
        ("get_script", json!({ "fsPath": "src/Nothing.luau" }), "nothing in the project"),
        ("get_script", json!({ "path": "ReplicatedStorage.Shared.Config", "lines": [3, 1] }), "argument `lines`"),
        ("status", json!({ "studio": 1 }), "unknown field `studio`"),
        ("run_code", json!({ "command": "", "studio": "place:999" }), "place:999"),
        ("fly", json!({}), "there is no tool \"fly\""),
    ] {
        let told = agent.call(tool, args.clone()).await;
        assert!(told.is_error, "{tool} {args}");
        assert!(told.text.contains(expected), "{tool} {args}: {}", told.text);
        assert!(told.structure["error"]["code"].is_string(), "{tool} {args}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_code_is_an_answer_with_its_line() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let answer = agent.ask("run_code", json!({ "command": "print('before')\nwarn('careful')\nerror('broken')" })).await;
    assert_eq!(answer["ok"], false);
    assert_eq!(answer["output"][0], json!({ "level": "output", "text": "before" }));
    assert_eq!(answer["output"][1], json!({ "level": "warning", "text": "careful" }));
    assert_eq!(answer["error"]["line"], 3, "{answer}");
    assert!(answer["error"]["message"].as_str().expect("a text").contains("broken"));
    let answer = agent.ask("run_code", json!({ "command": "local x =\n\n" })).await;
    assert_eq!(answer["ok"], false);
    assert!(answer["error"]["line"].is_number(), "a syntax error has a line too: {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn c58_a_value_that_json_cannot_say_is_answered_all_the_same() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    for code in [
        "return string.char(0xE2)",
        "return { [string.char(0xFF)] = 1 }",
        "local t = {} t.t = t return t",
        "return { 1, 2, x = 3 }",
        "return print, workspace, 0/0, math.huge, Vector3.new(1, 2, 3), coroutine.create(print)",
        "print(string.char(0xE2, 0x28)) return nil, 1",
    ] {
        let answer = agent.ask("run_code", json!({ "command": code })).await;
        assert_eq!(answer["ok"], true, "{code}: {answer}");
    }
    assert_eq!(agent.eval("return 1 + 1").await, json!(2), "later calls work");
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_does_not_end_is_given_up_at_its_deadline() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let call = agent.call("run_code", json!({ "command": "task.wait(1e6)", "timeout": 1 }));
    let told = tokio::time::timeout(Duration::from_secs(10), call).await.expect("in time");
    assert!(told.is_error || told.structure["ok"] == false, "{}", told.text);
    assert_eq!(agent.eval("return 'alive'").await, json!("alive"));
}
