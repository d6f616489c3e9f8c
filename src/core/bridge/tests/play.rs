//! Starting and ending play tests: done when the DataModels say so.

use super::*;
use crate::core::{
    ids::RunId,
    play::{LEASE_GRACE, OwnerId, PlayMode},
    sync::NodeView,
};

pub(super) const ME: OwnerId = OwnerId(1);
pub(super) const ANOTHER: OwnerId = OwnerId(2);
/// More than a silent link lasts is not needed here.
pub(super) const SHORT: Duration = Duration::from_secs(8);

pub(super) fn server_hello(session: &str) -> Value {
    with(hello(session, 11), json!({"role": "server", "isRunning": true}))
}

impl Rig {
    pub(super) fn play(&mut self, mode: PlayMode, owner: OwnerId) -> (CallerId, Out) {
        self.call(None, SHORT, Ask::Play { mode, owner })
    }

    /// Press a button, and the plugin says that it does it.
    pub(super) fn begun(&mut self, link: LinkId, mode: PlayMode, owner: OwnerId) -> CallerId {
        let (caller, out) = self.play(mode, owner);
        let request = out.one(link);
        assert_eq!((&request["type"], &request["args"]), (&json!("start_stop_play"), &json!({"mode": mode})));
        let id = request["requestId"].as_str().expect("an id").to_owned();
        let out = self.say(link, &success(&id, &json!({"asked": mode})));
        assert_eq!((out.settled(), out.kinds(link)), (vec![], vec!["ack".to_owned()]), "that alone is no play test");
        caller
    }

    pub(super) fn client(&mut self, server: LinkId) -> Out {
        self.say(server, &json!({"type": "attach", "logicalId": "a", "role": "client", "player": "p"}))
    }
}

pub(super) fn mode(out: &Out, caller: CallerId) -> &Value {
    match out.outcome(caller) {
        Ok(Answer::Tool(response)) => &response["mode"],
        other => panic!("{other:?}"),
    }
}

#[test]
fn c64_a_test_has_started_when_its_data_models_report_and_ended_when_they_are_gone() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let starts = rig.begun(edit, PlayMode::StartPlay, ME);
    let (server, out) = rig.try_link(&server_hello("server"));
    assert_eq!(out.settled(), [], "its player is not there yet");
    assert_eq!(mode(&rig.client(server), starts), "play");
    let stops = rig.begun(edit, PlayMode::Stop, ANOTHER);
    let out = rig.say(server, &json!({"type": "bye", "reason": "the plugin is unloading"}));
    assert_eq!(mode(&out, stops), "edit");

    let runs = rig.begun(edit, PlayMode::RunServer, ANOTHER);
    let (server, out) = rig.try_link(&server_hello("another test"));
    assert_eq!(mode(&out, runs), "run");
    // The edit DataModel may be away while a test runs: it is edit mode only with it.
    let stops = rig.begun(edit, PlayMode::Stop, ME);
    rig.close(edit);
    assert_eq!(rig.say(server, &json!({"type": "bye", "reason": ""})).settled(), []);
    let (_, out) = rig.try_link(&hello_again("edit", 9, &[], &[]));
    assert_eq!(mode(&out, stops), "edit");
}

#[test]
fn c64_a_stop_without_a_test_answers_at_once() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let (caller, out) = rig.play(PlayMode::Stop, ME);
    assert_eq!((mode(&out, caller), out.frames(edit)), (&json!("edit"), vec![]));
}

#[test]
fn a_test_can_be_stopped_while_the_edit_data_model_is_away() {
    let mut rig = Rig::new();
    let server = rig.link(&server_hello("server"));
    let stops = rig.begun(server, PlayMode::Stop, ME);
    let out = rig.say(server, &json!({"type": "bye", "reason": ""}));
    assert!(out.error(stops).message.contains("its play test is over"), "nobody says that it edits: {out:?}");

    let edit = rig.link(&hello("edit", 11));
    let server = rig.link(&server_hello("next"));
    rig.close(edit);
    let stops = rig.begun(server, PlayMode::Stop, ME);
    assert_eq!(rig.say(server, &json!({"type": "bye", "reason": ""})).settled(), []);
    let (_, out) = rig.try_link(&hello_again("edit", 0, &[], &[]));
    assert_eq!(mode(&out, stops), "edit");
}

#[test]
fn one_caller_plays_at_a_time_and_anyone_may_stop() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let starts = rig.begun(edit, PlayMode::StartPlay, ME);
    let refused = |rig: &mut Rig, owner, part: &str| {
        let (caller, out) = rig.play(PlayMode::RunServer, owner);
        let message = &out.error(caller).message;
        assert!(message.contains("plays already") && message.contains(part), "{message}");
        assert_eq!((out.code(caller), out.0.len()), (ErrorCode::Failed, 1), "nothing is sent: {out:?}");
    };
    rig.pass(seconds(2));
    refused(&mut rig, ANOTHER, "by another caller for 2 s");
    let server = rig.link(&server_hello("server"));
    rig.client(server);
    refused(&mut rig, ANOTHER, "by another caller for 2 s");
    refused(&mut rig, ME, "plays already; nothing was started");
    rig.event(Event::OwnerLeft(ME));
    for link in [edit, server] {
        rig.say(link, &json!({"type": "alive", "timestamp": 0}));
    }
    let mut left = LEASE_GRACE;
    while left > Duration::ZERO {
        refused(&mut rig, ANOTHER, "by another caller");
        let step = left.min(SHORT);
        rig.pass(step);
        left -= step;
        for link in [edit, server] {
            rig.say(link, &json!({"type": "alive", "timestamp": 0}));
        }
    }
    refused(&mut rig, ANOTHER, "plays already; nothing was started");
    rig.begun(edit, PlayMode::Stop, ANOTHER);
    rig.say(server, &json!({"type": "bye", "reason": ""}));
    rig.begun(edit, PlayMode::StartPlay, ANOTHER);
    assert_ne!(starts, CallerId(0));
}

#[test]
fn what_did_not_start_is_free_again() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let (caller, out) = rig.play(PlayMode::StartPlay, ME);
    let id = out.one(edit)["requestId"].as_str().expect("an id").to_owned();
    let no = json!({"requestId": id, "status": "error", "code": "failed", "message": "Studio said no"});
    assert_eq!(rig.say(edit, &no).error(caller).message, "Studio said no");
    let late = rig.begun(edit, PlayMode::StartPlay, ANOTHER);
    let out = rig.pass(SHORT);
    assert_eq!(out.code(late), ErrorCode::OutcomeUnknown);
    assert!(out.error(late).message.contains("no client of it has reported"), "{:?}", out.error(late));
    rig.say(edit, &json!({"type": "alive", "timestamp": 0}));
    rig.begun(edit, PlayMode::RunServer, ME);
}

#[test]
fn a_start_waits_for_the_change_that_runs_and_a_stop_does_not() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let (_, running) = rig.call(None, PATIENCE, run_code());
    let (_, out) = rig.play(PlayMode::StartPlay, ME);
    assert_eq!(out.frames(edit), [] as [Value; 0]);
    let id = running.one(edit)["requestId"].as_str().expect("an id").to_owned();
    let out = rig.say(edit, &success(&id, &json!(1)));
    assert_eq!(out.of_type(edit, "start_stop_play").len(), 1);
    let server = rig.link(&server_hello("server"));
    rig.client(server);
    rig.call(None, PATIENCE, run_code());
    let (_, out) = rig.play(PlayMode::Stop, ME);
    assert_eq!(out.of_type(edit, "start_stop_play").len(), 1);
}

#[test]
fn the_next_test_does_not_wait_for_the_silence_of_one_that_was_told_to_end() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    rig.begun(edit, PlayMode::RunServer, ME);
    let old = rig.link(&server_hello("server"));
    let (link, out) = rig.try_link(&server_hello("next"));
    assert_eq!(out.one(link)["code"], "duplicate_session");
    rig.begun(edit, PlayMode::Stop, ME);
    let (link, out) = rig.try_link(&server_hello("next"));
    assert_eq!((out.kinds(link), out.closed(old).is_some()), (vec!["welcome".to_owned()], true));
    // Nor is one waited for whose link closes without a word.
    let stops = rig.begun(edit, PlayMode::Stop, ME);
    assert_eq!(mode(&rig.close(link), stops), "edit");
}

#[test]
fn a_play_test_that_begins_while_a_sync_compares_comes_first() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    rig.load(edit, 5, vec![script(1, "before")], &json!([]));
    rig.event(patch(6, script(1, "after")));
    let (caller, out) = rig.call(None, PATIENCE, Ask::Sync(SyncArgs::default()));
    let [Effect::CatchUp { run, .. }] = &out.0[..] else { panic!("{out:?}") };
    let run: RunId = run.clone();
    let out = rig.event(Event::CaughtUp { run: run.clone(), result: Ok(6) });
    let id = out.one(edit)["requestId"].as_str().expect("an id").to_owned();
    rig.link(&server_hello("server"));
    let facts = json!([{
        "kind": "differs", "id": NodeId(1), "path": "Script1", "className": "ModuleScript",
        "studioHash": TextHash::of("before"),
    }]);
    rig.say(edit, &json!({"requestId": id, "status": "success", "facts": facts}));
    let view = NodeView {
        parent: Some(NodeId(0)),
        path: "Script1".into(),
        class_name: "ModuleScript".into(),
        fs_path: Some("src/Script1.luau".into()),
        source: Some("after".into()),
        hash: Some(TextHash::of("after")),
        subtree: None,
        properties: Default::default(),
    };
    let out = rig.event(Event::Looked { run, views: [(NodeId(1), view)].into() });
    assert!(out.error(caller).message.contains("nothing was synced"), "{:?}", out.error(caller));
    assert_eq!(out.of_type(edit, "plan"), [] as [Value; 0]);
}

#[test]
fn c64_a_script_that_plays_holds_the_lease_until_its_result() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let args = json!({"code": "return 1", "mode": "run_server"});
    let script = |owner| Ask::PlayScript { args: args.clone(), owner };
    let (caller, out) = rig.call(None, PATIENCE, script(ME));
    let request = out.one(edit);
    assert_eq!((&request["type"], &request["args"]), (&json!("run_script_in_play_mode"), &args));
    let id = request["requestId"].as_str().expect("an id").to_owned();
    let refused = |rig: &mut Rig| {
        let (other, out) = rig.call(None, PATIENCE, script(ANOTHER));
        assert!(out.error(other).message.contains("plays already"), "{:?}", out.error(other));
    };
    refused(&mut rig);
    let server = rig.link(&server_hello("server"));
    refused(&mut rig);
    let report = json!({"ok": true, "returns": [1]});
    let out = rig.say(edit, &success(&id, &report));
    assert_eq!(out.settled(), [], "its server is there yet");
    refused(&mut rig);
    let out = rig.say(server, &json!({"type": "bye", "reason": "the plugin is unloading"}));
    assert_eq!(out.outcome(caller), &Ok(Answer::Tool(report)));
    rig.begun(edit, PlayMode::RunServer, ANOTHER);
}

#[test]
fn a_script_has_its_answer_even_if_its_play_server_never_says_goodbye() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let (caller, out) = rig.call(None, SHORT, Ask::PlayScript { args: json!({"code": ""}), owner: ME });
    let id = out.one(edit)["requestId"].as_str().expect("an id").to_owned();
    rig.link(&server_hello("server"));
    rig.say(edit, &success(&id, &json!({"ok": true})));
    assert_eq!(rig.pass(SHORT).outcome(caller), &Ok(Answer::Tool(json!({"ok": true}))));
}

/// What a Studio is called is its own for as long as it is there, however its place is called.
#[test]
fn studios_whose_places_are_called_alike_are_played_apart() {
    let mut rig = Rig::new();
    let alike = |session: &str, place: u64| with(hello(session, place), json!({"placeName": "Arena"}));
    let (one, two) = (rig.link(&alike("a", 11)), rig.link(&alike("b", 12)));
    // A foreign plugin says no more of its place than its number.
    let three = rig.link(&hello0(11));
    for (name, link, owner) in [("place:11", one, ME), ("place:12", two, ANOTHER), ("place:11#2", three, OwnerId(3))] {
        let (_, out) = rig.call(Some(name), SHORT, Ask::Play { mode: PlayMode::StartPlay, owner });
        assert_eq!((out.settled(), out.kinds(link)), (vec![], vec!["start_stop_play".to_owned()]), "{name}");
    }
    let (caller, out) = rig.call(Some("place:12"), SHORT, Ask::Play { mode: PlayMode::StartPlay, owner: ME });
    assert!(out.error(caller).message.contains("by another caller"), "{out:?}");
}
