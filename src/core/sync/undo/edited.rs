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
        // What was taken from Studio while both sides are live would be taken again.
        let taken = line.direction == Direction::Pull && self.both_live;
        let before = if taken { line.disk.0 } else { line.studio.0 };
        // A side that the run left alone may have moved on: nothing is done to it.
        let (wrote_disk, wrote_studio) = (line.disk.0 != line.disk.1, before != line.studio.1);
        let known = |side: Side, before: Side, after: Side| side == before || side == after;
        let held = wrote_disk && !known(disk, line.disk.0, line.disk.1)
            || wrote_studio && !known(studio, before, line.studio.1);
        if held || fact.is_some_and(|fact| fact.kind == FactKind::Missing) {
            return Some(Decision::unresolved(change, MOVED_ON));
        }
        if !wrote_studio && !known(studio, line.studio.0, line.studio.1) {
            change.studio_hash = None; // it stays, whatever it is
        }
        let (to_studio, to_disk) = (wrote_studio && studio != before, wrote_disk && disk != line.disk.0);
        // Two texts that would be merged again at once are left to a person.
        let base = line.base.filter(|_| !self.both_live || before == line.disk.0 || line.direction == Direction::Push);
        let direction = match (to_studio, to_disk) {
            (false, false) => return Some(Decision::new(change).restores(Restored::Node(id), base, line.disk.1)),
            (true, false) => Direction::Push,
            (false, true) => Direction::Pull,
            (true, true) => Direction::Merge,
        };
        let decision = Decision::new(change.planned(direction, PatchType::Edit));
        // The file's own text may be newer than any that is kept.
        let decision = decision.keeps(view.source.as_deref().unwrap_or_default());
        let mut decision = decision.restores(Restored::Node(id), base, line.disk.1);
        if let (true, Some(expect)) = (to_studio, studio) {
            let source = self.text(before)?.clone();
            decision = decision.does(PlanOp::SetSource { id, source, expect });
        }
        if let (true, Some(base), Some(path)) = (to_disk, disk, view.fs_path.clone()) {
            let text = Some(self.text(line.disk.0)?.clone());
            decision = decision.writes(FileWrite::Replace { path, base, text });
        }
        Some(decision)
    }
}
