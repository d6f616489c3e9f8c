use super::*;

const ID: NodeId = NodeId(7);

#[test]
fn a_base_advances_only_when_both_sides_are_known_to_be_equal() {
    let (one, two) = (TextHash::of("1"), TextHash::of("2"));
    let mut agreement = Agreement::default();
    agreement.tree_has(ID, one);
    assert_eq!(agreement.base(ID), None);
    agreement.confirm(agreement.unconfirmed(), |_| false);
    assert_eq!(agreement.base(ID), Some(one));

    agreement.tree_has(ID, two);
    agreement.confirm(agreement.unconfirmed(), |id| id == ID);
    assert_eq!(agreement.base(ID), Some(one), "reported as different: not agreed");
    agreement.agree(ID, two);
    assert_eq!(agreement.base(ID), Some(two));
    assert!(agreement.unconfirmed().is_empty());
}

#[test]
fn a_renamed_script_has_no_base_because_studio_never_had_it_there() {
    let hash = TextHash::of("1");
    let node = |name: &str| Node {
        id: ID,
        parent: Some(NodeId(1)),
        name: name.into(),
        class_name: "ModuleScript".into(),
        ignore_unknown: false,
        hash: Some(hash),
        properties: crate::core::values::Properties::new(),
    };
    let mut agreement = Agreement::default();
    agreement.tree_has_node(&node("Old"));
    agreement.agree(ID, hash);
    agreement.tree_has_node(&node("Old"));
    assert_eq!(agreement.base(ID), Some(hash));
    agreement.patched(&[PatchOp::Put { node: node("New") }]);
    assert_eq!(agreement.base(ID), None);
    agreement.patched(&[PatchOp::Put { node: node("Old") }]);
    assert_eq!(agreement.base(ID), Some(hash), "back at its place, what was agreed there holds");
}

#[test]
fn an_older_comparison_does_not_move_a_base_back() {
    let (one, two) = (TextHash::of("1"), TextHash::of("2"));
    let mut agreement = Agreement::default();
    agreement.tree_has(ID, one);
    let older = agreement.unconfirmed();
    agreement.tree_has(ID, two);
    agreement.confirm(agreement.unconfirmed(), |_| false);
    agreement.confirm(older, |_| false);
    assert_eq!(agreement.base(ID), Some(two));
}

#[test]
fn a_change_of_the_tree_during_a_comparison_is_not_confirmed_by_it() {
    let (one, two) = (TextHash::of("1"), TextHash::of("2"));
    let mut agreement = Agreement::default();
    agreement.tree_has(ID, one);
    let compared = agreement.unconfirmed();
    agreement.tree_has(ID, two);
    agreement.confirm(compared, |_| false);
    assert_eq!(agreement.base(ID), Some(one));
    agreement.confirm(agreement.unconfirmed(), |_| false);
    assert_eq!(agreement.base(ID), Some(two), "the next one confirms it");
}

#[test]
fn what_is_moved_keeps_what_was_agreed_whether_the_tree_followed_before_or_after() {
    let (hash, folder, script) = (TextHash::of("1"), NodeId(2), NodeId(3));
    let at = |id: NodeId, parent: Option<NodeId>, name: &str, hash: Option<TextHash>| Node {
        id,
        parent,
        name: name.into(),
        class_name: "Folder".into(),
        ignore_unknown: false,
        hash,
        properties: crate::core::values::Properties::new(),
    };
    let key = |name: &str| InstanceKey::root().child(name, "Folder");
    for is_first in [true, false] {
        let mut agreement = Agreement::default();
        agreement.tree_has_node(&at(NodeId(1), None, "Root", None));
        agreement.tree_has_node(&at(folder, Some(NodeId(1)), "Old", None));
        agreement.tree_has_node(&at(script, Some(folder), "Script", Some(hash)));
        agreement.agree(script, hash);
        agreement.agree_properties(folder, &crate::core::values::Properties::new());
        let follow = |agreement: &mut Agreement| {
            agreement.patched(&[PatchOp::Drop { id: folder }]);
            agreement.tree_has_node(&at(NodeId(4), Some(NodeId(1)), "New", None));
            agreement.tree_has_node(&at(NodeId(5), Some(NodeId(4)), "Script", Some(hash)));
        };
        if is_first {
            follow(&mut agreement);
        }
        agreement.moved(&key("Old"), &key("New"));
        if !is_first {
            follow(&mut agreement);
        }
        assert_eq!(agreement.base(NodeId(5)), Some(hash), "{is_first}");
        assert!(agreement.standing(NodeId(5)).seen);
        if is_first {
            assert!(agreement.properties(NodeId(4)).last.is_some());
            assert_eq!(agreement.properties_gone(&key("Old")), None);
        }
        let told = agreement.take_news();
        let new = key("New").child("Script", "Folder");
        assert!(told.iter().filter_map(News::agreed).any(|kept| kept.key == new && kept.last == Some(hash)));

        agreement.patched(&[PatchOp::Drop { id: NodeId(4) }]);
        agreement.tree_has_node(&at(NodeId(6), Some(NodeId(1)), "Old", None));
        agreement.tree_has_node(&at(NodeId(7), Some(NodeId(6)), "Script", Some(hash)));
        agreement.moved(&key("New"), &key("Old"));
        assert_eq!(agreement.base(NodeId(7)), Some(hash), "there and back");
    }
}
