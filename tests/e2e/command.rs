//! The command line as people and scripts use it: what it prints, and with which status it ends.

use std::path::Path;

use rojo_mcp::core::text::TextHash;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    attach::serve_with,
    faults::{hello1, next_of, take_tree},
    level0::FakePlugin,
    support::{Agent, BOUND, delete, demo, program, save, until},
};

const CONFIG: &str = "src/shared/Config.luau";
const MONEY: &str = "src/shared/Money.luau";

/// What a command came to.
pub struct Ran {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// What it printed, as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("not JSON: {} {}", self.stdout, self.stderr))
    }
}

/// Run `rojo-mcp <command> <project> <args>` to its end.
pub async fn run(project: &Path, command: &str, args: &[&str]) -> Ran {
    let mut child = Command::from(program(project));
    child.arg(command).arg(project).args(args).kill_on_drop(true);
    let output = tokio::time::timeout(BOUND, child.output()).await.expect("it ends").expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ran { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_ends_with_0_when_it_is_done_or_has_nothing_to_do() {
    let project = demo();
    let (_serving, port) = serve_with(project.path(), &["--headless"]).await;
    save(project.path(), CONFIG, "return { lanternsToWin = 3 }\n");
    save(project.path(), "src/shared/Maps/Cave.luau", "return 'cave'\n");
    let planned = run(project.path(), "sync", &["--mode", "dryrun"]).await;
    assert_eq!(planned.status, Some(0), "{}{}", planned.stdout, planned.stderr);
    assert!(planned.stdout.contains("planned"), "{}", planned.stdout);

    let done = run(project.path(), "sync", &[]).await;
    assert_eq!((done.status, done.stderr.as_str()), (Some(0), ""), "{}", done.stdout);
    assert_eq!(
        done.stdout,
        "push add   Folder        ReplicatedStorage.Shared.Maps    src/shared/Maps\n\
         push edit  ModuleScript  ReplicatedStorage.Shared.Config  src/shared/Config.luau\n\
         success: 2 pushed; journal 1: rojo-mcp undo --change 1 takes it back\n"
    );
    let told = Agent { port }.eval("return require(game.ReplicatedStorage.Shared.Config).lanternsToWin").await;
    assert_eq!(told, json!(3));

    let again = run(project.path(), "sync", &[]).await;
    assert_eq!(again.status, Some(0));
    assert!(again.stdout.starts_with("empty: "), "{}", again.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_json_of_a_sync_is_the_receipt_that_agents_get() {
    let project = demo();
    let (_serving, port) = serve_with(project.path(), &["--headless"]).await;
    save(project.path(), CONFIG, "return { lanternsToWin = 3 }\n");
    save(project.path(), MONEY, "return 'money'\n");
    let args = ["--mode", "dryrun", "--paths", CONFIG, "--json"];
    let ran = run(project.path(), "sync", &args).await;
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let receipt = Agent { port }.ask("sync", json!({ "mode": "dryrun", "paths": [CONFIG] })).await;
    assert_eq!(ran.json(), receipt);
    assert_eq!(receipt["total"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_ends_with_2_when_its_arguments_are_wrong() {
    let project = demo();
    for args in [&["--mode", "quick"][..], &["--wait", "soon"], &["--sideways"]] {
        let ran = run(project.path(), "sync", args).await;
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{args:?}");
    }
    let (_serving, _port) = serve_with(project.path(), &["--headless"]).await;
    let ran = run(project.path(), "sync", &["--paths", "../elsewhere", "--json"]).await;
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("../elsewhere") && ran.stderr.contains("next:"), "{}", ran.stderr);
    assert_eq!(ran.json()["error"]["code"], "bad_arguments");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_ends_with_3_when_there_is_no_studio() {
    let project = demo();
    let ran = run(project.path(), "sync", &[]).await;
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("no server") && ran.stderr.contains("--wait"), "{}", ran.stderr);
    let ran = run(project.path(), "sync", &["--wait", "1", "--port", "0", "--json"]).await;
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    assert_eq!(ran.json()["error"]["code"], "no_studio");

    let (_serving, _port) = serve_with(project.path(), &["--headless"]).await;
    let ran = run(project.path(), "sync", &["--studio", "Elsewhere"]).await;
    assert_eq!(ran.status, Some(3));
    assert!(ran.stderr.contains("Elsewhere") && ran.stderr.contains("Lantern Run"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_ends_with_4_when_something_needs_a_decision() {
    let project = demo();
    let (_serving, port) = serve_with(project.path(), &["--headless"]).await;
    Agent { port }.eval("game.ReplicatedStorage.Shared.Config.Source = '-- mine'").await;
    save(project.path(), CONFIG, "-- theirs\n");
    for mode in ["standard", "fastfail", "dryrun"] {
        let ran = run(project.path(), "sync", &["--mode", mode]).await;
        assert_eq!(ran.status, Some(4), "{mode}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("unresolved edit") && ran.stdout.contains(CONFIG), "{}", ran.stdout);
    }
    assert_eq!(Agent { port }.eval("return game.ReplicatedStorage.Shared.Config.Source").await, json!("-- mine"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_ends_with_5_when_nobody_agreed_to_it() {
    let project = demo();
    let (_serving, _port) = serve_with(project.path(), &["--headless"]).await;
    save(project.path(), CONFIG, "return { lanternsToWin = 3 }\n");
    let ran = run(project.path(), "sync", &["--mode", "manual"]).await;
    assert_eq!(ran.status, Some(5), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("rejected: "), "{}", ran.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_ends_with_6_when_something_was_tried_and_failed() {
    let project = demo();
    let (_serving, port) = serve_with(project.path(), &[]).await;
    let mut plugin = FakePlugin::connect(port).await;
    plugin.send(hello1("s", "place:1")).await;
    let nodes = take_tree(&mut plugin).await;
    Agent { port }.until_live(1).await;
    let node = |name: &str| nodes.iter().find(|node| node["name"] == name).expect("it is in the tree").clone();
    let text = "return 'new'\n";
    save(project.path(), CONFIG, text);
    save(project.path(), MONEY, text);
    let answer = async {
        let request = next_of(&mut plugin, "sync").await;
        let fact = |name: &str| {
            let node = node(name);
            json!({ "kind": "differs", "id": node["id"], "path": format!("ReplicatedStorage.Shared.{name}"),
                    "className": "ModuleScript", "studioHash": node["hash"], "isDraft": false })
        };
        plugin
            .send(json!({ "requestId": request["requestId"], "status": "success", "cursor": request["cursor"],
                          "facts": [fact("Config"), fact("Money")] }))
            .await;
        let plan = next_of(&mut plugin, "plan").await;
        let hash = TextHash::of(text).to_string();
        let failed = json!({ "id": node("Money")["id"], "status": "failed", "error": "\u{1b}[31mlocked" });
        let done = json!({ "id": node("Config")["id"], "status": "done", "hash": hash });
        plugin.send(json!({ "requestId": plan["requestId"], "status": "success", "results": [done, failed] })).await;
    };
    let (ran, ()) = tokio::join!(run(project.path(), "sync", &[]), answer);
    assert_eq!(ran.status, Some(6), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("partial: 1 pushed, 1 failed"), "{}", ran.stdout);
    assert!(ran.stdout.contains("failed: \u{fffd}[31mlocked"), "no escape sequence of the place: {}", ran.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_ends_with_7_when_it_is_not_said_which_studio_is_meant() {
    let project = demo();
    let (_serving, port) = serve_with(project.path(), &[]).await;
    let mut plugins = Vec::new();
    for place in ["place:1", "place:2"] {
        let mut plugin = FakePlugin::connect(port).await;
        plugin.send(hello1(place, place)).await;
        take_tree(&mut plugin).await;
        plugins.push(plugin);
    }
    Agent { port }.until_live(2).await;
    let ran = run(project.path(), "sync", &[]).await;
    assert_eq!(ran.status, Some(7), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("place:1") && ran.stderr.contains("--studio"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_ends_with_1_for_anything_else() {
    let project = demo();
    save(project.path(), "default.project.json", "{ \"name\": \"x\", \"tree\": :\n}\n");
    let ran = run(project.path(), "sync", &["--headless"]).await;
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("default.project.json") && ran.stderr.contains("line 1"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_waits_for_a_studio_and_stops_what_it_started() {
    let project = demo();
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port").local_addr().expect("bound").port();
    let number = port.to_string();
    let args = ["--wait", "25", "--port", &number];
    let studio = async {
        until("it listens", || async { tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() }).await;
        let mut plugin = FakePlugin::connect(port).await;
        plugin.send(hello1("s", "place:1")).await;
        take_tree(&mut plugin).await;
        let request = next_of(&mut plugin, "sync").await;
        let equal = json!({ "requestId": request["requestId"], "status": "success",
                            "cursor": request["cursor"], "facts": [] });
        plugin.send(equal).await;
        next_of(&mut plugin, "bye").await
    };
    let (ran, bye) = tokio::join!(run(project.path(), "sync", &args), studio);
    assert_eq!(ran.status, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(bye["reason"], "the server is stopping");

    let ran = run(project.path(), "sync", &["--headless"]).await;
    assert_eq!(ran.status, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.starts_with("empty: "), "{}", ran.stdout);
    assert_eq!(ran.stderr, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn c38_yes_agrees_to_removals_and_decides_no_conflict() {
    let project = demo();
    let parts: Vec<String> = (0..4).map(|number| format!("src/shared/Parts/P{number}.luau")).collect();
    save(project.path(), "src/shared/Parts/init.meta.json", "{}");
    for part in &parts {
        save(project.path(), part, "return 1\n");
    }
    let (_serving, port) = serve_with(project.path(), &["--headless"]).await;
    let agent = Agent { port };
    for part in &parts {
        delete(project.path(), part);
    }
    agent.eval("game.ReplicatedStorage.Shared.Config.Source = '-- mine'").await;
    let theirs = save(project.path(), CONFIG, "-- theirs\n");
    let count = "return #game.ReplicatedStorage.Shared.Parts:GetChildren()";
    let ran = run(project.path(), "sync", &[]).await;
    assert_eq!(ran.status, Some(4), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("sync with --yes"), "{}", ran.stdout);
    assert_eq!(agent.eval(count).await, json!(4), "nobody agreed");

    let ran = run(project.path(), "sync", &["--yes"]).await;
    assert_eq!(ran.status, Some(4), "the conflict is still there: {}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("4 removed, 1 unresolved"), "{}", ran.stdout);
    assert_eq!(agent.eval(count).await, json!(0));
    assert_eq!(agent.eval("return game.ReplicatedStorage.Shared.Config.Source").await, json!("-- mine"));
    assert_eq!(std::fs::read_to_string(theirs).expect("the file"), "-- theirs\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_takes_a_sync_back_and_ends_as_a_sync_does() {
    let project = demo();
    assert_eq!(run(project.path(), "undo", &[]).await.status, Some(3), "no server");
    let (_serving, port) = serve_with(project.path(), &["--headless"]).await;
    let agent = Agent { port };
    let source = "return game.ReplicatedStorage.Shared.Config.Source";
    let before = agent.eval(source).await;
    save(project.path(), CONFIG, "return { lanternsToWin = 3 }\n");
    let done = run(project.path(), "sync", &["--json"]).await;
    assert_eq!(done.status, Some(0), "{}{}", done.stdout, done.stderr);
    let undone = run(project.path(), "undo", &["--change", &done.json()["journal"].to_string()]).await;
    assert_eq!(undone.status, Some(0), "{}{}", undone.stdout, undone.stderr);
    assert!(undone.stdout.contains(CONFIG) && undone.stdout.contains("success: "), "{}", undone.stdout);
    assert!(undone.stdout.contains("undid sync 1 by command line at "), "{}", undone.stdout);
    assert_eq!(agent.eval(source).await, before);
    let again = run(project.path(), "undo", &["--change", &done.json()["journal"].to_string()]).await;
    assert_eq!(again.status, Some(1));
    assert!(again.stdout.contains("taken back already"), "{}{}", again.stdout, again.stderr);

    assert_eq!(run(project.path(), "sync", &[]).await.status, Some(0));
    agent.eval("game.ReplicatedStorage.Shared.Config.Source = '-- newer'").await;
    let held = run(project.path(), "undo", &["--json"]).await;
    assert_eq!((held.status, &held.json()["unresolved"]), (Some(4), &json!(1)), "{}", held.stderr);
    assert_eq!(agent.eval(source).await, json!("-- newer"));
}
