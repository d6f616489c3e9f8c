//! The promise of sync: whatever happens in whatever order, every text that a side ever had is on disk,
//! in Studio, in a base or in the journal, unless a person took it away.
//!
//! The machine is the real one; the disk with its branches, Studio with its editors and its saved
//! places, and the store are models. People and other programs act before each step of a run, and the
//! server is killed between any two things that it does. `ROJO_MCP_SYNC_CASES` asks for more cases.

mod back;
mod server;
mod store;
mod studio;
mod world;

use std::{cell::RefCell, collections::BTreeMap};

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::core::{error::ToolError, journal::Entry};
use server::Server;
use studio::{Script, Studio};
use world::World;

const NAMES: [&str; 4] = ["A", "B", "C", "D"];

/// Of a text, worked out once: there are few, and they are asked about at every step.
fn hash(text: &str) -> TextHash {
    thread_local!(static KNOWN: RefCell<HashMap<String, TextHash>> = RefCell::default());
    KNOWN.with_borrow_mut(|known| {
        if let Some(hash) = known.get(text) {
            return *hash;
        }
        *known.entry(text.to_owned()).or_insert(TextHash::of(text))
    })
}

/// Texts by name.
type Files = BTreeMap<String, String>;

/// What a person or another program does.
#[derive(Debug, Clone)]
enum Do {
    /// A file is saved, deleted or renamed.
    Save(&'static str, String),
    Delete(&'static str),
    Move(&'static str, &'static str),
    /// A script is changed, made, deleted or renamed in Studio.
    Edit(&'static str, String),
    Make(&'static str, String),
    Remove(&'static str),
    Rename(&'static str, &'static str),
    /// Somebody types in an editor; what was typed is saved, or thrown away.
    Type(&'static str, String),
    /// The same, with what the file says.
    TypeFile(&'static str),
    SaveDraft(&'static str),
    DropDraft(&'static str),
    /// Studio saves the place.
    SavePlace,
    /// Studio was closed without saving, and is opened as it was saved last.
    Reopen,
    /// A copy of the place is opened, as it was at the beginning.
    OpenCopy,
    /// What is on disk is committed, or another branch is checked out.
    Commit,
    Switch,
    /// The watcher tells what is on disk.
    Watch,
    /// Another program holds a file, or no longer.
    Lock(&'static str),
    /// Studio refuses to change a script, or no longer.
    Refuse(&'static str),
    /// The store's disk is full, or no longer.
    Fill,
    /// The store drops what nothing needs.
    Tend,
    /// The server is killed, after so many more things that it does.
    Kill(u32),
}

/// A run that somebody calls, or that live mode begins.
#[derive(Debug, Clone)]
enum Call {
    Sync {
        mode: SyncMode,
        allow_removals: bool,
    },
    Undo {
        partial: bool,
        back: Option<u64>,
    },
    Live {
        takes: bool,
    },
    /// One of what was left is settled.
    Resolve {
        which: usize,
        take: Forced,
    },
    /// All that was left is settled one way.
    Override(OverrideDirection),
}

/// Few of them, so that people come to the same ones, and many, so that none is kept by chance.
fn any_text() -> impl Strategy<Value = String> {
    let lines = prop_oneof![vec("[ab]", 3), vec("[a-z]", 3)];
    lines.prop_map(|lines| lines.iter().map(|line| format!("{line}\n=\n")).collect())
}

fn any_name() -> impl Strategy<Value = &'static str> {
    select(&NAMES[..])
}

/// What a person does to a text.
fn any_edit() -> impl Strategy<Value = Do> {
    prop_oneof![
        5 => (any_name(), any_text()).prop_map(|(name, text)| Do::Save(name, text)),
        5 => (any_name(), any_text()).prop_map(|(name, text)| Do::Edit(name, text)),
        1 => any_name().prop_map(Do::Delete),
        1 => (any_name(), any_name()).prop_map(|(from, to)| Do::Move(from, to)),
        1 => (any_name(), any_text()).prop_map(|(name, text)| Do::Make(name, text)),
        1 => any_name().prop_map(Do::Remove),
        1 => (any_name(), any_name()).prop_map(|(from, to)| Do::Rename(from, to)),
    ]
}

fn any_do() -> impl Strategy<Value = Do> {
    prop_oneof![
        15 => any_edit(),
        2 => (any_name(), any_text()).prop_map(|(name, text)| Do::Type(name, text)),
        1 => any_name().prop_map(Do::TypeFile),
        1 => any_name().prop_map(Do::SaveDraft),
        1 => any_name().prop_map(Do::DropDraft),
        1 => Just(Do::SavePlace),
        1 => Just(Do::Reopen),
        1 => Just(Do::OpenCopy),
        1 => Just(Do::Commit),
        1 => Just(Do::Switch),
        1 => Just(Do::Watch),
        1 => any_name().prop_map(Do::Lock),
        1 => any_name().prop_map(Do::Refuse),
        1 => Just(Do::Fill),
        1 => Just(Do::Tend),
        3 => (0..9_u32).prop_map(Do::Kill),
    ]
}

fn any_call() -> impl Strategy<Value = Call> {
    let mode = select(&[SyncMode::Standard, SyncMode::Standard, SyncMode::Fastfail, SyncMode::Dryrun][..]);
    let take = prop_oneof![Just(Forced::Push), Just(Forced::Pull), any_text().prop_map(Forced::Text)];
    let way = select(&[OverrideDirection::Push, OverrideDirection::Pull][..]);
    let any_bool = proptest::bool::ANY;
    prop_oneof![
        4 => (mode, any_bool).prop_map(|(mode, allow_removals)| Call::Sync { mode, allow_removals }),
        2 => (any_bool, proptest::option::of(0..3_u64)).prop_map(|(partial, back)| Call::Undo { partial, back }),
        2 => any_bool.prop_map(|takes| Call::Live { takes }),
        1 => (0..3_usize, take).prop_map(|(which, take)| Call::Resolve { which, take }),
        1 => way.prop_map(Call::Override),
    ]
}

/// Some things, each after so many steps in which nothing happens.
fn any_schedule() -> impl Strategy<Value = Vec<(usize, Do)>> {
    vec((0..9_usize, any_do()), 0..30)
}

fn any_files() -> impl Strategy<Value = Files> {
    vec(proptest::option::weighted(0.8, any_text()), NAMES.len()).prop_map(|texts| {
        NAMES.iter().zip(texts).filter_map(|(name, text)| Some(((*name).to_owned(), text?))).collect()
    })
}

fn cases() -> ProptestConfig {
    let asked = std::env::var("ROJO_MCP_SYNC_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig::with_cases(asked.unwrap_or(150))
}

impl World {
    fn act(&mut self, whose: usize, action: &Do) {
        match action {
            Do::Kill(after) => self.servers[whose].fuse.0 = Some(*after),
            Do::Tend => self.servers[whose].store.tend(),
            Do::Watch => self.servers[whose].read_disk(),
            action => self.moved_by(|world| world.move_on(whose, action)),
        }
        self.check(&format!("{action:?}"));
    }

    fn move_on(&mut self, whose: usize, action: &Do) {
        let (server, studio) = (&mut self.servers[whose], &mut self.studio);
        match action {
            Do::Save(name, text) => _ = server.disk.insert((*name).to_owned(), text.clone()),
            Do::Delete(name) => _ = server.disk.remove(*name),
            Do::Move(from, to) => {
                if let Some(text) = server.disk.remove(*from) {
                    server.disk.insert((*to).to_owned(), text);
                }
            }
            Do::Edit(name, text) => {
                if let Some(script) = studio.find_mut(name) {
                    (script.source, script.draft) = (text.clone(), None);
                }
            }
            Do::Make(name, text) => studio.make(name, text),
            Do::Remove(name) => studio.delete(name),
            Do::Rename(from, to) => studio.rename(from, to),
            Do::Type(name, text) => {
                if let Some(script) = studio.find_mut(name) {
                    script.draft = Some(text.clone());
                }
            }
            Do::TypeFile(name) => {
                if let Some(script) = studio.find_mut(name) {
                    script.draft = server.disk.get(*name).cloned();
                }
            }
            Do::SaveDraft(name) => studio.find_mut(name).into_iter().for_each(Script::save_draft),
            Do::DropDraft(name) => studio.find_mut(name).into_iter().for_each(|script| script.draft = None),
            Do::SavePlace => studio.save_place(),
            Do::Reopen | Do::OpenCopy => self.reopen(matches!(action, Do::OpenCopy)),
            Do::Commit => server.commit(),
            Do::Switch => server.switch_branch(),
            Do::Lock(name) => toggle(&mut server.locked, name),
            Do::Refuse(name) => toggle(&mut studio.refuses, name),
            Do::Fill => server.store.is_broken = !server.store.is_broken,
            Do::Kill(_) | Do::Tend | Do::Watch => unreachable!("they change no side"),
        }
    }

    /// The arguments of a call, where `last` is the receipt before it.
    fn args(&self, whose: usize, call: &Call, last: Option<&Receipt>) -> SyncArgs {
        let server = &self.servers[whose];
        let left = last.iter().flat_map(|receipt| &receipt.changes);
        let left = left.filter(|change| change.result == ChangeResult::Unresolved);
        // Of what an undo holds there may be nothing to name.
        let name_of = |change: &Change| change.id.map(OpId::from).or_else(|| change.temp_id.clone().map(OpId::from));
        match call {
            Call::Sync { mode, allow_removals } => {
                SyncArgs { mode: *mode, allow_removals: *allow_removals, ..SyncArgs::default() }
            }
            Call::Undo { partial, back } => {
                let last = u64::try_from(server.store.entries()).expect("few");
                let journal = back.and_then(|back| last.checked_sub(back + 1));
                let undo = Undo { journal, both_live: false };
                let mode = if *partial { SyncMode::Standard } else { SyncMode::Fastfail };
                SyncArgs { mode, undo: Some(undo), ..SyncArgs::default() }
            }
            Call::Live { takes } => {
                let ids = self.studio.deleted.iter().filter_map(|name| Some(server.tree.nodes.get(name)?.0));
                let unasked = Unasked { scope: None, takes: *takes, deleted: ids.collect() };
                SyncArgs { unasked: Some(Box::new(unasked)), ..SyncArgs::default() }
            }
            Call::Resolve { which, take } => {
                let of = |change: &Change| Resolution {
                    id: name_of(change).expect("it was looked for"),
                    take: take.clone(),
                    disk: change.disk_hash,
                    studio: change.studio_hash,
                };
                let resolution = left.filter(|change| name_of(change).is_some()).nth(*which).map(of);
                SyncArgs { resolution, ..SyncArgs::default() }
            }
            Call::Override(way) => {
                let overrides = left.filter_map(name_of).map(|id| Override::new(id, *way)).collect();
                SyncArgs { overrides, ..SyncArgs::default() }
            }
        }
    }

    /// Carry out a call, while things happen.
    fn call(
        &mut self,
        whose: usize,
        call: &Call,
        last: &mut Option<Receipt>,
        next: &mut dyn FnMut() -> Option<Do>,
    ) -> bool {
        let args = self.args(whose, call, last.as_ref());
        let before = self.sides(whose);
        let ran = self.run(whose, args, &mut |world| {
            if let Some(action) = next() {
                world.act(whose, &action);
            }
        });
        if let (Call::Sync { mode: SyncMode::Dryrun, .. }, false) = (call, ran.moved) {
            assert_eq!(self.sides(whose), before, "a dry run changes nothing");
        }
        if ran.receipt.is_none() {
            self.connect(whose);
        }
        *last = ran.receipt;
        ran.moved
    }

    /// The files of a server, and Studio's scripts.
    fn sides(&self, whose: usize) -> (Files, Files) {
        let scripts = self.studio.scripts.iter().map(|script| (script.name.clone(), script.source.clone()));
        (self.servers[whose].disk.clone(), scripts.collect())
    }

    /// Nobody is in the way any more.
    fn settle_down(&mut self) {
        self.moved_by(|world| {
            world.studio.refuses.clear();
            world.studio.scripts.iter_mut().for_each(Script::save_draft);
            for server in &mut world.servers {
                server.locked.clear();
                server.store.is_broken = false;
                server.fuse.0 = None;
            }
        });
    }

    fn sync(&mut self, whose: usize, mode: SyncMode) -> Receipt {
        let args = SyncArgs { mode, ..SyncArgs::default() };
        self.run(whose, args, &mut |_| {}).receipt.expect("nothing ends it")
    }

    /// What a dry run says is what the next sync does, and one after that does nothing.
    fn comes_to_rest(&mut self, whose: usize) {
        let said = self.sync(whose, SyncMode::Dryrun);
        assert_eq!(said, self.sync(whose, SyncMode::Dryrun), "equal verdicts for equal inputs");
        let done = self.sync(whose, SyncMode::Standard);
        assert_eq!(said.changes.len(), done.changes.len(), "{said:#?} {done:#?}");
        for (said, done) in said.changes.iter().zip(&done.changes) {
            let expected = if said.result == ChangeResult::Planned { ChangeResult::Done } else { said.result };
            assert_eq!((done.result, &done.path), (expected, &said.path), "{said:#?} {done:#?}");
        }
        let again = self.sync(whose, SyncMode::Standard);
        if matches!(done.status, SyncStatus::Success | SyncStatus::Empty) {
            assert_eq!(again.status, SyncStatus::Empty, "{done:#?} {again:#?}");
            assert_eq!(self.differing(whose), BTreeSet::new(), "{done:#?}");
        }
        assert_eq!(self.sync(whose, SyncMode::Standard).journal, None, "{done:#?} {again:#?}");
    }
}

fn toggle(set: &mut BTreeSet<String>, name: &str) {
    if !set.remove(name) {
        set.insert(name.to_owned());
    }
}

/// One thing of a schedule at a time.
fn in_turn(schedule: Vec<(usize, Do)>) -> impl FnMut() -> Option<Do> {
    let waits = schedule.into_iter().flat_map(|(after, action)| (0..after).map(|_| None).chain([Some(action)]));
    let mut all = waits.collect::<Vec<_>>().into_iter();
    move || all.next().flatten()
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn whatever_happens_in_whatever_order_no_text_is_lost_and_sync_comes_to_rest(
        files in any_files(), schedule in any_schedule(), calls in vec(any_call(), 1..9),
    ) {
        let mut world = World::new(&files, 1);
        let (mut next, mut last) = (in_turn(schedule), None);
        for call in &calls {
            world.call(0, call, &mut last, &mut next);
        }
        world.settle_down();
        world.comes_to_rest(0);
    }

    #[test]
    fn two_editors_of_one_place_on_two_branches_lose_no_text_and_take_nothing_unasked(
        files in any_files(), schedule in any_schedule(), calls in vec((0..2_usize, any_call()), 1..9),
    ) {
        let mut world = World::new(&files, 2);
        let mut next = in_turn(schedule);
        let mut last = [None, None];
        for (whose, call) in &calls {
            let disk = world.servers[*whose].disk.clone();
            let moved = world.call(*whose, call, &mut last[*whose], &mut next);
            if !moved && matches!(call, Call::Sync { .. } | Call::Live { .. }) {
                prop_assert_eq!(&world.servers[*whose].disk, &disk, "nothing is taken from Studio unasked");
            }
        }
        world.settle_down();
        for whose in [0, 1, 0] {
            world.comes_to_rest(whose);
        }
    }
}
