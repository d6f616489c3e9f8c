//! What only Studio has: removals, renames, and what was made there.

use super::*;

/// A Studio that agreed on `texts`, by name, and whose tree has lost all of them.
pub(super) fn lost(texts: &[(&str, &str)]) -> Agreement {
    let mut agreement = Agreement::default();
    agreement.tree_has_node(&Node { parent: None, name: "Root".into(), hash: None, ..node(NodeId(0), "", "") });
    for (id, (name, text)) in (500..).map(NodeId).zip(texts) {
        agreement.tree_has_node(&node(id, name, text));
        agreement.agree(id, hash(text));
        agreement.patched(&[crate::core::protocol::PatchOp::Drop { id }]);
    }
    agreement
}

/// A script that only Studio has.
pub(super) fn stray(name: &str, text: &str) -> Fact {
    Fact {
        temp_id: Some(TempId::from(format!("x-{name}"))),
        name: Some(name.into()),
        studio_hash: Some(hash(text)),
        subtree: Some(vec![]),
        siblings: Some(9),
        ..extra(name)
    }
}

fn below(path: &[&str], class: &str, text: Option<&str>) -> Below {
    Below {
        path: path.iter().map(|name| (*name).to_owned()).collect(),
        class_name: class.into(),
        studio_hash: text.map(hash),
        is_draft: false,
    }
}

fn reason(step: Step) -> String {
    let receipt = receipt(step);
    assert_eq!((receipt.status, receipt.unresolved), (SyncStatus::Rejected, 1), "{receipt:?}");
    receipt.changes[0].reason.clone().expect("it says why")
}

fn standard(facts: Vec<Fact>, agreement: &mut Agreement) -> (Run, Step) {
    run(SyncMode::Standard, None, facts, [], agreement)
}

#[test]
fn what_lost_its_file_and_is_as_agreed_is_removed_under_the_guard_of_what_it_is() {
    let mut agreement = lost(&[("Old", BASE)]);
    let (mut run, step) = standard(vec![stray("Old", BASE)], &mut agreement);
    let [PlanOp::Remove { of: Whose::Extra { temp_id }, expect }] = &ops(step)[..] else { panic!("a removal") };
    assert_eq!(
        (temp_id.as_str(), expect.studio_hash, expect.name.as_deref()),
        ("x-Old", Some(hash(BASE)), Some("Old"))
    );
    let done = OpResult { id: TempId::from("x-Old").into(), op: None, status: OpStatus::Done, hash: None, error: None };
    let receipt = receipt(applied(&mut run, &[done], &mut agreement));
    assert_eq!((receipt.status, receipt.removed, receipt.pushed), (SyncStatus::Success, 1, 0));

    let (_, step) = standard(vec![stray("Old", BASE)], &mut agreement);
    assert!(reason(step).contains("made in Studio"), "a person brought it back");
}

#[test]
fn what_studio_changed_or_made_is_never_removed_unasked() {
    let (_, step) = standard(vec![stray("Old", STUDIO)], &mut lost(&[("Old", BASE)]));
    assert!(reason(step).contains("was changed"));
    let (_, step) = standard(vec![stray("Mine", BASE)], &mut lost(&[("Old", BASE)]));
    assert!(reason(step).contains("made in Studio"));
    let (_, step) = standard(vec![Fact { is_draft: true, ..stray("Old", BASE) }], &mut lost(&[("Old", BASE)]));
    assert!(reason(step).contains("has not saved"));
    let cut = Fact { subtree: None, subtree_cut: true, ..stray("Old", BASE) };
    let (_, step) = standard(vec![cut], &mut lost(&[("Old", BASE)]));
    assert!(reason(step).contains("too much"));
    for inner in
        [below(&["Lamp"], "Part", None), below(&["Dir"], "Folder", None), below(&["New"], "Script", Some(BASE))]
    {
        let holds = Fact { subtree: Some(vec![inner.clone()]), ..stray("Old", BASE) };
        let (_, step) = standard(vec![holds], &mut lost(&[("Old", BASE)]));
        assert!(reason(step).contains("holds things"), "{inner:?}");
    }
}

#[test]
fn twins_are_never_removed() {
    let mut agreement = lost(&[("Old", BASE)]);
    agreement.tree_has_node(&node(NodeId(600), "Old", BASE));
    let (_, step) = standard(vec![stray("Old", BASE)], &mut agreement);
    assert!(reason(step).contains("made in Studio"));
}

#[test]
fn c38_many_removals_at_once_need_consent() {
    let names: Vec<String> = (0..30).map(|number| format!("S{number}")).collect();
    let texts: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), BASE)).collect();
    let cases = [(10, 9, false), (10, 21, true), (20, 900, true), (21, 900, false), (1, 1, false), (1, 2, true)];
    for (count, siblings, expected) in cases {
        for allow_removals in [false, true] {
            let mut agreement = lost(&texts);
            let facts = names.iter().take(count).map(|name| Fact { siblings: Some(siblings), ..stray(name, BASE) });
            let args = SyncArgs { allow_removals, ..SyncArgs::default() };
            let (_, step) = run_with(args, facts.collect(), [], &mut agreement);
            if expected || allow_removals {
                assert_eq!(ops(step).len(), count, "{count} of {siblings}");
            } else {
                let receipt = receipt(step);
                assert_eq!((receipt.status, receipt.unresolved), (SyncStatus::Rejected, count));
                let reason = receipt.changes[0].reason.as_deref().expect("it says why");
                assert!(reason.contains("allowRemovals"), "{reason}");
            }
        }
    }
}

#[test]
fn an_override_consents_to_one_removal() {
    let mut agreement = lost(&[("Old", BASE), ("Other", BASE)]);
    let facts = ["Old", "Other"].map(|name| Fact { siblings: Some(2), ..stray(name, BASE) }).to_vec();
    let overrides = vec![Override::new(TempId::from("x-Old"), OverrideDirection::Push)];
    let (_, step) = run_with(SyncArgs { overrides, ..SyncArgs::default() }, facts, [], &mut agreement);
    assert_eq!(ops(step).len(), 2, "one of two is not more than half");
}

#[test]
fn a_folder_whose_scripts_all_lost_their_files_goes_with_them() {
    let mut agreement = lost(&[]);
    let folder = Node { hash: None, class_name: "Folder".into(), ..node(NodeId(700), "Dir", "") };
    agreement.tree_has_node(&folder);
    agreement.tree_has_node(&Node { parent: Some(NodeId(700)), ..node(NodeId(701), "A", BASE) });
    agreement.agree(NodeId(701), hash(BASE));
    agreement.patched(&[crate::core::protocol::PatchOp::Drop { id: NodeId(700) }]);
    let stray = Fact {
        class_name: "Folder".into(),
        studio_hash: None,
        subtree: Some(vec![below(&["A"], "ModuleScript", Some(BASE))]),
        ..stray("Dir", "")
    };
    let (_, step) = standard(vec![stray], &mut agreement);
    assert!(matches!(&ops(step)[..], [PlanOp::Remove { .. }]));
}

#[test]
fn a_file_that_has_another_name_now_is_a_rename_and_its_base_goes_with_it() {
    let mut agreement = lost(&[("Old", BASE)]);
    let (id, view) = script(ID, BASE);
    agreement.tree_has_node(&node(id, "Script1", BASE));
    let facts = vec![stray("Old", BASE), missing(id)];
    let (mut run, step) = run(SyncMode::Standard, None, facts, [(id, view)], &mut agreement);
    let ops = ops(step);
    let [PlanOp::Rename { temp_id: Some(temp_id), id: to, parent, name, .. }] = &ops[..] else { panic!("{ops:?}") };
    assert_eq!((temp_id.as_str(), *to, *parent, name.as_str()), ("x-Old", ID, NodeId(0), "Script1"));
    let done =
        OpResult { id: temp_id.clone().into(), op: None, status: OpStatus::Done, hash: Some(hash(BASE)), error: None };
    let receipt = receipt(applied(&mut run, &[done], &mut agreement));
    assert_eq!((receipt.status, receipt.renamed, receipt.removed), (SyncStatus::Success, 1, 0));
    assert_eq!(agreement.base(ID), Some(hash(BASE)));
}

#[test]
fn a_rename_that_may_be_two_is_none() {
    let mut agreement = lost(&[("Old", BASE), ("Older", BASE)]);
    let facts = vec![stray("Old", BASE), stray("Older", BASE), missing(ID)];
    let (_, step) = run(SyncMode::Standard, None, facts, [script(ID, BASE)], &mut agreement);
    let ops = ops(step);
    assert!(matches!(&ops[..], [PlanOp::Remove { .. }, PlanOp::Remove { .. }, PlanOp::Add { .. }]), "{ops:?}");
}

#[test]
fn what_was_made_in_studio_is_pulled_into_a_file_when_asked() {
    let (root, mut view) = folder(NodeId(0), vec![]);
    (view.fs_path, view.parent) = (Some("src".into()), None);
    let overrides = vec![Override::new(TempId::from("x-Mine"), OverrideDirection::Pull)];
    let mut agreement = lost(&[]);
    let args = SyncArgs { overrides, ..SyncArgs::default() };
    let (mut run, step) = run_with(args, vec![stray("Mine", STUDIO)], [(root, view)], &mut agreement);
    assert_eq!(step, Step::Fetch(vec![TempId::from("x-Mine").into()]));
    let step = run.fetched(&TempId::from("x-Mine").into(), Ok(STUDIO.into()), &mut agreement);
    let step = journalled(&mut run, step, &mut agreement);
    let (folder, name) = ("src".to_owned(), "Mine".to_owned());
    let write =
        FileWrite::Create { folder, name, class: "ModuleScript".into(), text: Some(STUDIO.into()), holds: false };
    assert_eq!(step, Step::Write(vec![write]));
    let step = run.written(vec![Wrote::Made("src/Mine.luau".into(), Some(hash(STUDIO)))], &mut agreement);
    let receipt = receipt(journalled(&mut run, step, &mut agreement));
    assert_eq!((receipt.pulled, receipt.changes[0].fs_path.as_deref()), (1, Some("src/Mine.luau")));
    agreement.tree_has_node(&node(ID, "Mine", STUDIO));
    assert_eq!(agreement.base(ID), Some(hash(STUDIO)), "the new node finds its base");
}

#[test]
fn what_was_removed_in_studio_is_removed_on_disk_when_asked() {
    let mut agreement = lost(&[]);
    agreement.tree_has_node(&node(ID, "Script1", DISK));
    agreement.agree(ID, hash(DISK));
    let overrides = vec![Override::new(ID, OverrideDirection::Pull)];
    let args = SyncArgs { overrides, ..SyncArgs::default() };
    let (mut run, step) = run_with(args, vec![missing(ID)], [script(ID, DISK)], &mut agreement);
    assert_eq!(step, Step::Write(vec![FileWrite::Remove { path: "src/Script1.luau".into(), base: hash(DISK) }]));
    agreement.patched(&[crate::core::protocol::PatchOp::Drop { id: ID }]);
    let step = run.written(vec![Wrote::Done(None)], &mut agreement);
    let receipt = receipt(journalled(&mut run, step, &mut agreement));
    assert_eq!((receipt.status, receipt.pulled, receipt.changes[0].disk_hash), (SyncStatus::Success, 1, None));
    let (_, step) = standard(vec![stray("Script1", DISK)], &mut agreement);
    assert!(reason(step).contains("made in Studio"));
}

#[test]
fn what_needs_the_place_of_something_that_is_left_alone_waits_and_the_rest_goes_on() {
    let folder = |inner: Below| Fact {
        class_name: "Folder".into(),
        studio_hash: None,
        subtree: Some(vec![inner]),
        ..stray("Script1", "")
    };
    for inner in [below(&["Lamp"], "RemoteEvent", None), below(&["A"], "ModuleScript", Some(STUDIO))] {
        let facts = vec![folder(inner), missing(ID), differs(NodeId(2), BASE)];
        let views = [script(ID, DISK), script(NodeId(2), DISK), self::folder(NodeId(0), vec![])];
        let mut agreement = lost(&[]);
        agreement.agree(NodeId(2), hash(BASE));
        let (mut run, step) = run(SyncMode::Standard, None, facts, views, &mut agreement);
        let ops = ops(step);
        assert!(matches!(&ops[..], [PlanOp::SetSource { id: NodeId(2), .. }]), "{ops:?}");
        let done = result(NodeId(2), OpStatus::Done, Some(DISK));
        let receipt = receipt(applied(&mut run, &[done], &mut agreement));
        assert_eq!((receipt.status, receipt.pushed, receipt.unresolved), (SyncStatus::Partial, 1, 2));
        let new = receipt.changes.iter().find(|change| change.id == Some(ID)).expect("it is listed");
        assert!(new.reason.as_deref().is_some_and(|why| why.contains("a Folder of this name")), "{new:?}");
    }
}

#[test]
fn a_rename_that_cannot_be_keeps_its_own_place_taken() {
    let mut agreement = lost(&[("Script2", BASE)]);
    let parts = Fact { class_name: "Part".into(), studio_hash: None, ..stray("Script1", "") };
    let facts = vec![parts, stray("Script2", BASE), missing(ID), missing(NodeId(2))];
    let views = [script(ID, BASE), script(NodeId(2), DISK)];
    let (_, step) = run(SyncMode::Standard, None, facts, views, &mut agreement);
    let receipt = receipt(step);
    assert_eq!((receipt.status, receipt.unresolved), (SyncStatus::Rejected, 3), "{receipt:?}");
}

#[test]
fn what_moved_says_where_it_was_and_what_was_renamed_how_it_was_called() {
    for (parent, expected) in [(NodeId(0), "it was called Old"), (NodeId(9), "it was Root.Old")] {
        let (id, view) = script(ID, BASE);
        let view = NodeView { parent: Some(parent), ..view };
        let facts = vec![stray("Old", BASE), missing(id)];
        let (_, step) = run(SyncMode::Dryrun, None, facts, [(id, view)], &mut lost(&[("Old", BASE)]));
        assert_eq!(receipt(step).changes[0].reason.as_deref(), Some(expected));
    }
}

#[test]
fn studio_gets_texts_without_byte_order_mark_and_with_its_own_line_endings() {
    let raw = "\u{feff}return 1\r\n";
    let mut agreement = agreed(&[(ID, BASE)]);
    let facts = vec![differs(ID, BASE), missing(NodeId(2))];
    let (dir, view) = folder(NodeId(2), vec![new_script(NodeId(3), raw)]);
    let (_, step) = run(SyncMode::Standard, None, facts, [script(ID, raw), (dir, view)], &mut agreement);
    let sent: Vec<String> = ops(step)
        .into_iter()
        .map(|op| match op {
            PlanOp::SetSource { source, .. } => source,
            PlanOp::Add { node, .. } => node.children[0].source.clone().expect("a script"),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sent, ["return 1\n", "return 1\n"]);
}
