//! The part of a run in which each difference is decided about.

use std::collections::HashMap;

use super::{
    Decision, Run, Step,
    answered::{self, Wish},
    blocked,
    decision::NodeView,
    properties, removals, renames, scope, taken, undo, verdicts,
};
use crate::core::{
    agreement::Agreement,
    ids::NodeId,
    protocol::{Fact, FactKind, SyncMode},
};

impl Run {
    /// The nodes that differ, as the tree has them. Those that are gone are absent.
    pub fn looked(&mut self, views: HashMap<NodeId, NodeView>, agreement: &mut Agreement) -> Step {
        let reported = scope::reported_ids(&self.facts, &views);
        let (texts, properties) = (|id| reported.texts.contains(&id), |id| reported.properties.contains(&id));
        agreement.confirm_each(std::mem::take(&mut self.comparison), texts, properties);
        self.views = views;
        self.ask_history(agreement)
    }

    pub(super) fn decided(&mut self, agreement: &mut Agreement) -> Step {
        let (facts, views) = (std::mem::take(&mut self.facts), std::mem::take(&mut self.views));
        match &self.recalled {
            Some(recalled) => {
                let all = undo::decide((recalled, self.both_live()), &facts, &views, agreement);
                let (back, decisions): (Vec<_>, Vec<_>) = all.into_iter().partition(undo::is_back);
                back.iter().for_each(|decision| decision.agree(agreement));
                self.decisions = decisions;
            }
            None => self.decide(facts, &views, agreement),
        }
        if self.decisions.is_empty() {
            return self.nothing_to_do();
        }
        let wanted = |decision: &&Decision| {
            let merges = decision.needs.as_ref().is_some_and(|needs| needs.merge.is_some());
            merges || self.args.mode != SyncMode::Dryrun && !self.asks_first()
        };
        let needs = self.decisions.iter().filter(wanted).filter_map(|decision| decision.needs.as_ref());
        let (read, unread): (Vec<_>, Vec<_>) = needs.map(|needs| needs.of.clone()).partition(|of| self.has_read(of));
        self.to_fetch = unread.into();
        for of in read {
            self.take_read(&of);
        }
        self.fetch_more(agreement)
    }

    fn decide(&mut self, facts: Vec<Fact>, views: &HashMap<NodeId, NodeView>, agreement: &mut Agreement) {
        let only = self.args.resolution.as_ref().map(|resolution| resolution.id.clone());
        let mut overrides = answered::of_args(&mut self.args);
        let mut decisions = Vec::new();
        let mut extras = HashMap::new();
        let moved = taken::moved(&facts, &self.rules);
        for fact in facts.iter().filter(|fact| scope::is_meant(only.as_ref(), fact)) {
            let view = fact.id.and_then(|id| views.get(&id));
            if let Some(now) = fact.id.and_then(|id| moved.get(&id)) {
                let parent = now.parent.and_then(|id| views.get(&id));
                decisions.push(taken::follow(fact, view, now, parent, agreement));
                continue;
            }
            if fact.was.is_some_and(|id| moved.contains_key(&id)) {
                continue;
            }
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
        renames::find(&mut decisions, &extras, agreement);
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
