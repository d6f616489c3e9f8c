//! The ledger: every call that waits for its result, each settled exactly once.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    time::Duration,
};

use super::{ids::RequestId, protocol::AckDisposition};

/// Time since the owner of the core started. The core has no clock; it is told.
pub type Moment = Duration;

/// How many settled requests are remembered, so that a late or repeated result can be told from
/// one that was never asked for.
const REMEMBERED: usize = 10_000;

/// Calls that wait, by request, each with what its owner needs to know to settle it (`C`).
#[derive(Debug)]
pub struct Calls<C> {
    open: HashMap<RequestId, Open<C>>,
    deadlines: BTreeSet<(Moment, RequestId)>,
    settled: Settled,
}

#[derive(Debug)]
struct Open<C> {
    call: C,
    deadline: Moment,
}

/// The most recently settled requests.
#[derive(Debug, Default)]
struct Settled {
    known: HashSet<RequestId>,
    order: VecDeque<RequestId>,
}

impl<C> Default for Calls<C> {
    fn default() -> Self {
        Self { open: HashMap::new(), deadlines: BTreeSet::new(), settled: Settled::default() }
    }
}

impl<C> Calls<C> {
    /// Wait for `request` until `deadline`.
    ///
    /// # Panics
    /// When the request is open already: ids are unique for ever.
    pub fn open(&mut self, request: RequestId, deadline: Moment, call: C) {
        self.deadlines.insert((deadline, request.clone()));
        let before = self.open.insert(request, Open { call, deadline });
        assert!(before.is_none(), "a request id was used twice");
    }

    /// Take the call out to settle it. `None`: it was settled before, or never opened.
    pub fn settle(&mut self, request: &RequestId) -> Option<C> {
        let Open { call, deadline } = self.open.remove(request)?;
        self.deadlines.remove(&(deadline, request.clone()));
        self.settled.insert(request.clone());
        Some(call)
    }

    /// Wait for an open call until `deadline` instead.
    pub fn postpone(&mut self, request: &RequestId, deadline: Moment) {
        let Some(open) = self.open.get_mut(request) else { return };
        let before = std::mem::replace(&mut open.deadline, deadline);
        self.deadlines.remove(&(before, request.clone()));
        self.deadlines.insert((deadline, request.clone()));
    }

    /// Settle the calls whose deadline is at or before `now`, earliest first.
    pub fn expire(&mut self, now: Moment) -> Vec<(RequestId, C)> {
        let mut expired = Vec::new();
        while let Some((_, request)) = self.deadlines.first().filter(|(deadline, _)| *deadline <= now).cloned() {
            let call = self.settle(&request).expect("every deadline belongs to an open call");
            expired.push((request, call));
        }
        expired
    }

    /// Settle the calls that `which` picks.
    pub fn settle_where(&mut self, mut which: impl FnMut(&C) -> bool) -> Vec<(RequestId, C)> {
        let picked: Vec<RequestId> =
            self.open.iter().filter(|(_, open)| which(&open.call)).map(|(id, _)| id.clone()).collect();
        picked
            .into_iter()
            .map(|id| {
                let call = self.settle(&id).expect("picked from the open calls");
                (id, call)
            })
            .collect()
    }

    /// When the next call expires.
    pub fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The open call of `request`, with its deadline.
    pub fn get(&self, request: &RequestId) -> Option<(&C, Moment)> {
        self.open.get(request).map(|open| (&open.call, open.deadline))
    }

    /// The open call of `request`, to change what is noted about it.
    pub fn get_mut(&mut self, request: &RequestId) -> Option<&mut C> {
        self.open.get_mut(request).map(|open| &mut open.call)
    }

    /// The open calls, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&RequestId, &C)> {
        self.open.iter().map(|(id, open)| (id, &open.call))
    }

    /// The open calls, to change what is noted about them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&RequestId, &mut C)> {
        self.open.iter_mut().map(|(id, open)| (id, &mut open.call))
    }

    /// How many calls wait.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// No call waits.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// What to answer to a result for `request` that arrives now.
    pub fn disposition(&self, request: &RequestId) -> AckDisposition {
        if self.open.contains_key(request) {
            AckDisposition::Accepted
        } else if self.settled.known.contains(request) {
            AckDisposition::AlreadySettled
        } else {
            AckDisposition::Unknown
        }
    }
}

impl Settled {
    fn insert(&mut self, request: RequestId) {
        if self.known.insert(request.clone()) {
            self.order.push_back(request);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> RequestId {
        name.into()
    }

    fn seconds(n: u64) -> Moment {
        Duration::from_secs(n)
    }

    #[test]
    fn a_call_is_settled_once() {
        let mut calls = Calls::default();
        calls.open(id("a"), seconds(1), "A");
        assert_eq!(calls.disposition(&id("a")), AckDisposition::Accepted);
        assert_eq!(calls.settle(&id("a")), Some("A"));
        assert_eq!(calls.settle(&id("a")), None);
        assert_eq!(calls.disposition(&id("a")), AckDisposition::AlreadySettled);
        assert_eq!(calls.disposition(&id("b")), AckDisposition::Unknown);
        assert_eq!(calls.next_deadline(), None, "a settled call leaves no deadline behind");
    }

    #[test]
    fn deadlines_expire_in_order() {
        let mut calls = Calls::default();
        calls.open(id("late"), seconds(3), ());
        calls.open(id("early"), seconds(2), ());
        assert_eq!(calls.next_deadline(), Some(seconds(2)));
        assert_eq!(calls.expire(seconds(1)), vec![]);
        let expired: Vec<_> = calls.expire(seconds(3)).into_iter().map(|(id, ())| id).collect();
        assert_eq!(expired, vec![id("early"), id("late")]);
        assert!(calls.is_empty());
    }

    #[test]
    fn only_the_latest_settled_requests_are_remembered() {
        let mut calls = Calls::default();
        for number in 0..=REMEMBERED {
            let name = id(&number.to_string());
            calls.open(name.clone(), seconds(1), ());
            calls.settle(&name);
        }
        assert_eq!(calls.disposition(&id("0")), AckDisposition::Unknown);
        assert_eq!(calls.disposition(&id("1")), AckDisposition::AlreadySettled);
    }
}
