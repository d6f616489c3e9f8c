//! Frames that are wrong: whose they are, and which field it is.

use rojo_mcp::core::protocol::{Hello, MAX_FRAME_BYTES, PluginFrame};
use serde_json::{Value, json};

/// `frame` cannot be read; what is said about it and the request it was about.
fn wrong(frame: &str) -> (String, Option<String>) {
    let error = PluginFrame::parse(frame).expect_err(frame);
    (error.to_string(), error.request_id.map(|id| id.to_string()))
}

#[test]
fn a_frame_over_the_limit_is_an_error_of_its_request_that_names_both_sizes() {
    let room = MAX_FRAME_BYTES - r#"{"requestId":"a","status":"success","response":""}"#.len();
    let frame = |size: usize| format!(r#"{{"requestId":"a","status":"success","response":"{}"}}"#, "x".repeat(size));
    assert!(PluginFrame::parse(&frame(room)).is_ok(), "exactly the limit");
    let (detail, about) = wrong(&frame(room + 1));
    assert_eq!(about.as_deref(), Some("a"));
    assert_eq!(detail, format!("the frame is {} bytes and the limit is {MAX_FRAME_BYTES}", MAX_FRAME_BYTES + 1));
}

#[test]
fn what_is_not_json_is_about_the_request_that_it_names() {
    let cases = [
        ("", None),
        ("nan", None),
        ("{", None),
        (r#"{"requestId":"a","status":"success","response":nan}"#, Some("a")),
        (r#"{"status":"success","response":-inf,"requestId" : "a"}"#, Some("a")),
        (r#"{"response":{"requestId":"b"},"requestId":"a","x":nan}"#, Some("a")),
        (r#"{"response":[{"requestId":"b"}],"x":nan}"#, None),
        (r#"{"response":"\"requestId\":\"b\"","x":nan,"requestId":"a"}"#, Some("a")),
        (r#"{"response":"\\","requestId":"a","x":nan}"#, Some("a")),
        (r#"{"response":"requestId","requestId":"a","x":nan}"#, Some("a")),
        (r#"{"requestId":5,"x":nan}"#, None),
        (r#"{"requestId":"a"#, None),
        (r#"{"requestId":"a","x":"cut off in the mid"#, Some("a")),
        ("{\"requestId\":\"a\",\"response\":\"\u{1}\"}", Some("a")),
        ("]]}\u{1f600}{\"requestId\":\"a\"", None),
    ];
    for (frame, request) in cases {
        let (detail, about) = wrong(frame);
        assert!(detail.contains("not JSON"), "{frame}: {detail}");
        assert_eq!(about.as_deref(), request, "{frame}");
    }
    let long = format!(r#"{{"requestId":"{}","x":nan}}"#, "a".repeat(65));
    assert_eq!(wrong(&long).1, None, "an id of ours is short");
}

#[test]
fn what_is_no_object_is_no_frame() {
    for frame in ["[]", "null", "7", "\"hello\"", "[{\"requestId\":\"a\"}]"] {
        assert_eq!(wrong(frame), ("a frame must be a JSON object".to_owned(), None));
    }
}

#[test]
fn a_wrong_field_is_named() {
    let fact = json!({"kind": "gone", "path": "p", "className": "Script"});
    let cases = [
        ("requestId", json!({"requestId": 5, "status": "success"})),
        ("requestId", json!({})),
        ("requestId", json!({"status": "success"})),
        ("status", json!({"requestId": "a"})),
        ("status", json!({"requestId": "a", "status": ["success"]})),
        ("type", json!({"type": 5, "requestId": "a"})),
        ("type", json!({"type": [], "requestId": "a"})),
        ("message", json!({"type": "roblox_log", "level": 1})),
        ("level", json!({"type": "roblox_log", "message": "x", "level": -1})),
        ("level", json!({"type": "roblox_log", "message": "x", "level": "warn"})),
        ("requestId", json!({"type": "cancelled"})),
        ("requestId", json!({"type": "stillRunning", "requestId": {}})),
        ("part", json!({"type": "taken"})),
        ("part", json!({"type": "taken", "part": 1.5})),
        ("part", json!({"type": "taken", "part": 4_294_967_296_u64})),
        ("treeId", json!({"type": "treeReady", "cursor": 1})),
        ("cursor", json!({"type": "treeReady", "treeId": "t", "cursor": "7"})),
        ("facts", json!({"type": "treeReady", "treeId": "t", "cursor": 7, "facts": {"a": 1}})),
        ("facts", json!({"type": "treeReady", "treeId": "t", "cursor": 7, "facts": [fact]})),
        ("seq", json!({"type": "edit", "nodes": []})),
        ("nodes", json!({"type": "edit", "seq": 1, "nodes": ["2"]})),
        ("removed", json!({"type": "edit", "seq": 1, "removed": 2})),
        ("progress", json!({"type": "progress", "requestId": "a"})),
        ("total", json!({"type": "progress", "requestId": "a", "progress": 1, "total": "ten"})),
        ("proofs", json!({"type": "proof"})),
        ("proofs", json!({"type": "proof", "proofs": [5]})),
        ("code", json!({"type": "pair", "code": 123_456, "hash": "ab"})),
        ("hash", json!({"type": "pair", "code": "123456"})),
        ("reason", json!({"type": "bye", "reason": 5})),
    ];
    for (field, frame) in cases {
        let (detail, _) = wrong(&frame.to_string());
        assert!(detail.contains(&format!("`{field}`")), "{frame}: {detail}");
    }
}

#[test]
fn a_wrong_field_is_an_error_of_its_request() {
    for frame in [
        json!({"type": "progress", "requestId": "a"}),
        json!({"type": 5, "requestId": "a"}),
        json!({"requestId": "a", "status": 5}),
    ] {
        assert_eq!(wrong(&frame.to_string()).1.as_deref(), Some("a"), "{frame}");
    }
}

fn hello(more: &[(&str, Value)]) -> Value {
    let mut frame = json!({
        "type": "hello", "twoWaySync": false, "oneShotSync": true, "confirmationBehavior": "Never", "placeId": 11,
        "protocol": 1, "pluginVersion": "0.1.0", "sessionId": "s", "instanceId": "place:11", "role": "edit",
    });
    for (field, value) in more {
        frame[*field] = value.clone();
    }
    frame
}

fn read(frame: &Value) -> Hello {
    match PluginFrame::parse(&frame.to_string()) {
        Ok(PluginFrame::Hello(hello)) => *hello,
        other => panic!("{frame} is not read as a hello: {other:?}"),
    }
}

#[test]
fn a_hello_with_a_wrong_level_1_field_is_refused_and_not_taken_for_level_0() {
    assert!(read(&hello(&[])).level1.is_some());
    let wrong_fields = [
        ("protocol", json!("1")),
        ("protocol", json!(-1)),
        ("protocol", json!([])),
        ("protocol", json!(false)),
        ("pluginVersion", json!(1)),
        ("pluginVersion", Value::Null),
        ("sessionId", Value::Null),
        ("instanceId", json!(11)),
        ("role", json!("Edit")),
        ("placeName", json!(7)),
        ("gameId", json!(0.5)),
        ("isRunning", json!("no")),
        ("otherEditors", json!(-1)),
        ("tools", json!("run_code")),
        ("serverId", json!(1)),
        ("lastN", json!(-1)),
        ("cursor", json!("7")),
        ("inFlight", json!([1])),
        ("pending", json!({"a": 1})),
    ];
    for (field, value) in wrong_fields {
        let (detail, _) = wrong(&hello(&[(field, value)]).to_string());
        assert!(detail.contains(&format!("`{field}`")), "{field}: {detail}");
    }
}

#[test]
fn only_a_hello_without_protocol_is_level_0() {
    let mut frame = hello(&[]);
    frame.as_object_mut().expect("an object").remove("protocol");
    assert_eq!(read(&frame).level1, None);
    assert_eq!(read(&hello(&[("protocol", Value::Null)])).level1, None, "null is absent");
}

#[test]
fn a_place_id_is_a_whole_number_however_it_is_written() {
    for (text, place) in [("0", 0), ("11.0", 11), ("1e14", 100_000_000_000_000), ("9007199254740992", 1 << 53)] {
        let frame = hello(&[]).to_string().replace("\"placeId\":11", &format!("\"placeId\":{text}"));
        match PluginFrame::parse(&frame) {
            Ok(PluginFrame::Hello(hello)) => assert_eq!(hello.place_id, place),
            other => panic!("{text}: {other:?}"),
        }
    }
    for text in ["-1", "0.5", "1e17", "\"11\"", "null", "true"] {
        let frame = hello(&[]).to_string().replace("\"placeId\":11", &format!("\"placeId\":{text}"));
        assert!(wrong(&frame).0.contains("`placeId`"), "{text}");
    }
}

#[test]
fn an_empty_list_is_taken_for_an_empty_object_where_objects_are_read() {
    let PluginFrame::Result(result) =
        PluginFrame::parse(r#"{"requestId":"a","status":"success","response":[]}"#).expect("a result")
    else {
        panic!("a result")
    };
    assert_eq!(result.fields["response"], json!([]));
    let frame = json!({"type": "get_studio_mode", "requestId": "a", "args": []});
    let read: rojo_mcp::core::protocol::ServerFrame = serde_json::from_value(frame.clone()).expect("a request");
    assert_eq!(serde_json::to_value(read).expect("it is JSON"), frame);
}

#[test]
fn unknown_fields_and_types_are_ignored() {
    let frame = r#"{"type":"taken","part":2,"mood":"sunny","requestIds":[]}"#;
    assert_eq!(PluginFrame::parse(frame), Ok(PluginFrame::Taken { request_id: None, part: 2 }));
    let kind = "x".repeat(500);
    let read = PluginFrame::parse(&json!({ "type": kind }).to_string());
    assert_eq!(read, Ok(PluginFrame::Unknown { kind: "x".repeat(80) }), "a long name is cut");
}
