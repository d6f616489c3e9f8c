//! Studio's output as an agent reads it.

use serde_json::{Value, json};

use crate::support::{TestServer, demo, until};

#[tokio::test(flavor = "multi_thread")]
async fn output_is_paged_counted_and_errors_name_their_file() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    let start = agent.ask("get_console_output", json!({})).await["next"].clone();
    studio
        .run(
            "for _ = 1, 3 do print('tick') end
             warn('careful')
             task.spawn(function() error('ReplicatedStorage.Shared.Config:3: boom', 0) end)",
        )
        .await
        .expect("it runs");
    let read = |args: Value| async move { agent.ask("get_console_output", args).await };
    let since = start.clone();
    until("the output has arrived", || async {
        read(json!({ "since": since, "level": "error" })).await["entries"]
            .as_array()
            .is_some_and(|lines| !lines.is_empty())
    })
    .await;
    let all = read(json!({ "since": start })).await;
    assert_eq!(all["entries"][0], json!({ "level": "output", "text": "tick", "count": 3 }), "{all}");
    assert_eq!(all["entries"][1]["level"], "warning");
    let error = &all["entries"][2];
    assert_eq!(error["level"], "error");
    assert_eq!(error["at"], "src/shared/Config.luau:3", "{error}");
    assert_eq!((&all["dropped"], &all["left"]), (&json!(0), &json!(0)));
    let one = read(json!({ "since": start, "limit": 1, "dedupe": false })).await;
    assert_eq!(one["entries"].as_array().map(Vec::len), Some(1));
    let rest = read(json!({ "since": one["next"], "dedupe": false })).await;
    assert_eq!(rest["entries"].as_array().map(Vec::len), Some(4), "{rest}");
    assert_eq!(read(json!({ "since": all["next"] })).await["entries"], json!([]));
    let told = agent.call("get_console_output", json!({ "limit": 0 })).await;
    assert!(told.is_error && told.text.contains("`limit`"), "{}", told.text);
}
