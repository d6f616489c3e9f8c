use std::sync::Mutex;

use tokio::{
    io::{DuplexStream, duplex},
    sync::Notify,
};

use super::*;

/// A bridge whose servers are found one after the other, each when `found` is told; the agent's end and theirs.
fn waiting(found: &Arc<Notify>) -> (Lines, [Lines; 2]) {
    let (agent, ours) = duplex(PIPE);
    let [(one, first), (two, second)] = [duplex(PIPE), duplex(PIPE)];
    let (found, servers) = (Arc::clone(found), Arc::new(Mutex::new(vec![second, first])));
    let open = move || {
        let (found, servers) = (Arc::clone(&found), Arc::clone(&servers));
        async move {
            found.notified().await;
            let next: DuplexStream = servers.lock().expect("nobody panics").pop().expect("it is found twice");
            Ok(Opened::Attached(Box::new(next)))
        }
    };
    tokio::spawn(async move { Bridge::new(Lines::over(ours), open).run().await });
    (Lines::over(agent), [Lines::over(one), Lines::over(two)])
}

/// An agent that has greeted, and is answered by who is found first.
async fn greeted(found: &Arc<Notify>) -> (Lines, [Lines; 2]) {
    let (mut agent, servers) = waiting(found);
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "0" }
    } });
    say(&mut agent, hello).await;
    assert_eq!(heard(&mut agent).await["id"], 0);
    say(&mut agent, json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    (agent, servers)
}

/// Listen to `server` until it is called as `id`; what else it heard.
async fn until_called(server: &mut Lines, id: u64) -> Vec<Value> {
    let mut before = Vec::new();
    loop {
        let message = heard(server).await;
        if message["id"] == id && message["method"] == "tools/call" {
            return before;
        }
        before.push(message);
    }
}

async fn say(to: &mut Lines, message: Value) {
    to.say(message.to_string().as_bytes()).await.expect("it listens");
}

async fn heard(from: &mut Lines) -> Value {
    serde_json::from_slice(&from.heard.recv().await.expect("it goes on")).expect("JSON")
}

fn call(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "status", "arguments": {} } })
}

#[tokio::test]
async fn a_call_that_was_cancelled_while_the_server_was_looked_for_is_not_handed_on() {
    let found = Arc::new(Notify::new());
    let (mut agent, [mut server, _next]) = greeted(&found).await;
    for id in [1, 2] {
        say(&mut agent, call(id)).await;
    }
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    say(&mut agent, cancel).await;
    // What needs no server is answered here, after all that was said before.
    say(&mut agent, json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" })).await;
    while heard(&mut agent).await["id"] != 3 {}

    found.notify_one();
    let before = until_called(&mut server, 2).await;
    assert!(before.iter().all(|message| message["id"] != 1), "its agent has taken it back: {before:?}");
}

#[tokio::test]
async fn an_answer_to_a_server_that_has_gone_does_not_reach_the_next_one() {
    let found = Arc::new(Notify::new());
    let (mut agent, [mut first, mut second]) = greeted(&found).await;
    found.notify_one();
    say(&mut agent, call(1)).await;
    until_called(&mut first, 1).await;
    let question = json!({ "jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": {} });
    say(&mut first, question.clone()).await;
    while heard(&mut agent).await["method"] != "elicitation/create" {}
    drop(first);
    let over = heard(&mut agent).await;
    assert_eq!((&over["method"], &over["params"]["requestId"]), (&json!("notifications/cancelled"), &json!(0)));
    assert_eq!(heard(&mut agent).await["result"]["structuredContent"]["error"]["code"], "outcome_unknown");

    found.notify_one();
    let answer = |action: &str| json!({ "jsonrpc": "2.0", "id": 0, "result": { "action": action } });
    say(&mut agent, call(2)).await;
    until_called(&mut second, 2).await;
    say(&mut agent, answer("accept")).await;
    say(&mut agent, call(3)).await;
    let before = until_called(&mut second, 3).await;
    assert!(before.iter().all(|message| message.get("result").is_none()), "it had asked nothing: {before:?}");
    say(&mut second, question).await;
    while heard(&mut agent).await["method"] != "elicitation/create" {}
    say(&mut agent, answer("decline")).await;
    assert_eq!(heard(&mut second).await["result"]["action"], "decline", "that one is its own");
}
