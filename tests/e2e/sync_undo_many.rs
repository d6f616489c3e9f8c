//! Undo of what is large or of many kinds: hundreds of instances, properties one by one, and who did
//! what.

use serde_json::{Value, json};

use crate::support::{Agent, TestServer, delete, demo, save};

const SHARED: &str = "game.ReplicatedStorage.Shared";

/// A model with so many parts and a script in it.
fn crowd(count: usize) -> String {
    let parts = (0..count).map(|at| json!({ "name": format!("Part{at}"), "className": "Part" }));
    let code = json!({ "name": "Code", "className": "ModuleScript", "properties": { "Source": "return 1" } });
    let children: Vec<Value> = parts.chain([code]).collect();
    json!({ "className": "Model", "children": children }).to_string()
}

async fn count(agent: &Agent) -> Value {
    agent.eval(&format!("local it = {SHARED}:FindFirstChild('Crowd') return it and #it:GetChildren() or 0")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_can_be_listed_is_removed_and_taken_back_by_its_digest() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    let file = "src/shared/Crowd.model.json";
    save(project.path(), file, &crowd(600));
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1);
    assert_eq!(count(&agent).await, json!(601));

    // Somebody has changed something deep in it: not a thing is removed.
    studio.run(&format!("{SHARED}.Crowd.Code.Source = 'return 2'")).await.expect("typed");
    let held = agent.ask("undo", json!({})).await;
    assert_eq!((&held["status"], &held["unresolved"]), (&json!("fastfail_unresolved"), &json!(1)), "{held}");
    studio.run(&format!("{SHARED}.Crowd.Code.Source = 'return 1'")).await.expect("typed");
    let undone = agent.ask("undo", json!({})).await;
    assert_eq!((&undone["status"], &undone["removed"]), (&json!("success"), &json!(1)), "{undone}");
    assert_eq!(count(&agent).await, json!(0));

    let redone = agent.ask("undo", json!({ "change": undone["journal"] })).await;
    assert_eq!(redone["status"], "success", "{redone}");
    assert_eq!(count(&agent).await, json!(601));
    delete(project.path(), file);
    studio.run(&format!("Instance.new('Part', {SHARED}.Crowd.Part7)")).await.expect("made");
    let held = agent.ask("sync", json!({ "allowRemovals": true })).await;
    assert_eq!((&held["removed"], &held["unresolved"]), (&json!(0), &json!(1)), "{held}");
    studio.run(&format!("{SHARED}.Crowd.Part7:ClearAllChildren()")).await.expect("cleared");
    let removed = agent.ask("sync", json!({ "allowRemovals": true })).await;
    assert_eq!((&removed["status"], &removed["removed"]), (&json!("success"), &json!(1)), "{removed}");
    assert_eq!(count(&agent).await, json!(0));
    let undone = agent.ask("undo", json!({})).await;
    assert_eq!(undone["status"], "success", "{undone}");
    assert_eq!(count(&agent).await, json!(601));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_models_properties_those_go_back_that_are_as_the_sync_left_them() {
    let project = demo();
    let model = |size: f64, level: i32, name: &str| {
        json!({ "className": "Part", "properties": { "Transparency": size }, "attributes": { "level": level, "kind": name } })
            .to_string()
    };
    save(project.path(), "src/shared/Lamp.model.json", &model(0.25, 1, "old"));
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    save(project.path(), "src/shared/Lamp.model.json", &model(0.5, 2, "new"));
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1);
    studio.run(&format!("{SHARED}.Lamp.Transparency = 0.75")).await.expect("changed");
    let held = agent.ask("undo", json!({})).await;
    assert_eq!(held["status"], "fastfail_unresolved", "{held}");
    let told = agent.call("undo", json!({ "partial": true })).await;
    assert_eq!(told.structure["status"], "partial", "{}", told.text);
    assert!(told.text.contains("Transparency: it was changed since"), "{}", told.text);
    let lamp = "local it = game.ReplicatedStorage.Shared.Lamp
        return `{it.Transparency} {it:GetAttribute('level')} {it:GetAttribute('kind')}`";
    assert_eq!(agent.eval(lamp).await, json!("0.75 1 old"));
}
