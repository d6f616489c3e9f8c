//! The serve session beside Rojo's own, in the same run on the same files, each in a process of its
//! own.
//!
//! `cargo bench --bench session` prints a table of times, memory and ratios. Nothing is asserted:
//! machines are shared. `ROJO_MCP_BENCH_SCRIPTS=1000` measures that one size only. Behind the times
//! of a start stand those of the processor, which other work on the machine hardly changes.
#![expect(clippy::disallowed_methods, reason = "a bench measures time and writes its project")]

#[path = "../tests/support/client.rs"]
mod client;
#[path = "../tests/support/stock.rs"]
mod stock;

use std::{
    collections::HashSet,
    fs,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use librojo::web_api::{SocketPacket, SocketPacketBody};
use rojo_mcp::session::ServeSession;
use stock::{Spare, Stock};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;

const SIZES: [usize; 3] = [1_000, 5_000, 20_000];
/// Between which the cost of one edit shall be the same.
const EDIT_SIZES: [usize; 2] = [1_000, 50_000];
const STARTS: usize = 5;
const EDITS: usize = 100;
/// Between two edits, as they come from a person.
const PAUSE: Duration = Duration::from_millis(100);
const BURST: usize = 2_000;

/// Whatever takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(120);

const SERVICES: [&str; 4] = ["ReplicatedStorage", "ServerScriptService", "ServerStorage", "ReplicatedFirst"];

fn main() {
    stock::run_if_asked();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let only = std::env::var("ROJO_MCP_BENCH_SCRIPTS").ok().map(|text| text.parse().expect("a number"));
        let sizes = only.map_or(SIZES.to_vec(), |size| vec![size]);
        eprintln!("| | ours | Rojo 7.7.1 | ratio |\n|---|---:|---:|---:|");
        for size in sizes {
            let folder = project(size);
            starts(folder.path(), size).await;
            catch_up(folder.path(), size);
            changes(folder.path(), size).await;
        }
        for size in only.map_or(EDIT_SIZES.to_vec(), |size| vec![size]) {
            one_edit(size);
        }
    });
}

/// A server in a process of its own.
enum Running {
    Ours(Child, u16),
    Stock(Stock),
}

impl Running {
    fn start(ours: bool, project: &Path) -> Self {
        if !ours {
            return Self::Stock(Spare::start().serve(project));
        }
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let child = Command::new(env!("CARGO_BIN_EXE_rojo-mcp"))
            .args(["serve", "--port", &port.to_string()])
            .arg(project)
            .env(rojo_mcp::state::STATE_FOLDER_VARIABLE, project.join(".state"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self::Ours(child.expect("it starts"), port)
    }

    fn port(&self) -> u16 {
        match self {
            Self::Ours(_, port) => *port,
            Self::Stock(stock) => stock.port,
        }
    }

    fn process(&self) -> u32 {
        match self {
            Self::Ours(child, _) => child.id(),
            Self::Stock(stock) => stock.child.id(),
        }
    }

    /// Wait until it answers.
    async fn answers(&mut self) {
        let begun = Instant::now();
        while client::get(self.port(), "/api/rojo").await.is_err() {
            let alive = match self {
                Self::Ours(child, _) => matches!(child.try_wait(), Ok(None)),
                Self::Stock(stock) => stock.is_alive(),
            };
            assert!(alive && begun.elapsed() < PATIENCE, "it does not start");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// What Linux says of its memory, in MiB: `VmHWM`, the most it has held, or `RssAnon`, what is its own and
    /// not pages of the program.
    fn memory(&self, field: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<f64>().map_or(f64::NAN, |kib| kib / 1024.0)
    }

    /// Milliseconds of the processor so far.
    fn processor(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process())).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
        let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(f64::NAN);
        (ticks(11) + ticks(12)) * 10.0
    }

    async fn socket(&self) -> WebSocketStream<TcpStream> {
        let cursor = client::read(self.port()).await.expect("a tree").message_cursor;
        let stream = TcpStream::connect(("127.0.0.1", self.port())).await.expect("it listens");
        stream.set_nodelay(true).expect("no delay");
        let url = format!("ws://localhost:{}/api/socket/{cursor}", self.port());
        tokio_tungstenite::client_async(url, stream).await.expect("an upgrade").0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Self::Ours(child, _) = self {
            _ = child.kill(); // it may have ended
            _ = child.wait();
        }
    }
}

/// Milliseconds, in order.
fn sorted(mut times: Vec<Duration>) -> Vec<f64> {
    times.sort_unstable();
    times.iter().map(|time| time.as_secs_f64() * 1e3).collect()
}

fn at(times: &[f64], percent: usize) -> f64 {
    times[(times.len() - 1) * percent / 100]
}

fn row(what: &str, unit: &str, ours: f64, theirs: f64) {
    eprintln!("| {what} | {ours:.1} {unit} | {theirs:.1} {unit} | {:.2} |", ours / theirs);
}

async fn starts(project: &Path, size: usize) {
    let mut times = [Vec::new(), Vec::new()];
    let mut peaks = [Vec::new(), Vec::new()];
    let mut own = [Vec::new(), Vec::new()];
    let mut processor = [Vec::new(), Vec::new()];
    for _ in 0..STARTS {
        for (side, ours) in [true, false].into_iter().enumerate() {
            let begun = Instant::now();
            let mut server = Running::start(ours, project);
            server.answers().await;
            let root = client::info(server.port()).await.expect("an answer").root_instance_id;
            client::get(server.port(), &format!("/api/read/{root}")).await.expect("a tree");
            times[side].push(begun.elapsed());
            processor[side].push(server.processor());
            peaks[side].push(server.memory("VmHWM"));
            own[side].push(server.memory("RssAnon"));
        }
    }
    let [ours, theirs] = times.map(sorted);
    row(&format!("start to first full read, {size} scripts"), "ms", at(&ours, 50), at(&theirs, 50));
    let [ours, theirs] = processor.map(|times: Vec<f64>| times.iter().sum::<f64>() / times.len() as f64);
    row(&format!("the same, time of the processor, {size} scripts"), "ms", ours, theirs);
    for (what, sizes) in [("peak memory", peaks), ("memory without the program's pages", own)] {
        let [ours, theirs] = sizes.map(|sizes: Vec<f64>| sizes.into_iter().fold(0.0, f64::max));
        row(&format!("{what}, {size} scripts"), "MiB", ours, theirs);
    }
}

async fn changes(project: &Path, size: usize) {
    let mut edits = [Vec::new(), Vec::new()];
    let mut bursts = [(f64::NAN, f64::NAN); 2];
    for (side, ours) in [true, false].into_iter().enumerate() {
        let mut server = Running::start(ours, project);
        server.answers().await;
        let mut socket = server.socket().await;
        for number in 0..EDITS {
            let file = project.join(format!("src/{}/d0/e0/m0.luau", SERVICES[0]));
            tokio::time::sleep(PAUSE).await;
            let begun = Instant::now();
            fs::write(file, format!("return {number} -- {side}")).expect("a save");
            next(&mut socket).await.expect("a message");
            edits[side].push(begun.elapsed());
        }
        bursts[side] = burst(project, side, &mut socket).await.unwrap_or((f64::NAN, f64::NAN));
    }
    let [ours, theirs] = edits.map(sorted);
    row(&format!("file saved to socket message, p50, {size} scripts"), "ms", at(&ours, 50), at(&theirs, 50));
    row(&format!("file saved to socket message, p99, {size} scripts"), "ms", at(&ours, 99), at(&theirs, 99));
    row(&format!("{BURST} new files to the last message, {size} scripts"), "ms", bursts[0].0, bursts[1].0);
    row(&format!("messages for these {BURST}, {size} scripts"), "", bursts[0].1, bursts[1].1);
}

/// Milliseconds from the first of many new files to the message with the last, and how many
/// messages that took. `None`: it died.
async fn burst(project: &Path, side: usize, socket: &mut WebSocketStream<TcpStream>) -> Option<(f64, f64)> {
    let begun = Instant::now();
    for number in 0..BURST {
        write(&project.join(format!("src/{}/burst{side}/n{}/b{number}.luau", SERVICES[1], number / 100)), "return 1");
    }
    let (mut come, mut messages) = (HashSet::new(), 0);
    while come.len() < BURST {
        let packet = next(socket).await?;
        let SocketPacketBody::Messages(batch) = packet.body;
        messages += batch.messages.len();
        let added = batch.messages.iter().flat_map(|message| message.added.values());
        come.extend(
            added.filter(|instance| instance.class_name == "ModuleScript").map(|instance| instance.name.to_string()),
        );
    }
    Some((begun.elapsed().as_secs_f64() * 1e3, messages as f64))
}

async fn next(socket: &mut WebSocketStream<TcpStream>) -> Option<SocketPacket<'static>> {
    let message = tokio::time::timeout(PATIENCE, socket.next()).await.ok()??.ok()?;
    message.is_binary().then(|| client::decode(&message.into_data()))
}

/// What a sync costs that finds nothing new. Rojo has no such call.
fn catch_up(project: &Path, size: usize) {
    let session = ServeSession::start(project).expect("the project starts");
    session.catch_up(None).expect("it lives");
    let mut times = Vec::new();
    for _ in 0..20 {
        let begun = Instant::now();
        session.catch_up(None).expect("it lives");
        times.push(begun.elapsed());
    }
    eprintln!("| look at every file, nothing changed, {size} scripts | {:.1} ms | – | – |", at(&sorted(times), 50));
}

/// What a sync costs that finds one file edited and is told which.
fn one_edit(size: usize) {
    let folder = project(size);
    let session = ServeSession::start(folder.path()).expect("the project starts");
    session.catch_up(None).expect("it lives");
    let file = folder.path().join(format!("src/{}/d0/e0/m0.luau", SERVICES[0]));
    let mut times = Vec::new();
    for number in 0..EDITS {
        fs::write(&file, format!("return {number}")).expect("a save");
        let begun = Instant::now();
        session.catch_up(Some(std::slice::from_ref(&file))).expect("it lives");
        times.push(begun.elapsed());
    }
    eprintln!("| one edit taken in, p50, {size} scripts | {:.2} ms | – | – |", at(&sorted(times), 50));
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
    fs::write(file, text).expect("a write");
}

/// Scripts of 1.6 KB, eighty in a folder.
fn project(size: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nodes: Vec<String> = SERVICES.iter().map(|name| format!(r#""{name}":{{"$path":"src/{name}"}}"#)).collect();
    let text = format!(r#"{{"name":"Bench","tree":{{"$className":"DataModel",{}}}}}"#, nodes.join(","));
    write(&folder.path().join("default.project.json"), &text);
    let body = "-- a line of a script with some text in it\nlocal x = require(script.Parent)\n".repeat(20);
    for number in 0..size {
        let at = format!("src/{}/d{}/e{}/m{number}.luau", SERVICES[number % 4], number / 400, number / 80);
        write(&folder.path().join(at), &format!("-- {number}\n{body}"));
    }
    folder
}
