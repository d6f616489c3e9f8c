//! What a sync did is taken back, at once or after one side has moved on; and equal inputs come to
//! equal decisions in whatever order they come.

use super::*;
use crate::core::journal::Line;

/// What an undo is expected to leave of the sides as they were before the sync: what the sync had
/// deleted is on both sides again.
fn back(before: &(Files, Files), lines: &[Line], world: &World) -> (Files, Files) {
    let (mut disk, mut studio) = before.clone();
    for line in lines.iter().filter(|line| line.patch_type == PatchType::Remove) {
        let hash = line.studio.0.or(line.disk.0).expect("a script");
        let text = world.servers[0].store.text(hash).expect("the journal has it");
        let name = name_of(line);
        for side in [&mut disk, &mut studio] {
            side.insert(name.clone(), text.clone());
        }
    }
    (disk, studio)
}

fn name_of(line: &Line) -> String {
    line.key.as_ref().and_then(|key| key.split_last()).expect("it has a key").1
}

/// All names that a change is about.
fn names_of(line: &Line) -> BTreeSet<String> {
    [name_of(line)].into_iter().chain(line.was.as_ref().map(|was| was.name.clone())).collect()
}

impl World {
    /// People act on both sides, and a sync settles what can be settled. Both sides before it, and
    /// what it did.
    fn synced(&mut self, edits: &[Do]) -> ((Files, Files), Vec<Line>) {
        edits.iter().for_each(|edit| self.act(0, edit));
        let before = self.sides(0);
        let args = SyncArgs { allow_removals: true, ..SyncArgs::default() };
        let receipt = self.run(0, args, &mut |_| {}).receipt.expect("nothing ends it");
        let lines = receipt.journal.map(|id| self.servers[0].store.entry(id).changes.clone()).unwrap_or_default();
        (before, lines)
    }

    fn undo(&mut self, partial: bool) -> Receipt {
        let args = self.args(0, &Call::Undo { partial, back: None }, None);
        self.run(0, args, &mut |_| {}).receipt.expect("nothing ends it")
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn an_undo_brings_both_sides_back_and_a_sync_after_it_does_the_same_again(
        files in any_files(), edits in vec(any_edit(), 1..9), restart in proptest::bool::ANY,
    ) {
        let mut world = World::new(&files, 1);
        let (before, lines) = world.synced(&edits);
        let after = world.sides(0);
        let undone = world.undo(false);
        if lines.is_empty() {
            prop_assert_eq!(undone.status, SyncStatus::Error, "there is nothing to take back");
            return Ok(());
        }
        prop_assert_eq!(undone.status, SyncStatus::Success, "{:#?}", undone);
        let back = back(&before, &lines, &world);
        prop_assert_eq!(world.sides(0), back.clone(), "{:#?} {:#?}", lines, undone);
        if restart {
            world.connect(0);
            prop_assert_eq!(world.sides(0), back);
        }
        let (_, again) = world.synced(&[]);
        let (disk, studio) = world.sides(0);
        let deleted: BTreeSet<String> =
            lines.iter().filter(|line| line.patch_type == PatchType::Remove).flat_map(names_of).collect();
        for name in NAMES.iter().filter(|name| !deleted.contains(**name)) {
            let now = (disk.get(*name), studio.get(*name));
            prop_assert_eq!(now, (after.0.get(*name), after.1.get(*name)), "{}: {:#?} {:#?}", name, lines, again);
        }
    }

    #[test]
    fn what_was_renamed_again_and_again_goes_back_step_by_step_and_forward_again_at_once(
        files in any_files(), moves in vec((any_name(), any_name()), 1..6),
    ) {
        let mut world = World::new(&files, 1);
        let mut before = Vec::new();
        // A name is one file's alone: what has another's is not renamed back over it.
        let mut whose: BTreeMap<&str, &str> = files.keys().map(|name| (name.as_str(), name.as_str())).collect();
        for (from, to) in moves {
            let Some(one) = whose.get(from).copied().filter(|_| world.sides(0).0.contains_key(from)) else { continue };
            if *whose.entry(to).or_insert(one) != one {
                continue;
            }
            let ((_, studio), lines) = world.synced(&[Do::Move(from, to)]);
            if lines.iter().any(|line| line.patch_type != PatchType::Rename) {
                return Ok(());
            }
            before.extend((!lines.is_empty()).then_some(studio));
        }
        let after = world.sides(0);
        for studio in before.iter().rev() {
            let undone = world.undo(false);
            prop_assert_eq!(undone.status, SyncStatus::Success, "{:#?}", undone);
            prop_assert_eq!(&world.sides(0), &(after.0.clone(), studio.clone()));
        }
        prop_assert_eq!(world.undo(false).status, SyncStatus::Error, "nothing is left");
        _ = world.synced(&[]);
        prop_assert_eq!(world.sides(0), after);
    }

    #[test]
    fn what_moved_on_since_is_held_by_an_undo_and_the_rest_goes_back(
        files in any_files(), edits in vec(any_edit(), 1..9), later in vec((any_name(), proptest::bool::ANY), 0..3),
    ) {
        let mut world = World::new(&files, 1);
        let (before, lines) = world.synced(&edits);
        let (mut on_disk, mut in_studio) = (BTreeSet::new(), BTreeSet::new());
        for (number, (name, is_file)) in later.iter().enumerate() {
            let (disk, studio) = world.sides(0);
            let text = format!("typed later, {number}\n");
            if *is_file && disk.contains_key(*name) {
                world.act(0, &Do::Save(name, text));
                on_disk.insert((*name).to_owned());
            } else if studio.contains_key(*name) {
                world.act(0, &Do::Edit(name, text));
                in_studio.insert((*name).to_owned());
            }
        }
        let moved_on = world.sides(0);
        // Of what was made or renamed in Studio, the file stays as it is anyway; of a text, the side that
        // the sync had left alone.
        let is_held = |line: &Line| {
            let (names, is_edit) = (names_of(line), line.patch_type == PatchType::Edit);
            let wrote = |(before, after): (Option<TextHash>, Option<TextHash>)| before != after;
            !names.is_disjoint(&in_studio) && (!is_edit || wrote(line.studio))
                || !names.is_disjoint(&on_disk) && is_edit && wrote(line.disk)
        };
        if lines.iter().any(is_held) {
            let refused = world.undo(false);
            prop_assert_ne!(refused.status, SyncStatus::Success, "{:#?}", refused);
            prop_assert_eq!(world.sides(0), moved_on.clone(), "all or nothing");
        }
        let undone = world.undo(true);
        let now = world.sides(0);
        let back = back(&before, &lines, &world);
        for name in NAMES {
            let line = lines.iter().find(|line| names_of(line).contains(name));
            let goes_back = line.is_some_and(|line| !is_held(line));
            let disk = if goes_back && !on_disk.contains(name) { &back.0 } else { &moved_on.0 };
            let studio = if goes_back && !in_studio.contains(name) { &back.1 } else { &moved_on.1 };
            let expected = (disk.get(name), studio.get(name));
            prop_assert_eq!((now.0.get(name), now.1.get(name)), expected, "{}: {:#?} {:#?}", name, lines, undone);
        }
        world.comes_to_rest(0);
    }

    #[test]
    fn differences_come_to_equal_decisions_in_whatever_order_they_are_told(
        files in any_files(), schedule in vec(any_do(), 1..20), allow_removals in proptest::bool::ANY,
    ) {
        let mut world = World::new(&files, 1);
        schedule.iter().for_each(|action| world.act(0, action));
        world.connect(0);
        let mut outcomes = Vec::new();
        for is_reversed in [false, true] {
            let mut world = world.clone();
            world.studio.is_reversed = is_reversed;
            let args = SyncArgs { allow_removals, ..SyncArgs::default() };
            let receipt = world.run(0, args, &mut |_| {}).receipt.expect("nothing ends it");
            let mut said: Vec<String> = receipt.changes.iter().map(|change| format!("{change:?}")).collect();
            said.sort();
            outcomes.push((receipt.status, said, world.sides(0)));
        }
        prop_assert_eq!(&outcomes[0], &outcomes[1]);
    }
}
