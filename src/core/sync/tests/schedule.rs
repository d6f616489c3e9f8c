//! Whole runs in a small world in which both sides are edited between any two steps, and the server
//! may end between any two steps: nothing that somebody saved is ever lost.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::core::{
    agreement::{Kept, News},
    merge::{Merge, merge},
    text::ScriptText,
};

/// How many scripts there are.
const SCRIPTS: u128 = 3;

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
    /// Studio saves the place.
    SavePlace,
    /// The server is killed and started again.
    Crash,
    /// Nothing.
    Wait,
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
        1 => Just(Do::SavePlace),
        1 => Just(Do::Crash),
        12 => Just(Do::Wait),
    ]
}

/// Both sides, and what the store keeps.
struct World {
    disk: HashMap<NodeId, String>,
    studio: HashMap<NodeId, String>,
    typing: HashSet<NodeId>,
    place: HashMap<NodeId, String>,
    tree: HashMap<NodeId, String>,
    texts: HashMap<TextHash, String>,
    rows: HashMap<crate::core::paths::InstanceKey, Kept>,
    agreement: Agreement,
    restarted: bool,
    moved: bool,
}

impl World {
    fn new(text: &str) -> Self {
        let all: HashMap<NodeId, String> = (1..=SCRIPTS).map(|id| (NodeId(id), text.to_owned())).collect();
        let mut world = Self {
            disk: all.clone(),
            studio: all.clone(),
            typing: HashSet::new(),
            place: all.clone(),
            tree: all,
            texts: HashMap::new(),
            rows: HashMap::new(),
            agreement: Agreement::default(),
            restarted: false,
            moved: false,
        };
        world.restart();
        world
    }

    /// A new process, or a new plugin session.
    fn restart(&mut self) {
        self.agreement = Agreement::default();
        self.read_disk();
        self.agreement.recall(self.rows.values().cloned().collect());
        self.restarted = true;
    }

    fn read_disk(&mut self) {
        self.tree = self.disk.clone();
        for (id, text) in &self.tree {
            self.agreement.tree_has_node(&node(*id, &format!("Script{}", id.0), text));
        }
    }

    fn act(&mut self, action: &Do) {
        self.moved |= !matches!(action, Do::Wait);
        match action {
            Do::Save(id, text) => _ = self.disk.insert(NodeId(*id), text.clone()),
            Do::Edit(id, text) => _ = self.studio.insert(NodeId(*id), text.clone()),
            Do::Type(id, true) => _ = self.typing.insert(NodeId(*id)),
            Do::Type(id, false) => _ = self.typing.remove(&NodeId(*id)),
            Do::Reopen => {
                self.studio = self.place.clone();
                self.typing.clear();
                self.restart();
            }
            Do::SavePlace => self.place = self.studio.clone(),
            Do::Crash => self.restart(),
            Do::Wait => {}
        }
    }

    /// One sync, with what happens between its steps. `None`: it did not come to its end.
    fn sync(&mut self, mode: SyncMode, schedule: &mut dyn Iterator<Item = Do>) -> Option<Receipt> {
        self.restarted = false;
        let (mut run, mut step) = Run::start("run-1".into(), SyncArgs { mode, ..SyncArgs::default() }, true);
        loop {
            if let Some(action) = schedule.next() {
                self.act(&action);
            }
            if self.restarted {
                return None;
            }
            step = match step {
                Step::Done(receipt) => return Some(receipt),
                step => self.carry_out(&mut run, step),
            };
        }
    }

    fn carry_out(&mut self, run: &mut Run, step: Step) -> Step {
        match step {
            Step::CatchUp { .. } => {
                self.read_disk();
                run.caught_up(7, &self.agreement)
            }
            Step::Compare { .. } => {
                let facts = self.compare();
                run.compared(Some(7), facts, &mut self.agreement)
            }
            Step::Look { ids, .. } => {
                let views = ids.iter().map(|id| script(*id, &self.tree[id])).collect();
                run.looked(&views, &mut self.agreement)
            }
            Step::Fetch(wanted) => {
                let mut next = Step::Fetch(vec![]);
                for of in wanted {
                    let OpId::Node(id) = of else { panic!("{of:?}") };
                    next = run.fetched(&of, Ok(self.studio[&id].clone()), &mut self.agreement);
                }
                next
            }
            Step::Merge(jobs) => {
                let merged = jobs.iter().map(|job| self.merge(job)).collect();
                run.merged(merged, &mut self.agreement)
            }
            Step::Check(writes) => run.checked(vec![None; writes.len()], &self.agreement),
            Step::Begin(draft) => {
                let begun = self.begin(draft);
                run.begun(begun, &mut self.agreement)
            }
            Step::Apply { ops, .. } => {
                let results = self.apply(&ops);
                run.applied(&results, &mut self.agreement)
            }
            Step::Write(writes) => {
                let wrote = writes.iter().map(|write| self.write(write)).collect();
                self.read_disk();
                run.written(wrote, &mut self.agreement)
            }
            Step::Conclude { .. } => {
                self.remember();
                run.concluded(Ok(()))
            }
            other => panic!("{other:?}"),
        }
    }

    fn compare(&self) -> Vec<Fact> {
        let mut ids: Vec<&NodeId> = self.tree.keys().collect();
        ids.sort();
        let differ = ids.into_iter().filter(|id| self.tree[id] != self.studio[id]);
        differ.map(|id| Fact { is_draft: self.typing.contains(id), ..differs(*id, &self.studio[id]) }).collect()
    }

    fn merge(&self, job: &MergeJob) -> Merged {
        let Some(base) = self.texts.get(&job.base) else { return Merged::Not("no base".into()) };
        match merge(base, &job.disk, &job.studio) {
            Merge::Clean(text) => Merged::Clean(text),
            Merge::Conflict(hunks) => Merged::Conflict(hunks),
            Merge::TooLarge => Merged::Not("too large".into()),
        }
    }

    fn begin(&mut self, draft: Draft) -> Begun {
        let given: HashMap<TextHash, String> =
            draft.texts.iter().map(|text| (hash(text), ScriptText::new(text).into_string())).collect();
        let lacks: Vec<TextHash> =
            draft.entry.texts().filter(|hash| !given.contains_key(hash) && !self.texts.contains_key(hash)).collect();
        if !lacks.is_empty() {
            return Begun::Lacks(lacks);
        }
        self.texts.extend(given);
        Begun::Entry(1, draft.entry)
    }

    /// All guards first.
    fn apply(&mut self, ops: &[PlanOp]) -> Vec<OpResult> {
        let of = |op: &PlanOp| match op {
            PlanOp::SetSource { id, source, expect } => (*id, source.clone(), *expect),
            other => panic!("{other:?}"),
        };
        let holds = |(id, _, expect): &(NodeId, String, TextHash)| {
            hash(&self.studio[id]) == *expect && !self.typing.contains(id)
        };
        let all_hold = ops.iter().map(of).all(|op| holds(&op));
        let mut results = Vec::new();
        for (id, source, expect) in ops.iter().map(of) {
            let status = match (all_hold, hash(&self.studio[&id]) == expect) {
                (true, _) => OpStatus::Done,
                (false, true) => OpStatus::Skipped,
                (false, false) => OpStatus::Guard,
            };
            if all_hold {
                self.replaced(&self.studio[&id].clone());
                self.studio.insert(id, source);
            }
            results.push(result(id, status, Some(&self.studio[&id].clone())));
        }
        results
    }

    fn write(&mut self, write: &FileWrite) -> Wrote {
        let FileWrite::Replace { path, base, text: Some(text) } = write else { panic!("{write:?}") };
        let id = NodeId(path.trim_start_matches("src/Script").trim_end_matches(".luau").parse().expect("a number"));
        if hash(&self.disk[&id]) != *base {
            return Wrote::MovedOn("changed".into());
        }
        self.replaced(&self.disk[&id].clone());
        self.disk.insert(id, text.clone());
        Wrote::Done(Some(hash(text)))
    }

    /// A text of somebody's is gone from one side: it must be kept.
    fn replaced(&self, text: &str) {
        assert!(self.texts.contains_key(&hash(text)), "{text:?} is lost");
    }

    fn remember(&mut self) {
        for news in self.agreement.take_news() {
            let kept = match news {
                News::Agreed(kept) => kept,
                News::Restored { key, base } => {
                    self.rows.remove(&key);
                    let row =
                        base.map(|(last, earlier)| (key.clone(), Kept { key, id: None, last, earlier, text: None }));
                    self.rows.extend(row);
                    continue;
                }
            };
            if let Some(text) = kept.id.map(|id| self.tree[&id].clone()) {
                self.texts.insert(hash(&text), text);
            }
            let row = self.rows.entry(kept.key.clone()).or_insert(Kept { earlier: vec![], ..kept.clone() });
            let before = std::mem::replace(&mut row.last, kept.last);
            row.earlier.extend([before].into_iter().chain(kept.earlier));
        }
    }

    /// The comparison after the hello, with nothing in its way.
    fn connect(&mut self) {
        self.sync(SyncMode::Dryrun, &mut std::iter::empty());
        self.remember();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_happens_between_the_steps_no_saved_text_is_lost(
        text in any_text(),
        schedule in vec(any_do(), 0..80),
        modes in vec(0..3_usize, 1..8),
    ) {
        let mut world = World::new(&text);
        world.connect();
        let mut schedule = schedule.into_iter();
        for mode in modes {
            let mode = [SyncMode::Standard, SyncMode::Fastfail, SyncMode::Dryrun][mode];
            let before = (world.disk.clone(), world.studio.clone());
            world.moved = false;
            let receipt = world.sync(mode, &mut schedule);
            if mode == SyncMode::Dryrun && !world.moved {
                prop_assert_eq!(&(world.disk.clone(), world.studio.clone()), &before, "a dry run changes nothing");
            }
            if receipt.is_none() {
                world.connect();
            }
        }
        // Nobody is in its way any more.
        world.typing.clear();
        let first = world.sync(SyncMode::Standard, &mut std::iter::empty()).expect("to its end");
        let again = world.sync(SyncMode::Standard, &mut std::iter::empty()).expect("to its end");
        if first.status == SyncStatus::Success {
            prop_assert_eq!(&world.disk, &world.studio);
            prop_assert_eq!(again.status, SyncStatus::Empty, "{:?}", again);
        }
        let done = |receipt: &Receipt| receipt.changes.iter().filter(|change| change.result == ChangeResult::Done).count();
        prop_assert_eq!(done(&again), 0, "{:?}", again);
        prop_assert_eq!(first.unresolved, again.unresolved);
    }

    #[test]
    fn equal_inputs_come_to_equal_decisions(
        base in proptest::option::of(any_text()), disk in any_text(), studio in any_text(), draft in proptest::bool::ANY,
    ) {
        let decided = || {
            let texts: Vec<(NodeId, &str)> = base.iter().map(|base| (ID, base.as_str())).collect();
            let mut agreement = agreed(&texts);
            let fact = Fact { is_draft: draft, ..differs(ID, &studio) };
            let rules = Rules { alone: true, allow_removals: false, takes: true, deleted: Vec::new() };
            verdicts::about_node(&fact, Some(&script(ID, &disk).1), &mut agreement, &rules, None)
        };
        prop_assert_eq!(decided(), decided());
    }
}
