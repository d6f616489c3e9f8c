//! The DataModels of one Studio: the edit one, and those of a play test.

use super::*;
use crate::core::{
    console::{Level, Query},
    protocol::SyncMode,
    status::{DataModelStatus, StudioStatus},
};

const ALL: Query = Query { since: None, level: Level::Output, limit: 200, dedupe: false };

/// A play server of place 11.
fn server_hello(session: &str) -> Value {
    with(hello(session, 11), json!({"role": "server", "isRunning": true}))
}

fn attach(id: &str, role: &str) -> Value {
    json!({"type": "attach", "logicalId": id, "role": role, "player": format!("player of {id}")})
}

/// Run code in a DataModel of the only Studio.
fn code_in(target: &str) -> Ask {
    let target = target.parse().expect("a target");
    Ask::Tool { name: "run_code", args: json!({"command": "return 1"}), changes: true, target }
}

impl Rig {
    fn run_in(&mut self, target: &str) -> (CallerId, Out) {
        self.call(None, PATIENCE, code_in(target))
    }

    fn statuses(&mut self) -> Vec<StudioStatus> {
        let Answer::Status { studios, .. } = self.status() else { panic!("not a status") };
        studios
    }

    /// `target player link` of each DataModel of the only Studio.
    fn data_models(&mut self) -> Vec<String> {
        let studios = self.statuses();
        assert_eq!(studios.len(), 1, "{studios:?}");
        let line = |DataModelStatus { target, player, link, .. }: &DataModelStatus| {
            format!("{target} {} {link:?}", player.as_deref().unwrap_or("-"))
        };
        studios[0].data_models.iter().map(line).collect()
    }

    fn printed(&mut self, target: &str) -> Result<Vec<String>, ErrorCode> {
        let ask = Ask::Console { target: target.parse().expect("a target"), query: ALL };
        let (caller, out) = self.call(None, PATIENCE, ask);
        match out.outcome(caller) {
            Ok(Answer::Console(page)) => Ok(page.lines.iter().map(|line| line.text.clone()).collect()),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.code),
        }
    }
}

/// Edit and play server of place 11 with the clients `a` and `b`.
fn play() -> (Rig, LinkId, LinkId) {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let server = rig.link(&server_hello("server"));
    for id in ["a", "b"] {
        rig.say(server, &attach(id, "client"));
    }
    (rig, edit, server)
}

fn id_of(frame: &Value) -> &str {
    frame["requestId"].as_str().expect("a request has an id")
}

#[test]
fn the_data_models_of_a_place_are_one_studio() {
    let (mut rig, edit, _) = play();
    rig.load(edit, 1, vec![], &json!([]));
    assert_eq!(
        rig.data_models(),
        ["edit - Live", "server - Live", "client-1 player of a Live", "client-2 player of b Live"]
    );
    let StudioStatus { studio, role, running, .. } = rig.statuses().remove(0);
    assert_eq!((studio.as_str(), role, running), ("place:11", Target::Edit, true));
    rig.link(&hello("other", 22));
    let (caller, out) = rig.run_in("server");
    assert_eq!(out.code(caller), ErrorCode::AmbiguousStudio);
    let message = &out.error(caller).message;
    for part in [
        "\"place:11\" (Place 11; edit, server, client-1, client-2; play test)",
        "\"place:22\" (Place 22; edit; edit mode)",
    ] {
        assert!(message.contains(part), "{part} is missing: {message}");
    }
}

#[test]
fn a_play_server_gets_no_tree() {
    let mut rig = Rig::new();
    let (server, out) = rig.try_link(&server_hello("server"));
    assert_eq!(out.one(server)["assignedRole"], "server");
    assert!(!out.0.contains(&Effect::BuildTree { link: server }));
    let out = rig.event(Event::TreeRestarted);
    assert_eq!(out.0, []);
    rig.close(server);
    let (_, out) = rig.try_link(&server_hello("server"));
    assert!(!out.0.iter().any(|effect| matches!(effect, Effect::BuildTree { .. })));
}

#[test]
fn c55_a_call_goes_to_the_data_model_that_it_names_and_to_no_other() {
    let (mut rig, edit, server) = play();
    for (target, link, client) in
        [("edit", edit, None), ("server", server, None), ("client", server, Some("a")), ("client-2", server, Some("b"))]
    {
        let (caller, out) = rig.run_in(target);
        let frame = out.one(link);
        let said = (target != "edit").then(|| json!(target.replace("client", "client-1").replace("1-2", "2")));
        assert_eq!((frame.get("logicalId"), frame.get("target")), (client.map(Value::from).as_ref(), said.as_ref()));
        assert_eq!(out.0.len(), 1, "{out:?}");
        let out = rig.say(link, &success(id_of(&frame), &json!(target)));
        assert_eq!(out.outcome(caller), &Ok(Answer::Tool(json!(target))));
    }
}

#[test]
fn what_is_not_there_is_said_with_what_is_and_what_to_do() {
    let mut rig = Rig::new();
    rig.link(&hello("edit", 11));
    let refused = |rig: &mut Rig, target: &str, part: &str| {
        let (caller, out) = rig.run_in(target);
        assert_eq!((out.code(caller), out.0.len()), (ErrorCode::NoTarget, 1), "nothing is sent: {out:?}");
        let ToolError { message, hint, .. } = out.error(caller);
        assert!(message.contains(&format!("place:11 has no {}", target.parse::<Target>().expect("a target"))));
        assert!(message.contains("it has edit") || target == "edit", "{message}");
        assert!(hint.contains(part), "{hint}");
    };
    refused(&mut rig, "server", "start a play test first");
    refused(&mut rig, "client-2", "start a play test first");
    let server = rig.link(&server_hello("server"));
    rig.say(server, &attach("a", "client"));
    refused(&mut rig, "client-2", "more players");
    let mut rig = Rig::new();
    rig.link(&server_hello("server"));
    refused(&mut rig, "edit", "stop the play test");
}

#[test]
fn a_foreign_plugin_has_the_edit_data_model_only() {
    let mut rig = Rig::new();
    let link = rig.link(&hello0(11));
    let (caller, out) = rig.run_in("server");
    assert_eq!((out.code(caller), out.frames(link)), (ErrorCode::NoTarget, vec![]));
    let (_, out) = rig.run_in("edit");
    assert_eq!(out.one(link).get("target"), None, "it does not know the field");
}

#[test]
fn clients_keep_their_names_over_a_lost_link_and_a_new_server_process() {
    let (mut rig, _, server) = play();
    rig.close(server);
    let (caller, out) = rig.run_in("client-2");
    assert_eq!(out.code(caller), ErrorCode::Reconnecting);
    let server = rig.link(&with(server_hello("server"), json!({"serverId": SERVER})));
    let (caller, out) = rig.run_in("client-2");
    assert_eq!(out.code(caller), ErrorCode::Reconnecting, "it was not named again yet");
    let out = rig.say(server, &attach("b", "client-2"));
    assert_eq!(out.one(server), json!({"type": "attached", "logicalId": "b", "role": "client-2"}));
    let out = rig.say(server, &json!({"type": "alive", "timestamp": 0}));
    assert!(out.0.iter().any(|effect| matches!(effect, Effect::Note(text) if text.contains("client-1 has left"))));
    assert_eq!(rig.data_models(), ["edit - Loading", "server - Live", "client-2 player of b Live"]);

    rig.restart();
    let server = rig.link(&server_hello("server"));
    let out = rig.say(server, &attach("b", "client-2"));
    assert_eq!(out.one(server)["role"], "client-2");
    let out = rig.say(server, &attach("c", "client"));
    assert_eq!(out.one(server)["role"], "client-1");
}

#[test]
fn only_a_play_server_has_clients() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    assert_eq!(rig.say(edit, &attach("a", "client")).frames(edit), [] as [Value; 0]);
    let server = rig.link(&server_hello("server"));
    for id in ["", "with\nline", &"x".repeat(65)] {
        assert_eq!(rig.say(server, &attach(id, "client")).frames(server), [] as [Value; 0], "{id:?}");
    }
    assert_eq!(rig.data_models(), ["edit - Loading", "server - Live"]);
}

#[test]
fn a_client_that_leaves_settles_its_calls_and_no_others() {
    let (mut rig, _, server) = play();
    let (sent, first) = rig.run_in("client-1");
    let (queued, _) = rig.run_in("client-1");
    let (other, _) = rig.run_in("client-2");
    let (own, _) = rig.run_in("server");
    let out = rig.say(server, &json!({"type": "detach", "logicalId": "a"}));
    assert_eq!(
        (out.code(sent), out.code(queued), out.settled().len()),
        (ErrorCode::StudioLeft, ErrorCode::StudioLeft, 2)
    );
    assert!(out.error(sent).message.contains("place:11/client-1 has left the play test"));
    assert!(out.error(queued).message.contains("did not run"));
    assert!(out.settled().iter().all(|(caller, _)| *caller != other && *caller != own));
    let late = rig.say(server, &success(id_of(&first.one(server)), &json!("late")));
    assert_eq!(late.settled(), []);
    // Who comes next has its name, and a lane of its own.
    rig.say(server, &attach("c", "client"));
    let (_, out) = rig.run_in("client-1");
    assert_eq!(out.one(server)["logicalId"], "c");
}

#[test]
fn the_end_of_a_play_test_settles_what_was_under_way_in_it_and_leaves_the_rest() {
    let (mut rig, edit, server) = play();
    let callers: Vec<CallerId> = ["server", "client-1", "client-2"].map(|target| rig.run_in(target).0).into();
    let (edits, edited) = rig.run_in("edit");
    let out = rig.say(server, &json!({"type": "bye", "reason": "the plugin is unloading"}));
    for caller in &callers {
        assert_eq!(out.code(*caller), ErrorCode::StudioLeft);
        assert!(out.error(*caller).message.contains("play test is over"), "{:?}", out.error(*caller));
    }
    assert_eq!(out.settled().len(), 3);
    assert_eq!(rig.data_models(), ["edit - Loading"]);
    let out = rig.say(edit, &success(id_of(&edited.one(edit)), &json!(1)));
    assert!(out.outcome(edits).is_ok());
}

#[test]
fn each_data_model_has_a_lane_of_its_own() {
    let (mut rig, edit, server) = play();
    for (target, link) in [("edit", edit), ("server", server), ("client-1", server), ("client-2", server)] {
        let (_, out) = rig.run_in(target);
        assert_eq!(out.of_type(link, "run_code").len(), 1, "{target} waits for nobody");
        let (waits, out) = rig.run_in(target);
        assert_eq!(out.frames(link), [] as [Value; 0], "{target} runs one at a time");
        assert_eq!(out.settled(), []);
        rig.event(Event::Abandon { caller: waits });
    }
    let studio = rig.statuses().remove(0);
    let busy: Vec<bool> = studio.data_models.iter().map(|model| model.busy.is_some()).collect();
    assert_eq!((busy, studio.busy.map(|busy| busy.queued)), (vec![true; 4], Some(0)));
}

#[test]
fn what_an_earlier_server_asked_a_client_for_holds_up_that_client_alone() {
    let (mut rig, _, server) = play();
    let (_, out) = rig.run_in("client-1");
    let runs = id_of(&out.one(server)).to_owned();
    rig.restart();
    let again = json!({"serverId": SERVER, "lastN": 1, "inFlight": [runs]});
    let server = rig.link(&with(server_hello("server"), again));
    rig.say(server, &with(attach("a", "client-1"), json!({"inFlight": [runs]})));
    rig.say(server, &attach("b", "client-2"));
    for target in ["server", "client-2"] {
        assert_eq!(rig.run_in(target).1.of_type(server, "run_code").len(), 1, "{target} waits for nobody");
    }
    let (_, out) = rig.run_in("client-1");
    assert_eq!(out.frames(server), [] as [Value; 0], "it runs one at a time");
    let out = rig.say(server, &success(&runs, &json!(1)));
    assert_eq!(out.of_type(server, "run_code")[0]["logicalId"], "a");
}

#[test]
fn c61_a_call_to_a_client_comes_through_a_lost_link() {
    let (mut rig, _, server) = play();
    let (first, one) = rig.run_in("client-1");
    let (second, two) = rig.run_in("client-2");
    let (one, two) = (one.one(server), two.one(server));
    rig.close(server);
    let again = json!({"serverId": SERVER, "lastN": 1, "inFlight": [id_of(&one)]});
    let (server, out) = rig.try_link(&with(server_hello("server"), again));
    let resent = out.of_type(server, "run_code");
    assert_eq!((resent.len(), &resent[0]["logicalId"], &resent[0]["n"]), (1, &json!("b"), &two["n"]));
    for id in ["a", "b"] {
        rig.say(server, &attach(id, "client"));
    }
    let out = rig.say(server, &success(id_of(&one), &json!(1)));
    assert!(out.outcome(first).is_ok());
    let out = rig.say(server, &success(id_of(&two), &json!(2)));
    assert!(out.outcome(second).is_ok());
}

#[test]
fn c64_the_mode_is_asked_of_the_data_model_that_knows_it() {
    let (mut rig, edit, server) = play();
    let mode = |target: Option<&str>| Ask::Mode { target: target.map(|target| target.parse().expect("a target")) };
    let (_, out) = rig.call(None, PATIENCE, mode(None));
    assert_eq!(out.of_type(server, "get_studio_mode").len(), 1, "the play server speaks for its Studio");
    let (_, out) = rig.call(None, PATIENCE, mode(Some("edit")));
    assert_eq!(out.of_type(edit, "get_studio_mode").len(), 1);
    let (_, out) = rig.call(None, PATIENCE, mode(Some("client")));
    assert_eq!(out.one(server)["logicalId"], "a");
    rig.say(server, &json!({"type": "bye", "reason": ""}));
    let (_, out) = rig.call(None, PATIENCE, mode(None));
    assert_eq!(out.of_type(edit, "get_studio_mode").len(), 1);
}

#[test]
fn each_data_model_has_a_console_of_its_own_that_can_be_read_after_the_test() {
    let (mut rig, edit, server) = play();
    let log = |message: &str| json!({"type": "roblox_log", "message": message, "level": 0});
    rig.say(edit, &log("from edit"));
    rig.say(server, &log("from the server"));
    let out = rig.say(server, &with(log("from b"), json!({"logicalId": "b"})));
    let named = |effect: &Effect| matches!(effect, Effect::Output { studio, .. } if studio == "place:11/client-2");
    assert!(out.0.iter().any(named));
    rig.say(server, &with(log("from nobody"), json!({"logicalId": "z"})));
    let expect = |rig: &mut Rig| {
        let lines: Vec<_> = ["edit", "server", "client-1", "client-2"].map(|target| rig.printed(target)).into();
        let expected = ["from edit", "from the server", "", "from b"];
        let expected =
            expected.map(|line| Ok(Some(line.to_owned()).into_iter().filter(|line| !line.is_empty()).collect()));
        assert_eq!(lines, expected);
    };
    expect(&mut rig);
    rig.say(server, &json!({"type": "detach", "logicalId": "b"}));
    expect(&mut rig);
    rig.say(server, &json!({"type": "bye", "reason": ""}));
    expect(&mut rig);
    assert_eq!(rig.printed("client-3"), Err(ErrorCode::NoTarget));
    let server = rig.link(&server_hello("the next test"));
    assert_eq!((rig.printed("server"), rig.printed("client-2")), (Ok(vec![]), Err(ErrorCode::NoTarget)));
    rig.say(server, &json!({"type": "bye", "reason": ""}));
    rig.say(edit, &json!({"type": "bye", "reason": ""}));
    rig.link(&hello("edit again", 11));
    assert_eq!(rig.printed("server"), Err(ErrorCode::NoTarget), "it went with its Studio");
}

#[test]
fn c64_no_sync_while_a_play_test_runs() {
    let (mut rig, edit, server) = play();
    rig.load(edit, 1, vec![script(1, "x")], &json!([]));
    let sync = |mode| Ask::Sync(SyncArgs { mode, ..SyncArgs::default() });
    for mode in [SyncMode::Standard, SyncMode::Fastfail] {
        let (caller, out) = rig.call(None, PATIENCE, sync(mode));
        assert!(out.error(caller).message.contains("a play test of place:11 runs"), "{:?}", out.error(caller));
        assert_eq!((out.code(caller), out.0.len()), (ErrorCode::Failed, 1), "nothing is begun");
    }
    let begins = |out: &Out| out.0.iter().any(|effect| matches!(effect, Effect::CatchUp { .. }));
    assert!(begins(&rig.call(None, PATIENCE, sync(SyncMode::Dryrun)).1), "to look changes nothing");
    rig.say(server, &json!({"type": "bye", "reason": ""}));
    assert!(begins(&rig.call(None, PATIENCE, sync(SyncMode::Standard)).1));
}

#[test]
fn a_play_server_takes_over_the_link_of_a_test_that_is_dead() {
    let (mut rig, _, old) = play();
    let (next, out) = rig.try_link(&server_hello("the next test"));
    assert_eq!(out.one(next)["code"], "duplicate_session", "the old one seems to live");
    rig.close(old);
    let next = rig.link(&server_hello("the next test"));
    assert_eq!(rig.data_models(), ["edit - Loading", "server - Live"], "its clients went with it");
    let (_, out) = rig.run_in("server");
    assert_eq!(out.of_type(next, "run_code").len(), 1);
}
