//! Live mode, both ways: names that files can bear and such that they cannot.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Agent, TestServer, demo};

const CONFIG: &str = "src/shared/Config.luau";

async fn entries(agent: &Agent) -> Value {
    agent.ask("sync", json!({})).await["journal"].clone()
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
