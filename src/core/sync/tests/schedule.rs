//! Whole runs in a small world in which both sides are edited between any two steps, and the server
//! may end between any two steps: nothing that somebody saved is ever lost.

use proptest::{collection::vec, prelude::*};

use super::{
    world::{SCRIPTS, Server, Studio, Texts, all},
    *,
};

/// What happens between two steps of a run.
#[derive(Debug, Clone)]
enum Do {
    /// A file is saved.
    Save(u128, String),
    /// A script is changed in Studio.
    Edit(u128, String),
    /// Somebody types in it and has not saved, or no longer.
    Type(u128, bool),
    /// Studio was closed without saving, and is opened as it was saved last.
    Reopen,
    /// A copy of the place is opened, as it was at the beginning.
    OpenCopy,
    /// Studio saves the place.
    SavePlace,
    /// Another branch is checked out.
    Switch,
    /// The server is killed and started again.
    Crash,
    /// Nothing.
    Wait,
}

/// A run that somebody calls.
#[derive(Debug, Clone, Copy)]
enum Call {
    Sync(SyncMode),
    Undo { partial: bool },
}

impl Call {
    fn args(self) -> SyncArgs {
        match self {
            Self::Sync(mode) => SyncArgs { mode, ..SyncArgs::default() },
            Self::Undo { partial } => {
                let mode = if partial { SyncMode::Standard } else { SyncMode::Fastfail };
                SyncArgs { mode, undo: Some(Undo::default()), ..SyncArgs::default() }
            }
        }
    }
}

fn any_text() -> impl Strategy<Value = String> {
    vec("[ab]", 4).prop_map(|lines| lines.iter().map(|line| format!("{line}\n=\n")).collect())
}

fn any_do() -> impl Strategy<Value = Do> {
    prop_oneof![
        4 => (1..=SCRIPTS, any_text()).prop_map(|(id, text)| Do::Save(id, text)),
        4 => (1..=SCRIPTS, any_text()).prop_map(|(id, text)| Do::Edit(id, text)),
        1 => (1..=SCRIPTS, proptest::bool::ANY).prop_map(|(id, typing)| Do::Type(id, typing)),
        1 => Just(Do::Reopen),
        1 => Just(Do::OpenCopy),
        1 => Just(Do::SavePlace),
        1 => Just(Do::Switch),
        1 => Just(Do::Crash),
        14 => Just(Do::Wait),
    ]
}

fn any_call() -> impl Strategy<Value = Call> {
    prop_oneof![
        3 => Just(Call::Sync(SyncMode::Standard)),
        1 => Just(Call::Sync(SyncMode::Fastfail)),
        1 => Just(Call::Sync(SyncMode::Dryrun)),
        1 => Just(Call::Undo { partial: false }),
        1 => Just(Call::Undo { partial: true }),
    ]
}

fn any_texts() -> impl Strategy<Value = Texts> {
    vec(any_text(), 3).prop_map(|texts| (1..=SCRIPTS).map(NodeId).zip(texts).collect())
}

fn act(action: &Do, server: &mut Server, studio: &mut Studio) {
    match action {
        Do::Save(id, text) => _ = server.disk.insert(NodeId(*id), text.clone()),
        Do::Edit(id, text) => _ = studio.texts.insert(NodeId(*id), text.clone()),
        Do::Type(id, true) => _ = studio.typing.insert(NodeId(*id)),
        Do::Type(id, false) => _ = studio.typing.remove(&NodeId(*id)),
        Do::Reopen | Do::OpenCopy => {
            studio.reopen(matches!(action, Do::OpenCopy));
            server.restart(true);
        }
        Do::SavePlace => studio.save_place(),
        Do::Switch => server.switch_branch(),
        Do::Crash => server.restart(false),
        Do::Wait => {}
    }
}

fn sync(server: &mut Server, studio: &mut Studio) -> Receipt {
    server.run(SyncArgs::default(), studio, &mut |_, _| {}).expect("to its end")
}

fn done(receipt: &Receipt) -> usize {
    receipt.changes.iter().filter(|change| change.result == ChangeResult::Done).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_happens_between_the_steps_no_saved_text_is_lost(
        text in any_text(),
        schedule in vec(any_do(), 0..80),
        calls in vec(any_call(), 1..8),
    ) {
        let mut studio = Studio::new(&all(&text));
        let mut server = Server::new(&all(&text), true);
        server.connect(&mut studio);
        let mut schedule = schedule.into_iter();
        for call in calls {
            let before = (server.disk.clone(), studio.texts.clone());
            let mut moved = false;
            let receipt = server.run(call.args(), &mut studio, &mut |server, studio| {
                let action = schedule.next().unwrap_or(Do::Wait);
                moved |= !matches!(action, Do::Wait);
                act(&action, server, studio);
            });
            if matches!(call, Call::Sync(SyncMode::Dryrun)) && !moved {
                prop_assert_eq!(&(server.disk.clone(), studio.texts.clone()), &before, "a dry run changes nothing");
            }
            if receipt.is_none() {
                server.connect(&mut studio);
            }
        }
        // Nobody is in its way any more.
        studio.typing.clear();
        let first = sync(&mut server, &mut studio);
        let again = sync(&mut server, &mut studio);
        if first.status == SyncStatus::Success {
            prop_assert_eq!(&server.disk, &studio.texts);
            prop_assert_eq!(again.status, SyncStatus::Empty, "{:?}", again);
        }
        prop_assert_eq!(done(&again), 0, "{:?}", again);
        prop_assert_eq!(first.unresolved, again.unresolved);
    }

    #[test]
    fn two_editors_of_one_place_on_two_branches_never_lose_a_text_of_each_other(
        text in any_text(),
        schedule in vec(any_do(), 0..60),
        calls in vec((0..2_usize, any_call()), 1..8),
    ) {
        let mut studio = Studio::new(&all(&text));
        let mut servers = [Server::new(&all(&text), false), Server::new(&all(&text), false)];
        servers.iter_mut().for_each(|server| server.connect(&mut studio));
        let mut schedule = schedule.into_iter();
        for (whose, call) in calls {
            let disk = servers[whose].disk.clone();
            let mut saved = false;
            let receipt = servers[whose].run(call.args(), &mut studio, &mut |server, studio| {
                let action = schedule.next().unwrap_or(Do::Wait);
                saved |= matches!(action, Do::Save(..) | Do::Switch | Do::Crash | Do::Reopen | Do::OpenCopy);
                act(&action, server, studio);
            });
            if matches!(call, Call::Sync(_)) && !saved {
                prop_assert_eq!(&servers[whose].disk, &disk, "nothing is taken from Studio unasked");
            }
            if receipt.is_none() {
                servers[whose].connect(&mut studio);
            }
        }
    }

    #[test]
    fn an_undo_brings_both_sides_back_and_a_sync_after_it_does_what_the_first_one_did(
        base in any_texts(), disk in any_texts(), edited in any_texts(),
        restart in proptest::option::of(proptest::bool::ANY),
    ) {
        let mut studio = Studio::new(&base);
        let mut server = Server::new(&base, true);
        server.connect(&mut studio);
        (server.disk, studio.texts) = (disk, edited);
        let before = (server.disk.clone(), studio.texts.clone());
        let first = sync(&mut server, &mut studio);
        let after = (server.disk.clone(), studio.texts.clone());
        let undo = Call::Undo { partial: false }.args();
        let undone = server.run(undo, &mut studio, &mut |_, _| {}).expect("to its end");
        if done(&first) == 0 {
            prop_assert_eq!(undone.status, SyncStatus::Error, "{:?}", undone);
            return Ok(());
        }
        prop_assert_eq!(undone.status, SyncStatus::Success, "{:?}", undone);
        prop_assert_eq!(&(server.disk.clone(), studio.texts.clone()), &before);
        if let Some(studio_too) = restart.filter(|studio_too| *studio_too) {
            // What was taken back is no old text: nothing of Studio's is overwritten with the file's.
            server.restart(studio_too);
            server.connect(&mut studio);
            let second = sync(&mut server, &mut studio);
            for change in second.changes.iter().filter(|change| change.result == ChangeResult::Done) {
                let id = change.id.expect("a node");
                prop_assert_eq!(&before.1[&id], &base[&id], "{:?}", change);
            }
            return Ok(());
        }
        if restart == Some(false) {
            // The plugin session goes on, so nothing is forgotten.
            server.restart(false);
            server.connect(&mut studio);
        }
        let second = sync(&mut server, &mut studio);
        prop_assert_eq!(done(&second), done(&first));
        prop_assert_eq!(&(server.disk.clone(), studio.texts.clone()), &after);
    }

    #[test]
    fn two_undos_take_back_two_syncs_in_order_or_hold_all_of_one(
        base in any_texts(), disk in [any_texts(), any_texts()], edited in [any_texts(), any_texts()],
        files_alone in proptest::bool::ANY,
    ) {
        let mut studio = Studio::new(&base);
        let mut server = Server::new(&base, true);
        server.connect(&mut studio);
        let mut runs = Vec::new();
        for (disk, edited) in disk.into_iter().zip(edited) {
            server.disk = disk;
            if !files_alone {
                studio.texts = edited;
            }
            let before = (server.disk.clone(), studio.texts.clone());
            if done(&sync(&mut server, &mut studio)) > 0 {
                runs.push((before, (server.disk.clone(), studio.texts.clone())));
            }
        }
        for (before, after) in runs.into_iter().rev() {
            let now = (server.disk.clone(), studio.texts.clone());
            let back = |before: &Texts, after: &Texts, now: &Texts| -> Texts {
                now.iter().map(|(id, now)| (*id, if before[id] == after[id] { now } else { &before[id] }.clone())).collect()
            };
            let expected = (back(&before.0, &after.0, &now.0), back(&before.1, &after.1, &now.1));
            let undo = Call::Undo { partial: false }.args();
            let undone = server.run(undo, &mut studio, &mut |_, _| {}).expect("to its end");
            let found = (server.disk.clone(), studio.texts.clone());
            if undone.status == SyncStatus::FastfailUnresolved && !files_alone {
                prop_assert_eq!(&found, &now, "all or nothing");
                let again = server.run(Call::Undo { partial: false }.args(), &mut studio, &mut |_, _| {});
                prop_assert_eq!(again.expect("to its end").status, SyncStatus::FastfailUnresolved);
                break;
            }
            prop_assert!(matches!(undone.status, SyncStatus::Success | SyncStatus::Empty), "{:?}", undone);
            prop_assert_eq!(&found, &expected, "{:?}", undone);
        }
    }

    #[test]
    fn with_both_sides_live_what_was_taken_from_studio_goes_back_on_both_and_is_not_taken_again(
        base in any_texts(), disk in any_texts(), edited in any_texts(),
    ) {
        let mut studio = Studio::new(&base);
        let mut server = Server::new(&base, true);
        server.connect(&mut studio);
        (server.disk, studio.texts) = (disk.clone(), edited.clone());
        let first = sync(&mut server, &mut studio);
        let after = (server.disk.clone(), studio.texts.clone());
        let both_live = Some(Undo { both_live: true, ..Undo::default() });
        let undo = SyncArgs { mode: SyncMode::Fastfail, undo: both_live, ..SyncArgs::default() };
        let undone = server.run(undo.clone(), &mut studio, &mut |_, _| {}).expect("to its end");
        if done(&first) == 0 {
            return Ok(());
        }
        prop_assert_eq!(undone.status, SyncStatus::Success, "{:?}", undone);
        for id in (1..=SCRIPTS).map(NodeId) {
            let taken = disk[&id] == base[&id] && edited[&id] != base[&id];
            let expected = if taken { (&base[&id], &base[&id]) } else { (&disk[&id], &edited[&id]) };
            prop_assert_eq!((&server.disk[&id], &studio.texts[&id]), expected, "{:?}", undone);
        }
        let unasked = Unasked { takes: true, ..Unasked::default() };
        let live = SyncArgs { unasked: Some(Box::new(unasked)), ..SyncArgs::default() };
        let mut redone = (server.disk.clone(), studio.texts.clone());
        let second = server.run(live, &mut studio, &mut |_, _| {}).expect("to its end");
        let is_push = |change: &&Change| change.direction == Direction::Push || change.result != ChangeResult::Done;
        prop_assert!(second.changes.iter().all(|change| is_push(&change)), "{:?}", second);
        for change in second.changes.iter().filter(|change| change.result == ChangeResult::Done) {
            let id = change.id.expect("a node");
            redone.1.insert(id, after.1[&id].clone());
        }
        prop_assert_eq!((server.disk.clone(), studio.texts.clone()), redone);
    }

    #[test]
    fn equal_inputs_come_to_equal_decisions(
        base in proptest::option::of(any_text()), disk in any_text(), studio in any_text(), draft in proptest::bool::ANY,
    ) {
        let decided = || {
            let texts: Vec<(NodeId, &str)> = base.iter().map(|base| (ID, base.as_str())).collect();
            let mut agreement = agreed(&texts);
            let fact = Fact { is_draft: draft, ..differs(ID, &studio) };
            let rules = SyncArgs::default().rules(true);
            verdicts::about_node(&fact, Some(&script(ID, &disk).1), &mut agreement, &rules, None)
        };
        prop_assert_eq!(decided(), decided());
    }
}
