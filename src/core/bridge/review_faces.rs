//! What the faces of a review are shown, and what they ask.

use std::{sync::Arc, time::Duration};

use super::{
    Answer, Bridge, CallerId, Effect, Waiter,
    reviews::{Standing, count},
};
use crate::core::{
    calls::Moment,
    error::ToolError,
    ids::{NodeId, OpId, ReviewId},
    protocol::{Notice, RequestBody, ReviewFrame, ReviewLine},
    review::{Face, Review, ReviewAnswer, ReviewAsk, ReviewReply, ReviewState, Seen, name_of},
    studios::{LinkId, Studio, StudioKey},
    sync::{Change, Receipt},
};

/// How many changes a frame carries.
const LINES: usize = 1000;

impl Studio {
    /// Somebody at its screen can be asked.
    pub(super) fn shows_reviews(&self) -> bool {
        self.link.is_some() && self.hello.level1.as_ref().is_some_and(|hello| hello.reviews)
    }
}

impl Bridge {
    /// Show a review in Studio.
    pub(super) fn show(&mut self, key: StudioKey, review: &Review) {
        self.tell(key, Notice::Review(frame(review)));
    }

    /// The plugin is back: it is shown again what there is.
    pub(super) fn show_again(&mut self, key: StudioKey) {
        let waiting = self.reviews.waiting.values().filter(|waits| waits.key == key).map(|waits| &waits.review);
        let standing = self.reviews.standing.get(&key).map(|standing| &standing.review);
        let all: Vec<Arc<Review>> = waiting.chain(standing).cloned().collect();
        for review in all {
            self.show(key, &review);
        }
    }

    /// A run of the Studio has ended: what it left is what waits for a choice.
    pub(super) fn hold(&mut self, key: StudioKey, receipt: &Receipt, whole: bool, seen: &Seen) {
        let Some(studio) = self.studios.get_mut(key) else { return };
        studio.live.note(receipt, whole, seen);
        let (changes, seen) = studio.live.standing();
        let name = studio.name.clone();
        self.stand(key, name, changes, seen);
    }

    fn stand(&mut self, key: StudioKey, studio: String, changes: Vec<Change>, seen: Seen) {
        let before = self.reviews.standing.get(&key);
        if changes.is_empty() {
            if let Some(Standing { review, .. }) = self.reviews.standing.remove(&key) {
                let reason = "nothing is left to be chosen".to_owned();
                self.reviews.remember(key, Arc::clone(&review), &reason);
                self.tell(key, Notice::ReviewClosed { review_id: review.id.clone(), reason });
            }
            return;
        }
        if before.is_some_and(|before| before.review.changes == changes && before.review.seen == seen) {
            return;
        }
        let (id, busy) = match before {
            Some(before) => (before.review.id.clone(), before.busy),
            None => (ReviewId::from((self.new_id)().as_str()), false),
        };
        let review = Arc::new(Review { id, studio, standing: true, changes, seen });
        self.show(key, &review);
        self.reviews.standing.insert(key, Standing { review, busy });
    }

    /// The Studio has left: nobody can choose about it any more.
    pub(super) fn forget_standing(&mut self, key: StudioKey) {
        if let Some(Standing { review, .. }) = self.reviews.standing.remove(&key) {
            self.reviews.remember(key, review, "its Studio has left");
        }
    }

    /// What a Studio's status says of its reviews.
    pub(super) fn review_status(&self, key: StudioKey) -> Option<String> {
        if let Some(waits) = self.reviews.waiting.values().find(|waits| waits.key == key) {
            return Some(format!("a person is asked about {}", count(&waits.review)));
        }
        let standing = self.reviews.standing.get(&key)?;
        let wait = if standing.review.changes.len() == 1 { "waits" } else { "wait" };
        Some(format!("{} {wait} for a choice (`resolve`, `overrides`, or a person)", count(&standing.review)))
    }

    /// A face asks. Everything but a text is answered at once.
    pub(super) fn review_asked(&mut self, now: Moment, patience: Duration, caller: CallerId, ask: ReviewAsk) {
        let answer = match ask {
            ReviewAsk::List => {
                self.reviews.watched = Some(now);
                Answer::Reviews(self.review_states(now))
            }
            ReviewAsk::One(id) => {
                let found = self.review_states(now).into_iter().find(|state| state.id == id);
                Answer::Reviews(found.into_iter().collect())
            }
            ReviewAsk::Answer { review, by, answer } => Answer::Reviewed(self.answer_review(now, &review, by, &answer)),
            ReviewAsk::Withdraw(review) => {
                self.agent_withdraws(now, &review);
                Answer::Reviewed(ReviewReply::Taken)
            }
            ReviewAsk::Text { review, id } => return self.ask_text(now, patience, caller, &review, id),
        };
        self.settle(caller, Ok(answer));
    }

    /// Studio's text of a change.
    fn ask_text(&mut self, now: Moment, patience: Duration, caller: CallerId, review: &ReviewId, of: OpId) {
        let Some((key, _)) = self.review_of(review).filter(|(_, review)| shows(review, &of)) else {
            let error = ToolError::bad_arguments(format!("no review {review} shows a change {of}"));
            return self.settle(caller, Err(error));
        };
        if self.studios.get(key).is_none_or(|studio| studio.link.is_none()) {
            let error = ToolError::reconnecting(&self.studio_name(key));
            return self.settle(caller, Err(error));
        }
        let (id, temp_id) = match of {
            OpId::Node(id) => (Some(id), None),
            OpId::Temp(id) => (None, Some(id)),
        };
        let body = RequestBody::GetScript { id, temp_id, from_draft: None };
        self.ask(now, now + patience, key, Waiter::Caller(caller), body);
    }

    /// The person at the screen has answered.
    pub(super) fn studio_answered(&mut self, now: Moment, key: StudioKey, id: ReviewId, answer: &ReviewAnswer) {
        let is_its_own = self.review_of(&id).is_none_or(|(of, _)| of == key);
        let reply = if is_its_own { self.answer_review(now, &id, Face::Studio, answer) } else { ReviewReply::Unknown };
        match reply {
            ReviewReply::Taken => {}
            ReviewReply::Wrong(text) => self.tell(key, Notice::ReviewOutcome { review_id: id, ok: false, text }),
            ReviewReply::Over(reason) => self.tell(key, Notice::ReviewClosed { review_id: id, reason }),
            ReviewReply::Unknown => {
                let reason = "it is over".to_owned();
                self.tell(key, Notice::ReviewClosed { review_id: id, reason });
            }
        }
    }

    /// The window wants to show the file's side of a change.
    pub(super) fn text_wanted(&mut self, link: LinkId, key: StudioKey, review: ReviewId, id: OpId) {
        let wanted = self.review_of(&review).filter(|(of, review)| *of == key && shows(review, &id));
        match (wanted, &id) {
            (Some(_), OpId::Node(node)) => {
                let node = *node;
                self.effects.push(Effect::ReadFile { link, review, id: node });
            }
            _ => self.tell(key, Notice::ReviewText { review_id: review, id, source: None }),
        }
    }

    pub(super) fn file_read(&mut self, link: LinkId, review: ReviewId, id: NodeId, source: Option<String>) {
        let key = self.studios.iter().find(|studio| studio.link == Some(link)).map(|studio| studio.key);
        if let Some(key) = key {
            self.tell(key, Notice::ReviewText { review_id: review, id: id.into(), source });
        }
    }

    fn review_of(&self, id: &ReviewId) -> Option<(StudioKey, &Review)> {
        let waiting = self.reviews.waiting.get(id).map(|waits| (waits.key, &*waits.review));
        waiting.or_else(|| {
            let (key, standing) = self.reviews.standing.iter().find(|(_, standing)| standing.review.id == *id)?;
            Some((*key, &*standing.review))
        })
    }

    fn review_states(&self, now: Moment) -> Vec<ReviewState> {
        let state = |review: &Review, state: &str| ReviewState {
            id: review.id.clone(),
            studio: review.studio.clone(),
            standing: review.standing,
            state: state.to_owned(),
            changes: review.changes.clone(),
            seconds_left: None,
            why: None,
            ok: None,
            outcome: None,
        };
        let waiting = self.reviews.waiting.values().map(|waits| ReviewState {
            seconds_left: Some(waits.until.saturating_sub(now).as_secs()),
            ..state(&waits.review, "waiting")
        });
        let standing = self.reviews.standing.values();
        let standing = standing.map(|one| state(&one.review, if one.busy { "running" } else { "waiting" }));
        let over = self.reviews.over.iter().map(|over| ReviewState {
            why: Some(over.why.clone()),
            ok: over.outcome.as_ref().map(|(ok, _)| *ok),
            outcome: over.outcome.as_ref().map(|(_, text)| text.clone()),
            ..state(&over.review, "over")
        });
        waiting.chain(standing).chain(over).collect()
    }
}

fn shows(review: &Review, id: &OpId) -> bool {
    review.changes.iter().any(|change| name_of(change).as_ref() == Some(id))
}

/// A review as the plugin gets it.
fn frame(review: &Review) -> ReviewFrame {
    let lines = review.changes.iter().filter_map(line);
    let changes: Vec<ReviewLine> = lines.take(LINES).collect();
    let more = review.changes.len() - changes.len();
    ReviewFrame { review_id: review.id.clone(), standing: review.standing, changes, more }
}

fn line(change: &Change) -> Option<ReviewLine> {
    Some(ReviewLine {
        id: name_of(change)?,
        path: change.path.clone(),
        fs_path: change.fs_path.clone(),
        class_name: change.class_name.clone(),
        direction: format!("{:?}", change.direction).to_lowercase(),
        patch_type: format!("{:?}", change.patch_type),
        disk_hash: change.disk_hash,
        studio_hash: change.studio_hash,
        reason: change.reason.clone(),
    })
}
