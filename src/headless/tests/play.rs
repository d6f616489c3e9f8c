//! Play tests: several DataModels, what goes between them, and that nothing of them stays.

use super::{super::*, place, plugin, script};
use rbx_dom_weak::InstanceBuilder;
use serde_json::{Value, json};
use std::{sync::PoisonError, time::Duration};
use tokio::net::TcpListener;

/// Says where it is, at the start and at the end.
const PLUGIN: &str = r#"
    local run = game:GetService("RunService")
    local side = if run:IsEdit() then "edit" elseif run:IsServer() then "server" else "client"
    print("plugin in", side)
    plugin.Unloading:Connect(function() print("unloading in", side) end)
"#;

fn studio_of(services: Vec<InstanceBuilder>, plugin_source: &str, knobs: Knobs) -> HeadlessStudio {
    let config = HeadlessConfig {
        place: place(services),
        plugin: plugin(plugin_source, &[]),
        knobs,
        ..HeadlessConfig::default()
    };
    HeadlessStudio::start(config).expect("the Studio starts")
}

fn server_script(source: &str) -> Vec<InstanceBuilder> {
    vec![InstanceBuilder::new("ServerScriptService").with_child(script("Script", "Main", source))]
}

fn said_in(log: &[LogLine], side: Side) -> Vec<String> {
    log.iter().filter(|line| line.side == side).map(|line| line.text_lossy().into_owned()).collect()
}

fn said(studio: &HeadlessStudio, side: Side) -> Vec<String> {
    said_in(&studio.log(), side)
}

async fn value(studio: &HeadlessStudio, side: Side, code: &str) -> Value {
    let values = studio.run_in(side, code).await.unwrap_or_else(|error| panic!("{code}: {error}"));
    values.into_iter().next().unwrap_or_default()
}

const FLAGS: &str = r#"
    local run = game:GetService("RunService")
    return { run:IsEdit(), run:IsRunning(), run:IsServer(), run:IsClient(), run:IsRunMode(), run:IsStudio() }
"#;

#[tokio::test]
async fn the_plugin_runs_in_each_data_model_and_each_knows_what_it_is() {
    let studio = studio_of(vec![], PLUGIN, Knobs::default());
    studio.start_play(Play::Solo).await.expect("it starts");
    for (side, flags) in [
        (Side::Edit, json!([true, false, true, true, false, true])),
        (Side::Server, json!([false, true, true, false, false, true])),
        (Side::Client(1), json!([false, true, false, true, false, true])),
    ] {
        assert_eq!(value(&studio, side, FLAGS).await, flags, "{side:?}");
    }
    assert!(studio.run_in(Side::Client(2), "return 1").await.is_err_and(|error| error.contains("no DataModel")));
    assert!(studio.start_play(Play::Run).await.is_err_and(|error| error.contains("already running")));
    studio.stop_play().await;
    assert_eq!(said(&studio, Side::Edit), ["plugin in edit"], "it stays loaded");
    assert_eq!(said(&studio, Side::Server), ["plugin in server", "unloading in server"]);
    assert_eq!(said(&studio, Side::Client(1)), ["plugin in client", "unloading in client"]);
    assert!(studio.run_in(Side::Server, "return 1").await.is_err());

    studio.start_play(Play::Run).await.expect("it starts");
    assert_eq!(value(&studio, Side::Server, FLAGS).await, json!([false, true, true, true, true, true]));
    assert!(studio.run_in(Side::Client(1), "return 1").await.is_err(), "there are no clients");
}

#[tokio::test]
async fn a_test_is_given_arguments_and_gives_a_value() {
    let source = r#"
        local tests = game:GetService("StudioTestService")
        local args = tests:GetTestArgs()
        tests:EndTest({ sum = args.numbers[1] + args.numbers[2], text = args.text })
    "#;
    let studio = studio_of(server_script(source), PLUGIN, Knobs::default());
    for start in ["ExecutePlayModeAsync(args)", "ExecuteRunModeAsync(args)", "ExecuteMultiplayerTestAsync(2, args)"] {
        let code = format!(
            "local args = {{ numbers = {{ 1, 2 }}, text = '\\0' }}
            return game:GetService('StudioTestService'):{start}"
        );
        assert_eq!(value(&studio, Side::Edit, &code).await, json!({ "sum": 3, "text": "\0" }), "{start}");
    }
    assert_eq!(studio.census().await.expect("it lives").data_models, 1);
}

#[tokio::test]
async fn stopping_by_hand_gives_the_waiting_plugin_nil_and_it_may_start_again() {
    let source = r#"
        if game:GetService("RunService"):IsEdit() then
            local tests = game:GetService("StudioTestService")
            print("ended with", tests:ExecutePlayModeAsync("first"), tests:ExecuteRunModeAsync("second"))
        end
    "#;
    let studio = studio_of(vec![], source, Knobs::default());
    for args in ["first", "second"] {
        let code = "return game:GetService('StudioTestService'):GetTestArgs()";
        // The plugin starts the test in its own turn.
        until("the test runs", || async { studio.run_in(Side::Server, code).await == Ok(vec![json!(args)]) }).await;
        studio.stop_play().await;
    }
    until("the plugin goes on", || async { said(&studio, Side::Edit) == ["ended with nil nil"] }).await;
    studio.stop_play().await;
}

#[tokio::test]
async fn settings_are_shared_between_data_models() {
    let source = r#"
        local event = Instance.new("BindableFunction")
        -- Neither copied into the play test nor replicated.
        event.Archivable = false
        event.Name, event.Parent = "Setting", game:GetService("ServerStorage")
        event.OnInvoke = function(key, value)
            if value ~= nil then plugin:SetSetting(key, value) end
            return plugin:GetSetting(key)
        end
    "#;
    let studio = studio_of(vec![], source, Knobs::default());
    studio.start_play(Play::Solo).await.expect("it starts");
    let ask = "return game:GetService('ServerStorage').Setting:Invoke('token'";
    for (number, side) in [Side::Edit, Side::Server, Side::Client(1)].into_iter().enumerate() {
        value(&studio, side, &format!("{ask}, {{ {number} }})")).await;
        for reader in [Side::Edit, Side::Server, Side::Client(1)] {
            assert_eq!(value(&studio, reader, &format!("{ask})")).await, json!([number]), "{reader:?} after {side:?}");
        }
    }
    studio.stop_play().await;
    assert_eq!(value(&studio, Side::Edit, &format!("{ask})")).await, json!([2]), "and they stay");
}

#[tokio::test]
async fn stop_ends_code_that_never_yields() {
    let knobs = Knobs { script_timeout: Duration::from_secs(600), ..Knobs::default() };
    let source = "task.wait(0.2) print('looping') while true do pcall(function() while true do end end) end";
    let studio = studio_of(server_script(source), PLUGIN, knobs);
    studio.start_play(Play::Solo).await.expect("it starts");
    until("it loops", || async { said(&studio, Side::Server).contains(&"looping".to_owned()) }).await;
    tokio::time::timeout(BOUND, studio.stop_play()).await.expect("the loop is ended");
    let server = said(&studio, Side::Server);
    assert!(server[2].contains("Script timeout"), "{server:?}");
    assert_eq!(server[3], "unloading in server");
    assert_eq!(value(&studio, Side::Edit, "return 1").await, json!(1));
}

#[tokio::test]
async fn commands_end_with_their_data_model_and_scripts_before_the_plugin() {
    let source = "game:BindToClose(function() print('closing') end)
        task.spawn(function() while true do task.wait() end end)";
    let studio = studio_of(server_script(source), PLUGIN, Knobs::default());
    studio.start_play(Play::Solo).await.expect("it starts");
    let waiting = studio.run_in(Side::Client(1), "task.wait(1e6)");
    let (ended, ()) = tokio::join!(waiting, studio.stop_play());
    assert_eq!(ended, Err("the play test has ended".to_owned()));
    assert_eq!(said(&studio, Side::Server), ["plugin in server", "closing", "unloading in server"]);
}

#[tokio::test]
async fn players_join_and_leave() {
    let source = r#"
        local players = game:GetService("Players")
        local function tell(event)
            players[event]:Connect(function(player) print(event, player.Name, player.UserId, #players:GetPlayers()) end)
        end
        tell("PlayerAdded")
        tell("PlayerRemoving")
    "#;
    let mut services = server_script(source);
    let local = script("LocalScript", "Local", source);
    services.push(InstanceBuilder::new("ReplicatedFirst").with_child(local));
    let studio = studio_of(services, "", Knobs::default());
    studio.start_play(Play::Clients(2)).await.expect("it starts");
    let tests = "game:GetService('StudioTestService')";
    studio.run_in(Side::Server, &format!("{tests}:AddPlayers(1)")).await.expect("a player joins");
    until("it joined", || async { said(&studio, Side::Server).len() == 3 }).await;
    assert_eq!(value(&studio, Side::Client(3), "return #game:GetService('Players'):GetPlayers()").await, json!(3));

    // The server waits for an answer of the client that goes.
    let asked = r#"
        local remote = Instance.new("RemoteFunction")
        remote.Parent = game:GetService("ReplicatedStorage")
        return pcall(remote.InvokeClient, remote, game:GetService("Players").Player2)
    "#;
    let left = async {
        let answer = studio.run_in(Side::Client(2), &format!("{tests}:LeaveTest() task.wait(1e6)")).await;
        assert_eq!(answer, Err("the play test has ended".to_owned()));
    };
    let (answer, ()) = tokio::join!(studio.run_in(Side::Server, asked), left);
    assert_eq!(answer.expect("it runs")[0], json!(false));
    studio.run_in(Side::Client(1), "task.wait()").await.expect("a frame passes");
    assert_eq!(
        said(&studio, Side::Server),
        [
            "PlayerAdded Player1 -1 1",
            "PlayerAdded Player2 -2 2",
            "PlayerAdded Player3 -3 3",
            "PlayerRemoving Player2 -2 2"
        ]
    );
    assert_eq!(
        said(&studio, Side::Client(1)),
        ["PlayerAdded Player2 -2 2", "PlayerAdded Player3 -3 3", "PlayerRemoving Player2 -2 2"]
    );
}

/// Connections that are accepted and never answered, so that requests and streams hang.
async fn deaf_listener() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((socket, _)) = listener.accept().await {
            kept.push(socket);
        }
    });
    port
}

#[tokio::test]
async fn nothing_of_a_play_test_stays() {
    let port = deaf_listener().await;
    let source = format!(
        r#"
        local http = game:GetService("HttpService")
        if game:GetService("RunService"):IsRunning() then
            for _ = 1, 2 do
                pcall(http.CreateWebStreamClient, http, Enum.WebStreamClientType.WebSocket, {{ Url = "ws://127.0.0.1:{port}/" }})
            end
            task.spawn(pcall, http.RequestAsync, http, {{ Url = "http://127.0.0.1:{port}/" }})
            game:GetService("RunService").Heartbeat:Connect(function() end)
            task.delay(1e6, print, plugin)
        end
    "#
    );
    let studio = studio_of(server_script("while true do task.wait() end"), &source, Knobs::default());
    let census = async || studio.census().await.expect("it lives");
    let before = census().await;
    assert_eq!((before.data_models, before.streams), (1, 0));
    for play in [Play::Solo, Play::Clients(3), Play::Run] {
        studio.start_play(play).await.expect("it starts");
        let during = census().await;
        assert!(
            during.data_models > 1 && during.streams == 2 && during.tasks > before.tasks + 2,
            "{play:?}: {during:?}"
        );
        studio.stop_play().await;
        let after = census().await;
        assert_eq!((after.data_models, after.streams), (1, 0), "{play:?}");
        // Tasks end in their own turn.
        until("the tasks have ended", || async { census().await == before }).await;
    }
}

#[tokio::test]
async fn closing_studio_in_a_play_test_unloads_every_plugin() {
    let studio = studio_of(vec![], PLUGIN, Knobs::default());
    studio.start_play(Play::Clients(2)).await.expect("it starts");
    let log = studio.log.clone();
    studio.stop().await;
    let log = log.lock().unwrap_or_else(PoisonError::into_inner);
    for (side, last) in [
        (Side::Client(1), "unloading in client"),
        (Side::Client(2), "unloading in client"),
        (Side::Server, "unloading in server"),
        (Side::Edit, "unloading in edit"),
    ] {
        assert_eq!(said_in(&log, side).last().map(String::as_str), Some(last), "{side:?}");
    }
}

const BOUND: Duration = Duration::from_secs(30);

/// Wait for a condition, with a bound.
async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let wait = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(BOUND, wait).await.is_ok(), "not within {BOUND:?}: {what}");
}
