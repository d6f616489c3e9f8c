//! A sync taken back, on disk and in Studio together, and what outlives the server.

use std::path::Path;

use rojo_mcp::store::Store;
use serde_json::{Value, json};

use crate::support::{Agent, TestServer, delete, demo, headless_of, save, until};

const CONFIG: &str = "src/shared/Config.luau";
const ROPE: &str = "src/shared/Items/Rope.luau";
const IN_STUDIO: &str = "game.ReplicatedStorage.Shared.Config";

fn read(project: &Path, path: &str) -> String {
    std::fs::read_to_string(project.join(path)).expect("a text")
}

#[expect(clippy::disallowed_methods, reason = "a person is not the server")]
fn delete_all(folder: &Path) {
    std::fs::remove_dir_all(folder).expect("it was there");
}

#[expect(clippy::disallowed_methods, reason = "a person is not the server")]
fn rename(project: &Path, from: &str, to: &str) {
    std::fs::rename(project.join(from), project.join(to)).expect("renamed");
}

async fn source(agent: &Agent) -> Value {
    agent.eval(&format!("return {IN_STUDIO}.Source")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_a_pull_and_a_merge_are_taken_back_on_both_sides() {
    let project = demo();
    let lines = "local a = 1\n-- 1\n-- 2\nlocal b = 2\nreturn a + b\n";
    save(project.path(), CONFIG, lines);
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    let (disk, typed) = (lines.replace("a = 1", "a = 10"), lines.replace("b = 2", "b = 20"));
    let both = disk.replace("b = 2", "b = 20");
    let cases: [(Option<&str>, Option<&str>, &str); 3] =
        [(Some(&disk), None, "pushed"), (None, Some(&typed), "pulled"), (Some(&disk), Some(&typed), "merged")];
    for (file, edit, what) in cases {
        if let Some(text) = file {
            save(project.path(), CONFIG, text);
        }
        if let Some(text) = edit {
            studio.run(&format!("{IN_STUDIO}.Source = {text:?}")).await.expect("typed");
        }
        let receipt = agent.ask("sync", json!({})).await;
        assert_eq!((&receipt["status"], &receipt[what]), (&json!("success"), &json!(1)), "{receipt}");
        let undone = agent.ask("undo", json!({ "change": receipt["journal"] })).await;
        assert_eq!(undone["status"], "success", "{what}: {undone}");
        assert_eq!(read(project.path(), CONFIG), file.unwrap_or(lines), "{what}");
        assert_eq!(source(&agent).await, json!(edit.unwrap_or(lines)), "{what}");
        let again = agent.call("undo", json!({ "change": receipt["journal"] })).await;
        assert!(again.text.contains("taken back already"), "{}", again.text);

        let receipt = agent.ask("sync", json!({})).await;
        assert_eq!((&receipt["status"], &receipt[what]), (&json!("success"), &json!(1)), "as before it: {receipt}");
        let expected = if what == "merged" { &both } else { file.or(edit).expect("one of them") };
        assert_eq!(read(project.path(), CONFIG), *expected);
        save(project.path(), CONFIG, lines);
        assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1, "to begin again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_moved_on_since_is_held_and_all_of_it_unless_partial() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let (config, rope) = (read(project.path(), CONFIG), read(project.path(), ROPE));
    save(project.path(), CONFIG, "return { lanternsToWin = 1 }\n");
    save(project.path(), ROPE, "return { name = 'Rope', price = 41 }\n");
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 2);
    agent.eval(&format!("{IN_STUDIO}.Source = '-- newer'")).await;
    let held = agent.ask("undo", json!({})).await;
    assert_eq!((&held["status"], &held["unresolved"]), (&json!("fastfail_unresolved"), &json!(1)), "{held}");
    assert_eq!(source(&agent).await, json!("-- newer"));
    let price = "return require(game.ReplicatedStorage.Shared.Items).Rope.price";
    assert_eq!(agent.eval(price).await, json!(41));
    let partial = agent.ask("undo", json!({ "partial": true })).await;
    assert_eq!((&partial["status"], &partial["unresolved"]), (&json!("partial"), &json!(1)), "{partial}");
    assert_eq!(source(&agent).await, json!("-- newer"));
    let there = agent.eval("return game.ReplicatedStorage.Shared.Items.Rope.Source").await;
    assert_eq!(there, json!(rope));
    assert_ne!(read(project.path(), CONFIG), config, "the file is not what the sync wrote to");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sync_removed_in_studio_comes_back_and_what_it_made_a_file_of_does_not_stay() {
    let project = demo();
    for name in ["One", "Two", "Three"] {
        save(project.path(), &format!("src/shared/Parts/{name}.luau"), &format!("return '{name}'\n"));
    }
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    delete(project.path(), "src/shared/Parts/One.luau");
    assert_eq!(agent.ask("sync", json!({})).await["removed"], 1);
    let undone = agent.ask("undo", json!({})).await;
    assert_eq!(undone["status"], "success", "{undone}");
    assert_eq!(agent.eval("return require(game.ReplicatedStorage.Shared.Parts.One)").await, json!("One"));
    assert_eq!(read(project.path(), "src/shared/Parts/One.luau"), "return 'One'\n");
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty", "it is on both sides, and agreed on");

    let make = "local new = Instance.new('ModuleScript') new.Name = 'Made' new.Source = 'return 1\\n'
        new.Parent = game.ReplicatedStorage.Shared";
    studio.run(make).await.expect("made");
    let id = agent.ask("sync", json!({})).await["changes"][0]["tempId"].clone();
    let receipt = agent.ask("sync", json!({ "overrides": [{ "id": id, "direction": "pull" }] })).await;
    assert_eq!(receipt["pulled"], 1, "{receipt}");
    let undone = agent.ask("undo", json!({})).await;
    assert_eq!(undone["status"], "success", "{undone}");
    assert!(!project.path().join("src/shared/Made.luau").exists());
    assert_eq!(agent.eval("return require(game.ReplicatedStorage.Shared.Made)").await, json!(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sync_made_and_renamed_in_studio_is_taken_back_there_and_so_is_the_undo() {
    let project = demo();
    save(project.path(), "src/shared/Old/init.luau", "return 'old'\n");
    save(project.path(), "src/shared/Old/Part.luau", "return 'part'\n");
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    studio.run("game.ReplicatedStorage.Shared.Old:SetAttribute('Kept', 1)").await.expect("marked");
    rename(project.path(), "src/shared/Old", "src/shared/Young");
    save(project.path(), "src/shared/New/init.luau", "return 'new'\n");
    save(project.path(), "src/shared/New/Part.luau", "return 'part of it'\n");
    let there = "local all = {} for _, one in game.ReplicatedStorage.Shared:GetDescendants() do
        if one:IsA('ModuleScript') then table.insert(all, `{one.Parent.Name}.{one.Name}`) end end
        table.sort(all) return table.concat(all, ' ')";
    let before = agent.eval(there).await;
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["pushed"], &receipt["renamed"]), (&json!(1), &json!(1)), "{receipt}");
    let after = agent.eval(there).await;
    assert!(after.as_str().expect("names").contains("Shared.New Shared."), "{after}");

    let told = agent.call("undo", json!({})).await;
    assert!(told.text.contains("journal 2"), "the text names the entry of the undo: {}", told.text);
    assert_eq!(told.structure["status"], "success", "{}", told.text);
    assert_eq!(agent.eval(there).await, before);
    assert_eq!(agent.eval("return game.ReplicatedStorage.Shared.Old:GetAttribute('Kept')").await, json!(1));
    assert_eq!(read(project.path(), "src/shared/Young/Part.luau"), "return 'part'\n", "files stay as they were saved");

    let redone = agent.ask("undo", json!({ "change": told.structure["journal"] })).await;
    assert_eq!(redone["status"], "success", "{redone}");
    assert_eq!(agent.eval(there).await, after);
    assert_eq!(agent.eval("return game.ReplicatedStorage.Shared.Young:GetAttribute('Kept')").await, json!(1));
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    let again = agent.ask("undo", json!({ "change": redone["journal"] })).await;
    assert_eq!(again["status"], "success", "{again}");
    assert_eq!(agent.eval(there).await, before);
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["pushed"], &receipt["renamed"]), (&json!(1), &json!(1)), "as the first one: {receipt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_folder_comes_back_with_all_its_files() {
    let project = demo();
    for path in ["Deep/init.server", "Deep/Inner/A", "Deep/Inner/B/init", "Deep/Inner/B/C.client", "Deep/D"] {
        save(project.path(), &format!("src/server/{path}.luau"), &format!("return '{path}'\n"));
    }
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    delete_all(&project.path().join("src/server/Deep"));
    let receipt = agent.ask("sync", json!({ "allowRemovals": true })).await;
    assert_eq!(receipt["removed"], 1, "{receipt}");
    let undone = agent.ask("undo", json!({})).await;
    assert_eq!(undone["status"], "success", "{undone}");
    for path in ["Deep/init.server", "Deep/Inner/A", "Deep/Inner/B/init", "Deep/Inner/B/C.client", "Deep/D"] {
        assert_eq!(read(project.path(), &format!("src/server/{path}.luau")), format!("return '{path}'\n"));
    }
    let text = agent.eval("return game.ServerScriptService.Server.Deep.Inner.B.C.Source").await;
    assert_eq!(text, "return 'Deep/Inner/B/C.client'\n");
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_of_which_nothing_was_done_is_not_the_last_one() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    let before = read(project.path(), CONFIG);
    save(project.path(), CONFIG, "return 'pushed'\n");
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1);
    let make = "local new = Instance.new('ModuleScript') new.Name = 'a:b' new.Parent = game.ReplicatedStorage.Shared";
    studio.run(make).await.expect("made");
    let id = agent.ask("sync", json!({ "mode": "dryrun" })).await["changes"][0]["tempId"].clone();
    let left = agent.call("sync", json!({ "overrides": [{ "id": id, "direction": "pull" }] })).await.structure;
    assert_eq!((&left["status"], &left["unresolved"], &left["journal"]), (&json!("rejected"), &json!(1), &json!(null)));
    assert_eq!(agent.ask("undo", json!({})).await["status"], "success");
    assert_eq!(source(&agent).await, json!(before), "the push is taken back");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_live_mode_what_was_taken_back_stays_until_somebody_changes_it() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    let before = source(&agent).await;
    save(project.path(), CONFIG, "return 'saved'\n");
    until("Studio has it", || async { source(&agent).await == "return 'saved'\n" }).await;
    save(project.path(), "src/shared/Fresh.luau", "return 'fresh'\n");
    let is_there = "return game.ReplicatedStorage.Shared:FindFirstChild('Fresh') ~= nil";
    until("Studio has the new one", || async { agent.eval(is_there).await == json!(true) }).await;
    for _ in 0..2 {
        let undone = agent.ask("undo", json!({})).await;
        assert_eq!(undone["status"], "success", "{undone}");
    }
    // What a person types goes the same way, after whatever the plugin made of the undo.
    studio.run(&format!("{}.Source = 'return 1\\n'", IN_STUDIO.replace("Config", "Money"))).await.expect("typed");
    until("the file has it", || async { read(project.path(), "src/shared/Money.luau") == "return 1\n" }).await;
    assert_eq!(source(&agent).await, before);
    assert_eq!(agent.eval(is_there).await, json!(false));
    assert_eq!(read(project.path(), "src/shared/Fresh.luau"), "return 'fresh'\n", "no deletion of a person's");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_nothing_to_take_back_before_a_sync() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let told = agent.ask("undo", json!({})).await;
    assert_eq!(told["status"], "error", "{told}");
    assert!(told["message"].as_str().expect("why").contains("nothing"), "{told}");
}

/// A server that remembers, on a project that a Studio has open.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_agreed_outlives_the_server_and_a_studio_that_closes_without_saving() {
    let project = demo();
    let store = Store::in_memory();
    let first = TestServer::start_with(project.path(), store.clone(), 0).await;
    let saved_place = first.session.place_model();
    let studio = headless_of(first.port, saved_place.clone(), 4711);
    first.until_live(1).await;
    let agent = first.agent();
    save(project.path(), CONFIG, "return { lanternsToWin = 6 }\n");
    delete(project.path(), ROPE);
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["pushed"], &receipt["removed"]), (&json!(1), &json!(1)), "{receipt}");
    drop(studio);
    first.stop().await;

    // Studio did not save; while nobody served, the file went on.
    save(project.path(), CONFIG, "return { lanternsToWin = 7 }\n");
    let second = TestServer::start_with(project.path(), store, 0).await;
    let _studio = headless_of(second.port, saved_place, 4711);
    second.until_live(1).await;
    let agent = second.agent();
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!(receipt["status"], "success", "both are old: {receipt}");
    assert_eq!((&receipt["pushed"], &receipt["removed"]), (&json!(1), &json!(1)), "{receipt}");
    let lanterns = agent.eval(&format!("return require({IN_STUDIO}).lanternsToWin")).await;
    assert_eq!(lanterns, json!(7));
}
