//! What a busy day does to a served project, in short: edits, deletions, renames and git, at
//! random, while two clients read and a third has stopped reading. At the end the live tree must be
//! the one of a fresh start, the clients' pictures too, and nothing may have panicked.
//!
//! `ROJO_MCP_CHURN_SECONDS=600` goes on for longer, `ROJO_MCP_CHURN_SEED=7` does other things.
#![expect(clippy::disallowed_methods, reason = "an editor and git are not the server")]

#[path = "support/client.rs"]
mod client;
#[path = "support/shape.rs"]
mod shape;

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use librojo::web_api::{Instance, SocketPacket, SocketPacketBody, SubscribeMessage};
use rbx_dom_weak::types::Ref;
use rojo_mcp::{
    Server,
    session::{Health, ServeSession},
};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_util::sync::CancellationToken;

/// How long after the last change everything may take to settle, on a busy machine.
const SETTLE: Duration = Duration::from_secs(60);

/// A xorshift: the same steps for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).expect("less than the sides")
    }
}

/// A project that is a git repository with two branches.
struct Repository {
    folder: tempfile::TempDir,
    dice: Dice,
}

impl Repository {
    fn new(seed: u64) -> Self {
        let repository = Self { folder: tempfile::tempdir().expect("a temporary folder"), dice: Dice(seed | 1 << 40) };
        let project = r#"{"name":"Churn","tree":{"$className":"DataModel","ServerStorage":{"Kit":{"$path":"src"}}}}"#;
        repository.write("default.project.json", project);
        for pack in 0..8 {
            for file in 0..12 {
                repository.write(&format!("src/Pack{pack}/f{file}.luau"), &format!("return {file}"));
            }
        }
        repository.write("src/Beta/init.luau", "return {}");
        repository.git(&["init", "-q", "-b", "main"]);
        repository.commit("all");
        repository.git(&["checkout", "-q", "-b", "feat"]);
        for pack in 0..8 {
            if pack % 2 == 0 {
                fs::remove_dir_all(repository.path(&format!("src/Pack{pack}"))).expect("removed");
                repository.write(&format!("src/Pack{pack}.luau"), "return 'one file'");
            } else {
                let to = repository.path(&format!("src/Renamed{pack}"));
                fs::rename(repository.path(&format!("src/Pack{pack}")), to).expect("renamed");
            }
        }
        fs::rename(repository.path("src/Beta/init.luau"), repository.path("src/Beta/init.server.luau"))
            .expect("renamed");
        repository.write("default.project.json", &project.replace("\"Kit\"", "\"Kit2\""));
        repository.commit("otherwise");
        repository
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders can be made");
        fs::write(path, text).expect("a file can be written");
    }

    /// Run git as nobody in particular. It may refuse: a stash may be empty, a switch overwrite.
    fn git(&self, args: &[&str]) -> bool {
        let mut git = Command::new("git");
        git.current_dir(self.folder.path()).args(["-c", "user.name=churn", "-c", "user.email=churn@example.com"]);
        git.args(["-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"]).args(args);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        git.output().expect("git runs").status.success()
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        assert!(self.git(&["commit", "-q", "-m", message]));
    }

    /// Something in `src`, file or folder.
    fn any(&mut self) -> Option<PathBuf> {
        let mut all = Vec::new();
        let mut folders = vec![self.path("src")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path.clone());
                }
                all.push(path);
            }
        }
        all.sort();
        (!all.is_empty()).then(|| all.swap_remove(self.dice.roll(all.len())))
    }

    fn step(&mut self) {
        let number = self.dice.roll(1000);
        match self.dice.roll(20) {
            0..=6 => {
                if let Some(file) = self.any().filter(|path| path.extension().is_some_and(|end| end == "luau")) {
                    fs::write(file, format!("return 'edit {number}'")).expect("a file can be written");
                }
            }
            7..=9 => self.write(&format!("src/New{}/deep/n{number}.luau", number % 7), "return 'new'"),
            10..=11 => self.any().iter().for_each(|path| remove(path)),
            12 => {
                let to = self.path(&format!("src/Moved{number}"));
                if let Some(from) = self.any().filter(|path| path.is_dir()) {
                    _ = fs::rename(from, to); // not into itself
                }
            }
            13 => {
                let saved = self.path("src/.saved");
                fs::write(&saved, format!("return 'by rename {number}'")).expect("a file can be written");
                fs::rename(saved, self.path("src/Saved.luau")).expect("renamed");
            }
            14 => self.write("src/Cfg.json", if number < 300 { "{" } else { "{\"a\":1}" }),
            15 => _ = self.git(&["checkout", "-q", "-f", if number < 500 { "main" } else { "feat" }]),
            16 => _ = self.git(&["stash", "-q", "-u"]),
            17 => _ = self.git(&["stash", "pop", "-q"]),
            18 => _ = self.git(&["clean", "-fdq"]),
            _ => _ = self.git(&["checkout", "-q", "--", "."]),
        }
        fs::create_dir_all(self.path("src")).expect("the root stays");
    }
}

fn remove(path: &Path) {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.expect("it can be removed");
}

async fn socket(port: u16, cursor: u32) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    let url = format!("ws://localhost:{port}/api/socket/{cursor}");
    tokio_tungstenite::client_async(url, stream).await.expect("an upgrade").0
}

/// What a client makes of the messages.
struct Picture {
    instances: HashMap<Ref, Instance<'static>>,
    cursor: u32,
}

impl Picture {
    /// Follow `socket` until the version `last` is reached, which is told when it is known.
    async fn follow(
        mut self,
        mut socket: WebSocketStream<TcpStream>,
        mut last: tokio::sync::watch::Receiver<u32>,
    ) -> Self {
        while self.cursor < *last.borrow_and_update() {
            let message = tokio::select! {
                message = socket.next() => message.expect("it is open").expect("a frame"),
                changed = last.changed() => {
                    changed.expect("the test goes on");
                    continue;
                }
            };
            let packet: SocketPacket<'static> = client::decode(&message.into_data());
            let SocketPacketBody::Messages(batch) = packet.body;
            batch.messages.into_iter().for_each(|message| self.take(message));
            self.cursor = batch.message_cursor;
        }
        self
    }

    fn take(&mut self, message: SubscribeMessage<'static>) {
        for id in message.removed {
            let parent = self.instances.get(&id).expect("what is removed is known").parent;
            if let Some(parent) = self.instances.get_mut(&parent) {
                parent.children.to_mut().retain(|child| *child != id);
            }
            let mut gone = vec![id];
            while let Some(id) = gone.pop() {
                gone.extend(self.instances.remove(&id).into_iter().flat_map(|instance| instance.children.into_owned()));
            }
        }
        let added: Vec<(Ref, Ref)> = message.added.values().map(|instance| (instance.parent, instance.id)).collect();
        self.instances.extend(message.added);
        for (parent, id) in added {
            let parent = self.instances.get_mut(&parent).expect("what is added has a parent");
            if !parent.children.contains(&id) {
                parent.children.to_mut().push(id);
            }
        }
        for update in message.updated {
            let instance = self.instances.get_mut(&update.id).expect("what is updated is known");
            instance.name = update.changed_name.map_or_else(|| instance.name.clone(), Into::into);
            instance.class_name = update.changed_class_name.unwrap_or(instance.class_name);
            instance.metadata = update.changed_metadata.or(instance.metadata.take());
            for (key, value) in update.changed_properties {
                match value {
                    Some(value) => _ = instance.properties.insert(key, std::borrow::Cow::Owned(value)),
                    None => _ = instance.properties.remove(&key),
                }
            }
        }
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

/// Panics on any thread: the session survives some, and none must happen.
fn count_panics() -> Arc<AtomicUsize> {
    let panics = Arc::new(AtomicUsize::new(0));
    let (counted, report) = (Arc::clone(&panics), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        counted.fetch_add(1, Ordering::SeqCst);
        report(panic);
    }));
    panics
}

async fn open(project: &Path) -> Arc<ServeSession> {
    let project = project.to_path_buf();
    let started = tokio::task::spawn_blocking(move || ServeSession::start(&project)).await;
    started.expect("no panic").expect("the project starts")
}

async fn serve(session: &Arc<ServeSession>) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let server = Server::start(listener, Arc::clone(session), Vec::new(), CancellationToken::new());
    server.expect("it starts").address.port()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_busy_day() {
    let panics = count_panics();
    let mut repository = Repository::new(number("ROJO_MCP_CHURN_SEED", 1));
    let session = open(repository.folder.path()).await;
    let port = serve(&session).await;
    let (told, last) = tokio::sync::watch::channel(u32::MAX);
    let mut pictures = Vec::new();
    for _ in 0..2 {
        let read = client::read(port).await.expect("an answer");
        let picture = Picture { cursor: read.message_cursor, instances: read.instances };
        let socket = socket(port, picture.cursor).await;
        pictures.push(tokio::spawn(picture.follow(socket, last.clone())));
    }
    let _stopped_reading = socket(port, 0).await;

    let end = Instant::now() + Duration::from_secs(number("ROJO_MCP_CHURN_SECONDS", 12));
    let steps = tokio::task::spawn_blocking(move || {
        let mut steps = 0;
        while Instant::now() < end {
            repository.step();
            steps += 1;
            if repository.dice.roll(4) == 0 {
                std::thread::sleep(Duration::from_millis(repository.dice.roll(200) as u64)); // a person thinks
            }
        }
        repository.write(
            "default.project.json",
            r#"{"name":"End","tree":{"$className":"DataModel","ServerStorage":{"Kit":{"$path":"src"}}}}"#,
        );
        (steps, repository)
    });
    let (steps, repository) = steps.await.expect("no panic");

    let fresh_session = open(repository.folder.path()).await;
    let fresh = shape::of(&client::read(serve(&fresh_session).await).await.expect("an answer").instances);
    let settled = Instant::now();
    let live = loop {
        let read = client::read(port).await.expect("an answer");
        let live = shape::of(&read.instances);
        if live == fresh || settled.elapsed() > SETTLE {
            told.send_replace(read.message_cursor);
            break live;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(live == fresh, "after {steps} steps: {}", shape::difference(("live", &live), ("fresh", &fresh)));
    for picture in pictures {
        let picture = tokio::time::timeout(SETTLE, picture).await.expect("in time").expect("no panic");
        let seen = shape::of(&picture.instances);
        assert!(seen == live, "{}", shape::difference(("a client", &seen), ("the server", &live)));
    }
    assert_eq!(*session.health().borrow(), Health::Live);
    assert_eq!(panics.load(Ordering::SeqCst), 0, "after {steps} steps");
    eprintln!("{steps} steps, {} versions of the tree", *session.cursor().borrow());
}
