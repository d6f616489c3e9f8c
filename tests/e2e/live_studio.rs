//! Live mode, both ways: what a person makes, renames, moves and deletes in Studio, and what waits for
//! a person.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Agent, TestServer, delete, demo, save, until};

const CONFIG: &str = "src/shared/Config.luau";

fn read(project: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(project.join(path)).ok()
}

async fn until_file(project: &Path, path: &str, text: &str) {
    until("the file has the text", || async { read(project, path).as_deref() == Some(text) }).await;
}

async fn held(agent: &Agent) -> Vec<String> {
    let status = agent.ask("status", json!({})).await;
    let held = status["studios"][0]["held"].as_array().cloned().unwrap_or_default();
    held.iter().map(|path| path.as_str().expect("a path").to_owned()).collect()
}

async fn until_equal(agent: &Agent) {
    until("both sides are equal", || async {
        agent.ask("sync", json!({ "mode": "dryrun" })).await["total"] == json!(0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_made_renamed_and_moved_in_studio_becomes_renames_and_moves_its_file() {
    let project = demo();
    save(project.path(), CONFIG, "\u{feff}local a = 1\r\nreturn a\r\n");
    save(project.path(), "src/shared/Deep/Other.luau", "return 'other'\n");
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    let make = "local made = Instance.new('LocalScript') made.Name = 'Made' made.Source = 'return 1\\n'
        made.Parent = game.ReplicatedStorage.Shared";
    studio.run(make).await.expect("made");
    until_file(project.path(), "src/shared/Made.client.luau", "return 1\n").await;
    until_equal(&agent).await;

    studio.run("game.ReplicatedStorage.Shared.Config.Name = 'Settings'").await.expect("renamed");
    until_file(project.path(), "src/shared/Settings.luau", "\u{feff}local a = 1\r\nreturn a\r\n").await;
    until("the old file is gone", || async { read(project.path(), CONFIG).is_none() }).await;
    until_equal(&agent).await;

    let move_it = "local it = game.ReplicatedStorage.Shared.Settings it.Source = 'local a = 2\\nreturn a\\n'
        it.Parent = game.ReplicatedStorage.Shared.Deep";
    studio.run(move_it).await.expect("moved");
    until_file(project.path(), "src/shared/Deep/Settings.luau", "\u{feff}local a = 2\r\nreturn a\r\n").await;
    until("the old file is gone", || async { read(project.path(), "src/shared/Settings.luau").is_none() }).await;
    until_equal(&agent).await;

    let undone = agent.ask("undo", json!({})).await;
    assert_eq!(undone["status"], "success", "{undone}");
    assert_eq!(read(project.path(), "src/shared/Deep/Settings.luau"), None);
    let back = read(project.path(), "src/shared/Settings.luau").expect("it is back");
    assert!(back.contains("local a = 1"), "{back:?}");
    // What it does next goes its way after the undo.
    studio.run("game.ReplicatedStorage.Shared.Made.Source = 'return 2\\n'").await.expect("typed");
    until_file(project.path(), "src/shared/Made.client.luau", "return 2\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_says_more_of_a_script_goes_where_its_file_goes_and_comes_back() {
    let meta = "{ \"attributes\": { \"level\": 3, \"kind\": \"file\" } }\n";
    let project = demo();
    save(project.path(), "src/shared/Config.meta.json", meta);
    save(project.path(), "src/shared/Deep/Other.luau", "return 'other'\n");
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    until_equal(&agent).await;
    let has = |path: &str| read(project.path(), &format!("src/shared/{path}.meta.json")).as_deref() == Some(meta);
    let level = |path: &'static str| {
        let code = format!("return game.ReplicatedStorage.Shared.{path}:GetAttribute('level')");
        let agent = &agent;
        async move { agent.eval(&code).await }
    };
    studio.run("game.ReplicatedStorage.Shared.Config.Name = 'Settings'").await.expect("renamed");
    until("it has the new name", || async { has("Settings") && !has("Config") }).await;
    until_equal(&agent).await;
    assert_eq!(level("Settings").await, json!(3));

    // What somebody changed in Studio since both had the same is still no file's to overwrite.
    studio.run("game.ReplicatedStorage.Shared.Settings:SetAttribute('level', 5)").await.expect("set");
    studio.run("local it = game.ReplicatedStorage.Shared.Settings it.Parent = it.Parent.Deep").await.expect("moved");
    until("it is in the other folder", || async { has("Deep/Settings") && !has("Settings") }).await;
    let left = agent.ask("sync", json!({})).await;
    assert_eq!((&left["unresolved"], &left["total"], &left["pushed"]), (&json!(1), &json!(1), &json!(0)), "{left}");
    assert_eq!(level("Deep.Settings").await, json!(5));

    let undone = agent.ask("undo", json!({})).await;
    assert_eq!(undone["status"], "success", "{undone}");
    assert!(has("Settings") && !has("Deep/Settings"), "{undone}");
    let left = agent.ask("sync", json!({})).await;
    assert_eq!((&left["unresolved"], &left["total"]), (&json!(1), &json!(1)), "{left}");
    assert_eq!(level("Settings").await, json!(5));
    let undone = agent.ask("undo", json!({})).await;
    assert_eq!(undone["status"], "success", "{undone}");
    assert!(has("Config") && !has("Settings"), "{undone}");
    assert_eq!(level("Config").await, json!(5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_a_project_file_names_is_not_renamed() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let place = server.session.place_model();
    let studio = server.live_studio_of(place, true, "Initial").await;
    let agent = server.agent();
    studio.run("game.ReplicatedStorage.Shared.Name = 'Renamed'").await.expect("renamed");
    until("it is held", || async { held(&agent).await.iter().any(|path| path.contains("Shared")) }).await;
    assert!(read(project.path(), CONFIG).is_some());
    studio.run("game.ReplicatedStorage.Renamed.Name = 'Shared'").await.expect("renamed back");
    until_equal(&agent).await;
}

async fn delete_in_studio(studio: &rojo_mcp::headless::HeadlessStudio, names: &str) {
    let code = format!(
        "for _, child in game.ReplicatedStorage.Shared.Many:GetChildren() do
             if string.find(child.Name, {names:?}) then child.Parent = nil end
         end"
    );
    studio.run(&code).await.expect("deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_deletions_in_studio_wait_for_a_person_and_a_few_do_not() {
    let project = demo();
    for number in 0..50 {
        save(project.path(), &format!("src/shared/Many/M{number:02}.luau"), "return 1\n");
    }
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    let files = || std::fs::read_dir(project.path().join("src/shared/Many")).expect("a folder").count();
    delete_in_studio(&studio, "^M0").await;
    until("ten files are gone", || async { files() == 40 }).await;
    delete_in_studio(&studio, "^M[123]").await;
    until("thirty are held, of which twenty are named", || async { held(&agent).await.len() == 20 }).await;
    assert_eq!(files(), 40);
    let one = agent.ask("sync", json!({ "mode": "dryrun" })).await["changes"][0].clone();
    let receipt = agent.ask("sync", json!({ "overrides": [{ "id": one["id"], "direction": "pull" }] })).await;
    assert_eq!((&receipt["pulled"], files()), (&json!(1), 39), "{receipt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_half_of_what_a_folder_holds_waits_for_a_person() {
    let project = demo();
    for name in ["A", "B", "C"] {
        save(project.path(), &format!("src/shared/Many/{name}.luau"), "return 1\n");
    }
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    delete_in_studio(&studio, "^[AB]").await;
    until("two are held", || async { held(&agent).await.len() == 2 }).await;
    assert!(read(project.path(), "src/shared/Many/A.luau").is_some());
    let told = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    assert!(told["changes"][0]["reason"].as_str().is_some_and(|why| why.contains("override")), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_differs_when_studio_connects_waits_as_the_plugins_setting_says() {
    let project = demo();
    let first = TestServer::start(project.path()).await;
    let old = first.session.place_model();
    first.stop().await;
    save(project.path(), "src/shared/New.luau", "return 'new'\n");
    let project_file = project.path().join("default.project.json");
    let plain = std::fs::read_to_string(&project_file).expect("a project");
    let is_new = "return game.ReplicatedStorage.Shared:FindFirstChild('New') ~= nil";
    let listed = "{ \"servePlaceIds\": [0],";
    let cases = [
        ("Always", false, true),
        ("Initial", false, true),
        ("Unlisted PlaceId", false, true),
        ("Unlisted PlaceId", true, false),
        ("Large Changes", false, false),
        ("Never", false, false),
    ];
    for (number, (behavior, lists, waits)) in cases.into_iter().enumerate() {
        let text = if lists { plain.replacen('{', listed, 1) } else { plain.clone() };
        save(project.path(), "default.project.json", &text);
        let server = TestServer::start(project.path()).await;
        let _studio = server.live_studio_of(old.clone(), false, behavior).await;
        let agent = server.agent();
        if waits {
            until("it is held", || async { held(&agent).await.contains(&"ReplicatedStorage.Shared.New".to_owned()) })
                .await;
            assert_eq!(agent.eval(is_new).await, Value::Bool(false), "{behavior}");
            // A save after that is live.
            save(project.path(), &format!("src/shared/Later{number}.luau"), "return 1\n");
            let is_later = format!("return game.ReplicatedStorage.Shared:FindFirstChild('Later{number}') ~= nil");
            until("it is made", || async { agent.eval(&is_later).await == json!(true) }).await;
            assert_eq!(agent.ask("sync", json!({})).await["status"], "success");
            assert!(held(&agent).await.is_empty());
            assert_eq!(agent.eval(is_new).await, Value::Bool(true), "{behavior}");
        } else {
            until("it is made", || async { agent.eval(is_new).await == json!(true) }).await;
        }
        drop(_studio);
        server.stop().await;
    }
    delete(project.path(), "src/shared/New.luau");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_changes_wait_when_studio_connects() {
    let project = demo();
    let first = TestServer::start(project.path()).await;
    let old = first.session.place_model();
    first.stop().await;
    for number in 0..5 {
        save(project.path(), &format!("src/shared/New{number}.luau"), "return 'new'\n");
    }
    let server = TestServer::start(project.path()).await;
    let _studio = server.live_studio_of(old, false, "Large Changes").await;
    let agent = server.agent();
    until("they are held", || async { held(&agent).await.len() == 5 }).await;
}
