//! Play tests: several DataModels, what goes between them, and that nothing of them stays.

use super::{super::*, plugin};
use rbx_dom_weak::{InstanceBuilder, WeakDom};
use serde_json::{Value, json};

/// A Studio with these things in the services of its place, and a plugin that says where it is.
fn studio_of(services: Vec<InstanceBuilder>) -> HeadlessStudio {
    let dom = WeakDom::new(InstanceBuilder::new("Folder").with_children(services));
    let mut place = Vec::new();
    rbx_binary::to_writer(&mut place, &dom, dom.root().children()).expect("a small place can be written");
    let source = r#"
        local run = game:GetService("RunService")
        local side = if run:IsEdit() then "edit" elseif run:IsServer() then "server" else "client"
        print("plugin in", side)
        plugin.Unloading:Connect(function() print("unloading in", side) end)
    "#;
    let config = HeadlessConfig { place, plugin: plugin(source, &[]), ..HeadlessConfig::default() };
    HeadlessStudio::start(config).expect("the Studio starts")
}

fn script(class: &str, name: &str, source: &str) -> InstanceBuilder {
    InstanceBuilder::new(class).with_name(name).with_property("Source", source)
}

fn said(studio: &HeadlessStudio, side: Side) -> Vec<String> {
    studio.log().iter().filter(|line| line.side == side).map(|line| line.text_lossy().into_owned()).collect()
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
    let studio = studio_of(vec![]);
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
    let server = InstanceBuilder::new("ServerScriptService").with_child(script("Script", "Main", source));
    let studio = studio_of(vec![server]);
    for start in ["ExecutePlayModeAsync(args)", "ExecuteRunModeAsync(args)", "ExecuteMultiplayerTestAsync(2, args)"] {
        let code = format!(
            "local args = {{ numbers = {{ 1, 2 }}, text = '\\0' }}
            return game:GetService('StudioTestService'):{start}"
        );
        assert_eq!(value(&studio, Side::Edit, &code).await, json!({ "sum": 3, "text": "\0" }), "{start}");
    }
    assert_eq!(studio.census().await.expect("it lives").data_models, 1);
}
