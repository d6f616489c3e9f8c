//! A TCP proxy that hurts the connections that go through it. TCP hides loss and doubling of single
//! packets; what remains are delays, stalls, cuts, ends that only one side sees, and whole messages
//! of the WebSocket that come twice.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

use crate::{frames::Frames, random::Random};

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nothing happens yet.
    Alive,
    /// Both directions break at once.
    Cut,
    /// The server sees an end; what it still says goes on.
    EndToServer,
    /// The plugin sees an end; what it still says goes on.
    EndToPlugin,
    /// Nothing passes any more, and neither side is told.
    Stall,
}

/// Which messages may come twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Twice {
    Both,
    /// The other way nothing numbers them, so that the plugin could not know.
    FromPlugin,
}

/// What a proxy has done.
#[derive(Debug, Default)]
pub struct Deeds {
    pub connections: AtomicU64,
    pub faults: AtomicU64,
    /// Messages that came twice.
    pub doubled: AtomicU64,
}

/// Listen on a port of its own, carry to `server`, and hurt every connection once. One stall at
/// most, since it takes half a minute until both sides give a silent link up.
pub async fn start(server: u16, seed: u64, twice: Twice) -> (u16, Arc<Deeds>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let deeds = Arc::new(Deeds::default());
    let counted = Arc::clone(&deeds);
    tokio::spawn(async move {
        let mut random = Random::new(seed);
        let mut may_stall = true;
        while let Ok((plugin, _)) = listener.accept().await {
            counted.connections.fetch_add(1, Ordering::Relaxed);
            let (fate, chunks) = draw(&mut random, &mut may_stall);
            let connection = Connection { fate, chunks, seed: random.below(u64::MAX), twice };
            tokio::spawn(connection.carry(plugin, server, Arc::clone(&counted)));
        }
    });
    (port, deeds)
}

/// What happens to a connection, and after how many chunks.
fn draw(random: &mut Random, may_stall: &mut bool) -> (Fate, u64) {
    // Some break in the hello, most under load.
    let early = random.below(6) == 0;
    let fate = match random.below(8) {
        0..=2 => Fate::Cut,
        3 | 4 => Fate::EndToServer,
        5 | 6 => Fate::EndToPlugin,
        _ if *may_stall && !early => {
            *may_stall = false;
            Fate::Stall
        }
        _ => Fate::Cut,
    };
    let chunks = if early { random.below(12) } else { 100 + random.below(900) };
    (fate, chunks)
}

/// What is drawn for one connection.
struct Connection {
    fate: Fate,
    chunks: u64,
    seed: u64,
    twice: Twice,
}

impl Connection {
    async fn carry(self, plugin: TcpStream, server: u16, deeds: Arc<Deeds>) {
        let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
        for stream in [&plugin, &server] {
            stream.set_nodelay(true).expect("an open socket");
        }
        let Self { fate, chunks, seed, twice } = self;
        let (say, hear) = watch::channel(Fate::Alive);
        let left = Arc::new(AtomicU64::new(chunks));
        let counted = Arc::clone(&deeds);
        let strike = Arc::new(move || {
            if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                counted.faults.fetch_add(1, Ordering::Relaxed);
                say.send_replace(fate);
            }
        });
        let (from_plugin, to_plugin) = plugin.into_split();
        let (from_server, to_server) = server.into_split();
        let pump = |end, seed, twice| Pump {
            fate: hear.clone(),
            end,
            random: Random::new(seed),
            frames: Frames::default(),
            twice,
            deeds: Arc::clone(&deeds),
        };
        let up = pump(Fate::EndToServer, seed, true);
        let down = pump(Fate::EndToPlugin, seed ^ 1, twice == Twice::Both);
        let (up_strike, down_strike) = (Arc::clone(&strike), strike);
        tokio::join!(
            up.run(from_plugin, to_server, move || up_strike()),
            down.run(from_server, to_plugin, move || down_strike())
        );
    }
}

/// One direction.
struct Pump {
    fate: watch::Receiver<Fate>,
    /// The fate that ends this direction alone.
    end: Fate,
    random: Random,
    frames: Frames,
    /// Messages may come twice.
    twice: bool,
    deeds: Arc<Deeds>,
}

impl Pump {
    async fn run(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, strike: impl Fn()) {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let fate = *self.fate.borrow_and_update();
            match fate {
                Fate::Alive => {}
                Fate::Cut => return,
                Fate::Stall => {
                    // Held open until both sides have given it up and the test has ended.
                    std::future::pending::<()>().await;
                }
                fate if fate == self.end => {
                    let _ = to.shutdown().await;
                    // What still comes is read and lost, as by a peer that is gone.
                    while from.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
                    return;
                }
                Fate::EndToServer | Fate::EndToPlugin => {}
            }
            let fated = !matches!(fate, Fate::Alive);
            let read = tokio::select! {
                read = from.read(&mut buffer) => read,
                changed = self.fate.changed(), if !fated => match changed {
                    Ok(()) | Err(_) => continue,
                },
            };
            let Ok(read @ 1..) = read else {
                let _ = to.shutdown().await;
                return;
            };
            self.delay().await;
            if to.write_all(&buffer[..read]).await.is_err() {
                return;
            }
            self.frames.carried(&buffer[..read]);
            if self.twice && self.repeat(&mut to).await.is_err() {
                return;
            }
            strike();
        }
    }

    /// Now and then a message comes once more.
    async fn repeat(&mut self, to: &mut OwnedWriteHalf) -> std::io::Result<()> {
        if self.random.below(40) > 0 {
            return Ok(());
        }
        let Some(message) = self.frames.repeatable() else { return Ok(()) };
        self.deeds.doubled.fetch_add(1, Ordering::Relaxed);
        to.write_all(message).await
    }

    /// Now and then a chunk is late, and rarely by more than a second.
    async fn delay(&mut self) {
        let most = match self.random.below(1_000) {
            0 => 1_500,
            1..=20 => 30,
            _ => return,
        };
        tokio::time::sleep(Duration::from_millis(self.random.below(most))).await;
    }
}
