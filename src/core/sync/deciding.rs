//! From the differences that were found to what is done about each.

use std::collections::HashMap;

use super::{
    Run, blocked,
    decision::{Decision, NodeView},
    overrides::Overrides,
    properties,
    receipt::PatchType,
    removals, renames, scope, verdicts,
};
use crate::core::{
    agreement::Agreement,
    ids::NodeId,
    protocol::{Fact, FactKind},
};

impl Run {
    pub(super) fn overrides(&mut self) -> Overrides {
        Overrides::new(std::mem::take(&mut self.args.overrides), self.args.resolution.take())
    }

    pub(super) fn decide(&mut self, facts: Vec<Fact>, views: &HashMap<NodeId, NodeView>, agreement: &mut Agreement) {
        let only = self.args.resolution.as_ref().map(|resolution| resolution.id.clone());
        let mut overrides = self.overrides();
        let mut decisions = Vec::new();
        let mut extras = HashMap::new();
        for fact in facts.iter().filter(|fact| scope::is_meant(only.as_ref(), fact)) {
            let view = fact.id.and_then(|id| views.get(&id));
            let forced = match overrides.take(fact, view.and_then(|view| view.hash)) {
                Ok(forced) => forced,
                Err(reason) => {
                    let change = verdicts::change(fact, view, PatchType::Edit);
                    decisions.push(Decision::unresolved(change, reason));
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
    }
}
