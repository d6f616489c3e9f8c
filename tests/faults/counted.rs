//! Thousands of calls through connections that break: counters in the DataModel say how often each
//! change was made.

use std::{
    collections::HashMap,
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rojo_mcp::{
    Server, ServerConfig,
    headless::{HeadlessConfig, HeadlessStudio, Knobs},
    session::ServeSession,
};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    callers::{Budget, Caller, Known, Sums, until_live},
    number, proxy, say,
    support::{demo, save},
};

/// How many calls there are in all; the variable asks for more.
pub const CALLS: (&str, u64) = ("ROJO_MCP_FAULT_CALLS", 10_000);
pub const SEED: (&str, u64) = ("ROJO_MCP_FAULT_SEED", 1);
pub const STUDIOS: u64 = 4;
pub const CALLERS: u64 = 3;

struct Place {
    name: String,
    id: u64,
    studio: HeadlessStudio,
}

/// A server with a proxy for each Studio.
pub struct Served {
    pub project: tempfile::TempDir,
    session: Arc<ServeSession>,
    pub server: Server,
    shutdown: CancellationToken,
    pub proxies: Vec<(u16, Arc<proxy::Deeds>)>,
}

/// The script of one caller, by its file.
pub fn file(place: u64, caller: u64) -> String {
    format!("src/shared/Fault{place}_{caller}.luau")
}

impl Served {
    pub async fn start(seed: u64, twice: proxy::Twice) -> Self {
        let project = demo();
        for (place, caller) in (1..=STUDIOS).flat_map(|place| (1..=CALLERS).map(move |caller| (place, caller))) {
            save(project.path(), &file(place, caller), "return 'start'\n");
        }
        let folder = project.path().to_path_buf();
        let session = tokio::task::spawn_blocking(move || ServeSession::start(&folder)).await.expect("no panic");
        let session = session.expect("the project loads");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let mut proxies = Vec::new();
        for id in 1..=STUDIOS {
            proxies.push(proxy::start(port, seed * 1_000 + id, twice).await);
        }
        let shutdown = CancellationToken::new();
        let mut config = ServerConfig::new(Arc::clone(&session), shutdown.clone());
        config.allowed_hosts = proxies.iter().map(|(port, _)| format!("127.0.0.1:{port}")).collect();
        let server = Server::start(listener, config).expect("it starts");
        Self { project, session, server, shutdown, proxies }
    }

    pub fn total(&self, what: fn(&proxy::Deeds) -> &AtomicU64) -> u64 {
        self.proxies.iter().map(|(_, deeds)| what(deeds).load(Ordering::Relaxed)).sum()
    }

    pub async fn stop(self) {
        self.shutdown.cancel();
        self.server.stopped().await;
    }

    /// In words.
    pub fn deeds(&self) -> String {
        format!(
            "over {} connections with {} faults and {} messages twice",
            self.total(|deeds| &deeds.connections),
            self.total(|deeds| &deeds.faults),
            self.total(|deeds| &deeds.doubled)
        )
    }
}

fn studio(port: u16, place_id: u64, place: Vec<u8>) -> HeadlessStudio {
    let mut settings = serde_json::Map::new();
    settings.insert("RojoMcpServer".into(), format!("127.0.0.1:{port}").into());
    let plugin = rojo_mcp::plugin_model::build().expect("the plugin builds");
    let place_name = format!("Place {place_id}");
    HeadlessStudio::start(HeadlessConfig { place, plugin, settings, place_id, place_name, knobs: Knobs::default() })
        .expect("the headless Studio starts")
}

/// A counter for each caller: what its code counts, and each text that its script gets.
async fn count_in(place: &Place) {
    let mut code = "local all = Instance.new('Folder') all.Name = 'Counts' all.Parent = workspace\n".to_owned();
    for caller in 1..=CALLERS {
        let script = format!("game.ReplicatedStorage.Shared.Fault{}_{caller}", place.id);
        writeln!(
            code,
            "do
                local counts = Instance.new('Folder') counts.Name = 'c{caller}' counts.Parent = all
                {script}:GetPropertyChangedSignal('Source'):Connect(function()
                    local key = string.match({script}.Source, \"'(.-)'\")
                    counts:SetAttribute(key, (counts:GetAttribute(key) or 0) + 1)
                end)
            end"
        )
        .expect("a text grows");
    }
    place.studio.run(&code).await.expect("it runs");
}

fn command(caller: u64, key: &str) -> String {
    format!(
        "local counts = workspace.Counts['c{caller}']
         counts:SetAttribute('{key}', (counts:GetAttribute('{key}') or 0) + 1)
         return '{key}', game.PlaceId"
    )
}

/// How often each key was counted, as the DataModel has it.
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

#[tokio::test(flavor = "multi_thread")]
async fn c61_through_connections_that_break_each_change_is_made_at_most_once() {
    let (seed, calls) = (number(SEED.0, SEED.1), number(CALLS.0, CALLS.1));
    let served = Served::start(seed, proxy::Twice::Both).await;
    let backend = Arc::clone(&served.server.backend);
    let budget = Budget::new(calls);
    let (mut places, mut callers) = (Vec::new(), Vec::new());
    for (id, (port, _)) in (1..).zip(&served.proxies) {
        let studio = studio(*port, id, served.session.place_model());
        let place = Place { name: format!("place:{id}"), id, studio };
        count_in(&place).await;
        until_live(&backend, &place.name).await;
        for number in 1..=CALLERS {
            let caller = Caller {
                backend: Arc::clone(&backend),
                studio: place.name.clone(),
                place: id,
                number,
                budget: Arc::clone(&budget),
                file: (served.project.path().to_path_buf(), file(id, number)),
                command,
                returned: |response| response["returns"].clone(),
                syncs_files: true,
            };
            callers.push((id, tokio::spawn(caller.run())));
        }
        places.push(place);
    }
    let mut known: HashMap<u64, HashMap<String, Known>> = HashMap::new();
    for (id, caller) in callers {
        known.entry(id).or_default().extend(caller.await.expect("no panic"));
    }
    let mut sums = Sums::default();
    for place in &places {
        // Whatever was on its way has arrived once the link is live and the queue was passed.
        until_live(&backend, &place.name).await;
        sums.add(&known[&place.id], &counts(place).await);
    }
    let Sums { done, ran, lost, unsent } = sums;
    say(&format!(
        "{calls} calls (seed {seed}) {}: of {} changes {done} are done, {ran} unknown that ran, {lost} unknown that \
         did not, {unsent} never sent",
        served.deeds(),
        done + ran + lost + unsent
    ));
    assert!(
        served.total(|deeds| &deeds.faults) >= STUDIOS && done as u64 > calls / 2,
        "the faults hit, and the work goes on"
    );
    assert!(served.total(|deeds| &deeds.doubled) > 0, "messages came twice");
    served.stop().await;
}
