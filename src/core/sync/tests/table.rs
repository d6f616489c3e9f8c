//! What is decided about one difference.

use super::*;

/// The decision about `fact` when the tree has `view` and both sides last agreed on `base`.
fn decided(fact: Fact, view: Option<&NodeView>, base: Option<&str>) -> Option<Decision> {
    let mut agreement = base.map_or_else(Agreement::default, |base| agreed(&[(ID, base)]));
    decide(fact, view, &mut agreement)
}

fn reason(decision: &Decision) -> &str {
    assert_eq!(decision.op, None);
    assert_eq!(decision.change.direction, Direction::Unresolved);
    assert_eq!(decision.change.result, ChangeResult::Unresolved);
    assert_eq!(decision.agrees, [], "what is unresolved is never agreed");
    decision.change.reason.as_deref().expect("an unresolved change says why")
}

#[test]
fn a_text_that_only_the_file_changed_is_pushed_under_the_guard_of_what_studio_has() {
    let (_, view) = script(ID, DISK);
    let decision = decided(differs(ID, BASE), Some(&view), Some(BASE)).expect("it differs");
    let op = PlanOp::SetSource { id: ID, source: DISK.into(), expect: hash(BASE) };
    assert_eq!((decision.op, decision.agrees), (Some(op), vec![(ID, hash(DISK))]));
    let change = decision.change;
    assert_eq!((change.direction, change.patch_type), (Direction::Push, PatchType::Edit));
    assert_eq!((change.disk_hash, change.studio_hash), (Some(hash(DISK)), Some(hash(BASE))));
    assert_eq!((change.path.as_str(), change.fs_path.as_deref()), ("Root.Script1", Some("src/Script1.luau")));
}

#[test]
fn a_text_that_studio_changed_is_unresolved_whoever_else_changed_it() {
    let cases = [
        (Some(DISK), "changed in Studio, not in the file"),
        (Some(BASE), "changed in Studio and in the file"),
        (None, "nothing says which side is newer"),
    ];
    for (base, words) in cases {
        let (_, view) = script(ID, DISK);
        let decision = decided(differs(ID, STUDIO), Some(&view), base).expect("it differs");
        assert!(reason(&decision).contains(words), "{base:?}: {decision:?}");
    }
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
        assert_eq!(decide(fact, Some(&script(ID, DISK).1), &mut agreement), None);
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
    assert_eq!(decision.agrees, [(NodeId(2), hash(DISK)), (NodeId(3), hash(BASE))]);
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
fn only_scripts_and_folders_are_made() {
    for class in ["Folder", "Script", "LocalScript", "ModuleScript"] {
        let (_, mut view) = folder(ID, vec![]);
        view.subtree.as_mut().expect("there").class_name = class.into();
        assert!(decided(missing(ID), Some(&view), None).expect("missing").op.is_some(), "{class}");
    }
    for class in ["Part", "RemoteEvent", "script", ""] {
        let deep = NewNode { class_name: class.into(), ..new_script(NodeId(3), DISK) };
        let inner = NewNode { children: vec![deep], ..new_script(NodeId(2), DISK) };
        let (_, view) = folder(ID, vec![new_script(NodeId(4), DISK), inner]);
        let decision = decided(missing(ID), Some(&view), None).expect("missing");
        assert!(reason(&decision).contains(&format!("holds a {class};")), "{decision:?}");
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
fn what_only_studio_has_is_never_removed() {
    let decision = decided(extra("Mine"), None, None).expect("it is there");
    assert!(reason(&decision).contains("it is left alone"));
    assert_eq!((decision.change.path.as_str(), decision.change.id), ("Root.Mine", None));
    let with_id = Fact { id: Some(ID), ..extra("Mine") };
    let decision = decided(with_id, Some(&script(ID, DISK).1), Some(DISK)).expect("it is there");
    assert_eq!(decision.op, None, "not even when it claims to be a node of ours");
}

#[test]
fn studio_is_changed_only_where_its_text_is_the_agreed_one_or_it_never_had_any() {
    let texts = [Some(BASE), Some(DISK), Some(STUDIO), None];
    for kind in [FactKind::Differs, FactKind::Missing, FactKind::Extra] {
        for (base, studio) in texts.iter().flat_map(|base| texts.map(|studio| (*base, studio))) {
            for is_draft in [false, true] {
                let fact = Fact { studio_hash: studio.map(hash), is_draft, ..fact(kind, Some(ID)) };
                let op = decided(fact, Some(&script(ID, DISK).1), base).and_then(|decision| decision.op);
                let allowed = match kind {
                    FactKind::Differs => !is_draft && studio.is_some() && base == studio && studio != Some(DISK),
                    FactKind::Missing => base.is_none(),
                    FactKind::Extra => false,
                };
                assert_eq!(op.is_some(), allowed, "{kind:?}, base {base:?}, Studio {studio:?}, draft {is_draft}");
            }
        }
    }
}
