//! Play tests: each DataModel is reached by its name and by no other way.

use rojo_mcp::{
    headless::{HeadlessStudio, Play, Side},
    store::Store,
};
use serde_json::{Value, json};

use crate::support::{Agent, BOUND, TestServer, Told, demo, save, until};

impl Agent {
    /// Run code in a DataModel; its first value, or what was wrong.
    pub async fn run_in(&self, target: &str, code: &str) -> Result<Value, Told> {
        let told = self.call("run_code", json!({ "command": code, "target": target })).await;
        if told.is_error || told.structure["ok"] != json!(true) {
            return Err(told);
        }
        Ok(told.structure["returns"][0].clone())
    }

    pub async fn targets(&self) -> Vec<String> {
        let status = self.ask("status", json!({})).await;
        let studios = status["studios"].as_array().expect("a list");
        assert!(studios.len() <= 1, "{status}");
        let models = studios.iter().flat_map(|studio| studio["dataModels"].as_array().expect("a list"));
        let live = models.filter(|one| one["link"] == "live");
        live.map(|one| one["target"].as_str().expect("a word").to_owned()).collect()
    }

    pub async fn until_targets(&self, wanted: &[&str]) {
        until(&format!("{wanted:?} are live"), || async { self.targets().await == wanted }).await;
    }

    pub async fn until_printed(&self, target: &str, text: &str) {
        until("it is printed", || async {
            let told = self.call("get_console_output", json!({ "target": target })).await;
            !told.is_error && told.text.contains(text)
        })
        .await;
    }
}

/// A server with a Studio that plays.
pub async fn playing(project: &std::path::Path, play: Play, targets: &[&str]) -> (TestServer, HeadlessStudio, Agent) {
    let server = TestServer::start(project).await;
    let studio = server.studio().await;
    studio.start_play(play).await.expect("a person presses Play");
    let agent = server.agent();
    agent.until_targets(targets).await;
    (server, studio, agent)
}

pub const MARK: &str = "workspace:SetAttribute('Mark', (workspace:GetAttribute('Mark') or 0) + 1)";
const READ: &str = "return workspace:GetAttribute('Mark')";

async fn marks(studio: &HeadlessStudio, side: Side) -> Value {
    studio.run_in(side, READ).await.expect("it can be read").into_iter().next().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn c55_code_runs_in_the_data_model_that_is_named_and_in_no_other() {
    let project = demo();
    let (_server, studio, agent) =
        playing(project.path(), Play::Clients(2), &["edit", "server", "client-1", "client-2"]).await;
    let sides =
        [("edit", Side::Edit), ("client-1", Side::Client(1)), ("client-2", Side::Client(2)), ("server", Side::Server)];
    for (at, (target, _)) in sides.iter().enumerate() {
        let told = agent.run_in(target, &format!("{MARK} print('in', '{target}')")).await;
        assert!(told.is_ok(), "{target}: {told:?}");
        for (other, (_, side)) in sides.iter().enumerate() {
            // What the server does reaches the clients, as in any game; nothing comes back.
            let expected = if other <= at { json!(1) } else { Value::Null };
            assert_eq!(marks(&studio, *side).await, expected, "{target}, seen in {side:?}");
        }
    }
    let names = "return game.Players.LocalPlayer and game.Players.LocalPlayer.Name";
    assert_eq!(agent.run_in("client", names).await.expect("it runs"), json!("Player1"));
    assert_eq!(agent.run_in("client-2", names).await.expect("it runs"), json!("Player2"));
    for target in ["server", "client-1", "client-2"] {
        studio.run_in(side_of(target), &format!("print('said in', '{target}')")).await.expect("it prints");
        agent.until_printed(target, &format!("said in {target}")).await;
    }
    for target in ["edit", "server", "client-1", "client-2"] {
        let printed = agent.call("get_console_output", json!({ "target": target })).await.text;
        let others = ["edit", "server", "client-1", "client-2"].into_iter().filter(|other| *other != target);
        assert!(others.into_iter().all(|other| !printed.contains(&format!("said in {other}"))), "{target}: {printed}");
    }
}

fn side_of(target: &str) -> Side {
    match target {
        "edit" => Side::Edit,
        "server" => Side::Server,
        "client-1" => Side::Client(1),
        _ => Side::Client(2),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_play_test_its_data_models_are_said_not_to_be_there() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    for target in ["server", "client", "client-2"] {
        let told = agent.run_in(target, "return 1").await.expect_err("there is none");
        assert_eq!(told.structure["error"]["code"], "no_target", "{}", told.text);
        assert!(told.text.contains("it has edit") && told.text.contains("start a play test first"), "{}", told.text);
    }
    let told = agent.run_in("studio", "return 1").await.expect_err("no such word");
    assert!(told.text.contains("argument `target`") && told.text.contains("client-2"), "{}", told.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn c64_the_mode_is_what_the_data_models_say() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    let mode = |args: Value| async move { agent.ask("get_studio_mode", args).await["mode"].clone() };
    assert_eq!(mode(json!({})).await, "edit");
    studio.start_play(Play::Solo).await.expect("a person presses Play");
    agent.until_targets(&["edit", "server", "client-1"]).await;
    assert_eq!(mode(json!({})).await, "play");
    for target in ["edit", "server", "client"] {
        assert_eq!(mode(json!({ "target": target })).await, target);
    }
    assert_eq!(agent.ask("status", json!({})).await["studios"][0]["running"], true);
    studio.stop_play().await;
    agent.until_targets(&["edit"]).await;
    assert_eq!(mode(json!({})).await, "edit");
    studio.start_play(Play::Run).await.expect("a person presses Run");
    agent.until_targets(&["edit", "server"]).await;
    assert_eq!(mode(json!({})).await, "run");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_value_comes_through_a_client_whole_both_ways() {
    let project = demo();
    let (_server, _studio, agent) = playing(project.path(), Play::Solo, &["edit", "server", "client-1"]).await;
    let large = "é✓ 0123456789\n".repeat(80_000);
    assert!(large.len() > 1 << 20);
    let code = format!("workspace:SetAttribute('Large', {large:?}) return #workspace:GetAttribute('Large')");
    assert_eq!(agent.run_in("client", &code).await.expect("it runs"), json!(large.len()));
    // An answer of that size is not given to an agent, so the client's hash of it stands for it.
    let back =
        agent.call("run_code", json!({ "target": "client", "command": "return workspace:GetAttribute('Large')" }));
    let back = back.await;
    assert!(!back.is_error && back.structure["truncated"] == json!(true), "{}", back.text);
    let size: usize = back.structure["returns"][0]
        .as_str()
        .expect("a note")
        .chars()
        .filter(char::is_ascii_digit)
        .collect::<String>()
        .parse()
        .expect("its size");
    assert!(size >= 80_000 * 13, "{}", back.structure["returns"][0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_releases_everything() {
    let project = demo();
    let (_server, studio, agent) =
        playing(project.path(), Play::Clients(2), &["edit", "server", "client-1", "client-2"]).await;
    let remotes = "local n = 0 for _, each in game.ReplicatedStorage:GetChildren() do \
                   if each:IsA('RemoteEvent') then n += 1 end end return n";
    assert_eq!(agent.run_in("server", remotes).await.expect("it runs"), json!(1));
    for target in ["server", "client-1", "client-2"] {
        studio.run_in(side_of(target), "print('kept')").await.expect("it prints");
        agent.until_printed(target, "kept").await;
    }
    let before = studio.census().await.expect("it lives");
    assert_eq!((before.data_models, before.streams), (4, 2), "{before:?}");
    studio.stop_play().await;
    agent.until_targets(&["edit"]).await;
    let after = studio.census().await.expect("it lives");
    assert_eq!((after.data_models, after.streams), (1, 1), "{after:?}");
    assert_eq!(agent.run_in("edit", remotes).await.expect("it runs"), json!(0));
    for target in ["server", "client-1", "client-2"] {
        let told = agent.run_in(target, "return 1").await.expect_err("it is gone");
        assert_eq!(told.structure["error"]["code"], "no_target", "{}", told.text);
        agent.until_printed(target, "kept").await;
    }
    // And the next test is as the first one.
    studio.start_play(Play::Solo).await.expect("it starts again");
    agent.until_targets(&["edit", "server", "client-1"]).await;
    assert_eq!(agent.run_in("client", "return 7").await.expect("it runs"), json!(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_script_of_the_game_sends_to_the_plugins_is_refused() {
    let project = demo();
    let (_server, studio, agent) = playing(project.path(), Play::Solo, &["edit", "server", "client-1"]).await;
    // It hears what the plugins say to each other, says it again, and says things of its own.
    let find = "for _, each in game.ReplicatedStorage:GetChildren() do if each:IsA('RemoteEvent') then _G.spied = each end end";
    studio.run_in(Side::Server, find).await.expect("it is there to be found");
    let listen = "_G.heard = {} _G.spied.OnClientEvent:Connect(function(...) table.insert(_G.heard, { ... }) end)";
    studio.run_in(Side::Client(1), &format!("{find} {listen}")).await.expect("it listens");
    let count = "local n = (workspace:GetAttribute('N') or 0) + 1 workspace:SetAttribute('N', n) return n";
    assert_eq!(agent.run_in("client", count).await.expect("it runs"), json!(1));
    let heard = studio.run_in(Side::Client(1), "return _G.heard[1]").await.expect("it was heard").remove(0);
    // The server's scripts play the request again to the client, and one that is made up.
    let heard: Vec<String> = heard.as_array().expect("what was fired").iter().map(Value::to_string).collect();
    let again = format!(
        "local player = game.Players:GetPlayers()[1]
        for _ = 1, 3 do
            _G.spied:FireClient(player, {})
            _G.spied:FireClient(player, {}, string.rep('0', 40), '9 1 1', [[{{\"type\":\"run_code\",\"requestId\":\"x\"}}]])
        end",
        heard.join(", "),
        heard[0],
    );
    studio.run_in(Side::Server, &again).await.expect("it fires");
    let replay = "
        for _, each in _G.heard do _G.spied:FireServer(unpack(each)) end
        _G.spied:FireServer('an id of its own', 'a seal', '1 1 1', '{\"type\":\"hello\"}')
        _G.spied:FireServer(nil, {}, 5)
    ";
    studio.run_in(Side::Client(1), replay).await.expect("it fires");
    agent.until_printed("server", "refused what a script of the game sent").await;
    agent.until_printed("client-1", "refused what a script of the game sent").await;
    assert_eq!(agent.run_in("client", count).await.expect("it runs"), json!(2), "nothing else ran");
    assert_eq!(agent.targets().await, ["edit", "server", "client-1"]);
    // One that destroys the remote gains nothing either: the plugins meet anew.
    studio.run_in(Side::Server, "_G.spied:Destroy()").await.expect("it is destroyed");
    until("the client is back", || async { agent.run_in("client", "return 1").await.is_ok() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn play_stopped_in_the_middle_of_a_call_settles_it_with_the_truth() {
    let project = demo();
    let (_server, studio, agent) = playing(project.path(), Play::Solo, &["edit", "server", "client-1"]).await;
    let calls: Vec<_> = ["server", "client"]
        .map(|target| tokio::spawn(async move { agent.run_in(target, "print('begun') task.wait(600)").await }))
        .into();
    for target in ["server", "client-1"] {
        agent.until_printed(target, "begun").await;
    }
    studio.stop_play().await;
    for call in calls {
        let told =
            tokio::time::timeout(BOUND, call).await.expect("in time").expect("no panic").expect_err("it did not end");
        assert_eq!(told.structure["error"]["code"], "studio_left", "{}", told.text);
        assert!(told.text.contains("may have run"), "{}", told.text);
    }
    assert_eq!(agent.run_in("edit", "return 1").await.expect("the rest goes on"), json!(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_has_the_links_and_clients_back() {
    let project = demo();
    let (server, _studio, agent) =
        playing(project.path(), Play::Clients(2), &["edit", "server", "client-1", "client-2"]).await;
    let name = "return game.Players.LocalPlayer.Name";
    let before = agent.run_in("client-2", name).await.expect("it runs");
    let port = server.port;
    server.stop().await;
    let server = TestServer::start_with(project.path(), Store::in_memory(), port).await;
    let agent = server.agent();
    agent.until_targets(&["edit", "server", "client-1", "client-2"]).await;
    assert_eq!(agent.run_in("client-2", name).await.expect("it runs"), before, "it has the name that it had");
}

#[tokio::test(flavor = "multi_thread")]
async fn c64_a_sync_waits_for_edit_mode_and_live_mode_carries_over_what_changed_meanwhile() {
    const CONFIG: &str = "src/shared/Config.luau";
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.live_studio(false).await;
    let agent = server.agent();
    let source = "return game.ReplicatedStorage.Shared.Config.Source";
    let before = agent.eval(source).await;
    studio.start_play(Play::Solo).await.expect("a person presses Play");
    agent.until_targets(&["edit", "server", "client-1"]).await;
    save(project.path(), CONFIG, "return 'saved in play'\n");
    let told = agent.call("sync", json!({})).await;
    assert!(
        told.is_error && told.text.contains("a play test") && told.text.contains("nothing was synced"),
        "{}",
        told.text
    );
    let receipt = agent.ask("sync", json!({ "mode": "dryrun" })).await;
    assert_eq!(receipt["total"], 1, "{receipt}");
    let status = agent.ask("status", json!({})).await;
    assert_eq!(status["studios"][0]["paused"], "a play test runs", "{status}");
    assert_eq!(agent.eval(source).await, before);
    studio.stop_play().await;
    until("the save has come over", || async { agent.eval(source).await == "return 'saved in play'\n" }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c64_play_tests_are_started_and_stopped_and_the_answer_comes_when_studio_says_so() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let studio = server.studio().await;
    let agent = server.agent();
    let press = |mode: &'static str| async move { agent.call("start_stop_play", json!({ "mode": mode })).await };
    assert_eq!(press("stop").await.structure["mode"], "edit", "it edits already");
    for (mode, word, targets) in
        [("start_play", "play", &["edit", "server", "client-1"][..]), ("run_server", "run", &["edit", "server"][..])]
    {
        let told = press(mode).await;
        assert_eq!((told.is_error, &told.structure["mode"]), (false, &json!(word)), "{}", told.text);
        assert_eq!(agent.targets().await, targets);
        let told = press("start_play").await;
        assert!(told.is_error && told.text.contains("plays already"), "{}", told.text);
        assert_eq!(press("stop").await.structure["mode"], "edit");
        assert_eq!(agent.targets().await, ["edit"]);
    }
    // One that a person began ends the same way.
    studio.start_play(Play::Solo).await.expect("a person presses Play");
    agent.until_targets(&["edit", "server", "client-1"]).await;
    assert_eq!(press("stop").await.structure["mode"], "edit");
    let told = press("play").await;
    assert!(told.is_error && told.text.contains("argument `mode`"), "{}", told.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn c61_a_call_to_a_client_comes_through_a_broken_link_and_runs_once() {
    let project = demo();
    let (_server, studio, agent) = playing(project.path(), Play::Solo, &["edit", "server", "client-1"]).await;
    let code = format!("{MARK} print('begun') repeat task.wait() until workspace:GetAttribute('Go') {READ}");
    let call = tokio::spawn(async move { agent.run_in("client", &code).await });
    agent.until_printed("client-1", "begun").await;
    studio.drop_sockets().await;
    agent.until_targets(&["edit", "server", "client-1"]).await;
    studio.run_in(Side::Client(1), "workspace:SetAttribute('Go', true)").await.expect("it goes on");
    let told = tokio::time::timeout(BOUND, call).await.expect("in time").expect("no panic");
    assert_eq!(told.expect("it ends"), json!(1));
}
