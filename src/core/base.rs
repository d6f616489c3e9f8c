//! What both sides of a script had at the same time.

use super::text::TextHash;

/// What one side has: a text, or nothing.
pub type Side = Option<TextHash>;

/// What both sides had at the same time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Base {
    /// The last such state; `None`: there never was one.
    pub last: Option<Side>,
    /// All earlier ones.
    pub earlier: Vec<Side>,
    /// The last one was seen in Studio since this plugin session began. If not, Studio may have
    /// gone back: closed without saving, a copied place.
    pub seen: bool,
    /// A run that was cut off had decided about it.
    pub cut_off: Option<Box<CutOff>>,
}

/// What a run that was cut off had decided about a script. Nobody knows how far it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutOff {
    /// The text on disk before and after.
    pub disk: (Side, Side),
    /// The text in Studio before and after.
    pub studio: (Side, Side),
    /// What it was about to do.
    pub aim: Aim,
}

/// What a run was about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// To give Studio what the disk has.
    Push,
    /// To take from Studio what was changed there under its eyes.
    Take,
    /// To take an earlier run back; then both sides count as having had this last (`None`: nothing).
    Undo(Option<Side>),
}

impl Base {
    /// Both sides have had this at the same time, in this plugin session.
    pub fn of(side: Side) -> Self {
        Self { last: Some(side), seen: true, ..Self::default() }
    }

    /// Both sides have `side` now. Whether that is news.
    pub fn agree(&mut self, side: Side) -> bool {
        self.seen = true;
        self.cut_off = None;
        let before = self.last.replace(side);
        if before == Some(side) {
            return false;
        }
        self.earlier.retain(|earlier| *earlier != side);
        self.earlier.extend(before);
        true
    }

    /// Both sides are taken to have had `side` last, and never `undone`.
    pub fn go_back(&mut self, side: Side, undone: Side) {
        self.seen = true;
        self.cut_off = None;
        self.last = Some(side);
        self.earlier.retain(|earlier| *earlier != side && *earlier != undone);
    }

    /// What counts as agreed where the sides are found like this: a run that was cut off may have
    /// brought them there.
    #[must_use]
    pub fn as_found(mut self, disk: Side, studio: Side) -> Self {
        let Some(run) = self.cut_off.take() else { return self };
        let is_one_of = |side: Side, (before, after): (Side, Side)| side == before || side == after;
        match run.aim {
            // It got what the disk had then.
            Aim::Push if studio == run.studio.1 && studio != run.studio.0 => _ = self.agree(studio),
            Aim::Take if is_one_of(studio, run.studio) => self.seen = true,
            Aim::Undo(base) if (disk, studio) == (run.disk.1, run.studio.1) => match base {
                Some(side) => self.go_back(side, run.disk.0),
                None => self = Self::default(),
            },
            Aim::Undo(_) if (disk, studio) == (run.disk.0, run.studio.0) => {}
            // Half of it was done.
            Aim::Undo(_) if is_one_of(disk, run.disk) && is_one_of(studio, run.studio) => self = Self::default(),
            Aim::Push | Aim::Take | Aim::Undo(_) => {}
        }
        self
    }

    /// Studio's state is one that both sides had before, and Studio has not moved on from.
    pub fn is_old(&self, studio: Side) -> bool {
        self.last == Some(studio) || !self.seen && self.earlier.contains(&studio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::merge::{Verdict, verdict};

    #[test]
    fn what_a_run_that_was_cut_off_had_decided_is_gone_on_with() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|text| Some(TextHash::of(text)));
        let after = |aim: Aim, disk: (Side, Side), studio: (Side, Side)| Base {
            cut_off: Some(Box::new(CutOff { disk, studio, aim })),
            seen: false,
            earlier: vec![b],
            ..Base::of(a)
        };
        let found = |base: &Base, disk: Side, studio: Side| {
            let base = base.clone().as_found(disk, studio);
            (verdict(&base, disk, studio), base.seen)
        };
        let pull = after(Aim::Take, (a, c), (c, c));
        assert_eq!(found(&pull, a, c), (Verdict::Pull, true), "not written yet");
        assert_eq!(found(&pull, c, c).0, Verdict::Agreed, "written");
        assert_eq!(found(&pull, d, c), (Verdict::Both, true), "saved since");
        assert_eq!(found(&pull, a, d), (Verdict::Pull, false), "changed in Studio since: nobody saw it");
        let back = after(Aim::Take, (a, b), (b, b));
        assert_eq!(found(&back, a, b), (Verdict::Pull, true), "an older text, but it was seen to be typed again");
        let push = after(Aim::Push, (c, c), (a, c));
        assert_eq!(found(&push, c, a).0, Verdict::Push, "not in Studio yet");
        assert_eq!(found(&push, d, c), (Verdict::Push, true), "in Studio, and the file was saved since");
        let undo = after(Aim::Undo(Some(b)), (a, b), (a, a));
        assert_eq!(found(&undo, b, a), (Verdict::Pull, true), "the file is back: Studio's text is the newer one again");
        assert_eq!(found(&undo, a, a).0, Verdict::Unchanged, "nothing was done");
        let both = after(Aim::Undo(Some(d)), (a, b), (a, c));
        assert_eq!(found(&both, a, c).0, Verdict::NoBase, "half of it was done: a person decides");
    }
}
