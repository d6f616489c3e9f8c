//! Play tests that are restarted, or stopped while they start, and the end of the server.

use rojo_mcp::headless::{Play, Side};
use serde_json::json;

use crate::{
    play::{MARK, playing},
    support::{BOUND, TestServer, demo, until},
};

#[tokio::test(flavor = "multi_thread")]
async fn c64_a_play_test_is_restarted_as_what_it_was() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    let press = move |mode: &'static str| async move { agent.call("start_stop_play", json!({ "mode": mode })).await };
    let told = press("restart").await;
    assert!(told.is_error && told.text.contains("nothing was restarted"), "{}", told.text);
    for (mode, word, targets) in
        [("start_play", "play", &["edit", "server", "client-1"][..]), ("run_server", "run", &["edit", "server"][..])]
    {
        assert_eq!(press(mode).await.structure["mode"], word);
        agent.run_in("server", MARK).await.expect("it runs");
        let told = press("restart").await;
        assert_eq!((told.is_error, &told.structure["mode"]), (false, &json!(word)), "{}", told.text);
        assert_eq!(agent.targets().await, targets);
        let is_unmarked = "return workspace:GetAttribute('Mark') == nil";
        assert_eq!(agent.run_in("server", is_unmarked).await.expect("it runs"), json!(true), "it is another test");
        assert_eq!(press("stop").await.structure["mode"], "edit");
    }
    // One that a person began is restarted too.
    studio.start_play(Play::Solo).await.expect("a person presses Play");
    agent.until_targets(&["edit", "server", "client-1"]).await;
    assert_eq!(press("restart").await.structure["mode"], "play");
    assert_eq!(agent.targets().await, ["edit", "server", "client-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn c64_a_stop_during_a_start_ends_in_edit_mode() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    for _ in 0..3 {
        let press =
            move |mode: &'static str| async move { agent.call("start_stop_play", json!({ "mode": mode })).await };
        let starts = tokio::spawn(async move { press("start_play").await });
        until("it is being started", || async {
            agent.ask("status", json!({})).await["studios"][0].get("played").is_some()
        })
        .await;
        assert_eq!(press("stop").await.structure["mode"], "edit");
        let told = tokio::time::timeout(BOUND, starts).await.expect("in time").expect("no panic");
        assert!(!told.is_error || told.text.contains("by another call"), "{}", told.text);
        assert_eq!(agent.targets().await, ["edit"]);
        assert_eq!(studio.census().await.expect("it lives").data_models, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_ends_the_code_that_runs() {
    let project = demo();
    let (server, studio, agent) = playing(project.path(), Play::Solo, &["edit", "server", "client-1"]).await;
    // Each where no other one's comes to: what changes in the server reaches the clients.
    let places = [
        ("edit", Side::Edit, "workspace"),
        ("server", Side::Server, "workspace"),
        ("client-1", Side::Client(1), "game.Lighting"),
    ];
    let mut calls = Vec::new();
    for (target, _, place) in places {
        let code = format!("print('begun') while true do {place}:SetAttribute('Beat', os.clock()) task.wait() end");
        calls.push(tokio::spawn(async move { agent.run_in(target, &code).await }));
    }
    for (target, _, _) in places {
        agent.until_printed(target, "begun").await;
    }
    server.stop().await;
    for (target, side, place) in places {
        let stands = format!(
            "local before = {place}:GetAttribute('Beat')
             for _ = 1, 30 do task.wait() end
             return before ~= nil and before == {place}:GetAttribute('Beat')"
        );
        until(&format!("the code in {target} has ended"), || async {
            studio.run_in(side, &stands).await.expect("it can be asked").first() == Some(&json!(true))
        })
        .await;
    }
    calls.iter().for_each(tokio::task::JoinHandle::abort);
}
