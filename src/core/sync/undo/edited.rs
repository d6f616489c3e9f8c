//! A text that was replaced on either side, or on both.

use super::{Back, MOVED_ON, TYPING};
use crate::core::{
    journal::Line,
    merge::Side,
    protocol::{FactKind, PlanOp},
    sync::{Decision, Direction, FileWrite, PatchType, decision::Restored},
};

impl Back<'_> {
    pub(super) fn edit(&self, line: &Line) -> Option<Decision> {
        let mut change = self.change(line);
        let Some((id, view)) = self.node(line) else {
            return Some(Decision::unresolved(change, "it is not in the project any more"));
        };
        let fact = self.fact(id).filter(|fact| !fact.is_of_properties());
        let disk = view.hash;
        let studio = fact.map_or(disk, |fact| fact.studio_hash);
        (change.id, change.disk_hash, change.studio_hash) = (Some(id), disk, studio);
        change.fs_path = view.fs_path.clone();
        if fact.is_some_and(|fact| fact.is_draft) {
            return Some(Decision::unresolved(change, TYPING));
        }
        let known = |side: Side, (before, after): (Side, Side)| side == before || side == after;
        let missing = fact.is_some_and(|fact| fact.kind == FactKind::Missing);
        if missing || !known(disk, line.disk) || !known(studio, line.studio) {
            return Some(Decision::unresolved(change, MOVED_ON));
        }
        let (to_studio, to_disk) = (studio != line.studio.0, disk != line.disk.0);
        let direction = match (to_studio, to_disk) {
            (false, false) => return None,
            (true, false) => Direction::Push,
            (false, true) => Direction::Pull,
            (true, true) => Direction::Merge,
        };
        let decision = Decision::new(change.planned(direction, PatchType::Edit));
        let mut decision = decision.restores(Restored::Node(id), line.base, line.disk.1);
        if let (true, Some(expect)) = (to_studio, studio) {
            let source = self.text(line.studio.0)?.clone();
            decision = decision.does(PlanOp::SetSource { id, source, expect });
        }
        if let (true, Some(base), Some(path)) = (to_disk, disk, view.fs_path.clone()) {
            let text = Some(self.text(line.disk.0)?.clone());
            decision = decision.writes(FileWrite::Replace { path, base, text });
        }
        Some(decision)
    }
}
