//! What two sides and the text they last agreed on come to: a pure function of the three.
//!
//! | the files | Studio | verdict |
//! |---|---|---|
//! | equal to Studio | equal to the files | `Unchanged`, or `Agreed` where that is news |
//! | changed | as agreed (at first contact also: as agreed earlier) | `Push` |
//! | as agreed | changed | `Pull` |
//! | changed | changed | `Both`: merged by lines, or a conflict |
//! | gone, or changed | changed, or gone | `Gone`: a conflict that no merge settles |
//! | nothing agreed, only the files have it | | `Push` |
//! | nothing agreed, only Studio has it | | `MadeInStudio` |
//! | nothing agreed, both have it | | `NoBase`: a conflict |
//!
//! To have nothing is a state like any other: what is gone was changed.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::TextHash;

/// What one side has: a text, or nothing.
pub type Side = Option<TextHash>;

/// Texts above this are not merged.
pub const MAX_MERGED_BYTES: usize = 1 << 20;

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

/// What is to be done about one script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Both sides have what they had.
    Unchanged,
    /// Both sides have the same, which is news.
    Agreed,
    /// Studio gets what the files have.
    Push,
    /// The files get what Studio has.
    Pull,
    /// Both changed the text.
    Both,
    /// One side has it no longer, and the other changed it.
    Gone,
    /// Both have it, and nothing says which is newer.
    NoBase,
    /// Only Studio has it, and the files never did.
    MadeInStudio,
}

/// Decide by hashes alone.
pub fn verdict(base: &Base, disk: Side, studio: Side) -> Verdict {
    match base.last {
        Some(last) if disk == studio && last == disk => Verdict::Unchanged,
        _ if disk == studio => Verdict::Agreed,
        _ if base.is_old(studio) => Verdict::Push,
        Some(last) if last == disk => match studio {
            Some(_) if disk.is_none() => Verdict::MadeInStudio,
            _ => Verdict::Pull,
        },
        Some(_) if disk.is_some() && studio.is_some() => Verdict::Both,
        Some(_) => Verdict::Gone,
        None if studio.is_none() => Verdict::Push,
        None if disk.is_none() => Verdict::MadeInStudio,
        None => Verdict::NoBase,
    }
}

/// What a merge by lines came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// One text with the changes of both.
    Clean(String),
    /// Both changed the same lines.
    Conflict(Vec<Hunk>),
    /// Too large to be compared.
    TooLarge,
}

/// Lines that both sides changed, each in its own way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hunk {
    /// Where they begin in the file, from 1.
    pub line: usize,
    /// As both last had them.
    pub base: String,
    /// As the file has them.
    pub disk: String,
    /// As Studio has them.
    pub studio: String,
}

/// Merge two texts that came from `base`, line by line. Normalised texts only.
pub fn merge(base: &str, disk: &str, studio: &str) -> Merge {
    if disk == studio || base == studio {
        return Merge::Clean(disk.to_owned());
    }
    if base == disk {
        return Merge::Clean(studio.to_owned());
    }
    if [base, disk, studio].iter().any(|text| text.len() > MAX_MERGED_BYTES) {
        return Merge::TooLarge;
    }
    let marks = Marks::absent_from([base, disk, studio]);
    let mut options = diffy::MergeOptions::new();
    options
        .set_conflict_marker_length(marks.length)
        .set_conflict_style(diffy::ConflictStyle::Diff3)
        .set_incomplete_hunk_style(diffy::IncompleteHunkStyle::Git);
    match options.merge(base, disk, studio) {
        Ok(merged) => Merge::Clean(merged),
        Err(marked) => Merge::Conflict(marks.hunks(&marked)),
    }
}

/// Conflict marks so long that no text holds them.
struct Marks {
    length: usize,
}

impl Marks {
    fn absent_from(texts: [&str; 3]) -> Self {
        let holds = |length: usize| {
            ['<', '|', '=', '>'].iter().any(|mark| {
                let mark = mark.to_string().repeat(length);
                texts.iter().any(|text| text.contains(&mark))
            })
        };
        let mut length = 7;
        while holds(length) {
            length *= 2;
        }
        Self { length }
    }

    fn hunks(&self, marked: &str) -> Vec<Hunk> {
        let [ours, original, theirs, end] = ['<', '|', '=', '>'].map(|mark| mark.to_string().repeat(self.length));
        let mut hunks = Vec::new();
        let mut line = 1;
        let mut rest = marked;
        while let Some((before, after)) = rest.split_once(&ours) {
            line += before.matches('\n').count();
            let section = |text: &'_ str, mark: &str| -> Option<(Range<usize>, usize)> {
                let begin = text.find('\n')? + 1;
                let stop = text.find(mark)?;
                Some((begin..stop, stop + mark.len()))
            };
            let mut texts = Vec::new();
            let mut at = after;
            for mark in [&original, &theirs, &end] {
                let Some((range, next)) = section(at, mark) else { return hunks };
                texts.push(at.get(range).unwrap_or_default().to_owned());
                at = at.get(next..).unwrap_or_default();
            }
            rest = at.split_once('\n').map_or("", |(_, rest)| rest);
            let Ok([disk, base, studio]) = <[String; 3]>::try_from(texts) else { return hunks };
            let lines = disk.lines().count();
            hunks.push(Hunk { line, base, disk, studio });
            line += lines;
        }
        hunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clean(base: &str, disk: &str, studio: &str) -> String {
        match merge(base, disk, studio) {
            Merge::Clean(text) => text,
            other => panic!("not clean: {other:?}"),
        }
    }

    fn hunks(base: &str, disk: &str, studio: &str) -> Vec<Hunk> {
        match merge(base, disk, studio) {
            Merge::Conflict(hunks) => hunks,
            other => panic!("not a conflict: {other:?}"),
        }
    }

    #[test]
    fn changes_of_different_lines_are_both_in_the_merge() {
        let base = "local a = 1\nlocal b = 2\nlocal c = 3\nreturn a + b + c\n";
        let disk = base.replace("a = 1", "a = 10");
        let studio = base.replace("c = 3", "c = 30");
        assert_eq!(clean(base, &disk, &studio), "local a = 10\nlocal b = 2\nlocal c = 30\nreturn a + b + c\n");
    }

    #[test]
    fn the_same_change_on_both_sides_is_no_conflict() {
        let base = "a\nb\nc\nd\ne\n";
        assert_eq!(clean(base, "a\nB\nc\nd\nE\n", "a\nB\nc\nd\ne\n"), "a\nB\nc\nd\nE\n");
        assert_eq!(clean(base, "a\nx\nb\nc\nd\ne\n", "a\nx\nb\nc\nd\ne!\n"), "a\nx\nb\nc\nd\ne!\n");
    }

    #[test]
    fn lines_that_both_changed_are_a_hunk_with_the_place_in_the_file() {
        let base = "1\n2\n3\n4\n5\n6\n7\n";
        let found = hunks(base, "0\n1\n2\n3\ndisk\n5\n6\n7\n", "1\n2\n3\nstudio\n5\n6\n7!\n");
        let expected = Hunk { line: 5, base: "4\n".into(), disk: "disk\n".into(), studio: "studio\n".into() };
        assert_eq!(found, [expected]);
        let two = hunks(base, "one\n2\n3\n4\n5\n6\nseven", "uno\n2\n3\n4\n5\n6\nsiete\n");
        assert_eq!(two.iter().map(|hunk| hunk.line).collect::<Vec<_>>(), [1, 7]);
    }

    #[test]
    fn marks_in_a_text_are_not_taken_for_ours() {
        let noise = "<<<<<<< ours\n=======\n>>>>>>> theirs\n||||||||||||||||||||\n";
        let base = format!("{noise}mid\n");
        let found = hunks(&base, &format!("{noise}disk\n"), &format!("{noise}studio\n"));
        assert_eq!((found.len(), found[0].line, found[0].disk.as_str()), (1, 5, "disk\n"));
    }

    #[test]
    fn what_is_too_large_is_not_merged() {
        let large = "x\n".repeat(MAX_MERGED_BYTES / 2 + 1);
        assert_eq!(merge("a", &large, "b"), Merge::TooLarge);
        assert_eq!(merge(&large, &large, "b"), Merge::Clean("b".into()), "nothing has to be compared");
    }

    #[test]
    fn the_table_of_verdicts() {
        let [a, b, c] = ["a", "b", "c"].map(|text| Some(TextHash::of(text)));
        let base = Base::of(a);
        let rows = [
            (&base, a, a, Verdict::Unchanged),
            (&base, b, b, Verdict::Agreed),
            (&base, None, None, Verdict::Agreed),
            (&base, b, a, Verdict::Push),
            (&base, None, a, Verdict::Push),
            (&base, a, b, Verdict::Pull),
            (&base, a, None, Verdict::Pull),
            (&base, b, c, Verdict::Both),
            (&base, None, b, Verdict::Gone),
            (&base, b, None, Verdict::Gone),
            (&Base::default(), a, a, Verdict::Agreed),
            (&Base::default(), a, b, Verdict::NoBase),
            (&Base::default(), a, None, Verdict::Push),
            (&Base::default(), None, a, Verdict::MadeInStudio),
            (&Base::of(None), a, None, Verdict::Push),
            (&Base::of(None), None, a, Verdict::MadeInStudio),
        ];
        for (base, disk, studio, expected) in rows {
            assert_eq!(verdict(base, disk, studio), expected, "{base:?} {disk:?} {studio:?}");
        }
    }

    #[test]
    fn at_first_contact_an_earlier_agreed_state_of_studio_is_old() {
        let [a, b, c] = ["a", "b", "c"].map(|text| Some(TextHash::of(text)));
        let mut base = Base { last: Some(None), ..Base::default() };
        assert!(base.agree(a) && base.agree(b) && !base.agree(b));
        base.seen = false;
        for old in [None, a, b] {
            assert_eq!(verdict(&base, c, old), Verdict::Push, "{old:?}");
        }
        assert_eq!(verdict(&base, b, a), Verdict::Push, "nobody edited: Studio went back");
        base.seen = true;
        assert_eq!(verdict(&base, c, a), Verdict::Both);
        assert_eq!(verdict(&base, b, a), Verdict::Pull, "a person took the change back");
        assert_eq!(verdict(&base, b, None), Verdict::Pull);
    }

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

    fn lines() -> impl Strategy<Value = String> {
        "([abc]{0,1}\n){0,6}[abc]{0,1}"
    }

    proptest! {
        #[test]
        fn a_merge_never_panics_and_knows_no_sides(base in lines(), disk in lines(), studio in lines()) {
            let forth = merge(&base, &disk, &studio);
            let back = merge(&base, &studio, &disk);
            match (&forth, &back) {
                (Merge::Clean(one), Merge::Clean(other)) => prop_assert_eq!(one, other),
                (Merge::Conflict(one), Merge::Conflict(other)) => {
                    prop_assert_eq!(one.len(), other.len());
                    prop_assert!(!one.is_empty());
                }
                _ => prop_assert!(false, "{:?} {:?}", forth, back),
            }
        }

        #[test]
        fn a_clean_merge_holds_every_line_that_one_side_added(base in lines(), disk in lines(), studio in lines()) {
            if let Merge::Clean(merged) = merge(&base, &disk, &studio) {
                for side in [&disk, &studio] {
                    for line in side.lines().filter(|line| !base.lines().any(|old| old == *line)) {
                        prop_assert!(merged.lines().any(|merged| merged == line), "{line:?} is not in {merged:?}");
                    }
                }
            }
        }
    }
}
