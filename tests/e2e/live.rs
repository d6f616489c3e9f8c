//! Live mode: files and Studio follow each other without a call.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use rojo_mcp::headless::HeadlessStudio;
use serde_json::{Value, json};

use crate::support::{Agent, TestServer, demo, save, until};

const CONFIG: &str = "src/shared/Config.luau";
const MONEY: &str = "src/shared/Money.luau";

async fn source(agent: &Agent, name: &str) -> Value {
    agent.eval(&format!("return game.ReplicatedStorage.Shared.{name}.Source")).await
}

async fn until_source(agent: &Agent, name: &str, text: &str) {
    until("Studio has the text", || async { source(agent, name).await == json!(text) }).await;
}

fn read(project: &Path, path: &str) -> String {
    String::from_utf8(std::fs::read(project.join(path)).unwrap_or_default()).expect("text")
}

async fn until_file(project: &Path, path: &str, text: &str) {
    until("the file has the text", || async { read(project, path) == text }).await;
}

/// A person sets the text of `ReplicatedStorage.Shared.<name>`.
async fn type_in(studio: &HeadlessStudio, name: &str, text: &str) {
    studio.run(&format!("game.ReplicatedStorage.Shared.{name}.Source = {text:?}")).await.expect("typed");
}

/// Wait until everything that was under way has been seen by both sides.
async fn until_equal(agent: &Agent) {
    until("both sides are equal", || async {
        agent.ask("sync", json!({ "mode": "dryrun" })).await["total"] == json!(0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_reaches_studio_by_itself() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.live_studio(false).await;
    let agent = server.agent();
    for round in 0..5 {
        let text = format!("return {{ lanternsToWin = {round} }}\n");
        save(project.path(), CONFIG, &text);
        until_source(&agent, "Config", &text).await;
    }
    save(project.path(), "src/shared/Fresh.luau", "return 'fresh'\n");
    until("a new file is made in Studio", || async {
        agent.eval("return game.ReplicatedStorage.Shared:FindFirstChild('Fresh') ~= nil").await == json!(true)
    })
    .await;
    assert_eq!(source(&agent, "Fresh").await, "return 'fresh'\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_only_the_files_live_what_is_typed_in_studio_stays_there() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(false).await;
    let agent = server.agent();
    let before = read(project.path(), CONFIG);
    type_in(&studio, "Config", "-- typed").await;
    save(project.path(), MONEY, "return { 'saved' }\n");
    until_source(&agent, "Money", "return { 'saved' }\n").await;
    assert_eq!(read(project.path(), CONFIG), before);
    save(project.path(), CONFIG, "-- saved\n");
    save(project.path(), MONEY, "return { 'again' }\n");
    until_source(&agent, "Money", "return { 'again' }\n").await;
    assert_eq!(source(&agent, "Config").await, "-- typed", "nobody decided which is right");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_reaches_the_file_which_keeps_its_mark_and_line_ends() {
    let project = demo();
    save(project.path(), CONFIG, "\u{feff}local a = 1\r\nlocal b = 2\r\nreturn a + b\r\n");
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    type_in(&studio, "Config", "local a = 1\nlocal b = 3\nreturn a + b\n").await;
    until_file(project.path(), CONFIG, "\u{feff}local a = 1\r\nlocal b = 3\r\nreturn a + b\r\n").await;
    save(project.path(), MONEY, "return { 'saved' }\n");
    until_source(&agent, "Money", "return { 'saved' }\n").await;
    until_equal(&agent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_changes_at_once_are_merged_or_hold_back_that_script_alone() {
    let project = demo();
    let lines = |a: &str, b: &str| format!("local a = {a}\n\n\n\nlocal b = {b}\nreturn a + b\n");
    save(project.path(), CONFIG, &lines("1", "1"));
    save(project.path(), MONEY, "return 1\n");
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();

    // Typed within the watcher's 200 ms, so that both are seen together.
    type_in(&studio, "Config", &lines("2", "1")).await;
    save(project.path(), CONFIG, &lines("1", "2"));
    until_source(&agent, "Config", &lines("2", "2")).await;
    until_file(project.path(), CONFIG, &lines("2", "2")).await;

    type_in(&studio, "Money", "return 'studio'\n").await;
    save(project.path(), MONEY, "return 'disk'\n");
    save(project.path(), CONFIG, &lines("3", "3"));
    until_source(&agent, "Config", &lines("3", "3")).await;
    assert_eq!(source(&agent, "Money").await, "return 'studio'\n");
    assert_eq!(read(project.path(), MONEY), "return 'disk'\n");
    let receipt = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    assert_eq!(receipt["unresolved"], 1, "{receipt}");
    assert_eq!(receipt["changes"][0]["fsPath"], MONEY);
    let told = agent.call("status", json!({})).await;
    let held = &told.structure["studios"][0]["held"];
    assert_eq!(*held, json!(["ReplicatedStorage.Shared.Money"]), "{}", told.text);
    let text = told.text;
    assert!(text.contains("left alone until somebody decides: ReplicatedStorage.Shared.Money\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "an editor is not the server")]
async fn c39_a_save_by_unlink_and_create_is_an_edit() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    studio.run("Kept = game.ReplicatedStorage.Shared.Config").await.expect("held");
    let kept = "local it = game.ReplicatedStorage.Shared.Config it:SetAttribute('Kept', 7)";
    studio.run(kept).await.expect("marked");
    for round in 0..10 {
        let text = format!("return {round}\n");
        let begun = Instant::now();
        std::fs::remove_file(project.path().join(CONFIG)).expect("it is there");
        std::thread::sleep(Duration::from_millis(80)); // what an editor does between two steps
        save(project.path(), CONFIG, &text);
        let took = begun.elapsed();
        until_source(&agent, "Config", &text).await;
        if took > Duration::from_millis(250) {
            return; // on a machine as busy as that this is no save
        }
        assert_eq!(agent.eval("return game.ReplicatedStorage.Shared.Config:GetAttribute('Kept')").await, json!(7));
    }
    until_equal(&agent).await;
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "an editor is not the server")]
async fn deletions_and_renames_are_followed_on_both_sides() {
    let project = demo();
    for name in ["One", "Two", "Three", "Four", "Five", "Six"] {
        save(project.path(), &format!("src/shared/{name}.luau"), &format!("return '{name}'\n"));
    }
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    let has = |name: &'static str| async move {
        agent.eval(&format!("return game.ReplicatedStorage.Shared:FindFirstChild('{name}') ~= nil")).await
            == json!(true)
    };

    std::fs::remove_file(project.path().join("src/shared/One.luau")).expect("it is there");
    until("it is removed in Studio", || async { !has("One").await }).await;

    studio.run("game.ReplicatedStorage.Shared.Three:SetAttribute('Kept', 3)").await.expect("marked");
    std::fs::rename(project.path().join("src/shared/Three.luau"), project.path().join("src/shared/Third.luau"))
        .expect("renamed");
    until("it is renamed in Studio", || async { has("Third").await }).await;
    assert_eq!(agent.eval("return game.ReplicatedStorage.Shared.Third:GetAttribute('Kept')").await, json!(3));
    assert!(!has("Three").await);

    studio.run("game.ReplicatedStorage.Shared.Two.Parent = nil").await.expect("deleted");
    until("its file is deleted", || async { !project.path().join("src/shared/Two.luau").exists() }).await;
    until_equal(&agent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_never_overwritten() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    let draft = "Headless.setDraft(game.ReplicatedStorage.Shared.Config, 'typing')";
    studio.run(draft).await.expect("typed");
    let before = source(&agent, "Config").await;
    save(project.path(), CONFIG, "return 'saved'\n");
    save(project.path(), MONEY, "return 'saved'\n");
    until_source(&agent, "Money", "return 'saved'\n").await;
    assert_eq!(source(&agent, "Config").await, before);
    let script = agent.ask("get_script", json!({ "fsPath": CONFIG, "fromDraft": true })).await;
    assert_eq!(script["source"], "typing", "{script}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_during_live_mode_comes_after_what_is_under_way() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.live_studio(true).await;
    let agent = server.agent();
    for round in 0..10 {
        let text = format!("return {round}\n");
        save(project.path(), CONFIG, &text);
        let receipt = agent.ask("sync", json!({ "paths": [CONFIG] })).await;
        assert!(["success", "empty"].contains(&receipt["status"].as_str().expect("a word")), "{receipt}");
        assert_eq!(source(&agent, "Config").await, json!(text));
    }
}
