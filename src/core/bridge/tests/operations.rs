//! Operations: committed before they are sent, one outcome for all who ask, late results kept.

use super::*;
use crate::core::{
    bridge::{CallRecord, CallState},
    ids::OperationId,
    operations::{Intent, Intention, Operation, Outcome},
};

/// What the bridge wants to commit.
fn intent(out: &Out) -> (OperationId, Intent) {
    let found = out.0.iter().find_map(|effect| match effect {
        Effect::Intend { operation, intent } => Some((operation.clone(), intent.clone())),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no intent: {out:?}"))
}

/// What the bridge wants to keep.
fn records(out: &Out) -> Vec<(String, Option<Outcome>)> {
    let record = |effect: &Effect| match effect {
        Effect::Record { operation, outcome, .. } => Some((operation.to_string(), outcome.clone())),
        _ => None,
    };
    out.0.iter().filter_map(record).collect()
}

fn known(intent: Intent, outcome: Option<Outcome>) -> Intention {
    let outcome = outcome.map(|outcome| json!(outcome));
    Intention::Known(Box::new(Operation { intent, at_ms: 1, outcome, never_ran: false }))
}

impl Rig {
    /// The store has committed the intent, which is new.
    fn fresh(&mut self, out: &Out) -> Out {
        let (operation, _) = intent(out);
        self.event(Event::Intended { operation, intention: Ok(Intention::Fresh) })
    }

    /// An operation that was sent; the id of its request.
    fn sent_change(&mut self, link: LinkId, id: &str, patience: Duration) -> (CallerId, String) {
        let (caller, out) = self.change(id, patience);
        let out = self.fresh(&out);
        (caller, out.one(link)["requestId"].as_str().expect("an id").to_owned())
    }

    fn get_call(&mut self, id: &str) -> Option<CallRecord> {
        let (caller, out) = self.call(None, PATIENCE, Ask::GetCall(id.to_owned()));
        match out.outcome(caller) {
            Ok(Answer::Call(found)) => found.as_deref().cloned(),
            other => panic!("not a call: {other:?}"),
        }
    }

    fn state(&mut self, id: &str) -> CallState {
        self.get_call(id).expect("it is known").state
    }
}

#[test]
fn an_operation_is_sent_only_once_it_is_committed() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, out) = rig.change("op", PATIENCE);
    assert_eq!(out.frames(link), [] as [Value; 0]);
    let (_, intent) = intent(&out);
    assert_eq!((intent.tool.as_str(), intent.session), ("run_code", Some("a".into())));
    let out = rig.fresh(&out);
    let frame = out.one(link);
    assert_eq!((&frame["requestId"], &frame["n"]), (&json!(intent.request_id), &json!(1)));
    let out = rig.say(link, &success(intent.request_id.as_str(), &json!("fine")));
    assert_eq!(out.outcome(caller), &Ok(Answer::Tool(json!("fine"))));
    assert_eq!(records(&out), [("op".to_owned(), Some(Outcome::Tool(json!("fine"))))]);
}

#[test]
fn an_operation_that_cannot_be_committed_is_not_sent() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, out) = rig.change("op", PATIENCE);
    let (operation, _) = intent(&out);
    let out = rig.event(Event::Intended { operation, intention: Err(ToolError::failed("disk full", "free some")) });
    assert_eq!((out.error(caller).message.as_str(), out.frames(link), records(&out)), ("disk full", vec![], vec![]));
}

#[test]
fn c61_the_same_id_joins_what_is_in_flight_and_all_have_the_one_outcome() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (first, out) = rig.change("op", PATIENCE);
    let (second, joined) = rig.change("op", PATIENCE);
    assert_eq!(joined.0, [], "while it is being committed");
    let out = rig.fresh(&out);
    let request = out.one(link)["requestId"].as_str().expect("an id").to_owned();
    let (third, joined) = rig.change("op", PATIENCE);
    assert_eq!(joined.0, []);
    let out = rig.say(link, &success(&request, &json!(7)));
    for caller in [first, second, third] {
        assert_eq!(out.outcome(caller), &Ok(Answer::Tool(json!(7))));
    }
    assert_eq!(records(&out).len(), 1);
}

#[test]
fn what_the_store_knows_is_answered_and_not_sent() {
    let failed = ToolError::failed("boom", "see to it");
    let outcomes = [
        (Some(Outcome::Tool(json!(7))), Ok(Answer::Tool(json!(7)))),
        (Some(Outcome::Failed(failed.clone())), Err(failed)),
    ];
    for (kept, answer) in outcomes {
        // With or without a Studio.
        let mut rig = Rig::new();
        let (caller, out) = rig.change("op", PATIENCE);
        let (operation, intent) = intent(&out);
        let out = rig.event(Event::Intended { operation, intention: Ok(known(intent, kept)) });
        assert_eq!((out.outcome(caller), out.0.len()), (&answer, 1));
    }
}

#[test]
fn an_operation_of_before_a_crash_without_an_outcome_is_unknown() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, out) = rig.change("op", PATIENCE);
    let (operation, intent) = intent(&out);
    let out = rig.event(Event::Intended { operation, intention: Ok(known(intent, None)) });
    assert_eq!((out.code(caller), out.frames(link)), (ErrorCode::OutcomeUnknown, vec![]));
    assert!(out.error(caller).hint.contains("`get_call` with id \"op\""), "{:?}", out.error(caller));
}

#[test]
fn an_id_is_not_used_for_another_call() {
    let mut rig = Rig::new();
    rig.link(&hello("a", 11));
    let (_, out) = rig.change("op", PATIENCE);
    let other = Claim { id: "op".into(), tool: "run_code".into(), args_hash: "of other code".into() };
    let call = Call { studio: None, patience: PATIENCE, ask: run_code(), operation: Some(other.clone()) };
    let refused = rig.event(Event::Call { caller: CallerId(90), call: call.clone() });
    assert_eq!(refused.code(CallerId(90)), ErrorCode::BadArguments);
    assert!(refused.error(CallerId(90)).message.contains("`operationId`"));

    let (_, intent) = intent(&out);
    let mut rig = Rig::new();
    let out = rig.event(Event::Call { caller: CallerId(91), call });
    let out =
        rig.event(Event::Intended { operation: "op".into(), intention: Ok(known(intent, None)) }).0.len() + out.0.len();
    assert_eq!(out, 2, "an intent and a refusal");
}

#[test]
fn what_was_not_sent_may_be_called_again_with_the_same_id() {
    let never = vec![("op".to_owned(), None)];
    // No Studio.
    let mut rig = Rig::new();
    let (caller, out) = rig.change("op", PATIENCE);
    let out = rig.fresh(&out);
    assert_eq!((out.code(caller), records(&out)), (ErrorCode::NoStudio, never.clone()));
    // Its caller went away while it was being committed.
    let link = rig.link(&hello("a", 11));
    let (caller, intended) = rig.change("op", PATIENCE);
    assert_eq!(rig.event(Event::Abandon { caller }).code(caller), ErrorCode::Cancelled);
    let out = rig.fresh(&intended);
    assert_eq!((out.frames(link), records(&out)), (vec![], never.clone()));
    // Its deadline passed while another change ran.
    let (_, first) = rig.sent_change(link, "first", seconds(20));
    let (caller, out) = rig.change("op", seconds(1));
    assert_eq!(rig.fresh(&out).frames(link), [] as [Value; 0]);
    let out = rig.pass(seconds(1));
    assert_eq!((out.code(caller), records(&out)), (ErrorCode::TimedOut, never.clone()));
    assert!(out.error(caller).message.contains("never sent"));
    let out = rig.say(link, &success(&first, &json!(1)));
    assert_eq!(out.of_type(link, "run_code"), [] as [Value; 0], "it left the queue");
}

#[test]
fn an_id_that_the_store_has_not_answered_for_when_the_server_stops_is_not_said_to_have_run_or_not() {
    let mut rig = Rig::new();
    rig.link(&hello("a", 11));
    let (caller, _) = rig.change("op", PATIENCE);
    let out = rig.event(Event::Shutdown);
    assert_eq!(records(&out), [], "it may be the id of an earlier call that ran");
    assert_eq!(out.code(caller), ErrorCode::OutcomeUnknown);
    assert!(out.error(caller).hint.contains("get_call"));
}

#[test]
fn c62_what_an_operation_runs_goes_on_when_the_server_stops() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, _) = rig.sent_change(link, "op", PATIENCE);
    let out = rig.event(Event::Shutdown);
    assert_eq!((out.kinds(link), out.code(caller)), (vec!["bye".to_owned()], ErrorCode::OutcomeUnknown));
}

#[test]
fn c62_a_late_result_is_kept_and_given_to_whoever_asks_for_that_call() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, request) = rig.sent_change(link, "op", seconds(3));
    let out = rig.pass(seconds(3));
    assert_eq!((out.code(caller), records(&out)), (ErrorCode::OutcomeUnknown, vec![]));
    assert!(out.error(caller).hint.contains("\"op\""));
    assert_eq!(rig.state("op"), CallState::Running);
    let (again, out) = rig.change("op", PATIENCE);
    assert_eq!(out.0, [], "it is still in flight: joined");
    let out = rig.say(link, &success(&request, &json!("late")));
    assert_eq!(out.outcome(again), &Ok(Answer::Tool(json!("late"))));
    assert_eq!(records(&out), [("op".to_owned(), Some(Outcome::Tool(json!("late"))))]);
}

#[test]
fn c62_a_late_result_of_a_plain_call_is_kept_too() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, out) = rig.call(None, seconds(3), run_code());
    let request = out.one(link)["requestId"].as_str().expect("an id").to_owned();
    assert_eq!(rig.state(&request), CallState::Running);
    let out = rig.pass(seconds(3));
    assert!(out.error(caller).hint.contains(&format!("{request:?}")), "{:?}", out.error(caller));
    assert_eq!(rig.state(&request), CallState::Unknown);
    let out = rig.say(link, &success(&request, &json!("late")));
    assert_eq!((out.settled(), records(&out)), (vec![], vec![]));
    assert_eq!(rig.state(&request), CallState::Done(Ok(Answer::Tool(json!("late")))));
    rig.say(link, &success(&request, &json!("later")));
    assert_eq!(rig.state(&request), CallState::Done(Ok(Answer::Tool(json!("late")))), "the first counts");
    assert_eq!(rig.get_call("nobody knows"), None);
}

#[test]
fn one_of_two_callers_that_gives_up_does_not_end_the_operation() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (first, request) = rig.sent_change(link, "op", PATIENCE);
    let (second, _) = rig.change("op", PATIENCE);
    let out = rig.event(Event::Abandon { caller: first });
    assert_eq!((out.code(first), out.frames(link)), (ErrorCode::Cancelled, vec![]));
    let out = rig.event(Event::Abandon { caller: second });
    assert_eq!(out.one(link)["type"], "cancel");
    let out = rig.say(link, &json!({"type": "cancelled", "requestId": request}));
    assert!(matches!(&records(&out)[..], [(_, Some(Outcome::Failed(error)))] if error.code == ErrorCode::Cancelled));
}

#[test]
fn what_provably_never_arrived_after_its_caller_gave_up_never_ran() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (_, change) = rig.sent_change(link, "op", seconds(2));
    let (_, plain) = rig.call(None, seconds(2), look());
    let plain = plain.one(link)["requestId"].as_str().expect("an id").to_owned();
    rig.close(link);
    rig.pass(seconds(2));
    let (link, out) = rig.try_link(&hello_again("a", 0, &[], &[]));
    assert_eq!(records(&out), [("op".to_owned(), None)]);
    assert!(out.of_type(link, "run_code").is_empty() && out.of_type(link, "look").is_empty(), "{out:?}");
    assert_eq!((rig.state(&plain), rig.get_call(&change)), (CallState::NeverRan, None));
}

#[test]
fn a_sync_is_an_operation_too() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    rig.load(link, 1, vec![script(1, "x")], &json!([]));
    let claim = Claim { id: "op".into(), tool: "sync".into(), args_hash: "all".into() };
    let ask = Ask::Sync(SyncArgs::default());
    let call = Call { studio: None, patience: PATIENCE, ask, operation: Some(claim) };
    let (one, two) = (CallerId(80), CallerId(81));
    let out = rig.event(Event::Call { caller: one, call: call.clone() });
    assert!(!out.0.iter().any(|effect| matches!(effect, Effect::CatchUp { .. })), "committed first");
    let out = rig.fresh(&out);
    let run = out.0.iter().find_map(|effect| match effect {
        Effect::CatchUp { run, .. } => Some(run.clone()),
        _ => None,
    });
    let out = rig.event(Event::CaughtUp { run: run.expect("it begins"), result: Ok(1) });
    let request = out.one(link)["requestId"].as_str().expect("an id").to_owned();
    rig.event(Event::Call { caller: two, call });
    assert_eq!(rig.get_call("op").map(|call| (call.tool, call.state)), Some(("sync".into(), CallState::Running)));
    let out = rig.say(link, &json!({"requestId": request, "status": "success", "cursor": 1, "facts": []}));
    let Ok(Answer::Receipt(receipt)) = out.outcome(one) else { panic!("no receipt: {out:?}") };
    assert_eq!((receipt.status, out.outcome(two)), (SyncStatus::Empty, out.outcome(one)));
    assert_eq!(records(&out), [("op".to_owned(), Some(Outcome::Receipt(receipt.clone())))]);
}

#[test]
fn a_result_of_an_operation_is_acknowledged_once_it_is_in_the_store() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, request) = rig.sent_change(link, "op", PATIENCE);
    rig.keeps = false;
    let result = success(&request, &json!(1));
    let out = rig.say(link, &result);
    assert_eq!((out.outcome(caller), out.kinds(link)), (&Ok(Answer::Tool(json!(1))), vec![]));
    assert_eq!(rig.say(link, &result).0, [], "said again while it is being kept");
    rig.close(link);
    let link = rig.link(&hello_again("a", 1, &[], &[&request]));
    assert_eq!(rig.say(link, &result).0, []);
    let out = rig.event(Event::Recorded { request: request.as_str().into() });
    assert_eq!(out.one(link), json!({"type": "ack", "requestId": request, "disposition": "accepted"}));
    assert_eq!(rig.say(link, &result).one(link)["disposition"], "already_settled");
}

#[test]
fn c62_a_result_of_an_earlier_server_is_given_to_the_store_for_its_operation() {
    let mut rig = Rig::new();
    rig.keeps = false;
    let before = json!({"serverId": "server-0", "lastN": 4, "pending": ["its request", "another"]});
    let link = rig.link(&with(hello("a", 11), before));
    let out = rig.say(link, &success("its request", &json!(7)));
    let recovers = |request: &str, outcome| Effect::Recover { request: request.into(), outcome };
    assert_eq!(out.0, [recovers("its request", Outcome::Tool(json!(7)))], "not acknowledged yet");
    let out = rig.event(Event::Recorded { request: "its request".into() });
    assert_eq!(out.one(link), json!({"type": "ack", "requestId": "its request", "disposition": "unknown"}));
    let out = rig.say(link, &json!({"requestId": "another", "status": "error", "code": "lost", "message": "too big"}));
    let [Effect::Recover { outcome: Outcome::Failed(error), .. }] = &out.0[..] else { panic!("{out:?}") };
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::OutcomeUnknown, "too big"));
    // Not what this server asked for, nor what a foreign plugin says.
    let (_, asked) = rig.tool_request(link);
    rig.say(link, &success(&asked, &json!(1)));
    assert_eq!(rig.say(link, &success(&asked, &json!(1))).kinds(link), ["ack"]);
    let foreign = rig.link(&hello0(22));
    assert_eq!(rig.say(foreign, &success("its request", &json!(8))).0, []);
}
