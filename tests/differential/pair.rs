//! Both servers on one folder.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Once,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rojo_mcp::{Server, ServerConfig, session::ServeSession};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    client,
    shape::{self, Shape},
    stock::{Spare, Stock},
};

/// How long our live tree may take, on a busy machine in a debug build.
const OURS: Duration = Duration::from_secs(30);

/// How long Rojo's live tree may take before it counts as stale. Then it is started again.
const LIVE_STOCK: Duration = Duration::from_millis(400);

/// How long the tree of a Rojo that has just started may take to be the one that we have.
const FRESH_STOCK: Duration = Duration::from_secs(2);

/// How long Rojo may take to start.
const STOCK_START: Duration = Duration::from_secs(60);

/// How often it may crash soon after a start.
const STOCK_CRASHES: usize = 3;

const LOOK_AGAIN: Duration = Duration::from_millis(15);

/// Panics of our sessions: they are survived, so that only this tells.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().name() == Some("session") {
                PANICS.fetch_add(1, Ordering::SeqCst);
            }
            report(panic);
        }));
    });
}

/// What became of Rojo, step by step.
#[derive(Debug, Default)]
pub struct Tally {
    /// Its live tree was the same.
    pub live: usize,
    /// It had crashed or gone stale; started again, its tree was the same.
    pub restarted: usize,
    /// It does not start on these files.
    pub refused: usize,
}

impl Tally {
    /// How often both trees were compared.
    pub fn steps(&self) -> usize {
        self.live + self.restarted + self.refused
    }

    /// Take another one in.
    pub fn add(&mut self, other: &Self) {
        self.live += other.live;
        self.restarted += other.restarted;
        self.refused += other.refused;
    }
}

/// Both servers on one folder.
pub struct Pair {
    folder: TempDir,
    session: Arc<ServeSession>,
    ours: u16,
    stock: Option<Stock>,
    spare: Option<Spare>,
    shutdown: CancellationToken,
    pub tally: Tally,
}

impl Pair {
    /// Serve `files` with both.
    pub async fn start(files: &[(&str, &str)]) -> Self {
        count_panics();
        let folder = TempDir::new().expect("a temporary folder");
        for (path, text) in files {
            write(&folder.path().join(path), text);
        }
        let session = open(folder.path()).await.expect("the project starts");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let shutdown = CancellationToken::new();
        let server =
            Server::start(listener, ServerConfig::new(Arc::clone(&session), shutdown.clone())).expect("it starts");
        let (ours, spare) = (server.address.port(), Some(Spare::start()));
        Self { folder, session, ours, stock: None, spare, shutdown, tally: Tally::default() }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        write(&self.path(path), text);
    }

    /// Remove a file or folder.
    pub fn remove(&self, path: &str) {
        remove(&self.path(path));
    }

    pub fn rename(&self, from: &str, to: &str) {
        let to = self.path(to);
        fs::create_dir_all(to.parent().expect("it lies in the folder")).expect("folders can be made");
        fs::rename(self.path(from), to).expect("it can be renamed");
    }

    /// Wait until both trees are what the files say.
    ///
    /// # Errors
    /// They differ, and where.
    pub async fn agree(&mut self) -> Result<(), String> {
        let Ok(fresh) = open(self.folder.path()).await else {
            return self.stock_refuses().await;
        };
        let served_whole = fresh.problems().is_empty();
        let wanted = fresh_shape(fresh).await;
        self.ours_is(&wanted).await?;
        if PANICS.load(Ordering::SeqCst) > 0 {
            return Err("a session panicked; it went on, but must not have".to_owned());
        }
        match self.restarted_if_dead().await {
            Ok(()) if self.stock_becomes(&wanted, LIVE_STOCK).await.is_ok() => {
                self.tally.live += 1;
                return Ok(());
            }
            _ => {}
        }
        match self.restart().await {
            Ok(()) => {
                for _ in 0..STOCK_CRASHES {
                    if self.stock_becomes(&wanted, FRESH_STOCK).await.is_err() && !self.stock_lives() {
                        self.restart().await?;
                    }
                }
                self.stock_becomes(&wanted, FRESH_STOCK).await?;
                self.tally.restarted += 1;
                Ok(())
            }
            Err(_) if !served_whole => {
                self.tally.refused += 1;
                Ok(())
            }
            Err(reason) => Err(format!("we see no problem, but Rojo does not start: {reason}")),
        }
    }

    /// Our session cannot start on the files. Then Rojo cannot either, and what we serve live is
    /// the last good tree.
    async fn stock_refuses(&mut self) -> Result<(), String> {
        if self.restart().await.is_ok() {
            return Err("Rojo serves what we refuse".to_owned());
        }
        self.tally.refused += 1;
        client::read(self.ours).await.map(|_| ())
    }

    async fn ours_is(&self, wanted: &Shape) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let live = shape::of(&client::read(self.ours).await?.instances);
            if live == *wanted {
                return Ok(());
            }
            if begun.elapsed() > OURS {
                return Err(shape::difference(("live with us", &live), ("fresh with us", wanted)));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn stock_becomes(&mut self, wanted: &Shape, within: Duration) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let port = self.stock.as_mut().and_then(|stock| stock.is_alive().then_some(stock.port));
            let port = port.ok_or("Rojo has crashed")?;
            let theirs = shape::of(&client::read(port).await?.instances);
            if theirs == *wanted {
                return Ok(());
            }
            if begun.elapsed() > within {
                return Err(shape::difference(("with us", wanted), ("with Rojo", &theirs)));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    fn stock_lives(&mut self) -> bool {
        self.stock.as_mut().is_some_and(Stock::is_alive)
    }

    async fn restarted_if_dead(&mut self) -> Result<(), String> {
        if self.stock_lives() { Ok(()) } else { self.restart().await }
    }

    async fn restart(&mut self) -> Result<(), String> {
        self.stock = None;
        let spare = self.spare.take().unwrap_or_else(Spare::start);
        let mut stock = spare.serve(self.folder.path());
        self.spare = Some(Spare::start());
        let begun = Instant::now();
        while client::info(stock.port).await.is_err() {
            if !stock.is_alive() {
                return Err("its process has ended".to_owned());
            }
            if begun.elapsed() > STOCK_START {
                return Err(format!("it does not answer within {STOCK_START:?}"));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.stock = Some(stock);
        Ok(())
    }

    /// What both answer at `/api/rojo`, but for their session and root. Rojo is started again: its
    /// own answer never changes while it runs.
    pub async fn infos(&mut self) -> [String; 2] {
        self.restart().await.expect("Rojo starts");
        let stock = self.stock.as_ref().expect("it has just started").port;
        let mut shown = Vec::new();
        for port in [self.ours, stock] {
            let info = client::info(port).await.expect("an answer");
            let sorted = |ids: Option<std::collections::HashSet<u64>>| {
                ids.map(|ids| ids.into_iter().collect::<std::collections::BTreeSet<_>>())
            };
            shown.push(format!(
                "{} protocol {} {:?} expected {:?} unexpected {:?} game {:?} place {:?}",
                info.server_version,
                info.protocol_version,
                info.project_name,
                sorted(info.expected_place_ids),
                sorted(info.unexpected_place_ids),
                info.game_id,
                info.place_id
            ));
        }
        shown.try_into().expect("two servers")
    }

    /// Bring our tree up to the files, for what is asked of it next.
    pub async fn catch_up(&self) {
        let session = Arc::clone(&self.session);
        let caught_up = tokio::task::spawn_blocking(move || session.catch_up(None)).await;
        caught_up.expect("no panic").expect("the session lives");
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

async fn open(project: &Path) -> Result<Arc<ServeSession>, String> {
    let project = project.to_path_buf();
    let started = tokio::task::spawn_blocking(move || ServeSession::start(&project)).await;
    started.expect("no panic").map_err(|error| error.to_string())
}

/// The tree of a session that nobody serves, over a server of its own: the same way to the client.
async fn fresh_shape(session: Arc<ServeSession>) -> Shape {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let shutdown = CancellationToken::new();
    let server = Server::start(listener, ServerConfig::new(session, shutdown.clone())).expect("it starts");
    let tree = client::read(server.address.port()).await.expect("an answer");
    shutdown.cancel();
    shape::of(&tree.instances)
}

pub fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("folders can be made");
    fs::write(path, text).expect("a file can be written");
}

pub fn remove(path: &Path) {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.expect("it can be removed");
}
