//! Reviews: who is asked, whose answer counts, and what follows it.
//!
//! ```text
//! Step::Ask -> open_review -> every face that can ask -> answer_review -> the same call's next run
//! a run leaves something -> the Studio's standing review -> answer_review -> a run of its own
//! ```
//!
//! A run that asks is over, so it holds no turn and no text while a person thinks. What waits is the
//! caller's entry in the ledger, which the next run takes over.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use super::{
    Answer, Bridge, Effect, Waiter, Waiting, What,
    operations::Ran,
    runs::{ActiveRun, Stage},
};
use crate::core::{
    calls::Moment,
    ids::{RequestId, ReviewId, RunId},
    protocol::{Notice, ServerFrame},
    review::{Chosen, Face, Review, ReviewAnswer, ReviewReply},
    studios::StudioKey,
    sync::{ChangeResult, Receipt, Run, SyncArgs},
};

/// A page that asked for the reviews this recently shows them to somebody.
const WATCHED: Duration = Duration::from_secs(60);
/// How much of the caller's patience is kept for the run that follows an answer.
const RESERVE: Duration = Duration::from_secs(10);
/// How long the run may take that follows an answer which no caller waits for.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many reviews that are over are remembered.
const REMEMBERED: usize = 32;

/// All reviews.
#[derive(Debug, Default)]
pub(super) struct Reviews {
    pub(super) waiting: BTreeMap<ReviewId, Waits>,
    pub(super) standing: BTreeMap<StudioKey, Standing>,
    pub(super) over: VecDeque<Over>,
    /// Answers that are being carried out, by the entries of their runs.
    answered: BTreeMap<RequestId, ReviewId>,
    /// When a page asked for the reviews last.
    pub(super) watched: Option<Moment>,
}

/// A review that a caller waits for.
#[derive(Debug)]
pub(super) struct Waits {
    pub(super) review: Arc<Review>,
    pub(super) key: StudioKey,
    entry: RequestId,
    /// Until when an answer counts.
    pub(super) until: Moment,
    /// Until when the caller waits.
    deadline: Moment,
    /// The caller can show a question, and has not put it away.
    agent: bool,
    again: SyncArgs,
    receipt: Receipt,
}

/// What earlier runs have left, as it was told last.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) review: Arc<Review>,
    /// An answer is being carried out.
    pub(super) busy: bool,
}

/// A review that is over.
#[derive(Debug)]
pub(super) struct Over {
    pub(super) review: Arc<Review>,
    pub(super) key: StudioKey,
    /// Who answered, or why nobody did.
    pub(super) why: String,
    /// What came of the answer.
    pub(super) outcome: Option<(bool, String)>,
}

impl Reviews {
    /// When the next one has waited too long.
    pub fn next_deadline(&self) -> Option<Moment> {
        self.waiting.values().map(|waits| waits.until).min()
    }

    #[cfg(test)]
    pub fn is_settled(&self) -> bool {
        self.waiting.is_empty() && self.answered.is_empty()
    }

    /// It is over.
    pub fn remember(&mut self, key: StudioKey, review: Arc<Review>, why: &str) {
        self.over.push_front(Over { review, key, why: why.to_owned(), outcome: None });
        self.over.truncate(REMEMBERED);
    }
}

impl Bridge {
    /// A run has found something and asks. If nobody can be asked, its receipt is the answer.
    pub(super) fn open_review(&mut self, now: Moment, active: ActiveRun, receipt: Receipt, again: SyncArgs) {
        let ActiveRun { run, studio: key, deadline, entry: Some(entry), .. } = active else { return };
        let review = Arc::new(Review {
            id: ReviewId::from((self.new_id)().as_str()),
            studio: self.studio_name(key),
            standing: false,
            changes: receipt.changes.clone(),
            seen: run.seen().clone(),
        });
        let until = deadline - RESERVE.min(deadline.saturating_sub(now) / 4);
        let agent = again.asks;
        let waits = Waits { review: Arc::clone(&review), key, entry, until, deadline, agent, again, receipt };
        let places = self.places_to_ask(now, &waits);
        if places.is_empty() {
            return self.reject(waits, None);
        }
        let Some((waiting, _)) = self.calls.get(&waits.entry) else { return };
        let callers = self.callers(&waiting.who);
        if let Some(waiting) = self.calls.get_mut(&waits.entry) {
            waiting.what = What::Review(review.id.clone());
        }
        let message = format!("a person is asked {} ({})", places.join(" and "), count(&review));
        for caller in callers {
            self.effects.push(Effect::Progress { caller, progress: 0.0, total: None, message: Some(message.clone()) });
            self.effects.push(Effect::Offer { caller, review: Arc::clone(&review) });
        }
        self.note(format!("{message}: {}", review.studio));
        self.reviews.waiting.insert(review.id.clone(), waits);
        self.show(key, &review);
    }

    /// Where somebody can be asked.
    fn places_to_ask(&self, now: Moment, waits: &Waits) -> Vec<&'static str> {
        let studio = self.studios.get(waits.key).is_some_and(|studio| studio.shows_reviews());
        let page = self.reviews.watched.is_some_and(|at| now.saturating_sub(at) <= WATCHED);
        let faces = [(studio, Face::Studio), (waits.agent, Face::Agent), (page, Face::Page)];
        faces.into_iter().filter(|(can, _)| *can).map(|(_, face)| face.place()).collect()
    }

    /// Nobody answers any more, or somebody declined: nothing is done.
    fn reject(&mut self, waits: Waits, message: Option<String>) {
        let Waits { key, entry, again, mut receipt, review, .. } = waits;
        receipt.message = message.or(receipt.message);
        self.hold(key, &receipt, again.paths.is_none(), &review.seen);
        if let Some(Waiting { who, .. }) = self.calls.settle(&entry) {
            self.finish(who, Ok(Answer::Receipt(receipt)), Ran::Known);
        }
    }

    /// A person has answered.
    pub(super) fn answer_review(&mut self, now: Moment, id: &ReviewId, by: Face, answer: &ReviewAnswer) -> ReviewReply {
        let found = self.reviews.waiting.get(id).map(|waits| (Arc::clone(&waits.review), waits.key, false));
        let standing = || {
            let (key, standing) = self.reviews.standing.iter().find(|(_, standing)| standing.review.id == *id)?;
            Some((Arc::clone(&standing.review), *key, standing.busy))
        };
        let Some((review, key, busy)) = found.or_else(standing) else { return self.late_answer(id) };
        if busy {
            return ReviewReply::Over("an earlier answer is being carried out".to_owned());
        }
        let chosen = match review.chosen(answer) {
            Ok(chosen) => chosen,
            Err(problem) => return ReviewReply::Wrong(problem),
        };
        match self.studios.get(key).map(|studio| studio.link.is_some()) {
            None => return ReviewReply::Over("its Studio has left".to_owned()),
            Some(false) => {
                return ReviewReply::Over("the link to its Studio is lost; answer when it is back".to_owned());
            }
            Some(true) => {}
        }
        if review.standing {
            self.carry_out_standing(now, key, &review, chosen);
        } else if let Some(waits) = self.reviews.waiting.remove(id) {
            self.carry_out(waits, by, chosen);
        }
        ReviewReply::Taken
    }

    fn late_answer(&self, id: &ReviewId) -> ReviewReply {
        let over = self.reviews.over.iter().find(|over| over.review.id == *id);
        over.map_or(ReviewReply::Unknown, |over| ReviewReply::Over(over.why.clone()))
    }

    fn carry_out(&mut self, waits: Waits, by: Face, chosen: Chosen) {
        if chosen.is_nothing() {
            let why = format!("declined {}", by.place());
            self.over(&waits, &why);
            return self.reject(waits, Some(format!("{why}, so nothing was changed")));
        }
        self.over(&waits, &format!("answered {}", by.place()));
        let Waits { review, key, entry, deadline, again, .. } = waits;
        self.reviews.answered.insert(entry.clone(), review.id.clone());
        self.start_answered(deadline, key, entry, again.answered(chosen, review.seen.clone()));
    }

    fn carry_out_standing(&mut self, now: Moment, key: StudioKey, review: &Review, chosen: Chosen) {
        if chosen.is_nothing() {
            return self.outcome(key, &review.id, true, "nothing was changed");
        }
        if let Some(standing) = self.reviews.standing.get_mut(&key) {
            standing.busy = true;
        }
        let (entry, deadline) = ((self.new_id)(), now + PATIENCE);
        self.reviews.answered.insert(entry.clone(), review.id.clone());
        let args = SyncArgs::chosen(chosen, review.seen.clone());
        self.start_run(deadline, key, entry, Waiter::Review(review.id.clone()), args);
    }

    /// The next run of a call whose question was answered.
    fn start_answered(&mut self, deadline: Moment, studio: StudioKey, entry: RequestId, args: SyncArgs) {
        let alone = self.studios.get(studio).is_some_and(|studio| studio.is_alone());
        let (run, first) = Run::start(RunId::from((self.new_id)().as_str()), args, alone);
        let id = run.id().clone();
        let Some(waiting) = self.calls.get_mut(&entry) else { return };
        waiting.what = What::Run(id.clone());
        let stage = Stage::Waits(first);
        let active = ActiveRun { stage, entry: Some(entry), ..ActiveRun::unasked(run, studio, deadline) };
        self.runs.insert(id.clone(), active);
        self.run_comes(&id);
    }

    /// The review no longer counts; all faces put it away.
    fn over(&mut self, waits: &Waits, why: &str) {
        let (key, id) = (waits.key, waits.review.id.clone());
        let callers = self.calls.get(&waits.entry).map(|(waiting, _)| self.callers(&waiting.who)).unwrap_or_default();
        self.effects.extend(callers.into_iter().map(|caller| Effect::Withdraw { caller }));
        self.tell(key, Notice::ReviewClosed { review_id: id, reason: why.to_owned() });
        self.reviews.remember(key, Arc::clone(&waits.review), why);
    }

    /// Its caller no longer waits, or its Studio has left.
    pub(super) fn drop_review(&mut self, id: &ReviewId, why: &str) {
        if let Some(waits) = self.reviews.waiting.remove(id) {
            self.over(&waits, why);
        }
    }

    /// The agent's client has put the question away without an answer.
    pub(super) fn agent_withdraws(&mut self, now: Moment, id: &ReviewId) {
        let Some(waits) = self.reviews.waiting.get_mut(id) else { return };
        waits.agent = false;
        let Some(waits) = self.reviews.waiting.get(id) else { return };
        if self.places_to_ask(now, waits).is_empty() {
            let Some(waits) = self.reviews.waiting.remove(id) else { return };
            let why = "put away in the agent's client";
            self.over(&waits, why);
            self.reject(waits, Some(format!("the question was {why}, so nothing was changed")));
        }
    }

    /// The reviews that nobody has answered in time.
    pub(super) fn expire_reviews(&mut self, now: Moment) {
        let late = |waits: &Waits| waits.until <= now;
        let ids: Vec<ReviewId> =
            self.reviews.waiting.iter().filter(|(_, waits)| late(waits)).map(|(id, _)| id.clone()).collect();
        for id in ids {
            let Some(waits) = self.reviews.waiting.remove(&id) else { continue };
            self.over(&waits, "nobody answered in time");
            self.reject(waits, Some("nobody answered in time, so nothing was changed".to_owned()));
        }
    }

    /// A run has ended; if a person had chosen what it did, they are told.
    pub(super) fn note_answered(&mut self, entry: Option<&RequestId>, receipt: &Receipt) {
        let Some(id) = entry.and_then(|entry| self.reviews.answered.remove(entry)) else { return };
        self.answer_ended(&id, receipt.failed == 0 && receipt.rejected.is_empty(), &in_words(receipt));
    }

    /// Runs of answers that have ended without a receipt.
    pub(super) fn end_answers(&mut self) {
        let (calls, runs) = (&self.calls, &self.runs);
        let goes_on = |entry: &RequestId| {
            calls.get(entry).is_some() || runs.values().any(|active| active.entry.as_ref() == Some(entry))
        };
        let lost: Vec<RequestId> = self.reviews.answered.keys().filter(|entry| !goes_on(entry)).cloned().collect();
        for entry in lost {
            let Some(id) = self.reviews.answered.remove(&entry) else { continue };
            self.answer_ended(&id, false, "it did not get to its end; sync again to see how things are");
        }
    }

    fn answer_ended(&mut self, id: &ReviewId, ok: bool, text: &str) {
        let standing = self.reviews.standing.iter_mut().find(|(_, standing)| standing.review.id == *id);
        let key = standing.map(|(key, standing)| {
            standing.busy = false;
            *key
        });
        let over = self.reviews.over.iter().find(|over| over.review.id == *id).map(|over| over.key);
        if let Some(key) = key.or(over) {
            self.outcome(key, id, ok, text);
        }
    }

    fn outcome(&mut self, key: StudioKey, id: &ReviewId, ok: bool, text: &str) {
        if let Some(over) = self.reviews.over.iter_mut().find(|over| over.review.id == *id) {
            over.outcome = Some((ok, text.to_owned()));
        }
        self.tell(key, Notice::ReviewOutcome { review_id: id.clone(), ok, text: text.to_owned() });
    }

    /// Say `notice` to a Studio that shows reviews.
    pub(super) fn tell(&mut self, key: StudioKey, notice: Notice) {
        let studio = self.studios.get(key).filter(|studio| studio.shows_reviews());
        if let Some(link) = studio.and_then(|studio| studio.link) {
            self.send(link, ServerFrame::Notice(notice));
        }
    }
}

/// `3 changes`.
pub(super) fn count(review: &Review) -> String {
    match review.changes.len() {
        1 => "1 change".to_owned(),
        more => format!("{more} changes"),
    }
}

/// What a run did, in a line.
fn in_words(receipt: &Receipt) -> String {
    let counts = [
        (receipt.pushed, "pushed"),
        (receipt.pulled, "pulled"),
        (receipt.merged, "merged"),
        (receipt.removed, "removed"),
        (receipt.renamed, "renamed"),
        (receipt.unresolved, "left alone"),
        (receipt.failed, "failed"),
    ];
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let reasons = receipt.rejected.iter().map(|rejected| rejected.reason.clone()).take(1);
    let left = receipt.changes.iter().filter(|change| change.result != ChangeResult::Done);
    let reasons =
        reasons.chain(left.filter_map(|change| Some(format!("{}: {}", change.path, change.reason.as_ref()?))));
    let reasons: Vec<String> = reasons.take(3).collect();
    let counts = if counts.is_empty() { "nothing was changed".to_owned() } else { counts.join(", ") };
    if reasons.is_empty() { counts } else { format!("{counts} ({})", reasons.join("; ")) }
}
