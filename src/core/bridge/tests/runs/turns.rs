//! Runs that may change something take turns; what only looks does not wait.

use super::*;
use crate::core::{
    bridge::CallState,
    operations::{Intention, Outcome},
};

impl Ready {
    /// A sync that waits for its turn.
    fn queued(&mut self, patience: Duration) -> CallerId {
        let (caller, out) = self.rig.call(None, patience, Ask::Sync(SyncArgs::default()));
        assert_eq!(out.settled(), []);
        assert!(!out.0.iter().any(|effect| matches!(effect, Effect::CatchUp { .. })), "it does not begin: {out:?}");
        caller
    }
}

/// The run that begins.
fn begun(out: &Out) -> Option<RunId> {
    out.0.iter().find_map(|effect| match effect {
        Effect::CatchUp { run, .. } => Some(run.clone()),
        _ => None,
    })
}

fn places(out: &Out) -> Vec<(CallerId, &str)> {
    let place = |effect| match effect {
        &Effect::Progress { caller, message: Some(ref message), .. } => Some((caller, message.as_str())),
        _ => None,
    };
    out.0.iter().filter_map(place).collect()
}

#[test]
fn of_two_syncs_at_once_the_second_begins_when_the_first_is_over() {
    let mut ready = Ready::new();
    let (one, _, plan) = ready.planning(AFTER);
    let (two, out) = ready.rig.call(None, PATIENCE, Ask::Sync(SyncArgs::default()));
    assert_eq!((begun(&out), places(&out)), (None, vec![(two, "1 call before this one")]));
    let (three, out) = ready.rig.call(None, PATIENCE, Ask::Sync(SyncArgs::default()));
    assert_eq!((begun(&out), places(&out)), (None, vec![(three, "2 calls before this one")]));
    let out = ready.rig.say(ready.link, &done(&plan, AFTER));
    assert_eq!(
        (receipt(&out, one).status, places(&out)),
        (SyncStatus::Success, vec![(three, "1 call before this one")])
    );
    let run = begun(&out).expect("the second reads the disk only now");
    let out = ready.rig.event(Event::CaughtUp { run, result: Ok(6) });
    let equal = json!({"requestId": id_of(&out.one(ready.link)), "status": "success", "cursor": 6, "facts": []});
    let out = ready.rig.say(ready.link, &equal);
    assert_eq!(receipt(&out, two).status, SyncStatus::Empty, "what the first has done is no failure of the second");
    assert!(begun(&out).is_some());
}

#[test]
fn each_studio_has_its_own_turns_and_what_only_looks_needs_none() {
    let mut ready = Ready::new();
    let other = ready.rig.link(&hello("b", 22));
    ready.rig.load(other, 6, vec![script(1, AFTER)], &json!([]));
    let sync = |mode| Ask::Sync(SyncArgs { mode, ..SyncArgs::default() });
    let begins = |out: &Out| begun(out).is_some();
    assert!(begins(&ready.rig.call(Some("place:11"), PATIENCE, sync(SyncMode::Standard)).1));
    assert!(!begins(&ready.rig.call(Some("place:11"), PATIENCE, sync(SyncMode::Fastfail)).1));
    assert!(begins(&ready.rig.call(Some("place:11"), PATIENCE, sync(SyncMode::Dryrun)).1));
    assert!(begins(&ready.rig.call(Some("place:22"), PATIENCE, sync(SyncMode::Standard)).1));
}

#[test]
fn whoever_gives_up_in_the_queue_was_never_sent_and_moves_nobody_else() {
    let mut ready = Ready::new();
    let (first, _) = ready.start();
    let (impatient, gone, last) = (ready.queued(seconds(2)), ready.queued(PATIENCE), ready.queued(PATIENCE));
    let out = ready.rig.pass(seconds(2));
    assert_eq!((out.code(impatient), begun(&out)), (ErrorCode::TimedOut, None));
    assert!(out.error(impatient).message.contains("never sent"), "{:?}", out.error(impatient));
    assert_eq!(places(&out), [(gone, "1 call before this one"), (last, "2 calls before this one")]);
    let out = ready.rig.event(Event::Abandon { caller: gone });
    assert_eq!((out.code(gone), places(&out)), (ErrorCode::Cancelled, vec![(last, "1 call before this one")]));
    let out = ready.rig.event(Event::Abandon { caller: first });
    assert!(begun(&out).is_some(), "{out:?}");
}

#[test]
fn all_that_end_in_one_moment_leave_the_turn_to_the_next() {
    let mut ready = Ready::new();
    let (one, _) = ready.start();
    let (two, three) = (ready.queued(PATIENCE), ready.queued(seconds(28)));
    let out = ready.rig.pass(PATIENCE);
    assert_eq!((out.code(one), out.code(two)), (ErrorCode::TimedOut, ErrorCode::TimedOut));
    let run = begun(&out).expect("the third");
    let error = ToolError::failed("no such file", "make it");
    assert_eq!(ready.rig.event(Event::CaughtUp { run, result: Err(error.clone()) }).error(three), &error);
}

#[test]
fn a_lost_link_fails_what_has_sent_nothing() {
    let mut ready = Ready::new();
    let (comparing, _, compare) = ready.comparing();
    let queued = ready.queued(PATIENCE);
    let out = ready.rig.close(ready.link);
    assert_eq!((out.code(queued), out.settled().len()), (ErrorCode::Reconnecting, 1));
    let link = ready.rig.link(&hello_again("a", 1, &[], &[&compare]));
    let parked = ready.queued(PATIENCE);
    let out = ready.rig.say(link, &json!({"requestId": compare, "status": "success", "facts": []}));
    assert_eq!(receipt(&out, comparing).status, SyncStatus::Empty);
    let run = begun(&out).expect("its turn has come");
    ready.rig.event(Event::CaughtUp { run, result: Ok(6) });
    assert_eq!(ready.rig.close(link).code(parked), ErrorCode::Reconnecting, "it waited for the tree");
}

#[test]
fn a_plan_keeps_the_turn_after_its_deadline_and_its_receipt_can_be_asked_for() {
    let mut ready = Ready::new();
    let (caller, _, plan) = ready.planning(AFTER);
    ready.rig.pass(seconds(20));
    ready.rig.say(ready.link, &json!({"type": "alive"}));
    let next = ready.queued(seconds(60));
    let out = ready.rig.pass(seconds(5));
    assert_eq!((out.code(caller), begun(&out)), (ErrorCode::OutcomeUnknown, None));
    let hint = &out.error(caller).hint;
    let call = hint.split('"').nth(1).expect("the hint names the call").to_owned();
    assert_eq!(ready.state(&call), CallState::Unknown);
    let out = ready.rig.say(ready.link, &done(&plan, AFTER));
    assert!(begun(&out).is_some(), "{next:?} begins");
    let CallState::Done(Ok(Answer::Receipt(receipt))) = ready.state(&call) else { panic!("{:?}", ready.state(&call)) };
    assert_eq!((receipt.status, receipt.pushed), (SyncStatus::Success, 1));
}

impl Ready {
    fn state(&mut self, call: &str) -> CallState {
        let (caller, out) = self.rig.call(None, PATIENCE, Ask::GetCall(call.to_owned()));
        match out.outcome(caller) {
            Ok(Answer::Call(Some(record))) => record.state.clone(),
            other => panic!("no record: {other:?}"),
        }
    }
}

#[test]
fn a_sync_whose_plan_waits_for_another_change_has_changed_nothing_at_its_deadline() {
    let mut ready = Ready::new();
    let (_, code) = ready.rig.call(None, seconds(60), run_code());
    let code = id_of(&code.one(ready.link));
    let (caller, run, compare) = ready.comparing();
    ready.rig.say(ready.link, &differs(&compare));
    let out = ready.rig.event(Event::Looked { run, views: view(AFTER) });
    assert_eq!(out.of_type(ready.link, "plan"), [] as [Value; 0]);
    let out = ready.rig.pass(PATIENCE);
    assert_eq!(out.code(caller), ErrorCode::TimedOut);
    assert!(out.error(caller).message.contains("nothing was changed"), "{:?}", out.error(caller));
    let out = ready.rig.say(ready.link, &success(&code, &json!(1)));
    assert_eq!(out.of_type(ready.link, "plan"), [] as [Value; 0], "nor is it sent later");
}

#[test]
fn a_plan_that_never_arrived_is_not_sent_again_for_a_caller_that_has_gone() {
    let mut ready = Ready::new();
    let claim = Claim { id: "op".into(), tool: "sync".into(), args_hash: "all".into() };
    let call = Call { studio: None, patience: PATIENCE, ask: Ask::Sync(SyncArgs::default()), operation: Some(claim) };
    let caller = CallerId(80);
    ready.rig.event(Event::Call { caller, call });
    let out = ready.rig.event(Event::Intended { operation: "op".into(), intention: Ok(Intention::Fresh) });
    let run = begun(&out).expect("it begins");
    let out = ready.rig.event(Event::CaughtUp { run: run.clone(), result: Ok(6) });
    ready.rig.say(ready.link, &differs(&id_of(&out.one(ready.link))));
    ready.rig.event(Event::Looked { run, views: view(AFTER) });
    ready.rig.event(Event::Abandon { caller });
    ready.rig.close(ready.link);
    let (link, out) = ready.rig.try_link(&hello_again("a", 1, &[], &[]));
    assert_eq!(out.of_type(link, "plan"), [] as [Value; 0]);
    let record = |effect: &Effect| match effect {
        Effect::Record { outcome, .. } => Some(outcome.clone()),
        _ => None,
    };
    let records: Vec<Option<Outcome>> = out.0.iter().filter_map(record).collect();
    assert_eq!(records, [None], "it never ran");
}
