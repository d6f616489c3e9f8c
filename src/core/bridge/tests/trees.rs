//! The tree on its way to a plugin, and the patches that must not overtake it.

use super::*;

fn part(part: u32, last: bool, nodes: Vec<Node>) -> TreePart {
    TreePart { tree_id: TREE.into(), cursor: 5, part, last, nodes }
}

fn taken(part: i64) -> Value {
    json!({"type": "taken", "part": part})
}

fn ready(cursor: u32) -> Value {
    json!({"type": "treeReady", "treeId": TREE, "cursor": cursor})
}

/// The cursors of the patches for `link`.
fn patches(out: &Out, link: LinkId) -> Vec<u64> {
    out.of_type(link, "patch").iter().map(|patch| patch["cursor"].as_u64().expect("a cursor")).collect()
}

#[test]
fn the_next_part_follows_when_the_last_one_was_taken() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    assert_eq!(rig.say(link, &taken(0)).0, [], "before there is a tree");
    let parts = vec![part(0, false, vec![script(1, "1")]), part(1, false, vec![]), part(2, true, vec![])];
    let out = rig.event(Event::TreeBuilt { link, parts });
    let frame = out.one(link);
    assert_eq!((&frame["type"], &frame["part"], &frame["last"]), (&json!("tree"), &json!(0), &json!(false)));
    assert_eq!(frame["nodes"][0]["hash"], json!(TextHash::of("1")));
    for wrong in [1, 2, 7] {
        assert_eq!(rig.say(link, &taken(wrong)).0, [], "part {wrong} was not sent");
    }
    assert_eq!(rig.say(link, &taken(0)).one(link)["part"], 1);
    assert_eq!(rig.say(link, &taken(0)).0, [], "said twice");
    assert_eq!(rig.say(link, &taken(1)).one(link)["part"], 2);
    assert_eq!(rig.say(link, &taken(2)).0, []);
    assert_eq!(rig.studios(), ["place:11 Loading"], "until it is paired");
    rig.say(link, &ready(5));
    assert_eq!(rig.studios(), ["place:11 Live"]);
}

#[test]
fn patches_wait_for_the_tree_and_those_that_it_holds_are_skipped() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    for cursor in [3, 4] {
        assert_eq!(rig.event(patch(cursor, script(1, "old"))).0, []);
    }
    rig.event(Event::TreeBuilt { link, parts: vec![part(0, false, vec![]), part(1, true, vec![])] });
    for cursor in [5, 6] {
        assert_eq!(rig.event(patch(cursor, script(1, "new"))).0, []);
    }
    assert_eq!(patches(&rig.say(link, &ready(5)), link), [] as [u64; 0], "a part is still missing");
    rig.say(link, &taken(0));
    assert_eq!(rig.event(patch(7, script(1, "newer"))).0, []);
    assert_eq!(patches(&rig.say(link, &ready(5)), link), [6, 7]);
    assert_eq!(patches(&rig.say(link, &ready(5)), link), [] as [u64; 0], "once");
    assert_eq!(patches(&rig.event(patch(8, script(1, "newest"))), link), [8], "at once from here on");
}

#[test]
fn a_tree_ready_of_another_tree_or_version_does_not_count() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    rig.event(Event::TreeBuilt { link, parts: vec![part(0, true, vec![script(1, "1")])] });
    rig.say(link, &json!({"type": "treeReady", "treeId": "another", "cursor": 5}));
    assert_eq!(rig.studios(), ["place:11 Loading"]);
    rig.say(link, &ready(4));
    assert_eq!((rig.studios(), rig.bridge.base(None, NodeId(1))), (vec!["place:11 Loading".to_owned()], None));
    rig.say(link, &ready(5));
    assert_eq!(rig.studios(), ["place:11 Live"]);
}

#[test]
fn a_plugin_that_returns_gets_the_whole_tree_again_and_no_patch_in_between() {
    let mut rig = Rig::new();
    let first = rig.link(&hello("a", 11));
    rig.load(first, 5, vec![script(1, "1")], &json!([]));
    rig.close(first);
    assert_eq!(rig.event(patch(6, script(1, "2"))).0, []);
    let (second, out) = rig.try_link(&hello_again("a", 0, &[], &[]));
    assert!(out.0.contains(&Effect::BuildTree { link: second }));
    let late = Event::TreeBuilt { link: first, parts: vec![part(0, true, vec![])] };
    assert_eq!(rig.event(late).0, [], "a tree for the link that is gone");
    assert_eq!(rig.event(patch(7, script(1, "3"))).0, []);
    assert_eq!(rig.load(second, 7, vec![script(1, "3")], &json!([])).of_type(second, "patch"), [] as [Value; 0]);
    assert_eq!(patches(&rig.event(patch(8, script(1, "4"))), second), [8]);
}

#[test]
fn a_level_0_plugin_gets_no_tree_and_no_patch() {
    let mut rig = Rig::new();
    let link = rig.link(&hello0(11));
    assert_eq!(rig.event(Event::TreeBuilt { link, parts: vec![part(0, true, vec![])] }).0, []);
    assert_eq!(rig.event(patch(6, script(1, "2"))).0, []);
    assert_eq!(rig.say(link, &taken(0)).0, []);
    assert_eq!(rig.say(link, &ready(5)).frames(link), [] as [Value; 0]);
}

#[test]
fn what_a_plugin_does_not_report_is_agreed() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let nodes = vec![script(1, "1"), script(2, "2")];
    let facts = json!([{"kind": "differs", "id": NodeId(2), "path": "p", "className": "ModuleScript",
        "studioHash": TextHash::of("mine")}]);
    let out = rig.load(link, 5, nodes, &facts);
    let [Effect::Look { run, ids, subtrees }] = &out.0[..] else { panic!("what differs is looked up: {out:?}") };
    assert_eq!((&ids[..], &subtrees[..]), (&[NodeId(2)][..], &[][..]));
    assert_eq!(rig.bridge.base(None, NodeId(1)), None, "not before that");
    let out = rig.event(Event::Looked { run: run.clone(), views: [].into() });
    assert_eq!(out.0, [], "nobody waits for this comparison");
    assert_eq!(rig.bridge.base(None, NodeId(1)), Some(TextHash::of("1")));
    assert_eq!(rig.bridge.base(None, NodeId(2)), None);
}

#[test]
fn each_studio_agrees_for_itself_and_keeps_that_over_a_loss() {
    let mut rig = Rig::new();
    let (one, two) = (rig.link(&hello("a", 11)), rig.link(&hello("b", 22)));
    rig.load(one, 5, vec![script(1, "1")], &json!([]));
    let base = |rig: &Rig, studio| rig.bridge.base(Some(studio), NodeId(1));
    assert_eq!(base(&rig, "place:11"), Some(TextHash::of("1")));
    assert_eq!(base(&rig, "place:22"), None);
    rig.close(one);
    let one = rig.link(&hello_again("a", 0, &[], &[]));
    assert_eq!(base(&rig, "place:11"), Some(TextHash::of("1")));
    rig.event(Event::TreeBuilt { link: one, parts: vec![part(0, true, vec![script(1, "changed meanwhile")])] });
    assert_eq!(base(&rig, "place:11"), Some(TextHash::of("1")), "until Studio has it too");
    rig.say(one, &json!({"type": "bye"}));
    rig.say(two, &json!({"type": "bye"}));
    rig.link(&hello("c", 11));
    assert_eq!(base(&rig, "place:11"), None, "another load of the plugin starts with nothing");
}

#[test]
fn a_patch_that_came_while_the_plugin_compared_is_not_agreed_by_that_comparison() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    rig.event(Event::TreeBuilt { link, parts: vec![part(0, true, vec![script(1, "1")])] });
    rig.event(patch(6, script(1, "2")));
    rig.say(link, &ready(5));
    assert_eq!(rig.bridge.base(None, NodeId(1)), Some(TextHash::of("1")));
}

#[test]
fn a_dropped_script_is_no_longer_agreed() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    rig.load(link, 5, vec![script(1, "1")], &json!([]));
    let ops = vec![PatchOp::Drop { id: NodeId(1) }];
    let out = rig.event(Event::Patched(Arc::new(Patch { tree_id: TREE.into(), cursor: 6, apply: false, ops })));
    assert_eq!(patches(&out, link), [6]);
    assert_eq!(rig.bridge.base(None, NodeId(1)), None);
}

#[test]
fn a_sync_that_comes_while_the_tree_is_on_its_way_waits_for_it() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let (caller, out) = rig.call(None, PATIENCE, Ask::Sync(SyncArgs::default()));
    let Some(Effect::CatchUp { run, .. }) = out.0.last() else { panic!("a run begins with the disk: {out:?}") };
    let out = rig.event(Event::CaughtUp { run: run.clone(), result: Ok(5) });
    assert_eq!(out.kinds(link), Vec::<String>::new(), "there is nothing to compare with yet");
    let out = rig.load(link, 5, vec![script(1, "1")], &json!([]));
    let compare = &out.of_type(link, "sync")[0];
    assert_eq!(compare["cursor"], 5);
    let answer = json!({"requestId": compare["requestId"], "status": "success", "cursor": 5, "facts": []});
    let out = rig.say(link, &answer);
    assert!(matches!(out.outcome(caller), Ok(Answer::Receipt(_))), "{out:?}");
}

/// The plugin differs in `ids`, told in one frame each; the last of them with `end`.
fn in_parts(rig: &mut Rig, link: LinkId, ids: &[u128], request: Option<&Value>, end: &Value) -> Out {
    let fact = |id: u128| json!({"kind": "missing", "id": NodeId(id), "path": "x", "className": "ModuleScript"});
    let (last, before) = ids.split_last().expect("one at least");
    for (part, id) in before.iter().enumerate() {
        rig.say(link, &json!({"type": "facts", "requestId": request, "part": part, "facts": [fact(*id)]}));
    }
    rig.say(link, &with(end.clone(), json!({"parts": before.len(), "facts": [fact(*last)]})))
}

/// What is looked up after a comparison.
fn looked_at(out: &Out) -> Vec<u128> {
    match &out.0[..] {
        [.., Effect::Look { ids, .. }] => ids.iter().map(|id| id.0).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn differences_that_one_frame_cannot_hold_come_in_parts() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    let nodes = (1..=3).map(|id| script(id, "1")).collect();
    rig.event(Event::TreeBuilt { link, parts: vec![part(0, true, nodes)] });
    let out = in_parts(&mut rig, link, &[1, 2, 3], None, &ready(5));
    assert_eq!(looked_at(&out), [1, 2, 3]);
    assert_eq!(rig.studios(), ["place:11 Live"]);
    let compare = compare(&mut rig, link);
    let answer = json!({"requestId": compare, "status": "success", "cursor": 5});
    let out = in_parts(&mut rig, link, &[3, 1], Some(&compare), &answer);
    assert_eq!(looked_at(&out), [3, 1]);
}

/// Ask for a sync; the id of the comparison that the plugin gets.
fn compare(rig: &mut Rig, link: LinkId) -> Value {
    let (_, out) = rig.call(None, PATIENCE, Ask::Sync(SyncArgs::default()));
    let Some(Effect::CatchUp { run, .. }) = out.0.last() else { panic!("{out:?}") };
    let out = rig.event(Event::CaughtUp { run: run.clone(), result: Ok(5) });
    out.of_type(link, "sync")[0]["requestId"].clone()
}

#[test]
fn a_studio_whose_differences_are_too_many_is_loaded_and_nothing_is_taken_for_equal() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    rig.event(Event::TreeBuilt { link, parts: vec![part(0, true, vec![script(1, "1")])] });
    let out = rig.say(link, &with(ready(5), json!({"parts": 9})));
    assert!(out.0.iter().any(|effect| matches!(effect, Effect::Note(text) if text.contains("could be taken in"))));
    assert_eq!(rig.studios(), ["place:11 Live"]);
    assert_eq!(rig.bridge.base(None, NodeId(1)), None);
}

#[test]
fn a_comparison_whose_parts_were_lost_with_the_link_fails_and_changes_nothing() {
    let mut rig = Rig::new();
    let link = rig.link(&hello("a", 11));
    rig.load(link, 5, vec![script(1, "1")], &json!([]));
    let compare = compare(&mut rig, link);
    rig.say(link, &json!({"type": "facts", "requestId": compare, "part": 0, "facts": []}));
    rig.close(link);
    let id = compare.as_str().expect("an id");
    let link = rig.link(&hello_again("a", 1, &[], &[id]));
    let out = rig.say(link, &json!({"requestId": compare, "status": "success", "cursor": 5, "parts": 1, "facts": []}));
    let [(_, outcome)] = &out.settled()[..] else { panic!("{out:?}") };
    assert!(outcome.as_ref().expect_err("it failed").message.contains("did not all arrive"));
    assert_eq!(out.of_type(link, "plan"), [] as [Value; 0]);
}
