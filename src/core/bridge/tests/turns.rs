//! Changes take turns, reads do not; a lane is held until the plugin is done.

use super::*;
use crate::core::status::Busy;

impl Rig {
    /// Run code in the only Studio.
    fn run(&mut self, patience: Duration) -> (CallerId, Out) {
        self.call(None, patience, run_code())
    }

    fn busy(&mut self) -> Option<Busy> {
        let Answer::Status { studios, .. } = self.status() else { panic!("not a status") };
        studios.into_iter().next().and_then(|studio| studio.busy)
    }
}

fn id_of(frame: &Value) -> String {
    frame["requestId"].as_str().expect("a request has an id").to_owned()
}

/// The code that is sent to `link`.
fn code(out: &Out, link: LinkId) -> Vec<Value> {
    out.of_type(link, "run_code")
}

/// What the callers are told of their place.
fn places(out: &Out) -> Vec<(CallerId, String)> {
    let place = |effect: &Effect| match effect {
        Effect::Progress { caller, message: Some(message), .. } => Some((*caller, message.clone())),
        _ => None,
    };
    out.0.iter().filter_map(place).collect()
}

#[test]
fn changes_run_one_at_a_time_in_order_and_their_callers_see_their_place() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (_, first) = rig.run(PATIENCE);
    let (second, queued) = rig.run(PATIENCE);
    assert_eq!((queued.frames(link), places(&queued)), (vec![], vec![(second, "1 call before this one".to_owned())]));
    let (third, queued) = rig.run(PATIENCE);
    assert_eq!(places(&queued), [(third, "2 calls before this one".to_owned())]);
    let out = rig.say(link, &success(&id_of(&first.one(link)), &json!(1)));
    let next = code(&out, link);
    assert_eq!(
        (next.len(), &next[0]["n"], places(&out)),
        (1, &json!(2), vec![(third, "1 call before this one".into())])
    );
    let out = rig.say(link, &success(&id_of(&next[0]), &json!(2)));
    assert_eq!((out.outcome(second), code(&out, link).len()), (&Ok(Answer::Tool(json!(2))), 1));
}

#[test]
fn a_read_does_not_wait_for_a_change() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    rig.run(PATIENCE);
    let (_, queued) = rig.run(PATIENCE);
    assert_eq!(queued.frames(link), [] as [Value; 0]);
    for _ in 0..3 {
        let (caller, request) = rig.tool_request(link);
        assert!(rig.say(link, &success(&request, &json!(1))).outcome(caller).is_ok());
    }
}

#[test]
fn each_studio_has_a_lane_of_its_own() {
    let mut rig = Rig::new();
    let (one, two) = (rig.link(&hello("a", 11)), rig.link(&hello("b", 22)));
    let (_, first) = rig.call(Some("place:11"), PATIENCE, run_code());
    let (_, second) = rig.call(Some("place:22"), PATIENCE, run_code());
    assert_eq!((code(&first, one).len(), code(&second, two).len()), (1, 1));
}

#[test]
fn a_caller_that_goes_or_whose_time_is_up_does_not_free_the_lane() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (gone, first) = rig.run(seconds(20));
    let first = id_of(&first.one(link));
    let (_, second) = rig.run(seconds(20));
    assert_eq!(second.frames(link), [] as [Value; 0]);
    let out = rig.event(Event::Abandon { caller: gone });
    assert_eq!(out.kinds(link), ["cancel"]);
    let busy = Busy {
        tool: "run_code".into(),
        call: first.clone(),
        seconds: 0,
        queued: 1,
        cannot_end: false,
        next: Some(
            "nobody waits for it any more, and Studio was told to end it: wait for that, or close the place in Studio \
             and open it again"
                .into(),
        ),
    };
    assert_eq!(rig.busy(), Some(busy.clone()));
    let out = rig.say(link, &json!({"type": "stillRunning", "requestId": first}));
    assert_eq!(out.0, [], "it keeps the lane");
    rig.pass(seconds(3));
    let next = "Studio cannot end its code: wait for it, or close the place in Studio and open it again";
    let busy = Busy { seconds: 3, cannot_end: true, next: Some(next.into()), ..busy };
    assert_eq!(rig.busy(), Some(busy));
    let out = rig.say(link, &json!({"type": "cancelled", "requestId": first}));
    assert_eq!(code(&out, link).len(), 1);
}

#[test]
fn status_says_what_to_do_only_where_something_waits() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (_, out) = rig.run(seconds(20));
    let first = id_of(&out.one(link));
    assert_eq!(rig.busy().map(|busy| (busy.queued, busy.next)), Some((0, None)));
    rig.run(seconds(20));
    let next = format!("wait for it: `get_call` with id {first:?} says where it stands");
    assert_eq!(rig.busy().map(|busy| (busy.queued, busy.next)), Some((1, Some(next))));
}

#[test]
fn what_expires_in_the_queue_was_never_sent() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (slow, first) = rig.run(seconds(5));
    let (queued, _) = rig.run(seconds(2));
    let (last, _) = rig.run(seconds(20));
    let out = rig.pass(seconds(2));
    assert_eq!((out.code(queued), out.frames(link)), (ErrorCode::TimedOut, vec![]));
    assert!(out.error(queued).message.contains("never sent"), "{:?}", out.error(queued));
    assert_eq!(places(&out), [(last, "1 call before this one".to_owned())]);
    let out = rig.pass(seconds(3));
    assert_eq!((out.code(slow), out.of_type(link, "run_code")), (ErrorCode::OutcomeUnknown, vec![]));
    let out = rig.say(link, &success(&id_of(&first.one(link)), &json!("late")));
    assert_eq!((out.settled(), code(&out, link).len()), (vec![], 1), "the late result frees the lane");
}

#[test]
fn a_lost_link_fails_what_waits_for_its_turn_and_nothing_of_it_is_sent() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (_, first) = rig.run(PATIENCE);
    let first = id_of(&first.one(link));
    let (queued, _) = rig.run(PATIENCE);
    let out = rig.close(link);
    assert_eq!((out.code(queued), out.settled().len()), (ErrorCode::Reconnecting, 1));
    let (link, out) = rig.try_link(&hello_again("a", 1, &[&first], &[]));
    assert_eq!(code(&out, link), [] as [Value; 0]);
    assert_eq!(rig.busy().map(|busy| busy.call), Some(first), "it still runs over there");
}

#[test]
fn at_a_hello_the_lane_is_free_unless_its_call_is_sent_again_or_there() {
    // (lastN, in flight, pending) -> whether another change may run.
    let cases = [(0, false, false, true), (1, false, false, true), (1, true, false, false), (1, false, true, false)];
    for (last_n, in_flight, pending, free) in cases {
        let mut rig = Rig::new();
        let link = rig.link(&hello("a", 11));
        let (caller, first) = rig.run(PATIENCE);
        let first = id_of(&first.one(link));
        rig.event(Event::Abandon { caller });
        rig.close(link);
        let ids = |there: bool| if there { vec![first.as_str()] } else { vec![] };
        let link = rig.link(&hello_again("a", last_n, &ids(in_flight), &ids(pending)));
        let (_, out) = rig.run(PATIENCE);
        assert_eq!(code(&out, link).len(), usize::from(free), "{last_n} {in_flight} {pending}");
    }
}

#[test]
fn what_a_studio_still_runs_when_it_returns_after_its_grace_holds_the_lane() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, first) = rig.run(seconds(60));
    let first = id_of(&first.one(link));
    rig.close(link);
    assert_eq!(rig.pass(seconds(15)).code(caller), ErrorCode::OutcomeUnknown);
    let link = rig.link(&hello_again("a", 1, &[&first], &[]));
    let (next, out) = rig.run(PATIENCE);
    assert_eq!(code(&out, link), [] as [Value; 0]);
    let out = rig.say(link, &success(&first, &json!(1)));
    assert_eq!(code(&out, link).len(), 1, "{next:?}");
}

#[test]
fn what_a_plugin_still_runs_for_a_server_that_is_gone_holds_the_lane() {
    let mut rig = Rig::new();
    let before = |running: &[&str]| json!({"serverId": "server-0", "lastN": 9, "inFlight": running});
    let link = rig.link(&with(hello("a", 11), before(&["one", "two"])));
    let (_, out) = rig.run(seconds(60));
    assert_eq!(code(&out, link), [] as [Value; 0]);
    let busy = rig.busy().expect("it is busy");
    assert_eq!((busy.tool.as_str(), busy.call.as_str(), busy.queued), ("a call of an earlier server", "one", 2));
    assert_eq!(code(&rig.say(link, &success("two", &json!(2))), link), [] as [Value; 0]);
    rig.close(link);
    let link = rig.link(&with(hello("a", 11), before(&["one"])));
    let (_, out) = rig.run(seconds(60));
    assert_eq!(code(&out, link), [] as [Value; 0]);
    let out = rig.say(link, &json!({"type": "cancelled", "requestId": "one"}));
    assert_eq!(code(&out, link).len(), 1);

    rig.close(link);
    let (link, _) = rig.try_link(&with(hello("b", 22), before(&["three"])));
    rig.close(link);
    let link = rig.link(&with(hello("b", 22), before(&[])));
    let (_, out) = rig.call(Some("place:22"), PATIENCE, run_code());
    assert_eq!(code(&out, link).len(), 1, "the plugin has lost it");
}

#[test]
fn a_sync_waits_for_its_turn_with_its_plan_only() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    rig.load(link, 1, vec![script(1, "x")], &json!([]));
    let (_, first) = rig.run(PATIENCE);
    let (_, out) = rig.call(None, PATIENCE, Ask::Sync(SyncArgs::default()));
    let run = out.0.iter().find_map(|effect| match effect {
        Effect::CatchUp { run, .. } => Some(run.clone()),
        _ => None,
    });
    let out = rig.event(Event::CaughtUp { run: run.expect("it begins"), result: Ok(1) });
    assert_eq!(out.kinds(link), ["sync"], "to compare is to read");
    let out = rig.say(link, &success(&id_of(&first.one(link)), &json!(1)));
    assert_eq!(out.kinds(link), ["ack"]);
    assert_eq!(rig.busy(), None);
}
