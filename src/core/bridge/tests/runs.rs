//! Sync runs through the bridge: each step a request of its own, one receipt for the caller.

mod turns;

use super::*;
use crate::core::{
    ids::RunId,
    protocol::{MAX_PART_BYTES, NewNode, SyncMode},
    sync::{ChangeResult, NodeView, Receipt},
};

/// A Studio whose script 1 is agreed on as "1", and has been changed on disk.
struct Ready {
    rig: Rig,
    link: LinkId,
}

const BEFORE: &str = "return 1";
const AFTER: &str = "return 2";

impl Ready {
    fn new() -> Self {
        let mut rig = Rig::new();
        let link = rig.link(&hello("a", 11));
        rig.load(link, 5, vec![script(1, BEFORE)], &json!([]));
        rig.event(patch(6, script(1, AFTER)));
        Self { rig, link }
    }

    /// A sync that waits for the serve session to read the disk.
    fn start(&mut self) -> (CallerId, RunId) {
        let (caller, out) = self.rig.call(None, PATIENCE, Ask::Sync(SyncArgs::default()));
        match &out.0[..] {
            [Effect::CatchUp { run, paths: None }] => (caller, run.clone()),
            other => panic!("a run begins with the disk: {other:?}"),
        }
    }

    /// A sync that waits for the plugin's comparison.
    fn comparing(&mut self) -> (CallerId, RunId, String) {
        let (caller, run) = self.start();
        let out = self.rig.event(Event::CaughtUp { run: run.clone(), result: Ok(6) });
        (caller, run, id_of(&out.one(self.link)))
    }

    /// A sync that waits for the plugin's plan.
    fn planning(&mut self, source: &str) -> (CallerId, RunId, String) {
        let (caller, run, compare) = self.comparing();
        self.rig.say(self.link, &differs(&compare));
        let out = self.rig.event(Event::Looked { run: run.clone(), views: view(source) });
        (caller, run, id_of(&out.of_type(self.link, "plan")[0]))
    }

    fn base(&self) -> Option<TextHash> {
        self.rig.bridge.base(None, NodeId(1))
    }
}

fn id_of(frame: &Value) -> String {
    frame["requestId"].as_str().expect("a request has an id").to_owned()
}

fn differs(request: &str) -> Value {
    json!({"requestId": request, "status": "success", "facts": [{
        "kind": "differs", "id": NodeId(1), "path": "Script1", "className": "ModuleScript",
        "studioHash": TextHash::of(BEFORE),
    }]})
}

fn done(request: &str, text: &str) -> Value {
    let results = json!([{"id": NodeId(1), "status": "done", "hash": TextHash::of(text)}]);
    json!({"requestId": request, "status": "success", "results": results})
}

fn view(source: &str) -> std::collections::HashMap<NodeId, NodeView> {
    let view = NodeView {
        parent: Some(NodeId(0)),
        path: "Script1".into(),
        class_name: "ModuleScript".into(),
        fs_path: Some("src/Script1.luau".into()),
        source: Some(source.into()),
        hash: Some(TextHash::of(source)),
        subtree: None,
        properties: Default::default(),
    };
    [(NodeId(1), view)].into()
}

fn receipt(out: &Out, caller: CallerId) -> &Receipt {
    match out.outcome(caller) {
        Ok(Answer::Receipt(receipt)) => receipt,
        other => panic!("not a receipt: {other:?}"),
    }
}

#[test]
fn a_sync_compares_looks_and_applies_and_then_there_is_nothing_left_to_do() {
    let mut ready = Ready::new();
    let (caller, run) = ready.start();
    let out = ready.rig.event(Event::CaughtUp { run: run.clone(), result: Ok(6) });
    let frame = out.one(ready.link);
    let expected = json!({
        "type": "sync", "requestId": frame["requestId"], "n": 1, "remainingMs": 25_000, "runId": run, "cursor": 6,
        "mode": "standard", "overrides": [],
    });
    assert_eq!(frame, expected);
    let out = ready.rig.say(ready.link, &differs(&id_of(&frame)));
    assert!(out.0.contains(&Effect::Look { run: run.clone(), ids: vec![NodeId(1)], subtrees: vec![] }));
    let out = ready.rig.event(Event::Looked { run: run.clone(), views: view(AFTER) });
    let frame = out.one(ready.link);
    let op = json!({"op": "setSource", "id": NodeId(1), "source": AFTER, "expect": TextHash::of(BEFORE)});
    let expected = json!({
        "type": "plan", "requestId": frame["requestId"], "n": 2, "remainingMs": 25_000, "runId": run,
        "undoName": "Sync from files", "part": 0, "last": true, "ops": [op],
    });
    assert_eq!(frame, expected);
    assert_eq!(ready.base(), Some(TextHash::of(BEFORE)), "not before the plugin confirms it");
    let out = ready.rig.say(ready.link, &done(&id_of(&frame), AFTER));
    assert_eq!((receipt(&out, caller).status, receipt(&out, caller).pushed), (SyncStatus::Success, 1));
    assert_eq!(ready.base(), Some(TextHash::of(AFTER)));

    let (caller, _, compare) = ready.comparing();
    let out = ready.rig.say(ready.link, &json!({"requestId": compare, "status": "success", "facts": []}));
    assert_eq!(receipt(&out, caller).status, SyncStatus::Empty);
    assert_eq!(ready.rig.status(), ready.rig.status());
}

#[test]
fn c62_a_sync_whose_deadline_passes_in_its_plan_says_that_it_may_have_run() {
    let mut ready = Ready::new();
    let (caller, _, plan) = ready.planning(AFTER);
    let out = ready.rig.pass(PATIENCE);
    assert_eq!(out.code(caller), ErrorCode::OutcomeUnknown);
    assert!(out.error(caller).message.contains("may have run"), "{:?}", out.error(caller));
    assert_eq!(out.of_type(ready.link, "cancel"), [] as [Value; 0], "a plan is not interrupted");
    let out = ready.rig.say(ready.link, &done(&plan, AFTER));
    assert_eq!((out.settled(), &out.one(ready.link)["disposition"]), (vec![], &json!("accepted")));
    assert_eq!(ready.base(), Some(TextHash::of(AFTER)), "what it did is known");
}

#[test]
fn c62_a_sync_whose_deadline_passes_before_its_plan_says_that_nothing_changed() {
    let mut ready = Ready::new();
    let (waiting_for_disk, run) = ready.start();
    let says = |out: &Out, caller| {
        assert_eq!(out.code(caller), ErrorCode::TimedOut);
        assert!(out.error(caller).message.contains("nothing was changed"));
    };
    says(&ready.rig.pass(PATIENCE), waiting_for_disk);
    ready.rig.say(ready.link, &json!({"type": "alive"}));
    let (comparing, _, compare) = ready.comparing();
    let out = ready.rig.pass(PATIENCE);
    says(&out, comparing);
    let cancelled: Vec<String> = out.of_type(ready.link, "cancel").iter().map(id_of).collect();
    assert_eq!(cancelled, [compare.as_str()]);
    assert_eq!(ready.rig.event(Event::CaughtUp { run, result: Ok(6) }).0, [], "the run is over");
    assert_eq!(ready.rig.say(ready.link, &differs(&compare)).settled(), []);
}

#[test]
fn a_sync_that_is_abandoned_before_its_plan_ends_there() {
    let mut ready = Ready::new();
    let (caller, run, compare) = ready.comparing();
    let out = ready.rig.event(Event::Abandon { caller });
    assert_eq!(out.code(caller), ErrorCode::Cancelled);
    assert_eq!(id_of(&out.of_type(ready.link, "cancel")[0]), compare);
    let out = ready.rig.say(ready.link, &differs(&compare));
    assert_eq!(out.kinds(ready.link), ["ack"]);
    assert_eq!(ready.rig.event(Event::Looked { run, views: view(AFTER) }).0, []);
}

#[test]
fn a_plan_under_way_is_carried_to_its_end_though_its_caller_went_away() {
    let mut ready = Ready::new();
    let (caller, _, plan) = ready.planning(AFTER);
    let out = ready.rig.event(Event::Abandon { caller });
    assert_eq!((out.code(caller), out.frames(ready.link)), (ErrorCode::Cancelled, vec![]));
    let out = ready.rig.say(ready.link, &done(&plan, AFTER));
    assert_eq!(out.settled(), []);
    assert_eq!(ready.base(), Some(TextHash::of(AFTER)), "and what it did is known");
}

#[test]
fn a_result_that_names_the_run_instead_of_its_request_is_unknown() {
    let mut ready = Ready::new();
    let (caller, run, compare) = ready.comparing();
    for frame in [success(run.as_str(), &json!(1)), json!({"requestId": run, "status": 7})] {
        let out = ready.rig.say(ready.link, &frame);
        assert_eq!((out.settled(), &out.one(ready.link)["disposition"]), (vec![], &json!("unknown")));
    }
    let out = ready.rig.say(ready.link, &json!({"requestId": compare, "status": "success"}));
    assert_eq!(receipt(&out, caller).status, SyncStatus::Empty);
}

#[test]
fn a_disk_that_cannot_be_read_ends_the_run_before_anything_is_sent() {
    let mut ready = Ready::new();
    let (caller, run) = ready.start();
    let error = ToolError::failed("src/a.luau: permission denied", "fix it");
    let out = ready.rig.event(Event::CaughtUp { run, result: Err(error.clone()) });
    assert_eq!((out.error(caller), out.frames(ready.link)), (&error, vec![]));
}

#[test]
fn a_comparison_that_fails_or_cannot_be_read_ends_the_run() {
    let malformed = json!({"status": "success", "facts": [{"kind": "gone"}]});
    let no_list = json!({"status": "success", "facts": "none"});
    let busy = json!({"status": "sync_in_progress", "message": "busy"});
    for (answer, word) in [(malformed, "`facts`"), (no_list, "`facts`"), (busy, "busy")] {
        let mut ready = Ready::new();
        let (caller, _, compare) = ready.comparing();
        let out = ready.rig.say(ready.link, &with(answer, json!({ "requestId": compare })));
        assert_eq!(out.code(caller), ErrorCode::Failed);
        assert!(out.error(caller).message.contains(word), "{:?}", out.error(caller));
        assert_eq!(ready.base(), Some(TextHash::of(BEFORE)));
    }
}

#[test]
fn a_server_that_stops_ends_a_comparison_and_no_plan() {
    let mut ready = Ready::new();
    let (_, _, compare) = ready.comparing();
    let out = ready.rig.event(Event::Shutdown);
    let cancel = json!({"type": "cancel", "requestId": compare, "reason": "shutdown"});
    assert_eq!(out.of_type(ready.link, "cancel"), [cancel], "once");
    let mut ready = Ready::new();
    ready.planning(AFTER);
    let out = ready.rig.event(Event::Shutdown);
    assert_eq!(out.kinds(ready.link), ["bye"]);
}

#[test]
fn a_plan_that_fails_or_is_too_large_moves_no_base() {
    let mut ready = Ready::new();
    let (caller, _, plan) = ready.planning(AFTER);
    let out = ready.rig.say(ready.link, &json!({"requestId": plan, "status": "error", "message": "no recording"}));
    assert_eq!(out.error(caller).message, "no recording");
    let (caller, _, plan) = ready.planning(AFTER);
    let out = ready.rig.event(Event::NotSent { request: Some(plan.as_str().into()), size: 99_999_999 });
    assert_eq!(out.code(caller), ErrorCode::TooLarge);
    assert_eq!(ready.base(), Some(TextHash::of(BEFORE)));
}

#[test]
fn a_guard_that_did_not_hold_moves_no_base() {
    let mut ready = Ready::new();
    let (caller, _, plan) = ready.planning(AFTER);
    let results = json!([{"id": NodeId(1), "status": "guard", "hash": TextHash::of("typed meanwhile")}]);
    let out = ready.rig.say(ready.link, &json!({"requestId": plan, "status": "success", "results": results}));
    assert_eq!(receipt(&out, caller).status, SyncStatus::Error);
    assert_eq!(receipt(&out, caller).changes[0].result, ChangeResult::Guard);
    assert_eq!(ready.base(), Some(TextHash::of(BEFORE)));
}

/// A plan with one step for each text of the tree, which are all missing in Studio.
fn plan_of(texts: &[String]) -> (Ready, CallerId, Value) {
    let mut ready = Ready::new();
    let (caller, run, compare) = ready.comparing();
    let (mut facts, mut views) = (Vec::new(), std::collections::HashMap::new());
    for (id, text) in (10..).map(NodeId).zip(texts) {
        facts.push(json!({"kind": "missing", "id": id, "path": "x", "className": "ModuleScript"}));
        let mut view = view(text).remove(&NodeId(1)).expect("it is there");
        view.subtree = Some(NewNode {
            id,
            name: "x".into(),
            class_name: "ModuleScript".into(),
            source: Some(text.clone()),
            properties: Default::default(),
            children: vec![],
        });
        views.insert(id, view);
    }
    ready.rig.say(ready.link, &json!({"requestId": compare, "status": "success", "facts": facts}));
    let frame = ready.rig.event(Event::Looked { run, views }).one(ready.link);
    (ready, caller, frame)
}

#[test]
fn a_plan_goes_out_in_parts_each_when_the_one_before_was_taken() {
    let big = |letter: &str| letter.repeat(MAX_PART_BYTES / 2);
    let texts = [big("a"), big("b"), "x".repeat(3 * MAX_PART_BYTES), "small".into(), "smaller".into()];
    let (mut ready, caller, frame) = plan_of(&texts);
    let id = id_of(&frame);
    let steps = |frame: &Value| frame["ops"].as_array().expect("a list").len();
    assert_eq!((&frame["part"], &frame["last"], steps(&frame)), (&json!(0), &json!(false), 1));
    let taken = |part: u32| json!({"type": "taken", "requestId": id, "part": part});
    for wrong in [1, 2, 3, 9] {
        assert_eq!(ready.rig.say(ready.link, &taken(wrong)).0, []);
    }
    // One, one that is too large for company, and the small ones together.
    for (part, last, ops) in [(1, false, 1), (2, false, 1), (3, true, 2)] {
        let out = ready.rig.say(ready.link, &taken(part - 1));
        let frame = out.one(ready.link);
        assert_eq!((&frame["type"], &frame["requestId"]), (&json!("planPart"), &json!(id)));
        assert_eq!((&frame["part"], &frame["last"], steps(&frame)), (&json!(part), &json!(last), ops));
        assert_eq!(ready.rig.say(ready.link, &taken(part - 1)).0, [], "said twice");
    }
    assert_eq!(ready.rig.say(ready.link, &taken(3)).0, []);
    let results: Vec<Value> = (10..)
        .map(NodeId)
        .zip(&texts)
        .map(|(id, text)| json!({"id": id, "status": "done", "hash": TextHash::of(text)}))
        .collect();
    let out = ready.rig.say(ready.link, &json!({"requestId": id, "status": "success", "results": results}));
    assert_eq!((receipt(&out, caller).status, receipt(&out, caller).pushed), (SyncStatus::Success, 5));
}

#[test]
fn a_plan_whose_later_part_is_too_large_is_called_off() {
    let texts = ["x".repeat(MAX_PART_BYTES), "y".repeat(MAX_PART_BYTES)];
    let (mut ready, caller, frame) = plan_of(&texts);
    ready.rig.say(ready.link, &json!({"type": "taken", "requestId": frame["requestId"], "part": 0}));
    let request = Some(id_of(&frame).as_str().into());
    let out = ready.rig.event(Event::NotSent { request, size: 17_000_000 });
    assert_eq!(out.code(caller), ErrorCode::TooLarge);
    assert_eq!(out.of_type(ready.link, "cancel").len(), 1, "or the plugin waits for it for ever");
}

#[test]
fn a_sync_whose_link_is_lost_in_its_comparison_goes_on_when_it_is_back() {
    let mut ready = Ready::new();
    let (caller, _, compare) = ready.comparing();
    ready.rig.close(ready.link);
    let link = ready.rig.link(&hello_again("a", 1, &[], &[&compare]));
    let out = ready.rig.say(link, &json!({"requestId": compare, "status": "success", "facts": []}));
    assert_eq!(receipt(&out, caller).status, SyncStatus::Empty);
}

#[test]
fn a_sync_whose_link_is_lost_before_its_next_step_says_so() {
    let mut ready = Ready::new();
    let (caller, run) = ready.start();
    ready.rig.close(ready.link);
    let out = ready.rig.event(Event::CaughtUp { run, result: Ok(6) });
    assert_eq!(out.code(caller), ErrorCode::Reconnecting);
}

#[test]
fn a_plan_that_the_loss_swallowed_may_have_run() {
    for known in [true, false] {
        let mut ready = Ready::new();
        let (caller, _, _) = ready.planning(AFTER);
        ready.rig.close(ready.link);
        let out =
            if known { ready.rig.try_link(&hello_again("a", 2, &[], &[])).1 } else { ready.rig.pass(seconds(15)) };
        assert_eq!(out.code(caller), ErrorCode::OutcomeUnknown);
    }
}

#[test]
fn progress_of_a_step_reaches_the_caller_of_the_run() {
    let mut ready = Ready::new();
    let (caller, _, plan) = ready.planning(AFTER);
    let out = ready.rig.say(ready.link, &json!({"type": "progress", "requestId": plan, "progress": 1}));
    assert_eq!(out.0, [Effect::Progress { caller, progress: 1.0, total: None, message: None }]);
}

#[test]
fn c61_two_syncs_at_once_get_each_their_own_receipt() {
    let mut ready = Ready::new();
    let (one, run, first) = ready.comparing();
    let args = SyncArgs { mode: SyncMode::Dryrun, ..SyncArgs::default() };
    let (two, out) = ready.rig.call(None, PATIENCE, Ask::Sync(args));
    let [Effect::CatchUp { run: dry, .. }] = &out.0[..] else { panic!("{out:?}") };
    let out = ready.rig.event(Event::CaughtUp { run: dry.clone(), result: Ok(6) });
    ready.rig.say(ready.link, &differs(&id_of(&out.one(ready.link))));
    ready.rig.say(ready.link, &differs(&first));
    let out = ready.rig.event(Event::Looked { run: dry.clone(), views: view(AFTER) });
    assert_eq!(receipt(&out, two).status, SyncStatus::Dryrun);
    assert_eq!(out.frames(ready.link), [] as [Value; 0], "a dry run stays one");
    let out = ready.rig.event(Event::Looked { run, views: view(AFTER) });
    let plan = id_of(&out.one(ready.link));
    assert_eq!(receipt(&ready.rig.say(ready.link, &done(&plan, AFTER)), one).status, SyncStatus::Success);
}
