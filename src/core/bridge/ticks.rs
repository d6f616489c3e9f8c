//! What the passing of time brings: heartbeats, and the end of whatever came too late.

use super::{Bridge, Effect, Link, links::Refusal};
use crate::core::{
    calls::Moment,
    error::ToolError,
    protocol::{HEARTBEAT, HELLO_DEADLINE, Notice, RejectCode, ServerFrame},
    studios::{GRACE, LinkId, SILENCE, Studio, StudioKey},
};

impl Bridge {
    /// When [`Event::Tick`](super::Event::Tick) is wanted next.
    pub fn next_tick(&self) -> Moment {
        let hellos = self.links.values().filter_map(|link| match link {
            Link::New { opened_at } => Some(*opened_at + HELLO_DEADLINE),
            Link::Of(_) | Link::Closing => None,
        });
        let graces = self.studios.iter().filter_map(|studio| Some(studio.lost_at? + GRACE));
        let silences = self.studios.iter().filter_map(silent_at);
        let beat = (!self.links.is_empty()).then_some(self.next_beat);
        let all = hellos.chain(graces).chain(silences).chain(beat).chain(self.calls.next_deadline());
        let all =
            all.chain(self.operations.next_deadline()).chain(self.leases.next_expiry()).chain(self.lanes.next_end());
        let all = all.chain(self.reviews.next_deadline());
        all.min().unwrap_or(Moment::MAX)
    }

    pub(super) fn tick(&mut self, now: Moment) {
        self.expire_reviews(now);
        self.expire_calls(now);
        self.leases.expire(now);
        self.expire_hellos(now);
        self.expire_graces(now);
        self.drop_silent(now);
        if now >= self.next_beat {
            self.next_beat = now + HEARTBEAT;
            self.heartbeat(now);
            self.forget_rivals(now);
            self.tell_all_standings();
        }
        self.free_level0_lanes(now);
    }

    pub(super) fn expire_hellos(&mut self, now: Moment) {
        let late: Vec<LinkId> = self
            .links
            .iter()
            .filter(|(_, link)| matches!(link, Link::New { opened_at } if *opened_at + HELLO_DEADLINE <= now))
            .map(|(id, _)| *id)
            .collect();
        for link in late {
            let reason = format!("no hello came within {} s", HELLO_DEADLINE.as_secs());
            self.refuse(link, Refusal::new(RejectCode::HelloTimeout, reason));
        }
    }

    fn expire_graces(&mut self, now: Moment) {
        let gone: Vec<StudioKey> = self
            .studios
            .iter()
            .filter(|studio| studio.lost_at.is_some_and(|lost| lost + GRACE <= now))
            .map(|studio| studio.key)
            .collect();
        for key in gone {
            let name = self.studio_name(key);
            let why = format!("its link was lost and did not come back within {} s", GRACE.as_secs());
            self.hand_on_play(key);
            self.fail_all_of(key, &ToolError::outcome_unknown(&name, &why));
            self.leave(key, &why);
        }
    }

    fn drop_silent(&mut self, now: Moment) {
        let silent: Vec<StudioKey> = self
            .studios
            .iter()
            .filter(|studio| silent_at(studio).is_some_and(|at| at <= now))
            .map(|studio| studio.key)
            .collect();
        let why = format!("silent for {} s", SILENCE.as_secs());
        for key in silent {
            let Some(studio) = self.studios.get_mut(key) else { continue };
            if studio.is_level1() {
                studio.lost_at = Some(now);
                let link = studio.link.take();
                link.into_iter().for_each(|link| self.close(link, why.as_str()));
                self.fail_unsent(key);
            } else {
                self.leave(key, &why);
            }
        }
    }

    /// Our own plugin answers a frame; of another one only the WebSocket can be asked.
    fn heartbeat(&mut self, now: Moment) {
        let timestamp = super::calls::millis(now);
        let live: Vec<(bool, LinkId)> =
            self.studios.iter().filter_map(|studio| Some((studio.is_level1(), studio.link?))).collect();
        for (is_level1, link) in live {
            if is_level1 {
                self.send(link, ServerFrame::Notice(Notice::Heartbeat { timestamp }));
            } else {
                self.effects.push(Effect::Ping { link });
            }
        }
    }

    /// A link has shown that its other end is alive.
    pub(super) fn heard(&mut self, now: Moment, link: LinkId) {
        if let Some(Link::Of(key)) = self.links.get(&link)
            && let Some(studio) = self.studios.get_mut(*key)
        {
            studio.heard_at = now;
        }
    }
}

/// When the silence of a linked Studio has lasted too long.
fn silent_at(studio: &Studio) -> Option<Moment> {
    studio.link.map(|_| studio.heard_at + SILENCE)
}
