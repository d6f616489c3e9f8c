//! More than one frame can hold.

use serde_json::json;

use crate::support::{TestServer, demo, save, until};

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

/// An agent's client cuts what is longer than about 25,000 tokens, or refuses it.
const MOST: usize = 40_000;

#[tokio::test(flavor = "multi_thread")]
async fn c77_no_answer_floods_an_agent_and_what_is_left_out_can_be_had() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let text: String = (0..8_000).map(|line| format!("local line{line} = '{}'\n", "-".repeat(30))).collect();
    save(project.path(), "src/shared/Config.luau", &text);
    assert_eq!(agent.ask("sync", json!({})).await["status"], "success");
    let (mut read, mut next) = (String::new(), json!(1));
    while !next.is_null() {
        let told =
            agent.call("get_script", json!({ "fsPath": "src/shared/Config.luau", "lines": [next, 8_000] })).await;
        assert!(told.text.len() < MOST, "{} characters", told.text.len());
        assert_eq!(told.structure["diskHash"], told.structure["studioHash"], "of the whole text");
        assert!(!told.structure["next"].is_null() || told.text.contains("truncated"), "it says so");
        read.push_str(told.structure["source"].as_str().expect("a text"));
        next = told.structure["next"].clone();
    }
    assert!(read == text, "the pages are the whole");
    for code in [
        "return string.rep('x', 3e6)",
        "local all = {} for i = 1, 1e5 do all[i] = i end return all",
        "for i = 1, 5e4 do print('line ' .. i) end",
        "print(string.rep('x', 3e6))",
    ] {
        let told = agent.call("run_code", json!({ "command": code })).await;
        assert!(told.text.len() < MOST, "{code}: {} characters", told.text.len());
        assert!(told.structure.to_string().len() < 2 * MOST, "{code}: {}", told.structure.to_string().len());
    }
    let told = agent.call("get_console_output", json!({ "limit": 1000 })).await;
    assert!(told.text.len() < MOST, "{} characters", told.text.len());
}
