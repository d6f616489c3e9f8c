//! MCP over standard input and output, with the server in the process that the agent starts.

use std::{process::Stdio, time::Duration};

use rmcp::{ServiceExt, model::CallToolRequestParams};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
};

use crate::support::{BOUND, demo, program, save, until};

fn spawn(project: &std::path::Path, extra: &[&str]) -> Child {
    Command::from(program(project))
        .arg("mcp")
        .arg(project)
        .args(extra)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the binary runs")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_starts_us_has_the_same_tools() {
    let project = demo();
    let mut child = spawn(project.path(), &["--headless"]);
    let pipes = (child.stdout.take().expect("piped"), child.stdin.take().expect("piped"));
    let client = ().serve(pipes).await.expect("a handshake");
    let names: Vec<String> =
        client.list_all_tools().await.expect("a list").into_iter().map(|tool| tool.name.into_owned()).collect();
    let expected = [
        "status",
        "sync",
        "resolve",
        "undo",
        "get_script",
        "run_code",
        "get_console_output",
        "get_call",
        "get_studio_mode",
        "start_stop_play",
        "run_script_in_play_mode",
    ];
    assert_eq!(names, expected);
    let call = async |tool: &'static str, args: Value| {
        let Value::Object(args) = args else { unreachable!("arguments are objects") };
        let result = client.call_tool(CallToolRequestParams::new(tool).with_arguments(args)).await.expect("an answer");
        result.structured_content.expect("structured")
    };
    until("the Studio is live", || async { call("status", json!({})).await["studios"][0]["link"] == "live" }).await;
    let answer = call("run_code", json!({ "command": "print(\"hi\") return 1+1" })).await;
    assert_eq!((&answer["output"][0]["text"], &answer["returns"]), (&json!("hi"), &json!([2])));
    save(project.path(), "src/shared/Config.luau", "return { lanternsToWin = 4 }\n");
    assert_eq!(call("sync", json!({})).await["pushed"], 1);
    let value = "return require(game.ReplicatedStorage.Shared.Config).lanternsToWin";
    assert_eq!(call("run_code", json!({ "command": value })).await["returns"], json!([4]));
    let script = call("get_script", json!({ "fsPath": "src/shared/Config.luau" })).await;
    assert_eq!(script["source"], "return { lanternsToWin = 4 }\n");
    assert_eq!(call("sync", json!({ "mode": "dryrun" })).await["total"], 0);
    client.cancel().await.expect("closed");
    let status = tokio::time::timeout(Duration::from_secs(10), child.wait()).await.expect("it ends").expect("a status");
    assert!(status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn c71_standard_output_carries_json_rpc_only() {
    let (project, broken) = (demo(), demo());
    save(broken.path(), "default.project.json", "{ \"name\": ");
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    for (path, extra) in [
        (project.path().to_path_buf(), vec!["--headless", "-vv"]),
        (project.path().to_path_buf(), vec!["--port", &port, "-vv"]),
        (broken.path().to_path_buf(), vec!["-vv"]),
        (project.path().join("nothing-here"), vec![]),
    ] {
        let mut child = spawn(&path, &extra);
        let mut stdin = child.stdin.take().expect("piped");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let initialize = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" }
            }
        });
        stdin.write_all(format!("{initialize}\n").as_bytes()).await.expect("it listens");
        let collect = async {
            let mut seen = 0;
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line:?}"));
                assert_eq!(message["jsonrpc"], "2.0");
                seen += 1;
                if message["id"] == 1 {
                    break;
                }
            }
            seen
        };
        let seen = tokio::time::timeout(BOUND, collect).await.expect("in time");
        drop(stdin);
        tokio::time::timeout(Duration::from_secs(10), child.wait()).await.expect("it ends").expect("a status");
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line:?}"));
            assert_eq!(message["jsonrpc"], "2.0");
        }
        assert!(seen > 0, "initialize is answered whatever the project");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_failed_is_what_every_call_answers() {
    let project = demo();
    let mut child = spawn(&project.path().join("nothing-here"), &[]);
    let pipes = (child.stdout.take().expect("piped"), child.stdin.take().expect("piped"));
    let client = ().serve(pipes).await.expect("a handshake");
    let result = client.call_tool(CallToolRequestParams::new("status")).await.expect("an answer");
    let error = &result.structured_content.expect("structured")["error"];
    assert!(error["message"].as_str().expect("a text").contains("nothing-here"), "{error}");
    assert!(!error["hint"].as_str().expect("a text").is_empty());
    client.cancel().await.expect("closed");
    let status = tokio::time::timeout(Duration::from_secs(10), child.wait()).await.expect("it ends").expect("a status");
    assert_eq!(status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn c73_the_end_of_standard_input_ends_the_process() {
    let project = demo();
    let mut child = spawn(project.path(), &["--headless"]);
    drop(child.stdin.take());
    let status = tokio::time::timeout(Duration::from_secs(10), child.wait()).await.expect("it ends").expect("a status");
    assert!(status.success(), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn c73_the_end_of_standard_input_ends_the_process_in_the_middle_of_a_call() {
    let project = demo();
    let mut child = spawn(project.path(), &["--headless"]);
    let mut stdin = child.stdin.take().expect("piped");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut ask = async |id: u32, method: &str, params: Value, waits: bool| {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        stdin.write_all(format!("{request}\n").as_bytes()).await.expect("it listens");
        let answer = async {
            loop {
                let line = lines.next_line().await.expect("text").expect("it runs");
                let message: Value = serde_json::from_str(&line).expect("JSON");
                if message["id"] == id {
                    return message;
                }
            }
        };
        if waits { tokio::time::timeout(BOUND, answer).await.expect("in time") } else { Value::Null }
    };
    let client = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" }
    });
    ask(1, "initialize", client, true).await;
    let run = |command: &str| json!({ "name": "run_code", "arguments": { "command": command, "timeout": 600 } });
    let status = json!({ "name": "status", "arguments": {} });
    while ask(2, "tools/call", status.clone(), true).await["result"]["structuredContent"]["studios"][0]["link"]
        != "live"
    {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ask(3, "tools/call", run("workspace:SetAttribute('Began', true) task.wait(500)"), false).await;
    ask(4, "tools/call", json!({ "name": "get_console_output", "arguments": {} }), true).await;
    drop(stdin);
    let status = tokio::time::timeout(Duration::from_secs(10), child.wait()).await.expect("it ends").expect("a status");
    assert!(status.success(), "{status}");
}
