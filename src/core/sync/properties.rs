//! What to do about properties that Studio has otherwise than the files specify.
//!
//! The files win, property by property, and what Studio had before is in the receipt and in the
//! journal. Left alone is only what changed in Studio since both sides last had the same: it is
//! neither what they had then, nor, where Studio may have been closed without saving, before.

use serde_json::{Map, Value, json};

use super::{
    decision::{Decision, NodeView, Then},
    overrides::Forced,
    receipt::{Change, Direction, PatchType},
    verdicts,
};
use crate::core::{
    agreement::{Agreement, PropertyBase},
    ids::NodeId,
    protocol::{Fact, FactKind, PlanOp},
    values::{Properties, is_close, short},
};

/// Decide about the properties of a fact: those that are pushed, and those that are left alone.
pub(super) fn about(
    fact: &Fact,
    view: Option<&NodeView>,
    agreement: &Agreement,
    forced: Option<&Forced>,
) -> Vec<Decision> {
    let (FactKind::Differs, Some(id), Some(view)) = (fact.kind, fact.id, view) else { return Vec::new() };
    let base = agreement.properties(id);
    let (mut pushed, mut held) = (Properties::new(), Vec::new());
    for (name, studio) in &fact.properties {
        // What the tree no longer has so moved on.
        let Some(file) = view.properties.get(name).filter(|file| !is_close(file, studio)) else { continue };
        let is_held = match forced {
            Some(Forced::Push) => false,
            Some(Forced::Pull) => true,
            _ => was_changed(&base, name, &agreement.by_path(studio)),
        };
        if is_held {
            held.push((name.clone(), is_settled(&base, name, &agreement.by_path(file))));
        } else {
            pushed.insert(name.clone(), studio.clone());
        }
    }
    let line = |change| Change { disk_hash: None, studio_hash: None, ..change };
    let change = line(verdicts::change(fact, Some(view), PatchType::Edit));
    let mut agreed = view.properties.clone();
    for (name, _) in &held {
        match base.last.as_ref().and_then(|last| last.get(name)) {
            Some(last) => _ = agreed.insert(name.clone(), last.clone()),
            None => _ = agreed.remove(name),
        }
    }
    let push = (!pushed.is_empty()).then(|| push(id, view, change.clone(), pushed).then(Then::Properties(id, agreed)));
    let held = (!held.is_empty()).then(|| {
        let names = held.iter().map(|(name, _)| name.clone());
        let all: Properties =
            names.filter_map(|name| Some((name.clone(), fact.properties.get(&name)?.clone()))).collect();
        Decision::unresolved(shown(change, &view.properties, &all), reason(&held, forced))
    });
    push.into_iter().chain(held).collect()
}

fn push(id: NodeId, view: &NodeView, change: Change, studio: Properties) -> Decision {
    let change = shown(change, &view.properties, &studio).planned(Direction::Push, PatchType::Edit);
    let wanted = |name: &String| Some((name.clone(), view.properties.get(name)?.clone()));
    let properties = studio.keys().filter_map(wanted).collect();
    Decision::new(change).does(PlanOp::SetProperties { id, properties, expect: studio })
}

/// `change` with the values of both sides, for the receipt.
pub(super) fn shown(mut change: Change, incoming: &Properties, studio: &Properties) -> Change {
    let both = |(name, studio): (&String, &Value)| {
        let incoming = incoming.get(name)?;
        Some((name.clone(), json!({ "current": short(studio), "incoming": short(incoming) })))
    };
    let properties: Map<String, Value> = studio.iter().filter_map(both).collect();
    change.foreign.insert("properties".to_owned(), properties.into());
    change
}

/// Studio has a value that both sides never had at the same time.
fn was_changed(base: &PropertyBase, name: &str, studio: &Value) -> bool {
    let studio = short(studio);
    let Some(last) = base.last.as_ref().and_then(|last| last.get(name)) else { return false };
    let earlier = base.earlier.iter().flatten().filter_map(|state| state.get(name));
    !std::iter::once(last).chain(earlier).any(|agreed| is_close(agreed, &studio))
}

/// The file has what both sides last had.
fn is_settled(base: &PropertyBase, name: &str, file: &Value) -> bool {
    base.last.as_ref().and_then(|last| last.get(name)).is_some_and(|last| is_close(last, &short(file)))
}

fn reason(held: &[(String, bool)], forced: Option<&Forced>) -> String {
    let names: Vec<&str> = held.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(", ");
    if matches!(forced, Some(Forced::Pull)) {
        return format!(
            "{names}: properties are not pulled into files that are there; write Studio's values into the file"
        );
    }
    let both = if held.iter().all(|(_, settled)| *settled) { "not in the file" } else { "and the file has another" };
    format!(
        "{names}: changed in Studio, {both} (write Studio's value into the file, or push the file's with an override)"
    )
}
