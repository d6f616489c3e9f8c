//! More than one frame can hold.

use serde_json::json;

use crate::support::{TestServer, demo, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_differs_in_more_than_a_frame_holds_is_loaded_and_compared() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    // Each fact repeats the name in its path: some megabytes in all.
    studio
        .run(
            "for number = 1, 1500 do
                 local extra = Instance.new('Folder')
                 extra.Name = `{string.rep('x', 500)}{number}`
                 extra.Parent = game.ReplicatedStorage.Shared
             end",
        )
        .await
        .expect("made");
    let receipt = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    assert_eq!(receipt["total"], 1500, "{}", receipt["message"]);
    studio.reload_plugin().await;
    until("the new plugin has compared it all", || async {
        let told = agent.call("sync", json!({ "mode": "dryrun" })).await;
        (&told.structure["total"], &told.structure["truncated"]) == (&json!(1500), &json!(true))
    })
    .await;
}
