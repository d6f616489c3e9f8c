//! What a person does in Studio, followed on disk: scripts made, renamed, moved and deleted there.

use super::*;

const NEW: &str = "New";

fn unasked(takes: bool, deleted: &[NodeId]) -> SyncArgs {
    let unasked = Unasked { takes, deleted: deleted.to_vec(), ..Unasked::default() };
    SyncArgs { unasked: Some(Box::new(unasked)), ..SyncArgs::default() }
}

fn root() -> (NodeId, NodeView) {
    let (id, view) = folder(NodeId(0), vec![]);
    (id, NodeView { fs_path: Some("src".into()), ..view })
}

/// Script 1 of the tree, agreed on as `BASE`.
fn known() -> Agreement {
    let mut agreement = Agreement::default();
    agreement.tree_has_node(&Node {
        parent: None,
        hash: None,
        class_name: "Folder".into(),
        ..node(NodeId(0), "Root", "")
    });
    for id in 1..=9 {
        agreement.tree_has_node(&node(NodeId(id), &format!("Script{id}"), BASE));
        agreement.agree(NodeId(id), hash(BASE));
    }
    agreement
}

fn made(text: &str) -> Fact {
    Fact {
        temp_id: Some("x1".into()),
        name: Some(NEW.into()),
        studio_hash: Some(hash(text)),
        subtree: Some(vec![]),
        siblings: Some(20),
        is_new: true,
        ..extra(NEW)
    }
}

fn renamed(text: &str) -> Vec<Fact> {
    vec![missing(ID), Fact { was: Some(ID), is_new: false, ..made(text) }]
}

fn follow(args: SyncArgs, facts: Vec<Fact>, disk: &str) -> (Run, Step, Agreement) {
    let mut agreement = known();
    let (run, step) = run_with(args, facts, [root(), script(ID, disk)], &mut agreement);
    (run, step, agreement)
}

#[test]
fn a_script_that_was_renamed_in_studio_takes_its_file_and_its_base_along() {
    let (mut run, step, mut agreement) = follow(unasked(true, &[]), renamed(BASE), BASE);
    let Step::Write(writes) = step else { panic!("{step:?}") };
    let [FileWrite::Move { path, base, folder, name, text, .. }] = &writes[..] else { panic!("{writes:?}") };
    assert_eq!((path.as_str(), *base, folder.as_str(), name.as_str()), ("src/Script1.luau", hash(BASE), "src", NEW));
    assert_eq!(text.as_deref(), Some(BASE));
    let step = run.written(vec![Wrote::Made("src/New.luau".into(), Some(hash(BASE)))], &mut agreement);
    let receipt = receipt(journalled(&mut run, step, &mut agreement));
    assert_eq!((receipt.status, receipt.pulled, receipt.changes.len()), (SyncStatus::Success, 1, 1));
    assert_eq!(receipt.changes[0].fs_path.as_deref(), Some("src/New.luau"));
    agreement.tree_has_node(&node(NodeId(20), NEW, BASE));
    assert_eq!(agreement.base(NodeId(20)), Some(hash(BASE)));
}

#[test]
fn a_script_that_was_renamed_and_changed_takes_the_new_text_along() {
    let (mut run, step, mut agreement) = follow(unasked(true, &[]), renamed(STUDIO), BASE);
    assert_eq!(step, Step::Fetch(vec![TempId::from("x1").into()]));
    let step = run.fetched(&TempId::from("x1").into(), Ok(STUDIO.into()), &mut agreement);
    let step = journalled(&mut run, step, &mut agreement);
    let Step::Write(writes) = step else { panic!("{step:?}") };
    assert!(matches!(&writes[..], [FileWrite::Move { text: Some(text), .. }] if text == STUDIO), "{writes:?}");
}

#[test]
fn a_rename_that_is_not_clear_is_held() {
    let changed = |change: fn(&mut Fact)| {
        let mut facts = renamed(BASE);
        change(&mut facts[1]);
        facts
    };
    let cases = [
        (renamed(STUDIO), DISK, "its file was changed too"),
        (changed(|fact| fact.is_draft = true), BASE, "has not saved"),
        (changed(|fact| fact.class_name = "Script".into()), BASE, "same class"),
        (changed(|fact| fact.subtree = None), BASE, "same class"),
        (changed(|fact| fact.name = None), BASE, "not known well enough"),
    ];
    for (facts, disk, reason) in cases {
        let (_, step, _) = follow(unasked(true, &[]), facts, disk);
        let receipt = receipt(step);
        assert_eq!((receipt.unresolved, receipt.changes.len()), (1, 1), "{receipt:?}");
        let told = receipt.changes[0].reason.as_deref().expect("it says why");
        assert!(told.contains(reason), "{told}");
    }
}

#[test]
fn what_was_made_in_studio_becomes_a_file_only_in_live_mode_and_if_it_was_seen() {
    let cases = [
        (unasked(true, &[]), made(STUDIO), true),
        (unasked(true, &[]), Fact { is_new: false, ..made(STUDIO) }, false),
        (unasked(false, &[]), made(STUDIO), false),
        (SyncArgs::default(), made(STUDIO), false),
        (unasked(true, &[]), Fact { is_draft: true, ..made(STUDIO) }, false),
    ];
    for (args, fact, follows) in cases {
        let (_, step, _) = follow(args, vec![fact], BASE);
        assert_eq!(matches!(step, Step::Fetch(_)), follows, "{step:?}");
    }
    for args in [unasked(false, &[]), SyncArgs::default()] {
        let (_, step, _) = follow(args, renamed(BASE), BASE);
        assert_eq!(receipt(step).changes.len(), 2, "each is listed by itself");
    }
}

#[test]
fn c38_deletions_in_studio_need_consent_too() {
    let ids = |count: u128| (1..=count).map(NodeId).collect::<Vec<_>>();
    for (count, follows) in [(4, true), (5, false)] {
        let mut agreement = known();
        let facts = ids(count).into_iter().map(missing).collect();
        let views = ids(count).into_iter().map(|id| script(id, BASE)).chain([root()]);
        let (_, step) = run_with(unasked(true, &ids(count)), facts, views, &mut agreement);
        if follows {
            assert!(matches!(&step, Step::Write(writes) if writes.len() == 4), "{step:?}");
            continue;
        }
        let receipt = receipt(step);
        assert_eq!(receipt.unresolved, 5, "more than half of nine");
        let told = receipt.changes[0].reason.as_deref().expect("it says why");
        assert!(told.contains("more than half") && told.contains("override"), "{told}");
    }
}

/// A folder of the tree with script 1 in it, and what a person made of it in Studio.
fn box_of(disk: &str, below: Vec<Below>) -> (Vec<Fact>, [(NodeId, NodeView); 2], Agreement) {
    let mut agreement = known();
    let folder_node = Node { class_name: "Folder".into(), hash: None, ..node(NodeId(30), "Dir30", "") };
    agreement.tree_has_node(&folder_node);
    agreement.tree_has_node(&Node { parent: Some(NodeId(30)), ..node(NodeId(31), "Script31", BASE) });
    agreement.agree(NodeId(31), hash(BASE));
    let now = Fact {
        was: Some(NodeId(30)),
        is_new: false,
        class_name: "Folder".into(),
        studio_hash: None,
        subtree: Some(below),
        ..made(BASE)
    };
    let views = [root(), folder(NodeId(30), vec![new_script(NodeId(31), disk)])];
    (vec![missing(NodeId(30)), now], views, agreement)
}

fn below(name: &str, class: &str, text: &str) -> Below {
    Below { path: vec![name.into()], class_name: class.into(), studio_hash: Some(hash(text)), is_draft: false }
}

#[test]
fn a_folder_that_was_renamed_in_studio_takes_the_bases_of_all_below_it_along() {
    let there = vec![below("Script31", "ModuleScript", STUDIO), below("Made", "Script", BASE)];
    let (facts, views, mut agreement) = box_of(BASE, there);
    let (mut run, step) = run_with(unasked(true, &[]), facts, views, &mut agreement);
    let write =
        FileWrite::MoveFolder { id: NodeId(30), path: "src/Dir30".into(), folder: "src".into(), name: NEW.into() };
    assert_eq!(step, Step::Write(vec![write]), "what was typed in it meanwhile is its own change");
    let step = run.written(vec![Wrote::Made("src/New".into(), None)], &mut agreement);
    assert_eq!(receipt(journalled(&mut run, step, &mut agreement)).status, SyncStatus::Success);
    agreement.patched(&[crate::core::protocol::PatchOp::Drop { id: NodeId(30) }]);
    let moved = Node { class_name: "Folder".into(), hash: None, ..node(NodeId(40), NEW, "") };
    agreement.tree_has_node(&moved);
    agreement.tree_has_node(&Node { parent: Some(NodeId(40)), ..node(NodeId(41), "Script31", BASE) });
    assert_eq!(agreement.base(NodeId(41)), Some(hash(BASE)));
}

#[test]
fn a_folder_that_is_not_the_same_is_held() {
    let same = || vec![below("Script31", "ModuleScript", BASE)];
    let cases = [
        (box_of(DISK, same()), "changed too"),
        (box_of(BASE, vec![]), "not the same"),
        (box_of(BASE, vec![below("Script31", "Script", BASE)]), "not the same"),
    ];
    for ((facts, views, mut agreement), reason) in cases {
        let (_, step) = run_with(unasked(true, &[]), facts, views, &mut agreement);
        let receipt = receipt(step);
        assert_eq!((receipt.unresolved, receipt.changes.len()), (1, 1), "{receipt:?}");
        assert!(receipt.changes[0].reason.as_deref().expect("why").contains(reason), "{receipt:?}");
    }
}
