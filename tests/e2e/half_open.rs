//! A plugin whose link is open, and that does not read what it is sent.

use serde_json::json;

use crate::{
    faults::{hello1, take_tree},
    level0::FakePlugin,
    support::{TestServer, demo, until},
};

#[tokio::test(flavor = "multi_thread")]
async fn c54_a_plugin_that_does_not_read_is_cut_off_and_its_calls_settle() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let agent = server.agent();
    let mut deaf = FakePlugin::connect(server.port).await;
    deaf.send(hello1("deaf", "place:1")).await;
    take_tree(&mut deaf).await;
    server.until_live(1).await;

    // More than sockets hold: what follows waits in the server.
    let command = format!("--{}", "x".repeat(15 * 1024 * 1024));
    let call = tokio::spawn(async move { agent.call("run_code", json!({ "command": command })).await });
    let studio = || async { agent.ask("status", json!({})).await["studios"][0].clone() };
    until("it is sent", || async { studio().await["busy"]["tool"] == "run_code" }).await;
    // Each of these is answered.
    for seq in 0..1500 {
        deaf.send(json!({ "type": "edit", "seq": seq, "nodes": [], "removed": [] })).await;
    }
    until("its link is cut", || async { studio().await["link"] == "reconnecting" }).await;

    let mut reloaded = FakePlugin::connect(server.port).await;
    reloaded.send(hello1("reloaded", "place:1")).await;
    take_tree(&mut reloaded).await;
    let told = call.await.expect("no panic");
    assert_eq!(told.structure["error"]["code"], "studio_left", "{}", told.text);
    server.until_live(1).await;
}
