//! Files to Studio, asked for by an agent.

use serde_json::json;

use crate::support::{TestServer, demo, save};

const CONFIG: &str = "src/shared/Config.luau";
const LANTERNS: &str = "return require(game.ReplicatedStorage.Shared.Config).lanternsToWin";

#[tokio::test(flavor = "multi_thread")]
async fn a_save_made_just_before_the_call_is_in_the_sync() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    assert_eq!(agent.eval(LANTERNS).await, json!(5));
    for lanterns in 6..16 {
        save(project.path(), CONFIG, &format!("return {{ roundSeconds = 90, lanternsToWin = {lanterns} }}\n"));
        let receipt = agent.ask("sync", json!({})).await;
        assert_eq!(receipt["status"], "success", "{receipt}");
        assert_eq!(receipt["pushed"], 1);
        let change = &receipt["changes"][0];
        assert_eq!(change["fsPath"], CONFIG);
        assert_eq!(change["path"], "ReplicatedStorage.Shared.Config");
        assert_eq!(change["result"], "done");
        assert_eq!(change["diskHash"], change["studioHash"]);
        assert_eq!(agent.eval(LANTERNS).await, json!(lanterns));
    }
    let again = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    assert_eq!(again["status"], "dryrun");
    assert_eq!(again["total"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_changes_nothing_and_the_real_one_does_what_it_said() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    save(project.path(), CONFIG, "return { lanternsToWin = 1 }\n");
    let planned = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    assert_eq!(planned["changes"][0]["result"], "planned", "{planned}");
    assert_eq!(agent.eval(LANTERNS).await, json!(5));
    let done = agent.ask("sync", json!({ "mode": "fastfail" })).await;
    assert_eq!(done["changes"][0]["result"], "done", "{done}");
    assert_eq!(done["changes"][0]["diskHash"], planned["changes"][0]["diskHash"]);
    assert_eq!(agent.eval(LANTERNS).await, json!(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_scripts_and_folders_are_made_in_studio() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    save(project.path(), "src/shared/Maps/Forest.luau", "return { trees = 12 }\n");
    save(project.path(), "src/shared/Maps/Deep/init.luau", "return require(script.Cave)\n");
    save(project.path(), "src/shared/Maps/Deep/Cave.luau", "return 'cave'\n");
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!(receipt["status"], "success", "{receipt}");
    assert_eq!(agent.eval("return require(game.ReplicatedStorage.Shared.Maps.Forest).trees").await, json!(12));
    assert_eq!(agent.eval("return require(game.ReplicatedStorage.Shared.Maps.Deep)").await, json!("cave"));
    assert_eq!(agent.ask("sync", json!({})).await["status"], "empty");

    save(project.path(), "src/shared/Maps/Deep/Cave.luau", "return 'deeper'\n");
    assert_eq!(agent.ask("sync", json!({})).await["pushed"], 1, "what was made can be edited");
    assert_eq!(agent.eval("return require(game.ReplicatedStorage.Shared.Maps.Deep)").await, json!("deeper"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_changed_in_studio_is_never_overwritten() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    studio.run("game.ReplicatedStorage.Shared.Config.Source = 'return { lanternsToWin = 99 }'").await.expect("typed");
    save(project.path(), CONFIG, "return { lanternsToWin = 1 }\n");
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!(receipt["status"], "rejected", "{receipt}");
    assert_eq!(receipt["changes"][0]["direction"], "unresolved");
    assert_eq!(agent.eval(LANTERNS).await, json!(99));
    let script = agent.ask("get_script", json!({ "fsPath": CONFIG })).await;
    assert_eq!(script["source"], "return { lanternsToWin = 99 }");
    assert_eq!(script["verdict"], "both_changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_unresolved_script_does_not_block_a_sync_of_others_by_path() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    studio.run("game.ReplicatedStorage.Shared.Config.Source = '-- mine'").await.expect("typed");
    save(project.path(), CONFIG, "return { lanternsToWin = 1 }\n");
    save(project.path(), "src/shared/Items/Rope.luau", "return { name = 'Rope', price = 41 }\n");
    assert_eq!(agent.ask("sync", json!({ "mode": "fastfail" })).await["status"], "fastfail_unresolved");
    let receipt = agent.ask("sync", json!({ "paths": ["src/shared/Items"] })).await;
    assert_eq!(receipt["status"], "success", "{receipt}");
    assert_eq!(receipt["pushed"], 1);
    assert_eq!(agent.eval("return require(game.ReplicatedStorage.Shared.Items).Rope.price").await, json!(41));
}

#[tokio::test(flavor = "multi_thread")]
async fn c38_what_only_studio_has_is_reported_and_left_alone() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    studio
        .run("local lamp = Instance.new('Folder') lamp.Name = 'Lamp' lamp.Parent = game.ReplicatedStorage.Shared")
        .await
        .expect("made");
    for mode in ["dryrun", "standard", "fastfail", "manual"] {
        let receipt = agent.ask("sync", json!({ "mode": mode })).await;
        assert_eq!(receipt["unresolved"], 1, "{mode}: {receipt}");
        assert_eq!(receipt["changes"][0]["patchType"], "Remove");
        assert_eq!(receipt["pushed"], 0);
    }
    assert_eq!(agent.eval("return game.ReplicatedStorage.Shared.Lamp.ClassName").await, json!("Folder"));
}

#[tokio::test(flavor = "multi_thread")]
async fn c47_every_escape_passes_unchanged_through_every_hop() {
    let text = "local a = \"\\\\n\" -- \\n \u{1F600} \u{2028}\nlocal b = '\\\"' .. [==[ ]] ]==]\nreturn \"%d+\\\\.%d\" .. \"C:\\\\Users\\\\x\"\n";
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    save(project.path(), CONFIG, text);
    assert_eq!(agent.ask("sync", json!({})).await["status"], "success");
    let script = agent.ask("get_script", json!({ "path": "game.ReplicatedStorage.Shared.Config" })).await;
    assert_eq!(script["source"], text);
    assert_eq!(script["verdict"], "equal");
    assert_eq!(agent.eval("return game.ReplicatedStorage.Shared.Config.Source").await, json!(text));
}

#[tokio::test(flavor = "multi_thread")]
async fn c48_a_script_of_any_size_arrives_whole() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    for bytes in [199_999, 200_001, 1_200_000] {
        let text = format!("return #[[{}]]\n", "x".repeat(bytes));
        save(project.path(), CONFIG, &text);
        let receipt = agent.ask("sync", json!({})).await;
        assert_eq!(receipt["status"], "success", "{bytes}: {receipt}");
        assert_eq!(agent.eval("return #game.ReplicatedStorage.Shared.Config.Source").await, json!(text.len()));
    }
    let part = agent.ask("get_script", json!({ "fsPath": CONFIG })).await;
    assert_eq!(part["truncated"], false, "one line is never cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn c50_nothing_of_ours_stays_in_the_place_but_its_name() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    save(project.path(), CONFIG, "return {}\n");
    save(project.path(), "src/shared/New.luau", "return {}\n");
    assert_eq!(agent.ask("sync", json!({})).await["status"], "success");
    let marks = studio
        .run(
            "local found = {}
             for _, instance in game:GetDescendants() do
                 for name in instance:GetAttributes() do
                     if not (instance.Name == 'Hud' and name == 'Layer') then
                         table.insert(found, instance:GetFullName() .. ':' .. name)
                     end
                 end
                 for _, tag in instance:GetTags() do
                     table.insert(found, instance:GetFullName() .. '#' .. tag)
                 end
             end
             return found",
        )
        .await
        .expect("a scan");
    assert_eq!(marks, vec![json!(["ServerStorage:RojoMcpPlace"])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn c48_a_script_that_no_frame_can_carry_fails_by_name_and_the_rest_goes_on() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    save(project.path(), "src/server/Services/Economy.luau", "return {}\n");
    save(project.path(), "src/shared/Money.luau", &format!("return [[{}]]\n", "x".repeat(17 << 20)));
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("partial"), &json!(1)), "{receipt}");
    let changes = receipt["changes"].as_array().expect("a list");
    let large = changes.iter().find(|change| change["fsPath"] == "src/shared/Money.luau").expect("it is named");
    assert_eq!(large["result"], "failed", "{large}");
    assert!(large["reason"].as_str().expect("a text").contains("make it smaller"), "{large}");
    assert_eq!(
        agent.eval("return game.ServerScriptService.Server.Services.Economy.Source").await,
        json!("return {}\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_names_what_it_could_not_compare() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    save(project.path(), "src/shared/Broken.meta.json", "{");
    save(project.path(), "src/shared/Broken.luau", "return 1\n");
    save(project.path(), "src/shared/Marked.luau", "return 1\n");
    save(project.path(), "src/shared/Marked.meta.json", "{\"attributes\": {\"Rank\": 1}}");
    let receipt = agent.ask("sync", json!({ "paths": ["src/shared/Marked.luau"] })).await;
    assert!(receipt["problems"][0].as_str().expect("a text").contains("Broken.meta.json"), "{receipt}");
    let change = &receipt["changes"][0];
    assert_eq!(change["result"], "done", "{receipt}");
    assert_eq!(agent.eval("return game.ReplicatedStorage.Shared.Marked:GetAttribute('Rank')").await, json!(1));
    let told = agent.call("sync", json!({ "paths": ["src/shared/Markd.luau"] })).await;
    assert!(told.is_error && told.text.contains("Markd"), "{}", told.text);
}
