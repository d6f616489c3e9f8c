//! One call: numbered, answered, refused, late, taken back.

use super::*;
use crate::core::bridge::StudioScript;

fn ack(request: &str, disposition: &str) -> Value {
    json!({"type": "ack", "requestId": request, "disposition": disposition})
}

#[test]
fn requests_are_numbered_from_1_and_say_how_long_the_caller_waits() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    for n in 1..=3 {
        let (_, out) = rig.call(None, seconds(n), look());
        let frame = out.one(link);
        assert_eq!(frame["n"], n);
        assert_eq!(frame["remainingMs"], n * 1_000);
        assert_eq!((&frame["type"], &frame["args"]), (&json!("look"), &json!({"at": "it"})));
    }
}

#[test]
fn each_studio_has_its_own_numbers() {
    let mut rig = Rig::new();
    let (one, two) = (rig.link(&hello("a", 11)), rig.link(&hello("b", 22)));
    let (_, first) = rig.call(Some("place:11"), PATIENCE, run_code());
    let (_, second) = rig.call(Some("place:22"), PATIENCE, run_code());
    assert_eq!((&first.one(one)["n"], &second.one(two)["n"]), (&json!(1), &json!(1)));
}

#[test]
fn a_level_0_request_has_no_number() {
    let mut rig = Rig::new();
    let link = rig.link(&hello0(11));
    let (caller, out) = rig.tool();
    let frame = out.one(link);
    let expected = json!({"type": "look", "requestId": frame["requestId"], "args": {"at": "it"}});
    assert_eq!(frame, expected);
    let out = rig.say(link, &success(frame["requestId"].as_str().expect("an id"), &json!("fine")));
    assert_eq!(out.outcome(caller), &Ok(Answer::Tool(json!("fine"))));
    assert_eq!(out.frames(link), [] as [Value; 0], "a level-0 plugin gets no ack");
}

#[test]
fn c61_results_in_any_order_reach_each_its_own_caller() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let mut calls: Vec<_> = (0..50).map(|_| rig.tool_request(link)).collect();
    // 7 and 50 have no common factor: every call once, in no order of their own.
    calls = (0..50).map(|step| calls[step * 7 % 50].clone()).collect();
    for (caller, id) in calls {
        let out = rig.say(link, &success(&id, &json!(format!("for {}", caller.0))));
        assert_eq!(out.settled(), [(caller, &Ok(Answer::Tool(json!(format!("for {}", caller.0)))))]);
    }
}

#[test]
fn c61_a_repeated_or_unknown_result_is_acknowledged_and_settles_nothing() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, id) = rig.tool_request(link);
    let (_, open) = rig.tool_request(link);
    let out = rig.say(link, &success(&id, &json!(1)));
    assert_eq!(out.one(link), ack(&id, "accepted"));
    assert!(out.outcome(caller).is_ok());
    for (result, word) in [(id.as_str(), "already_settled"), ("never-asked", "unknown"), ("", "unknown")] {
        let out = rig.say(link, &success(result, &json!(2)));
        assert_eq!((out.one(link), out.settled()), (ack(result, word), vec![]));
    }
    let out = rig.say(link, &success(&open, &json!(3)));
    assert_eq!(out.one(link), ack(&open, "accepted"), "the other call was not touched");
}

#[test]
fn a_tools_response_may_be_any_json() {
    let responses =
        [json!("text"), json!([]), json!({}), json!({"a": [1, null]}), json!(null), json!(1.5), json!(true)];
    for response in responses {
        let mut rig = Rig::new();
        let link = rig.link(&hello("a", 11));
        let (caller, id) = rig.tool_request(link);
        let out = rig.say(link, &success(&id, &response));
        assert_eq!(out.outcome(caller), &Ok(Answer::Tool(response)));
    }
}

#[test]
fn a_failure_of_the_plugin_is_told_in_its_own_words() {
    let cases = [
        (json!({"status": "error", "response": "boom"}), ErrorCode::Failed, "boom"),
        (json!({"status": "error", "message": "boom"}), ErrorCode::Failed, "boom"),
        (json!({"status": "error", "code": "too_large", "message": "17 MB"}), ErrorCode::TooLarge, "17 MB"),
        (json!({"status": "error", "code": "gone_fishing", "message": "x"}), ErrorCode::Failed, "x"),
        (json!({"status": "error", "code": 5, "message": ["x"]}), ErrorCode::Failed, "\"error\""),
        (json!({"status": "lost"}), ErrorCode::Failed, "\"lost\""),
    ];
    for (answer, code, words) in cases {
        let mut rig = Rig::new();
        let link = rig.link(&hello("a", 11));
        let (caller, id) = rig.tool_request(link);
        let out = rig.say(link, &with(answer, json!({ "requestId": id })));
        assert_eq!(out.code(caller), code);
        assert!(out.error(caller).message.contains(words), "{:?}", out.error(caller));
    }
}

#[test]
fn a_script_is_read_with_all_that_the_plugin_says_of_it() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, out) = rig.call(None, PATIENCE, Ask::GetScript { id: NodeId(7), from_draft: true });
    let frame = out.one(link);
    assert_eq!(
        (&frame["type"], &frame["id"], &frame["fromDraft"]),
        (&json!("getScript"), &json!(NodeId(7)), &json!(true))
    );
    let fields = json!({
        "requestId": frame["requestId"], "status": "success", "source": "return 1", "studioHash": "opaque",
        "className": "Script", "instancePath": "Workspace.Script7", "isDraft": true,
    });
    let out = rig.say(link, &fields);
    let script = StudioScript {
        source: "return 1".into(),
        studio_hash: "opaque".into(),
        class_name: "Script".into(),
        instance_path: "Workspace.Script7".into(),
        is_draft: true,
    };
    assert_eq!(out.outcome(caller), &Ok(Answer::Script { script, base: None }));
}

#[test]
fn a_script_with_a_wrong_field_fails_by_its_name() {
    let cases = [("studioHash", json!(null)), ("source", json!(12)), ("isDraft", json!("no"))]
        .map(|(f, v)| (f, json!({ f: v })));
    for (field, wrong) in cases {
        let mut rig = Rig::new();
        let link = rig.link(&hello("a", 11));
        let (caller, out) = rig.call(None, PATIENCE, Ask::GetScript { id: NodeId(7), from_draft: false });
        let good =
            json!({"requestId": out.one(link)["requestId"], "status": "success", "source": "", "studioHash": ""});
        let out = rig.say(link, &with(good, wrong));
        assert!(out.error(caller).message.contains(&format!("`{field}`")), "{:?}", out.error(caller));
    }
}

#[test]
fn a_malformed_answer_fails_only_its_own_call() {
    let malformed = [
        r#"{"requestId":"ID","status":"success","response":nan}"#,
        r#"{"status":"success","response":{"requestId":"OTHER","x":-nan},"requestId":"ID"}"#,
        r#"{"response":["\"requestId\":\"OTHER\"", "}", inf],"requestId" : "ID"}"#,
        r#"{"requestId":"ID","status":7}"#,
        r#"{"requestId":"ID"}"#,
        r#"{"type":"progress","requestId":"ID","progress":"half"}"#,
        r#"{"type":9,"requestId":"ID"}"#,
    ];
    for text in malformed {
        let mut rig = Rig::new();
        let link = rig.link(&hello("a", 11));
        let (other, other_id) = rig.tool_request(link);
        let (caller, id) = rig.tool_request(link);
        let out = rig.say_text(link, &text.replace("ID", &id).replace("OTHER", &other_id));
        assert_eq!(out.code(caller), ErrorCode::Failed, "{text}");
        assert_eq!(out.settled().len(), 1, "{text}");
        let out = rig.say(link, &success(&other_id, &json!(1)));
        assert!(out.outcome(other).is_ok(), "{text}: the link and the other call live on");
    }
}

#[test]
fn a_malformed_frame_about_nothing_is_noted_and_changes_nothing() {
    for text in ["nan", "[1]", "{", r#"{"type":"taken","part":-1}"#, r#"{"requestId":"id-999","status":nan}"#] {
        let mut rig = Rig::new();
        let link = rig.link(&hello("a", 11));
        let (caller, id) = rig.tool_request(link);
        let out = rig.say_text(link, text);
        assert_eq!((out.settled(), out.closed(link)), (vec![], None), "{text}");
        let out = rig.say(link, &success(&id, &json!(1)));
        assert!(out.outcome(caller).is_ok(), "{text}");
    }
}

#[test]
fn a_request_that_is_too_large_fails_with_both_sizes() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, id) = rig.tool_request(link);
    let size = 20_000_000;
    let out = rig.event(Event::NotSent { request: Some(id.as_str().into()), size });
    assert_eq!(out.code(caller), ErrorCode::TooLarge);
    for part in ["20000000", "16777216", "not sent"] {
        assert!(out.error(caller).message.contains(part), "{part}");
    }
    let again = rig.event(Event::NotSent { request: Some(id.as_str().into()), size });
    assert_eq!(again.settled(), []);
    assert_eq!(rig.event(Event::NotSent { request: None, size }).settled(), []);
}

#[test]
fn c62_a_call_past_its_deadline_is_cancelled_and_says_that_it_may_have_run() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, out) = rig.call(None, seconds(3), run_code());
    let id = out.one(link)["requestId"].clone();
    assert_eq!(rig.pass(millis(2_999)).settled(), []);
    let out = rig.pass(millis(1));
    assert_eq!(out.one(link), json!({"type": "cancel", "requestId": id, "reason": "timeout"}));
    assert_eq!(out.code(caller), ErrorCode::OutcomeUnknown);
    assert!(out.error(caller).message.contains("sent to place:11, not confirmed; it may have run"));
    let (next, _) = rig.tool();
    let out = rig.say(link, &success(id.as_str().expect("an id"), &json!("late")));
    assert_eq!(out.one(link), ack(id.as_str().expect("an id"), "already_settled"));
    assert_eq!(out.settled(), [], "the late answer is not given to call {next:?}");
}

#[test]
fn a_level_0_plugin_is_told_of_no_deadline() {
    let mut rig = Rig::new();
    let link = rig.link(&hello0(11));
    let (caller, _) = rig.tool();
    let out = rig.pass(PATIENCE);
    assert_eq!((out.code(caller), out.frames(link)), (ErrorCode::OutcomeUnknown, vec![]));
}

#[test]
fn a_call_that_is_abandoned_is_cancelled_and_settled_once() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, id) = rig.tool_request(link);
    let (other, other_id) = rig.tool_request(link);
    let out = rig.event(Event::Abandon { caller });
    assert_eq!(out.one(link), json!({"type": "cancel", "requestId": id, "reason": "aborted"}));
    assert_eq!(out.code(caller), ErrorCode::Cancelled);
    assert_eq!(rig.event(Event::Abandon { caller }).0, []);
    assert_eq!(rig.say(link, &json!({"type": "cancelled", "requestId": id})).settled(), []);
    assert_eq!(rig.say(link, &json!({"type": "stillRunning", "requestId": id})).settled(), []);
    let out = rig.say(link, &success(&id, &json!(1)));
    assert_eq!((out.one(link), out.settled()), (ack(&id, "already_settled"), vec![]));
    assert!(rig.say(link, &success(&other_id, &json!(1))).outcome(other).is_ok());
    assert_eq!(rig.event(Event::Abandon { caller: other }).0, [], "a settled call cannot be taken back");
}

#[test]
fn progress_reaches_the_caller_while_it_waits() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, id) = rig.tool_request(link);
    let frame = json!({"type": "progress", "requestId": id, "progress": 0.5, "total": 2, "message": "half"});
    let told = Effect::Progress { caller, progress: 0.5, total: Some(2.0), message: Some("half".into()) };
    assert_eq!(rig.say(link, &frame).0, [told]);
    rig.say(link, &success(&id, &json!(1)));
    assert_eq!(rig.say(link, &frame).0, []);
}

#[test]
fn output_is_passed_on_with_the_studios_name() {
    let mut rig = Rig::new();
    for hello in [hello0(11), hello("a", 22)] {
        let link = rig.link(&hello);
        let studio = format!("place:{}", hello["placeId"]);
        let out = rig.say(link, &json!({"type": "roblox_log", "message": "é\u{1f600}", "level": 3}));
        assert_eq!(out.0, [Effect::Output { studio, level: 3, message: "é\u{1f600}".into() }]);
    }
}

#[test]
fn status_counts_what_waits() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (_, id) = rig.tool_request(link);
    rig.call(None, PATIENCE, Ask::Sync(SyncArgs::default()));
    let waiting = |rig: &mut Rig| match rig.status() {
        Answer::Status { waiting, .. } => waiting,
        other => panic!("not a status: {other:?}"),
    };
    assert_eq!(waiting(&mut rig), 2);
    rig.say(link, &success(&id, &json!(1)));
    assert_eq!(waiting(&mut rig), 1);
}

#[test]
fn of_a_call_that_is_late_its_tool_is_remembered_and_not_its_code() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let code = format!("return '{}'", "long".repeat(1000));
    let ask = Ask::Tool { name: "run_code", args: json!({ "command": code }), changes: true, target: Target::Edit };
    let (caller, out) = rig.call(None, Duration::from_secs(1), ask);
    let id = out.one(link)["requestId"].as_str().expect("an id").to_owned();
    let out = rig.pass(Duration::from_secs(2));
    assert_eq!(out.code(caller), ErrorCode::OutcomeUnknown);
    assert!(!format!("{:?}", rig.bridge.late).contains("longlong"));
    let (asker, out) = rig.call(None, PATIENCE, Ask::GetCall(id.clone()));
    let Ok(Answer::Call(Some(record))) = out.outcome(asker) else { panic!("{out:?}") };
    assert_eq!((record.tool.as_str(), record.id.as_str()), ("run_code", id.as_str()));
}
