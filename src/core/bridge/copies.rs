//! Copies of a place that was never published: the name of such a place lies in its file, so a copy
//! brings the same one.

use super::Bridge;
use crate::core::{
    calls::Moment,
    ids::{InstanceId, SessionId},
    protocol::{Hello, Role},
    studios::StudioKey,
};

impl Bridge {
    /// `session` wants a place that a live window holds.
    pub(super) fn note_rival(&mut self, now: Moment, holder: StudioKey, session: SessionId) {
        let Some(studio) = self.studios.get_mut(holder) else { return };
        if studio.rival.as_ref().is_none_or(|(rival, _)| *rival != session) {
            studio.rival = Some((session, now));
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
        let (rival, since) = holder.rival.as_ref()?;
        if *rival != level1.session_id || holder.link.is_none() || holder.heard_at <= *since {
            return None;
        }
        let name = InstanceId::from(format!("anon:{}", (self.new_id)()));
        level1.instance_id = name.clone();
        Some(name)
    }
}
