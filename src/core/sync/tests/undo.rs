//! A run taken back: each kind of change, and what is held.

mod files;
mod several;

use super::*;
use crate::core::{
    journal::{Entry, Line, Seat},
    paths::InstanceKey,
};

const ROOT: NodeId = NodeId(0);

fn key(names: &[(&str, &str)]) -> InstanceKey {
    names.iter().fold(InstanceKey::root(), |key, (name, class)| key.child(name, class))
}

fn module(name: &str) -> InstanceKey {
    key(&[(name, "ModuleScript")])
}

fn root() -> (NodeId, NodeView) {
    let (_, view) = folder(ROOT, vec![]);
    (ROOT, NodeView { parent: None, path: "Root".into(), fs_path: Some("src".into()), subtree: None, ..view })
}

/// What a run did to `ReplicatedStorage.<name>`.
fn line(direction: Direction, patch_type: PatchType, key: InstanceKey) -> Line {
    Line {
        path: "Root.It".into(),
        direction,
        patch_type,
        id: None,
        parent: key.split_last().map(|(parent, ..)| parent),
        name: key.split_last().map(|(_, name, _)| name),
        key: Some(key),
        base: None,
        class_name: "ModuleScript".into(),
        fs_path: None,
        disk: (None, None),
        studio: (None, None),
        properties: None,
        specified: std::collections::BTreeMap::new(),
        below: Vec::new(),
        lost: None,
        made: Vec::new(),
        held: Vec::new(),
        was: None,
        then: None,
        result: Some(ChangeResult::Done),
    }
}

/// A tree of `nodes` below the root, all agreed on.
fn tree(nodes: &[(NodeId, &str, &str)]) -> Agreement {
    let mut agreement = Agreement::default();
    agreement.tree_has_node(&Node { parent: None, class_name: "Folder".into(), hash: None, ..node(ROOT, "Root", "") });
    for (id, name, text) in nodes {
        agreement.tree_has_node(&node(*id, name, text));
        agreement.agree(*id, hash(text));
    }
    agreement
}

/// Take `lines` back, up to the entry in the journal.
fn undo(
    lines: Vec<Line>,
    facts: Vec<Fact>,
    views: impl IntoIterator<Item = (NodeId, NodeView)>,
    agreement: &mut Agreement,
) -> (Run, Step) {
    let args = SyncArgs { mode: SyncMode::Fastfail, undo: Some(Undo::default()), ..SyncArgs::default() };
    let (mut run, _) = Run::start("run-1".into(), args, true);
    run.caught_up(7, agreement);
    run.compared(Some(7), facts, agreement);
    let texts = [BASE, DISK, STUDIO].map(|text| (hash(text), text.to_owned())).into();
    let entry = Entry { changes: lines, ..Entry::default() };
    let step = run.recalled(Ok(Recalled { id: 4, entry, texts, when: "14:02 UTC".into() }), agreement);
    assert!(matches!(step, Step::Look { .. }), "{step:?}");
    let step = run.looked(HashMap::from_iter(views), agreement);
    let step = match step {
        Step::Check(writes) => run.checked(vec![None; writes.len()], agreement),
        step => step,
    };
    (run, step)
}

fn entry(step: &Step) -> Entry {
    match step {
        Step::Begin(draft) => draft.entry.clone(),
        other => panic!("nothing is begun: {other:?}"),
    }
}

fn held(step: Step) -> String {
    let receipt = receipt(step);
    assert_eq!((receipt.status, receipt.unresolved), (SyncStatus::FastfailUnresolved, 1), "{receipt:?}");
    receipt.changes[0].reason.clone().expect("it says why")
}

fn made() -> Line {
    Line { studio: (None, Some(hash(DISK))), ..line(Direction::Push, PatchType::Add, module("Script1")) }
}

#[test]
fn what_was_made_in_studio_is_removed_there_under_the_guard_of_all_below_it() {
    let mut agreement = tree(&[(ID, "Script1", DISK)]);
    let (mut run, step) = undo(vec![made()], vec![], [root(), script(ID, DISK)], &mut agreement);
    let entry = entry(&step);
    let [said] = &entry.changes[..] else { panic!("{entry:?}") };
    assert_eq!((entry.undoes, said.patch_type, said.studio), (Some(4), PatchType::Remove, (Some(hash(DISK)), None)));
    let step = journalled(&mut run, step, &mut agreement);
    let [PlanOp::Remove { of: Whose::Node { id: ID }, expect }] = &ops(step)[..] else { panic!("a removal") };
    assert_eq!(
        (expect.name.as_deref(), expect.studio_hash, expect.subtree.len()),
        (Some("Script1"), Some(hash(DISK)), 0)
    );
    let receipt = receipt(applied(&mut run, &[result(ID, OpStatus::Done, None)], &mut agreement));
    assert_eq!((receipt.status, receipt.removed), (SyncStatus::Success, 1));

    let (_, step) = run_with(SyncArgs::default(), vec![missing(ID)], [script(ID, DISK)], &mut agreement);
    assert!(matches!(&ops(step)[..], [PlanOp::Add { .. }]), "a sync makes it again, as the first one did");
}

#[test]
fn what_was_made_in_studio_and_holds_something_newer_stays() {
    let child = new_script(NodeId(2), BASE);
    let mut parent = script(ID, DISK);
    parent.1.subtree.as_mut().expect("a subtree").children.push(child);
    let with_child = [root(), parent];
    let guest = Fact { parent: Some(ID), name: Some("Guest".into()), ..extra("Script1.Guest") };
    let cases = [
        (vec![], with_child.to_vec(), "it was changed since"),
        (vec![guest], vec![root(), script(ID, DISK)], "it was changed since"),
        (vec![differs(ID, STUDIO)], vec![root(), script(ID, DISK)], "it was changed since"),
        (vec![draft(ID, DISK)], vec![root(), script(ID, DISK)], "has not saved"),
    ];
    for (facts, views, reason) in cases {
        let mut agreement = tree(&[(ID, "Script1", DISK)]);
        let (_, step) = undo(vec![made()], facts, views, &mut agreement);
        let told = held(step);
        assert!(told.contains(reason), "{told}");
    }
    let mut agreement = tree(&[(ID, "Script1", DISK)]);
    let (_, step) = undo(vec![made()], vec![missing(ID)], [root(), script(ID, DISK)], &mut agreement);
    assert_eq!(receipt(step).status, SyncStatus::Empty, "it is gone already");
}

fn renamed() -> Line {
    Line {
        studio: (Some(hash(BASE)), Some(hash(BASE))),
        disk: (Some(hash(BASE)), Some(hash(BASE))),
        was: Some(Seat { parent: InstanceKey::root(), name: "Old".into() }),
        ..line(Direction::Push, PatchType::Rename, module("Script1"))
    }
}

#[test]
fn what_was_renamed_gets_its_old_name_back_and_a_sync_renames_it_again() {
    let mut agreement = tree(&[(ID, "Script1", BASE)]);
    agreement.agree_gone(&module("Old"), None);
    let (mut run, step) = undo(vec![renamed()], vec![], [root(), script(ID, BASE)], &mut agreement);
    let said = entry(&step).changes[0].clone();
    assert_eq!(said.was, Some(Seat { parent: InstanceKey::root(), name: "Script1".into() }));
    assert_eq!(said.key, Some(module("Old")));
    let step = journalled(&mut run, step, &mut agreement);
    let [PlanOp::Rename { temp_id: None, id: ID, parent: ROOT, name, .. }] = &ops(step)[..] else { panic!("a rename") };
    assert_eq!(name, "Old");
    let done = receipt(applied(&mut run, &[result(ID, OpStatus::Done, Some(BASE))], &mut agreement));
    assert_eq!((done.status, done.renamed), (SyncStatus::Success, 1));

    let old = || Fact {
        temp_id: Some("x1".into()),
        name: Some("Old".into()),
        studio_hash: Some(hash(BASE)),
        subtree: Some(vec![]),
        siblings: Some(9),
        ..extra("Old")
    };
    let views = || [root(), script(ID, BASE)];
    let (_, step) = run_with(SyncArgs::default(), vec![missing(ID), old()], views(), &mut agreement.clone());
    assert!(matches!(&ops(step)[..], [PlanOp::Rename { temp_id: Some(_), id: ID, .. }]), "a sync finds what it found");

    let (mut run, step) = undo(vec![said], vec![missing(ID), old()], views(), &mut agreement);
    let step = journalled(&mut run, step, &mut agreement);
    let [PlanOp::Rename { temp_id: Some(of), id: ID, name, .. }] = &ops(step)[..] else { panic!("a rename") };
    assert_eq!((of.as_str(), name.as_str()), ("x1", "Script1"), "the undo itself is taken back");
}

#[test]
fn a_rename_is_not_taken_back_onto_what_stands_there_now() {
    let mut agreement = tree(&[(ID, "Script1", BASE)]);
    let there = Fact { name: Some("Old".into()), ..extra("Old") };
    let (_, step) = undo(vec![renamed()], vec![there], [root(), script(ID, BASE)], &mut agreement);
    assert!(held(step).contains("there again"));
    let mut agreement = tree(&[(ID, "Script1", BASE)]);
    let lines = vec![Line { was: None, ..renamed() }];
    let (_, step) = undo(lines, vec![], [root(), script(ID, BASE)], &mut agreement);
    assert!(held(step).contains("where it stood before is not known"));
}

#[test]
fn a_deletion_comes_back_in_studio_and_on_disk() {
    let of_file = Line {
        base: Some(Some(hash(BASE))),
        studio: (Some(hash(BASE)), None),
        ..line(Direction::Push, PatchType::Remove, module("Gone"))
    };
    let of_studio = Line {
        base: Some(Some(hash(BASE))),
        disk: (Some(hash(BASE)), None),
        ..line(Direction::Pull, PatchType::Remove, module("Gone"))
    };
    for lost in [of_file, of_studio] {
        let mut agreement = tree(&[]);
        agreement.agree_gone(&module("Gone"), Some(hash(BASE)));
        agreement.agree_gone(&module("Gone"), None);
        let (mut run, step) = undo(vec![lost], vec![], [root()], &mut agreement);
        let step = journalled(&mut run, step, &mut agreement);
        let [PlanOp::Add { parent: ROOT, node }] = &ops(step)[..] else { panic!("made again") };
        assert_eq!((node.name.as_str(), node.source.as_deref()), ("Gone", Some(BASE)));
        let done = OpResult { id: node.id.into(), op: None, status: OpStatus::Done, hash: None, error: None };
        let step = applied(&mut run, &[done], &mut agreement);
        let Step::Write(writes) = step else { panic!("{step:?}") };
        let [FileWrite::Create { folder, name, text, holds: false, .. }] = &writes[..] else { panic!("{writes:?}") };
        assert_eq!((folder.as_str(), name.as_str(), text.as_deref()), ("src", "Gone", Some(BASE)));
        agreement.tree_has_node(&node_of(NodeId(9), "Gone"));
        let step = run.written(vec![Wrote::Made("src/Gone.luau".into(), Some(hash(BASE)))], &mut agreement);
        let receipt = receipt(journalled(&mut run, step, &mut agreement));
        assert_eq!((receipt.status, receipt.changes.len()), (SyncStatus::Success, 2));
        assert_eq!(agreement.base(NodeId(9)), Some(hash(BASE)), "and both agree on it");
    }
}

fn node_of(id: NodeId, name: &str) -> Node {
    node(id, name, BASE)
}

#[test]
fn a_folder_that_was_deleted_comes_back_with_a_file_for_each_script() {
    let below = |path: &[&str], class: &str, text: Option<&str>| Below {
        path: path.iter().map(|name| (*name).to_owned()).collect(),
        class_name: class.into(),
        studio_hash: text.map(hash),
        is_draft: false,
    };
    let lost = Line {
        class_name: "Folder".into(),
        below: vec![
            below(&["A"], "ModuleScript", Some(BASE)),
            below(&["A", "B"], "Script", Some(DISK)),
            below(&["C"], "LocalScript", Some(STUDIO)),
        ],
        ..line(Direction::Push, PatchType::Remove, key(&[("Dir", "Folder")]))
    };
    let mut agreement = tree(&[]);
    let (mut run, step) = undo(vec![lost], vec![], [root()], &mut agreement);
    let said = entry(&step);
    assert_eq!(said.changes[2].key, Some(key(&[("Dir", "Folder"), ("A", "ModuleScript")])));
    let step = journalled(&mut run, step, &mut agreement);
    let [PlanOp::Add { node, .. }] = &ops(step)[..] else { panic!("made again") };
    assert_eq!((node.children.len(), node.children[0].children[0].source.as_deref()), (2, Some(DISK)));
    let done = OpResult { id: node.id.into(), op: None, status: OpStatus::Done, hash: None, error: None };
    let Step::Write(writes) = applied(&mut run, &[done], &mut agreement) else { panic!("files") };
    let places: Vec<(String, String, bool)> = writes
        .into_iter()
        .map(|write| match write {
            FileWrite::Folder { folder, name } => (folder, name, true),
            FileWrite::Create { folder, name, holds, .. } => (folder, name, holds),
            other => panic!("{other:?}"),
        })
        .collect();
    let place = |folder: &str, name: &str, holds: bool| (folder.to_owned(), name.to_owned(), holds);
    let expected = [
        place("src", "Dir", true),
        place("src/Dir", "A", true),
        place("src/Dir/A", "B", false),
        place("src/Dir", "C", false),
    ];
    assert_eq!(places, expected);
}

#[test]
fn a_file_is_not_made_again_where_studio_refused_its_script() {
    let lost = Line {
        base: Some(Some(hash(BASE))),
        studio: (Some(hash(BASE)), None),
        ..line(Direction::Push, PatchType::Remove, module("Gone"))
    };
    let mut agreement = tree(&[]);
    let (mut run, step) = undo(vec![lost], vec![], [root()], &mut agreement);
    let step = journalled(&mut run, step, &mut agreement);
    let [PlanOp::Add { node, .. }] = &ops(step)[..] else { panic!("made again") };
    let refused = OpResult { id: node.id.into(), op: None, status: OpStatus::Guard, hash: None, error: None };
    let receipt = receipt(applied(&mut run, &[refused], &mut agreement));
    assert_eq!((receipt.status, receipt.failed), (SyncStatus::Error, 2), "{receipt:?}");
}

#[test]
fn what_was_dropped_in_studio_and_never_had_a_file_comes_back_there_alone() {
    let dropped =
        Line { studio: (Some(hash(STUDIO)), None), ..line(Direction::Push, PatchType::Remove, module("Mine")) };
    let mut agreement = tree(&[]);
    agreement.agree_gone(&module("Mine"), None);
    let (mut run, step) = undo(vec![dropped], vec![], [root()], &mut agreement);
    let step = journalled(&mut run, step, &mut agreement);
    let [PlanOp::Add { node, .. }] = &ops(step)[..] else { panic!("made again") };
    let done = OpResult { id: node.id.into(), op: None, status: OpStatus::Done, hash: None, error: None };
    let receipt = receipt(applied(&mut run, &[done], &mut agreement));
    assert_eq!((receipt.status, receipt.changes.len()), (SyncStatus::Success, 1));
    assert_eq!(agreement.gone(&module("Mine")), None, "nothing is known of it, so it is never taken for old");
}

#[test]
fn a_pull_that_was_taken_back_is_not_an_old_text_to_the_next_session() {
    let pulled = Line {
        id: Some(ID),
        base: Some(Some(hash(BASE))),
        disk: (Some(hash(BASE)), Some(hash(STUDIO))),
        studio: (Some(hash(STUDIO)), Some(hash(STUDIO))),
        ..line(Direction::Pull, PatchType::Edit, module("Script1"))
    };
    let mut agreement = tree(&[(ID, "Script1", BASE)]);
    agreement.agree(ID, hash(STUDIO));
    agreement.take_news();
    let (mut run, step) = undo(vec![pulled], vec![], [root(), script(ID, STUDIO)], &mut agreement);
    let step = journalled(&mut run, step, &mut agreement);
    assert!(matches!(step, Step::Write(_)), "{step:?}");
    run.written(vec![Wrote::Done(Some(hash(BASE)))], &mut agreement);
    let restored = |news| match news {
        crate::core::agreement::News::Restored { base, .. } => Some(base),
        crate::core::agreement::News::Agreed(_) => None,
    };
    let base = agreement.take_news().into_iter().find_map(restored).expect("restored");
    assert_eq!(base, Some((Some(hash(BASE)), vec![])), "the store forgets that {STUDIO:?} was ever agreed");
}

#[test]
fn all_or_nothing_looks_at_the_files_before_anything_is_changed() {
    let pulled = Line {
        base: Some(Some(hash(BASE))),
        disk: (Some(hash(BASE)), Some(hash(STUDIO))),
        studio: (Some(hash(BASE)), Some(hash(STUDIO))),
        ..line(Direction::Merge, PatchType::Edit, module("Script1"))
    };
    let mut agreement = tree(&[(ID, "Script1", STUDIO)]);
    let args = SyncArgs { mode: SyncMode::Fastfail, undo: Some(Undo::default()), ..SyncArgs::default() };
    let (mut run, _) = Run::start("run-1".into(), args, true);
    run.caught_up(7, &agreement);
    run.compared(Some(7), vec![], &mut agreement);
    let texts = [BASE, STUDIO].map(|text| (hash(text), text.to_owned())).into();
    let entry = Entry { changes: vec![pulled], ..Entry::default() };
    run.recalled(Ok(Recalled { id: 4, entry, texts, when: "14:02 UTC".into() }), &agreement);
    let step = run.looked(HashMap::from([root(), script(ID, STUDIO)]), &mut agreement);
    assert!(matches!(&step, Step::Check(writes) if writes.len() == 1), "{step:?}");
    let receipt = receipt(run.checked(vec![Some(Wrote::Failed("it is read-only".into()))], &agreement));
    assert_eq!((receipt.status, receipt.failed), (SyncStatus::FastfailUnresolved, 1));
    assert_eq!(receipt.changes[0].reason.as_deref(), Some("it is read-only"));
}

#[test]
fn what_is_back_already_gets_its_base_back_all_the_same() {
    let mut agreement = tree(&[(ID, "Script1", BASE)]);
    agreement.agree_gone(&module("Old"), None);
    let old = Fact {
        temp_id: Some("x1".into()),
        name: Some("Old".into()),
        studio_hash: Some(hash(BASE)),
        subtree: Some(vec![]),
        siblings: Some(9),
        ..extra("Old")
    };
    let facts = vec![missing(ID), old];
    let views = || [root(), script(ID, BASE)];
    let (_, step) = undo(vec![renamed()], facts.clone(), views(), &mut agreement);
    assert_eq!(receipt(step).status, SyncStatus::Empty);
    let (_, step) = run_with(SyncArgs::default(), facts, views(), &mut agreement);
    assert!(matches!(&ops(step)[..], [PlanOp::Rename { .. }]), "a sync finds what the first one found");
}
