//! Runs `conformance/*.luau` in the command bar, and what differs with immediate signals.

use super::{super::*, place, plugin, script};
use rbx_dom_weak::InstanceBuilder;

const CHECKS: &str = include_str!("../conformance/checks.luau");
const FILES: [(&str, &str); 8] = [
    ("instances", include_str!("../conformance/instances.luau")),
    ("tree", include_str!("../conformance/tree.luau")),
    ("signals", include_str!("../conformance/signals.luau")),
    ("threads", include_str!("../conformance/threads.luau")),
    ("network", include_str!("../conformance/network.luau")),
    ("services", include_str!("../conformance/services.luau")),
    ("history", include_str!("../conformance/history.luau")),
    ("datatypes", include_str!("../conformance/datatypes.luau")),
];
/// Checks must not vanish silently: raise this with them.
const FEWEST: f64 = 250.0;

const PLAY_FILES: [(Side, &str, &str); 2] = [
    (Side::Client(1), "play_client", include_str!("../conformance/play_client.luau")),
    (Side::Server, "play_server", include_str!("../conformance/play_server.luau")),
];
const FEWEST_IN_PLAY: f64 = 42.0;

async fn all_hold(studio: &HeadlessStudio, files: impl IntoIterator<Item = (Side, &str, &str)>, fewest: f64) {
    let (mut count, mut failed) = (0.0, Vec::new());
    for (side, name, checks) in files {
        let code = format!("{CHECKS}\n{checks}\nreturn count, failures");
        let values = studio.run_in(side, &code).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        count += values[0].as_f64().expect("a number of checks");
        let lines = values[1].as_array().expect("a list of failures").iter();
        failed.extend(lines.map(|line| format!("{name}: {}", line.as_str().unwrap_or_default())));
    }
    assert!(failed.is_empty(), "{} of {count} checks failed:\n{}", failed.len(), failed.join("\n"));
    assert!(count >= fewest, "only {count} checks");
}

#[tokio::test]
async fn the_simulation_behaves_as_the_engine() {
    let config = HeadlessConfig { plugin: plugin("", &[]), place_name: "Test".to_owned(), ..HeadlessConfig::default() };
    let studio = HeadlessStudio::start(config).expect("the Studio starts");
    all_hold(&studio, FILES.map(|(name, checks)| (Side::Edit, name, checks)), FEWEST).await;
}

#[tokio::test]
async fn a_play_test_behaves_as_the_engine() {
    let server = script("Script", "Main", include_str!("../conformance/place_server.luau"));
    let client = script("LocalScript", "Local", include_str!("../conformance/place_client.luau"));
    let side = "return { where = if game:GetService('RunService'):IsServer() then 'server' else 'client' }";
    let config = HeadlessConfig {
        place: place(vec![
            InstanceBuilder::new("ServerScriptService").with_child(server),
            InstanceBuilder::new("Workspace").with_child(script("Script", "Secret", "-- only the server's")),
            InstanceBuilder::new("StarterPlayer")
                .with_child(InstanceBuilder::new("StarterPlayerScripts").with_child(client)),
            InstanceBuilder::new("ReplicatedStorage").with_children([
                InstanceBuilder::new("RemoteFunction").with_name("Echo"),
                InstanceBuilder::new("RemoteEvent").with_name("Event"),
                script("ModuleScript", "Side", side),
            ]),
        ]),
        plugin: plugin("", &[]),
        ..HeadlessConfig::default()
    };
    let studio = HeadlessStudio::start(config).expect("the Studio starts");
    studio.start_play(Play::Solo).await.expect("it starts");
    all_hold(&studio, PLAY_FILES, FEWEST_IN_PLAY).await;
}

#[tokio::test]
async fn immediate_signals_run_at_once_and_newest_first() {
    let knobs = Knobs { immediate_signals: true, ..Knobs::default() };
    let studio = super::studio_with("", knobs);
    let code = r#"
        local log, event = {}, Instance.new("BindableEvent")
        event.Event:Connect(function() table.insert(log, "first") end)
        event.Event:Connect(function() table.insert(log, "second") end)
        event:Fire()
        table.insert(log, "after")
        return table.concat(log, " ")
    "#;
    assert_eq!(studio.run(code).await, Ok(vec![serde_json::json!("second first after")]));
}
