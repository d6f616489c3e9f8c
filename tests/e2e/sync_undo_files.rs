//! Files that a sync made or removed, taken back: byte for byte, and only what the sync itself wrote.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};

use crate::support::{Agent, TestServer, delete, demo, save, until};

const SHARED: &str = "game.ReplicatedStorage.Shared";

/// Every file below `src`, byte for byte, and every folder.
fn all_files(project: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    fn walk(folder: &Path, top: &Path, found: &mut BTreeMap<String, Option<Vec<u8>>>) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            let name = path.strip_prefix(top).expect("below it").to_string_lossy().replace('\\', "/");
            if path.is_dir() {
                found.insert(name, None);
                walk(&path, top, found);
            } else {
                found.insert(name, Some(std::fs::read(&path).expect("a file")));
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(&project.join("src"), project, &mut found);
    found
}

/// The line of what differs, by its name.
async fn line(agent: &Agent, name: &str) -> Value {
    let found = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    let lines = found["changes"].as_array().expect("a list");
    let line = lines.iter().find(|line| line["path"].as_str().is_some_and(|path| path.ends_with(name)));
    line.unwrap_or_else(|| panic!("{name} is not in {found}")).clone()
}

async fn pull(agent: &Agent, name: &str) -> Value {
    let id = line(agent, name).await["tempId"].clone();
    let receipt = agent.ask("sync", json!({ "overrides": [{ "id": id, "direction": "pull" }] })).await;
    assert_eq!((&receipt["pulled"], &receipt["failed"]), (&json!(1), &json!(0)), "{receipt}");
    receipt
}

const MAKE: &str = "local shared = game.ReplicatedStorage.Shared \
    local rig = Instance.new('Model') rig.Name = 'Rig' rig:SetAttribute('level', 3) \
    for index = 1, 2 do local part = Instance.new('Part') part.Name = 'Leg' part.Parent = rig end \
    local code = Instance.new('Script') code.Name = 'Code' code.Source = 'print(1)' code.Parent = rig \
    rig.Parent = shared \
    local kit = Instance.new('Folder') kit.Name = 'Kit' kit:SetAttribute('worn', true) \
    local main = Instance.new('ModuleScript') main.Name = 'Main' main.Source = 'return 1' main.Parent = kit \
    local util = Instance.new('ModuleScript') util.Name = 'Util' util.Source = 'return 2' \
    util:SetAttribute('on', true) util.Parent = main kit.Parent = shared \
    local lone = Instance.new('LocalScript') lone.Name = 'Lone' lone.Source = 'print(2)' lone.Parent = shared \
    local bare = Instance.new('Folder') bare.Name = 'Bare' bare.Parent = shared";

#[tokio::test(flavor = "multi_thread")]
async fn files_that_a_pull_made_go_and_what_they_stood_for_stays_in_studio() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    studio.run(MAKE).await.expect("made");
    let before = all_files(project.path());
    for name in ["Rig", "Kit", "Lone", "Bare"] {
        let receipt = pull(&agent, name).await;
        let pulled = all_files(project.path());
        assert!(pulled.len() > before.len(), "{name}");
        let undone = agent.ask("undo", json!({})).await;
        assert_eq!((&undone["status"], &undone["pulled"]), (&json!("success"), &json!(1)), "{name}: {undone}");
        assert_eq!(all_files(project.path()), before, "{name}");
        let there = agent.eval(&format!("return {SHARED}:FindFirstChild('{name}') ~= nil")).await;
        assert_eq!(there, json!(true), "{name} is a person's");
        let again = line(&agent, name).await;
        assert!(again["reason"].as_str().expect("why").contains("made in Studio"), "{name}: {again}");

        let redone = agent.ask("undo", json!({ "change": undone["journal"] })).await;
        assert_eq!(redone["status"], "success", "{name}: {redone}");
        assert_eq!(all_files(project.path()), pulled, "{name}: byte for byte");
        let again = agent.ask("undo", json!({ "change": redone["journal"] })).await;
        assert_eq!(again["status"], "success", "{name}: {again}");
        assert_eq!(all_files(project.path()), before, "{name}");
        let gone = agent.call("undo", json!({ "change": receipt["journal"] })).await;
        assert!(gone.text.contains("already"), "{}", gone.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_a_pull_made_and_somebody_touched_since_stay() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    studio.run(MAKE).await.expect("made");
    let kit = "src/shared/Kit";
    let touched: [(&str, String, &[u8]); 4] = [
        ("Kit", format!("{kit}/Main/Util.luau"), b"return 'mine'\n"),
        ("Kit", format!("{kit}/Main/Util.luau"), b"return 2\r\n"),
        ("Kit", format!("{kit}/notes.txt"), b"mine"),
        ("Rig", "src/shared/Rig.rbxm".to_owned(), b"mine"),
    ];
    for (name, path, bytes) in touched {
        let receipt = pull(&agent, name).await;
        let pulled = all_files(project.path());
        save(project.path(), &path, std::str::from_utf8(bytes).expect("UTF-8"));
        let held = agent.ask("undo", json!({ "change": receipt["journal"] })).await;
        assert_eq!(
            (&held["status"], &held["unresolved"]),
            (&json!("fastfail_unresolved"), &json!(1)),
            "{path}: {held}"
        );
        let now = all_files(project.path());
        assert_eq!(now.get(&path).cloned().flatten().as_deref(), Some(bytes), "{path}");
        assert_eq!(now.len(), pulled.len() + usize::from(!pulled.contains_key(&path)), "{path}");
        let kept = pulled.get(&path).cloned().flatten();
        match kept {
            Some(kept) => write_bytes(&project.path().join(&path), &kept),
            None => delete(project.path(), &path),
        }
        let undone = agent.ask("undo", json!({ "change": receipt["journal"] })).await;
        assert_eq!(undone["status"], "success", "{path}: {undone}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a person is not the server")]
fn write_bytes(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_deleted_because_studio_lost_its_script_comes_back_byte_for_byte() {
    let project = demo();
    let text = "\u{feff}return {\r\n}\n";
    save(project.path(), "src/shared/Items/Hook.lua", text);
    save(project.path(), "src/shared/Items/Hook.meta.json", "{ \"attributes\": { \"sharp\": true } }");
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(true).await;
    let agent = server.agent();
    let before = all_files(project.path());
    let hook = format!("{SHARED}.Items:FindFirstChild('Hook')");
    studio.run(&format!("{hook}:Destroy()")).await.expect("deleted");
    let there = || project.path().join("src/shared/Items/Hook.lua").exists();
    until("the file follows", || async { !there() }).await;
    let undone = agent.ask("undo", json!({})).await;
    assert_eq!(undone["status"], "success", "{undone}");
    assert_eq!(all_files(project.path()), before);
    assert_eq!(agent.eval(&format!("return {hook}:GetAttribute('sharp')")).await, json!(true));
    let left = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    assert_eq!(left["total"], 0, "{left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_whose_file_a_person_deleted_comes_back_with_a_file_and_says_so() {
    let project = demo();
    let long = "word ".repeat(100);
    let model = json!({
        "className": "Model",
        "attributes": { "level": 3 },
        "children": [
            { "name": "Leg", "className": "Part", "properties": { "Transparency": 0.5 } },
            { "name": "Leg", "className": "Part" },
            { "name": "Sign", "className": "StringValue", "properties": { "Value": long } },
            { "name": "Code", "className": "ModuleScript", "properties": { "Source": "return 1" } },
        ],
    });
    save(project.path(), "src/shared/Rig.model.json", &model.to_string());
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    studio.run(&format!("{SHARED}.Rig.Sign:SetAttribute('mine', 'kept')")).await.expect("marked");
    let before = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    assert_eq!(before["total"], 0, "{before}");
    delete(project.path(), "src/shared/Rig.model.json");
    assert_eq!(agent.ask("sync", json!({})).await["removed"], 1);
    let told = agent.call("undo", json!({})).await;
    assert_eq!(told.structure["status"], "success", "{}", told.text);
    assert!(told.text.contains("Rig.rbxm") && told.text.contains("deleted"), "{}", told.text);
    let sign = format!("{SHARED}.Rig.Sign");
    assert_eq!(agent.eval(&format!("return {sign}.Value")).await, json!(long));
    assert_eq!(agent.eval(&format!("return {sign}:GetAttribute('mine')")).await, json!("kept"));
    assert_eq!(agent.eval(&format!("return #{SHARED}.Rig:GetChildren()")).await, json!(4));
    assert!(project.path().join("src/shared/Rig.rbxm").is_file());
    let left = agent.ask("sync", json!({})).await;
    assert_eq!(left["status"], "empty", "{left}");
    let again = agent.ask("undo", json!({ "change": told.structure["journal"] })).await;
    assert_eq!(again["status"], "success", "and that is taken back: {again}");
    assert_eq!(agent.eval(&format!("return {SHARED}:FindFirstChild('Rig') == nil")).await, json!(true));
    assert!(!project.path().join("src/shared/Rig.rbxm").exists());
}
