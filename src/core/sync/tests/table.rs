//! What is decided about one difference.

use super::*;

const ALONE: Rules = Rules {
    alone: true,
    allow_removals: false,
    takes: true,
    deleted: Vec::new(),
    follows: false,
    earlier: BTreeSet::new(),
};

/// The decision about `fact` when the tree has `view` and both sides last agreed on `base`.
fn decided(fact: Fact, view: Option<&NodeView>, base: Option<&str>) -> Option<Decision> {
    let mut agreement = base.map_or_else(Agreement::default, |base| agreed(&[(ID, base)]));
    verdicts::about_node(&fact, view, &mut agreement, &ALONE, None)
}

fn reason(decision: &Decision) -> &str {
    assert!(!decision.is_resolved());
    assert_eq!(decision.change.direction, Direction::Unresolved);
    assert_eq!(decision.change.result, ChangeResult::Unresolved);
    assert_eq!(decision.then, [], "what is unresolved is never agreed");
    decision.change.reason.as_deref().expect("an unresolved change says why")
}

#[test]
fn a_text_that_only_the_file_changed_is_pushed_under_the_guard_of_what_studio_has() {
    let (_, view) = script(ID, DISK);
    let decision = decided(differs(ID, BASE), Some(&view), Some(BASE)).expect("it differs");
    let op = PlanOp::SetSource { id: ID, source: DISK.into(), expect: hash(BASE) };
    assert_eq!((decision.op, decision.then), (Some(op), vec![Then::Agree(ID, hash(DISK))]));
    let change = decision.change;
    assert_eq!((change.direction, change.patch_type), (Direction::Push, PatchType::Edit));
    assert_eq!((change.disk_hash, change.studio_hash), (Some(hash(DISK)), Some(hash(BASE))));
    assert_eq!((change.path.as_str(), change.fs_path.as_deref()), ("Root.Script1", Some("src/Script1.luau")));
}

#[test]
fn a_text_that_only_studio_changed_is_pulled_under_the_guard_of_what_the_file_has() {
    let (_, view) = script(ID, DISK);
    let decision = decided(differs(ID, STUDIO), Some(&view), Some(DISK)).expect("it differs");
    let write = FileWrite::Replace { path: "src/Script1.luau".into(), base: hash(DISK), text: None };
    assert_eq!((&decision.op, &decision.write), (&None, &Some(write)));
    assert_eq!(decision.then, [Then::Agree(ID, hash(STUDIO))]);
    assert_eq!(decision.keeps, [DISK], "what the file had goes into the journal");
    assert_eq!((decision.change.direction, decision.change.patch_type), (Direction::Pull, PatchType::Edit));
}

#[test]
fn studios_text_is_taken_unasked_only_where_it_changed_under_our_eyes_and_nobody_else_edits() {
    for base in [DISK, BASE] {
        for (seen, alone) in [(true, true), (true, false), (false, true), (false, false)] {
            let mut agreement = Agreement::default();
            agreement.tree_has_node(&node(ID, "Script1", DISK));
            let key = agreement.key(ID).expect("it is in the tree");
            agreement.recall(vec![crate::core::agreement::Kept {
                key,
                id: None,
                last: Some(hash(base)),
                earlier: vec![],
                text: None,
            }]);
            if seen {
                agreement.agree(ID, hash(base));
            }
            let rules = Rules { alone, allow_removals: true, ..ALONE };
            let fact = differs(ID, STUDIO);
            let decision = verdicts::about_node(&fact, Some(&script(ID, DISK).1), &mut agreement, &rules, None);
            let decision = decision.expect("it differs");
            assert_eq!(decision.is_resolved(), seen && alone, "{base}, seen {seen}, alone {alone}");
        }
    }
}

#[test]
fn a_text_that_nobody_can_judge_is_unresolved() {
    let (_, view) = script(ID, DISK);
    let decision = decided(differs(ID, STUDIO), Some(&view), None).expect("it differs");
    assert!(reason(&decision).contains("nothing says which side is newer"), "{decision:?}");
}

#[test]
fn an_unsaved_draft_is_never_overwritten() {
    for base in [None, Some(BASE), Some(DISK), Some(STUDIO)] {
        let (_, view) = script(ID, DISK);
        let decision = decided(draft(ID, STUDIO), Some(&view), base).expect("it differs");
        assert!(reason(&decision).contains("has not saved"), "{base:?}");
    }
}

#[test]
fn texts_that_are_equal_by_now_are_agreed_and_no_change() {
    for fact in [differs(ID, DISK), draft(ID, DISK)] {
        let mut agreement = agreed(&[(ID, BASE)]);
        assert_eq!(verdicts::about_node(&fact, Some(&script(ID, DISK).1), &mut agreement, &ALONE, None), None);
        assert_eq!(agreement.base(ID), Some(hash(DISK)));
    }
}

#[test]
fn a_difference_of_what_is_no_script_is_unresolved() {
    let (_, view) = script(ID, DISK);
    let in_studio = fact(FactKind::Differs, Some(ID));
    let decision = decided(in_studio, Some(&view), Some(BASE)).expect("it differs");
    assert!(reason(&decision).contains("not a script"));
    let decision = decided(differs(ID, STUDIO), Some(&folder(ID, vec![]).1), Some(STUDIO)).expect("it differs");
    assert!(reason(&decision).contains("not a script"));
}

#[test]
fn what_studio_never_had_is_made_with_all_below_it() {
    let (_, view) = folder(ID, vec![new_script(NodeId(2), DISK), new_script(NodeId(3), BASE)]);
    let decision = decided(missing(ID), Some(&view), None).expect("it is missing");
    let node = view.subtree.clone().expect("asked for");
    assert_eq!(decision.op, Some(PlanOp::Add { parent: NodeId(0), node }));
    let folder = Then::MadeWith(ID, Properties::new());
    assert_eq!(decision.then, [Then::Made(NodeId(2), hash(DISK)), Then::Made(NodeId(3), hash(BASE)), folder]);
    assert_eq!((decision.change.direction, decision.change.patch_type), (Direction::Push, PatchType::Add));
}

#[test]
fn what_was_deleted_in_studio_is_unresolved_and_not_made_again() {
    let (_, view) = script(ID, DISK);
    for base in [DISK, BASE] {
        let decision = decided(missing(ID), Some(&view), Some(base)).expect("it is missing");
        assert!(reason(&decision).contains("removed in Studio"));
    }
    let (id, view) = folder(NodeId(9), vec![new_script(NodeId(2), DISK), new_script(ID, DISK)]);
    let decision = decided(missing(id), Some(&view), Some(DISK)).expect("it is missing");
    assert!(reason(&decision).contains("removed in Studio"), "one agreed script below it is enough");
}

#[test]
fn deleting_a_file_is_offered_only_where_it_is_done() {
    let (_, plain) = script(ID, DISK);
    let init = NodeView { fs_path: Some("src/Script1/init.luau".into()), ..plain.clone() };
    let mut holds = plain.clone();
    holds.subtree.as_mut().expect("there").children.push(new_script(NodeId(2), DISK));
    let model = NodeView { fs_path: Some("src/Model.rbxm".into()), source: None, ..plain.clone() };
    for (view, can) in [(plain, true), (init, false), (holds, false), (model, false)] {
        for base in [DISK, BASE] {
            let agreement = &mut agreed(&[(ID, base)]);
            agreement.tree_has_node(&Node { parent: None, hash: None, ..node(NodeId(0), "Root", "") });
            agreement.tree_has_node(&node(ID, "Script1", DISK));
            let about = |agreement: &mut Agreement, forced| {
                verdicts::about_node(&missing(ID), Some(&view), agreement, &ALONE, forced).expect("missing")
            };
            assert_eq!(reason(&about(agreement, None)).contains("with `pull`"), can, "{view:?}");
            assert_eq!(about(agreement, Some(Forced::Pull)).is_resolved(), can, "{view:?}");
        }
    }
}

#[test]
fn instances_of_every_class_are_made() {
    for class in ["Folder", "Script", "LocalScript", "ModuleScript", "Part", "RemoteEvent"] {
        let (_, mut view) = folder(ID, vec![]);
        view.subtree.as_mut().expect("there").class_name = class.into();
        assert!(decided(missing(ID), Some(&view), None).expect("missing").op.is_some(), "{class}");
    }
}

#[test]
fn what_is_missing_without_a_known_place_is_unresolved() {
    let (_, view) = script(ID, DISK);
    for view in [NodeView { parent: None, ..view.clone() }, NodeView { subtree: None, ..view }] {
        let decision = decided(missing(ID), Some(&view), None).expect("missing");
        assert!(reason(&decision).contains("place in the tree"));
    }
}

#[test]
fn what_is_no_longer_in_the_tree_is_no_difference() {
    assert_eq!(decided(differs(ID, STUDIO), None, Some(BASE)), None);
    assert_eq!(decided(missing(ID), None, None), None);
}

#[test]
fn what_is_nested_too_deep_for_a_plan_is_not_tried() {
    let (_, mut view) = script(ID, DISK);
    let mut node = view.subtree.take().expect("scripts have one here");
    for level in 0..60 {
        let parent = NewNode { id: NodeId(100 + level), class_name: "Folder".into(), source: None, ..node.clone() };
        node = NewNode { children: vec![node], ..parent };
    }
    view.subtree = Some(node);
    let decision = decided(missing(ID), Some(&view), None).expect("it is missing");
    assert!(reason(&decision).contains("levels deep"), "{decision:?}");
}

#[test]
fn studio_is_changed_only_where_its_text_is_the_agreed_one_or_it_never_had_any() {
    let texts = [Some(BASE), Some(DISK), Some(STUDIO), None];
    for kind in [FactKind::Differs, FactKind::Missing] {
        for (base, studio) in texts.iter().flat_map(|base| texts.map(|studio| (*base, studio))) {
            for is_draft in [false, true] {
                let fact = Fact { studio_hash: studio.map(hash), is_draft, ..fact(kind, Some(ID)) };
                let decision = decided(fact, Some(&script(ID, DISK).1), base);
                let pushes = decision.is_some_and(|decision| decision.change.direction == Direction::Push);
                let allowed = match kind {
                    FactKind::Differs => !is_draft && studio.is_some() && base == studio && studio != Some(DISK),
                    _ => base.is_none(),
                };
                assert_eq!(pushes, allowed, "{kind:?}, base {base:?}, Studio {studio:?}, draft {is_draft}");
            }
        }
    }
}

#[test]
fn a_text_without_a_base_that_the_file_had_in_a_commit_is_old_and_kept_before_it_is_replaced() {
    let version = Version { path: "src/Script1.luau".into(), hash: hash(STUDIO) };
    let elsewhere = Version { path: "src/Other.luau".into(), ..version.clone() };
    for (known, is_old) in [(vec![version.clone()], true), (vec![elsewhere], false), (vec![], false)] {
        let mut agreement = Agreement::default();
        let (mut run, _) = Run::start("run-1".into(), SyncArgs::default(), true);
        run.caught_up(7, &agreement);
        run.compared(Some(7), vec![differs(ID, STUDIO)], &mut agreement);
        let step = run.looked(HashMap::from([script(ID, DISK)]), &mut agreement);
        assert_eq!(step, Step::Read(vec![ID.into()]));
        let step = run.fetched(&ID.into(), Ok(STUDIO.to_owned()), &mut agreement);
        assert_eq!(step, Step::History(vec![version.clone().ask(STUDIO)]));
        let step = run.knows_history(known.into_iter().collect(), &mut agreement);
        if is_old {
            let Step::Begin(draft) = step else { panic!("{step:?}") };
            assert!(draft.texts.contains(&STUDIO.to_owned()), "the journal gets Studio's text first");
            continue;
        }
        assert_eq!(receipt(step).unresolved, 1);
    }
}

#[test]
fn git_is_asked_only_where_nothing_else_says_which_side_is_old() {
    for (fact, base) in [(differs(ID, STUDIO), Some(BASE)), (draft(ID, STUDIO), None), (missing(ID), None)] {
        let mut agreement = agreed(&base.map(|base| (ID, base)).into_iter().collect::<Vec<_>>());
        let (mut run, _) = Run::start("run-1".into(), SyncArgs::default(), true);
        run.caught_up(7, &agreement);
        run.compared(Some(7), vec![fact], &mut agreement);
        let step = run.looked(HashMap::from([script(ID, DISK)]), &mut agreement);
        assert!(!matches!(step, Step::Read(_) | Step::History(_)), "{step:?}");
    }
}
