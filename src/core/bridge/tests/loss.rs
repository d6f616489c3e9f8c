//! Links that are lost, come back, fall silent or are closed by us.

use super::*;

/// Number and request of each call that is sent on `link`.
fn sent(out: &Out, link: LinkId) -> Vec<(u64, String)> {
    let number = |frame: &Value| Some((frame["n"].as_u64()?, frame["requestId"].as_str()?.to_owned()));
    out.frames(link).iter().filter_map(number).collect()
}

#[test]
fn c53_a_call_while_the_studio_reconnects_fails_at_once() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    rig.close(link);
    assert_eq!(rig.studios(), ["place:11 Reconnecting"]);
    for ask in [run_code(), Ask::GetScript { id: NodeId(1), from_draft: false }, Ask::Sync(SyncArgs::default())] {
        let (caller, out) = rig.call(None, PATIENCE, ask);
        assert_eq!(out.code(caller), ErrorCode::Reconnecting);
        assert!(out.error(caller).message.contains("nothing was sent"));
    }
    rig.link(&hello_again("a", 0, &[], &[]));
    let (caller, out) = rig.tool();
    assert!(out.settled().is_empty(), "{caller:?} works again with no manual step");
}

#[test]
fn what_was_sent_before_the_loss_settles_after_15_seconds() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, _) = rig.call(None, seconds(60), look());
    rig.pass(seconds(1));
    assert_eq!(rig.close(link).settled(), []);
    assert_eq!(rig.pass(millis(14_999)).settled(), []);
    let out = rig.pass(millis(1));
    assert_eq!(out.code(caller), ErrorCode::OutcomeUnknown);
    assert_eq!(rig.studios(), [] as [&str; 0]);
    assert_eq!(rig.bridge.next_tick(), Moment::MAX);
}

#[test]
fn a_deadline_within_the_grace_still_counts() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, _) = rig.call(None, seconds(3), look());
    rig.close(link);
    let out = rig.pass(seconds(3));
    assert_eq!(out.code(caller), ErrorCode::OutcomeUnknown);
    assert_eq!(out.frames(link), [] as [Value; 0], "no cancel into a link that is gone");
}

#[test]
fn c61_exactly_what_never_arrived_is_sent_again_with_its_number_and_less_time() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let ids: Vec<String> = (0..4).map(|_| rig.tool_request(link).1).collect();
    rig.pass(seconds(2));
    rig.close(link);
    rig.pass(seconds(3));
    let (link, out) = rig.try_link(&hello_again("a", 2, &[&ids[0], &ids[1]], &[]));
    assert_eq!(sent(&out, link), [(3, ids[2].clone()), (4, ids[3].clone())]);
    for frame in out.of_type(link, "run_code") {
        assert_eq!((&frame["remainingMs"], &frame["args"]), (&json!(20_000), &json!({"command": "return 1"})));
    }
    assert_eq!(out.kinds(link)[0], "welcome", "which comes first");
    let (_, out) = rig.tool();
    assert_eq!(out.one(link)["n"], 5, "and the next number is the next");
}

#[test]
fn c61_of_what_arrived_the_running_and_the_finished_are_waited_for_and_the_rest_is_given_up() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let calls: Vec<_> = (0..3).map(|_| rig.tool_request(link)).collect();
    rig.close(link);
    let (link, out) = rig.try_link(&hello_again("a", 3, &[&calls[0].1], &[&calls[2].1]));
    assert_eq!(sent(&out, link), []);
    assert_eq!(out.settled().len(), 1);
    assert_eq!(out.code(calls[1].0), ErrorCode::OutcomeUnknown);
    for (caller, id) in [&calls[2], &calls[0]] {
        let out = rig.say(link, &success(id, &json!(id)));
        assert_eq!(out.outcome(*caller), &Ok(Answer::Tool(json!(id))));
    }
}

#[test]
fn a_session_that_returns_on_a_new_link_before_the_old_ones_end_is_seen_loses_nothing() {
    let mut rig = Rig::new();
    let old = rig.link(&hello("a", 11));
    let (caller, id) = rig.tool_request(old);
    let (link, out) = rig.try_link(&hello_again("a", 0, &[], &[]));
    assert_eq!(sent(&out, link), [(1, id.clone())]);
    assert_eq!(rig.say(old, &success(&id, &json!(1))).0, [], "frames of the old link no longer count");
    assert!(rig.say(link, &success(&id, &json!(1))).outcome(caller).is_ok());
}

#[test]
fn what_expired_or_was_taken_back_is_not_sent_again() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (expired, _) = rig.call(None, seconds(1), look());
    let (abandoned, _) = rig.tool_request(link);
    let (expiring, _) = rig.call(None, seconds(5), look());
    let (_, kept) = rig.tool_request(link);
    rig.close(link);
    assert_eq!(rig.pass(seconds(1)).code(expired), ErrorCode::OutcomeUnknown);
    assert_eq!(rig.event(Event::Abandon { caller: abandoned }).code(abandoned), ErrorCode::Cancelled);
    rig.now = seconds(5);
    let (link, out) = rig.try_link(&hello_again("a", 0, &[], &[]));
    assert_eq!(sent(&out, link), [(4, kept)]);
    assert_eq!(out.code(expiring), ErrorCode::OutcomeUnknown, "at its deadline, though no tick came before");
}

#[test]
fn a_cancel_that_the_loss_swallowed_is_repeated() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (expired, out) = rig.call(None, seconds(1), look());
    let id = out.one(link)["requestId"].as_str().expect("an id").to_owned();
    let (_, running) = rig.tool_request(link);
    rig.close(link);
    assert_eq!(rig.pass(seconds(1)).code(expired), ErrorCode::OutcomeUnknown);
    let (link, out) = rig.try_link(&hello_again("a", 2, &[&id, &running], &[]));
    let cancels = out.of_type(link, "cancel");
    assert_eq!((cancels.len(), &cancels[0]["requestId"]), (1, &json!(id)));
}

#[test]
fn c53_after_a_restart_of_the_server_numbers_begin_again() {
    let mut rig = Rig::new();
    let memory = json!({"serverId": "server-0", "lastN": 41, "inFlight": ["old"], "pending": ["older"]});
    let (link, out) = rig.try_link(&with(hello("a", 11), memory));
    assert_eq!(out.kinds(link), ["welcome"]);
    let (_, out) = rig.tool();
    assert_eq!(out.one(link)["n"], 1);
    let out = rig.say(link, &success("older", &json!(1)));
    assert_eq!((&out.one(link)["disposition"], out.settled()), (&json!("unknown"), vec![]));
}

#[test]
fn a_session_that_returns_after_the_grace_goes_on_with_its_numbers() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (_, id) = rig.tool_request(link);
    rig.close(link);
    rig.pass(seconds(15));
    let (link, out) = rig.try_link(&hello_again("a", 1, &[], &[&id]));
    assert_eq!(out.kinds(link), ["welcome"]);
    let out = rig.say(link, &success(&id, &json!(1)));
    assert_eq!((&out.one(link)["disposition"], out.settled()), (&json!("already_settled"), vec![]));
    let (_, out) = rig.tool();
    assert_eq!(out.one(link)["n"], 2, "the plugin ignores number 1");
}

#[test]
fn a_goodbye_settles_everything_at_once() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (tool, _) = rig.tool();
    let (sync, _) = rig.call(None, PATIENCE, Ask::Sync(SyncArgs::default()));
    let out = rig.say(link, &json!({"type": "bye", "reason": "Studio closes"}));
    assert_eq!((out.code(tool), out.code(sync)), (ErrorCode::StudioLeft, ErrorCode::StudioLeft));
    assert_eq!(out.closed(link).as_deref(), Some("Studio closes"));
    assert_eq!(rig.close(link).0, []);
    let (caller, out) = rig.tool();
    assert_eq!(out.code(caller), ErrorCode::NoStudio);
    assert_eq!(rig.bridge.next_tick(), Moment::MAX);
}

#[test]
fn a_comparison_that_nobody_waits_for_ends_with_its_studio() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let fact = json!({"kind": "missing", "id": NodeId(1), "path": "x", "className": "Folder"});
    let out = rig.load(link, 5, vec![script(1, "1")], &json!([fact]));
    assert!(matches!(out.0[..], [Effect::Look { .. }]));
    rig.say(link, &json!({"type": "bye"}));
    assert!(rig.bridge.runs.is_empty());
}

#[test]
fn a_heartbeat_goes_out_every_5_seconds() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    for beat in 1..=6_u64 {
        let out = rig.pass(seconds(5));
        assert_eq!(out.one(link), json!({"type": "heartbeat", "timestamp": beat * 5_000}));
        rig.say(link, &json!({"type": "alive", "timestamp": beat * 5_000}));
    }
    assert_eq!(rig.studios(), ["place:11 Loading"]);
}

#[test]
fn any_frame_is_a_sign_of_life() {
    let frames =
        [json!({"type": "roblox_log", "message": "", "level": 0}), json!({"type": "what"}), json!({"type": 1})];
    for frame in frames {
        let mut rig = Rig::new();
        let link = rig.link(&hello("a", 11));
        for _ in 0..8 {
            assert_eq!(rig.pass(seconds(10)).closed(link), None);
            rig.say(link, &frame);
        }
    }
}

#[test]
fn c54_a_link_that_is_silent_for_30_seconds_is_dropped_and_its_calls_settle() {
    let mut rig = Rig::new();
    rig.pass(millis(4_900));
    let link = rig.link(&hello("a", 11));
    let (short, _) = rig.call(None, seconds(20), look());
    let (long, _) = rig.call(None, seconds(600), look());
    let out = rig.pass(millis(29_999));
    assert_eq!((out.code(short), out.closed(link)), (ErrorCode::OutcomeUnknown, None));
    assert_eq!(rig.studios(), ["place:11 Silent"]);
    let out = rig.pass(millis(1));
    assert!(out.closed(link).expect("dropped").contains("silent"));
    assert_eq!(rig.studios(), ["place:11 Reconnecting"], "status and calls see the same");
    let (caller, out) = rig.tool();
    assert_eq!(out.code(caller), ErrorCode::Reconnecting);
    assert_eq!(rig.pass(seconds(15)).code(long), ErrorCode::OutcomeUnknown);
    assert_eq!(rig.studios(), [] as [&str; 0]);
}

#[test]
fn c54_a_plugin_that_was_dropped_for_its_silence_may_come_back() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, out) = rig.call(None, seconds(600), look());
    let id = out.one(link)["requestId"].as_str().expect("an id").to_owned();
    rig.pass(seconds(31));
    assert_eq!(rig.close(link).0, []);
    let link = rig.link(&hello_again("a", 1, &[&id], &[]));
    assert_eq!(rig.pass(seconds(4)).settled(), []);
    assert!(rig.say(link, &success(&id, &json!(1))).outcome(caller).is_ok());
}

#[test]
fn c65_a_shutdown_settles_every_call_and_says_bye_before_it_closes() {
    let mut rig = Rig::new();
    let (one, two, lost) = (rig.link(&hello("a", 11)), rig.link(&hello0(22)), rig.link(&hello("c", 33)));
    let new = rig.open();
    let sync = rig.call(Some("place:11"), PATIENCE, Ask::Sync(SyncArgs::default())).0;
    let callers = ["place:11", "place:22", "place:33"].map(|studio| rig.call(Some(studio), PATIENCE, look()).0);
    rig.close(lost);
    let out = rig.event(Event::Shutdown);
    assert_eq!(out.code(sync), ErrorCode::Failed, "it had changed nothing");
    for caller in callers {
        assert_eq!(out.code(caller), ErrorCode::OutcomeUnknown);
    }
    let bye = json!({"type": "bye", "reason": "the server is stopping"});
    assert_eq!(out.frames(one).last(), Some(&bye), "its call is ended first");
    assert_eq!(out.frames(two), [] as [Value; 0]);
    for link in [one, two, new] {
        assert_eq!(out.closed(link).as_deref(), Some("the server is stopping"));
    }
    assert_eq!(out.closed(lost), None);
    for link in [one, two, new] {
        assert_eq!(rig.close(link).0, []);
    }
    assert_eq!(rig.bridge.next_tick(), Moment::MAX);
}

#[test]
fn c65_what_still_runs_when_the_server_stops_is_ended_but_no_plan_is() {
    let mut rig = Rig::new();
    let (link, foreign) = (rig.link(&hello("a", 11)), rig.link(&hello0(22)));
    let reads = rig.call(Some("place:11"), PATIENCE, look()).1.one(link)["requestId"].clone();
    let (changes, out) = rig.call(Some("place:11"), PATIENCE, run_code());
    let runs = out.one(link)["requestId"].clone();
    let (waits, _) = rig.call(Some("place:11"), PATIENCE, run_code());
    rig.call(Some("place:22"), PATIENCE, look());
    let out = rig.event(Event::Shutdown);
    let cancel = |id: &Value| json!({"type": "cancel", "requestId": id, "reason": "shutdown"});
    let bye = json!({"type": "bye", "reason": "the server is stopping"});
    assert_eq!(out.frames(link), [cancel(&reads), cancel(&runs), bye], "once each, before the goodbye");
    assert_eq!(out.frames(foreign), [] as [Value; 0], "it knows no cancel");
    assert_eq!(out.code(changes), ErrorCode::OutcomeUnknown);
    assert_eq!(out.code(waits), ErrorCode::Failed);
    assert!(out.error(waits).message.contains("did not run"), "{:?}", out.error(waits));
}

#[test]
fn after_a_shutdown_nobody_is_let_in() {
    let mut rig = Rig::new();
    rig.event(Event::Shutdown);
    let link = LinkId(99);
    let out = rig.event(Event::Opened { link });
    assert_eq!(out.closed(link).as_deref(), Some("the server is stopping"));
    assert_eq!(rig.say(link, &hello("a", 11)).0, []);
    let (caller, out) = rig.tool();
    assert_eq!(out.code(caller), ErrorCode::NoStudio);
}

#[test]
fn a_plugin_that_claims_to_have_received_what_was_never_sent_ends_nothing() {
    let mut rig = Rig::new();
    let link = rig.link(&hello_again("a", u64::MAX, &[], &[]));
    let (_, out) = rig.tool();
    assert_eq!(out.one(link)["type"], "look", "{out:?}");
}
