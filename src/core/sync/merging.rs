//! The part of a run that needs Studio's texts: they are fetched a few at a time, then merged.

use super::{
    Decision, FETCHES, Run, Step,
    decision::{Needs, Then},
    receipt::{ChangeResult, SyncStatus},
    words,
};
use crate::core::{
    agreement::Agreement,
    error::ToolError,
    ids::{NodeId, OpId},
    merge::Hunk,
    protocol::PlanOp,
    text::TextHash,
};

/// Two texts to be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeJob {
    /// The text that both came from.
    pub base: TextHash,
    /// The file's.
    pub disk: String,
    /// Studio's.
    pub studio: String,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// One text.
    Clean(String),
    /// Both changed the same lines.
    Conflict(Vec<Hunk>),
    /// It was not tried, or not to its end.
    Not(String),
}

impl Run {
    /// Ask for the next texts, or go on if there are none left to wait for.
    pub(super) fn fetch_more(&mut self, agreement: &mut Agreement) -> Step {
        if let Some(step) = self.describe_next() {
            return step;
        }
        let room = FETCHES - self.fetching.min(FETCHES);
        let next: Vec<OpId> = (0..room).map_while(|_| self.to_fetch.pop_front()).collect();
        self.fetching += next.len();
        if self.fetching > 0 {
            return Step::Fetch(next);
        }
        let jobs: Vec<MergeJob> = self.decisions.iter().filter_map(job).collect();
        if jobs.is_empty() { self.ready(agreement) } else { Step::Merge(jobs) }
    }

    /// Studio alone has `texts`: they are fetched before they are overwritten.
    pub(super) fn fetch_lost(&mut self, texts: &[TextHash], agreement: &mut Agreement) -> Step {
        let mut is_over = true;
        for decision in self.decisions.iter_mut().filter(|decision| decision.is_resolved()) {
            let own = decision.change.studio_hash.filter(|hash| texts.contains(hash));
            let below = match &decision.op {
                Some(PlanOp::Remove { expect, .. }) => &expect.subtree[..],
                _ => &[],
            };
            if below.iter().any(|one| one.studio_hash.is_some_and(|hash| texts.contains(&hash))) {
                decision.drop_it("its text in Studio is kept nowhere else, so it is left alone");
                is_over = false;
            } else if let Some(hash) = own {
                is_over = false;
                match decision.op.as_ref().map(PlanOp::subject) {
                    Some(of) if decision.needs.is_none() => {
                        self.to_fetch.push_back(of.clone());
                        decision.needs = Some(Needs::text(of, hash));
                    }
                    _ => decision.drop_it("its text in Studio could not be kept, so it is left alone"),
                }
            } else if decision.change.disk_hash.is_some_and(|hash| texts.contains(&hash)) {
                decision.drop_it("its text on disk could not be kept, so it is left alone");
                is_over = false;
            }
        }
        if is_over {
            return self.end(SyncStatus::Error, words::CANNOT_BE_KEPT);
        }
        self.fetch_more(agreement)
    }

    /// Studio's text of what `of` names.
    pub fn fetched(&mut self, of: &OpId, text: Result<String, ToolError>, agreement: &mut Agreement) -> Step {
        let text = match self.note_read(of, text) {
            Ok(step) => return step,
            Err(text) => text,
        };
        self.fetching = self.fetching.saturating_sub(1);
        self.take_fetched(of, text);
        self.fetch_more(agreement)
    }

    pub(super) fn take_fetched(&mut self, of: &OpId, text: Result<String, ToolError>) {
        let wanting = self
            .decisions
            .iter_mut()
            .find(|decision| decision.is_resolved() && decision.needs.as_ref().is_some_and(|needs| needs.of == *of));
        if let Some(decision) = wanting {
            take_text(decision, text);
        }
    }

    /// The merges have ended, in the order of their jobs.
    pub fn merged(&mut self, merged: Vec<Merged>, agreement: &mut Agreement) -> Step {
        let mut merged = merged.into_iter();
        for decision in self.decisions.iter_mut().filter(|decision| job(decision).is_some()) {
            match merged.next() {
                Some(Merged::Clean(text)) => {
                    decision.set_text(&text);
                    if let Some(id) = decision.change.id {
                        agree_on(decision, id, &text);
                    }
                }
                Some(Merged::Conflict(hunks)) => {
                    decision.drop_it(format!(
                        "it was changed in Studio and in the file, both in the same lines ({} place(s)); \
                         settle it with `resolve`",
                        hunks.len()
                    ));
                    decision.change.show(hunks);
                }
                Some(Merged::Not(reason)) => decision.drop_it(format!(
                    "it was changed in Studio and in the file, and {reason}; settle it with `resolve`"
                )),
                None => decision.drop_it("the merge has no outcome"),
            }
        }
        self.ready(agreement)
    }
}

fn agree_on(decision: &mut Decision, id: NodeId, text: &str) {
    decision.then.push(Then::Agree(id, TextHash::of(text)));
    decision.needs = None;
}

fn take_text(decision: &mut Decision, text: Result<String, ToolError>) {
    let Some(needs) = decision.needs.clone() else { return };
    let text = match text {
        Ok(text) if TextHash::of(&text) == needs.hash => text,
        Ok(_) => {
            decision.drop_it("its text in Studio changed while it was being compared; sync again");
            decision.change.result = ChangeResult::MovedOn;
            return;
        }
        Err(error) => return decision.drop_it(format!("Studio's text could not be read: {}", error.message)),
    };
    decision.keeps.push(text.clone());
    if needs.merge.is_none() && decision.op.is_none() {
        decision.set_text(&text);
    }
}

/// The merge that a decision waits for.
fn job(decision: &Decision) -> Option<MergeJob> {
    let needs = decision.needs.as_ref().filter(|_| decision.is_resolved())?;
    let base = needs.merge?;
    let [disk, studio] = &decision.keeps[..] else { return None };
    Some(MergeJob { base, disk: disk.clone(), studio: studio.clone() })
}
