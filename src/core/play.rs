//! Who plays: the play mode of each Studio is lent to one caller at a time.

use std::{collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{calls::Moment, ids::RequestId};

/// How long a lease outlives its owner.
pub const LEASE_GRACE: Duration = Duration::from_secs(60);

/// Who calls: one client of ours, for as long as its session lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId(pub u64);

/// What is wanted of a Studio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlayMode {
    /// A play test with a player.
    StartPlay,
    /// One without a player.
    RunServer,
    /// Back to edit mode.
    Stop,
    /// That, and the same again.
    Restart, // no plugin is asked this, but to stop and then to start
}

/// What a play test is started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestKind {
    /// A server and a player.
    WithPlayer,
    /// A server alone.
    ServerOnly,
}

/// When it has come to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The play server has reported, and so has a client.
    Playing,
    /// The play server has reported.
    Running,
    /// The edit DataModel alone is there.
    Editing,
    /// The same, for a test that was told to end before it was up: whoever started it is told so.
    Stopped,
    /// The same, and then another test is started.
    Again(TestKind),
}

impl TestKind {
    /// What the plugin is asked for.
    pub fn mode(self) -> PlayMode {
        match self {
            Self::WithPlayer => PlayMode::StartPlay,
            Self::ServerOnly => PlayMode::RunServer,
        }
    }

    /// When it is up.
    pub fn goal(self) -> Goal {
        match self {
            Self::WithPlayer => Goal::Playing,
            Self::ServerOnly => Goal::Running,
        }
    }
}

impl PlayMode {
    /// The test that it starts.
    pub fn starts(self) -> Option<TestKind> {
        match self {
            Self::StartPlay => Some(TestKind::WithPlayer),
            Self::RunServer => Some(TestKind::ServerOnly),
            Self::Stop | Self::Restart => None,
        }
    }

    /// When what the plugin was asked is done.
    pub fn goal(self) -> Goal {
        self.starts().map_or(Goal::Editing, TestKind::goal)
    }
}

impl Goal {
    /// The Studio's mode then.
    pub fn mode(self) -> &'static str {
        match self {
            Self::Playing => "play",
            Self::Running => "run",
            Self::Editing | Self::Stopped | Self::Again(_) => "edit",
        }
    }
}

/// The leases, by Studio.
#[derive(Debug, Default)]
pub struct Leases(BTreeMap<String, Lease>);

#[derive(Debug)]
struct Lease {
    owner: OwnerId,
    since: Moment,
    left_at: Option<Moment>,
    /// The call that starts the test, or stops it while it starts.
    request: RequestId,
    kind: TestKind,
    start: Start,
}

/// How far the start of a test is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Nobody has seen its server yet.
    UnderWay,
    /// The same, and it is to be stopped, since then.
    CalledOff(Moment),
    /// It was seen, or is known not to come.
    Over,
}

impl Lease {
    fn ends_at(&self) -> Option<Moment> {
        let called_off = match self.start {
            Start::CalledOff(at) => Some(at),
            Start::UnderWay | Start::Over => None,
        };
        self.left_at.into_iter().chain(called_off).min().map(|from| from + LEASE_GRACE)
    }
}

/// Who plays in a Studio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Who.
    pub owner: OwnerId,
    /// Since when.
    pub since: Moment,
    /// It is gone; the lease ends soon.
    pub has_left: bool,
}

impl Leases {
    /// `owner` plays a test of this kind in `studio` from now on, by `request`.
    ///
    /// # Errors
    /// Another one does, since then.
    pub fn take(
        &mut self,
        studio: &str,
        (owner, kind): (OwnerId, TestKind),
        request: RequestId,
        now: Moment,
    ) -> Result<(), Moment> {
        self.expire(now);
        match self.0.get(studio) {
            Some(lease) if lease.owner != owner => Err(lease.since),
            _ => {
                self.give(studio, (owner, kind), request, now);
                Ok(())
            }
        }
    }

    /// The same, whoever played before.
    pub fn give(&mut self, studio: &str, (owner, kind): (OwnerId, TestKind), request: RequestId, now: Moment) {
        let lease = Lease { owner, since: now, left_at: None, request, kind, start: Start::UnderWay };
        self.0.insert(studio.to_owned(), lease);
    }

    /// Another test of the same lease is started.
    pub fn starts_again(&mut self, studio: &str) {
        self.set(studio, Start::UnderWay);
    }

    /// Its server was seen, or it is known that none will come. The call that wanted it stopped, if one did.
    pub fn started(&mut self, studio: &str) -> Option<RequestId> {
        let was = self.set(studio, Start::Over)?;
        let wanted = || self.0.get(studio).map(|lease| lease.request.clone());
        if matches!(was, Start::CalledOff(_)) { wanted() } else { None }
    }

    /// The test that is being started is to be stopped as soon as it can be, as `request` wants.
    pub fn call_off(&mut self, studio: &str, request: RequestId, now: Moment) {
        if let Some(lease) = self.0.get_mut(studio) {
            lease.start = Start::CalledOff(now);
            lease.request = request;
        }
    }

    fn set(&mut self, studio: &str, start: Start) -> Option<Start> {
        Some(std::mem::replace(&mut self.0.get_mut(studio)?.start, start))
    }

    /// A test is being started, and nobody has seen its server yet.
    pub fn is_starting(&self, studio: &str) -> bool {
        self.0.get(studio).is_some_and(|lease| lease.start != Start::Over)
    }

    /// The same, and it is to be stopped.
    pub fn is_called_off(&self, studio: &str) -> bool {
        self.0.get(studio).is_some_and(|lease| matches!(lease.start, Start::CalledOff(_)))
    }

    /// What was started by whoever plays.
    pub fn kind(&self, studio: &str) -> Option<TestKind> {
        self.0.get(studio).map(|lease| lease.kind)
    }

    /// Who plays in `studio`.
    pub fn holder(&self, studio: &str) -> Option<Holder> {
        let Lease { owner, since, left_at, .. } = self.0.get(studio)?;
        Some(Holder { owner: *owner, since: *since, has_left: left_at.is_some() })
    }

    /// The Studios in which a test is being started.
    pub fn starting(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, lease)| lease.start != Start::Over).map(|(studio, _)| studio.as_str())
    }

    /// Since when another one than `owner` plays in `studio`.
    pub fn held_by_another(&self, studio: &str, owner: OwnerId) -> Option<Moment> {
        self.0.get(studio).filter(|lease| lease.owner != owner).map(|lease| lease.since)
    }

    /// `owner` is gone.
    pub fn owner_left(&mut self, owner: OwnerId, now: Moment) {
        for lease in self.0.values_mut().filter(|lease| lease.owner == owner) {
            lease.left_at.get_or_insert(now);
        }
    }

    /// Keep the leases of Studios that play, those whose call is still under way, and those of tests that
    /// may still come up although they were called off.
    pub fn retain(&mut self, plays: impl Fn(&str) -> bool, is_open: impl Fn(&RequestId) -> bool) {
        let is_kept = |studio: &str, lease: &Lease| {
            plays(studio) || is_open(&lease.request) || matches!(lease.start, Start::CalledOff(_))
        };
        self.0.retain(|studio, lease| is_kept(studio, lease));
    }

    /// End the leases whose owners left long ago, and those of tests that have not come up for as long.
    pub fn expire(&mut self, now: Moment) {
        self.0.retain(|_, lease| lease.ends_at().is_none_or(|end| now < end));
    }

    /// When the next one ends for that.
    pub fn next_expiry(&self) -> Option<Moment> {
        self.0.values().filter_map(Lease::ends_at).min()
    }

    /// Nobody plays.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: OwnerId = OwnerId(1);
    const TWO: OwnerId = OwnerId(2);
    const RUN: TestKind = TestKind::ServerOnly;

    fn at(seconds: u64) -> Moment {
        Moment::from_secs(seconds)
    }

    #[test]
    fn one_caller_plays_until_the_test_ends_or_a_minute_after_it_left() {
        let mut leases = Leases::default();
        assert_eq!(leases.take("a", (ONE, RUN), "r1".into(), at(1)), Ok(()));
        assert_eq!(
            (leases.take("a", (TWO, RUN), "r2".into(), at(5)), leases.take("b", (TWO, RUN), "r3".into(), at(5))),
            (Err(at(1)), Ok(()))
        );
        assert_eq!(leases.take("a", (ONE, RUN), "r4".into(), at(6)), Ok(()), "its own it may take again");
        leases.owner_left(ONE, at(10));
        leases.owner_left(ONE, at(20));
        assert_eq!(
            (leases.next_expiry(), leases.take("a", (TWO, RUN), "r5".into(), at(69))),
            (Some(at(70)), Err(at(6)))
        );
        assert_eq!((leases.take("a", (TWO, RUN), "r5".into(), at(70)), leases.next_expiry()), (Ok(()), None));
        leases.retain(|studio| studio == "a", |_| false);
        assert_eq!((leases.held_by_another("b", ONE), leases.held_by_another("a", ONE)), (None, Some(at(70))));
        leases.retain(|_| false, |request| *request == "r5".into());
        assert!(!leases.is_empty(), "its call is under way");
        leases.retain(|_| false, |_| false);
        assert!(leases.is_empty());
    }

    #[test]
    fn a_start_that_is_called_off_is_in_doubt_until_its_server_is_seen_or_a_minute_has_passed() {
        let mut leases = Leases::default();
        let gone = |leases: &mut Leases| leases.retain(|_| false, |_| false);
        leases.take("a", (ONE, RUN), "start".into(), at(1)).expect("it is free");
        assert!(leases.is_starting("a") && !leases.is_called_off("a"));
        leases.call_off("a", "stop".into(), at(2));
        gone(&mut leases);
        assert_eq!(leases.starting().collect::<Vec<_>>(), ["a"], "its callers are gone, and it may still come up");
        assert_eq!((leases.started("a"), leases.started("a")), (Some("stop".into()), None), "it is stopped once");
        assert!(!leases.is_starting("a"));
        leases.starts_again("a");
        assert_eq!((leases.is_starting("a"), leases.kind("a")), (true, Some(RUN)));
        gone(&mut leases);
        assert!(leases.is_empty());

        leases.take("a", (ONE, RUN), "start".into(), at(10)).expect("it is free");
        leases.call_off("a", "stop".into(), at(12));
        assert_eq!(leases.holder("a"), Some(Holder { owner: ONE, since: at(10), has_left: false }));
        leases.expire(at(71));
        assert!(leases.is_called_off("a"));
        leases.expire(at(72));
        assert!(leases.is_empty() && leases.started("a").is_none());
    }
}
