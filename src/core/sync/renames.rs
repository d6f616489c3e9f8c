//! A file that is gone and a new one with the same text are one file with another name: its
//! instance in Studio stays, with what only Studio knows of it.

use std::collections::HashMap;

use super::{
    decision::{Decision, Then},
    receipt::{Direction, PatchType},
    removals::Extra,
};
use crate::core::{
    agreement::Agreement,
    ids::NodeId,
    paths::InstanceKey,
    protocol::{NewNode, PlanOp},
    text::TextHash,
};

/// Which scripts lie where below an instance of which class; where there are none, which instances.
/// Two instances with the same one may be the same under two names.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Shape {
    class: String,
    parts: Vec<(InstanceKey, Option<TextHash>)>,
}

impl Shape {
    fn new(class: &str, mut parts: Vec<(InstanceKey, Option<TextHash>)>) -> Self {
        let has_scripts = parts.iter().any(|(_, hash)| hash.is_some());
        parts.retain(|(below, hash)| hash.is_some() || !has_scripts && *below != InstanceKey::root());
        parts.sort();
        Self { class: class.to_owned(), parts }
    }
}

/// Turn each removal that has exactly one new instance of its shape, and the other way round, into
/// a rename. `extras` are by their place in `decisions`.
pub(super) fn find(decisions: &mut Vec<Decision>, extras: &HashMap<usize, Extra>, agreement: &Agreement) {
    let mut shapes: HashMap<Shape, (Vec<usize>, Vec<usize>)> = HashMap::new();
    for (at, decision) in decisions.iter().enumerate() {
        match (&decision.op, extras.get(&at)) {
            (Some(PlanOp::Add { node, .. }), _) => shapes.entry(of_node(node)).or_default().1.push(at),
            (op, Some(extra)) if may_be_renamed(extra, op.as_ref(), decision) => {
                shapes.entry(of_extra(extra)).or_default().0.push(at);
            }
            _ => {}
        }
    }
    let pairs = shapes.into_iter().filter(|(shape, _)| !shape.parts.is_empty());
    let mut gone = Vec::new();
    for (_, (old, new)) in pairs {
        let ([old], [new]) = (&old[..], &new[..]) else { continue };
        let Some((place, was)) = decisions.get(*old).map(|old| (old.place.clone(), old.change.path.clone())) else {
            continue;
        };
        let (Some(extra), Some(decision)) = (extras.get(old), decisions.get_mut(*new)) else { continue };
        rename(decision, extra, agreement);
        decision.was = place.clone();
        if place.map(|place| place.parent) != decision.op.as_ref().and_then(parent_of) {
            decision.change.reason = Some(format!("it was {was}"));
        }
        gone.push(*old);
    }
    let mut at = 0;
    decisions.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
}

/// Its scripts are old, or it goes as a whole and holds none.
fn may_be_renamed(extra: &Extra, op: Option<&PlanOp>, decision: &Decision) -> bool {
    let goes = extra.scripts.is_empty() && matches!(op, Some(PlanOp::Remove { .. }));
    (extra.is_old() || goes) && decision.needs.is_none() && decision.write.is_none()
}

/// The new instance is the old one.
fn rename(decision: &mut Decision, extra: &Extra, agreement: &Agreement) {
    let Some(PlanOp::Add { parent, node }) = decision.op.take() else { return };
    let mut nodes = Vec::new();
    walk(&node, &InstanceKey::root(), &mut |id, below, hash| nodes.push((below.clone(), id, hash)));
    let of_below: HashMap<InstanceKey, (NodeId, TextHash)> =
        nodes.into_iter().map(|(below, id, hash)| (below, (id, hash))).collect();
    let moved = extra.scripts.iter().filter_map(|script| {
        let (id, hash) = of_below.get(&script.below)?;
        Some(Then::Renamed { from: script.key.clone(), id: *id, hash: *hash })
    });
    decision.then = moved.collect();
    // Of what is no script the properties were agreed on.
    let to = agreement.key(node.id);
    decision.then.extend(to.map(|to| Then::Moved { from: extra.key.clone(), to }));
    let change = decision.change.clone().planned(Direction::Push, PatchType::Rename);
    decision.change = change;
    decision.change.temp_id = Some(extra.temp_id.clone());
    decision.change.studio_hash = extra.expect.studio_hash;
    decision.change.reason = extra.expect.name.as_ref().map(|name| format!("it was called {name}"));
    let (temp_id, expect) = (Some(extra.temp_id.clone()), extra.expect.clone());
    decision.op = Some(PlanOp::Rename { temp_id, id: node.id, parent, name: node.name, source: None, expect });
}

fn parent_of(op: &PlanOp) -> Option<NodeId> {
    match op {
        PlanOp::Rename { parent, .. } => Some(*parent),
        _ => None,
    }
}

fn of_node(node: &NewNode) -> Shape {
    fn all(node: &NewNode, below: InstanceKey, parts: &mut Vec<(InstanceKey, Option<TextHash>)>) {
        for child in &node.children {
            all(child, below.child(&child.name, &child.class_name), parts);
        }
        parts.push((below, node.source.as_deref().map(TextHash::of)));
    }
    let mut parts = Vec::new();
    all(node, InstanceKey::root(), &mut parts);
    Shape::new(&node.class_name, parts)
}

fn of_extra(extra: &Extra) -> Shape {
    let scripts = extra.scripts.iter().map(|script| (script.below.clone(), Some(script.hash)));
    let others = extra.others.iter().filter_map(|key| {
        let below = key.as_str().strip_prefix(extra.key.as_str())?;
        Some((InstanceKey::from(below.trim_start_matches('/')), None))
    });
    Shape::new(&extra.class, scripts.chain(others).collect())
}

fn walk(node: &NewNode, below: &InstanceKey, found: &mut impl FnMut(NodeId, &InstanceKey, TextHash)) {
    if let Some(source) = &node.source {
        found(node.id, below, TextHash::of(source));
    }
    for child in &node.children {
        walk(child, &below.child(&child.name, &child.class_name), found);
    }
}
