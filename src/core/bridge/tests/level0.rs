//! Plugins of level 0: what they are sent, how a sync is relayed, and who gives way to whom.

use super::*;
use crate::core::sync::{ChangeResult, Direction, Override, Receipt};

/// A Studio with such a plugin answers pings as long as it lives.
fn pass_answering(rig: &mut Rig, links: &[LinkId], time: Duration) -> Out {
    let mut out = Out::default();
    for _ in 0..time.as_secs() {
        out.0.extend(rig.pass(seconds(1)).0);
        for link in links {
            out.0.extend(rig.event(Event::Pong { link: *link }).0);
        }
    }
    out
}

/// Ask for a sync and let the disk be read; the caller, and the frame that the plugin gets.
fn relay(rig: &mut Rig, link: LinkId, patience: Duration, args: SyncArgs) -> (CallerId, Value) {
    let (caller, out) = rig.call(None, patience, Ask::Sync(args));
    let [Effect::CatchUp { run, paths: None }] = &out.0[..] else { panic!("the disk is read first: {out:?}") };
    let out = rig.event(Event::CaughtUp { run: run.clone(), result: Ok(7) });
    assert!(out.0.iter().any(|effect| matches!(effect, Effect::Progress { caller: who, .. } if *who == caller)));
    (caller, out.one(link))
}

fn receipt(out: &Out, caller: CallerId) -> &Receipt {
    match out.outcome(caller) {
        Ok(Answer::Receipt(receipt)) => receipt,
        other => panic!("not a receipt: {other:?}"),
    }
}

fn a_change(direction: &str) -> Value {
    json!({
        "path": "Workspace.A", "direction": direction, "id": NodeId(2), "className": "Script", "patchType": "Edit",
        "studioHash": "opaque", "defaultSelection": "push", "properties": {"Source": {"current": "a", "incoming": "b"}},
    })
}

#[test]
fn a_level_0_hello_is_answered_by_silence() {
    let mut rig = Rig::new();
    let (link, out) = rig.try_link(&hello0(11));
    assert_eq!(out.frames(link), [] as [Value; 0], "such a plugin knows no frame of ours");
    let out = pass_answering(&mut rig, &[link], seconds(60));
    assert_eq!(out.frames(link), [] as [Value; 0], "no heartbeat either");
    assert_eq!(rig.studios(), ["place:11 Live"]);
}

#[test]
fn a_sync_is_relayed_as_it_was_asked_for() {
    let mut rig = Rig::new();
    let link = rig.link(&hello0(11));
    let overrides: Vec<Override> = serde_json::from_value(json!([
        {"id": NodeId(2), "direction": "push", "studioHash": "opaque"},
        {"id": NodeId(3), "direction": "pull", "expectedProperties": {"Name": "A"}},
    ]))
    .expect("overrides");
    for (mode, word) in [("standard", "standard"), ("manual", "manual"), ("fastfail", "fastfail"), ("dryrun", "dryrun")]
    {
        let mode = serde_json::from_value(json!(mode)).expect("a mode");
        let args = SyncArgs { mode, overrides: overrides.clone(), ..SyncArgs::default() };
        let (caller, frame) = relay(&mut rig, link, PATIENCE, args);
        let id = frame["requestId"].clone();
        let expected = json!({
            "type": "sync", "requestId": id, "mode": word,
            "overrides": [
                {"id": NodeId(2), "direction": "push", "studioHash": "opaque"},
                {"id": NodeId(3), "direction": "pull", "expectedProperties": {"Name": "A"}},
            ],
        });
        assert_eq!(frame, expected, "not a field more");
        let out = rig.say(link, &json!({"requestId": id, "status": "empty", "changes": []}));
        assert_eq!(receipt(&out, caller).cursor, 7);
    }
}

#[test]
fn each_status_of_a_relayed_sync_says_what_is_known_of_its_changes() {
    let table = [
        ("success", ChangeResult::Done, (1, 1)),
        ("dryrun", ChangeResult::Planned, (0, 0)),
        ("rejected", ChangeResult::Skipped, (0, 0)),
        ("fastfail_unresolved", ChangeResult::Skipped, (0, 0)),
        ("already_connected", ChangeResult::Skipped, (0, 0)),
        ("sync_in_progress", ChangeResult::Skipped, (0, 0)),
        ("error", ChangeResult::Unknown, (0, 0)),
        ("partial", ChangeResult::Unknown, (0, 0)),
    ];
    for (status, result, counts) in table {
        let mut rig = Rig::new();
        let link = rig.link(&hello0(11));
        let (caller, frame) = relay(&mut rig, link, PATIENCE, SyncArgs::default());
        let changes = json!([a_change("push"), a_change("pull"), a_change("unresolved")]);
        let answer = json!({"requestId": frame["requestId"], "status": status, "changes": changes});
        let out = rig.say(link, &answer);
        let receipt = receipt(&out, caller);
        assert_eq!(serde_json::to_value(receipt.status).expect("a word"), json!(status));
        let results: Vec<_> = receipt.changes.iter().map(|change| (change.direction, change.result)).collect();
        let unresolved = (Direction::Unresolved, ChangeResult::Unresolved);
        assert_eq!(results, [(Direction::Push, result), (Direction::Pull, result), unresolved], "{status}");
        assert_eq!((receipt.pushed, receipt.pulled, receipt.unresolved), (counts.0, counts.1, 1), "{status}");
        let told = serde_json::to_value(&receipt.changes[0]).expect("JSON");
        for field in ["path", "id", "className", "patchType", "studioHash", "defaultSelection", "properties"] {
            assert_eq!(told[field], a_change("push")[field], "{field} is passed on as it came");
        }
    }
}

#[test]
fn the_plugins_own_words_are_passed_on_and_lacking_ones_supplied() {
    let mut rig = Rig::new();
    let link = rig.link(&hello0(11));
    for (status, message, expected) in [
        ("rejected", json!("a person said no"), "a person said no"),
        ("already_connected", Value::Null, "connected to Rojo already"),
        ("sync_in_progress", Value::Null, "another sync"),
        ("error", json!("no API"), "no API"),
    ] {
        let (caller, frame) = relay(&mut rig, link, PATIENCE, SyncArgs::default());
        let answer = json!({"requestId": frame["requestId"], "status": status, "message": message});
        let out = rig.say(link, &answer);
        let told = receipt(&out, caller).message.as_deref().expect("words");
        assert!(told.contains(expected), "{status}: {told}");
    }
}

#[test]
fn a_relayed_answer_that_cannot_be_read_is_an_unknown_outcome() {
    let answers = [
        json!({"status": "telepathy", "changes": []}),
        json!({"status": "success", "changes": "three"}),
        json!({"status": "success", "changes": [{"path": "A"}]}),
        json!({"status": "success", "changes": [with(a_change("push"), json!({"direction": "sideways"}))]}),
    ];
    for answer in answers {
        let mut rig = Rig::new();
        let link = rig.link(&hello0(11));
        let (caller, frame) = relay(&mut rig, link, PATIENCE, SyncArgs::default());
        let out = rig.say(link, &with(answer.clone(), json!({"requestId": frame["requestId"]})));
        assert_eq!(out.code(caller), ErrorCode::OutcomeUnknown, "{answer}");
    }
}

#[test]
fn a_person_may_take_ten_minutes() {
    let mut rig = Rig::new();
    let link = rig.link(&hello0(11));
    let (caller, frame) = relay(&mut rig, link, seconds(660), SyncArgs::default());
    assert_eq!(pass_answering(&mut rig, &[link], seconds(600)).settled(), []);
    let out = rig.say(link, &json!({"requestId": frame["requestId"], "status": "success", "changes": []}));
    assert!(out.outcome(caller).is_ok());
}

#[test]
fn what_cannot_be_relayed_is_refused_before_it_is_sent() {
    let mut rig = Rig::new();
    let link = rig.link(&hello0(11));
    let args = SyncArgs { paths: Some(vec!["src".into()]), ..SyncArgs::default() };
    let (caller, out) = rig.call(None, PATIENCE, Ask::Sync(args));
    assert_eq!((out.code(caller), out.frames(link).len()), (ErrorCode::Unsupported, 0));

    let (caller, out) = rig.call(None, PATIENCE, Ask::Sync(SyncArgs::default()));
    let [Effect::CatchUp { run, .. }] = &out.0[..] else { panic!("{out:?}") };
    let result = Err(ToolError::failed("no such folder", "make it"));
    let out = rig.event(Event::CaughtUp { run: run.clone(), result });
    assert_eq!((out.code(caller), out.frames(link).len()), (ErrorCode::Failed, 0));

    let (caller, out) = rig.call(None, seconds(1), Ask::Sync(SyncArgs::default()));
    let [Effect::CatchUp { run, .. }] = &out.0[..] else { panic!("{out:?}") };
    let run = run.clone();
    assert_eq!(rig.pass(seconds(1)).code(caller), ErrorCode::TimedOut, "nothing was sent");
    assert_eq!(rig.event(Event::CaughtUp { run, result: Ok(1) }).0, [], "and nothing is sent later");
}

#[test]
fn a_deadline_does_not_claim_that_such_a_plugin_was_told() {
    let mut rig = Rig::new();
    let link = rig.link(&hello0(11));
    let (caller, _) = rig.call(None, seconds(5), run_code());
    let out = rig.pass(seconds(5));
    assert_eq!((out.code(caller), out.frames(link).len()), (ErrorCode::OutcomeUnknown, 0));
    assert!(!out.error(caller).message.contains("told"), "{}", out.error(caller));
}

#[test]
fn what_a_level_0_plugin_had_is_unknown_when_its_link_closes() {
    let mut rig = Rig::new();
    let link = rig.link(&hello0(11));
    let (caller, id) = rig.tool_request(link);
    let out = rig.close(link);
    assert_eq!(out.code(caller), ErrorCode::OutcomeUnknown);
    assert_eq!(out.closed(link), None, "it is closed already");
    assert_eq!(rig.bridge.next_tick(), Moment::MAX, "and forgotten");
    let (link, out) = rig.try_link(&hello0(11));
    assert_eq!(out.frames(link), [] as [Value; 0], "nothing is ever sent again to such a plugin");
    assert_eq!(rig.say(link, &success(&id, &json!(1))).0, []);
}

#[test]
fn what_is_open_when_the_link_of_a_relayed_sync_closes_is_unknown() {
    let mut rig = Rig::new();
    let link = rig.link(&hello0(11));
    let (caller, frame) = relay(&mut rig, link, seconds(600), SyncArgs::default());
    assert_eq!(rig.close(link).code(caller), ErrorCode::OutcomeUnknown);
    let (link, out) = rig.try_link(&hello0(11));
    assert_eq!(out.frames(link), [] as [Value; 0], "nothing is sent again");
    let late = json!({"requestId": frame["requestId"], "status": "success", "changes": []});
    assert_eq!(rig.say(link, &late).0, [], "its late result goes nowhere");
}

#[test]
fn c54_a_half_open_link_is_found_by_pings_and_dropped_after_30_seconds() {
    let mut rig = Rig::new();
    let link = rig.link(&hello0(11));
    let out = rig.pass(seconds(5));
    assert_eq!(out.0, [Effect::Ping { link }]);
    pass_answering(&mut rig, &[link], seconds(60));
    let (caller, _) = rig.call(None, seconds(600), run_code());
    let out = rig.pass(millis(29_999));
    assert_eq!((out.settled(), rig.studios()), (vec![], vec!["place:11 Silent".to_owned()]));
    let out = rig.pass(millis(1));
    assert!(out.closed(link).expect("dropped").contains("silent"));
    assert_eq!(out.code(caller), ErrorCode::OutcomeUnknown);
    assert_eq!(rig.studios(), [] as [&str; 0]);
    assert_eq!(rig.event(Event::Pong { link }).0, [], "a pong that comes later changes nothing");
}

#[test]
fn the_older_of_two_windows_is_asked_for_a_sign_of_life() {
    let mut rig = Rig::new();
    let older = rig.link(&hello0(11));
    let (newer, out) = rig.try_link(&hello0(11));
    let probe = out.one(older);
    let expected = json!({"type": "get_studio_mode", "requestId": probe["requestId"], "args": {}});
    assert_eq!((probe, out.frames(newer).len()), (expected.clone(), 0));
    let out = rig.say(older, &json!({"requestId": expected["requestId"], "status": "error", "response": "what?"}));
    assert_eq!(out.0, [], "any answer will do, and nobody is told");
    pass_answering(&mut rig, &[older, newer], seconds(10));
    assert_eq!(rig.studios(), ["place:11 Live", "place:11#2 Live"]);
    let (caller, out) = rig.tool();
    assert_eq!(out.code(caller), ErrorCode::AmbiguousStudio);
    let (_, out) = rig.call(Some("place:11#2"), PATIENCE, run_code());
    assert_eq!((out.frames(older).len(), out.frames(newer).len()), (0, 1));
}

#[test]
fn an_older_window_that_is_silent_for_5_seconds_gives_way() {
    let mut rig = Rig::new();
    let older = rig.link(&hello0(11));
    let (caller, id) = rig.tool_request(older);
    let newer = rig.link(&hello0(11));
    rig.link(&hello0(22));
    assert_eq!(rig.pass(millis(4_999)).closed(older), None);
    let out = rig.pass(millis(1));
    assert!(out.closed(older).is_some());
    assert_eq!(out.code(caller), ErrorCode::OutcomeUnknown);
    assert_eq!(rig.studios(), ["place:11 Live", "place:22 Live"], "the newer has its name");
    assert_eq!(rig.say(older, &success(&id, &json!(1))).0, [], "frames of the old link no longer count");
    let (_, out) = rig.call(Some("place:11"), PATIENCE, run_code());
    assert_eq!(out.frames(newer).len(), 1);
}

#[test]
fn an_answer_that_cannot_be_read_is_a_sign_of_life_too() {
    let mut rig = Rig::new();
    let older = rig.link(&hello0(11));
    let (newer, out) = rig.try_link(&hello0(11));
    let id = out.one(older)["requestId"].as_str().expect("an id").to_owned();
    rig.say_text(older, &format!("{{\"requestId\":\"{id}\",\"status\":\"success\",\"response\":nan}}"));
    let out = pass_answering(&mut rig, &[older, newer], seconds(10));
    assert_eq!((out.closed(older), out.closed(newer)), (None, None));
}

#[test]
fn results_are_taken_by_their_id_from_either_connection() {
    let mut rig = Rig::new();
    let older = rig.link(&hello0(11));
    let (caller, id) = rig.tool_request(older);
    let newer = rig.link(&hello0(11));
    let out = rig.say(newer, &success(&id, &json!("done")));
    assert_eq!(out.outcome(caller), &Ok(Answer::Tool(json!("done"))));
}

#[test]
fn a_plugin_that_left_its_old_socket_open_is_one_studio_again() {
    let mut rig = Rig::new();
    let older = rig.link(&hello0(11));
    let (caller, id) = rig.tool_request(older);
    let (newer, out) = rig.try_link(&hello0(11));
    let probe = out.one(older)["requestId"].as_str().expect("an id").to_owned();
    let out = rig.say(newer, &success(&probe, &json!("edit")));
    assert!(out.closed(older).is_some(), "both were connections of one plugin");
    assert_eq!(out.settled(), [], "and what the old one waited for, the new one may answer");
    assert_eq!(rig.studios(), ["place:11 Live"]);
    assert!(rig.say(newer, &success(&id, &json!(1))).outcome(caller).is_ok());
    let (_, out) = rig.tool();
    assert_eq!(out.frames(newer).len(), 1);
}

#[test]
fn a_probe_ends_with_the_server_and_with_either_window() {
    for ends in 0..3 {
        let mut rig = Rig::new();
        let (older, newer) = (rig.link(&hello0(11)), rig.link(&hello0(11)));
        match ends {
            0 => drop(rig.close(older)),
            1 => drop(rig.close(newer)),
            _ => drop(rig.event(Event::Shutdown)),
        }
        let out = rig.pass(seconds(6));
        assert_eq!((out.closed(newer), out.settled()), (None, vec![]));
        assert!(rig.bridge.calls.is_empty());
        let names: Vec<String> = rig.studios();
        assert!(names.len() <= 1 && names.iter().all(|name| name.starts_with("place:11 ")), "{names:?}");
    }
}

#[test]
fn a_lost_result_of_a_level_0_plugin_holds_up_changes_until_its_deadline_and_not_longer() {
    let mut rig = Rig::new();
    let link = rig.link(&hello0(11));
    let (lost, out) = rig.call(None, seconds(5), run_code());
    assert_eq!(out.one(link)["type"], "run_code");
    let (gone, _) = rig.call(None, seconds(4), run_code());
    let (next, out) = rig.call(None, PATIENCE, run_code());
    assert_eq!(out.frames(link), [] as [Value; 0]);
    let out = rig.pass(seconds(4));
    assert_eq!((out.code(gone), out.frames(link)), (ErrorCode::TimedOut, vec![]));
    let out = rig.pass(seconds(1));
    assert_eq!(out.code(lost), ErrorCode::OutcomeUnknown);
    assert!(out.error(lost).message.contains("further changes do not wait"), "{:?}", out.error(lost));
    let request = out.one(link)["requestId"].as_str().expect("an id").to_owned();
    assert!(rig.say(link, &success(&request, &json!(1))).outcome(next).is_ok());

    // Nor does a caller that went away hold it up for longer.
    let (gone, _) = rig.call(None, seconds(5), run_code());
    rig.call(None, PATIENCE, run_code());
    let out = rig.event(Event::Abandon { caller: gone });
    assert_eq!(out.frames(link), [] as [Value; 0], "it may still run");
    assert_eq!(rig.pass(seconds(5)).of_type(link, "run_code").len(), 1);
}

#[test]
fn what_was_never_sent_is_told_the_same_at_both_levels_when_its_studio_leaves() {
    let mut told = Vec::new();
    for hello in [hello0(11), hello("a", 11)] {
        let mut rig = Rig::new();
        let link = rig.link(&hello);
        let (sent, _) = rig.call(None, PATIENCE, run_code());
        let (queued, out) = rig.call(None, PATIENCE, run_code());
        assert_eq!(out.frames(link), [] as [Value; 0]);
        let out = if hello["protocol"] == json!(1) {
            rig.say(link, &json!({"type": "bye", "reason": "Unloading"}))
        } else {
            rig.close(link)
        };
        assert!(out.error(sent).message.contains("may have run"), "{:?}", out.error(sent));
        told.push(out.error(queued).clone());
    }
    assert_eq!((told[0].code, &told[0]), (ErrorCode::StudioLeft, &told[1]));
    assert!(told[0].message.contains("did not run"), "{:?}", told[0]);
}
