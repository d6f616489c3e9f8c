//! Files → tree: what the one thread that writes does with each batch of changes.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use librojo::{DEFAULT_PROJECT_NAMES, InstanceContext, InstanceSnapshot, Project};
use rbx_dom_weak::types::Ref;
use tokio::sync::{broadcast, watch as latest};

use super::{
    graft,
    mirror::{self, Changes, Mirror, Trust},
    plain::PlainScripts,
    problems::{self, Health, Problem, ProblemKind},
    reconcile::Wanted,
    state::{Shared, State},
    targets::{Job, Kind, Planner},
    types::{ProjectInfo, SessionError},
    watch::Watch,
    wire,
};

/// What the engine writes and everyone reads.
pub(super) struct Board {
    /// The root's id; it stays for the session's life.
    pub root: Ref,
    pub state: Shared<State>,
    pub project: Shared<Arc<ProjectInfo>>,
    /// The settings at the start; some count only then.
    pub started: Arc<ProjectInfo>,
    pub problems: Shared<Vec<Problem>>,
    /// What the `$path`s of all project files name.
    pub roots: Shared<Vec<PathBuf>>,
    pub cursor: latest::Sender<u32>,
    pub health: latest::Sender<Health>,
    pub paths: broadcast::Sender<Arc<Vec<PathBuf>>>,
    /// The files in memory.
    pub files: memofs::InMemoryFs,
    pub plain: PlainScripts,
    /// How often the thread has panicked.
    #[cfg(test)]
    pub panics: std::sync::atomic::AtomicUsize,
}

/// Owns the mirror and brings the tree up to it.
pub(super) struct Engine {
    pub mirror: Mirror,
    pub board: Arc<Board>,
    root_context: InstanceContext,
    /// Why the tree's root is not what the project file says.
    root_problem: Option<String>,
}

impl Engine {
    /// Read the project at `path`, each folder once `watch` follows it, and make its tree.
    pub fn open(path: &Path, watch: Watch) -> Result<Self, SessionError> {
        let file = find_project(path)?;
        graft::warm_up();
        let mut mirror = Mirror::new(file.clone(), watch);
        mirror.refresh_all(Trust::Exact);
        let broken = |detail: String| SessionError::BrokenProject { file: file.clone(), detail };
        mirror.break_cycles().map_err(broken)?;
        let legacy = mirror.roots.project().and_then(|project| project.emit_legacy_scripts);
        let root_context = InstanceContext::with_emit_legacy_scripts(legacy);
        let root = mirror.snapshot(&root_context, &file).map_err(broken)?;
        let nothing = || mirror.problems.get(&file).cloned().unwrap_or_else(|| "it gives no instance".to_owned());
        let root = root.ok_or_else(|| broken(nothing()))?;
        let project = mirror.roots.project().map(ProjectInfo::new);
        let project = Arc::new(project.ok_or_else(|| broken("it cannot be read".to_owned()))?);
        let state = State::new(root);
        let board = Board {
            root: state.tree.get_root_id(),
            state: Shared::new(state),
            started: Arc::clone(&project),
            project: Shared::new(project),
            problems: Shared::new(mirror.problems()),
            roots: Shared::new(mirror.roots.named()),
            cursor: latest::channel(0).0,
            health: latest::channel(Health::Live).0,
            paths: broadcast::channel(256).0,
            files: mirror.fs.clone(),
            plain: mirror.plain.clone(),
            #[cfg(test)]
            panics: std::sync::atomic::AtomicUsize::default(),
        };
        Ok(Self { mirror, board: Arc::new(board), root_context, root_problem: None })
    }

    /// Make the whole tree anew, whatever `changes` say: after a panic nobody knows what was left
    /// half done.
    pub fn remake_all(&mut self, mut changes: Changes) {
        changes.touched.insert(self.mirror.roots.file().to_path_buf());
        changes.edited.clear();
        changes.projects = true;
        self.apply(changes);
    }

    /// Bring the tree up to the mirror after `changes`.
    pub fn apply(&mut self, changes: Changes) {
        if changes.touched.is_empty() {
            self.publish_problems();
            return;
        }
        let paths: Vec<PathBuf> = changes.touched.iter().cloned().collect();
        let wanted = match self.edit_texts(&changes) {
            Some(edits) => edits,
            None => self.remake(changes),
        };
        let message = self.board.state.write().apply(wanted);
        if let Some(message) = message {
            self.board.cursor.send_replace(message.cursor);
        }
        _ = self.board.paths.send(Arc::new(paths)); // nobody may be listening
        self.publish_problems();
    }

    /// The short way for the commonest change: scripts got other texts and nothing else happened.
    /// A script's text is all that its instance takes from the file's contents.
    fn edit_texts(&self, changes: &Changes) -> Option<Wanted> {
        let mut wanted = Wanted::default();
        if self.root_problem.is_some() {
            return None;
        }
        let state = self.board.state.read();
        for path in &changes.touched {
            let before = changes.edited.get(path).filter(|_| mirror::is_script(path))?;
            let before = lf(std::str::from_utf8(before).ok()?);
            let after = lf(std::str::from_utf8(&self.mirror.contents(path)?).ok()?);
            let ids = state.tree.get_ids_at_path(path);
            if ids.is_empty() {
                return None;
            }
            for &id in ids {
                let instance = state.tree.get_instance(id)?;
                wire::source(&instance).filter(|text| *text == before)?;
                wanted.texts.push((id, after.clone()));
            }
        }
        Some(wanted)
    }

    fn remake(&mut self, mut changes: Changes) -> Wanted {
        changes.touched.extend(self.mirror.restore_withdrawn());
        if changes.projects {
            self.board_project();
        }
        if let Err(problem) = self.mirror.break_cycles() {
            self.root_problem = Some(problem);
            return Wanted::default(); // librojo must not read it
        }
        let mut wanted = Wanted::default();
        for job in self.plan(&changes.touched) {
            let root = job.kind == Kind::Replace(self.board.root);
            match (self.make(&job), job.kind) {
                (Ok(None), Kind::Replace(_)) if root => {
                    self.root_problem = Some("the project file gives no instance".to_owned());
                }
                (Ok(snapshot), Kind::Replace(id)) => {
                    if root {
                        // The other jobs are parts of this one; they counted in case it failed.
                        self.root_problem = None;
                        return Wanted { replaced: vec![(id, snapshot)], ..Wanted::default() };
                    }
                    wanted.replaced.push((id, snapshot));
                }
                (Ok(Some(snapshot)), Kind::Add { parent }) => wanted.added.push((parent, snapshot)),
                (Ok(None), Kind::Add { .. }) => {}
                (Err(problem), _) if root => self.root_problem = Some(problem),
                (Err(problem), _) => log::error!("{}: {problem}", job.path.display()),
            }
        }
        wanted
    }

    fn plan(&self, touched: &BTreeSet<PathBuf>) -> Vec<Job> {
        let state = self.board.state.read();
        let planner = Planner { tree: &state.tree, mirror: &self.mirror, root_context: &self.root_context };
        if self.root_problem.is_some() {
            return planner.root().into_iter().chain(planner.plan(touched)).collect();
        }
        planner.plan(touched)
    }

    fn make(&mut self, job: &Job) -> Result<Option<InstanceSnapshot>, String> {
        if job.path == self.mirror.roots.file() && !self.mirror.holds(&job.path) {
            return Err("the project file is missing; the last good tree is kept".to_owned());
        }
        self.mirror.snapshot(&job.context, &job.path)
    }

    fn board_project(&mut self) {
        *self.board.roots.write() = self.mirror.roots.named();
        let Some(project) = self.mirror.roots.project() else { return };
        self.root_context = InstanceContext::with_emit_legacy_scripts(project.emit_legacy_scripts);
        let info = ProjectInfo::new(project);
        let before = Arc::clone(&self.board.project.read());
        if *before == info {
            return;
        }
        let restart = problems::needing_restart(&self.board.started, &info);
        if let Some(problem) = restart.filter(|_| before.listens_otherwise(&info)) {
            log::warn!("{problem}");
        }
        *self.board.project.write() = Arc::new(info);
    }

    fn publish_problems(&self) {
        let root = self.root_problem.as_ref();
        let root = root.map(|message| Problem {
            kind: ProblemKind::LastGoodTree,
            ..Problem::at(self.mirror.roots.file(), message)
        });
        let problems: Vec<Problem> = root.into_iter().chain(self.mirror.problems()).collect();
        if *self.board.problems.read() != problems {
            *self.board.problems.write() = problems;
        }
    }
}

/// The project file that `path` means: itself, or the default one of a folder. Its folder is canonical.
///
/// # Errors
/// There is none.
pub fn find_project(path: &Path) -> Result<PathBuf, SessionError> {
    let unreadable = |source| SessionError::Unreadable { path: path.to_path_buf(), source };
    let named = path;
    let path = std::fs::canonicalize(named).map_err(unreadable)?;
    if path.is_file() {
        // A folder's own project file is that of its folder, though it may be a link to a file elsewhere.
        let folder = named.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = std::fs::canonicalize(folder).map_err(unreadable)?;
        let own = DEFAULT_PROJECT_NAMES.iter().find(|name| named.file_name().is_some_and(|named| named == **name));
        let path = own.map_or(path, |name| folder.join(name));
        if Project::is_project_file(&path) {
            return Ok(path);
        }
        let folder = path.parent().unwrap_or(&path).to_path_buf();
        return Err(SessionError::NoProject { folder, looked_for: vec!["*.project.json".to_owned()] });
    }
    let found = DEFAULT_PROJECT_NAMES.iter().map(|name| path.join(name)).find(|file| file.is_file());
    found.ok_or_else(|| SessionError::NoProject {
        folder: path,
        looked_for: DEFAULT_PROJECT_NAMES.map(str::to_owned).to_vec(),
    })
}

fn lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}
