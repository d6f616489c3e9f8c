//! What a person can take back.

use rojo_mcp::store::Store;
use serde_json::json;

use crate::support::{TestServer, demo, save};

/// How many lanterns win, and whether the new module is there.
const STATE: &str = r"
    local shared = game.ReplicatedStorage.Shared
    local lanterns = string.match(shared.Config.Source, 'lanternsToWin = (%d+)')
    return `{lanterns} {shared:FindFirstChild('Maps') ~= nil}`
";

#[tokio::test(flavor = "multi_thread")]
async fn one_undo_takes_a_whole_sync_back() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    save(project.path(), "src/shared/Config.luau", "return { roundSeconds = 90, lanternsToWin = 8 }\n");
    save(project.path(), "src/shared/Maps/Forest.luau", "return { trees = 12 }\n");
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!(receipt["status"], "success", "{receipt}");
    assert_eq!(studio.run(STATE).await, Ok(vec![json!("8 true")]));

    let history = "game:GetService('ChangeHistoryService')";
    studio.run(&format!("{history}:Undo()")).await.expect("it can be undone");
    assert_eq!(studio.run(STATE).await, Ok(vec![json!("5 false")]));
    let can = studio.run(&format!("return ({history}:GetCanUndo())")).await;
    assert_eq!(can, Ok(vec![json!(false)]), "it was one action");
    studio.run(&format!("{history}:Redo()")).await.expect("it can be done again");
    assert_eq!(studio.run(STATE).await, Ok(vec![json!("8 true")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_of_deleted_files_that_did_nothing_is_in_no_doubt() {
    let project = demo();
    let store = Store::in_memory();
    let entry = json!({ "place": "files", "what": "an entry of another version" });
    let id = store.begin(&entry, &[]).expect("kept");
    let server = TestServer::start_with(project.path(), store, 0).await;
    let undo = json!({ "change": id, "operationId": "once" });
    let first = server.agent().call("undo", undo.clone()).await;
    assert!(first.is_error && first.text.contains("malformed"), "{}", first.text);
    let again = server.agent().call("undo", undo).await;
    assert_eq!(again.structure, first.structure, "nothing was done, so it is tried again");
    let call = server.agent().ask("get_call", json!({ "id": "once" })).await;
    assert_eq!(call["state"], "never_ran", "{call}");
}
