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
