//! Running code: results, errors, contexts, the time limit, loading and unloading.

use super::{super::*, log_text, model, plugin, studio, studio_with};
use rbx_dom_weak::InstanceBuilder;
use serde_json::json;
use std::time::Duration;

fn with_plugin(source: &str, modules: &[(&str, &str)]) -> HeadlessStudio {
    let config = HeadlessConfig { plugin: plugin(source, modules), ..HeadlessConfig::default() };
    HeadlessStudio::start(config).expect("the Studio starts")
}

#[tokio::test]
async fn a_command_returns_its_values_as_json() {
    let studio = studio();
    let values = studio.run("task.wait() return 1, 'two', { 3, 4 }, { a = true }, nil, workspace").await;
    assert_eq!(
        values,
        Ok(vec![json!(1), json!("two"), json!([3, 4]), json!({"a": true}), json!(null), json!("Workspace")])
    );
    let cyclic = studio.run("local t = {} t.a = t t.b = t return t, 0/0, Vector3.one").await;
    assert_eq!(cyclic, Ok(vec![json!({"a": "<cyclic>", "b": "<cyclic>"}), json!(null), json!("1, 1, 1")]));
}

#[tokio::test]
async fn an_error_is_its_text_with_the_position() {
    let studio = studio();
    assert_eq!(studio.run("\nerror('boom')").await, Err("cmd:2: boom".to_owned()));
    assert_eq!(
        studio.run("return workspace.Nope").await,
        Err("Nope is not a valid member of Workspace \"Workspace\"".to_owned())
    );
    assert!(studio.run("return return").await.is_err_and(|text| text.starts_with("cmd:1:")));
    assert_eq!(studio.run("error({})").await, Err("Error occurred, no output from Luau.".to_owned()));
}

#[tokio::test]
async fn an_error_in_the_plugin_is_a_line_with_its_full_name() {
    let studio = studio_with("print('up')\nerror('down')", Knobs::default());
    assert_eq!(log_text(&studio), ["0 up", "3 user_rojo-mcp.rbxm.Plugin:2: down"]);
    let studio = studio_with("return return", Knobs::default());
    assert!(log_text(&studio)[0].starts_with("3 user_rojo-mcp.rbxm.Plugin:1:"));
}

#[test]
fn what_cannot_start_says_why() {
    let start = |config| HeadlessStudio::start(config).expect_err("it cannot start");
    assert!(matches!(start(HeadlessConfig::default()), HeadlessError::Plugin(_)));
    let config = HeadlessConfig { plugin: model(InstanceBuilder::new("Folder")), ..HeadlessConfig::default() };
    assert!(matches!(start(config), HeadlessError::NoPluginScript));
    let config = HeadlessConfig { place: vec![1], plugin: plugin("", &[]), ..HeadlessConfig::default() };
    assert!(matches!(start(config), HeadlessError::Place(_)));
}

#[tokio::test]
async fn the_place_and_its_name_are_there_and_services_are_merged() {
    let folder = |name: &str| InstanceBuilder::new("Folder").with_name(name);
    let workspace = InstanceBuilder::new("Workspace").with_name("World").with_child(folder("A"));
    let config = HeadlessConfig {
        place: model(workspace),
        plugin: plugin("", &[]),
        place_id: 7,
        place_name: "Castle".to_owned(),
        ..HeadlessConfig::default()
    };
    let studio = HeadlessStudio::start(config).expect("the Studio starts");
    let values =
        studio.run("return workspace, workspace.A, game.PlaceId, game.Name, #game:GetService('Players'):GetPlayers()");
    assert_eq!(values.await, Ok(vec![json!("World"), json!("World.A"), json!(7), json!("Castle"), json!(0)]));
}

#[tokio::test]
async fn code_that_never_yields_is_ended_by_the_time_limit() {
    let knobs = Knobs { script_timeout: Duration::from_millis(50), ..Knobs::default() };
    let studio = studio_with("", knobs);
    let timeout = Err("cmd:1: Script timeout: exhausted allowed execution time".to_owned());
    assert_eq!(studio.run("while true do end").await, timeout);
    assert_eq!(studio.run("while true do pcall(function() while true do end end) end").await, timeout);
    assert_eq!(studio.run("task.spawn(function() while true do end end)").await, timeout);
    assert_eq!(studio.run("return 1").await, Ok(vec![json!(1)]), "and Studio lives on");
}

#[tokio::test]
async fn dropping_ends_a_loop_that_never_yields() {
    let studio = studio();
    let endless = studio.run("print('looping') while true do end");
    // The command is on its way before the handle is dropped; its answer is the end of the thread.
    let mut endless = Box::pin(endless);
    let waiting = tokio::time::timeout(Duration::from_millis(1), &mut endless).await;
    assert!(waiting.is_err());
    drop(endless);
    drop(studio);
}

#[tokio::test]
async fn a_thread_that_reschedules_itself_starves_nobody() {
    let studio = studio_with("local function again() task.defer(again) end again()", Knobs::default());
    assert_eq!(studio.run("return 1").await, Ok(vec![json!(1)]));
}

#[tokio::test]
async fn settings_are_kept_over_a_reload_and_go_through_json() {
    let mut settings = serde_json::Map::new();
    settings.insert("start".to_owned(), json!("given"));
    let source = r#"
        print(plugin:GetSetting("start"), plugin:GetSetting("nothing"))
        local kept = plugin:GetSetting("kept")
        print(if kept then #kept.list else "none")
        plugin:SetSetting("kept", { list = { 1, 2 } })
        plugin.Unloading:Connect(function()
            print("bye")
            task.delay(0, print, "late")
        end)
    "#;
    let config = HeadlessConfig { plugin: plugin(source, &[]), settings, ..HeadlessConfig::default() };
    let studio = HeadlessStudio::start(config).expect("the Studio starts");
    studio.reload_plugin().await;
    studio.run("task.wait(0.1)").await.expect("time passes");
    let log = log_text(&studio);
    assert_eq!(log[..2], ["0 given nil", "0 none"]);
    assert!(log.contains(&"0 bye".to_owned()) && log.contains(&"0 2".to_owned()), "{log:?}");
    assert!(!log.contains(&"0 late".to_owned()), "what the unloaded plugin left does not run: {log:?}");
}

#[tokio::test]
async fn stopping_fires_unloading() {
    let studio = studio_with("plugin.Unloading:Connect(function() print('bye') end)", Knobs::default());
    let log = studio.log.clone();
    studio.stop().await;
    let log = log.lock().expect("the thread did not panic");
    assert_eq!(log.first().map(|line| line.text_lossy().into_owned()), Some("bye".to_owned()));
}

#[tokio::test]
async fn the_plugin_and_the_command_bar_are_contexts_of_their_own() {
    let studio = with_plugin(
        "_G.mine = 1 shared.mine = 1 leaked = 1 print(script.Name, typeof(plugin), require(script.Module))",
        &[("Module", "return typeof(plugin) .. script.Name")],
    );
    assert_eq!(log_text(&studio), ["0 Plugin Instance nilModule"]);
    let values = studio.run("return _G.mine, shared.mine, leaked, script, plugin, typeof(Headless.setDraft)").await;
    assert_eq!(values, Ok(vec![json!(null), json!(null), json!(null), json!(null), json!(null), json!("function")]));
    studio.run("_G.mine = 2").await.expect("a table of ours");
    assert_eq!(studio.run("return _G.mine").await, Ok(vec![json!(2)]), "commands share theirs");
}

#[tokio::test]
async fn the_output_keeps_any_bytes() {
    let studio = studio();
    studio.run(r#"print("\xE2\0") warn("careful", nil, 1)"#).await.expect("it prints");
    let log = studio.log();
    assert_eq!((log[0].level, &log[0].text[..]), (0, &b"\xE2\0"[..]));
    assert_eq!((log[1].level, log[1].text_lossy().as_ref()), (2, "careful nil 1"));
}

#[tokio::test]
async fn the_shipped_plugin_starts_without_a_complaint() {
    let mut settings = serde_json::Map::new();
    settings.insert("RojoMcpAutoConnect".to_owned(), json!(false));
    let config = HeadlessConfig {
        plugin: crate::plugin_model::build().expect("the embedded sources are a project"),
        settings,
        ..HeadlessConfig::default()
    };
    let studio = HeadlessStudio::start(config).expect("the Studio starts");
    studio.run("task.wait(0.05)").await.expect("time passes");
    let loud: Vec<_> = log_text(&studio).into_iter().filter(|line| line.starts_with(['2', '3'])).collect();
    assert!(loud.is_empty(), "{loud:#?}");
}

#[test]
fn the_handle_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<HeadlessStudio>();
}
