//! Syncs of one Studio that are called at the same time.

use serde_json::json;

use crate::support::{TestServer, demo, save};

const CALLERS: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn syncs_at_once_do_each_change_once_and_list_nothing_as_failed() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    for round in 0..3 {
        for file in 0..CALLERS {
            save(project.path(), &format!("src/shared/New{file}.luau"), &format!("return {round}{file}\n"));
        }
        let calls: Vec<_> =
            (0..CALLERS).map(|_| tokio::spawn(async move { agent.ask("sync", json!({})).await })).collect();
        let mut pushed = 0;
        for call in calls {
            let receipt = call.await.expect("no panic");
            let status = receipt["status"].as_str().expect("a status");
            assert!(["success", "empty"].contains(&status), "{receipt}");
            pushed += receipt["pushed"].as_u64().unwrap_or(0);
        }
        assert_eq!(pushed, CALLERS as u64, "each file once");
    }
}
