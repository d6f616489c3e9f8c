//! Whole runs, from the comparison to the receipt.

use serde_json::json;

use super::*;

/// The status of a run that changed nothing in Studio.
fn status(step: Step) -> SyncStatus {
    let receipt = receipt(step);
    assert_eq!(receipt.pushed, 0);
    receipt.status
}

#[test]
fn each_mode_does_with_what_is_resolved_what_it_promises() {
    for mode in MODES {
        let mut agreement = agreed(&[(ID, BASE)]);
        let (_, step) = run(mode, None, vec![differs(ID, BASE)], [script(ID, DISK)], &mut agreement);
        match mode {
            SyncMode::Standard | SyncMode::Fastfail => assert_eq!(ops(step).len(), 1),
            SyncMode::Manual => assert_eq!(status(step), SyncStatus::Rejected),
            SyncMode::Dryrun => assert_eq!(status(step), SyncStatus::Dryrun),
        }
        assert_eq!(agreement.base(ID), Some(hash(BASE)), "nothing is agreed before it is applied");
    }
}

#[test]
fn what_is_unresolved_is_left_alone_and_listed_and_fastfail_changes_nothing() {
    let unresolved = [draft(NodeId(2), BASE), missing(NodeId(2)), extra("Mine")];
    for (mode, fact) in MODES.iter().flat_map(|mode| unresolved.iter().map(|fact| (*mode, fact.clone()))) {
        let mut agreement = agreed(&[(ID, BASE), (NodeId(2), BASE)]);
        let views = [script(ID, DISK), script(NodeId(2), DISK)];
        let (mut run, step) = run(mode, None, vec![differs(ID, BASE), fact.clone()], views, &mut agreement);
        if mode == SyncMode::Standard {
            assert_eq!(ops(step).len(), 1, "{fact:?}");
            let step = applied(&mut run, &[result(ID, OpStatus::Done, Some(DISK))], &mut agreement);
            let receipt = receipt(step);
            assert_eq!((receipt.status, receipt.pushed, receipt.unresolved), (SyncStatus::Partial, 1, 1));
            assert!(receipt.message.expect("it says so").contains("left alone"));
            continue;
        }
        let receipt = receipt(step);
        let expected = match mode {
            SyncMode::Fastfail => SyncStatus::FastfailUnresolved,
            SyncMode::Dryrun => SyncStatus::Dryrun,
            SyncMode::Standard | SyncMode::Manual => SyncStatus::Rejected,
        };
        assert_eq!(receipt.status, expected, "{mode:?} {fact:?}");
        assert_eq!((receipt.pushed, receipt.unresolved, receipt.failed), (0, 1, 0));
        assert_eq!(receipt.changes[0].result, ChangeResult::Planned, "what would be pushed is told too");
    }
}

#[test]
fn a_sync_of_which_nothing_is_resolved_is_rejected() {
    let mut agreement = Agreement::default();
    let (_, step) = run(SyncMode::Standard, None, vec![differs(ID, STUDIO)], [script(ID, DISK)], &mut agreement);
    assert_eq!(status(step), SyncStatus::Rejected);
}

#[test]
fn nothing_to_do_is_said_in_every_mode() {
    for mode in MODES {
        let expected = if mode == SyncMode::Dryrun { SyncStatus::Dryrun } else { SyncStatus::Empty };
        let mut agreement = Agreement::default();
        let (_, step) = run(mode, None, vec![], [], &mut agreement);
        assert_eq!(status(step), expected);
        let equal_by_now = vec![differs(ID, DISK), missing(NodeId(2))];
        let (_, step) = run(mode, None, equal_by_now, [script(ID, DISK)], &mut agreement);
        assert_eq!(status(step), expected);
    }
}

#[test]
fn what_was_done_advances_the_base_and_a_second_sync_finds_nothing() {
    let mut agreement = agreed(&[(ID, BASE)]);
    let facts = vec![differs(ID, BASE), missing(NodeId(2)), missing(NodeId(5))];
    let views = [script(ID, DISK), script(NodeId(2), DISK), folder(NodeId(5), vec![new_script(NodeId(6), DISK)])];
    let (mut first, step) = run(SyncMode::Standard, None, facts, views, &mut agreement);
    assert_eq!(ops(step).len(), 3);
    let results = [
        result(NodeId(5), OpStatus::Done, None),
        result(NodeId(2), OpStatus::Done, Some(DISK)),
        result(ID, OpStatus::Done, Some(DISK)),
    ];
    let receipt = receipt(applied(&mut first, &results, &mut agreement));
    assert_eq!((receipt.status, receipt.pushed, receipt.message), (SyncStatus::Success, 3, None));
    assert!(receipt.changes.iter().all(|change| change.result == ChangeResult::Done));
    for id in [ID, NodeId(2), NodeId(6)] {
        assert_eq!(agreement.base(id), Some(hash(DISK)));
    }
    let (_, step) = run(SyncMode::Standard, None, vec![], [], &mut agreement);
    assert_eq!(status(step), SyncStatus::Empty);
}

#[test]
fn a_guard_that_did_not_hold_means_that_nothing_is_agreed() {
    let mut agreement = agreed(&[(ID, BASE), (NodeId(2), BASE)]);
    let facts = vec![differs(ID, BASE), differs(NodeId(2), BASE)];
    let (mut run, _) =
        run(SyncMode::Standard, None, facts, [script(ID, DISK), script(NodeId(2), DISK)], &mut agreement);
    let results = [result(ID, OpStatus::Guard, Some(STUDIO)), result(NodeId(2), OpStatus::Skipped, None)];
    let receipt = receipt(applied(&mut run, &results, &mut agreement));
    assert_eq!((receipt.status, receipt.pushed, receipt.failed), (SyncStatus::Error, 0, 2));
    assert_eq!(receipt.changes[0].studio_hash, Some(hash(STUDIO)), "what Studio has now");
    assert_eq!((agreement.base(ID), agreement.base(NodeId(2))), (Some(hash(BASE)), Some(hash(BASE))));
}

#[test]
fn only_what_held_is_agreed_when_a_part_failed() {
    let mut agreement = agreed(&[(ID, BASE), (NodeId(2), BASE)]);
    let facts = vec![differs(ID, BASE), differs(NodeId(2), BASE)];
    let (mut run, _) =
        run(SyncMode::Standard, None, facts, [script(ID, DISK), script(NodeId(2), DISK)], &mut agreement);
    let failed = OpResult { error: Some("locked".into()), ..result(NodeId(2), OpStatus::Failed, Some(BASE)) };
    let receipt = receipt(applied(&mut run, &[result(ID, OpStatus::Done, Some(DISK)), failed], &mut agreement));
    assert_eq!((receipt.status, receipt.pushed, receipt.failed), (SyncStatus::Partial, 1, 1));
    assert_eq!(receipt.changes[1].reason.as_deref(), Some("locked"));
    assert_eq!((agreement.base(ID), agreement.base(NodeId(2))), (Some(hash(DISK)), Some(hash(BASE))));
}

#[test]
fn a_script_is_done_only_when_studio_names_the_text_that_was_sent() {
    let answers = [
        vec![result(ID, OpStatus::Done, Some(STUDIO))],
        vec![result(ID, OpStatus::Done, None)],
        vec![result(NodeId(77), OpStatus::Done, Some(DISK))],
        vec![],
    ];
    for results in answers {
        let cases = [(differs(ID, BASE), Some(BASE)), (missing(ID), None)];
        for (fact, base) in cases {
            let mut agreement = base.map_or_else(Agreement::default, |base| agreed(&[(ID, base)]));
            let (mut run, _) = run(SyncMode::Standard, None, vec![fact], [script(ID, DISK)], &mut agreement);
            let receipt = receipt(applied(&mut run, &results, &mut agreement));
            assert_eq!((receipt.status, receipt.failed), (SyncStatus::Error, 1), "{results:?}");
            assert!(receipt.changes[0].reason.is_some(), "{results:?}");
            assert_eq!(agreement.base(ID), base.map(hash), "{results:?}");
        }
    }
}

#[test]
fn a_script_that_changed_in_the_tree_after_the_comparison_goes_out_as_it_is_now() {
    let mut agreement = agreed(&[(ID, BASE)]);
    agreement.tree_has(ID, hash(DISK));
    let (mut started, _) = Run::start("run-1".into(), SyncArgs::default(), true);
    started.caught_up(7, &agreement);
    started.compared(Some(7), vec![differs(ID, BASE)], &mut agreement);
    agreement.tree_has(ID, hash("newer"));
    let step = started.looked(HashMap::from([script(ID, "newer")]), &mut agreement);
    let step = journalled(&mut started, step, &mut agreement);
    assert_eq!(ops(step), [PlanOp::SetSource { id: ID, source: "newer".into(), expect: hash(BASE) }]);
    agreement.tree_has(ID, hash("newest"));
    applied(&mut started, &[result(ID, OpStatus::Done, Some("newer"))], &mut agreement);
    assert_eq!(agreement.base(ID), Some(hash("newer")), "not what came after the plan");
    agreement.confirm(agreement.unconfirmed(), |_| false);
    assert_eq!(agreement.base(ID), Some(hash("newest")), "the next comparison confirms that");
}

#[test]
fn a_script_that_became_what_studio_has_after_the_comparison_is_agreed() {
    let mut agreement = agreed(&[(ID, BASE)]);
    let (_, step) = run(SyncMode::Standard, None, vec![differs(ID, STUDIO)], [script(ID, STUDIO)], &mut agreement);
    assert_eq!(status(step), SyncStatus::Empty);
    assert_eq!(agreement.base(ID), Some(hash(STUDIO)));
}

#[test]
fn a_script_that_was_equal_when_compared_is_agreed_as_it_was_then() {
    let mut agreement = Agreement::default();
    agreement.tree_has(ID, hash(BASE));
    agreement.tree_has(NodeId(2), hash(BASE));
    let (mut run, _) = Run::start("run-1".into(), SyncArgs::default(), true);
    run.caught_up(7, &agreement);
    agreement.tree_has(ID, hash(DISK));
    run.compared(Some(7), vec![], &mut agreement);
    assert_eq!((agreement.base(ID), agreement.base(NodeId(2))), (Some(hash(BASE)), Some(hash(BASE))));
    agreement.confirm(agreement.unconfirmed(), |_| false);
    assert_eq!(agreement.base(ID), Some(hash(DISK)), "the next comparison confirms what came later");
}

#[test]
fn a_comparison_with_another_version_of_the_tree_proves_nothing() {
    let mut agreement = Agreement::default();
    agreement.tree_has(ID, hash(BASE));
    let (mut run, _) = Run::start("run-1".into(), SyncArgs::default(), true);
    run.caught_up(7, &agreement);
    run.compared(Some(8), vec![], &mut agreement);
    assert_eq!(agreement.base(ID), None);
}

#[test]
fn what_is_missing_is_not_agreed_and_neither_is_anything_below_it() {
    let mut agreement = Agreement::default();
    for id in 2..=5 {
        agreement.tree_has(NodeId(id), hash(DISK));
    }
    let inner = NewNode { children: vec![new_script(NodeId(3), DISK)], ..new_script(NodeId(2), DISK) };
    let views = [folder(NodeId(9), vec![inner]), script(NodeId(4), DISK)];
    let facts = vec![missing(NodeId(9)), differs(NodeId(4), STUDIO)];
    run(SyncMode::Dryrun, None, facts, views, &mut agreement);
    let bases = [2, 3, 4, 5].map(|id| agreement.base(NodeId(id)));
    assert_eq!(bases, [None, None, None, Some(hash(DISK))], "only what was not reported");
}

#[test]
fn what_was_deleted_in_studio_is_not_made_again_in_any_mode() {
    for mode in MODES {
        let mut agreement = Agreement::default();
        agreement.tree_has(ID, hash(BASE));
        run(mode, None, vec![], [], &mut agreement);
        agreement.tree_has(ID, hash(DISK));
        let (_, step) = run(mode, None, vec![missing(ID)], [script(ID, DISK)], &mut agreement);
        assert_eq!(receipt(step).unresolved, 1, "{mode:?}");
        assert_eq!(agreement.base(ID), Some(hash(BASE)), "and it stays known that it was there");
    }
}

#[test]
fn paths_are_files_or_folders() {
    let cases: [(&[&str], bool); 13] = [
        (&["src/Script1.luau"], true),
        (&["src"], true),
        (&["src/"], true),
        (&["."], true),
        (&[""], true),
        (&["other", "src"], true),
        (&[], false),
        (&["src/Script"], false),
        (&["src/Script1"], false),
        (&["sr"], false),
        (&["Script1.luau"], false),
        (&["src/Script1.luau/x"], false),
        (&["SRC"], false),
    ];
    for (paths, named) in cases {
        let mut agreement = agreed(&[(ID, BASE)]);
        let (_, step) =
            run(SyncMode::Standard, Some(paths), vec![differs(ID, BASE)], [script(ID, DISK)], &mut agreement);
        if named {
            assert_eq!(ops(step).len(), 1, "{paths:?}");
        } else {
            let receipt = receipt(step);
            assert_eq!(receipt.status, SyncStatus::Empty, "{paths:?}");
            let message = receipt.message.expect("it says so");
            assert!(message.contains("`paths`"), "it must not claim that all is equal: {message}");
        }
    }
}

#[test]
fn what_paths_does_not_name_does_not_hold_up_the_rest() {
    let mut agreement = agreed(&[(ID, BASE)]);
    let facts = vec![differs(NodeId(2), STUDIO), extra("Mine"), differs(ID, BASE)];
    let views = [script(ID, DISK), script(NodeId(2), DISK)];
    let (mut started, step) = run(SyncMode::Standard, Some(&["src/Script1.luau"]), facts, views, &mut agreement);
    assert_eq!(ops(step).len(), 1);
    let receipt = receipt(applied(&mut started, &[result(ID, OpStatus::Done, Some(DISK))], &mut agreement));
    assert_eq!((receipt.status, receipt.changes.len()), (SyncStatus::Success, 1));
}

#[test]
fn a_new_file_in_a_new_folder_is_found_by_its_path() {
    let (id, mut init) = folder(NodeId(9), vec![new_script(NodeId(2), DISK)]);
    init.fs_path = Some("src/Dir9/init.luau".into());
    for view in [folder(NodeId(9), vec![new_script(NodeId(2), DISK)]), (id, init)] {
        for (path, named) in [("src/Dir9/Script2.luau", true), ("src/Dir99/Script2.luau", false)] {
            let mut agreement = Agreement::default();
            let facts = vec![missing(NodeId(9))];
            let (_, step) = run(SyncMode::Standard, Some(&[path]), facts, [view.clone()], &mut agreement);
            assert_eq!(matches!(step, Step::Apply { .. }), named, "{path}: {step:?}");
        }
    }
}

#[test]
fn a_receipt_is_this_json() {
    let mut agreement = agreed(&[(ID, BASE), (NodeId(3), BASE)]);
    let facts = vec![differs(ID, BASE), missing(NodeId(2)), differs(NodeId(3), BASE)];
    let views = [script(ID, DISK), folder(NodeId(2), vec![]), script(NodeId(3), DISK)];
    let (mut started, _) = run(SyncMode::Standard, None, facts, views, &mut agreement);
    let results = [
        result(ID, OpStatus::Done, Some(DISK)),
        result(NodeId(2), OpStatus::Done, None),
        OpResult { error: Some("changed".into()), ..result(NodeId(3), OpStatus::Failed, Some(STUDIO)) },
    ];
    let receipt = receipt(applied(&mut started, &results, &mut agreement));
    let expected = json!({
        "status": "partial", "cursor": 7, "pushed": 2, "pulled": 0, "merged": 0, "removed": 0, "renamed": 0, "unresolved": 0, "failed": 1,
        "journal": 1,
        "changes": [{
            "path": "Root.Script1", "fsPath": "src/Script1.luau", "id": "00000000000000000000000000000001",
            "className": "ModuleScript", "direction": "push", "patchType": "Edit", "diskHash": hash(DISK),
            "studioHash": hash(DISK), "result": "done",
        }, {
            "path": "Root.Dir2", "fsPath": "src/Dir2", "id": "00000000000000000000000000000002",
            "className": "Folder", "direction": "push", "patchType": "Add", "result": "done",
        }, {
            "path": "Root.Script3", "fsPath": "src/Script3.luau", "id": "00000000000000000000000000000003",
            "className": "ModuleScript", "direction": "push", "patchType": "Edit", "diskHash": hash(DISK),
            "studioHash": hash(STUDIO), "result": "failed", "reason": "changed",
        }],
    });
    assert_eq!(serde_json::to_value(&receipt).expect("a receipt is JSON"), expected);
    assert_eq!(serde_json::from_value::<Receipt>(expected).expect("and back"), receipt);
}

#[test]
fn a_receipt_of_what_is_unresolved_is_this_json() {
    let (_, step) = run(SyncMode::Fastfail, None, vec![extra("Mine")], [], &mut Agreement::default());
    let expected = json!({
        "status": "fastfail_unresolved", "cursor": 7, "pushed": 0, "pulled": 0, "merged": 0, "removed": 0, "renamed": 0, "unresolved": 1, "failed": 0,
        "changes": [{
            "path": "Root.Mine", "className": "ModuleScript", "direction": "unresolved", "patchType": "Remove",
            "result": "unresolved", "reason": "it was made in Studio: to keep it, pull it with an override or save it as a file; to drop it, push it with an override",
        }],
        "message": words::nothing_changed(false),
    });
    assert_eq!(serde_json::to_value(receipt(step)).expect("a receipt is JSON"), expected);
}
