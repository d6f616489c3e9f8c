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
}

impl PlayMode {
    /// When it is done.
    pub fn goal(self) -> Goal {
        match self {
            Self::StartPlay => Goal::Playing,
            Self::RunServer => Goal::Running,
            Self::Stop => Goal::Editing,
        }
    }
}

impl Goal {
    /// The Studio's mode then.
    pub fn mode(self) -> &'static str {
        match self {
            Self::Playing => "play",
            Self::Running => "run",
            Self::Editing => "edit",
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
    /// The call that starts the test.
    request: RequestId,
}

impl Leases {
    /// `owner` plays in `studio` from now on, by `request`.
    ///
    /// # Errors
    /// Another one does, since then.
    pub fn take(&mut self, studio: &str, owner: OwnerId, request: RequestId, now: Moment) -> Result<(), Moment> {
        self.expire(now);
        match self.0.get(studio) {
            Some(lease) if lease.owner != owner => Err(lease.since),
            _ => {
                self.0.insert(studio.to_owned(), Lease { owner, since: now, left_at: None, request });
                Ok(())
            }
        }
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

    /// Keep the leases of Studios that play, and those whose call is still under way.
    pub fn retain(&mut self, plays: impl Fn(&str) -> bool, is_open: impl Fn(&RequestId) -> bool) {
        self.0.retain(|studio, lease| plays(studio) || is_open(&lease.request));
    }

    /// End the leases whose owners left long ago.
    pub fn expire(&mut self, now: Moment) {
        self.0.retain(|_, lease| lease.left_at.is_none_or(|left| now < left + LEASE_GRACE));
    }

    /// When the next one ends for that.
    pub fn next_expiry(&self) -> Option<Moment> {
        self.0.values().filter_map(|lease| Some(lease.left_at? + LEASE_GRACE)).min()
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

    fn at(seconds: u64) -> Moment {
        Moment::from_secs(seconds)
    }

    #[test]
    fn one_caller_plays_until_the_test_ends_or_a_minute_after_it_left() {
        let mut leases = Leases::default();
        assert_eq!(leases.take("a", ONE, "r1".into(), at(1)), Ok(()));
        assert_eq!(
            (leases.take("a", TWO, "r2".into(), at(5)), leases.take("b", TWO, "r3".into(), at(5))),
            (Err(at(1)), Ok(()))
        );
        assert_eq!(leases.take("a", ONE, "r4".into(), at(6)), Ok(()), "its own it may take again");
        leases.owner_left(ONE, at(10));
        leases.owner_left(ONE, at(20));
        assert_eq!((leases.next_expiry(), leases.take("a", TWO, "r5".into(), at(69))), (Some(at(70)), Err(at(6))));
        assert_eq!((leases.take("a", TWO, "r5".into(), at(70)), leases.next_expiry()), (Ok(()), None));
        leases.retain(|studio| studio == "a", |_| false);
        assert_eq!((leases.held_by_another("b", ONE), leases.held_by_another("a", ONE)), (None, Some(at(70))));
        leases.retain(|_| false, |request| *request == "r5".into());
        assert!(!leases.is_empty(), "its call is under way");
        leases.retain(|_| false, |_| false);
        assert!(leases.is_empty());
    }
}
