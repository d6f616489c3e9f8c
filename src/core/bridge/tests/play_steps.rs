//! Restarts, and stops that come while a play test is being started.

use super::{
    play::{ANOTHER, ME, SHORT, mode, server_hello},
    *,
};
use crate::core::play::{OwnerId, PlayMode};

const TOOL: &str = "start_stop_play";

impl Rig {
    /// A play test that `owner` has started, with a player or without.
    fn playing(&mut self, edit: LinkId, kind: PlayMode, owner: OwnerId) -> LinkId {
        let starts = self.begun(edit, kind, owner);
        let (server, out) = self.try_link(&server_hello("server"));
        if kind == PlayMode::RunServer {
            assert_eq!(mode(&out, starts), "run");
        } else {
            assert_eq!(mode(&self.client(server), starts), "play");
        }
        server
    }

    /// The plugin says that it does what it was asked in `out`, which was to be this.
    fn does(&mut self, link: LinkId, out: &Out, wanted: &str) -> Out {
        let asked = out.of_type(link, TOOL);
        assert_eq!(asked.len(), 1, "{out:?}");
        assert_eq!(asked[0]["args"], json!({"mode": wanted}));
        let id = asked[0]["requestId"].as_str().expect("an id");
        self.say(link, &success(id, &json!({"asked": wanted})))
    }

    fn bye(&mut self, link: LinkId) -> Out {
        self.say(link, &json!({"type": "bye", "reason": "the plugin is unloading"}))
    }
}

#[test]
fn c64_a_restart_ends_the_test_and_is_done_when_another_one_of_its_kind_is_up() {
    for (kind, word) in [(PlayMode::StartPlay, "play"), (PlayMode::RunServer, "run")] {
        let mut rig = Rig::new();
        let edit = rig.link(&hello("edit", 11));
        let server = rig.playing(edit, kind, ME);
        let (caller, out) = rig.play(PlayMode::Restart, ME);
        let out = rig.does(edit, &out, "stop");
        assert_eq!((out.settled(), out.of_type(edit, TOOL)), (vec![], vec![]), "it plays yet");
        let out = rig.bye(server);
        assert_eq!(out.settled(), [], "it edits, and is to play again");
        let out = rig.does(edit, &out, if word == "play" { "start_play" } else { "run_server" });
        assert_eq!(out.settled(), [], "its server is not there yet");
        let (server, out) = rig.try_link(&server_hello("another server"));
        let out = if word == "play" { rig.client(server) } else { out };
        assert_eq!(mode(&out, caller), word);
        let (other, out) = rig.play(PlayMode::Restart, ANOTHER);
        assert!(out.error(other).message.contains("by another caller"), "{:?}", out.error(other));
        assert_eq!(out.frames(edit), [] as [Value; 0]);
        rig.event(Event::OwnerLeft(ME));
        let (_, out) = rig.play(PlayMode::Restart, ANOTHER);
        rig.does(edit, &out, "stop");
    }
}

#[test]
fn status_names_who_plays_and_since_when() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let played = |rig: &mut Rig| {
        let Answer::Status { studios, .. } = rig.status() else { panic!("not a status") };
        studios.into_iter().next().and_then(|studio| studio.played).map(|played| (played.by, played.seconds))
    };
    assert_eq!(played(&mut rig), None);
    rig.begun(edit, PlayMode::RunServer, ME);
    rig.pass(seconds(3));
    assert_eq!(played(&mut rig), Some(("you".into(), 3)), "from the start on");
    let server = rig.link(&server_hello("server"));
    rig.begun(edit, PlayMode::Stop, ME);
    rig.bye(server);
    assert_eq!(played(&mut rig), None);
    rig.playing(edit, PlayMode::RunServer, ANOTHER);
    assert_eq!(played(&mut rig), Some(("another caller".into(), 0)));
    rig.event(Event::OwnerLeft(ANOTHER));
    assert_eq!(played(&mut rig), Some(("a caller that has left".into(), 0)));
}

#[test]
fn a_test_that_a_person_started_can_be_restarted_by_anyone() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let server = rig.link(&server_hello("server"));
    rig.client(server);
    let (_, out) = rig.play(PlayMode::Restart, ANOTHER);
    rig.does(edit, &out, "stop");
    let out = rig.bye(server);
    rig.does(edit, &out, "start_play");
}

#[test]
fn where_nothing_plays_nothing_is_restarted() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let (caller, out) = rig.play(PlayMode::Restart, ME);
    assert_eq!((out.code(caller), out.frames(edit)), (ErrorCode::Failed, vec![]));
    assert!(out.error(caller).message.contains("nothing was restarted"), "{:?}", out.error(caller));
    assert!(out.error(caller).hint.contains("start_play or run_server"), "{:?}", out.error(caller));
    rig.begun(edit, PlayMode::RunServer, ANOTHER);

    let mut rig = Rig::new();
    let link = rig.link(&hello0(3));
    let (caller, out) = rig.play(PlayMode::Restart, ME);
    assert_eq!((out.code(caller), out.frames(link)), (ErrorCode::Unsupported, vec![]));
}

#[test]
fn a_restart_that_cannot_start_again_says_that_the_test_was_ended() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let server = rig.playing(edit, PlayMode::RunServer, ME);
    let (caller, out) = rig.play(PlayMode::Restart, ME);
    rig.does(edit, &out, "stop");
    let out = rig.bye(server);
    let id = out.one(edit)["requestId"].clone();
    let no = json!({"requestId": id, "status": "error", "code": "failed", "message": "Studio said no"});
    let out = rig.say(edit, &no);
    let message = &out.error(caller).message;
    assert!(message.contains("was ended, and no other one was started: Studio said no"), "{message}");
    rig.begun(edit, PlayMode::RunServer, ANOTHER);

    // A start that waits for its turn when the time is up was never sent.
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let server = rig.playing(edit, PlayMode::RunServer, ME);
    let (_, running) = rig.call(None, PATIENCE, run_code());
    let (caller, out) = rig.play(PlayMode::Restart, ME);
    rig.does(edit, &out, "stop");
    assert_eq!(rig.bye(server).frames(edit), [] as [Value; 0], "a change runs");
    let out = rig.pass(SHORT);
    assert_eq!(out.code(caller), ErrorCode::TimedOut, "{out:?}");
    let id = running.one(edit)["requestId"].as_str().expect("an id").to_owned();
    let out = rig.say(edit, &success(&id, &json!(1)));
    assert_eq!(out.of_type(edit, TOOL), [] as [Value; 0]);
}

#[test]
fn a_stop_is_kept_for_a_test_that_is_being_started() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let starts = rig.begun(edit, PlayMode::StartPlay, ME);
    let stops = rig.begun(edit, PlayMode::Stop, ANOTHER);
    let (late, out) = rig.play(PlayMode::RunServer, ANOTHER);
    assert!(out.error(late).message.contains("may still come up"), "{:?}", out.error(late));
    let (server, out) = rig.try_link(&server_hello("server"));
    assert_eq!(out.settled(), []);
    rig.does(server, &out, "stop");
    assert_eq!(rig.client(server).settled(), [], "it is up, and ends");
    let out = rig.bye(server);
    assert_eq!(mode(&out, stops), "edit");
    let message = &out.error(starts).message;
    assert!(message.contains("stopped by another call before it was up"), "{message}");
    rig.begun(edit, PlayMode::RunServer, ANOTHER);
}

#[test]
fn a_stop_overtakes_the_answer_to_a_start() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let (starts, out) = rig.play(PlayMode::StartPlay, ME);
    let (stops, stop) = rig.play(PlayMode::Stop, ANOTHER);
    rig.does(edit, &out, "start_play");
    // The plugin knows of the test that it has started itself that it is over.
    let id = stop.one(edit)["requestId"].as_str().expect("an id").to_owned();
    let out = rig.say(edit, &success(&id, &json!({"asked": "stop", "ended": true})));
    assert_eq!(mode(&out, stops), "edit");
    assert!(out.error(starts).message.contains("before it was up"), "{:?}", out.error(starts));

    // One that did not start does not have to be stopped.
    let (starts, out) = rig.play(PlayMode::StartPlay, ME);
    let stops = rig.begun(edit, PlayMode::Stop, ANOTHER);
    let id = out.one(edit)["requestId"].clone();
    let no = json!({"requestId": id, "status": "error", "code": "failed", "message": "Studio said no"});
    let out = rig.say(edit, &no);
    assert_eq!((out.error(starts).message.as_str(), mode(&out, stops)), ("Studio said no", &json!("edit")));
}

#[test]
fn a_stop_takes_a_start_out_of_the_queue() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let (_, running) = rig.call(None, PATIENCE, run_code());
    let (starts, _) = rig.play(PlayMode::StartPlay, ME);
    let (stops, out) = rig.play(PlayMode::Stop, ANOTHER);
    assert_eq!((mode(&out, stops), out.frames(edit)), (&json!("edit"), vec![]));
    assert!(out.error(starts).message.contains("nothing was started"), "{:?}", out.error(starts));
    let id = running.one(edit)["requestId"].as_str().expect("an id").to_owned();
    assert_eq!(rig.say(edit, &success(&id, &json!(1))).of_type(edit, TOOL), [] as [Value; 0]);
    rig.begun(edit, PlayMode::RunServer, ANOTHER);
}

#[test]
fn a_stop_ends_a_restart_too() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let server = rig.playing(edit, PlayMode::RunServer, ME);
    let (restarts, out) = rig.play(PlayMode::Restart, ME);
    rig.does(edit, &out, "stop");
    let stops = rig.begun(edit, PlayMode::Stop, ANOTHER);
    let out = rig.bye(server);
    assert_eq!((mode(&out, stops), out.of_type(edit, TOOL)), (&json!("edit"), vec![]));
    assert!(out.error(restarts).message.contains("before it was up"), "{:?}", out.error(restarts));
}

#[test]
fn a_restart_stops_a_test_that_is_being_started() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let starts = rig.begun(edit, PlayMode::RunServer, ME);
    let (restarts, out) = rig.play(PlayMode::Restart, ME);
    rig.does(edit, &out, "stop");
    let (server, out) = rig.try_link(&server_hello("server"));
    rig.does(server, &out, "stop");
    let out = rig.bye(server);
    assert!(out.error(starts).message.contains("before it was up"), "{:?}", out.error(starts));
    rig.does(edit, &out, "run_server");
    let (_, out) = rig.try_link(&server_hello("another server"));
    assert_eq!(mode(&out, restarts), "run");
}

#[test]
fn a_script_whose_test_is_stopped_while_it_starts_is_told_by_its_plugin() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    let (script, out) = rig.call(None, PATIENCE, Ask::PlayScript { args: json!({"code": ""}), owner: ME });
    let id = out.one(edit)["requestId"].as_str().expect("an id").to_owned();
    let stops = rig.begun(edit, PlayMode::Stop, ANOTHER);
    let report = json!({"ok": false, "error": {"message": "the play test was stopped"}});
    let out = rig.say(edit, &success(&id, &report));
    assert_eq!((out.outcome(script), mode(&out, stops)), (&Ok(Answer::Tool(report)), &json!("edit")));
}

#[test]
fn a_start_that_outlives_its_callers_frees_the_studio_at_their_deadline() {
    let mut rig = Rig::new();
    let edit = rig.link(&hello("edit", 11));
    rig.callers += 1;
    let caller = CallerId(rig.callers);
    let claim = Claim { id: "mine".into(), tool: TOOL.into(), args_hash: "of the mode".into() };
    let ask = Ask::Play { mode: PlayMode::StartPlay, owner: ME };
    let call = Call { studio: None, patience: SHORT, ask, operation: Some(claim) };
    let out = rig.event(Event::Call { caller, call });
    assert!(matches!(out.0[..], [Effect::Intend { .. }]), "{out:?}");
    let intention = Ok(crate::core::operations::Intention::Fresh);
    let out = rig.event(Event::Intended { operation: "mine".into(), intention });
    rig.does(edit, &out, "start_play");
    assert_eq!(rig.pass(SHORT).code(caller), ErrorCode::OutcomeUnknown);
    rig.begun(edit, PlayMode::RunServer, ANOTHER);
}
