//! Whose turn it is: in each DataModel, calls that change something run one at a time, first come
//! first served. A lane is held until the plugin is done with the call, whoever still waits for it.
//!
//! The DataModels of one Studio are apart: what runs in the server of a play test and in its clients
//! changes nothing of the place, nor of each other, and code in one may wait for code in another.

use std::collections::{BTreeMap, VecDeque};

use super::{
    calls::Moment,
    ids::{LogicalId, RequestId},
    studios::{DataModel, StudioKey},
};

/// How many calls are remembered that ran in a Studio when it was given up.
const LOST: usize = 64;

/// The lanes of all Studios.
#[derive(Debug, Default)]
pub struct Lanes {
    lanes: BTreeMap<DataModel, Lane>,
    lost: VecDeque<Lost>,
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

/// What held a lane when its Studio was given up.
#[derive(Debug)]
struct Lost {
    client: Option<LogicalId>,
    holder: Holder,
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
    /// It was told to end, and its plugin cannot end it.
    pub cannot_end: bool,
}

impl Holder {
    fn new(Place { request, tool }: Place, since: Moment) -> Self {
        Self { request, tool, since, n: None, until: None, cannot_end: false }
    }
}

impl Lanes {
    /// A call comes. `true`: it is its turn.
    pub fn enter(&mut self, data_model: DataModel, request: RequestId, tool: &str, now: Moment) -> bool {
        let place = Place { request, tool: tool.to_owned() };
        match self.lanes.get_mut(&data_model) {
            Some(lane) => {
                lane.queue.push_back(place);
                false
            }
            None => {
                self.lanes.insert(data_model, Lane { holder: Holder::new(place, now), queue: VecDeque::new() });
                true
            }
        }
    }

    /// A Studio runs something that an earlier server asked for, which may be a change of its place.
    pub fn occupied(&mut self, studio: StudioKey, request: &RequestId, now: Moment) {
        let is_it =
            |lane: &Lane| lane.holder.request == *request || lane.queue.iter().any(|place| place.request == *request);
        if !self.of(studio).any(is_it) {
            let data_model = DataModel { studio, client: None };
            self.enter(data_model, request.clone(), "a call of an earlier server", now);
        }
    }

    /// A client says that it runs what the link's own lane stands still for: it is its own that does.
    /// Whose turn it is now, if any.
    pub fn runs_in(
        &mut self,
        studio: StudioKey,
        client: &LogicalId,
        request: &RequestId,
        now: Moment,
    ) -> Option<RequestId> {
        let own = self.lanes.get(&DataModel { studio, client: None })?;
        let tool = if own.holder.request == *request {
            own.holder.tool.clone()
        } else {
            own.queue.iter().find(|place| place.request == *request)?.tool.clone()
        };
        let next = self.leave(studio, request, now);
        self.enter(DataModel { studio, client: Some(client.clone()) }, request.clone(), &tool, now);
        next
    }

    /// The plugin cannot end this, though it was told to.
    pub fn cannot_end(&mut self, studio: StudioKey, request: &RequestId) {
        if let Some((_, lane)) = self.of_mut(studio).find(|(_, lane)| lane.holder.request == *request) {
            lane.holder.cannot_end = true;
        }
    }

    /// A call of this link is over. If it held a lane: the one whose turn it is now, if any.
    pub fn leave(&mut self, studio: StudioKey, request: &RequestId, now: Moment) -> Option<RequestId> {
        self.give_up(studio, request);
        let (data_model, lane) = self.of_mut(studio).find(|(_, lane)| lane.holder.request == *request)?;
        let Some(next) = lane.queue.pop_front() else {
            let data_model = data_model.clone();
            self.lanes.remove(&data_model);
            return None;
        };
        lane.holder = Holder::new(next, now);
        Some(lane.holder.request.clone())
    }

    /// A call that waits no longer does. Whoever holds the lane keeps it.
    pub fn give_up(&mut self, studio: StudioKey, request: &RequestId) {
        for (_, lane) in self.of_mut(studio) {
            lane.queue.retain(|place| place.request != *request);
        }
    }

    /// The holder was sent as number `n`, and holds the lane at most `until` then.
    pub fn sent(&mut self, studio: StudioKey, request: &RequestId, n: Option<u64>, until: Option<Moment>) {
        if let Some((_, lane)) = self.of_mut(studio).find(|(_, lane)| lane.holder.request == *request) {
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
        let lanes = self.lanes.iter().filter(|(_, lane)| is_over(lane));
        lanes.map(|(at, lane)| (at.studio, lane.holder.request.clone())).collect()
    }

    /// The link is given up, and everything behind it. What runs there is remembered, for it may return.
    pub fn forget(&mut self, studio: StudioKey) {
        let gone: Vec<(DataModel, Lane)> =
            self.lanes.extract_if(.., |data_model, _| data_model.studio == studio).collect();
        self.lost.extend(gone.into_iter().map(|(at, lane)| Lost { client: at.client, holder: lane.holder }));
        let surplus = self.lost.len().saturating_sub(LOST);
        self.lost.drain(..surplus);
    }

    /// A DataModel is gone for good, with what ran in it.
    pub fn end(&mut self, data_model: &DataModel) {
        self.lanes.remove(data_model);
    }

    /// A link is here that was given up before, and whatever `runs` names still runs behind it.
    pub fn returned(&mut self, studio: StudioKey, runs: impl Fn(&RequestId) -> bool) {
        let (back, lost): (VecDeque<Lost>, _) =
            std::mem::take(&mut self.lost).into_iter().partition(|lost| runs(&lost.holder.request));
        self.lost = lost;
        for Lost { client, holder } in back {
            let data_model = DataModel { studio, client };
            self.lanes.entry(data_model).or_insert(Lane { holder, queue: VecDeque::new() });
        }
    }

    /// What `from` was at is `to`'s now: both were one.
    pub fn hand_over(&mut self, from: StudioKey, to: StudioKey) {
        let gone: Vec<(DataModel, Lane)> =
            self.lanes.extract_if(.., |data_model, _| data_model.studio == from).collect();
        for (DataModel { client, .. }, Lane { holder, queue }) in gone {
            let data_model = DataModel { studio: to, client };
            match self.lanes.get_mut(&data_model) {
                Some(lane) => lane.queue.extend(queue),
                None => {
                    self.lanes.insert(data_model, Lane { holder, queue });
                }
            }
        }
    }

    /// Who holds the lane of a DataModel, and how many wait for it.
    pub fn holder(&self, data_model: &DataModel) -> Option<(&Holder, usize)> {
        self.lanes.get(data_model).map(|lane| (&lane.holder, lane.queue.len()))
    }

    /// Who holds the lanes behind a link.
    pub fn holders(&self, studio: StudioKey) -> impl Iterator<Item = &Holder> {
        self.of(studio).map(|lane| &lane.holder)
    }

    /// Behind which link this call holds a lane.
    pub fn held_by(&self, request: &RequestId) -> Option<StudioKey> {
        let mut lanes = self.lanes.iter();
        lanes.find(|(_, lane)| lane.holder.request == *request).map(|(data_model, _)| data_model.studio)
    }

    /// Who waits behind a link, with how many come before.
    pub fn queues(&self, studio: StudioKey) -> impl Iterator<Item = (usize, &RequestId)> {
        self.of(studio).flat_map(|lane| (1..).zip(lane.queue.iter().map(|place| &place.request)))
    }

    /// How many calls come before this one, if it waits.
    pub fn before(&self, studio: StudioKey, request: &RequestId) -> Option<usize> {
        self.queues(studio).find(|(_, queued)| *queued == request).map(|(before, _)| before)
    }

    /// Nobody holds any.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    fn of(&self, studio: StudioKey) -> impl Iterator<Item = &Lane> {
        let first = DataModel { studio, client: None };
        self.lanes.range(first..).take_while(move |(at, _)| at.studio == studio).map(|(_, lane)| lane)
    }

    fn of_mut(&mut self, studio: StudioKey) -> impl Iterator<Item = (&DataModel, &mut Lane)> {
        let first = DataModel { studio, client: None };
        self.lanes.range_mut(first..).take_while(move |(at, _)| at.studio == studio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::studios::StudioKey;

    const ONE: StudioKey = StudioKey::for_tests(1);
    const TWO: StudioKey = StudioKey::for_tests(2);

    /// The link's own DataModel.
    fn own(studio: StudioKey) -> DataModel {
        DataModel { studio, client: None }
    }

    fn client(studio: StudioKey, id: &str) -> DataModel {
        DataModel { studio, client: Some(id.into()) }
    }

    /// Who holds the lane of the link's own DataModel.
    fn holder(lanes: &Lanes, studio: StudioKey) -> Option<&Holder> {
        lanes.holder(&own(studio)).map(|(holder, _)| holder)
    }

    fn id(name: &str) -> RequestId {
        name.into()
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_secs(seconds)
    }

    fn waiting(lanes: &Lanes) -> Vec<&str> {
        lanes.queues(ONE).map(|(_, request)| request.as_str()).collect()
    }

    #[test]
    fn calls_take_turns_in_the_order_they_came() {
        let mut lanes = Lanes::default();
        assert!(lanes.enter(own(ONE), id("a"), "run_code", at(1)));
        assert!(!lanes.enter(own(ONE), id("b"), "run_code", at(2)));
        assert!(!lanes.enter(own(ONE), id("c"), "sync", at(3)));
        assert_eq!((lanes.before(ONE, &id("b")), lanes.before(ONE, &id("c"))), (Some(1), Some(2)));
        assert_eq!((lanes.before(ONE, &id("a")), waiting(&lanes)), (None, vec!["b", "c"]));
        assert_eq!(lanes.leave(ONE, &id("a"), at(5)), Some(id("b")));
        let holder = holder(&lanes, ONE).expect("b");
        assert_eq!((holder.request.as_str(), holder.since, holder.tool.as_str()), ("b", at(5), "run_code"));
        assert_eq!(lanes.leave(ONE, &id("b"), at(6)), Some(id("c")));
        assert_eq!(lanes.leave(ONE, &id("c"), at(7)), None);
        assert!(lanes.is_empty());
    }

    #[test]
    fn whoever_gives_up_in_the_queue_moves_nobody_else() {
        let mut lanes = Lanes::default();
        for name in ["a", "b", "c"] {
            lanes.enter(own(ONE), id(name), "run_code", at(0));
        }
        for name in ["b", "never", "a"] {
            lanes.give_up(ONE, &id(name));
        }
        assert_eq!(waiting(&lanes), ["c"], "whoever holds the lane keeps it");
        assert_eq!(lanes.leave(ONE, &id("a"), at(1)), Some(id("c")));
        assert_eq!(lanes.leave(ONE, &id("a"), at(2)), None, "it left before");
        assert_eq!(holder(&lanes, ONE).map(|holder| holder.request.clone()), Some(id("c")));
    }

    #[test]
    fn what_an_earlier_server_asked_for_takes_turns_too() {
        let mut lanes = Lanes::default();
        for name in ["a", "b", "a"] {
            lanes.occupied(ONE, &id(name), at(0));
        }
        assert!(!lanes.enter(own(ONE), id("c"), "run_code", at(1)));
        assert_eq!(waiting(&lanes), ["b", "c"]);
        assert_eq!((lanes.leave(ONE, &id("b"), at(2)), waiting(&lanes)), (None, vec!["c"]), "it was over first");
        assert_eq!(lanes.leave(ONE, &id("a"), at(2)), Some(id("c")));
    }

    #[test]
    fn what_an_earlier_server_asked_a_client_for_holds_up_that_client_alone() {
        let mut lanes = Lanes::default();
        for name in ["a", "b"] {
            lanes.occupied(ONE, &id(name), at(0));
        }
        assert!(!lanes.enter(own(ONE), id("c"), "run_code", at(1)));
        assert_eq!(lanes.runs_in(ONE, &"x".into(), &id("b"), at(2)), None, "a runs there still");
        assert_eq!(waiting(&lanes), ["c"]);
        assert_eq!(lanes.runs_in(ONE, &"x".into(), &id("a"), at(3)), Some(id("c")));
        assert_eq!(lanes.runs_in(ONE, &"x".into(), &id("a"), at(3)), None, "said again");
        assert_eq!((holder(&lanes, ONE).map(|one| one.request.clone()), waiting(&lanes)), (Some(id("c")), vec!["a"]));
        assert!(!lanes.enter(client(ONE, "x"), id("d"), "run_code", at(4)));
        assert_eq!(
            (lanes.leave(ONE, &id("b"), at(5)), lanes.leave(ONE, &id("a"), at(6))),
            (Some(id("a")), Some(id("d")))
        );
    }

    #[test]
    fn studios_do_not_wait_for_each_other() {
        let mut lanes = Lanes::default();
        assert!(lanes.enter(own(ONE), id("a"), "run_code", at(0)));
        assert!(lanes.enter(own(TWO), id("b"), "run_code", at(0)));
        lanes.sent(TWO, &id("b"), Some(7), Some(at(9)));
        lanes.sent(ONE, &id("b"), Some(8), Some(at(1)));
        assert_eq!((lanes.next_end(), lanes.overdue(at(8))), (Some(at(9)), vec![]));
        assert_eq!(lanes.overdue(at(9)), [(TWO, id("b"))]);
        assert_eq!((holder(&lanes, TWO).and_then(|b| b.n), holder(&lanes, ONE).and_then(|a| a.n)), (Some(7), None));
        lanes.forget(ONE);
        assert!(holder(&lanes, ONE).is_none() && holder(&lanes, TWO).is_some());
        lanes.hand_over(TWO, ONE);
        assert!(holder(&lanes, TWO).is_none() && holder(&lanes, ONE).is_some());
    }

    #[test]
    fn what_still_runs_in_a_studio_that_was_given_up_holds_its_lane_when_it_returns() {
        let mut lanes = Lanes::default();
        lanes.enter(own(ONE), id("a"), "run_code", at(0));
        lanes.enter(own(ONE), id("b"), "run_code", at(0));
        lanes.forget(ONE);
        lanes.returned(TWO, |request| *request == id("b"));
        assert!(lanes.is_empty(), "it only waited");
        lanes.returned(TWO, |request| *request == id("a"));
        assert!(!lanes.enter(own(TWO), id("c"), "run_code", at(1)));
        assert_eq!(lanes.leave(TWO, &id("a"), at(2)), Some(id("c")));
    }

    #[test]
    fn the_data_models_of_a_studio_do_not_wait_for_each_other() {
        let mut lanes = Lanes::default();
        for (data_model, name) in [(own(ONE), "a"), (client(ONE, "x"), "b"), (client(ONE, "y"), "c"), (own(TWO), "d")] {
            assert!(lanes.enter(data_model, id(name), "run_code", at(0)), "{name}");
        }
        assert!(!lanes.enter(client(ONE, "x"), id("e"), "run_code", at(1)));
        lanes.sent(ONE, &id("b"), Some(4), None);
        assert_eq!(lanes.holder(&client(ONE, "x")).map(|(holder, queued)| (holder.n, queued)), Some((Some(4), 1)));
        assert_eq!(lanes.holders(ONE).count(), 3);
        assert_eq!((lanes.before(ONE, &id("e")), lanes.leave(ONE, &id("b"), at(2))), (Some(1), Some(id("e"))));
        lanes.end(&client(ONE, "x"));
        assert_eq!((lanes.leave(ONE, &id("e"), at(3)), lanes.holders(ONE).count()), (None, 2));
        lanes.forget(ONE);
        assert_eq!((lanes.holders(ONE).count(), lanes.holders(TWO).count()), (0, 1));
        lanes.returned(TWO, |request| *request == id("c"));
        assert!(!lanes.enter(client(TWO, "y"), id("f"), "run_code", at(4)), "what ran in a client runs there still");
    }
}
