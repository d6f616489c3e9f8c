//! What a person can take back.

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
