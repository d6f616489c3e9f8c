//! A TCP proxy that waits for one frame to the plugin and then stands still, so that something can
//! happen at exactly this step.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// What to wait for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Part of the frame.
    pub frame: &'static str,
    /// What becomes of it.
    pub fate: Fate,
}

/// What becomes of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The plugin never gets it.
    Lost,
    /// It gets it; its answer waits.
    Delivered,
    /// It gets it when all is carried again.
    Held,
}

/// The proxy of one plugin.
pub struct Tap {
    pub port: u16,
    wanted: Arc<Mutex<Option<Wanted>>>,
    struck: watch::Sender<bool>,
}

impl Tap {
    /// Listen on a port of its own and carry to `server`.
    pub async fn start(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (wanted, struck) = (Arc::new(Mutex::new(None)), watch::Sender::new(false));
        let (armed, strike) = (Arc::clone(&wanted), struck.clone());
        tokio::spawn(async move {
            while let Ok((plugin, _)) = listener.accept().await {
                tokio::spawn(carry(plugin, server, Arc::clone(&armed), strike.clone()));
            }
        });
        Self { port, wanted, struck }
    }

    /// Stand still at the next such frame.
    pub fn arm(&self, wanted: Wanted) {
        *self.wanted.lock().expect("no panic") = Some(wanted);
    }

    /// Wait for it.
    pub async fn struck(&self) {
        let mut struck = self.struck.subscribe();
        struck.wait_for(|struck| *struck).await.expect("the tap is there");
    }

    /// Carry everything again.
    pub fn release(&self) {
        *self.wanted.lock().expect("no panic") = None;
        self.struck.send_replace(false);
    }
}

async fn carry(plugin: TcpStream, server: u16, wanted: Arc<Mutex<Option<Wanted>>>, struck: watch::Sender<bool>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    for stream in [&plugin, &server] {
        stream.set_nodelay(true).expect("an open socket");
    }
    let (from_plugin, to_plugin) = plugin.into_split();
    let (from_server, to_server) = server.into_split();
    let hear = struck.subscribe();
    tokio::select! {
        () = up(from_plugin, to_server, hear) => {}
        () = down(from_server, to_plugin, &wanted, &struck) => {}
    }
}

async fn up(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut struck: watch::Receiver<bool>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if struck.wait_for(|struck| !*struck).await.is_err() || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

async fn down(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    wanted: &Mutex<Option<Wanted>>,
    struck: &watch::Sender<bool>,
) {
    let mut buffer = vec![0; 16 * 1024];
    let mut tail: Vec<u8> = Vec::new();
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        tail.extend_from_slice(&buffer[..read]);
        let is_it = |wanted: &Wanted| tail.windows(wanted.frame.len()).any(|part| part == wanted.frame.as_bytes());
        let hit = wanted.lock().expect("no panic").take_if(|wanted| is_it(wanted));
        if hit.is_some() {
            struck.send_replace(true);
        }
        let fate = hit.map_or(Fate::Delivered, |wanted| wanted.fate);
        if fate == Fate::Held {
            let mut hear = struck.subscribe();
            // The tap outlives what it carries.
            let _ = hear.wait_for(|struck| !*struck).await;
        }
        if fate != Fate::Lost && to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
        // A frame's name may be cut by the end of a chunk.
        let keep = tail.len().saturating_sub(32);
        tail.drain(..keep);
    }
}
