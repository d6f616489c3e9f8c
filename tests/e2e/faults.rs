//! Plugins that misbehave.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    level0::{FakePlugin, hello},
    support::{TestServer, demo, save, until},
};

/// The hello of a plugin as ours, for an edit session of its own.
pub fn hello1(session: &str, place: &str) -> Value {
    let mut hello = hello(0);
    for (key, value) in [
        ("protocol", json!(1)),
        ("pluginVersion", json!("9.9.9")),
        ("sessionId", json!(session)),
        ("instanceId", json!(place)),
        ("role", json!("edit")),
        ("tools", json!(["run_code"])),
    ] {
        hello[key] = value;
    }
    hello
}

/// Take the whole tree in and say that all is equal. Its nodes.
pub async fn take_tree(plugin: &mut FakePlugin) -> Vec<Value> {
    let mut nodes = Vec::new();
    loop {
        let frame = plugin.next().await.expect("the tree");
        if frame["type"] != "tree" {
            continue;
        }
        nodes.extend(frame["nodes"].as_array().expect("nodes").iter().cloned());
        plugin.send(json!({ "type": "taken", "part": frame["part"] })).await;
        if frame["last"] == true {
            let ready =
                json!({ "type": "treeReady", "treeId": frame["treeId"], "cursor": frame["cursor"], "facts": [] });
            plugin.send(ready).await;
            return nodes;
        }
    }
}

/// A server with the demo, and a plugin on it that has taken the tree in.
async fn linked() -> (tempfile::TempDir, TestServer, FakePlugin) {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let mut plugin = FakePlugin::connect(server.port).await;
    plugin.send(hello1("s", "place:1")).await;
    take_tree(&mut plugin).await;
    server.until_live(1).await;
    (project, server, plugin)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_does_not_begin_with_a_hello_is_refused_with_the_reason() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    for (first, expected) in [
        ("not json".to_owned(), "not JSON"),
        (json!({ "type": "roblox_log", "message": "", "level": 0 }).to_string(), "must be a hello"),
        (json!({ "type": "hello", "placeId": 1 }).to_string(), "twoWaySync"),
        (json!({ "type": "hello", "twoWaySync": false, "oneShotSync": true, "confirmationBehavior": "", "placeId": "x" }).to_string(), "placeId"),
    ] {
        let mut plugin = FakePlugin::connect(server.port).await;
        plugin.send_text(&first).await;
        let frame = plugin.next().await.expect("a frame");
        assert_eq!(frame["type"], "rejected", "{frame}");
        assert!(frame["reason"].as_str().expect("a reason").contains(expected), "{frame}");
        assert_eq!(plugin.next().await, None, "then it is closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c55_a_place_that_the_project_does_not_serve_is_refused() {
    let project = demo();
    let file = project.path().join("default.project.json");
    let mut json: Value = serde_json::from_slice(&std::fs::read(&file).expect("the project")).expect("JSON");
    json["servePlaceIds"] = json!([11]);
    save(project.path(), "default.project.json", &json.to_string());
    let server = TestServer::start(project.path()).await;
    let mut wrong = FakePlugin::connect(server.port).await;
    wrong.send(hello(22)).await;
    let frame = wrong.next().await.expect("a frame");
    assert_eq!((&frame["type"], &frame["code"]), (&json!("rejected"), &json!("place_not_served")));
    let mut right = FakePlugin::connect(server.port).await;
    right.send(hello(11)).await;
    server.until_live(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c37_a_tightened_place_list_reaches_a_studio_that_is_linked() {
    let (project, server, mut plugin) = linked().await;
    let file = project.path().join("default.project.json");
    let mut json: Value = serde_json::from_slice(&std::fs::read(&file).expect("the project")).expect("JSON");
    json["servePlaceIds"] = json!([11]);
    save(project.path(), "default.project.json", &json.to_string());
    let rejected = next_of(&mut plugin, "rejected").await;
    assert_eq!(rejected["code"], "place_not_served");
    server.until_live(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c61_answers_in_any_order_twice_or_unasked_reach_the_right_callers_once() {
    let (_project, server, mut plugin) = linked().await;
    let agent = server.agent();
    let calls: Vec<_> = (0..50)
        .map(|number| {
            let id = format!("{number:032x}");
            tokio::spawn(async move { (id.clone(), agent.ask("get_script", json!({ "id": id })).await) })
        })
        .collect();
    let mut requests = Vec::new();
    while requests.len() < 50 {
        let frame = plugin.next().await.expect("a frame");
        if frame["type"] == "getScript" {
            requests.push(frame);
        }
    }
    let mut numbers: Vec<u64> = requests.iter().map(|request| request["n"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (numbers[0]..numbers[0] + 50).collect::<Vec<_>>(), "numbered in order");
    numbers.reverse();
    plugin.send(json!({ "requestId": "never-asked", "status": "success", "response": {} })).await;
    for request in requests.iter().rev() {
        let result = json!({
            "requestId": request["requestId"], "status": "success", "source": request["id"], "studioHash": "opaque",
        });
        plugin.send(result.clone()).await;
        plugin.send(result).await;
    }
    for call in calls {
        let (id, script) = call.await.expect("no panic");
        assert_eq!(script["source"], json!(id));
    }
    let mut acks = std::collections::BTreeMap::new();
    while acks.values().sum::<usize>() < 101 {
        let frame = plugin.next().await.expect("a frame");
        if frame["type"] == "ack" {
            *acks.entry(frame["disposition"].as_str().expect("a word").to_owned()).or_insert(0) += 1;
        }
    }
    let expected = [("accepted", 50), ("already_settled", 50), ("unknown", 1)];
    assert_eq!(acks, expected.map(|(word, count)| (word.to_owned(), count)).into());
}

#[tokio::test(flavor = "multi_thread")]
async fn c61_fifty_changes_at_once_arrive_one_at_a_time_and_each_caller_has_its_own_result() {
    let (_project, server, mut plugin) = linked().await;
    let agent = server.agent();
    let calls: Vec<_> = (0..50)
        .map(|number| tokio::spawn(async move { (number, agent.eval(&format!("return {number}")).await) }))
        .collect();
    for _ in 0..50 {
        let request = next_of(&mut plugin, "run_code").await;
        let command = request["args"]["command"].as_str().expect("code");
        let value: u64 = command.trim_start_matches("return ").parse().expect("a number");
        plugin.send(answer(&request["requestId"], value)).await;
        // Whatever came before the acknowledgement was sent before the result was there.
        let next = loop {
            let frame = plugin.next().await.expect("a frame");
            if frame["type"] != "heartbeat" {
                break frame;
            }
        };
        assert_eq!(next["type"], "ack");
    }
    for call in calls {
        let (number, value) = call.await.expect("no panic");
        assert_eq!(value, json!(number));
    }
}

/// What our plugin answers to code that returned `value`.
fn answer(id: &Value, value: u64) -> Value {
    json!({ "requestId": id, "status": "success", "response": { "ok": true, "returns": [value] } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_over_the_limit_closes_the_link_and_nothing_else() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let agent = server.agent();
    let mut plugin = FakePlugin::connect(server.port).await;
    plugin.send(hello(0)).await;
    agent.until_live(1).await;
    let call = tokio::spawn(async move { agent.call("run_code", json!({ "command": "x" })).await });
    let request = plugin.next().await.expect("a request");
    let huge = json!({ "requestId": request["requestId"], "status": "success", "response": "x".repeat(18 << 20) });
    // The server may hang up before all of it is written.
    tokio::spawn(async move {
        plugin.send(huge).await;
        plugin.next().await
    });
    let told = call.await.expect("no panic");
    assert_eq!(told.structure["error"]["code"], "outcome_unknown", "{}", told.text);
    let mut next = FakePlugin::connect(server.port).await;
    next.send(hello(0)).await;
    agent.until_live(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c62_a_call_past_its_deadline_says_that_it_was_sent_and_its_late_answer_goes_nowhere() {
    let (_project, server, mut plugin) = linked().await;
    let agent = server.agent();
    let late = tokio::spawn(async move { agent.call("run_code", json!({ "command": "late", "timeout": 1 })).await });
    let request = next_of(&mut plugin, "run_code").await;
    let told = late.await.expect("no panic");
    assert_eq!(told.structure["error"]["code"], "outcome_unknown");
    assert!(told.text.contains("may have run"), "{}", told.text);
    let cancel = next_of(&mut plugin, "cancel").await;
    assert_eq!((&cancel["requestId"], &cancel["reason"]), (&request["requestId"], &json!("timeout")));

    let next = tokio::spawn(async move { agent.eval("return 2").await });
    until("the next one waits", || async { agent.ask("status", json!({})).await["studios"][0]["busy"]["queued"] == 1 })
        .await;
    plugin.send(answer(&request["requestId"], 1)).await;
    assert_eq!(next_of(&mut plugin, "ack").await["disposition"], "already_settled");
    let second = next_of(&mut plugin, "run_code").await;
    plugin.send(answer(&second["requestId"], 2)).await;
    assert_eq!(next.await.expect("no panic"), json!(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn c65_a_server_that_stops_says_goodbye_with_the_reason() {
    let (_project, server, mut plugin) = linked().await;
    let agent = server.agent();
    let call = tokio::spawn(async move { agent.call("run_code", json!({ "command": "x" })).await });
    next_of(&mut plugin, "run_code").await;
    let stop = tokio::spawn(server.stop());
    assert_eq!(next_of(&mut plugin, "bye").await["reason"], "the server is stopping");
    let told = call.await.expect("no panic");
    assert_eq!(told.structure["error"]["code"], "outcome_unknown", "{}", told.text);
    tokio::time::timeout(Duration::from_secs(10), stop).await.expect("in time").expect("no panic");
}

/// The next frame of this type.
pub async fn next_of(plugin: &mut FakePlugin, kind: &str) -> Value {
    loop {
        let frame = plugin.next().await.expect("a frame");
        if frame["type"] == kind {
            return frame;
        }
    }
}
