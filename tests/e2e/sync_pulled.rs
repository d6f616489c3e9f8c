//! What was made in Studio, pulled into files by an override.

use serde_json::{Value, json};

use crate::support::{Agent, TestServer, delete, demo, save};

/// The line of what only Studio has, by its name.
async fn made(agent: &Agent, name: &str) -> Value {
    let found = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    let lines = found["changes"].as_array().expect("a list");
    let line = lines.iter().find(|line| line["path"].as_str().is_some_and(|path| path.ends_with(name)));
    line.unwrap_or_else(|| panic!("{name} is not in {found}")).clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_made_in_studio_is_pulled_into_files_that_rojo_reads_back() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    studio
        .run(
            "local shared = game.ReplicatedStorage.Shared \
             local rig = Instance.new('Model') rig.Name = 'Rig' rig:SetAttribute('level', 3) \
             for index = 1, 2 do local part = Instance.new('Part') part.Name = 'Leg' part.Transparency = index / 4 \
             part.Parent = rig end \
             rig.PrimaryPart = rig.Leg rig.Leg:AddTag('hot') \
             local code = Instance.new('Script') code.Name = 'Code' code.Source = 'print(1)' code.Parent = rig \
             rig.Parent = shared \
             local kit = Instance.new('Folder') kit.Name = 'Kit' \
             local main = Instance.new('ModuleScript') main.Name = 'Main' main.Source = 'return 1' main.Parent = kit \
             local util = Instance.new('ModuleScript') util.Name = 'Util' util.Source = 'return 2' \
             util:SetAttribute('on', true) util.Parent = main kit.Parent = shared",
        )
        .await
        .expect("made");
    for name in ["Rig", "Kit"] {
        let line = made(&agent, name).await;
        assert_eq!(line["result"], "unresolved", "{line}");
        let pull = json!({ "overrides": [{ "id": line["tempId"], "direction": "pull" }] });
        let receipt = agent.ask("sync", pull).await;
        assert_eq!((&receipt["pulled"], &receipt["failed"]), (&json!(1), &json!(0)), "{receipt}");
    }
    let there = |path: &str| project.path().join("src/shared").join(path).is_file();
    assert!(there("Rig.rbxm") && there("Kit/Main/init.luau"), "the files are there");
    assert!(there("Kit/Main/Util.luau") && there("Kit/Main/Util.meta.json"), "and what lies deeper");
    let equal = agent.ask("sync", json!({})).await;
    assert_eq!(equal["status"], "empty", "both sides are the same: {equal}");

    save(project.path(), "src/shared/Kit/Main/Util.luau", "return 3\n");
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1, "what was pulled can be edited");
    delete(project.path(), "src/shared/Rig.rbxm");
    let removed = agent.ask("sync", json!({ "allowRemovals": true })).await;
    assert_eq!(removed["unresolved"], 0, "{removed}");
    assert_eq!(removed["removed"], 1, "and goes with its file: {removed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_file_can_stand_for_is_not_pulled_and_nothing_is_written() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    studio
        .run(
            "local part = Instance.new('Part') part.Name = 'a/b' part.Parent = game.ReplicatedStorage.Shared \
             local other = Instance.new('Part') other.Name = 'Config' other.Parent = game.ReplicatedStorage.Shared",
        )
        .await
        .expect("made");
    let list = || std::fs::read_dir(project.path().join("src/shared")).expect("listed").count();
    let before = list();
    for (name, why) in [("a/b", "no file can be named"), ("Config", "exists already")] {
        let found = agent.ask("sync", json!({ "mode": "dryrun" })).await;
        let lines = found["changes"].as_array().expect("a list");
        let line = lines.iter().find(|line| line["path"] == format!("ReplicatedStorage.Shared.{name}")).expect("it");
        let pull = json!({ "overrides": [{ "id": line["tempId"], "direction": "pull" }] });
        let receipt = agent.ask("sync", pull).await;
        assert_eq!((&receipt["pulled"], &receipt["failed"]), (&json!(0), &json!(0)), "{receipt}");
        assert_eq!(receipt["journal"], Value::Null, "nothing was begun: {receipt}");
        assert!(receipt.to_string().contains(why), "{why}: {receipt}");
    }
    assert_eq!(list(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pulled_model_that_refers_to_itself_is_equal_at_once() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    let rig = "local rig = Instance.new('Model') rig.Name = 'Rig' local part = Instance.new('Part') part.Parent = rig \
               rig.PrimaryPart = part rig.Parent = game.ReplicatedStorage.Shared";
    studio.run(rig).await.expect("made");
    let line = made(&agent, "Rig").await;
    let pull = json!({ "overrides": [{ "id": line["tempId"], "direction": "pull" }] });
    assert_eq!(agent.ask("sync", pull).await["pulled"], 1);
    let after = agent.ask("sync", json!({})).await;
    assert_eq!(after["status"], "empty", "{after}");
}

#[tokio::test(flavor = "multi_thread")]
async fn c44_a_read_only_file_is_named_and_the_others_are_pulled() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    let (config, money) = ("src/shared/Config.luau", "src/shared/Money.luau");
    let text = |path: &str| std::fs::read_to_string(project.path().join(path)).expect("text");
    let before = text(config);
    let lock = |locked| {
        let mut permissions = std::fs::metadata(project.path().join(config)).expect("it is there").permissions();
        permissions.set_readonly(locked);
        std::fs::set_permissions(project.path().join(config), permissions).expect("it is ours");
    };
    lock(true);
    let typed = "local shared = game.ReplicatedStorage.Shared \
                 shared.Config.Source = 'return 1\\n' shared.Money.Source = 'return 2\\n'";
    studio.run(typed).await.expect("typed");
    for pulled in [1, 0] {
        let receipt = agent.ask("sync", json!({})).await;
        assert_eq!((&receipt["pulled"], &receipt["unresolved"]), (&json!(pulled), &json!(1)), "{receipt}");
        let changes = receipt["changes"].as_array().expect("a list");
        let line = changes.iter().find(|line| line["fsPath"] == config).expect("it is listed");
        assert!(line["reason"].as_str().is_some_and(|reason| reason.contains("read-only")), "{line}");
        assert_eq!((text(config), text(money)), (before.clone(), "return 2\n".to_owned()));
    }
    let script = agent.ask("get_script", json!({ "fsPath": config })).await;
    assert_eq!(script["source"], "return 1\n", "Studio keeps it: {script}");
    assert_ne!(script["verdict"], "equal", "and the tree does not claim that the file has it: {script}");
    lock(false);
    assert_eq!(agent.ask("sync", json!({})).await["pulled"], 1, "once it may be written, it is");
    assert_eq!(text(config), "return 1\n");
}
