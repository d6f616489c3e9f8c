//! What comes later: a sync taken back when a side has moved on, another place, and what is typed
//! around a play test.

use std::path::Path;

use rojo_mcp::{
    headless::{HeadlessStudio, Play},
    store::Store,
};
use serde_json::{Value, json};

use crate::support::{Agent, TestServer, delete, demo, headless_of, save, until};

const CONFIG: &str = "src/shared/Config.luau";
const MONEY: &str = "src/shared/Money.luau";

fn read(project: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(project.join(path)).ok()
}

/// The text of `ReplicatedStorage.Shared.<name>`, or `none`.
async fn source(agent: &Agent, name: &str) -> Value {
    let find = format!("local it = game.ReplicatedStorage.Shared:FindFirstChild('{name}')");
    agent.eval(&format!("{find} return it and it.Source or 'none'")).await
}

async fn type_in(studio: &HeadlessStudio, name: &str, text: &str) {
    studio.run(&format!("game.ReplicatedStorage.Shared.{name}.Source = {text:?}")).await.expect("typed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_made_in_studio_is_taken_back_though_its_file_was_saved_since() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    save(project.path(), "src/shared/New.luau", "return 'new'\n");
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1);
    save(project.path(), "src/shared/New.luau", "return 'saved since'\n");
    let undone = agent.ask("undo", json!({})).await;
    assert_eq!(undone["status"], "success", "{undone}");
    assert_eq!(source(&agent, "New").await, "none");
    assert_eq!(read(project.path(), "src/shared/New.luau").as_deref(), Some("return 'saved since'\n"));
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1);
    assert_eq!(source(&agent, "New").await, "return 'saved since'\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_leaves_a_script_alone_in_which_somebody_types_what_its_file_says() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    save(project.path(), CONFIG, "return 'file'\n");
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1);
    type_in(&studio, "Config", "return 'mine'\n").await;
    let config = "game.ReplicatedStorage.Shared.Config";
    studio.run(&format!("Headless.setDraft({config}, \"return 'file'\\n\")")).await.expect("typed");
    let undone = agent.ask("undo", json!({})).await;
    assert_ne!(undone["status"], "success", "{undone}");
    assert_eq!(source(&agent, "Config").await, "return 'mine'\n", "what was saved in Studio stays there");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_deletions_come_back_with_one_undo() {
    let project = demo();
    let file = |name: &str| format!("src/shared/Parts/{name}.luau");
    for name in ["One", "Two", "Three", "Four", "Five"] {
        save(project.path(), &file(name), &format!("return '{name}'\n"));
    }
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    ["One", "Two"].iter().for_each(|name| delete(project.path(), &file(name)));
    assert_eq!(agent.ask("sync", json!({})).await["removed"], 2);
    let undone = agent.ask("undo", json!({})).await;
    assert_eq!((&undone["status"], &undone["failed"]), (&json!("success"), &json!(0)), "{undone}");
    for name in ["One", "Two"] {
        assert_eq!(read(project.path(), &file(name)), Some(format!("return '{name}'\n")));
        assert_eq!(agent.eval(&format!("return require(game.ReplicatedStorage.Shared.Parts.{name})")).await, name);
    }
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty", "it is on both sides, and agreed on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_file_whose_script_was_changed_in_studio_is_left_alone_until_somebody_says() {
    for (direction, file, there) in [("push", None, "none"), ("pull", Some("return 'typed'\n"), "return 'typed'\n")] {
        let project = demo();
        let server = TestServer::start(project.path()).await;
        let studio = server.studio().await;
        let agent = server.agent();
        type_in(&studio, "Money", "return 'typed'\n").await;
        delete(project.path(), MONEY);
        let left = agent.ask("sync", json!({})).await;
        let line = &left["changes"][0];
        assert_eq!((&left["unresolved"], &line["result"]), (&json!(1), &json!("unresolved")), "{left}");
        assert!(line["reason"].as_str().is_some_and(|reason| reason.contains("its file is gone")), "{line}");
        assert_eq!(source(&agent, "Money").await, "return 'typed'\n");
        let wish = json!({ "id": line["tempId"], "direction": direction, "studioHash": line["studioHash"] });
        let receipt = agent.ask("sync", json!({ "overrides": [wish] })).await;
        assert_eq!(receipt["status"], "success", "{direction}: {receipt}");
        assert_eq!(read(project.path(), MONEY).as_deref(), file);
        assert_eq!(source(&agent, "Money").await, there, "{direction}");
        let undone = agent.ask("undo", json!({})).await;
        assert_eq!(undone["status"], "success", "{direction}: {undone}");
        assert_eq!(source(&agent, "Money").await, "return 'typed'\n", "what was typed is never lost");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_places_one_after_the_other_share_nothing_that_was_agreed() {
    let project = demo();
    let server = TestServer::start_with(project.path(), Store::in_memory(), 0).await;
    let agent = server.agent();
    let old_place = server.session.place_model();
    let first = headless_of(server.port, old_place.clone(), 11);
    server.until_live(1).await;
    save(project.path(), CONFIG, "return 'two'\n");
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1);
    drop(first);
    server.until_live(0).await;

    // The other place has a text that was never agreed here and that no file had: it may be anybody's.
    let second = headless_of(server.port, old_place.clone(), 22);
    server.until_live(1).await;
    type_in(&second, "Config", "return 'mine'\n").await;
    let before = source(&agent, "Config").await;
    let left = agent.ask("sync", json!({})).await;
    assert_eq!((&left["pushed"], &left["unresolved"]), (&json!(0), &json!(1)), "{left}");
    assert_eq!(source(&agent, "Config").await, before);
    let told = agent.ask("undo", json!({})).await;
    assert_eq!(told["status"], "error", "nothing was done in this place: {told}");
    drop(second);
    server.until_live(0).await;

    // The first one was not saved, and its file went on.
    save(project.path(), CONFIG, "return 'three'\n");
    let _first = headless_of(server.port, old_place, 11);
    server.until_live(1).await;
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("success"), &json!(1)), "{receipt}");
    assert_eq!(source(&agent, "Config").await, "return 'three'\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_reaches_its_file_when_it_is_saved_and_not_during_a_play_test() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    let until_file = async |path: &str, text: &str| {
        until("the file has the text", || async { read(project.path(), path).as_deref() == Some(text) }).await;
    };
    let before = read(project.path(), CONFIG);
    let config = "game.ReplicatedStorage.Shared.Config";
    studio.run(&format!("Headless.setDraft({config}, 'return \"half\"\\n')")).await.expect("typed");
    type_in(&studio, "Money", "return 'first'\n").await;
    until_file(MONEY, "return 'first'\n").await;
    assert_eq!(read(project.path(), CONFIG), before, "a draft stays where it is");
    let save_draft = format!("{config}.Source = 'return \"whole\"\\n' Headless.setDraft({config}, nil)");
    studio.run(&save_draft).await.expect("saved");
    until_file(CONFIG, "return \"whole\"\n").await;

    studio.start_play(Play::Solo).await.expect("a person presses Play");
    until("it plays", || async { agent.ask("status", json!({})).await["studios"][0]["paused"] == "a play test runs" })
        .await;
    save(project.path(), CONFIG, "return 'saved in play'\n");
    type_in(&studio, "Money", "return 'typed in play'\n").await;
    let planned = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    assert_eq!(planned["total"], 2, "both wait: {planned}");
    assert_eq!(read(project.path(), MONEY).as_deref(), Some("return 'first'\n"));
    studio.stop_play().await;
    until_file(MONEY, "return 'typed in play'\n").await;
    until("the save has come over", || async { source(&agent, "Config").await == "return 'saved in play'\n" }).await;
}
