//! Play tests: what must wait for their end.

use super::Bridge;
use crate::core::{error::ToolError, ids::RunId, protocol::SyncMode, studios::StudioKey, sync::SyncArgs};

impl Bridge {
    /// What changes the place or its files is refused during a play test: what is played is a copy that
    /// would not see it, and what is edited meanwhile waits for edit mode.
    pub(super) fn refuse_in_play(&self, key: StudioKey, args: &SyncArgs) -> Option<ToolError> {
        let studio = self.studios.get(key)?;
        (args.mode != SyncMode::Dryrun && self.is_played(studio)).then(|| ToolError::in_play(&studio.window))
    }
    /// A play test has begun while a run was comparing: it changes nothing.
    pub(super) fn play_came_between(&self, run: &RunId) -> Option<ToolError> {
        let studio = self.studios.get(self.studio_of(run)?)?;
        self.is_played(studio).then(|| ToolError::in_play(&studio.window))
    }
}
