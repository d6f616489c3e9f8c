//! Live mode: runs that nobody called.

use super::*;
use crate::core::{protocol::Role, sync::NodeView};

const BEFORE: &str = "return 1";
const AFTER: &str = "return 2";

/// A Studio in live mode with scripts 1 and 2, agreed on.
struct Live {
    rig: Rig,
    link: LinkId,
}

fn live_hello(two_way: bool) -> Value {
    let mode = json!({"oneShotSync": false, "twoWaySync": two_way, "confirmationBehavior": "Initial"});
    with(hello("a", 11), mode)
}

impl Live {
    fn new(two_way: bool) -> Self {
        Self::saying(&live_hello(two_way))
    }

    fn saying(hello: &Value) -> Self {
        let mut rig = Rig::new();
        let link = rig.link(hello);
        let out = rig.load(link, 5, vec![script(1, BEFORE), script(2, BEFORE)], &json!([]));
        assert_eq!(out.kinds(link), [] as [&str; 0], "the first time is left to a person");
        Self { rig, link }
    }

    fn save(&mut self, cursor: u32, id: u128, text: &str) -> Out {
        self.rig.event(patch(cursor, script(id, text)))
    }

    fn edit(&mut self, seq: u64, nodes: &[NodeId], removed: &[NodeId]) -> Out {
        self.rig.say(self.link, &json!({"type": "edit", "seq": seq, "nodes": nodes, "removed": removed}))
    }

    /// The plugin finds nothing.
    fn equal(&mut self, request: &Value) -> Out {
        self.rig.say(self.link, &json!({"requestId": request["requestId"], "status": "success", "facts": []}))
    }
}

/// The one comparison that was asked for.
fn compared(out: &Out, link: LinkId) -> Value {
    let all = out.of_type(link, "sync");
    assert_eq!(all.len(), 1, "{out:?}");
    all[0].clone()
}

fn scope(nodes: &[NodeId], below: &[NodeId]) -> Value {
    json!({ "nodes": nodes, "below": below })
}

#[test]
fn a_save_is_compared_by_itself_and_pushed() {
    let mut live = Live::new(false);
    let out = live.save(6, 1, AFTER);
    let compare = compared(&out, live.link);
    assert_eq!((&compare["scope"], &compare["cursor"]), (&scope(&[NodeId(1)], &[]), &json!(6)));
    let out = live.rig.say(
        live.link,
        &json!({"requestId": compare["requestId"], "status": "success", "facts": [{
            "kind": "differs", "id": NodeId(1), "path": "Script1", "className": "ModuleScript",
            "studioHash": TextHash::of(BEFORE),
        }]}),
    );
    let [.., Effect::Look { run, .. }] = &out.0[..] else { panic!("{out:?}") };
    let view = NodeView {
        parent: Some(NodeId(0)),
        path: "Script1".into(),
        class_name: "ModuleScript".into(),
        fs_path: Some("src/Script1.luau".into()),
        source: Some(AFTER.into()),
        hash: Some(TextHash::of(AFTER)),
        subtree: None,
        properties: Default::default(),
    };
    let out = live.rig.event(Event::Looked { run: run.clone(), views: [(NodeId(1), view)].into() });
    let plan = &out.of_type(live.link, "plan")[0];
    assert_eq!(plan["ops"][0]["source"], AFTER);
    let results = json!([{"id": NodeId(1), "status": "done", "hash": TextHash::of(AFTER)}]);
    live.rig.say(live.link, &json!({"requestId": plan["requestId"], "status": "success", "results": results}));
    assert_eq!(live.rig.bridge.base(None, NodeId(1)), Some(TextHash::of(AFTER)));
}

#[test]
fn one_run_at_a_time_and_what_comes_meanwhile_is_the_next() {
    let mut live = Live::new(false);
    let out = live.save(6, 1, AFTER);
    let first = compared(&out, live.link);
    let out = live.save(7, 2, AFTER);
    assert_eq!(out.of_type(live.link, "sync").len(), 0, "{out:?}");
    let out = live.equal(&first);
    let second = compared(&out, live.link);
    assert_eq!(second["scope"], scope(&[NodeId(2)], &[]));
    assert_eq!(live.rig.bridge.base(None, NodeId(1)), Some(TextHash::of(AFTER)), "it was compared, and equal");
    assert_eq!(live.rig.bridge.base(None, NodeId(2)), Some(TextHash::of(BEFORE)), "it was not compared");
    live.equal(&second);
    assert_eq!(live.rig.bridge.base(None, NodeId(2)), Some(TextHash::of(AFTER)));
}

#[test]
fn where_only_studio_may_have_something_is_looked_at_as_well() {
    let mut live = Live::new(false);
    let out = live.save(6, 3, AFTER);
    let new = compared(&out, live.link);
    assert_eq!(new["scope"], scope(&[NodeId(3)], &[NodeId(0)]));
    live.equal(&new);
    let ops = vec![PatchOp::Drop { id: NodeId(1) }];
    let out = live.rig.event(Event::Patched(Arc::new(Patch { tree_id: TREE.into(), cursor: 7, apply: false, ops })));
    assert_eq!(compared(&out, live.link)["scope"], scope(&[], &[NodeId(0)]));
}

#[test]
fn an_edit_is_answered_when_it_was_dealt_with_however_that_went() {
    let mut live = Live::new(true);
    let out = live.edit(1, &[NodeId(1)], &[]);
    let compare = compared(&out, live.link);
    assert_eq!(compare["scope"], scope(&[NodeId(1)], &[]));
    assert_eq!(out.of_type(live.link, "edited").len(), 0);
    let out = live.equal(&compare);
    assert_eq!(out.of_type(live.link, "edited"), [json!({"type": "edited", "seq": 1})]);

    let out = live.edit(2, &[], &[NodeId(2)]);
    let compare = compared(&out, live.link);
    assert_eq!(compare["scope"], scope(&[NodeId(2)], &[]));
    let failed = json!({"requestId": compare["requestId"], "status": "error", "message": "no"});
    let out = live.rig.say(live.link, &failed);
    assert_eq!(out.of_type(live.link, "edited"), [json!({"type": "edited", "seq": 2})]);
}

#[test]
fn an_edit_is_answered_where_studio_is_not_asked_for_edits() {
    for hello in [live_hello(false), hello("a", 11), with(live_hello(true), json!({"confirmationBehavior": "Always"}))]
    {
        let mut live = Live::saying(&hello);
        let out = live.edit(4, &[NodeId(1)], &[]);
        assert_eq!(out.frames(live.link), [json!({"type": "edited", "seq": 4})]);
    }
}

#[test]
fn in_one_shot_mode_nothing_goes_by_itself() {
    let mut live = Live::saying(&hello("a", 11));
    assert_eq!(live.save(6, 1, AFTER).kinds(live.link), ["patch"]);
}

#[test]
fn a_lost_link_leaves_nothing_out() {
    let mut live = Live::new(true);
    live.edit(1, &[NodeId(1)], &[]);
    live.save(6, 1, AFTER);
    let out = live.rig.close(live.link);
    assert_eq!(out.of_type(live.link, "edited").len(), 0);
    live.rig.event(patch(7, script(2, AFTER)));
    let link = live.rig.link(&with(live_hello(true), json!({"serverId": SERVER, "lastN": 1})));
    let nodes = vec![script(1, AFTER), script(2, AFTER)];
    let out = live.rig.load(link, 7, nodes, &json!([]));
    let again = compared(&out, link);
    assert_eq!(again.get("scope"), None, "everything, for nobody knows what was missed");
    live.link = link;
    let out = live.equal(&again);
    assert_eq!(out.of_type(link, "edited"), [json!({"type": "edited", "seq": 1})]);
}

#[test]
fn a_play_test_holds_everything_back_until_it_is_over() {
    let mut live = Live::new(true);
    let played = with(hello("b", 11), json!({"role": Role::Server, "isRunning": true}));
    let server = live.rig.link(&played);
    let out = live.edit(1, &[NodeId(1)], &[]);
    assert_eq!(out.frames(live.link), [] as [Value; 0]);
    let out = live.rig.say(server, &json!({"type": "bye", "reason": "the play test is over"}));
    assert_eq!(compared(&out, live.link)["scope"], scope(&[NodeId(1)], &[]));
}

#[test]
fn while_the_official_plugin_is_connected_it_alone_syncs() {
    let mut live = Live::new(false);
    live.rig.event(Event::Official(true));
    assert_eq!(live.save(6, 1, AFTER).kinds(live.link), ["patch"]);
    let Answer::Status { studios, .. } = live.rig.status() else { panic!("not a status") };
    assert!(studios[0].paused.as_ref().is_some_and(|why| why.contains("official Rojo plugin")), "{studios:?}");
    let out = live.rig.event(Event::Official(false));
    assert_eq!(compared(&out, live.link)["scope"], scope(&[NodeId(1)], &[]));
}

#[test]
fn a_sync_comes_after_what_is_under_way() {
    let mut live = Live::new(false);
    let out = live.save(6, 1, AFTER);
    let first = compared(&out, live.link);
    let (caller, out) = live.rig.call(None, PATIENCE, Ask::Sync(SyncArgs::default()));
    let [Effect::CatchUp { run, .. }] = &out.0[..] else { panic!("{out:?}") };
    let out = live.rig.event(Event::CaughtUp { run: run.clone(), result: Ok(6) });
    assert_eq!(out.kinds(live.link), [] as [&str; 0], "it waits");
    let out = live.equal(&first);
    let sync = compared(&out, live.link);
    assert_eq!(sync.get("scope"), None);
    let out = live.equal(&sync);
    assert!(out.outcome(caller).is_ok());
}
