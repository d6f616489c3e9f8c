//! The serve session: the project's files as one tree of instances, kept current.
//!
//! ```text
//! disk -> watch -> pending (when) -> mirror (files in memory) -> targets (what to make anew)
//!      -> isolate (snapshot, by librojo) -> graft (its scripts) -> reconcile -> state (tree, cursor, history) -> readers
//! ```
//!
//! One thread does all of that ([`run`]), and others read many files for it ([`reader`]). A folder is
//! watched before it is listed, from the start on: so the project is read once, and what is saved meanwhile
//! is a signal that waits until it is. Whoever reads the tree shares the state with the one thread.
//! Besides the command line and the embedded plugin, only this folder and `rojo_api` name librojo.

mod check;
mod depth;
mod disk;
mod engine;
mod entries;
mod globs;
mod graft;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod inotify;
mod isolate;
mod jsonc;
mod mirror;
mod models;
mod movable;
#[cfg_attr(
    any(target_os = "linux", target_os = "android"),
    expect(dead_code, reason = "what other systems use is compiled everywhere, so that it stays whole")
)]
mod notified;
mod own_files;
mod pending;
mod place;
mod plain;
mod problems;
mod projects;
mod query;
mod readback;
mod reader;
mod reconcile;
mod refs;
mod roots;
mod run;
mod state;
mod targets;
mod types;
mod values;
mod walk;
mod watch;
pub mod wire;
mod writable;

#[cfg(test)]
mod tests;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use crossbeam_channel::{Sender, bounded, unbounded};
use librojo::{RojoTree, SessionId};
use rbx_dom_weak::types::Ref;
use tokio::sync::{broadcast, watch as tokio_watch};

pub use engine::find_project;
pub use models::NewFiles;
pub use own_files::{OwnFiles, OwnScript};
pub use problems::{Health, Problem, ProblemKind};
pub use types::{CursorGone, Look, Message, MessageBatch, ProjectInfo, SessionError, Target};

use self::{engine::Board, run::Command};
use crate::{
    core::{
        ids::{NodeId, TreeId},
        protocol::{NewNode, Node},
        text::TextHash,
    },
    files::Sources,
};

/// A project that is being served. Ends when dropped.
pub struct ServeSession {
    id: SessionId,
    board: Arc<Board>,
    commands: Sender<Command>,
    write_outside: AtomicBool,
    /// Texts that were written for somebody else than the disk's own people.
    written: Mutex<HashSet<TextHash>>,
}

impl ServeSession {
    /// Read the project at `path`, a project file or a folder with one, and follow its files.
    ///
    /// # Errors
    /// There is no project, or it cannot be used.
    pub fn start(path: &Path) -> Result<Arc<Self>, SessionError> {
        Self::start_with(path, unbounded())
    }

    fn start_with(path: &Path, signals: run::Signals) -> Result<Arc<Self>, SessionError> {
        let (board, commands) = run::start(path, signals)?;
        Ok(Arc::new(Self {
            id: SessionId::new(),
            board,
            commands,
            write_outside: AtomicBool::new(false),
            written: Mutex::default(),
        }))
    }

    /// The session's id in Rojo's protocol.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// The same id in ours.
    pub fn tree_id(&self) -> TreeId {
        TreeId::from(self.id.to_string())
    }

    /// The root of the tree. Never another one, whatever happens to the project.
    pub fn root(&self) -> NodeId {
        wire::node_id(self.board.root)
    }

    /// The project's settings as they are now.
    pub fn project(&self) -> Arc<ProjectInfo> {
        Arc::clone(&self.board.project.read())
    }

    /// The version of the tree; changes after every change.
    pub fn cursor(&self) -> tokio_watch::Receiver<u32> {
        self.board.cursor.subscribe()
    }

    /// Whether the tree still follows the files.
    pub fn health(&self) -> tokio_watch::Receiver<Health> {
        self.board.health.subscribe()
    }

    /// Read the tree at one version. Changes wait meanwhile, so be brief.
    pub fn with_tree<R>(&self, read: impl FnOnce(&RojoTree, u32) -> R) -> R {
        let state = self.board.state.read();
        read(&state.tree, state.cursor)
    }

    /// What changed since the version `cursor`.
    ///
    /// # Errors
    /// The history does not reach there.
    pub fn messages_since(&self, cursor: u32) -> Result<MessageBatch, CursorGone> {
        self.board.state.read().since(cursor)
    }

    /// Look at the given files and folders now (`None`: at all of the project), bring the tree up
    /// to them and return its version. What was just saved is in it, and what was removed is not;
    /// what vanished a moment ago has that moment to come back. Blocks; reads only what changed.
    ///
    /// # Errors
    /// The session is dead.
    pub fn catch_up(&self, paths: Option<&[PathBuf]>) -> Result<u32, SessionError> {
        let paths = paths.map(|paths| self.absolute(paths));
        self.ask(|reply| Command::CatchUp { paths, reply })
    }

    /// The same for files that we have written or removed ourselves: at once, and nothing else is
    /// looked at.
    ///
    /// # Errors
    /// The session is dead.
    pub fn take_in(&self, written: &[PathBuf]) -> Result<u32, SessionError> {
        let written = self.absolute(written);
        self.ask(|reply| Command::TakeIn { written, reply })
    }

    fn absolute(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        let folder = self.project().folder.clone();
        paths.iter().map(|path| disk::normal(&folder.join(path))).collect()
    }

    fn ask(&self, command: impl FnOnce(Sender<u32>) -> Command) -> Result<u32, SessionError> {
        let (reply, answer) = bounded(1);
        let asked = self.commands.send(command(reply)).ok().and_then(|()| answer.recv().ok());
        asked.ok_or_else(|| SessionError::Dead { reason: self.death() })
    }

    /// The whole tree, parents first, with its version.
    pub fn nodes(&self) -> (u32, Vec<Node>) {
        let state = self.board.state.read();
        let instances = state.tree.descendants(state.tree.get_root_id());
        (state.cursor, instances.map(|instance| wire::node(instance, state.hash(instance))).collect())
    }

    /// What is known of each instance, with the version of the tree.
    pub fn look(&self, ids: &[NodeId]) -> (u32, Vec<Option<Look>>) {
        let state = self.board.state.read();
        let looker = self.looker();
        (state.cursor, ids.iter().map(|&id| looker.look(&state, wire::referent(id))).collect())
    }

    /// An instance with everything below it.
    pub fn new_node(&self, id: NodeId) -> Option<NewNode> {
        wire::new_node(&self.board.state.read().tree, wire::referent(id))
    }

    /// The files that an instance and all below it come from. `None`: there is no such instance.
    ///
    /// # Errors
    /// In words: some of it comes from something else.
    pub fn own_files(&self, id: NodeId) -> Option<Result<OwnFiles, String>> {
        OwnFiles::of(&self.board.state.read(), &self.looker(), wire::referent(id))
    }

    /// The scripts of an instance and all below it with their files, if it can be moved with the
    /// folder at `path`, relative to the project.
    ///
    /// # Errors
    /// In words: what hangs on the folder's name.
    pub fn scripts_of_folder(&self, id: NodeId, path: &str) -> Result<Vec<(PathBuf, TextHash)>, String> {
        let (state, looker) = (self.board.state.read(), self.looker());
        let path = looker.absolute(Path::new(path));
        movable::scripts_of_folder(&state, &looker, &self.board.roots.read(), wire::referent(id), &path)
    }

    /// The files that would stand for what was made in Studio.
    ///
    /// # Errors
    /// No files of the project are read back as the same instances.
    pub fn new_files(&self, node: &NewNode) -> Result<NewFiles, String> {
        let emit = self.with_tree(|tree, _| {
            let root = tree.get_metadata(tree.get_root_id());
            root.map(|metadata| metadata.context.clone()).unwrap_or_default()
        });
        models::files(node, &emit)
    }

    /// The instances that `wanted` names. Several are twins.
    pub fn find(&self, wanted: &Target<'_>) -> Vec<NodeId> {
        let state = self.board.state.read();
        let found: Vec<Ref> = match wanted {
            Target::FsPath(path) => self.looker().at_file(&state.tree, path),
            Target::InstancePath(path) => query::at_instance_path(&state.tree, path),
        };
        found.into_iter().map(wire::node_id).collect()
    }

    /// Whether the text of a script changed at `since` or later, or after the version `seen`, as
    /// far as the history reaches.
    pub fn text_moved(&self, id: NodeId, since: Instant, seen: u32) -> bool {
        self.board.state.read().text_moved(wire::referent(id), since, seen)
    }

    /// Whether the script at `path`, relative to the project, had a text with this hash while it was
    /// served, before the one that it has now. A text that was only written there for Studio proves
    /// nothing.
    pub fn had(&self, path: &str, hash: TextHash) -> bool {
        if self.written.lock().unwrap_or_else(PoisonError::into_inner).contains(&hash) {
            return false;
        }
        let state = self.board.state.read();
        self.looker().at_file(&state.tree, path).into_iter().any(|id| state.had(id, hash))
    }

    /// This text was written to a file by a sync.
    pub fn note_written(&self, hash: TextHash) {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).insert(hash);
    }

    /// Where files of the project may be written, and which new ones would be read back as meant.
    pub fn sources(&self) -> Sources {
        let outside = self.write_outside.load(Ordering::Relaxed);
        let rules = readback::rules(self.commands.clone());
        Sources::new(self.project().folder.clone(), self.board.roots.read().clone(), outside).with_rules(rules)
    }

    /// Let files be written below `$path`s that lead out of the project's folder, too.
    pub fn allow_writes_outside(&self) {
        self.write_outside.store(true, Ordering::Relaxed);
    }

    /// What is not as it should be: the session itself, its settings, and what is not served.
    /// Of many files that are not served the first are named.
    pub fn problems(&self) -> Vec<Problem> {
        problems::first(self.all_problems())
    }

    fn all_problems(&self) -> Vec<Problem> {
        let own = problems::of_health(&self.board.health.borrow());
        let settings = problems::needing_restart(&self.board.started, &self.project());
        own.into_iter().chain(settings).chain(self.board.problems.read().iter().cloned()).collect()
    }

    /// In one line, what makes the tree other than the files, for every answer that rests on the
    /// tree. `None`: nothing does.
    pub fn warning(&self) -> Option<String> {
        problems::warning(&self.all_problems())
    }

    /// The tree as a binary model: the services of a place, or the one instance of a model.
    pub fn place_model(&self) -> Vec<u8> {
        query::place_model(&self.board.state.read().tree)
    }

    /// Every batch of paths that changed, whether or not the tree did.
    pub fn subscribe_paths(&self) -> broadcast::Receiver<Arc<Vec<PathBuf>>> {
        self.board.paths.subscribe()
    }

    fn looker(&self) -> query::Looker {
        query::Looker::new(&self.board)
    }

    fn death(&self) -> String {
        match &*self.board.health.borrow() {
            Health::Dead { reason } => reason.clone(),
            Health::Live | Health::Behind { .. } => "its thread is gone".to_owned(),
        }
    }
}
