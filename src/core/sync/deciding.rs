//! From the differences that were found to what is done about each.

use std::collections::HashMap;

use super::{
    Run,
    answered::{self, Wish},
    blocked,
    decision::{Decision, NodeView},
    properties, removals, renames, scope, verdicts,
};
use crate::core::{
    agreement::Agreement,
    ids::NodeId,
    protocol::{Fact, FactKind},
};

impl Run {
    pub(super) fn decide(&mut self, facts: Vec<Fact>, views: &HashMap<NodeId, NodeView>, agreement: &mut Agreement) {
        let only = self.args.resolution.as_ref().map(|resolution| resolution.id.clone());
        let mut overrides = answered::of_args(&mut self.args);
        let mut decisions = Vec::new();
        let mut extras = HashMap::new();
        for fact in facts.iter().filter(|fact| scope::is_meant(only.as_ref(), fact)) {
            let view = fact.id.and_then(|id| views.get(&id));
            let forced = match self.wish(&mut overrides, fact, view) {
                Wish::None => None,
                Wish::Forced(forced) => Some(forced),
                Wish::Leave(left) => {
                    decisions.extend(left);
                    continue;
                }
            };
            if fact.kind != FactKind::Extra {
                let of_properties = properties::about(fact, view, agreement, forced.as_ref());
                decisions.extend(verdicts::about_node(fact, view, agreement, &self.rules, forced));
                decisions.extend(of_properties);
                continue;
            }
            let parent = fact.parent.and_then(|id| views.get(&id));
            let (mut decision, extra) = removals::about_extra(fact, parent, agreement, &self.rules, forced);
            decision.change.fs_path = scope::lost_file(fact, parent);
            extras.extend(extra.map(|extra| (decisions.len(), extra)));
            decisions.push(decision);
        }
        renames::find(&mut decisions, &extras);
        decisions.iter_mut().for_each(Decision::check_size);
        removals::ask_for_many(&mut decisions, &self.rules);
        decisions.retain(|decision| scope::is_in(self.args.paths.as_deref(), &decision.change));
        blocked::leave_alone(&mut decisions, &facts);
        // There is no such file; where it would be is known for the scope alone.
        decisions
            .iter_mut()
            .map(|decision| &mut decision.change)
            .filter(|change| change.id.is_none())
            .for_each(|change| change.fs_path = None);
        self.decisions = decisions;
        self.rejected = overrides.finish();
        self.rejected.extend(answered::settled_meanwhile(self.args.chosen.as_deref(), &facts));
        self.hold_to_proposals();
        self.note_seen(&facts, views);
    }
}
