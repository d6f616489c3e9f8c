//! Questions of syncs in the model: who is asked, and answers from anywhere at any time.

use super::{super::*, world::World};
use crate::core::review::{ChangeChoice, Choice, Face, Review, ReviewAnswer, ReviewAsk};

pub(super) const CHOICES: [Choice; 4] = [Choice::Accept, Choice::Push, Choice::Pull, Choice::Skip];

impl World {
    /// A caller's person is asked.
    pub(super) fn offer(&mut self, caller: CallerId, review: &Review) {
        assert!(self.waiting.contains_key(&caller), "a question after the end");
        assert!(!self.offered.contains(&review.id), "asked twice");
        self.offered.push(review.id.clone());
    }

    /// One of the reviews that were ever offered is answered, or put away, by somebody else.
    pub(super) fn answer_elsewhere(&mut self, which: usize, choice: usize) {
        let Some(review) = self.offered.iter().rev().nth(which).cloned() else { return };
        let one = ChangeChoice { id: NodeId(77).into(), choice: Choice::Push };
        let ask = match choice {
            0..4 => {
                let answer = ReviewAnswer { choices: Vec::new(), all: Some(CHOICES[choice]) };
                ReviewAsk::Answer { review, by: Face::Page, answer }
            }
            4 => {
                let answer = ReviewAnswer { choices: vec![one], all: None };
                ReviewAsk::Answer { review, by: Face::Agent, answer }
            }
            _ => ReviewAsk::Withdraw(review),
        };
        self.rig.callers += 1;
        let caller = CallerId(self.rig.callers);
        self.waiting.insert(caller, self.rig.now + seconds(1));
        let call = Call { studio: None, patience: seconds(1), ask: Ask::Review(ask), operation: None };
        self.event(Event::Call { caller, call });
        assert!(!self.waiting.contains_key(&caller), "an answer is settled at once");
    }
}
