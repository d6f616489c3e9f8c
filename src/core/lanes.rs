//! Whose turn it is: in each Studio, calls that change something run one at a time, first come
//! first served. A lane is held until the plugin is done with the call, whoever still waits for it.

use std::collections::{BTreeMap, VecDeque};

use super::{calls::Moment, ids::RequestId, studios::StudioKey};

/// How many calls are remembered that ran in a Studio when it was given up.
const LOST: usize = 64;

/// The lanes of all Studios.
#[derive(Debug, Default)]
pub struct Lanes {
    lanes: BTreeMap<StudioKey, Lane>,
    lost: VecDeque<Holder>,
}

#[derive(Debug)]
struct Lane {
    holder: Holder,
    queue: VecDeque<Place>,
}

/// A place in the queue.
#[derive(Debug)]
struct Place {
    request: RequestId,
    tool: String,
}

/// The call that holds a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its request.
    pub request: RequestId,
    /// What it runs.
    pub tool: String,
    /// Since when.
    pub since: Moment,
    /// Its number, once it was sent.
    pub n: Option<u64>,
    /// When the lane is free again although nobody knows how the call ended; `None`: never.
    pub until: Option<Moment>,
}

impl Holder {
    fn new(Place { request, tool }: Place, since: Moment) -> Self {
        Self { request, tool, since, n: None, until: None }
    }
}

impl Lanes {
    /// A call comes. `true`: it is its turn.
    pub fn enter(&mut self, studio: StudioKey, request: RequestId, tool: &str, now: Moment) -> bool {
        let place = Place { request, tool: tool.to_owned() };
        match self.lanes.get_mut(&studio) {
            Some(lane) => {
                lane.queue.push_back(place);
                false
            }
            None => {
                self.lanes.insert(studio, Lane { holder: Holder::new(place, now), queue: VecDeque::new() });
                true
            }
        }
    }

    /// A Studio runs something that an earlier server asked for, which may be a change.
    pub fn occupied(&mut self, studio: StudioKey, request: &RequestId, now: Moment) {
        let is_it =
            |lane: &Lane| lane.holder.request == *request || lane.queue.iter().any(|place| place.request == *request);
        if !self.lanes.get(&studio).is_some_and(is_it) {
            self.enter(studio, request.clone(), "a call of an earlier server", now);
        }
    }

    /// A call is over. If it held the lane: the one whose turn it is now, if any.
    pub fn leave(&mut self, studio: StudioKey, request: &RequestId, now: Moment) -> Option<RequestId> {
        let lane = self.lanes.get_mut(&studio)?;
        if lane.holder.request != *request {
            lane.queue.retain(|place| place.request != *request);
            return None;
        }
        let Some(next) = lane.queue.pop_front() else {
            self.lanes.remove(&studio);
            return None;
        };
        lane.holder = Holder::new(next, now);
        Some(lane.holder.request.clone())
    }

    /// A call that waits no longer does. Whoever holds the lane keeps it.
    pub fn give_up(&mut self, studio: StudioKey, request: &RequestId) {
        if let Some(lane) = self.lanes.get_mut(&studio) {
            lane.queue.retain(|place| place.request != *request);
        }
    }

    /// The holder was sent as number `n`, and holds the lane at most `until` then.
    pub fn sent(&mut self, studio: StudioKey, request: &RequestId, n: Option<u64>, until: Option<Moment>) {
        if let Some(lane) = self.lanes.get_mut(&studio).filter(|lane| lane.holder.request == *request) {
            lane.holder.n = n;
            lane.holder.until = until;
        }
    }

    /// When the next lane is free whatever its holder does.
    pub fn next_end(&self) -> Option<Moment> {
        self.lanes.values().filter_map(|lane| lane.holder.until).min()
    }

    /// Whoever holds a lane longer than it may.
    pub fn overdue(&self, now: Moment) -> Vec<(StudioKey, RequestId)> {
        let is_over = |lane: &&Lane| lane.holder.until.is_some_and(|until| until <= now);
        let lanes = self.lanes.iter().map(|(key, lane)| (key, lane)).filter(|(_, lane)| is_over(lane));
        lanes.map(|(key, lane)| (*key, lane.holder.request.clone())).collect()
    }

    /// The Studio has left, and everything in it. What runs there is remembered, for it may return.
    pub fn forget(&mut self, studio: StudioKey) {
        if let Some(lane) = self.lanes.remove(&studio) {
            self.lost.push_back(lane.holder);
            let surplus = self.lost.len().saturating_sub(LOST);
            self.lost.drain(..surplus);
        }
    }

    /// A Studio is here that was given up before, and still runs what `runs` names.
    pub fn returned(&mut self, studio: StudioKey, runs: impl Fn(&RequestId) -> bool) {
        let Some(index) = self.lost.iter().position(|holder| runs(&holder.request)) else { return };
        let holder = self.lost.remove(index).expect("found above");
        self.lanes.entry(studio).or_insert(Lane { holder, queue: VecDeque::new() });
    }

    /// What `from` was at is `to`'s now: both were one.
    pub fn hand_over(&mut self, from: StudioKey, to: StudioKey) {
        let Some(Lane { holder, queue }) = self.lanes.remove(&from) else { return };
        match self.lanes.get_mut(&to) {
            Some(lane) => lane.queue.extend(queue),
            None => {
                self.lanes.insert(to, Lane { holder, queue });
            }
        }
    }

    /// Who holds the lane.
    pub fn holder(&self, studio: StudioKey) -> Option<&Holder> {
        self.lanes.get(&studio).map(|lane| &lane.holder)
    }

    /// Who waits, the next one first.
    pub fn queue(&self, studio: StudioKey) -> impl Iterator<Item = &RequestId> {
        self.lanes.get(&studio).into_iter().flat_map(|lane| lane.queue.iter().map(|place| &place.request))
    }

    /// How many calls come before this one, if it waits.
    pub fn before(&self, studio: StudioKey, request: &RequestId) -> Option<usize> {
        self.queue(studio).position(|queued| queued == request).map(|index| index + 1)
    }

    /// Nobody holds any.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::studios::StudioKey;

    const ONE: StudioKey = StudioKey::for_tests(1);
    const TWO: StudioKey = StudioKey::for_tests(2);

    fn id(name: &str) -> RequestId {
        name.into()
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_secs(seconds)
    }

    fn waiting(lanes: &Lanes) -> Vec<&str> {
        lanes.queue(ONE).map(RequestId::as_str).collect()
    }

    #[test]
    fn calls_take_turns_in_the_order_they_came() {
        let mut lanes = Lanes::default();
        assert!(lanes.enter(ONE, id("a"), "run_code", at(1)));
        assert!(!lanes.enter(ONE, id("b"), "run_code", at(2)));
        assert!(!lanes.enter(ONE, id("c"), "sync", at(3)));
        assert_eq!((lanes.before(ONE, &id("b")), lanes.before(ONE, &id("c"))), (Some(1), Some(2)));
        assert_eq!((lanes.before(ONE, &id("a")), waiting(&lanes)), (None, vec!["b", "c"]));
        assert_eq!(lanes.leave(ONE, &id("a"), at(5)), Some(id("b")));
        let holder = lanes.holder(ONE).expect("b");
        assert_eq!((holder.request.as_str(), holder.since, holder.tool.as_str()), ("b", at(5), "run_code"));
        assert_eq!(lanes.leave(ONE, &id("b"), at(6)), Some(id("c")));
        assert_eq!(lanes.leave(ONE, &id("c"), at(7)), None);
        assert!(lanes.is_empty());
    }

    #[test]
    fn whoever_gives_up_in_the_queue_moves_nobody_else() {
        let mut lanes = Lanes::default();
        for name in ["a", "b", "c"] {
            lanes.enter(ONE, id(name), "run_code", at(0));
        }
        for name in ["b", "never", "a"] {
            lanes.give_up(ONE, &id(name));
        }
        assert_eq!(waiting(&lanes), ["c"], "whoever holds the lane keeps it");
        assert_eq!(lanes.leave(ONE, &id("a"), at(1)), Some(id("c")));
        assert_eq!(lanes.leave(ONE, &id("a"), at(2)), None, "it left before");
        assert_eq!(lanes.holder(ONE).map(|holder| holder.request.clone()), Some(id("c")));
    }

    #[test]
    fn what_an_earlier_server_asked_for_takes_turns_too() {
        let mut lanes = Lanes::default();
        for name in ["a", "b", "a"] {
            lanes.occupied(ONE, &id(name), at(0));
        }
        assert!(!lanes.enter(ONE, id("c"), "run_code", at(1)));
        assert_eq!(waiting(&lanes), ["b", "c"]);
        assert_eq!((lanes.leave(ONE, &id("b"), at(2)), waiting(&lanes)), (None, vec!["c"]), "it was over first");
        assert_eq!(lanes.leave(ONE, &id("a"), at(2)), Some(id("c")));
    }

    #[test]
    fn studios_do_not_wait_for_each_other() {
        let mut lanes = Lanes::default();
        assert!(lanes.enter(ONE, id("a"), "run_code", at(0)));
        assert!(lanes.enter(TWO, id("b"), "run_code", at(0)));
        lanes.sent(TWO, &id("b"), Some(7), Some(at(9)));
        lanes.sent(ONE, &id("b"), Some(8), Some(at(1)));
        assert_eq!((lanes.next_end(), lanes.overdue(at(8))), (Some(at(9)), vec![]));
        assert_eq!(lanes.overdue(at(9)), [(TWO, id("b"))]);
        assert_eq!((lanes.holder(TWO).and_then(|b| b.n), lanes.holder(ONE).and_then(|a| a.n)), (Some(7), None));
        lanes.forget(ONE);
        assert!(lanes.holder(ONE).is_none() && lanes.holder(TWO).is_some());
        lanes.hand_over(TWO, ONE);
        assert!(lanes.holder(TWO).is_none() && lanes.holder(ONE).is_some());
    }

    #[test]
    fn what_still_runs_in_a_studio_that_was_given_up_holds_its_lane_when_it_returns() {
        let mut lanes = Lanes::default();
        lanes.enter(ONE, id("a"), "run_code", at(0));
        lanes.enter(ONE, id("b"), "run_code", at(0));
        lanes.forget(ONE);
        lanes.returned(TWO, |request| *request == id("b"));
        assert!(lanes.is_empty(), "it only waited");
        lanes.returned(TWO, |request| *request == id("a"));
        assert!(!lanes.enter(TWO, id("c"), "run_code", at(1)));
        assert_eq!(lanes.leave(TWO, &id("a"), at(2)), Some(id("c")));
    }
}
