//! Thousands of calls through connections that break: counters in the DataModel say how often each
//! ran.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rojo_mcp::{
    Server, ServerConfig,
    core::{
        bridge::{Answer, Ask, Call},
        error::ErrorCode,
        targets::Target,
    },
    headless::{HeadlessConfig, HeadlessStudio, Knobs},
    mcp::Backend,
    session::ServeSession,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{number, proxy, say, support::demo};

/// How many calls there are in all; the variable asks for more.
const CALLS: (&str, u64) = ("ROJO_MCP_FAULT_CALLS", 10_000);
const SEED: (&str, u64) = ("ROJO_MCP_FAULT_SEED", 1);
const STUDIOS: u64 = 4;
const CALLERS: u64 = 3;
const PATIENCE: Duration = Duration::from_secs(8);
/// A call that takes longer than this hangs.
const HANGS: Duration = Duration::from_secs(40);

/// What a caller knows of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Known {
    Done,
    /// Sent, not confirmed.
    Unknown,
    NeverSent,
}

struct Place {
    name: String,
    id: u64,
    studio: HeadlessStudio,
}

/// Calls that are still to be made.
struct Budget(AtomicU64);

impl Budget {
    fn take(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// A server with a proxy for each Studio.
struct Served {
    _project: tempfile::TempDir,
    session: Arc<ServeSession>,
    server: Server,
    shutdown: CancellationToken,
    proxies: Vec<(u16, Arc<proxy::Deeds>)>,
}

async fn serve(seed: u64) -> Served {
    let project = demo();
    let folder = project.path().to_path_buf();
    let session = tokio::task::spawn_blocking(move || ServeSession::start(&folder)).await.expect("no panic");
    let session = session.expect("the project loads");
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let mut proxies = Vec::new();
    for id in 1..=STUDIOS {
        proxies.push(proxy::start(port, seed * 1_000 + id).await);
    }
    let shutdown = CancellationToken::new();
    let mut config = ServerConfig::new(Arc::clone(&session), shutdown.clone());
    config.allowed_hosts = proxies.iter().map(|(port, _)| format!("127.0.0.1:{port}")).collect();
    let server = Server::start(listener, config).expect("it starts");
    Served { _project: project, session, server, shutdown, proxies }
}

fn studio(port: u16, place_id: u64, place: Vec<u8>) -> HeadlessStudio {
    let mut settings = serde_json::Map::new();
    settings.insert("RojoMcpServer".into(), format!("127.0.0.1:{port}").into());
    let plugin = rojo_mcp::plugin_model::build().expect("the plugin builds");
    let place_name = format!("Place {place_id}");
    HeadlessStudio::start(HeadlessConfig { place, plugin, settings, place_id, place_name, knobs: Knobs::default() })
        .expect("the headless Studio starts")
}

async fn is_live(backend: &Backend, name: &str) -> bool {
    let answer = backend.call(None, PATIENCE, Ask::Status, None).await.expect("status always answers");
    let Answer::Status { studios, .. } = answer else { panic!("not a status") };
    studios
        .iter()
        .any(|studio| studio.studio == name && matches!(studio.link, rojo_mcp::core::status::LinkStatus::Live))
}

/// Longer than it takes both sides to give a silent link up and to come back.
async fn until_live(backend: &Backend, name: &str) {
    let wait = async {
        while !is_live(backend, name).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(90), wait).await.is_ok(), "{name} does not come back");
}

/// Call until nothing is left to call; what is known of each, by its key.
async fn caller(backend: Arc<Backend>, place: Arc<Place>, number: u64, budget: Arc<Budget>) -> HashMap<String, Known> {
    let mut known = HashMap::new();
    for round in 0.. {
        if !budget.take() {
            break;
        }
        let key = format!("k{number}_{round}");
        let command = format!(
            "local counts = workspace.Counts['c{number}']
             counts:SetAttribute('{key}', (counts:GetAttribute('{key}') or 0) + 1)
             return '{key}', game.PlaceId"
        );
        let ask =
            Ask::Tool { name: "run_code", args: json!({ "command": command }), changes: true, target: Target::Edit };
        let call =
            backend.hub.call(Call { studio: Some(place.name.clone()), patience: PATIENCE, ask, operation: None }, None);
        let outcome = tokio::time::timeout(HANGS, call).await.unwrap_or_else(|_| panic!("{key} hangs"));
        let what = match outcome {
            Ok(Answer::Tool(response)) => {
                assert_eq!(response["returns"], json!([key, place.id]), "the answer of another call");
                Known::Done
            }
            Ok(other) => panic!("{key}: {other:?}"),
            Err(error) => match error.code {
                ErrorCode::OutcomeUnknown | ErrorCode::StudioLeft => Known::Unknown,
                ErrorCode::Reconnecting | ErrorCode::NoStudio | ErrorCode::TimedOut => Known::NeverSent,
                code => panic!("{key}: {code}: {error}"),
            },
        };
        known.insert(key, what);
        if what != Known::Done {
            until_live(&backend, &place.name).await;
        }
    }
    known
}

/// How often each key ran, as the DataModel has it.
async fn counts(place: &Place) -> HashMap<String, u64> {
    let code = "local all = {}
                for _, counts in workspace.Counts:GetChildren() do
                    for key, count in counts:GetAttributes() do all[key] = count end
                end
                return all";
    let values = place.studio.run(code).await.expect("it runs");
    let Some(Value::Object(all)) = values.into_iter().next() else { return HashMap::new() };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts are small")]
    all.into_iter().map(|(key, count)| (key, count.as_f64().expect("a number") as u64)).collect()
}

fn check(known: &HashMap<String, Known>, ran: &HashMap<String, u64>) -> [u64; 4] {
    let mut sums = [0; 4];
    for (key, what) in known {
        let times = ran.get(key).copied().unwrap_or(0);
        match what {
            Known::Done => assert_eq!(times, 1, "{key} was answered as done"),
            Known::Unknown => assert!(times <= 1, "{key} ran {times} times"),
            Known::NeverSent => assert_eq!(times, 0, "{key} was said not to have been sent"),
        }
        let index = match (what, times) {
            (Known::Done, _) => 0,
            (Known::Unknown, 1..) => 1,
            (Known::Unknown, 0) => 2,
            (Known::NeverSent, _) => 3,
        };
        sums[index] += 1;
    }
    assert!(ran.keys().all(|key| known.contains_key(key)), "something ran that nobody called");
    sums
}

#[tokio::test(flavor = "multi_thread")]
async fn c61_through_connections_that_break_each_change_runs_at_most_once() {
    let (seed, calls) = (number(SEED.0, SEED.1), number(CALLS.0, CALLS.1));
    let Served { _project, session, server, shutdown, proxies } = serve(seed).await;
    let backend = Arc::clone(&server.backend);
    let budget = Arc::new(Budget(AtomicU64::new(calls)));
    let (mut places, mut callers) = (Vec::new(), Vec::new());
    for (id, (port, _)) in (1..).zip(&proxies) {
        let studio = studio(*port, id, session.place_model());
        let place = Arc::new(Place { name: format!("place:{id}"), id, studio });
        let folders = format!(
            "local all = Instance.new('Folder') all.Name = 'Counts' all.Parent = workspace
             for number = 1, {CALLERS} do
                 local one = Instance.new('Folder') one.Name = `c{{number}}` one.Parent = all
             end"
        );
        place.studio.run(&folders).await.expect("it runs");
        until_live(&backend, &place.name).await;
        for number in 1..=CALLERS {
            let work = caller(Arc::clone(&backend), Arc::clone(&place), number, Arc::clone(&budget));
            callers.push((id, tokio::spawn(work)));
        }
        places.push(place);
    }
    let mut known: HashMap<u64, HashMap<String, Known>> = HashMap::new();
    for (id, caller) in callers {
        known.entry(id).or_default().extend(caller.await.expect("no panic"));
    }
    let mut sums = [0; 4];
    for place in &places {
        // Whatever was on its way has arrived once the link is live and the queue was passed.
        until_live(&backend, &place.name).await;
        let more = check(&known[&place.id], &counts(place).await);
        sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    let total = |what: fn(&proxy::Deeds) -> &AtomicU64| -> u64 {
        proxies.iter().map(|(_, deeds)| what(deeds).load(Ordering::Relaxed)).sum()
    };
    let (connections, faults) = (total(|deeds| &deeds.connections), total(|deeds| &deeds.faults));
    let [done, ran, lost, unsent] = sums;
    say(&format!(
        "{} calls (seed {seed}) over {connections} connections with {faults} faults: {done} done, {ran} unknown that ran, \
         {lost} unknown that did not, {unsent} never sent",
        done + ran + lost + unsent
    ));
    assert_eq!(done + ran + lost + unsent, calls);
    assert!(faults >= STUDIOS && done > calls / 2, "the faults hit, and the work goes on");
    shutdown.cancel();
    server.stopped().await;
}
