//! What goes back byte for byte, what goes back on both sides, and what is too large to be listed.

use super::*;
use crate::core::{
    journal::{HeldFile, MadeFile, PropertyLine},
    protocol::digest,
};

fn held() -> Vec<HeldFile> {
    let bytes = Some(format!("\u{feff}{BASE}\r\n").into_bytes().into());
    vec![HeldFile { path: "src/Gone.lua".into(), bytes }]
}

/// A run that takes `lines` back, up to its entry in the journal.
fn undo_with(
    (mode, both_live): (SyncMode, bool),
    lines: Vec<Line>,
    facts: Vec<Fact>,
    views: impl IntoIterator<Item = (NodeId, NodeView)>,
    agreement: &mut Agreement,
) -> (Run, Step) {
    let args = SyncArgs { mode, undo: Some(Undo { journal: None, both_live }), ..SyncArgs::default() };
    let (mut run, _) = Run::start("run-1".into(), args, true);
    run.caught_up(7, agreement);
    run.compared(Some(7), facts, agreement);
    let texts = [BASE, DISK, STUDIO].map(|text| (hash(text), text.to_owned())).into();
    let entry = Entry { what: "sync".into(), who: Some("an agent".into()), changes: lines, ..Entry::default() };
    let when = "14:02 UTC".to_owned();
    run.recalled(Ok(Recalled { id: 4, entry, texts, when }), agreement);
    let step = run.looked(HashMap::from_iter(views), agreement);
    (run, step)
}

#[test]
fn a_file_that_was_deleted_by_the_run_comes_back_as_it_was_and_where_it_was() {
    let lost = Line {
        base: Some(Some(hash(BASE))),
        disk: (Some(hash(BASE)), None),
        held: held(),
        lost: Some(Box::new(new_script(NodeId(77), BASE))),
        ..line(Direction::Pull, PatchType::Remove, module("Gone"))
    };
    let mut agreement = tree(&[]);
    let (mut run, step) = undo(vec![lost], vec![], [root()], &mut agreement);
    let said = entry(&step);
    assert_eq!(said.changes[1].made, [held()[0].as_made()], "so that it can be taken back too");
    let step = journalled(&mut run, step, &mut agreement);
    let [PlanOp::Add { parent: ROOT, node }] = &ops(step)[..] else { panic!("made again") };
    assert_ne!(node.id, NodeId(77), "an id that no node has");
    let done = OpResult { id: node.id.into(), op: None, status: OpStatus::Done, hash: None, error: None };
    let step = applied(&mut run, &[done], &mut agreement);
    assert_eq!(step, Step::Write(vec![FileWrite::Restore { files: held() }]));
}

#[test]
fn two_deletions_of_one_run_are_told_apart() {
    let gone = |name: &str| Line {
        base: Some(Some(hash(BASE))),
        studio: (Some(hash(BASE)), None),
        ..line(Direction::Push, PatchType::Remove, module(name))
    };
    let mut agreement = tree(&[]);
    let (mut run, step) = undo(vec![gone("One"), gone("Two")], vec![], [root()], &mut agreement);
    let step = journalled(&mut run, step, &mut agreement);
    let ids: HashSet<OpId> = ops(step).iter().map(PlanOp::subject).collect();
    assert_eq!(ids.len(), 2, "each result is about one of them");
}

#[test]
fn files_that_were_made_go_unless_somebody_touched_them() {
    let made = vec![
        MadeFile { path: "src/Script1".into(), hash: None },
        MadeFile { path: "src/Script1/init.luau".into(), hash: Some(hash(STUDIO)) },
    ];
    let pulled = Line { made: made.clone(), ..line(Direction::Pull, PatchType::Add, module("Script1")) };
    let agreement = || tree(&[(ID, "Script1", STUDIO)]);
    for mode in [SyncMode::Fastfail, SyncMode::Standard] {
        let begin = |agreement: &mut Agreement| {
            undo_with((mode, false), vec![pulled.clone()], vec![], [root(), script(ID, STUDIO)], agreement)
        };
        let mut known = agreement();
        let (mut run, step) = begin(&mut known);
        assert_eq!(step, Step::Check(vec![FileWrite::Unmake { files: made.clone() }]), "{mode:?}");
        let step = run.checked(vec![Some(Wrote::MovedOn("it has changed meanwhile".into()))], &known);
        let receipt = receipt(step);
        assert_eq!((receipt.unresolved, receipt.journal), (1, None), "{mode:?}: {receipt:?}");

        let mut known = agreement();
        let (mut run, step) = begin(&mut known);
        let step = journalled(&mut run, step, &mut known);
        assert!(matches!(step, Step::Write(_)), "{step:?}");
        run.written(vec![Wrote::Done(None)], &mut known);
        assert_eq!(known.base(ID), None, "nothing was ever agreed");
    }
}

fn pulled_rename(disk: &str, studio: &str) -> Line {
    Line {
        base: Some(Some(hash(disk))),
        disk: (Some(hash(disk)), Some(hash(studio))),
        studio: (Some(hash(studio)), Some(hash(studio))),
        was: Some(Seat { parent: InstanceKey::root(), name: "Old".into() }),
        ..line(Direction::Pull, PatchType::Rename, module("Script1"))
    }
}

#[test]
fn with_both_sides_live_a_rename_is_taken_back_in_studio_too() {
    for (disk, source) in [(STUDIO, None), (BASE, Some(BASE.to_owned()))] {
        let mut agreement = tree(&[(ID, "Script1", STUDIO)]);
        let lines = vec![pulled_rename(disk, STUDIO)];
        let views = || [root(), script(ID, STUDIO)];
        let (mut run, step) = undo_with((SyncMode::Fastfail, true), lines.clone(), vec![], views(), &mut agreement);
        let step = journalled(&mut run, step, &mut agreement);
        let [PlanOp::Rename { temp_id: None, id: ID, parent: ROOT, name, source: given, expect }] = &ops(step)[..]
        else {
            panic!("a rename")
        };
        assert_eq!((name.as_str(), given, expect.studio_hash), ("Old", &source, Some(hash(STUDIO))));
        let step = applied(&mut run, &[result(ID, OpStatus::Done, Some(disk))], &mut agreement);
        let Step::Write(writes) = step else { panic!("{step:?}") };
        let [FileWrite::Move { name, text, .. }] = &writes[..] else { panic!("{writes:?}") };
        assert_eq!((name.as_str(), text.as_deref()), ("Old", Some(disk)));

        let mut agreement = tree(&[(ID, "Script1", STUDIO)]);
        let facts = vec![differs(ID, DISK)];
        let (_, step) = undo_with((SyncMode::Fastfail, true), lines, facts, views(), &mut agreement);
        assert!(super::held(step).contains("changed since"), "somebody typed in it");
    }
}

#[test]
fn of_properties_each_goes_back_by_itself() {
    let values = |red: u8, level: u8| {
        let number = |value: u8| serde_json::json!({ "Float64": value });
        Properties::from([("Red".to_owned(), number(red)), ("@level".to_owned(), number(level))])
    };
    let set = PropertyLine { before: values(1, 1), after: values(2, 2), base: Some(values(1, 1)) };
    let set = Line {
        properties: Some(set),
        class_name: "Part".into(),
        ..line(Direction::Push, PatchType::Edit, key(&[("Script1", "Part")]))
    };
    let (_, view) = script(ID, BASE);
    let view = NodeView { class_name: "Part".into(), hash: None, source: None, properties: values(2, 2), ..view };
    let mut agreement = tree(&[]);
    let lamp = Node { hash: None, class_name: "Part".into(), properties: values(2, 2), ..node(ID, "Script1", "") };
    agreement.tree_has_node(&lamp);
    agreement.agree_properties(ID, &values(2, 2));
    let mut moved = values(9, 2);
    moved.remove("@level");
    let facts = vec![Fact { properties: moved, ..fact(FactKind::Differs, Some(ID)) }];
    let (mut run, step) =
        undo_with((SyncMode::Standard, false), vec![set], facts, [root(), (ID, view)], &mut agreement);
    let step = journalled(&mut run, step, &mut agreement);
    let [PlanOp::SetProperties { properties, .. }] = &ops(step)[..] else { panic!("one step") };
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["@level"]);
    let done = OpResult { op: Some("setProperties".into()), ..result(ID, OpStatus::Done, None) };
    let receipt = receipt(applied(&mut run, &[done], &mut agreement));
    assert_eq!((receipt.status, receipt.unresolved), (SyncStatus::Partial, 1), "{receipt:?}");
    assert!(receipt.message.expect("it says what").starts_with("undid part of sync 4 by an agent at 14:02 UTC"));
    let base = agreement.properties(ID).last.expect("known");
    assert_eq!((&base["@level"], &base["Red"]), (&values(1, 1)["@level"], &values(2, 2)["Red"]));
}

#[test]
fn an_undo_of_which_nothing_was_done_leaves_no_entry() {
    let mut agreement = tree(&[(ID, "Script1", DISK)]);
    let (mut run, step) = undo(vec![made()], vec![], [root(), script(ID, DISK)], &mut agreement);
    journalled(&mut run, step, &mut agreement);
    let step = run.applied(&[result(ID, OpStatus::Guard, Some(STUDIO))], &mut agreement);
    let Step::Conclude { entry, .. } = &step else { panic!("{step:?}") };
    assert!(entry.did_nothing(), "{entry:?}");
    let receipt = receipt(run.concluded(Ok(())));
    assert_eq!((receipt.status, receipt.journal), (SyncStatus::Error, None));
    assert!(receipt.message.is_none(), "nothing was undone: {receipt:?}");
}

#[test]
fn what_is_too_much_to_be_listed_goes_by_its_digest() {
    let children: Vec<NewNode> = (100..700).map(|id| new_script(NodeId(id), BASE)).collect();
    let (_, view) = folder(ID, children.clone());
    let listed: Vec<Below> = children
        .iter()
        .map(|child| Below {
            path: vec![child.name.clone()],
            class_name: child.class_name.clone(),
            studio_hash: Some(hash(BASE)),
            is_draft: false,
        })
        .collect();
    let made = Line {
        class_name: "Folder".into(),
        below: listed.clone(),
        ..line(Direction::Push, PatchType::Add, key(&[("Dir1", "Folder")]))
    };
    let mut agreement = tree(&[]);
    let in_tree = |parent: NodeId, of: &NewNode| Node {
        parent: Some(parent),
        class_name: of.class_name.clone(),
        hash: of.source.as_deref().map(hash),
        ..node(of.id, &of.name, "")
    };
    agreement.tree_has_node(&in_tree(ROOT, view.subtree.as_ref().expect("a node")));
    for child in &children {
        agreement.tree_has_node(&in_tree(ID, child));
        agreement.agree(child.id, hash(BASE));
    }
    agreement.agree_properties(ID, &Properties::new());
    let (mut run, step) = undo(vec![made.clone()], vec![], [root(), (ID, view)], &mut agreement);
    assert_eq!(entry(&step).changes[0].below.len(), 600, "the journal has all of it");
    let step = journalled(&mut run, step, &mut agreement);
    let [PlanOp::Remove { expect, .. }] = &ops(step)[..] else { panic!("a removal") };
    assert_eq!((expect.subtree.len(), expect.subtree_digest), (0, Some(digest(&listed))));

    // Its file is gone meanwhile.
    agreement.patched(&[crate::core::protocol::PatchOp::Drop { id: ID }]);
    let cut = |sum: Option<TextHash>| Fact {
        temp_id: Some("x1".into()),
        name: Some("Dir1".into()),
        class_name: "Folder".into(),
        subtree_cut: true,
        subtree_digest: sum,
        siblings: Some(9),
        ..extra("Dir1")
    };
    let (_, step) = undo(vec![made.clone()], vec![cut(None)], [root()], &mut agreement);
    assert!(super::held(step).contains("changed since"));
    let (mut run, step) = undo(vec![made], vec![cut(Some(digest(&listed)))], [root()], &mut agreement);
    let step = journalled(&mut run, step, &mut agreement);
    assert!(matches!(&ops(step)[..], [PlanOp::Remove { of: Whose::Extra { .. }, .. }]));

    let args = SyncArgs { allow_removals: true, ..SyncArgs::default() };
    let (_, step) = run_with(args.clone(), vec![cut(Some(digest(&listed[1..])))], [root()], &mut agreement);
    assert_eq!(receipt(step).unresolved, 1, "it holds something else");
    let (_, step) = run_with(args, vec![cut(Some(digest(&listed)))], [root()], &mut agreement);
    let [PlanOp::Remove { expect, .. }] = &ops(step)[..] else { panic!("a removal by the sync") };
    assert_eq!(expect.subtree_digest, Some(digest(&listed)));
}
