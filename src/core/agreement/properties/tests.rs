use serde_json::json;

use super::*;

const ID: NodeId = NodeId(7);

fn part(color: i32) -> Node {
    Node {
        id: ID,
        parent: None,
        name: "Lamp".into(),
        class_name: "Part".into(),
        ignore_unknown: false,
        hash: None,
        properties: Properties::from([("Color".to_owned(), json!({ "Color3": [color, 0, 0] }))]),
    }
}

fn confirmed(node: &Node) -> Agreement {
    let mut agreement = Agreement::default();
    agreement.tree_has_node(node);
    let compared = agreement.unconfirmed();
    agreement.confirm(compared, |_| false);
    agreement
}

fn told(agreement: &mut Agreement) -> Vec<Kept> {
    agreement.take_news().iter().filter_map(|news| news.agreed().cloned()).collect()
}

#[test]
fn a_comparison_that_reports_nothing_agrees() {
    let mut agreement = confirmed(&part(1));
    assert_eq!(agreement.properties(ID).last, Some(part(1).properties));
    agreement.tree_has_node(&part(0));
    let compared = agreement.unconfirmed();
    agreement.confirm(compared, |_| true);
    assert_eq!(agreement.properties(ID).last, Some(part(1).properties), "it was reported");
}

#[test]
fn what_was_agreed_outlives_the_process() {
    let mut agreement = confirmed(&part(1));
    agreement.agree_properties(ID, &part(0).properties);
    assert!(agreement.properties(ID).earlier.is_empty(), "Studio had the last one under our eyes");
    let kept = told(&mut agreement);
    assert_eq!(kept.len(), 1);
    let other = NodeId(8);
    let mut next = Agreement::default();
    next.tree_has_node(&Node { id: other, ..part(0) });
    next.recall(kept.clone());
    let base = next.properties(other);
    assert_eq!(base.last, Some(part(0).properties));
    assert_eq!(base.earlier, [Some(part(1).properties)], "it may have been closed without saving");
    assert!(told(&mut next).is_empty(), "the store has it");
}

#[test]
fn what_left_the_tree_is_known_by_its_key() {
    let mut agreement = confirmed(&part(1));
    let key = agreement.key(ID).expect("it is in the tree");
    agreement.tree_is(&HashSet::new());
    assert_eq!(agreement.properties_gone(&key), Some(part(1).properties));
    agreement.agree_properties_gone(&key, None);
    assert_eq!(agreement.properties_gone(&key), None);
    let kept = told(&mut agreement);
    assert_eq!(kept.last().map(|row| row.last), Some(None), "the store forgets it too");
}
