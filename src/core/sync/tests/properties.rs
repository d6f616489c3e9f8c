//! Properties: the files win, unless Studio's value is news.

use serde_json::{Value, json};

use super::*;

const LAMP: NodeId = NodeId(5);

fn color(red: f64) -> Value {
    json!({ "Color3": [red, 0.0, 0.0] })
}

fn colored(red: f64) -> Properties {
    Properties::from([("Color".to_owned(), color(red))])
}

fn lamp(red: f64) -> (NodeId, NodeView) {
    let (_, view) = script(LAMP, "");
    let view = NodeView { class_name: "Part".into(), source: None, hash: None, properties: colored(red), ..view };
    (LAMP, view)
}

fn node_of(view: &NodeView) -> Node {
    let node = node(LAMP, "Lamp", "");
    Node { hash: None, class_name: "Part".into(), properties: view.properties.clone(), ..node }
}

/// Studio has this colour instead.
fn has(red: f64) -> Fact {
    Fact { class_name: "Part".into(), properties: colored(red), ..fact(FactKind::Differs, Some(LAMP)) }
}

fn rooted() -> Agreement {
    let mut agreement = agreed(&[]);
    agreement.tree_has_node(&Node { parent: None, name: "Root".into(), hash: None, ..node(NodeId(0), "", "") });
    agreement
}

/// Both sides had this colour, in this plugin session.
fn agreed_on(red: f64) -> Agreement {
    let mut agreement = rooted();
    agreement.tree_has_node(&node_of(&lamp(red).1));
    agreement.agree_properties(LAMP, &colored(red));
    agreement
}

fn lines(step: Step) -> Vec<Change> {
    receipt(step).changes
}

#[test]
fn the_files_win_and_the_receipt_says_what_studio_had() {
    for mut agreement in [agreed(&[]), agreed_on(0.5)] {
        let (mut run, step) = run(SyncMode::Standard, None, vec![has(0.5)], [lamp(1.0)], &mut agreement);
        let ops = ops(step);
        let expected = PlanOp::SetProperties { id: LAMP, properties: colored(1.0), expect: colored(0.5) };
        assert_eq!(ops, [expected]);
        let done = OpResult { op: Some("setProperties".into()), ..result(LAMP, OpStatus::Done, None) };
        let changes = lines(applied(&mut run, &[done], &mut agreement));
        assert_eq!(changes[0].result, ChangeResult::Done);
        let said = &changes[0].foreign["properties"]["Color"];
        assert_eq!(*said, json!({ "current": color(0.5), "incoming": color(1.0) }));
        assert_eq!(agreement.properties(LAMP).last, Some(colored(1.0)));
    }
}

#[test]
fn what_was_changed_in_studio_since_is_left_alone() {
    for (file, what) in [(0.5, "not in the file"), (1.0, "the file has another")] {
        let mut agreement = agreed_on(0.5);
        let (_, step) = run(SyncMode::Standard, None, vec![has(0.25)], [lamp(file)], &mut agreement);
        let changes = lines(step);
        assert_eq!(changes[0].result, ChangeResult::Unresolved);
        assert!(changes[0].reason.as_ref().expect("it says why").contains(what), "{changes:?}");
        assert_eq!(agreement.properties(LAMP).last, Some(colored(0.5)));
    }
}

#[test]
fn a_value_that_went_through_studio_counts_as_the_same() {
    let mut agreement = agreed_on(0.1);
    let (_, step) = run(SyncMode::Standard, None, vec![has(0.101_960_8)], [lamp(1.0)], &mut agreement);
    assert_eq!(ops(step).len(), 1, "a colour is kept in bytes");
}

#[test]
fn a_place_that_was_closed_without_saving_has_old_values_and_gets_the_file_s() {
    let mut before = agreed_on(0.5);
    before.agree_properties(LAMP, &colored(1.0));
    let mut agreement = rooted();
    agreement.tree_has_node(&node_of(&lamp(1.0).1));
    agreement.recall(before.take_news().iter().filter_map(|news| news.agreed().cloned()).collect());
    let (_, step) = run(SyncMode::Standard, None, vec![has(0.5)], [lamp(1.0)], &mut agreement.clone());
    assert_eq!(ops(step).len(), 1);
    let (_, step) = run(SyncMode::Standard, None, vec![has(0.75)], [lamp(1.0)], &mut agreement);
    assert_eq!(lines(step)[0].result, ChangeResult::Unresolved, "nobody agreed on that one");
}

#[test]
fn one_value_that_is_left_alone_does_not_keep_the_others() {
    let both = |red: f64, size: i32| {
        let mut properties = colored(red);
        properties.insert("Size".to_owned(), json!({ "Int32": size }));
        properties
    };
    let mut agreement = agreed(&[]);
    let (_, view) = lamp(1.0);
    let view = NodeView { properties: both(1.0, 2), ..view };
    agreement.tree_has_node(&node_of(&view));
    agreement.agree_properties(LAMP, &both(0.5, 1));
    let fact = Fact { properties: both(0.25, 1), ..has(0.25) };
    let (mut run, step) = run(SyncMode::Standard, None, vec![fact], [(LAMP, view)], &mut agreement);
    let ops = ops(step);
    assert!(matches!(&ops[..], [PlanOp::SetProperties { properties, .. }] if properties.len() == 1), "{ops:?}");
    let receipt = receipt(applied(&mut run, &[result(LAMP, OpStatus::Done, None)], &mut agreement));
    assert_eq!((receipt.status, receipt.pushed, receipt.unresolved), (SyncStatus::Partial, 1, 1));
    assert_eq!(agreement.properties(LAMP).last, Some(both(0.5, 2)), "of the colour nothing new is agreed");
}

#[test]
fn a_text_and_properties_of_one_script_are_two_changes_with_a_result_each() {
    let mut agreement = agreed(&[(ID, BASE)]);
    let (_, view) = script(ID, DISK);
    let view = NodeView { properties: colored(1.0), ..view };
    let fact = Fact { properties: colored(0.5), ..differs(ID, BASE) };
    let (mut run, step) = run(SyncMode::Standard, None, vec![fact], [(ID, view)], &mut agreement);
    assert_eq!(ops(step).len(), 2);
    let text = result(ID, OpStatus::Done, Some(DISK));
    let refused = OpResult {
        op: Some("setProperties".into()),
        error: Some("Color: no".into()),
        ..result(ID, OpStatus::Failed, Some(DISK))
    };
    let receipt = receipt(applied(&mut run, &[text, refused], &mut agreement));
    assert_eq!((receipt.status, receipt.pushed, receipt.failed), (SyncStatus::Partial, 1, 1));
    assert_eq!(agreement.base(ID), Some(hash(DISK)));
    assert_eq!(agreement.properties(ID).last, None);
}

#[test]
fn equal_texts_are_agreed_on_while_properties_differ() {
    let mut agreement = agreed(&[(ID, BASE)]);
    let (_, view) = script(ID, DISK);
    agreement.tree_has_node(&Node { properties: colored(1.0), ..node(ID, "Script1", DISK) });
    let view = NodeView { properties: colored(1.0), subtree: None, ..view };
    let fact = Fact { properties: colored(0.5), ..fact(FactKind::Differs, Some(ID)) };
    let (_, step) = run(SyncMode::Dryrun, None, vec![fact], [(ID, view)], &mut agreement);
    assert_eq!(lines(step).len(), 1, "of the properties alone");
    assert_eq!(agreement.base(ID), Some(hash(DISK)));
}

#[test]
fn an_override_pushes_what_was_changed_in_studio_if_it_is_as_the_caller_saw_it() {
    let pushed = |expected: f64| {
        let mut agreement = agreed_on(0.5);
        let mut wanted = Override::new(LAMP, OverrideDirection::Push);
        wanted.expected_properties = Some([("Color".to_owned(), color(expected))].into_iter().collect());
        let args = SyncArgs { overrides: vec![wanted], ..SyncArgs::default() };
        run_with(args, vec![has(0.25)], [lamp(1.0)], &mut agreement).1
    };
    assert_eq!(ops(pushed(0.25)).len(), 1);
    let refused = receipt(pushed(0.75));
    assert!(refused.rejected[0].reason.contains("Color in Studio is not"), "{refused:?}");
}

#[test]
fn what_was_removed_in_studio_is_not_made_again_unasked() {
    let (_, view) = lamp(1.0);
    let subtree = NewNode { class_name: "Part".into(), source: None, properties: colored(1.0), ..new_script(LAMP, "") };
    let view = NodeView { subtree: Some(subtree), ..view };
    let (_, step) = run(SyncMode::Standard, None, vec![missing(LAMP)], [(LAMP, view.clone())], &mut agreed_on(1.0));
    assert!(lines(step)[0].reason.as_ref().expect("why").contains("removed in Studio"));
    let (_, step) = run(SyncMode::Standard, None, vec![missing(LAMP)], [(LAMP, view)], &mut agreed(&[]));
    assert!(matches!(&ops(step)[..], [PlanOp::Add { node, .. }] if node.properties == colored(1.0)));
}

/// What is removed and is no script is read first; where that cannot be had, it goes all the same.
fn described(run: &mut Run, step: Step, agreement: &mut Agreement) -> Step {
    let Step::Describe { temp_id, .. } = step else { return step };
    let step = run.described(&temp_id, Err(crate::core::error::ToolError::no_studio()), agreement);
    journalled(run, step, agreement)
}

#[test]
fn what_is_removed_and_is_no_script_is_in_the_journal_as_studio_had_it() {
    let stray = Fact {
        class_name: "Part".into(),
        temp_id: Some(TempId::from("x1")),
        name: Some("Lamp".into()),
        subtree: Some(vec![]),
        siblings: Some(4),
        ..extra("Lamp")
    };
    let lost = || {
        let mut agreement = agreed_on(1.0);
        agreement.patched(&[crate::core::protocol::PatchOp::Drop { id: LAMP }]);
        agreement
    };
    let root = (NodeId(0), NodeView { parent: None, ..lamp(1.0).1 });
    let as_it_is = NewNode {
        id: NodeId(1),
        name: "Lamp".into(),
        class_name: "Part".into(),
        source: None,
        properties: colored(0.75),
        children: Vec::new(),
    };
    let other = NewNode { name: "Other".into(), ..as_it_is.clone() };
    for (node, goes) in [(as_it_is.clone(), true), (other, false)] {
        let mut agreement = lost();
        let (mut run, step) = run(SyncMode::Standard, None, vec![stray.clone()], [root.clone()], &mut agreement);
        let Step::Describe { temp_id, .. } = step else { panic!("{step:?}") };
        match run.described(&temp_id, Ok(node), &mut agreement) {
            Step::Begin(draft) if goes => assert_eq!(draft.entry.changes[0].lost.as_deref(), Some(&as_it_is)),
            step => assert!(!goes && receipt(step).failed == 1, "it is another by now"),
        }
    }
}

#[test]
fn a_model_with_parts_of_one_name_is_removed_as_long_as_there_are_not_more_of_them() {
    let rig = NodeId(20);
    let part = |id: u128| Node { id: NodeId(id), parent: Some(rig), ..node_of(&lamp(0.0).1) };
    let model = Node { class_name: "Model".into(), hash: None, ..node(rig, "Rig", "") };
    let leg = Below { path: vec!["Lamp".into()], class_name: "Part".into(), studio_hash: None, is_draft: false };
    for (legs, removed) in [(2, true), (3, false)] {
        let mut agreement = rooted();
        [model.clone(), part(21), part(22)].iter().for_each(|node| agreement.tree_has_node(node));
        let compared = agreement.unconfirmed();
        agreement.confirm(compared, |_| false);
        agreement.patched(&[crate::core::protocol::PatchOp::Drop { id: rig }]);
        let stray = Fact {
            class_name: "Model".into(),
            temp_id: Some(TempId::from("x1")),
            name: Some("Rig".into()),
            subtree: Some(vec![leg.clone(); legs]),
            siblings: Some(4),
            ..extra("Rig")
        };
        let root = (NodeId(0), NodeView { parent: None, ..lamp(1.0).1 });
        let (mut run, step) = run(SyncMode::Standard, None, vec![stray], [root], &mut agreement);
        let step = described(&mut run, step, &mut agreement);
        assert_eq!(matches!(step, Step::Apply { .. }), removed, "{legs}: {step:?}");
    }
}

#[test]
fn what_no_file_specifies_any_more_is_removed_as_scripts_are() {
    let stray = Fact {
        class_name: "Part".into(),
        temp_id: Some(TempId::from("x1")),
        name: Some("Lamp".into()),
        subtree: Some(vec![]),
        siblings: Some(4),
        ..extra("Lamp")
    };
    let mut agreement = agreed_on(1.0);
    let key = agreement.key(LAMP).expect("it is there");
    agreement.patched(&[crate::core::protocol::PatchOp::Drop { id: LAMP }]);
    let root = (NodeId(0), NodeView { parent: None, ..lamp(1.0).1 });
    let (mut run, step) = run(SyncMode::Standard, None, vec![stray.clone()], [root.clone()], &mut agreement);
    let step = described(&mut run, step, &mut agreement);
    assert!(matches!(&ops(step)[..], [PlanOp::Remove { .. }]));
    let done = OpResult { id: TempId::from("x1").into(), ..result(LAMP, OpStatus::Done, None) };
    assert_eq!(receipt(applied(&mut run, &[done], &mut agreement)).removed, 1);
    assert_eq!(agreement.properties_gone(&key), None);

    let inner = Below { path: vec!["Mine".into()], class_name: "Part".into(), studio_hash: None, is_draft: false };
    let holds = Fact { subtree: Some(vec![inner]), ..stray };
    agreement.agree_properties_gone(&key, Some(&colored(1.0)));
    let (_, step) = super::run(SyncMode::Standard, None, vec![holds], [root], &mut agreement);
    assert!(lines(step)[0].reason.as_ref().expect("why").contains("made in Studio"));
}

#[test]
fn a_reference_that_was_changed_in_studio_is_left_alone_and_one_that_the_file_changed_is_not() {
    let refers = |to: &str| Properties::from([("Value".to_owned(), json!({ "Ref": to }))]);
    let (one, two) = (NodeId(8).to_string(), NodeId(9).to_string());
    let mut agreement = rooted();
    let pointer = |to: &str| {
        let (_, view) = lamp(0.0);
        NodeView { properties: refers(to), ..view }
    };
    // What it refers to comes after it, as a part of a model does.
    agreement.tree_has_node(&node_of(&pointer(&one)));
    for (id, name) in [(NodeId(8), "One"), (NodeId(9), "Two")] {
        agreement.tree_has_node(&Node { hash: None, class_name: "Part".into(), ..node(id, name, "") });
    }
    let compared = agreement.unconfirmed();
    agreement.confirm(compared, |_| false);
    let kept: Vec<_> = agreement.take_news().iter().filter_map(|news| news.agreed()?.text.clone()).collect();
    assert!(kept.iter().any(|text| text.contains("game.One")), "it outlives the nodes: {kept:?}");
    let mut sync = |file: &str, studio: &str| {
        agreement.tree_has_node(&node_of(&pointer(file)));
        let there = Fact { properties: refers(studio), ..has(0.0) };
        let (_, step) = run(SyncMode::Dryrun, None, vec![there], [(LAMP, pointer(file))], &mut agreement);
        lines(step)[0].direction
    };
    assert_eq!(sync(&two, &one), Direction::Push, "the file has another");
    assert_eq!(sync(&two, "game.One"), Direction::Push, "and what it was is no node's any more");
    assert_eq!(sync(&one, &two), Direction::Unresolved, "Studio has another");
    assert_eq!(sync(&one, ""), Direction::Unresolved, "Studio has none");
    assert_eq!(sync(&two, "game.Made"), Direction::Unresolved, "both have another");
}
