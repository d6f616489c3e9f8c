//! A server with its project: files, branches, the tree, and the store that outlives it.

use super::{store::Store, *};
use crate::core::{
    journal::{HeldFile, MadeFile},
    merge::{Merge, merge},
    protocol::PatchOp,
};

pub(in super::super) const ROOT: NodeId = NodeId(0);

/// The server is killed: whatever it was about to do does not happen.
#[derive(Debug)]
pub(super) struct Killed;

/// How many more things the server does before it is killed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fuse(pub Option<u32>);

impl Fuse {
    fn burn(&mut self) -> Result<(), Killed> {
        match &mut self.0 {
            Some(0) => Err(Killed),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// The scripts of the project as the server has read them, by name.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Tree {
    pub nodes: BTreeMap<String, (NodeId, String)>,
    cursor: u32,
    next: u128,
}

impl Tree {
    pub fn name(&self, id: NodeId) -> Option<&str> {
        self.nodes.iter().find(|(_, (node, _))| *node == id).map(|(name, _)| name.as_str())
    }

    fn text(&self, id: NodeId) -> Option<&String> {
        Some(&self.nodes.get(self.name(id)?)?.1)
    }

    /// Make it equal to the disk.
    fn read(&mut self, disk: &Files) -> Vec<PatchOp> {
        let gone: Vec<String> = self.nodes.keys().filter(|name| !disk.contains_key(*name)).cloned().collect();
        let drops = gone.iter().filter_map(|name| self.nodes.remove(name)).map(|(id, _)| PatchOp::Drop { id });
        let mut ops: Vec<PatchOp> = drops.collect();
        for (name, text) in disk {
            let id = match self.nodes.get(name) {
                Some((_, known)) if known == text => continue,
                Some((id, _)) => *id,
                None => {
                    self.next += 1;
                    NodeId(self.next)
                }
            };
            self.nodes.insert(name.clone(), (id, text.clone()));
            ops.push(PatchOp::Put { node: node(id, name, text) });
        }
        self.cursor += u32::from(!ops.is_empty());
        ops
    }

    fn view(&self, id: NodeId, whole: bool) -> Option<NodeView> {
        if id == ROOT {
            let (_, root) = folder(ROOT, vec![]);
            return Some(NodeView {
                parent: None,
                path: "Root".into(),
                fs_path: Some("src".into()),
                subtree: None,
                ..root
            });
        }
        let (name, text) = (self.name(id)?, self.text(id)?);
        let (_, view) = script(id, text);
        let subtree = view.subtree.filter(|_| whole).map(|node| NewNode { name: name.to_owned(), ..node });
        Some(NodeView { path: format!("Root.{name}"), fs_path: Some(format!("src/{name}.luau")), subtree, ..view })
    }
}

/// The files of a branch that is not checked out, and all commits of both.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Git {
    other: Files,
    commits: [Vec<Files>; 2],
    head: usize,
}

#[derive(Debug, Clone)]
pub(in super::super) struct Server {
    pub disk: Files,
    pub git: Git,
    pub store: Store,
    pub tree: Tree,
    pub agreement: Agreement,
    /// Files that another program holds.
    pub locked: BTreeSet<String>,
    pub(super) fuse: Fuse,
    /// Counts the processes and the plugin sessions that it has had.
    pub life: u32,
}

impl Server {
    pub fn new(disk: &Files) -> Self {
        let commits = [vec![disk.clone()], vec![disk.clone()]];
        Self {
            disk: disk.clone(),
            git: Git { other: disk.clone(), commits, head: 0 },
            store: Store::default(),
            tree: Tree::default(),
            agreement: Agreement::default(),
            locked: BTreeSet::new(),
            fuse: Fuse::default(),
            life: 0,
        }
    }

    /// Every text that the project has, on each branch.
    pub fn texts(&self) -> impl Iterator<Item = &String> {
        let git = self.git.commits.iter().flatten().chain([&self.git.other]);
        self.disk.values().chain(git.flat_map(BTreeMap::values))
    }

    pub fn commit(&mut self) {
        self.git.commits[self.git.head].push(self.disk.clone());
    }

    pub fn switch_branch(&mut self) {
        self.commit();
        std::mem::swap(&mut self.disk, &mut self.git.other);
        self.git.head = 1 - self.git.head;
    }

    /// A new process, or another plugin session.
    pub fn restart(&mut self, session: u32) {
        self.fuse = Fuse::default();
        self.life += 1;
        self.store.cut_off();
        self.agreement = Agreement::default();
        let root = Node { parent: None, class_name: "Folder".into(), hash: None, ..node(ROOT, "Root", "") };
        self.agreement.tree_has_node(&root);
        // No node of one process is one of another.
        self.tree.nodes.clear();
        self.read_disk();
        self.agreement.recall(self.store.bases());
        self.agreement.recall_cut_off(&self.store.cut_off_entries());
        if let Some(unseen) = self.store.unseen(session) {
            self.agreement.recall_seen(unseen);
        }
    }

    pub fn read_disk(&mut self) {
        let ops = self.tree.read(&self.disk);
        self.agreement.patched(&ops);
    }

    /// Do what a run wants next.
    pub(super) fn carry_out(&mut self, run: &mut Run, step: Step, studio: &mut Studio) -> Result<Step, Killed> {
        Ok(match step {
            Step::CatchUp { .. } => {
                self.read_disk();
                run.caught_up(self.tree.cursor, &self.agreement)
            }
            Step::Compare { .. } => {
                run.compared(Some(self.tree.cursor), studio.compare(&self.tree), &mut self.agreement)
            }
            Step::Recall(undo) => run.recalled(self.store.recall(&undo), &self.agreement),
            Step::Look { ids, subtrees } => {
                let views = ids.iter().filter_map(|id| Some((*id, self.tree.view(*id, subtrees.contains(id))?)));
                run.looked(views.collect(), &mut self.agreement)
            }
            Step::History(versions) => {
                let earlier = versions.into_iter().map(|asked| asked.version);
                let earlier = earlier.filter(|version| self.was_committed(version)).collect();
                run.knows_history(earlier, &mut self.agreement)
            }
            Step::Fetch(wanted) | Step::Read(wanted) => {
                let mut next = Step::Fetch(vec![]);
                for of in wanted {
                    let text = studio.source(&of, &self.tree).ok_or_else(|| ToolError::failed("it has left", ""));
                    next = run.fetched(&of, text, &mut self.agreement);
                }
                next
            }
            Step::Merge(jobs) => {
                let merged = jobs.iter().map(|job| self.merge(job)).collect();
                run.merged(merged, &mut self.agreement)
            }
            Step::Check(writes) => {
                let found = writes.iter().map(|write| self.check(write)).collect();
                run.checked(found, &self.agreement)
            }
            Step::Begin(mut draft) => {
                self.fuse.burn()?;
                self.note(&mut draft);
                run.begun(self.store.begin(draft), &mut self.agreement)
            }
            Step::Apply { ops, all_or_nothing } => {
                self.fuse.burn()?;
                let results = studio.apply(&ops, all_or_nothing, &self.tree);
                run.applied(&results, &mut self.agreement)
            }
            Step::Write(writes) => {
                let wrote = writes.iter().map(|write| self.write(write)).collect::<Result<_, _>>()?;
                self.read_disk();
                run.written(wrote, &mut self.agreement)
            }
            Step::Conclude { journal, entry } => run.concluded(self.conclude(journal, entry)?),
            Step::Describe { .. } | Step::Ask { .. } | Step::Done(_) => unreachable!("{step:?}"),
        })
    }

    /// A run has ended.
    pub(super) fn end(&mut self, run: &Run, receipt: &Receipt, session: u32) -> Result<(), Killed> {
        self.remember()?;
        if let Some(unseen) = self.agreement.take_unseen() {
            self.fuse.burn()?;
            self.store.keep_session(session, unseen);
        }
        if let Some(cleared) = run.clears(receipt) {
            self.fuse.burn()?;
            self.store.clear(cleared);
            if let Cleared::Undone(id) = cleared {
                self.fuse.burn()?;
                self.store.mark_undone(id);
            }
        }
        Ok(())
    }

    fn remember(&mut self) -> Result<(), Killed> {
        let news = self.agreement.take_news();
        self.fuse.burn()?;
        let tree = &self.tree;
        self.store.agree(&news, |id| tree.text(id).cloned());
        self.fuse.burn()?;
        self.store.restore(&news);
        Ok(())
    }

    fn conclude(&mut self, journal: u64, entry: Entry) -> Result<Result<(), String>, Killed> {
        let all = entry.changes.iter().all(|line| line.result == Some(ChangeResult::Done));
        let undone = entry.undoes.filter(|_| all);
        self.remember()?;
        self.fuse.burn()?;
        self.store.finish(journal, entry);
        if let Some(undone) = undone {
            self.fuse.burn()?;
            self.store.mark_undone(undone);
        }
        Ok(Ok(()))
    }

    fn was_committed(&self, version: &Version) -> bool {
        let name = name_of(&version.path);
        let commits = &self.git.commits[self.git.head];
        commits.iter().any(|files| files.get(name).is_some_and(|text| hash(text) == version.hash))
    }

    fn merge(&self, job: &MergeJob) -> Merged {
        let Some(base) = self.store.text(job.base) else { return Merged::Not("no base".into()) };
        match merge(base, &job.disk, &job.studio) {
            Merge::Clean(text) => Merged::Clean(text),
            Merge::Conflict(hunks) => Merged::Conflict(hunks),
            Merge::TooLarge => Merged::Not("too large".into()),
        }
    }
}

/// What a file is written with.
impl Server {
    /// What keeps a file from being changed or removed.
    fn problem(&self, name: &str, base: TextHash) -> Option<Wrote> {
        match self.disk.get(name) {
            _ if self.locked.contains(name) => Some(Wrote::Failed("it is locked".into())),
            Some(text) if hash(text) == base => None,
            _ => Some(Wrote::MovedOn("it was changed since".into())),
        }
    }

    fn taken(&self, name: &str) -> Option<Wrote> {
        self.disk.contains_key(name).then(|| Wrote::Failed("it is there".into()))
    }

    fn check(&self, write: &FileWrite) -> Option<Wrote> {
        match write {
            FileWrite::Replace { path, base, .. } | FileWrite::Remove { path, base } => {
                self.problem(name_of(path), *base)
            }
            FileWrite::Move { path, base, name, .. } => self.problem(name_of(path), *base).or_else(|| self.taken(name)),
            FileWrite::Create { name, .. } => self.taken(name),
            FileWrite::Unmake { files } if !files.iter().any(|made| self.disk.contains_key(name_of(&made.path))) => {
                Some(Wrote::Done(None))
            }
            FileWrite::Unmake { files } => files.iter().find_map(|made| {
                let name = name_of(&made.path);
                self.disk.get(name).and(made.hash).and_then(|hash| self.problem(name, hash))
            }),
            FileWrite::Restore { files } => {
                let taken = files.iter().any(|held| self.disk.contains_key(name_of(&held.path)));
                taken.then(|| Wrote::MovedOn("it is there again".into()))
            }
            FileWrite::Instance { .. }
            | FileWrite::Folder { .. }
            | FileWrite::MoveFolder { .. }
            | FileWrite::Files { .. } => panic!("{write:?}"),
        }
    }

    /// The journal has what goes, as the server notes it.
    fn note(&self, draft: &mut Draft) {
        let held = |path: &String| {
            let text = self.disk.get(name_of(path))?;
            Some(HeldFile { path: path.clone(), bytes: Some(text.clone().into_bytes().into()) })
        };
        for (at, write) in &draft.writes {
            let line = &mut draft.entry.changes[*at];
            match write {
                FileWrite::Remove { path, .. } | FileWrite::Move { path, .. } => line.held.extend(held(path)),
                FileWrite::Unmake { files } => {
                    line.held.extend(files.iter().filter_map(|MadeFile { path, .. }| held(path)));
                }
                _ => {}
            }
        }
    }

    fn write(&mut self, write: &FileWrite) -> Result<Wrote, Killed> {
        self.fuse.burn()?;
        if let Some(problem) = self.check(write) {
            return Ok(problem);
        }
        Ok(match write {
            FileWrite::Replace { path, text: Some(text), .. } => {
                self.disk.insert(name_of(path).to_owned(), text.clone());
                Wrote::Done(Some(hash(text)))
            }
            FileWrite::Remove { path, .. } => {
                self.disk.remove(name_of(path));
                Wrote::Done(None)
            }
            FileWrite::Create { name, text: Some(text), .. } => {
                self.disk.insert(name.clone(), text.clone());
                Wrote::Made(format!("src/{name}.luau"), Some(hash(text)))
            }
            FileWrite::Move { path, name, text: Some(text), .. } => {
                self.disk.insert(name.clone(), text.clone());
                self.fuse.burn()?;
                self.disk.remove(name_of(path));
                Wrote::Made(format!("src/{name}.luau"), Some(hash(text)))
            }
            FileWrite::Unmake { files } => {
                files.iter().for_each(|made| _ = self.disk.remove(name_of(&made.path)));
                Wrote::Done(None)
            }
            FileWrite::Restore { files } => {
                let text = |held: &HeldFile| {
                    let bytes = held.bytes.as_ref()?.as_slice().to_vec();
                    Some((name_of(&held.path).to_owned(), String::from_utf8(bytes).ok()?))
                };
                self.disk.extend(files.iter().filter_map(text));
                Wrote::Done(None)
            }
            _ => Wrote::Failed("its text is not known".into()),
        })
    }
}

fn name_of(path: &str) -> &str {
    path.trim_start_matches("src/").trim_end_matches(".luau")
}
