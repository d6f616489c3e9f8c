//! Live mode, both ways: names that files can bear and such that they cannot.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Agent, TestServer, delete, demo, save, until};

const CONFIG: &str = "src/shared/Config.luau";

fn names(project: &Path) -> Vec<String> {
    let listed = std::fs::read_dir(project.join("src/shared")).expect("listed").flatten();
    let mut names: Vec<String> = listed.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

async fn has(project: &Path, name: &str, but: &str) {
    until("the file has its name", || async {
        let names = names(project);
        names.iter().any(|one| one == name) && !names.iter().any(|one| one == but)
    })
    .await;
}

async fn until_equal(agent: &Agent) {
    until("both sides are equal", || async {
        agent.ask("sync", json!({ "mode": "dryrun" })).await["total"] == json!(0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_renamed_or_moved_in_studio_takes_all_that_lies_in_it_along() {
    let project = demo();
    let at = |path: &str| project.path().join("src/shared").join(path);
    save(project.path(), "src/shared/Deep/init.luau", "return 'deep'\n");
    save(project.path(), "src/shared/Deep/Part.luau", "\u{feff}return 'part'\r\n");
    save(project.path(), "src/shared/Deep/notes.txt.bak", "mine");
    save(project.path(), "src/shared/Box/Inner/Leaf.luau", "return 'leaf'\n");
    save(project.path(), "src/shared/Box/Block.model.json", "{ \"className\": \"Part\" }");
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    let shared = "game.ReplicatedStorage.Shared";
    studio.run(&format!("{shared}.Box:SetAttribute('Mark', 7) {shared}.Deep.Name = 'Low'")).await.expect("renamed");
    until("its folder has its name", || async { at("Low/Part.luau").is_file() && !at("Deep").exists() }).await;
    until_equal(&agent).await;
    assert_eq!(std::fs::read_to_string(at("Low/Part.luau")).expect("a text"), "\u{feff}return 'part'\r\n");
    assert!(at("Low/notes.txt.bak").is_file() && at("Low/init.luau").is_file());

    studio.run(&format!("{shared}.Box.Name = 'BOX' {shared}.BOX.Parent = {shared}.Low")).await.expect("moved");
    until("its folder is there", || async { at("Low/BOX/Inner/Leaf.luau").is_file() && !at("Box").exists() }).await;
    until_equal(&agent).await;
    assert_eq!(agent.eval(&format!("return {shared}.Low.BOX:GetAttribute('Mark')")).await, json!(7));
    studio.run(&format!("{shared}.Low.BOX.Name = 'box'")).await.expect("renamed");
    until("only letters changed", || async { at("Low/box/Block.model.json").is_file() && !at("Low/BOX").exists() })
        .await;
    until_equal(&agent).await;

    let leaf = format!("{shared}.Low.box.Inner.Leaf");
    studio.run(&format!("{leaf}.Source = 'return 2\\n'")).await.expect("typed");
    let path = at("Low/box/Inner/Leaf.luau");
    until("what was agreed went along", || async { std::fs::read_to_string(&path).expect("a text") == "return 2\n" })
        .await;
    save(project.path(), "src/shared/Low/box/Inner/Leaf.luau", "return 3\n");
    until("the other way too", || async { agent.eval(&format!("return {leaf}.Source")).await == json!("return 3\n") })
        .await;
    let undone = agent.ask("undo", json!({ "change": 1 })).await;
    assert_eq!(undone["status"], "success", "{undone}");
    assert!(at("Deep/box/Inner/Leaf.luau").is_file() && at("Deep/notes.txt.bak").is_file() && !at("Low").exists());
    assert_eq!(agent.eval(&format!("return {{ {shared}.Deep.box:GetAttribute('Mark') }}")).await, json!([7]));
    until_equal(&agent).await;
    save(project.path(), "src/shared/Deep/Part.luau", "return 4\n");
    until("what was agreed went back too", || async {
        agent.eval(&format!("return {shared}.Deep.Part.Source")).await == json!("return 4\n")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_renamed_on_disk_is_renamed_in_studio() {
    let project = demo();
    save(project.path(), "src/shared/Box/Inner/Leaf.luau", "return 'leaf'\n");
    save(project.path(), "src/shared/Box/Block.model.json", "{ \"className\": \"Part\" }");
    save(project.path(), "src/shared/Solo.luau", "return 'solo'\n");
    save(project.path(), "src/shared/Props/Block.model.json", "{ \"className\": \"Part\" }");
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    let shared = "game.ReplicatedStorage.Shared";
    let mark = format!(
        "{shared}.Props:SetAttribute('Mark', 9) {shared}.Box:SetAttribute('Mark', 7) {shared}.Solo:SetAttribute('Mark', 8) \
         local made = Instance.new('Configuration') made.Name = 'Made' made.Parent = {shared}.Box \
         local value = Instance.new('ObjectValue') value.Name = 'To' value.Value = {shared}.Box.Inner.Leaf \
         value.Parent = workspace"
    );
    studio.run(&mark).await.expect("marked");
    rename(&project.path().join("src/shared/Box"), &project.path().join("src/shared/Crate"));
    rename(&project.path().join("src/shared/Props"), &project.path().join("src/shared/Scenery"));
    save(project.path(), "src/shared/Solo/init.luau", "return 'solo'\n");
    delete(project.path(), "src/shared/Solo.luau");
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!(
        (&receipt["renamed"], &receipt["removed"], &receipt["failed"]),
        (&json!(2), &json!(0), &json!(0)),
        "{receipt}"
    );
    let there = format!(
        "return {{ {shared}.Crate:GetAttribute('Mark'), {shared}.Solo:GetAttribute('Mark'), \
         {shared}.Scenery:GetAttribute('Mark'), {shared}.Crate.Made.Name, workspace.To.Value == {shared}.Crate.Inner.Leaf }}"
    );
    assert_eq!(agent.eval(&there).await, json!([7, 8, 9, "Made", true]));
    studio.run(&format!("{shared}.Crate.Block.Transparency = 0.5")).await.expect("it is no property of the file");
    save(project.path(), "src/shared/Crate/Inner/Leaf.luau", "return 'new'\n");
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1);
}

#[expect(clippy::disallowed_methods, reason = "a person is not the server")]
fn rename(from: &Path, to: &Path) {
    std::fs::rename(from, to).expect("renamed");
}

async fn entries(agent: &Agent) -> Value {
    agent.ask("sync", json!({})).await["journal"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_gets_its_name_in_other_letters_takes_its_file_along() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    let shared = "game.ReplicatedStorage.Shared";
    studio.run(&format!("{shared}.Config:SetAttribute('Mark', 7) {shared}.Config.Name = 'config'")).await.expect("it");
    has(project.path(), "config.luau", "Config.luau").await;
    until_equal(&agent).await;
    studio.run(&format!("{shared}.config.Name = 'CONFIG'")).await.expect("renamed");
    has(project.path(), "CONFIG.luau", "config.luau").await;
    until_equal(&agent).await;
    assert_eq!(agent.eval(&format!("return {shared}.CONFIG:GetAttribute('Mark')")).await, json!(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_no_file_can_bear_is_held_and_the_next_one_is_followed() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    let shared = "game.ReplicatedStorage.Shared";
    let make = "local made = Instance.new('ModuleScript') made.Name = 'a/b' made.Source = 'return 1\\n'";
    studio.run(&format!("{make} made.Parent = {shared}")).await.expect("made");
    studio.run(&format!("{shared}.Config.Name = 'Money'")).await.expect("renamed");
    until("both are held", || async {
        let status = agent.ask("status", json!({})).await;
        let held = status["studios"][0]["held"].to_string();
        held.contains("a/b") && held.contains("Config")
    })
    .await;
    assert!(project.path().join(CONFIG).is_file());
    studio.run(&format!("{shared}['a/b'].Name = 'Better'")).await.expect("renamed");
    let second = format!(
        "for _, one in {shared}:GetChildren() do \
         if one.Name == 'Money' and string.find(one.Source, 'lanterns') then one.Name = 'Settings' end end"
    );
    studio.run(&second).await.expect("renamed");
    has(project.path(), "Better.luau", "a").await;
    has(project.path(), "Settings.luau", "Config.luau").await;
    until_equal(&agent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_written_is_unresolved_and_makes_no_entry_of_the_journal() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    let shared = "game.ReplicatedStorage.Shared";
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    let garbled = project.path().join(CONFIG);
    write(&garbled, b"return '\xe9'\n");
    studio.run(&format!("{shared}.Config.Source = 'return 1\\n'")).await.expect("typed");
    for mode in ["dryrun", "standard"] {
        let receipt = agent.ask("sync", json!({ "mode": mode })).await;
        let line = &receipt["changes"][0];
        assert_eq!((&line["result"], &receipt["unresolved"]), (&json!("unresolved"), &json!(1)), "{receipt}");
        assert!(line["reason"].as_str().expect("why").contains("not a text file"), "{receipt}");
    }
    assert_eq!(entries(&agent).await, Value::Null, "nothing was begun");
    write(&garbled, b"return 2\n");
    assert_eq!(agent.ask("sync", json!({})).await["status"], "rejected", "now it is a conflict of two texts");
}

#[expect(clippy::disallowed_methods, reason = "an editor is not the server")]
fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("a write");
}
