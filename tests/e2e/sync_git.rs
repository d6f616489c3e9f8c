//! What git knows of a file, where nothing was ever agreed.
//!
//! Without git these tests need `ROJO_MCP_WITHOUT_GIT=1` to pass.

use std::{path::Path, process::Command};

use serde_json::json;

use crate::support::{TestServer, demo, headless, save};

const CONFIG: &str = "src/shared/Config.luau";
const MONEY: &str = "src/shared/Money.luau";

fn git_is_here() -> bool {
    if Command::new("git").arg("--version").output().is_ok() {
        return true;
    }
    let known = std::env::var_os("ROJO_MCP_WITHOUT_GIT").is_some_and(|value| value == "1");
    assert!(known, "there is no git; ROJO_MCP_WITHOUT_GIT=1 leaves this test out");
    eprintln!("not tested: there is no git");
    false
}

fn git(folder: &Path, arguments: &[&str]) {
    let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgSign=false"];
    let run = Command::new("git").current_dir(folder).args(who).args(arguments).output().expect("git runs");
    assert!(run.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_holds_an_earlier_commit_is_brought_up_to_date_and_what_was_typed_in_it_is_not() {
    if !git_is_here() {
        return;
    }
    let project = demo();
    let commit = |text: &str| {
        save(project.path(), CONFIG, text);
        save(project.path(), MONEY, text);
        git(project.path(), &["add", "src"]);
        git(project.path(), &["commit", "--quiet", "--message=change"]);
    };
    git(project.path(), &["init", "--quiet"]);
    commit("return 'first'\n");
    let first = TestServer::start(project.path()).await;
    let place = first.session.place_model();
    first.stop().await;
    commit("return 'second'\n");
    save(project.path(), CONFIG, "return 'third'\n");

    let server = TestServer::start(project.path()).await;
    let studio = headless(server.port, place);
    server.until_live(1).await;
    studio.run("game.ReplicatedStorage.Shared.Money.Source = '-- typed'").await.expect("typed");
    let agent = server.agent();
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["pushed"], &receipt["unresolved"]), (&json!(1), &json!(1)), "{receipt}");
    let pushed = receipt["changes"].as_array().expect("a list").iter().find(|change| change["fsPath"] == CONFIG);
    assert!(pushed.expect("it is listed")["reason"].as_str().expect("why").contains("git"), "{receipt}");
    let source = |name: &str| format!("return game.ReplicatedStorage.Shared.{name}.Source");
    assert_eq!(agent.eval(&source("Config")).await, "return 'third'\n");
    assert_eq!(agent.eval(&source("Money")).await, "-- typed");
    let undone = agent.ask("undo", json!({})).await;
    assert_eq!(undone["status"], "success", "the journal has the text that git proved to be old: {undone}");
    assert_eq!(agent.eval(&source("Config")).await, "return 'first'\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_saved_while_a_studio_starts_is_no_conflict() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let place = server.session.place_model();
    save(project.path(), CONFIG, "return 'saved meanwhile'\n");
    server.session.catch_up(None).expect("it reads");
    save(project.path(), CONFIG, "return 'and again'\n");
    server.session.catch_up(None).expect("it reads");
    let studio = headless(server.port, place);
    server.until_live(1).await;
    studio.run("game.ReplicatedStorage.Shared.Money.Source = 'return 1 -- typed'").await.expect("typed");
    save(project.path(), MONEY, "return 'saved'\n");
    let agent = server.agent();
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["pushed"], &receipt["unresolved"]), (&json!(1), &json!(1)), "what was typed stays: {receipt}");
    let source = "return game.ReplicatedStorage.Shared.Config.Source";
    assert_eq!(agent.eval(source).await, "return 'and again'\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sync_wrote_for_studio_and_was_taken_back_proves_nothing() {
    let project = demo();
    save(project.path(), CONFIG, "return 'first'\n");
    let first = TestServer::start(project.path()).await;
    let place = first.session.place_model();
    first.stop().await;
    save(project.path(), CONFIG, "return 'second'\n");
    let server = TestServer::start(project.path()).await;
    let _studio = headless(server.port, place);
    server.until_live(1).await;
    let agent = server.agent();
    let found = agent.ask("sync", json!({})).await;
    assert_eq!((&found["status"], &found["unresolved"]), (&json!("rejected"), &json!(1)), "{found}");
    let pull = json!({ "overrides": [{ "id": found["changes"][0]["id"], "direction": "pull" }] });
    assert_eq!(agent.ask("sync", pull).await["pulled"], 1);
    assert_eq!(agent.ask("undo", json!({})).await["status"], "success");
    let again = agent.ask("sync", json!({})).await;
    assert_eq!((&again["status"], &again["unresolved"]), (&json!("rejected"), &json!(1)), "as it was found: {again}");
}
