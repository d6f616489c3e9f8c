use std::{task::Poll, time::Duration};

use serde_json::json;

use super::*;
use crate::{
    core::{bridge::Ask, protocol::ServerFrame, targets::Target},
    studio::{link::Out, outbox::Inside},
};

/// A hub with a Studio whose frames are read by hand.
async fn hub() -> (tempfile::TempDir, Hub, Inside) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    #[expect(clippy::disallowed_methods, reason = "a person is not the server")]
    std::fs::write(folder.path().join("default.project.json"), r#"{"name":"Hub","tree":{"$className":"Folder"}}"#)
        .expect("a file can be written");
    let hub = Hub::start(HubConfig {
        session: ServeSession::start(folder.path()).expect("the project starts"),
        store: Store::in_memory(),
        version: crate::VERSION.to_owned(),
        official: watch::channel(0).1,
        shutdown: CancellationToken::new(),
    });
    let (link, (outbox, inside)) = (LinkId(7), outbox(CancellationToken::new()));
    hub.queue.send(Command::Open { link, outbox }).await.unwrap_or_else(|_| panic!("the owner lives"));
    let hello = json!({
        "type": "hello", "twoWaySync": false, "oneShotSync": true, "confirmationBehavior": "Never", "placeId": 11,
    });
    let frame = PluginFrame::parse(&hello.to_string());
    hub.queue.send(Command::Event(Event::Frame { link, frame })).await.unwrap_or_else(|_| panic!("the owner lives"));
    (folder, hub, inside)
}

fn code(text: &str) -> Call {
    let args = json!({ "command": text });
    let ask = Ask::Tool { name: "run_code", args, changes: true, target: Target::Edit };
    Call { studio: None, patience: Duration::from_secs(30), ask, operation: None }
}

/// The next request, as the plugin gets it.
async fn next_request(inside: &mut Inside) -> String {
    loop {
        let queued = inside.next().await.expect("the link is open");
        if let Out::Frame(frame) = &queued.out
            && let ServerFrame::Request(_) = &**frame
        {
            return serde_json::to_string(frame).expect("JSON");
        }
    }
}

/// One thread, so the owner sees nothing until both have happened.
#[tokio::test]
async fn a_call_that_was_taken_back_before_it_was_seen_is_never_sent() {
    let (_folder, hub, mut inside) = hub().await;
    {
        let mut call = std::pin::pin!(hub.call(code("return 'taken back'"), None));
        assert!(matches!(futures_util::poll!(call.as_mut()), Poll::Pending), "it waits for its outcome");
    }
    let wanted = hub.clone();
    tokio::spawn(async move { wanted.call(code("return 'wanted'"), None).await });
    let first = next_request(&mut inside).await;
    assert!(first.contains("'wanted'"), "{first}");
}
