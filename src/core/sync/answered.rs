//! The part of a run that a person has a say in: it ends with a question, and the run that follows
//! the answer decides what was chosen, as long as it is what was shown.

use std::collections::{HashMap, HashSet};

use super::{
    Decision, Forced, NodeView, Override, Run, Step, SyncArgs,
    overrides::Overrides,
    receipt::{Direction, PatchType, Rejected, SyncStatus},
    verdicts, words,
};
use crate::core::{
    ids::{NodeId, OpId},
    protocol::{Fact, FactKind, SyncMode},
    review::{Choice, Chosen, Pick, Seen, digest, name_of},
};

/// What is wanted of one difference.
pub(super) enum Wish {
    /// Nothing; the table decides.
    None,
    /// This side wins.
    Forced(Forced),
    /// It is left alone, and the lines of the receipt are these.
    Leave(Vec<Decision>),
}

impl Run {
    /// What was seen of the differences that may be asked about.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// It looks, and a person decides what comes of it.
    pub(super) fn asks_first(&self) -> bool {
        self.args.mode == SyncMode::Manual && self.args.chosen.is_none()
    }

    /// Ask a person. The receipt is the answer of a run that nobody could be asked for.
    pub(super) fn ask(&mut self) -> Step {
        let again = Box::new(self.args.clone());
        match self.end(SyncStatus::Rejected, words::NOBODY_ASKED) {
            Step::Done(receipt) => Step::Ask { receipt, again },
            step => step,
        }
    }

    /// Note what was seen of all differences that may have to be shown.
    pub(super) fn note_seen(&mut self, facts: &[Fact], views: &HashMap<NodeId, NodeView>) {
        let asks = self.asks_first();
        let unresolved = self.decisions.iter().filter(|decision| !decision.is_resolved());
        let unresolved: HashSet<OpId> = unresolved.filter_map(|decision| name_of(&decision.change)).collect();
        let seen = facts.iter().filter_map(|fact| {
            let name = fact.id.map(OpId::from).or_else(|| fact.temp_id.clone().map(OpId::from))?;
            // A text that differs may still turn out to be in conflict; its digest costs little.
            let wanted = asks || fact.kind == FactKind::Differs || unresolved.contains(&name);
            wanted.then(|| (name, digest(fact, fact.id.and_then(|id| views.get(&id)))))
        });
        self.seen = seen.collect();
    }

    /// What is wanted of `fact`: by the person who was asked, else by the caller.
    pub(super) fn wish(&self, overrides: &mut Overrides, fact: &Fact, view: Option<&NodeView>) -> Wish {
        let leave = |reason: &str| {
            let change = verdicts::change(fact, view, PatchType::Edit);
            Wish::Leave(vec![Decision::unresolved(change, reason)])
        };
        let asked = overrides.take(fact, view.and_then(|view| view.hash));
        let pick = match self.args.chosen.as_deref() {
            None => None,
            Some(chosen) => match chosen.of(fact) {
                Some(_) if !self.was_shown(fact, view) => return leave(words::CHANGED_SINCE),
                Some(pick) => Some(pick),
                None if chosen.is_only() => return Wish::Leave(Vec::new()),
                None => return leave(words::NOT_SHOWN),
            },
        };
        match (pick.map(|pick| pick.choice), asked) {
            (Some(Choice::Skip), _) => left_alone(pick.expect("it has a choice"), fact),
            (Some(Choice::Push), _) => Wish::Forced(Forced::Push),
            (Some(Choice::Pull), _) => Wish::Forced(Forced::Pull),
            (_, Ok(None)) => Wish::None,
            (_, Ok(Some(forced))) => Wish::Forced(forced),
            (_, Err(reason)) => leave(&reason),
        }
    }

    fn was_shown(&self, fact: &Fact, view: Option<&NodeView>) -> bool {
        let name = fact.id.map(OpId::from).or_else(|| fact.temp_id.clone().map(OpId::from));
        let shown = name.and_then(|name| self.args.shown.as_ref()?.get(&name).copied());
        shown == Some(digest(fact, view))
    }

    /// What was accepted is what was proposed, or is not done.
    pub(super) fn hold_to_proposals(&mut self) {
        let Some(chosen) = self.args.chosen.clone() else { return };
        for decision in self.decisions.iter_mut().filter(|decision| decision.is_resolved()) {
            let Some(pick) = chosen.of_change(&decision.change) else { continue };
            let now = (decision.change.direction, decision.change.patch_type);
            let shown = pick.shown.iter().any(|shown| now == (shown.direction, shown.patch_type));
            if pick.choice == Choice::Accept && !shown {
                decision.drop_it(words::CHANGED_SINCE);
            }
        }
    }
}

/// The lines of what a person wants to be left alone, as they were shown. A rename is one line and
/// two differences, and a node that differs in its text and in its properties is the other way round.
fn left_alone(pick: &Pick, fact: &Fact) -> Wish {
    let lines = pick.shown.iter().filter(|shown| shown.id.is_none() || fact.kind != FactKind::Extra);
    let left = lines.map(|shown| {
        let reason = match shown.direction {
            Direction::Unresolved => shown.reason.clone().unwrap_or_default(),
            _ => words::SKIPPED.to_owned(),
        };
        Decision::unresolved(shown.clone(), reason)
    });
    Wish::Leave(left.collect())
}

/// What was chosen and does not differ any more.
pub(super) fn settled_meanwhile(chosen: Option<&Chosen>, facts: &[Fact]) -> Vec<Rejected> {
    let gone = chosen.map(|chosen| chosen.without(facts)).unwrap_or_default();
    let reason = || "both sides are the same by now; nothing was left to be done".to_owned();
    gone.into_iter().map(|id| Rejected { id: id.to_string(), reason: reason() }).collect()
}

impl SyncArgs {
    /// The same again, with what a person chose of what was shown.
    pub fn answered(self, chosen: Chosen, shown: Seen) -> Self {
        Self { chosen: Some(chosen.into()), shown: Some(shown.into()), ..self }
    }

    /// Carry out what a person chose of what earlier runs had left.
    pub fn chosen(chosen: Chosen, shown: Seen) -> Self {
        let who = Some("a person who was asked".to_owned());
        Self { who, ..Self::default() }.answered(chosen, shown)
    }
}

/// The overrides that a run begins with.
pub(super) fn of_args(args: &mut SyncArgs) -> Overrides {
    let overrides: Vec<Override> = args.overrides.clone();
    Overrides::new(overrides, args.resolution.take())
}
