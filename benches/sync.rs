//! What a sync costs, against a simulated Studio: many scripts, few changes, and one change that goes
//! by itself.
//!
//! `cargo bench --bench sync` prints a table; nothing is asserted, machines are shared. The server is
//! a process of its own, with its store on the disk. Beside each figure stands one of the same run
//! that needs no server: reading the same files, or an echo of the same bytes over a socket.
//! `ROJO_MCP_BENCH_SCRIPTS=1000` makes the project smaller, `ROJO_MCP_BENCH_SYNCS=100` the long run.
#![expect(clippy::disallowed_methods, reason = "a bench measures time and writes its project")]

#[path = "../tests/e2e/support.rs"]
#[expect(dead_code, reason = "shared with the end-to-end tests, which need all of it")]
mod support;

use std::{
    fs,
    net::TcpListener as Port,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use rojo_mcp::{
    headless::{HeadlessConfig, HeadlessStudio},
    session::ServeSession,
};
use serde_json::{Map, Value, json};
use support::{Agent, program, save};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const SCRIPTS: usize = 10_000;
const GROWTH: usize = 5;
const EDITS: usize = 100;
const ROUNDS: usize = 5;
const LIVE_EDITS: usize = 50;
const SYNCS: usize = 1_000;
/// Between two edits, as they come from a person.
const PAUSE: Duration = Duration::from_millis(60);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let scripts = number("ROJO_MCP_BENCH_SCRIPTS", SCRIPTS);
        eprintln!("| | ours | beside it | ratio | wanted |\n|---|---:|---:|---:|---:|");
        let small = syncs(scripts).await;
        let large = syncs(scripts * GROWTH).await;
        let growth = large.as_secs_f64() / small.as_secs_f64();
        eprintln!("| nothing to do, {GROWTH} times the scripts | x {growth:.2} | x {GROWTH} | | at most that |");
        live(scripts).await;
        memory(number("ROJO_MCP_BENCH_SYNCS", SYNCS)).await;
    });
}

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().map_or(otherwise, |text| text.parse().expect("a number"))
}

/// A project, its server in a process of its own, and a Studio in this one.
struct Bench {
    folder: tempfile::TempDir,
    server: Child,
    studio: HeadlessStudio,
    agent: Agent,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Bench {
    async fn start(scripts: usize, settings: &[(&str, Value)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = json!({ "$className": "DataModel", "ReplicatedStorage": { "Src": { "$path": "src" } } });
        save(folder.path(), "default.project.json", &json!({ "name": "Bench", "tree": tree }).to_string());
        (0..scripts).for_each(|script| _ = save(folder.path(), &path(script), &text(script, 0)));
        let project = folder.path().to_path_buf();
        let session = tokio::task::spawn_blocking(move || ServeSession::start(&project)).await.expect("no panic");
        let place = session.expect("the project loads").place_model();
        let port = Port::bind(("127.0.0.1", 0)).and_then(|port| port.local_addr()).expect("a free port").port();
        let mut server = program(folder.path());
        let server = server.args(["serve", "--port", &port.to_string()]).arg(folder.path());
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the server starts");
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let mut all: Map<String, Value> =
            settings.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        all.insert("RojoMcpServer".into(), format!("127.0.0.1:{port}").into());
        let plugin = rojo_mcp::plugin_model::build().expect("the plugin builds");
        let config = HeadlessConfig { place, plugin, settings: all, ..HeadlessConfig::default() };
        let studio = HeadlessStudio::start(config).expect("the Studio starts");
        let bench = Self { folder, server, studio, agent: Agent { port } };
        while bench.agent.ask("status", json!({})).await["studios"][0]["link"] != "live" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bench.sync().await;
        bench
    }

    async fn sync(&self) -> Value {
        self.agent.ask("sync", json!({})).await
    }

    fn file(&self, script: usize) -> PathBuf {
        self.folder.path().join(path(script))
    }

    /// Resident memory of the server, in MiB.
    fn memory(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<f64>().map_or(f64::NAN, |kib| kib / 1024.0)
    }
}

/// A hundred scripts in each folder.
fn path(script: usize) -> String {
    format!("src/Folder{}/Script{}.luau", script / 100, script % 100)
}

fn text(script: usize, version: usize) -> String {
    format!("-- script {script}\nlocal version = {version}\n{}return version\n", "-- as long as most are\n".repeat(20))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn row(what: &str, ours: Duration, beside: Duration, wanted: &str) {
    let (ours, beside) = (ours.as_secs_f64() * 1000.0, beside.as_secs_f64() * 1000.0);
    eprintln!("| {what} | {ours:.1} ms | {beside:.1} ms | {:.1} | {wanted} |", ours / beside);
}

/// Syncs of a project with so many scripts. How long one takes that has nothing to do.
async fn syncs(scripts: usize) -> Duration {
    let bench = Bench::start(scripts, &[]).await;
    let (mut nothing, mut few, mut read) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let begun = Instant::now();
        assert_eq!(bench.sync().await["status"], "empty");
        nothing.push(begun.elapsed());
        read.push(read_all(&bench, scripts));
        let edits = EDITS.min(scripts);
        let edited = (0..edits).map(|edit| edit * scripts / edits);
        edited.for_each(|script| _ = save(bench.folder.path(), &path(script), &text(script, round)));
        let begun = Instant::now();
        let receipt = bench.sync().await;
        few.push(begun.elapsed());
        assert_eq!(
            (&receipt["status"], &receipt["pushed"]),
            (&json!("success"), &json!(edits)),
            "{}",
            receipt["message"]
        );
    }
    let read = median(read);
    let is_wanted = |wanted: &'static str| if scripts == SCRIPTS { wanted } else { "" };
    row(
        &format!("nothing to do, {scripts} scripts (reading them)"),
        median(nothing.clone()),
        read,
        is_wanted("1000 ms"),
    );
    row(&format!("{EDITS} edits, {scripts} scripts (reading them)"), median(few), read, is_wanted("1500 ms"));
    median(nothing)
}

fn read_all(bench: &Bench, scripts: usize) -> Duration {
    let begun = Instant::now();
    let bytes: usize = (0..scripts).map(|script| fs::read(bench.file(script)).expect("it is there").len()).sum();
    assert!(bytes > 0);
    begun.elapsed()
}

/// One change at a time, in live mode, each way.
async fn live(scripts: usize) {
    let mode = [("RojoMcpOneShotSync", json!(false)), ("RojoMcpTwoWaySync", json!(true))];
    let bench = Bench::start(scripts, &mode).await;
    let script = "game.ReplicatedStorage.Src.Folder0.Script7";
    let (mut there, mut back) = (Vec::new(), Vec::new());
    for edit in 0..LIVE_EDITS {
        tokio::time::sleep(PAUSE).await;
        let code = format!("{script}:GetPropertyChangedSignal('Source'):Wait() return 1");
        let wait = bench.studio.run(&code);
        let change = async {
            bench.studio.run("return 1").await.expect("it listens by now");
            let begun = Instant::now();
            save(bench.folder.path(), &path(7), &text(7, edit * 2 + 1));
            begun
        };
        let (waited, begun) = tokio::join!(async { (wait.await, Instant::now()) }, change);
        waited.0.expect("the text came");
        there.push(waited.1 - begun);

        tokio::time::sleep(PAUSE).await;
        let text = text(7, edit * 2 + 2);
        let begun = Instant::now();
        bench.studio.run(&format!("{script}.Source = {text:?}")).await.expect("typed");
        while fs::read_to_string(bench.file(7)).unwrap_or_default() != text {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        back.push(begun.elapsed());
    }
    let echo = echo(text(7, 0).len()).await;
    row("live, from the file to Source (an echo)", median(there), echo, "30 ms");
    row("live, from Source to the file, 200 ms of it the pause (an echo)", median(back), echo, "300 ms");
}

/// So many bytes to and fro over a socket.
async fn echo(bytes: usize) -> Duration {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut buffer = vec![0; bytes];
        while stream.read_exact(&mut buffer).await.is_ok() && stream.write_all(&buffer).await.is_ok() {}
    });
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.set_nodelay(true).expect("no delay");
    let mut buffer = vec![7; bytes];
    let mut times = Vec::new();
    for _ in 0..LIVE_EDITS {
        let begun = Instant::now();
        stream.write_all(&buffer).await.expect("sent");
        stream.read_exact(&mut buffer).await.expect("it comes back");
        times.push(begun.elapsed());
    }
    median(times)
}

/// Many syncs of one server, each with something to do.
async fn memory(syncs: usize) {
    let bench = Bench::start(200, &[]).await;
    let mut held = Vec::new();
    for sync in 1..=syncs {
        let script = sync % 200;
        save(bench.folder.path(), &path(script), &text(script, sync));
        assert_eq!(bench.sync().await["pushed"], 1);
        if sync % (syncs / 10).max(1) == 0 {
            held.push(bench.memory());
        }
    }
    let (Some(first), Some(last)) = (held.get(1).or(held.first()), held.last()) else { return };
    let all: Vec<String> = held.iter().map(|mib| format!("{mib:.0}")).collect();
    let growth = last / first;
    eprintln!(
        "| memory after {syncs} syncs (after a fifth of them) | {last:.1} MiB | {first:.1} MiB | {growth:.2} | 1 |"
    );
    eprintln!("\nmemory over these syncs, in MiB: {}", all.join(" "));
    let store = store_size(bench.folder.path());
    eprintln!("the store afterwards: {store:.1} MiB");
}

/// Of all files of the state, in MiB.
fn store_size(project: &Path) -> f64 {
    fn bytes(folder: &Path) -> u64 {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .map(|entry| {
                entry.metadata().map_or(0, |data| if data.is_dir() { bytes(&entry.path()) } else { data.len() })
            })
            .sum()
    }
    bytes(&support::state_root(project)) as f64 / f64::from(1 << 20)
}
