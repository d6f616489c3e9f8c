//! Which place a Studio is of.

use rojo_mcp::{state::StateFolder, store::Store};
use serde_json::json;

use crate::support::{TestServer, demo, save, until};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_agreed_with_a_place_goes_along_when_it_is_published() {
    let project = demo();
    let state = tempfile::tempdir().expect("a folder");
    let folder = StateFolder::below(state.path(), project.path()).expect("a state folder");
    let server = TestServer::start_with(project.path(), Store::open(&folder), 0).await;
    let studio = server.studio().await;
    let agent = server.agent();
    let name = || async { agent.ask("status", json!({})).await["studios"][0]["studio"].clone() };
    assert!(name().await.as_str().expect("a name").starts_with("anon:"));
    save(project.path(), "src/shared/Config.luau", "return { lanternsToWin = 4 }\n");
    assert_eq!(agent.ask("sync", json!({})).await["status"], "success");

    studio.run("game:SetPlaceId(77)").await.expect("published");
    until("it has its new name", || async { name().await == "place:77" }).await;
    server.until_live(1).await;
    let port = server.port;
    server.stop().await;

    save(project.path(), "src/shared/Config.luau", "return { lanternsToWin = 5 }\n");
    let server = TestServer::start_with(project.path(), Store::open(&folder), port).await;
    server.until_live(1).await;
    let receipt = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    assert_eq!((&receipt["total"], &receipt["changes"][0]["direction"]), (&json!(1), &json!("push")), "{receipt}");
}
