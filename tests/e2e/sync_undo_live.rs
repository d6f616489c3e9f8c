//! What live mode both ways took from Studio, taken back on both sides: and it stays so.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Agent, TestServer, demo, save, until};

const CONFIG: &str = "src/shared/Config.luau";
const SHARED: &str = "game.ReplicatedStorage.Shared";

fn read(project: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(project.join(path)).ok()
}

async fn until_file(project: &Path, path: &str, text: &str) {
    until("the file has the text", || async { read(project, path).as_deref() == Some(text) }).await;
}

async fn source(agent: &Agent, name: &str) -> Value {
    agent.eval(&format!("local it = {SHARED}:FindFirstChild('{name}') return it and it.Source")).await
}

/// Both sides are the same, and nothing is held.
async fn is_settled(agent: &Agent) {
    let left = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    assert_eq!(left["total"], 0, "{left}");
    let status = agent.ask("status", json!({})).await;
    assert_eq!(status["studios"][0]["held"].as_array().map_or(0, Vec::len), 0, "{status}");
}

/// What a person types goes the same way, after whatever the plugin made of what was before.
async fn live_mode_has_caught_up(studio: &rojo_mcp::headless::HeadlessStudio, project: &Path, text: &str) {
    studio.run(&format!("{SHARED}.Money.Source = {text:?}")).await.expect("typed");
    until_file(project, "src/shared/Money.luau", text).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_was_taken_from_studio_goes_back_on_both_sides_and_stays() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    let before = read(project.path(), CONFIG).expect("a text");
    studio.run(&format!("{SHARED}.Config.Source = 'return 7\\n'")).await.expect("typed");
    until_file(project.path(), CONFIG, "return 7\n").await;
    let told = agent.call("undo", json!({})).await;
    assert_eq!(told.structure["status"], "success", "{}", told.text);
    assert!(told.text.contains("undid sync 1 by Studio (live) at "), "{}", told.text);
    assert_eq!(read(project.path(), CONFIG), Some(before.clone()));
    assert_eq!(source(&agent, "Config").await, json!(before));
    live_mode_has_caught_up(&studio, project.path(), "return 1\n").await;
    assert_eq!(read(project.path(), CONFIG), Some(before.clone()), "nobody typed that");
    assert_eq!(source(&agent, "Config").await, json!(before));
    is_settled(&agent).await;
    let redone = agent.ask("undo", json!({ "change": told.structure["journal"] })).await;
    assert_eq!(redone["status"], "success", "{redone}");
    assert_eq!(read(project.path(), CONFIG).as_deref(), Some("return 7\n"));
    assert_eq!(source(&agent, "Config").await, json!("return 7\n"));
    live_mode_has_caught_up(&studio, project.path(), "return 2\n").await;
    is_settled(&agent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_that_was_followed_is_taken_back_on_both_sides() {
    let project = demo();
    save(project.path(), CONFIG, "\u{feff}local a = 1\r\nreturn a\r\n");
    save(project.path(), "src/shared/Deep/Other.luau", "return 'other'\n");
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    studio.run(&format!("{SHARED}.Config:SetAttribute('Mark', 7)")).await.expect("marked");
    let cases = [
        ("it.Name = 'Settings'", "src/shared/Settings.luau", "local a = 1"),
        ("it.Name = 'Settings' it.Parent = it.Parent.Deep", "src/shared/Deep/Settings.luau", "local a = 1"),
        (
            "it.Source = 'local a = 2\\nreturn a\\n' it.Parent = it.Parent.Deep",
            "src/shared/Deep/Config.luau",
            "local a = 2",
        ),
    ];
    for (at, (what, file, text)) in cases.into_iter().enumerate() {
        studio.run(&format!("local it = {SHARED}.Config {what}")).await.expect("done");
        until("the file follows", || async { read(project.path(), file).is_some_and(|now| now.contains(text)) }).await;
        until("the old one is gone", || async { read(project.path(), CONFIG).is_none() }).await;
        let told = agent.call("undo", json!({})).await;
        assert_eq!(told.structure["status"], "success", "{what}: {}", told.text);
        assert_eq!(read(project.path(), CONFIG).as_deref(), Some("\u{feff}local a = 1\r\nreturn a\r\n"), "{what}");
        assert_eq!(read(project.path(), file), None, "{what}");
        // The place was opened with the file's mark, and gets texts without one.
        let text = source(&agent, "Config").await;
        assert_eq!(text.as_str().expect("a text").trim_start_matches('\u{feff}'), "local a = 1\nreturn a\n", "{what}");
        let mark = agent.eval(&format!("return {SHARED}.Config:GetAttribute('Mark')")).await;
        assert_eq!(mark, json!(7), "{what}: it is the same instance");
        is_settled(&agent).await;
        live_mode_has_caught_up(&studio, project.path(), &format!("return {at}\n")).await;
        assert_eq!(read(project.path(), file), None, "{what}: nobody did that again");
        is_settled(&agent).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_renamed_twice_is_taken_back_twice_from_either_side() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    let text = read(project.path(), CONFIG).expect("a text");
    let at = |name: &str| format!("src/shared/{name}.luau");
    studio.run(&format!("{SHARED}.Config:SetAttribute('Mark', 7)")).await.expect("marked");
    let mark = async |name: &str| {
        agent
            .eval(&format!("local it = {SHARED}:FindFirstChild('{name}') return it ~= nil and it:GetAttribute('Mark')"))
            .await
    };
    for (old, new) in [("Config", "Second"), ("Second", "Third")] {
        studio.run(&format!("{SHARED}.{old}.Name = '{new}'")).await.expect("renamed");
        until("the file follows", || async {
            read(project.path(), &at(new)).is_some() && read(project.path(), &at(old)).is_none()
        })
        .await;
        is_settled(&agent).await;
    }
    for (new, old) in [("Third", "Second"), ("Second", "Config")] {
        let undone = agent.ask("undo", json!({})).await;
        assert_eq!(undone["status"], "success", "{undone}");
        assert_eq!((read(project.path(), &at(old)), read(project.path(), &at(new))), (Some(text.clone()), None));
        assert_eq!((mark(old).await, mark(new).await), (json!(7), json!(false)));
        is_settled(&agent).await;
    }
    for (old, new) in [("Config", "Second"), ("Second", "Third")] {
        rename(&project.path().join(at(old)), &project.path().join(at(new)));
        until("Studio follows", || async { mark(new).await == json!(7) }).await;
        is_settled(&agent).await;
    }
    for (new, old) in [("Third", "Second"), ("Second", "Config")] {
        let undone = agent.ask("undo", json!({})).await;
        assert_eq!((&undone["status"], &undone["renamed"]), (&json!("success"), &json!(1)), "{undone}");
        assert_eq!((mark(old).await, mark(new).await), (json!(7), json!(false)), "{undone}");
    }
    live_mode_has_caught_up(&studio, project.path(), "return 1\n").await;
    assert_eq!(
        (read(project.path(), &at("Third")), read(project.path(), CONFIG)),
        (Some(text), None),
        "nobody made it"
    );
    let again = agent.ask("sync", json!({})).await;
    assert_eq!((&again["status"], &again["renamed"]), (&json!("success"), &json!(1)), "{again}");
    assert_eq!(mark("Third").await, json!(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_moved_on_disk_is_taken_back_in_studio_and_nobody_made_it_there() {
    let project = demo();
    save(project.path(), "src/shared/Deep/Other.luau", "return 'other'\n");
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    let text = read(project.path(), CONFIG).expect("a text");
    rename(&project.path().join(CONFIG), &project.path().join("src/shared/Deep/Config.luau"));
    let moved =
        format!("return {SHARED}.Deep:FindFirstChild('Config') ~= nil and not {SHARED}:FindFirstChild('Config')");
    until("Studio follows", || async { agent.eval(&moved).await == json!(true) }).await;
    let undone = agent.ask("undo", json!({})).await;
    assert_eq!((&undone["status"], &undone["renamed"]), (&json!("success"), &json!(1)), "{undone}");
    live_mode_has_caught_up(&studio, project.path(), "return 1\n").await;
    assert_eq!(source(&agent, "Config").await, json!(text));
    assert_eq!(read(project.path(), CONFIG), None, "no file is made of it");
    assert_eq!(read(project.path(), "src/shared/Deep/Config.luau"), Some(text), "and a person's stays");
}

#[expect(clippy::disallowed_methods, reason = "a person is not the server")]
fn rename(from: &Path, to: &Path) {
    std::fs::rename(from, to).expect("renamed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_with_scripts_that_was_taken_from_studio_is_taken_back() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    let make = format!(
        "local kit = Instance.new('Folder') kit.Name = 'Kit' \
         local main = Instance.new('ModuleScript') main.Name = 'Main' main.Source = 'return 1\\n' main.Parent = kit \
         kit.Parent = {SHARED}"
    );
    studio.run(&make).await.expect("made");
    until_file(project.path(), "src/shared/Kit/Main.luau", "return 1\n").await;
    let undone = agent.ask("undo", json!({})).await;
    assert_eq!(undone["status"], "success", "{undone}");
    live_mode_has_caught_up(&studio, project.path(), "return 1\n").await;
    assert!(!project.path().join("src/shared/Kit").exists(), "{undone}");
    assert_eq!(agent.eval(&format!("return {SHARED}.Kit.Main.Source")).await, json!("return 1\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn studios_own_undo_menu_says_what_an_undo_was() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    save(project.path(), CONFIG, "return 1\n");
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!(receipt["pushed"], 1, "{receipt}");
    assert_eq!(agent.ask("undo", json!({})).await["status"], "success");
    let next = "local _, name = game:GetService('ChangeHistoryService'):GetCanUndo() return name";
    assert_eq!(agent.eval(next).await, json!(format!("Undo sync {}", receipt["journal"])));
}
