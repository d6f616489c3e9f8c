//! Copies of a place that was never published: the name of such a place lies in its file, so a copy
//! brings the same one.

use std::time::Duration;

use super::Bridge;
use crate::core::{
    calls::Moment,
    ids::{InstanceId, SessionId},
    protocol::{Hello, Role},
    standing::Rival,
    studios::StudioKey,
};

/// How long after its last try a refused window counts as gone.
const RIVAL_GONE: Duration = Duration::from_secs(60);

impl Bridge {
    /// `session` wants a place that a live window holds, and that window says so.
    pub(super) fn note_rival(&mut self, now: Moment, holder: StudioKey, session: SessionId) {
        let Some(studio) = self.studios.get_mut(holder) else { return };
        match &mut studio.rival {
            Some(rival) if rival.session == session => rival.last = now,
            rival => *rival = Some(Rival { session, since: now, last: now }),
        }
        self.tell_standing(holder);
    }

    /// The plugin of a refused window tries again within half a minute. One that does not has gone.
    pub(super) fn forget_rivals(&mut self, now: Moment) {
        for studio in self.studios.iter_mut() {
            studio.rival.take_if(|rival| rival.last + RIVAL_GONE < now);
        }
    }

    /// Two edit windows that both live have places of one guid: the second is given a name of its
    /// own. A window counts as alive that has spoken since the other one came; a plugin that was
    /// reloaded is thus not taken for a copy of itself.
    pub(super) fn name_copy(&mut self, hello: &mut Hello) -> Option<InstanceId> {
        let level1 = hello.level1.as_mut()?;
        if level1.role != Role::Edit || !level1.instance_id.as_str().starts_with("anon:") {
            return None;
        }
        let holder = self.studios.of_place(&level1.instance_id, Role::Edit)?;
        let rival = holder.rival.as_ref()?;
        if rival.session != level1.session_id || holder.link.is_none() || holder.heard_at <= rival.since {
            return None;
        }
        let holder = holder.key;
        self.studios.get_mut(holder)?.rival = None;
        let name = InstanceId::from(format!("anon:{}", (self.new_id)()));
        level1.instance_id = name.clone();
        Some(name)
    }
}
