//! What the passing of time brings: heartbeats, and the end of whatever came too late.

use super::{Bridge, Link, links::Refusal};
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
        all.min().unwrap_or(Moment::MAX)
    }

    pub(super) fn tick(&mut self, now: Moment) {
        self.expire_calls(now);
        self.expire_hellos(now);
        self.expire_graces(now);
        self.drop_silent(now);
        if now >= self.next_beat {
            self.next_beat = now + HEARTBEAT;
            self.heartbeat(now);
        }
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
            self.fail_all_of(key, &ToolError::outcome_unknown(&name, &why));
            self.leave(key, &why);
        }
    }

    fn drop_silent(&mut self, now: Moment) {
        let mut dropped = Vec::new();
        for studio in self.studios.iter_mut().filter(|studio| silent_at(studio).is_some_and(|at| at <= now)) {
            studio.lost_at = Some(now);
            dropped.extend(studio.link.take());
        }
        for link in dropped {
            self.close(link, format!("silent for {} s", SILENCE.as_secs()));
        }
    }

    fn heartbeat(&mut self, now: Moment) {
        let timestamp = super::calls::millis(now);
        let live: Vec<LinkId> =
            self.studios.iter().filter(|studio| studio.is_level1()).filter_map(|studio| studio.link).collect();
        for link in live {
            self.send(link, ServerFrame::Notice(Notice::Heartbeat { timestamp }));
        }
    }
}

/// When the silence of a linked Studio has lasted too long. A level-0 plugin may be silent for ever.
fn silent_at(studio: &Studio) -> Option<Moment> {
    (studio.is_level1() && studio.link.is_some()).then_some(studio.heard_at + SILENCE)
}
