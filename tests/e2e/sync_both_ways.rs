//! Edits of both sides brought together: pulls, merges, removals and renames.

use serde_json::{Value, json};

use crate::support::{Agent, TestServer, delete, demo, save};

const CONFIG: &str = "src/shared/Config.luau";
const IN_STUDIO: &str = "game.ReplicatedStorage.Shared.Config";

fn read(project: &std::path::Path, path: &str) -> String {
    std::fs::read_to_string(project.join(path)).expect("a text")
}

/// The only change of a sync.
async fn only_change(agent: &Agent, args: Value) -> (Value, Value) {
    let receipt = agent.ask("sync", args).await;
    assert_eq!(receipt["total"], 1, "{receipt}");
    (receipt["changes"][0].clone(), receipt)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_in_studio_reaches_its_file_and_does_not_come_back() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    studio.run(&format!("{IN_STUDIO}.Source = 'return {{ lanternsToWin = 77 }}\\n'")).await.expect("typed");
    let (planned, _) = only_change(&agent, json!({ "mode": "dryrun" })).await;
    assert_eq!((&planned["direction"], &planned["result"]), (&json!("pull"), &json!("planned")));
    let (change, receipt) = only_change(&agent, json!({})).await;
    assert_eq!((&receipt["status"], &receipt["pulled"]), (&json!("success"), &json!(1)), "{receipt}");
    assert_eq!(change["diskHash"], change["studioHash"]);
    assert_eq!(read(project.path(), CONFIG), "return { lanternsToWin = 77 }\n");
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_different_lines_on_both_sides_are_merged_on_both_sides() {
    let project = demo();
    let lines = "local a = 1\r\nlocal b = 2\r\nlocal c = 3\r\nreturn a + b + c\r\n";
    save(project.path(), CONFIG, lines);
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    save(project.path(), CONFIG, &lines.replace("a = 1", "a = 10"));
    let typed = format!("{IN_STUDIO}.Source = string.gsub({IN_STUDIO}.Source, 'c = 3', 'c = 30')");
    studio.run(&typed).await.expect("typed");
    let (change, receipt) = only_change(&agent, json!({})).await;
    assert_eq!((&receipt["status"], &receipt["merged"]), (&json!("success"), &json!(1)), "{receipt}");
    assert_eq!(change["direction"], "merge");
    assert_eq!(read(project.path(), CONFIG), lines.replace("a = 1", "a = 10").replace("c = 3", "c = 30"));
    assert_eq!(agent.eval(&format!("return require({IN_STUDIO})")).await, json!(42));
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_the_same_line_are_a_conflict_that_shows_it() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    studio.run(&format!("{IN_STUDIO}.Source = 'return 1\\n'")).await.expect("typed");
    save(project.path(), CONFIG, "return 2\n");
    let (change, receipt) = only_change(&agent, json!({})).await;
    assert_eq!((&receipt["status"], &receipt["unresolved"]), (&json!("rejected"), &json!(1)), "{receipt}");
    assert_eq!(
        (&change["conflict"][0]["disk"], &change["conflict"][0]["studio"]),
        (&json!("return 2\n"), &json!("return 1\n"))
    );
    assert_eq!(read(project.path(), CONFIG), "return 2\n");
    assert_eq!(agent.eval(&format!("return {IN_STUDIO}.Source")).await, json!("return 1\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_settled_either_way_or_by_a_text_and_only_as_it_was_seen() {
    for (take, text, expected) in
        [("disk", None, "return 2\n"), ("studio", None, "return 1\n"), ("text", Some("return 3\n"), "return 3\n")]
    {
        let project = demo();
        let server = TestServer::start(project.path()).await;
        let studio = server.studio().await;
        let agent = server.agent();
        studio.run(&format!("{IN_STUDIO}.Source = 'return 1\\n'")).await.expect("typed");
        save(project.path(), CONFIG, "return 2\n");
        let (change, _) = only_change(&agent, json!({})).await;
        let mut wish = json!({ "id": change["id"], "take": take, "diskHash": change["diskHash"] });
        if let Some(text) = text {
            wish["text"] = json!(text);
        }
        let stale = agent.ask("resolve", wish.clone()).await;
        assert_eq!(stale["rejected"][0]["id"], change["id"], "without Studio's hash: {stale}");
        assert_eq!(read(project.path(), CONFIG), "return 2\n");
        wish["studioHash"] = change["studioHash"].clone();
        let receipt = agent.ask("resolve", wish).await;
        assert_eq!(receipt["status"], "success", "{take}: {receipt}");
        assert_eq!(read(project.path(), CONFIG), expected);
        assert_eq!(agent.eval(&format!("return {IN_STUDIO}.Source")).await, json!(expected));
        assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_conflict_holds_up_nothing_else() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    studio.run(&format!("{IN_STUDIO}.Source = 'return 1\\n'")).await.expect("typed");
    save(project.path(), CONFIG, "return 2\n");
    save(project.path(), "src/shared/Items/Rope.luau", "return { name = 'Rope', price = 41 }\n");
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!(receipt["status"], "partial", "{receipt}");
    assert_eq!((&receipt["pushed"], &receipt["unresolved"]), (&json!(1), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_file_is_removed_in_studio_and_a_renamed_one_renamed() {
    let project = demo();
    for name in ["One", "Two", "Three", "Four"] {
        save(project.path(), &format!("src/shared/Parts/{name}.luau"), &format!("return '{name}'\n"));
    }
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    studio.run("game.ReplicatedStorage.Shared.Parts.Two:SetAttribute('Mark', 7)").await.expect("marked");
    delete(project.path(), "src/shared/Parts/One.luau");
    delete(project.path(), "src/shared/Parts/Two.luau");
    save(project.path(), "src/shared/Parts/Zwei.luau", "return 'Two'\n");
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!(receipt["status"], "success", "{receipt}");
    assert_eq!((&receipt["removed"], &receipt["renamed"], &receipt["pushed"]), (&json!(1), &json!(1), &json!(0)));
    let names = "local names = {} for _, part in game.ReplicatedStorage.Shared.Parts:GetChildren() do
        table.insert(names, part.Name) end table.sort(names) return table.concat(names, ' ')";
    assert_eq!(agent.eval(names).await, json!("Four Three Zwei"));
    let mark = "return game.ReplicatedStorage.Shared.Parts.Zwei:GetAttribute('Mark')";
    assert_eq!(agent.eval(mark).await, json!(7), "it is the same instance");
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn c38_an_emptied_folder_removes_nothing_unasked() {
    let project = demo();
    for number in 0..4 {
        save(project.path(), &format!("src/shared/Parts/P{number}.luau"), &format!("return {number}\n"));
    }
    save(project.path(), "src/shared/Parts/init.meta.json", "{}");
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    for number in 0..4 {
        delete(project.path(), &format!("src/shared/Parts/P{number}.luau"));
    }
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["status"], &receipt["unresolved"]), (&json!("rejected"), &json!(4)), "{receipt}");
    let count = "return #game.ReplicatedStorage.Shared.Parts:GetChildren()";
    assert_eq!(agent.eval(count).await, json!(4));
    let id = receipt["changes"][0]["tempId"].clone();
    let receipt = agent.ask("sync", json!({ "overrides": [{ "id": id, "direction": "push" }] })).await;
    assert_eq!((&receipt["status"], &receipt["removed"]), (&json!("partial"), &json!(1)), "{receipt}");
    let receipt = agent.ask("sync", json!({ "allowRemovals": true })).await;
    assert_eq!((&receipt["status"], &receipt["removed"]), (&json!("success"), &json!(3)), "{receipt}");
    assert_eq!(agent.eval(count).await, json!(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_made_in_studio_becomes_a_file_when_asked() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    let make = "local new = Instance.new('ModuleScript') new.Name = 'Made' new.Source = 'return 1\\n'
        new.Parent = game.ReplicatedStorage.Shared";
    studio.run(make).await.expect("made");
    let (change, _) = only_change(&agent, json!({})).await;
    assert!(change["reason"].as_str().expect("a reason").contains("made in Studio"), "{change}");
    let wish =
        json!({ "overrides": [{ "id": change["tempId"], "direction": "pull", "studioHash": change["studioHash"] }] });
    let (change, receipt) = only_change(&agent, wish).await;
    assert_eq!(
        (&receipt["status"], &change["fsPath"]),
        (&json!("success"), &json!("src/shared/Made.luau")),
        "{receipt}"
    );
    assert_eq!(read(project.path(), "src/shared/Made.luau"), "return 1\n");
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_removed_in_studio_is_left_to_the_caller() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    studio.run(&format!("{IN_STUDIO}:Destroy()")).await.expect("removed");
    let (change, _) = only_change(&agent, json!({})).await;
    assert!(change["reason"].as_str().expect("a reason").contains("removed in Studio"), "{change}");
    let wish = json!({ "overrides": [{ "id": change["id"], "direction": "pull" }] });
    let receipt = agent.ask("sync", wish).await;
    assert_eq!((&receipt["status"], &receipt["pulled"]), (&json!("success"), &json!(1)), "{receipt}");
    assert!(!project.path().join(CONFIG).exists());
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_that_cannot_be_followed_are_named() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let told = agent.call("sync", json!({ "overrides": [{ "id": "x1", "direction": "up" }] })).await;
    assert!(told.is_error && told.text.contains("overrides[0].direction"), "{}", told.text);
    let told = agent.call("sync", json!({ "overrides": [{ "id": "y1", "direction": "push" }] })).await;
    assert!(told.is_error && told.text.contains("overrides[0].id"), "{}", told.text);
    let twice = json!([{ "id": "x1", "direction": "push" }, { "id": "x1", "direction": "pull" }]);
    let told = agent.call("sync", json!({ "overrides": twice })).await;
    assert!(told.is_error && told.text.contains("overrides[1].id"), "{}", told.text);
    save(project.path(), CONFIG, "return 2\n");
    let unknown = json!([{ "id": "x99", "direction": "pull" }]);
    let receipt = agent.ask("sync", json!({ "mode": "fastfail", "overrides": unknown })).await;
    assert_eq!((&receipt["status"], &receipt["rejected"][0]["id"]), (&json!("rejected"), &json!("x99")), "{receipt}");
    let receipt = agent.ask("sync", json!({ "overrides": unknown })).await;
    assert_eq!((&receipt["pushed"], &receipt["rejected"][0]["id"]), (&json!(1), &json!("x99")), "{receipt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_file_can_be_named() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let rope = "src/shared/Items/Rope.luau";
    save(project.path(), CONFIG, "return 2\n");
    delete(project.path(), rope);
    let planned = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    assert_eq!(planned["total"], 2, "the tree does not have it any more: {planned}");
    for wrong in ["src/shared/Items/Ropes.luau", "src/shared/Rope.luau", "src/shared/Items/Rope"] {
        let told = agent.call("sync", json!({ "paths": [rope, wrong] })).await;
        assert_eq!(told.is_error, wrong != "src/shared/Items/Rope", "{wrong}: {}", told.text);
    }
    let gone = "return game.ReplicatedStorage.Shared.Items:FindFirstChild('Rope') == nil";
    assert_eq!(agent.eval(gone).await, json!(true));
    let (left, _) = only_change(&agent, json!({ "mode": "dryrun" })).await;
    assert_eq!(left["fsPath"], CONFIG, "the rest was not asked for");
}
