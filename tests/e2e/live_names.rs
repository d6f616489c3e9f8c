//! Live mode, both ways: names that files can bear and such that they cannot.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Agent, TestServer, demo, until};

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
