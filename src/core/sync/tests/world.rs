//! A small world: one Studio, and servers with a disk and a store each, that sync its scripts.

use super::*;
use crate::core::{
    agreement::{Kept, News},
    journal::Entry,
    merge::{Merge, merge},
    paths::InstanceKey,
    text::ScriptText,
};

/// How many scripts there are.
pub(super) const SCRIPTS: u128 = 3;

pub(super) type Texts = HashMap<NodeId, String>;

/// The scripts in Studio.
#[derive(Debug, Clone)]
pub(super) struct Studio {
    pub texts: Texts,
    pub typing: HashSet<NodeId>,
    /// The place as it was saved, each time.
    saved: Vec<Texts>,
}

impl Studio {
    pub fn new(texts: &Texts) -> Self {
        Self { texts: texts.clone(), typing: HashSet::new(), saved: vec![texts.clone()] }
    }

    pub fn save_place(&mut self) {
        self.saved.push(self.texts.clone());
    }

    /// Closed without saving, and opened again; or, with `copy`, a copy of the place as it once was.
    pub fn reopen(&mut self, copy: bool) {
        let place = if copy { self.saved.first() } else { self.saved.last() };
        self.texts = place.expect("it was saved once").clone();
        self.typing.clear();
    }
}

/// Where an entry of the journal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Done,
    CutOff,
    Undone,
}

/// A server with its project and its store.
pub(super) struct Server {
    pub disk: Texts,
    /// The files of the branch that is not checked out.
    other_branch: Texts,
    pub alone: bool,
    tree: Texts,
    pub texts: HashMap<TextHash, String>,
    rows: HashMap<InstanceKey, Kept>,
    journal: Vec<(Entry, State)>,
    agreement: Agreement,
    /// What the plugin session has not seen, as the store knows it.
    unseen: Option<BTreeSet<InstanceKey>>,
    restarted: bool,
}

pub(super) fn all(text: &str) -> Texts {
    (1..=SCRIPTS).map(|id| (NodeId(id), text.to_owned())).collect()
}

impl Server {
    pub fn new(disk: &Texts, alone: bool) -> Self {
        let mut server = Self {
            disk: disk.clone(),
            other_branch: disk.clone(),
            alone,
            tree: disk.clone(),
            texts: HashMap::new(),
            rows: HashMap::new(),
            journal: Vec::new(),
            agreement: Agreement::default(),
            unseen: None,
            restarted: false,
        };
        server.restart(true);
        server
    }

    /// A new process, and perhaps a new plugin session.
    pub fn restart(&mut self, studio_too: bool) {
        for (_, state) in self.journal.iter_mut().filter(|(_, state)| *state == State::Open) {
            *state = State::CutOff;
        }
        self.agreement = Agreement::default();
        self.read_disk();
        self.agreement.recall(self.rows.values().cloned().collect());
        let cut_off = self.journal.iter().filter(|(_, state)| *state == State::CutOff);
        self.agreement.recall_cut_off(&cut_off.map(|(entry, _)| entry.clone()).collect::<Vec<_>>());
        if studio_too {
            self.unseen = None;
        }
        if let Some(unseen) = &self.unseen {
            self.agreement.recall_seen(unseen);
        }
        self.restarted = true;
    }

    pub fn switch_branch(&mut self) {
        std::mem::swap(&mut self.disk, &mut self.other_branch);
    }

    fn read_disk(&mut self) {
        self.tree = self.disk.clone();
        let root = Node { parent: None, class_name: "Folder".into(), hash: None, ..node(NodeId(0), "Root", "") };
        self.agreement.tree_has_node(&root);
        for (id, text) in &self.tree {
            self.agreement.tree_has_node(&node(*id, &format!("Script{}", id.0), text));
        }
    }

    /// One run; `between` acts before each step. `None`: it did not come to its end.
    pub fn run(
        &mut self,
        args: SyncArgs,
        studio: &mut Studio,
        between: &mut dyn FnMut(&mut Self, &mut Studio),
    ) -> Option<Receipt> {
        self.restarted = false;
        let (mut run, mut step) = Run::start("run-1".into(), args, self.alone);
        loop {
            between(self, studio);
            if self.restarted {
                return None;
            }
            step = match step {
                Step::Done(receipt) => {
                    self.clear(run.clears(&receipt));
                    self.remember();
                    if let Some(unseen) = self.agreement.take_unseen() {
                        self.unseen = Some(unseen.into_iter().collect());
                    }
                    return Some(receipt);
                }
                step => self.carry_out(&mut run, step, studio),
            };
        }
    }

    fn clear(&mut self, cleared: Option<Cleared>) {
        for (at, (entry, state)) in self.journal.iter_mut().enumerate() {
            let id = u64::try_from(at).expect("few");
            match cleared {
                Some(Cleared::Undone(undone)) if id == undone => *state = State::Undone,
                Some(Cleared::Everything) if *state == State::CutOff => *state = State::Done,
                Some(Cleared::Undone(undone)) if *state == State::CutOff && entry.undoes == Some(undone) => {
                    *state = State::Done;
                }
                _ => {}
            }
        }
    }

    fn carry_out(&mut self, run: &mut Run, step: Step, studio: &mut Studio) -> Step {
        match step {
            Step::CatchUp { .. } => {
                self.read_disk();
                run.caught_up(7, &self.agreement)
            }
            Step::Compare { .. } => run.compared(Some(7), self.compare(studio), &mut self.agreement),
            Step::Recall(_) => {
                let recalled = self.last_entry();
                run.recalled(recalled, &self.agreement)
            }
            Step::Look { ids, .. } => {
                let views = ids.iter().filter(|id| id.0 > 0).map(|id| script(*id, &self.tree[id])).collect();
                run.looked(views, &mut self.agreement)
            }
            Step::History(_) => run.knows_history(BTreeSet::new(), &mut self.agreement),
            Step::Fetch(wanted) | Step::Read(wanted) => {
                let mut next = Step::Fetch(vec![]);
                for of in wanted {
                    let OpId::Node(id) = of else { panic!("{of:?}") };
                    next = run.fetched(&of, Ok(studio.texts[&id].clone()), &mut self.agreement);
                }
                next
            }
            Step::Describe { .. } => unreachable!("nothing is pulled here that is no script"),
            Step::Merge(jobs) => {
                let merged = jobs.iter().map(|job| self.merge(job)).collect();
                run.merged(merged, &mut self.agreement)
            }
            Step::Check(writes) => {
                let found = writes.iter().map(|write| self.check(write)).collect();
                run.checked(found, &self.agreement)
            }
            Step::Begin(draft) => {
                let begun = self.begin(draft);
                run.begun(begun, &mut self.agreement)
            }
            Step::Apply { ops, .. } => {
                let results = self.apply(&ops, studio);
                run.applied(&results, &mut self.agreement)
            }
            Step::Write(writes) => {
                let wrote = writes.iter().map(|write| self.write(write)).collect();
                self.read_disk();
                run.written(wrote, &mut self.agreement)
            }
            Step::Conclude { journal, entry } => {
                self.remember();
                let at = usize::try_from(journal).expect("few");
                self.journal[at] = (entry, State::Done);
                run.concluded(Ok(()))
            }
            Step::Ask { .. } => unreachable!("nobody is asked"),
            Step::Done(_) => unreachable!("it is taken before"),
        }
    }

    fn compare(&self, studio: &Studio) -> Vec<Fact> {
        let mut ids: Vec<&NodeId> = self.tree.keys().collect();
        ids.sort();
        let differ = ids.into_iter().filter(|id| self.tree[id] != studio.texts[id]);
        differ.map(|id| Fact { is_draft: studio.typing.contains(id), ..differs(*id, &studio.texts[id]) }).collect()
    }

    /// The last run that changed something and was not taken back.
    fn last_entry(&self) -> Result<Recalled, String> {
        let changed = |entry: &Entry| entry.undoes.is_none() && entry.changed_something();
        let mut entries = self.journal.iter().enumerate().rev();
        let found = entries.find(|(_, (entry, state))| *state != State::Undone && changed(entry));
        let (at, (entry, _)) = found.ok_or("there is none")?;
        let texts = entry.texts().filter_map(|hash| Some((hash, self.texts.get(&hash)?.clone()))).collect();
        Ok(Recalled { id: u64::try_from(at).expect("few"), entry: entry.clone(), texts, when: String::new() })
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
        self.journal.push((draft.entry.clone(), State::Open));
        Begun::Entry(u64::try_from(self.journal.len() - 1).expect("few"), draft.entry)
    }

    /// All guards first.
    fn apply(&mut self, ops: &[PlanOp], studio: &mut Studio) -> Vec<OpResult> {
        let of = |op: &PlanOp| match op {
            PlanOp::SetSource { id, source, expect } => (*id, source.clone(), *expect),
            other => panic!("{other:?}"),
        };
        let all_hold = ops
            .iter()
            .map(of)
            .all(|(id, _, expect)| hash(&studio.texts[&id]) == expect && !studio.typing.contains(&id));
        let mut results = Vec::new();
        for (id, source, expect) in ops.iter().map(of) {
            let status = match (all_hold, hash(&studio.texts[&id]) == expect) {
                (true, _) => OpStatus::Done,
                (false, true) => OpStatus::Skipped,
                (false, false) => OpStatus::Guard,
            };
            if all_hold {
                self.replaced(&studio.texts[&id]);
                studio.texts.insert(id, source);
            }
            results.push(result(id, status, Some(&studio.texts[&id])));
        }
        results
    }

    fn check(&self, write: &FileWrite) -> Option<Wrote> {
        let (id, base) = replaced(write);
        (hash(&self.disk[&id]) != base).then(|| Wrote::MovedOn("changed".into()))
    }

    fn write(&mut self, write: &FileWrite) -> Wrote {
        let (id, base, text) = replacement(write);
        if hash(&self.disk[&id]) != base {
            return Wrote::MovedOn("changed".into());
        }
        self.replaced(&self.disk[&id].clone());
        self.disk.insert(id, text.to_owned());
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
    pub fn connect(&mut self, studio: &mut Studio) {
        self.run(SyncArgs::comparison(), studio, &mut |_, _| {});
        self.remember();
    }
}

fn replacement(write: &FileWrite) -> (NodeId, TextHash, &str) {
    let FileWrite::Replace { text: Some(text), .. } = write else { panic!("{write:?}") };
    let (id, base) = replaced(write);
    (id, base, text)
}

fn replaced(write: &FileWrite) -> (NodeId, TextHash) {
    let FileWrite::Replace { path, base, .. } = write else { panic!("{write:?}") };
    let number = path.trim_start_matches("src/Script").trim_end_matches(".luau").parse().expect("a number");
    (NodeId(number), *base)
}
