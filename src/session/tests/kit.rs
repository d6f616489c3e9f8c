//! A project in a temporary folder, and the oracle: the tree that a new session makes of it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use librojo::RojoTree;
use rbx_dom_weak::types::{Ref, Variant};
use tempfile::TempDir;

use crate::{
    clock,
    session::{ServeSession, Target, run, watch::Signal, wire},
};

/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(30);

/// The base tree that the cases start from.
pub const BASE: [(&str, &str); 5] = [
    (
        "default.project.json",
        r#"{"name":"Demo","tree":{"$className":"DataModel","ServerStorage":{"Kit":{"$path":"src"}}}}"#,
    ),
    ("src/Alpha.luau", "return 1"),
    ("src/Beta/init.luau", "return {}"),
    ("src/Beta/Gamma.luau", "return 3"),
    ("src/Deep/One/Two/Leaf.server.luau", "print(1)"),
];

pub struct Project {
    folder: TempDir,
    session: Option<Arc<ServeSession>>,
}

/// A line for each instance: path, class, properties.
pub type Shape = Vec<(String, String, BTreeMap<String, String>)>;

impl Project {
    /// Files without a session.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let project = Self { folder: TempDir::new().expect("a temporary folder"), session: None };
        for (path, text) in files {
            project.write(path, text);
        }
        project
    }

    /// The base tree, served.
    pub fn base() -> Self {
        Self::new(&BASE).serve()
    }

    pub fn serve(self) -> Self {
        let path = self.path("");
        self.serve_at(&path)
    }

    pub fn serve_at(mut self, path: &Path) -> Self {
        let session = ServeSession::start(path).expect("the project starts");
        session.catch_up(None).expect("it follows the files from here on");
        self.session = Some(session);
        self
    }

    /// The same, and nobody asks it to look again.
    pub fn serve_unasked(mut self) -> Self {
        self.session = Some(ServeSession::start(&self.path("")).expect("the project starts"));
        self
    }

    /// The same, with a channel of the test's for what the watcher says.
    pub fn serve_with(mut self, signals: run::Signals) -> Self {
        let session = ServeSession::start_with(&self.path(""), signals).expect("the project starts");
        session.catch_up(None).expect("it follows the files from here on");
        self.session = Some(session);
        self
    }

    /// The same, and what the watcher says reaches the session when the test lets it.
    pub fn serve_held(self) -> (Self, Held) {
        let ((said, says), (hand_on, signals)) = (unbounded(), unbounded());
        // The watcher says it to the one, and the session hears the other.
        (self.serve_with((said, signals)), Held { says, hand_on })
    }

    pub fn session(&self) -> &Arc<ServeSession> {
        self.session.as_ref().expect("it is served")
    }

    /// Let go of the session.
    pub fn end(&mut self) {
        self.session = None;
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("the folder exists").join(path)
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("it lies in the project")).expect("folders can be made");
        fs::write(path, text).expect("a file can be written");
    }

    pub fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).expect("it can be renamed");
    }

    /// Remove a file or a folder.
    pub fn remove(&self, path: &str) {
        let path = self.path(path);
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.expect("it can be removed");
    }

    /// The tree as it is.
    pub fn shape(&self) -> Shape {
        shape(self.session())
    }

    /// Wait until the tree is the one that a new session makes of the files; then see whether the
    /// session still lives, and never panicked: it survives that, but nobody may rely on it.
    pub fn oracle(&self) {
        self.still_follows();
        assert_eq!(self.session().board.panics.load(Ordering::SeqCst), 0, "panics were survived");
    }

    /// The same, whatever happened before.
    pub fn still_follows(&self) {
        self.equals_fresh();
        self.write("src/Zprobe.luau", "return 'probe'");
        self.until("the probe is seen", |session| !find(session, "ServerStorage.Kit.Zprobe").is_empty());
        self.remove("src/Zprobe.luau");
        self.until("the probe is gone", |session| find(session, "ServerStorage.Kit.Zprobe").is_empty());
        self.equals_fresh();
    }

    /// Wait until the tree is the one that a new session makes of the files.
    pub fn equals_fresh(&self) {
        let fresh = shape(&ServeSession::start(&self.session().project().file).expect("the files make a project"));
        let wait = self.wait(|session| shape(session) == fresh);
        assert!(wait, "{}", difference(&self.shape(), &fresh));
    }

    /// Wait for `condition`.
    #[track_caller]
    pub fn until(&self, what: &str, condition: impl Fn(&ServeSession) -> bool) {
        assert!(self.wait(condition), "after {PATIENCE:?} not yet: {what}; the tree: {:#?}", self.shape());
    }

    fn wait(&self, condition: impl Fn(&ServeSession) -> bool) -> bool {
        let session = self.session();
        let (mut cursor, deadline) = (session.cursor(), clock::now() + PATIENCE);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        loop {
            cursor.mark_unchanged();
            if condition(session) {
                return true;
            }
            let left = deadline.saturating_duration_since(clock::now());
            if left.is_zero() {
                return false;
            }
            // Health and problems change without the cursor: so look again now and then.
            let step = left.min(Duration::from_millis(50));
            _ = runtime.block_on(async { tokio::time::timeout(step, cursor.changed()).await });
        }
    }

    /// The text of the one script at an instance path.
    pub fn text(&self, path: &str) -> Option<String> {
        let session = self.session();
        let ids = find(session, path);
        assert!(ids.len() <= 1, "{path} has twins");
        let (_, looks) = session.look(&ids);
        looks.into_iter().flatten().next().and_then(|look| look.source)
    }

    /// The id of the one instance at an instance path.
    pub fn id(&self, path: &str) -> crate::core::ids::NodeId {
        let ids = find(self.session(), path);
        assert_eq!(ids.len(), 1, "{path}");
        ids[0]
    }
}

/// What the watcher says, on its way to the session.
pub struct Held {
    says: Receiver<Signal>,
    hand_on: Sender<Signal>,
}

impl Held {
    /// Hand on all that is said up to the call to look at `path`, as if it had come at one moment:
    /// however slow this machine is, the session does not look in between.
    pub fn hand_on_until(&self, project: &Project, path: &str) {
        let last = Signal::Look(project.path(path));
        let mut said = Vec::new();
        while said.last() != Some(&last) {
            said.push(self.says.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("nobody speaks of {path}: {said:?}")));
        }
        let ((begun, has_begun), (release, until)) = (bounded(1), bounded::<()>(1));
        project.session().commands.send(run::Command::Hold { begun, until }).expect("the thread lives");
        has_begun.recv().expect("it is held");
        said.into_iter().for_each(|signal| self.hand_on.send(signal).expect("the thread lives"));
        release.send(()).expect("it is held");
    }

    /// Hand on all from here on, as it is said.
    pub fn let_go(self) {
        std::thread::spawn(move || self.says.iter().try_for_each(|signal| self.hand_on.send(signal)));
    }
}

pub fn find(session: &ServeSession, path: &str) -> Vec<crate::core::ids::NodeId> {
    session.find(&Target::InstancePath(path))
}

pub fn shape(session: &ServeSession) -> Shape {
    session.with_tree(|tree, _| shape_of(tree))
}

pub fn shape_of(tree: &RojoTree) -> Shape {
    let line = |instance: librojo::InstanceWithMeta<'_>| {
        let properties = instance.properties().iter();
        let properties = properties.map(|(key, value)| (key.to_string(), show(tree, value))).collect();
        let ignore = instance.metadata().ignore_unknown_instances;
        (path_of(tree, instance.id()), format!("{} {ignore}", instance.class_name()), properties)
    };
    let mut shape: Shape = tree.descendants(tree.get_root_id()).map(line).collect();
    shape.sort();
    shape
}

fn show(tree: &RojoTree, value: &Variant) -> String {
    match value {
        Variant::Ref(target) => format!("-> {}", path_of(tree, *target)),
        value => format!("{value:?}"),
    }
}

fn path_of(tree: &RojoTree, id: Ref) -> String {
    let up = std::iter::successors(tree.get_instance(id), |instance| tree.get_instance(instance.parent()));
    let mut names: Vec<&str> = up.map(|instance| instance.name()).collect();
    names.reverse();
    names.join(".")
}

fn difference(live: &Shape, fresh: &Shape) -> String {
    let only = |a: &Shape, b: &Shape| a.iter().filter(|line| !b.contains(line)).cloned().collect::<Vec<_>>();
    format!("only in the live tree: {:#?}\nonly in the fresh one: {:#?}", only(live, fresh), only(fresh, live))
}

/// Every message so far, applied to what a client read at version 0, gives the tree as it is.
pub fn messages_add_up(session: &ServeSession) {
    let batch = session.messages_since(0).expect("the history reaches to the start");
    let mut last = 0;
    for message in &batch.messages {
        assert_eq!(message.cursor, last + 1, "no version is left out");
        last = message.cursor;
    }
    session.with_tree(|tree, cursor| {
        assert_eq!(last, cursor);
        for message in &batch.messages {
            for id in &message.rojo.removed {
                assert!(
                    tree.get_instance(*id).is_none(),
                    "what was removed does not come back: {}",
                    wire::node_id(*id)
                );
            }
        }
    });
}
