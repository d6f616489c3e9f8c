//! Who may link, and who gives way to whom.

use super::*;
use crate::core::studios::MAX_STUDIOS;

/// The link was refused with this code; the reason.
fn refused(out: &Out, link: LinkId, code: &str) -> String {
    let frame = out.one(link);
    assert_eq!((frame["type"].as_str(), frame["code"].as_str()), (Some("rejected"), Some(code)), "{frame}");
    let reason = out.closed(link).expect("a refusal is followed by a close frame");
    assert_eq!(frame["reason"], reason.as_str(), "both say why");
    reason
}

#[test]
fn a_hello_is_answered_by_welcome_and_the_tree() {
    let mut rig = Rig::new();
    let (link, out) = rig.try_link(&hello("a", 11));
    let expected = json!({
        "type": "welcome", "protocol": 1, "serverVersion": "9.8.7", "serverId": SERVER, "treeId": TREE,
        "project": "game", "assignedRole": "edit", "heartbeatSeconds": 5,
        "limits": {"maxFrameBytes": 16_777_216, "maxPartBytes": 524_288, "maxPendingBytes": 67_108_864},
    });
    assert_eq!(out.one(link), expected);
    assert!(out.0.contains(&Effect::BuildTree { link }));
    assert_eq!(rig.studios(), ["place:11 Loading"]);
}

#[test]
fn a_link_without_a_hello_is_refused_after_10_seconds() {
    let mut rig = Rig::new();
    let link = rig.open();
    assert_eq!(rig.pass(millis(9_999)).0, []);
    refused(&rig.pass(millis(1)), link, "hello_timeout");
    assert_eq!(rig.say(link, &hello("a", 11)).0, [], "a hello that comes later no longer counts");
    assert_eq!(rig.studios(), [] as [&str; 0]);
}

#[test]
fn a_late_hello_is_refused_even_before_the_tick() {
    let mut rig = Rig::serving(serves(&[22]));
    let link = rig.open();
    rig.now = seconds(10);
    let out = rig.say(link, &hello("a", 11));
    refused(&out, link, "hello_timeout");
}

#[test]
fn a_first_frame_that_is_no_hello_is_refused() {
    let frames = [
        json!({"type": "roblox_log", "message": "hi", "level": 0}),
        json!({"type": "alive"}),
        json!({"type": "somethingNew"}),
        success("id-1", &json!("x")),
    ];
    for frame in frames {
        let mut rig = Rig::new();
        let link = rig.open();
        let out = rig.say(link, &frame);
        refused(&out, link, "bad_hello");
    }
}

#[test]
fn a_first_frame_that_is_not_json_is_refused() {
    for text in ["", "hello", "[]", "{\"type\":\"hello\"", "null", "\u{1f600}"] {
        let mut rig = Rig::new();
        let link = rig.open();
        let out = rig.say_text(link, text);
        refused(&out, link, "bad_hello");
    }
}

#[test]
fn a_malformed_hello_is_refused_by_the_name_of_its_field() {
    let level0 = |field: &str, value: Value| with(hello0(11), json!({ field: value }));
    let level1 = |field: &str, value: Value| with(hello("a", 11), json!({ field: value }));
    let cases = [
        ("twoWaySync", level0("twoWaySync", json!("yes"))),
        ("oneShotSync", level0("oneShotSync", Value::Null)),
        ("confirmationBehavior", level0("confirmationBehavior", json!(3))),
        ("placeId", level0("placeId", json!(1.5))),
        ("placeId", level0("placeId", json!(-1))),
        ("protocol", level1("protocol", json!("1"))),
        ("sessionId", level1("sessionId", Value::Null)),
        ("instanceId", level1("instanceId", json!(11))),
        ("role", level1("role", json!("spectator"))),
        ("lastN", level1("lastN", json!("three"))),
        ("inFlight", level1("inFlight", json!("id-1"))),
    ];
    for (field, frame) in cases {
        let mut rig = Rig::new();
        let (link, out) = rig.try_link(&frame);
        let reason = refused(&out, link, "bad_hello");
        assert!(reason.contains(&format!("`{field}`")), "{field} is not named: {reason}");
    }
}

#[test]
fn c55_a_place_that_is_not_served_is_refused_before_anything_else() {
    let blocking = PlacePolicy { blocked: [11].into(), ..PlacePolicy::default() };
    let blocked_though_served = PlacePolicy { blocked: [11].into(), ..serves(&[11]) };
    for places in [serves(&[22]), serves(&[]), blocking, blocked_though_served] {
        for frame in [hello0(11), hello("a", 11), with(hello("a", 11), json!({"protocol": 0}))] {
            let mut rig = Rig::serving(places.clone());
            let (link, out) = rig.try_link(&frame);
            assert!(refused(&out, link, "place_not_served").contains("place 11"), "the place is named");
            assert_eq!(rig.studios(), [] as [&str; 0]);
        }
    }
    let mut rig = Rig::serving(serves(&[11]));
    rig.link(&hello("a", 11));
}

#[test]
fn c89_protocol_0_of_our_own_plugin_is_refused_with_both_versions_and_the_fix() {
    let mut rig = Rig::new();
    let (link, out) = rig.try_link(&with(hello("a", 11), json!({"protocol": 0, "pluginVersion": "0.0.7"})));
    let reason = refused(&out, link, "unsupported");
    for part in ["0.0.7", "9.8.7", "rojo-mcp plugin install"] {
        assert!(reason.contains(part), "{part} is missing: {reason}");
    }
}

#[test]
fn c89_a_newer_plugin_gets_what_both_know_and_its_new_fields_and_frames_are_ignored() {
    let mut rig = Rig::new();
    let frame = with(hello("a", 11), json!({"protocol": 7, "mood": "sunny", "lanes": [{"x": 1}]}));
    let (link, out) = rig.try_link(&frame);
    assert_eq!(out.one(link)["protocol"], 1);
    assert_eq!(rig.say(link, &json!({"type": "telepathy", "requestId": "id-1", "x": []})).0, []);
    let (caller, id) = rig.tool_request(link);
    let out = rig.say(link, &with(success(&id, &json!("ok")), json!({"brandNew": {}})));
    assert_eq!(out.outcome(caller), &Ok(Answer::Tool(json!("ok"))));
}

#[test]
fn at_most_64_studios_are_linked() {
    let mut rig = Rig::new();
    for place in 0..MAX_STUDIOS as u64 {
        rig.link(&hello(&format!("session-{place}"), place));
    }
    let (link, out) = rig.try_link(&hello("one-more", 1_000));
    refused(&out, link, "too_many_studios");
    rig.link(&with(hello("session-3", 3), json!({"serverId": SERVER})));
    assert_eq!(rig.studios().len(), MAX_STUDIOS, "one that is known may always return");
}

#[test]
fn a_studio_whose_link_is_lost_gives_its_place_to_one_that_is_here() {
    let mut rig = Rig::new();
    let links: Vec<LinkId> =
        (0..MAX_STUDIOS as u64).map(|place| rig.link(&hello(&format!("session-{place}"), place))).collect();
    rig.close(links[7]);
    rig.pass(seconds(1));
    rig.close(links[5]);
    rig.link(&hello("one-more", 1_000));
    let names = rig.studios().join(" ");
    assert!(!names.contains("place:7 ") && names.contains("place:5 Reconnecting"), "the longest lost goes: {names}");
}

#[test]
fn a_plugin_without_a_name_is_refused() {
    let mut rig = Rig::new();
    for (field, value) in [("sessionId", ""), ("instanceId", ""), ("instanceId", "place:1\u{1b}[31m\n")] {
        let (link, out) = rig.try_link(&with(hello("a", 11), json!({field: value})));
        assert!(refused(&out, link, "bad_hello").contains(field), "{field}: {value:?}");
    }
}

#[test]
fn another_window_of_a_connected_place_is_refused() {
    let mut rig = Rig::new();
    let first = rig.link(&hello("a", 11));
    rig.pass(seconds(9));
    let (second, out) = rig.try_link(&hello("b", 11));
    assert!(refused(&out, second, "duplicate_session").contains("Place 11"));
    assert_eq!(out.one(second)["retryAfter"], 1);
    assert_eq!(out.closed(first), None);
    assert_eq!(rig.studios(), ["place:11 Loading"]);
    rig.link(&with(hello("c", 11), json!({"role": "server"})));
    assert_eq!(rig.studios(), ["place:11 Loading"], "another role is another DataModel of the same Studio");
}

#[test]
fn another_window_takes_over_from_one_that_missed_two_heartbeats() {
    let mut rig = Rig::new();
    let first = rig.link(&hello("a", 11));
    let (caller, _) = rig.tool_request(first);
    rig.pass(seconds(12));
    assert_eq!(rig.studios(), ["place:11 Silent"]);
    let (second, out) = rig.try_link(&hello("b", 11));
    assert_eq!(out.kinds(second), ["welcome"]);
    assert!(out.closed(first).is_some(), "the old link is closed");
    assert_eq!(out.code(caller), ErrorCode::StudioLeft, "what the old one had is settled at once");
    assert_eq!(rig.say(first, &json!({"type": "alive"})).0, [], "the old one no longer counts");
    assert_eq!(rig.close(first).settled(), []);
    assert_eq!(rig.studios(), ["place:11 Loading"]);
}

#[test]
fn c55_another_window_takes_over_from_one_whose_link_is_lost() {
    let mut rig = Rig::new();
    let first = rig.link(&hello("a", 11));
    let (caller, _) = rig.tool_request(first);
    rig.close(first);
    let (second, out) = rig.try_link(&hello("b", 11));
    assert_eq!(out.kinds(second), ["welcome"], "no call of the old session is sent to the new one");
    assert_eq!(out.code(caller), ErrorCode::StudioLeft);
}

#[test]
fn the_same_session_always_takes_over_and_its_old_link_is_closed() {
    let mut rig = Rig::new();
    let first = rig.link(&hello("a", 11));
    let (second, out) = rig.try_link(&hello_again("a", 0, &[], &[]));
    assert_eq!(out.kinds(second), ["welcome"]);
    assert!(out.closed(first).is_some());
    assert_eq!(rig.close(first).0, [], "the old link's end is no loss");
    assert_eq!(rig.studios(), ["place:11 Loading"]);
    let (_, out) = rig.tool();
    assert_eq!((out.frames(first).len(), out.frames(second).len()), (0, 1));
}

#[test]
fn a_copy_of_a_place_that_was_never_published_gets_a_name_of_its_own() {
    let mut rig = Rig::new();
    let place = |session: &str| with(hello(session, 0), json!({"instanceId": "anon:x"}));
    let first = rig.link(&place("a"));
    let (link, out) = rig.try_link(&place("b"));
    refused(&out, link, "duplicate_session");
    let (link, out) = rig.try_link(&place("b"));
    refused(&out, link, "duplicate_session");
    rig.pass(seconds(1));
    rig.say(first, &json!({"type": "alive", "timestamp": 0}));
    let (second, out) = rig.try_link(&place("b"));
    let name = out.one(second)["instanceId"].as_str().expect("a name").to_owned();
    assert!(name.starts_with("anon:") && name != "anon:x", "{name}");
    assert_eq!(rig.studios(), ["anon:x Loading".to_owned(), format!("{name} Loading")]);
    assert_eq!(out.closed(first), None);
    rig.close(second);
    let (second, out) = rig.try_link(&with(place("b"), json!({"instanceId": name, "serverId": SERVER})));
    assert_eq!(out.one(second).get("instanceId"), None, "it has its name by now");
    let (third, out) = rig.try_link(&with(place("c"), json!({"role": "server"})));
    assert_eq!(out.one(third).get("instanceId"), None, "a play test of the place has its name");
}

#[test]
fn a_reloaded_plugin_is_not_taken_for_a_copy_of_its_place() {
    let mut rig = Rig::new();
    let place = |session: &str| with(hello(session, 0), json!({"instanceId": "anon:x"}));
    rig.link(&place("a"));
    for _ in 0..11 {
        let (link, out) = rig.try_link(&place("b"));
        refused(&out, link, "duplicate_session");
        rig.pass(seconds(1));
    }
    rig.pass(seconds(1));
    rig.link(&place("b"));
    assert_eq!(rig.studios(), ["anon:x Loading"], "the old window is silent and gives way");
}

#[test]
fn a_session_that_moved_to_a_place_with_a_live_window_is_refused() {
    let mut rig = Rig::new();
    let one = rig.link(&hello("a", 11));
    rig.link(&hello("b", 22));
    rig.close(one);
    let (link, out) = rig.try_link(&hello("a", 22));
    refused(&out, link, "duplicate_session");
}

#[test]
fn c55_a_session_that_comes_back_with_another_place_is_called_by_that_place() {
    let mut rig = Rig::new();
    let link = rig.link(&with(hello("a", 0), json!({"instanceId": "anon:x"})));
    rig.close(link);
    let link = rig.link(&hello("a", 11));
    assert_eq!(rig.studios(), ["place:11 Loading"]);
    let (caller, out) = rig.call(Some("anon:x"), PATIENCE, run_code());
    assert_eq!((out.code(caller), out.frames(link)), (ErrorCode::NoStudio, vec![]));
}

#[test]
fn a_second_hello_on_a_link_changes_nothing() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    assert_eq!(rig.say(link, &hello("b", 22)).0, []);
    assert_eq!(rig.studios(), ["place:11 Loading"]);
}

#[test]
fn c55_a_tightened_place_list_takes_effect_on_linked_studios() {
    let mut rig = Rig::new();
    let (one, two, old) = (rig.link(&hello("a", 11)), rig.link(&hello("b", 22)), rig.link(&hello0(33)));
    let (caller, _) = rig.call(Some("place:11"), PATIENCE, run_code());
    let (other, _) = rig.call(Some("place:22"), PATIENCE, run_code());
    let out = rig.event(Event::Places(serves(&[22])));
    assert_eq!(out.of_type(one, "rejected")[0]["code"], "place_not_served");
    assert!(out.closed(one).is_some() && out.closed(old).is_some());
    assert_eq!(out.frames(old), [] as [Value; 0], "a level-0 plugin does not know the frame");
    assert_eq!(out.code(caller), ErrorCode::StudioLeft);
    assert!(out.settled().iter().all(|(who, _)| *who != other));
    assert_eq!((out.closed(two), rig.studios()), (None, vec!["place:22 Loading".to_owned()]));
}

#[test]
fn a_widened_place_list_lets_the_next_hello_in() {
    let mut rig = Rig::serving(serves(&[22]));
    rig.try_link(&hello("a", 11));
    rig.event(Event::Places(PlacePolicy::default()));
    rig.link(&hello("a", 11));
}

#[test]
fn c55_a_call_that_fits_several_studios_lists_them() {
    let mut rig = Rig::new();
    let one = rig.link(&hello("a", 11));
    rig.link(&hello("b", 22));
    let (caller, out) = rig.tool();
    assert_eq!(out.code(caller), ErrorCode::AmbiguousStudio);
    for name in ["place:11", "Place 11", "place:22", "Place 22"] {
        assert!(out.error(caller).message.contains(name), "{name} is a choice");
    }
    for name in ["place:22", "Place 22"] {
        let (_, out) = rig.call(Some(name), PATIENCE, run_code());
        assert_eq!(out.frames(one), [] as [Value; 0]);
        assert_eq!(out.settled(), []);
    }
    let (caller, out) = rig.call(Some("place:33"), PATIENCE, run_code());
    assert_eq!(out.code(caller), ErrorCode::NoStudio);
    assert!(out.error(caller).message.contains("place:22"), "and what there is");
}

#[test]
fn c55_a_call_is_not_routed_to_the_other_place_while_one_reconnects() {
    let mut rig = Rig::new();
    let one = rig.link(&hello("a", 11));
    let two = rig.link(&hello("b", 22));
    rig.close(one);
    let (caller, out) = rig.tool();
    assert_eq!(out.code(caller), ErrorCode::AmbiguousStudio);
    let (caller, out) = rig.call(Some("place:11"), PATIENCE, run_code());
    assert_eq!(out.code(caller), ErrorCode::Reconnecting);
    assert_eq!(out.frames(two), [] as [Value; 0]);
}

#[test]
fn without_a_studio_status_answers_and_a_call_fails_at_once() {
    let mut rig = Rig::new();
    assert_eq!(rig.status(), Answer::Status { studios: vec![], waiting: 0 });
    let (caller, out) = rig.tool();
    assert_eq!(out.code(caller), ErrorCode::NoStudio);
    assert_eq!(rig.bridge.next_tick(), Moment::MAX, "and nothing is left to wait for");
}

#[test]
fn both_windows_say_why_the_second_is_refused_for_as_long_as_it_tries() {
    let mut rig = Rig::new();
    let first = rig.link(&hello("a", 11));
    let (second, out) = rig.try_link(&hello("b", 11));
    let refused = &out.of_type(second, "rejected")[0];
    assert_eq!((&refused["code"], &refused["retryAfter"]), (&json!("duplicate_session"), &json!(1)));
    let told = out.one(first);
    let rival = "place \"Place 11\" is open in another window as well, which is refused: close one of the two";
    assert_eq!(told, json!({"type": "status", "agents": 0, "pending": 0, "rival": rival}));
    rig.close(second);
    // It tries again every 30 s; each frame of the first window shows that this one is alive.
    for _ in 0..5 {
        let out = rig.pass(seconds(10));
        assert_eq!(out.of_type(first, "status"), [] as [Value; 0]);
        rig.say(first, &json!({"type": "alive"}));
    }
    let (second, out) = rig.try_link(&hello("b", 11));
    assert_eq!((out.of_type(second, "rejected").len(), out.kinds(first)), (1, vec![]), "it was told already");
    rig.close(second);
    let mut told = Vec::new();
    for _ in 0..8 {
        told.extend(rig.pass(seconds(10)).of_type(first, "status"));
        rig.say(first, &json!({"type": "alive"}));
    }
    assert_eq!(told, [json!({"type": "status", "agents": 0, "pending": 0})], "the other window is gone");
}

#[test]
fn a_window_is_told_who_waits_for_it_when_that_changes() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (_, read) = rig.tool();
    let calls = [rig.call(None, PATIENCE, run_code()).0, rig.call(None, PATIENCE, run_code()).0];
    let out = rig.pass(seconds(5));
    assert_eq!(out.of_type(link, "status"), [json!({"type": "status", "agents": 3, "pending": 2})]);
    assert_eq!(rig.pass(seconds(5)).kinds(link), ["heartbeat"]);
    let read = read.one(link)["requestId"].as_str().expect("an id").to_owned();
    rig.say(link, &success(&read, &json!(1)));
    rig.event(Event::Abandon { caller: calls[1] });
    let out = rig.pass(seconds(5));
    assert_eq!(out.of_type(link, "status"), [json!({"type": "status", "agents": 1, "pending": 1})]);
}
