//! What cannot be made, because something that is left alone is in its place.

use std::collections::{HashMap, HashSet};

use super::decision::Decision;
use crate::core::{
    ids::{NodeId, TempId},
    protocol::{Fact, FactKind, PlanOp, Whose},
};

/// Leave to somebody else whatever needs a place that an instance only Studio has keeps. Studio
/// would refuse it, and with it the whole plan.
pub(super) fn leave_alone(decisions: &mut [Decision], facts: &[Fact]) {
    let mut taken: HashMap<(NodeId, &str), Vec<&Fact>> = HashMap::new();
    for fact in facts.iter().filter(|fact| fact.kind == FactKind::Extra) {
        if let Some(place) = fact.parent.zip(fact.name.as_deref()) {
            taken.entry(place).or_default().push(fact);
        }
    }
    // What is not renamed after all keeps its place too.
    while leave_once(decisions, &taken) {}
}

fn leave_once(decisions: &mut [Decision], taken: &HashMap<(NodeId, &str), Vec<&Fact>>) -> bool {
    let leaving: HashSet<TempId> = decisions
        .iter()
        .filter_map(|decision| match &decision.op {
            Some(PlanOp::Remove { of: Whose::Extra { temp_id }, .. })
            | Some(PlanOp::Rename { temp_id: Some(temp_id), .. }) => Some(temp_id.clone()),
            _ => None,
        })
        .collect();
    let stays = |fact: &&&Fact| fact.temp_id.as_ref().is_none_or(|id| !leaving.contains(id));
    let mut any = false;
    for decision in decisions {
        let place = match &decision.op {
            Some(PlanOp::Add { parent, node }) => (*parent, node.name.as_str()),
            Some(PlanOp::Rename { parent, name, .. }) => (*parent, name.as_str()),
            _ => continue,
        };
        let Some(fact) = taken.get(&place).and_then(|facts| facts.iter().find(stays)) else { continue };
        let class = &fact.class_name;
        decision
            .drop_it(format!("a {class} of this name is in its place in Studio and is left alone: settle that first"));
        any = true;
    }
    any
}
