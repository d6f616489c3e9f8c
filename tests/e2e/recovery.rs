//! Links that break and servers that die: both come back without a hand.

use std::{
    net::TcpListener,
    path::Path,
    process::{Child, Stdio},
};

use rojo_mcp::session::ServeSession;
use serde_json::json;

use crate::support::{Agent, TestServer, demo, headless, program, save, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_socket_comes_back_and_the_call_on_it_has_a_known_outcome() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    let count = "workspace:SetAttribute('Runs', (workspace:GetAttribute('Runs') or 0) + 1)
                 task.wait(0.3)
                 return workspace:GetAttribute('Runs')";
    for round in 1..=3 {
        let call = tokio::spawn(async move { agent.call("run_code", json!({ "command": count })).await });
        until("the call runs", || async {
            let runs = studio.run("return workspace:GetAttribute('Runs')").await;
            runs.is_ok_and(|values| values == vec![json!(round)])
        })
        .await;
        studio.drop_sockets().await;
        let told = call.await.expect("no panic");
        assert!(!told.is_error, "its result is delivered after the return: {}", told.text);
        assert_eq!(told.structure["returns"], json!([round]));
        server.until_live(1).await;
    }
    assert_eq!(agent.eval("return workspace:GetAttribute('Runs')").await, json!(3), "each ran once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reloaded_plugin_takes_the_place_of_the_old_one() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    studio.reload_plugin().await;
    until("the new plugin answers", || async {
        agent.call("run_code", json!({ "command": "return 1" })).await.structure["ok"] == true
    })
    .await;
    server.until_live(1).await;
    save(project.path(), "src/shared/Config.luau", "return {}\n");
    assert_eq!(agent.ask("sync", json!({})).await["status"], "success");
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(project: &Path, port: u16) -> Killed {
    let child = program(project)
        .args(["serve", "--port", &port.to_string()])
        .arg(project)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary runs");
    Killed(child)
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

async fn until_listening(port: u16) {
    until("the server listens", || async { tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c53_a_killed_server_is_found_again_by_the_plugin() {
    let project = demo();
    let port = free_port();
    let place = {
        let folder = project.path().to_path_buf();
        let session = tokio::task::spawn_blocking(move || ServeSession::start(&folder)).await.expect("no panic");
        session.expect("the project loads").place_model()
    };
    let first = serve(project.path(), port);
    until_listening(port).await;
    let _studio = headless(port, place);
    let agent = Agent { port };
    agent.until_live(1).await;
    agent.eval("workspace:SetAttribute('Kept', 'kept')").await;
    drop(first);

    save(project.path(), "src/shared/Config.luau", "return { lanternsToWin = 3 }\n");
    let _second = serve(project.path(), port);
    until_listening(port).await;
    agent.until_live(1).await;
    assert_eq!(agent.eval("return workspace:GetAttribute('Kept')").await, json!("kept"), "the same Studio");
    let receipt = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    assert_eq!(receipt["total"], 1, "a save while no server ran is seen: {receipt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_changed_while_the_server_was_away_is_taken_for_studio_was_never_closed() {
    let project = demo();
    let store = rojo_mcp::store::Store::in_memory();
    let first = TestServer::start_with(project.path(), store.clone(), 0).await;
    let (port, place) = (first.port, first.session.place_model());
    let studio = headless(port, place.clone());
    first.until_live(1).await;
    let stale = "game.ReplicatedStorage.Shared.Money.Source = '-- typed before the first sync'";
    studio.run(stale).await.expect("typed");
    assert_eq!(first.agent().ask("sync", json!({ "paths": ["src/shared/Config.luau"] })).await["status"], "empty");
    first.stop().await;
    studio.run("game.ReplicatedStorage.Shared.Config.Source = '-- typed'").await.expect("typed");

    let second = TestServer::start_with(project.path(), store.clone(), port).await;
    second.until_live(1).await;
    let receipt = second.agent().ask("sync", json!({ "paths": ["src/shared/Config.luau"] })).await;
    assert_eq!((&receipt["status"], &receipt["pulled"]), (&json!("success"), &json!(1)), "{receipt}");
    assert_eq!(std::fs::read_to_string(project.path().join("src/shared/Config.luau")).expect("a text"), "-- typed");
    second.stop().await;
    drop(studio);

    // Another session: nobody saw what happened before.
    let third = TestServer::start_with(project.path(), store, 0).await;
    let studio = headless(third.port, place);
    third.until_live(1).await;
    studio.run("game.ReplicatedStorage.Shared.Items.Rope.Source = '-- typed'").await.expect("typed");
    let receipt = third.agent().ask("sync", json!({ "paths": ["src/shared/Items/Rope.luau"] })).await;
    assert_eq!(
        (&receipt["status"], &receipt["pulled"]),
        (&json!("success"), &json!(1)),
        "it was seen equal: {receipt}"
    );
}
