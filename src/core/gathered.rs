//! Differences that come in parts, because one frame cannot hold them all.

use std::collections::HashMap;

use super::{ids::RequestId, protocol::Fact};

/// How many are taken from one Studio at a time.
pub const MAX_FACTS: usize = 200_000;

/// What came so far: by request, or for the tree that was just sent (`None`).
#[derive(Debug, Default)]
pub struct Gathered(HashMap<Option<RequestId>, Parts>);

#[derive(Debug, Default)]
struct Parts {
    count: u32,
    facts: Vec<Fact>,
}

impl Gathered {
    /// A part has come. One that is not due, or too much, makes the whole incomplete.
    pub fn take_in(&mut self, request: Option<RequestId>, part: u32, facts: Vec<Fact>) {
        if part == 0 {
            self.0.insert(request.clone(), Parts::default());
        }
        let held: usize = self.0.values().map(|parts| parts.facts.len()).sum();
        let Some(parts) = self.0.get_mut(&request) else { return };
        if parts.count == part && held + facts.len() <= MAX_FACTS {
            parts.count += 1;
            parts.facts.extend(facts);
        } else {
            self.0.remove(&request);
        }
    }

    /// All of them, once the last have come with the number of parts before them. `None`: some
    /// are lacking.
    pub fn all(&mut self, request: Option<&RequestId>, parts: u32, last: Vec<Fact>) -> Option<Vec<Fact>> {
        let before = self.0.remove(&request.cloned()).unwrap_or_default();
        (before.count == parts).then(|| before.facts.into_iter().chain(last).collect())
    }

    /// Keep only what belongs to a request that is still waited for.
    pub fn retain(&mut self, is_open: impl Fn(&RequestId) -> bool) {
        self.0.retain(|request, _| request.as_ref().is_none_or(&is_open));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids::NodeId;

    fn facts(ids: std::ops::Range<u128>) -> Vec<Fact> {
        ids.map(|id| {
            let fact = serde_json::json!({"kind": "missing", "id": NodeId(id), "path": "x", "className": "Folder"});
            serde_json::from_value(fact).expect("a fact")
        })
        .collect()
    }

    #[test]
    fn parts_in_order_add_up() {
        let mut gathered = Gathered::default();
        let (one, two) = (RequestId::from("1"), RequestId::from("2"));
        gathered.take_in(Some(one.clone()), 0, facts(0..2));
        gathered.take_in(None, 0, facts(10..11));
        gathered.take_in(Some(one.clone()), 1, facts(2..3));
        assert_eq!(gathered.all(Some(&one), 2, facts(3..5)), Some(facts(0..5)));
        assert_eq!(gathered.all(None, 1, vec![]), Some(facts(10..11)));
        assert_eq!(gathered.all(Some(&two), 0, facts(0..1)), Some(facts(0..1)), "most come in one frame");
    }

    #[test]
    fn a_lacking_part_is_noticed() {
        let mut gathered = Gathered::default();
        assert_eq!(gathered.all(None, 1, facts(0..1)), None, "lost with another link");
        gathered.take_in(None, 1, facts(0..1));
        assert_eq!(gathered.all(None, 2, vec![]), None);
        gathered.take_in(None, 0, facts(0..1));
        gathered.take_in(None, 2, facts(0..1));
        assert_eq!(gathered.all(None, 3, vec![]), None);
        gathered.take_in(None, 0, facts(0..1));
        assert_eq!(gathered.all(None, 0, vec![]), None, "more came than were told");
    }

    #[test]
    fn what_is_held_is_bounded_and_goes_with_its_request() {
        let mut gathered = Gathered::default();
        let (one, two) = (RequestId::from("1"), RequestId::from("2"));
        let most = u128::try_from(MAX_FACTS).expect("a number");
        gathered.take_in(Some(one.clone()), 0, facts(0..most));
        gathered.take_in(Some(two.clone()), 0, facts(0..1));
        assert_eq!(gathered.all(Some(&two), 1, vec![]), None);
        gathered.retain(|request| *request != one);
        gathered.take_in(Some(two.clone()), 0, facts(0..1));
        assert_eq!(gathered.all(Some(&two), 1, vec![]), Some(facts(0..1)));
    }
}
