//! What somebody meets who uses it for the first time.

use std::path::Path;

use serde_json::json;
use tokio::process::Command;

use crate::{
    attach::serve_with,
    command::{Ran, run},
    support::{Agent, BOUND, demo, program, save},
};

const CONFIG: &str = "src/shared/Config.luau";

/// Run `rojo-mcp <args>` in `folder` to its end.
async fn run_in(folder: &Path, args: &[&str]) -> Ran {
    let mut child = Command::from(program(folder));
    child.current_dir(folder).args(args).kill_on_drop(true);
    let output = tokio::time::timeout(BOUND, child.output()).await.expect("it ends").expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ran { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_project_is_the_same_in_a_simulated_studio() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let made = run_in(folder.path(), &["init", "--skip-git"]).await;
    assert_eq!(made.status, Some(0), "{}", made.stderr);
    let ran = run_in(folder.path(), &["sync", "--headless", "--mode", "dryrun"]).await;
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, "dryrun: what the files specify is equal on both sides; there is nothing to do\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_mistyped_names_the_one_that_was_meant() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (typed, meant) in [("sycn", "sync"), ("buidl", "build"), ("pluggin", "plugin")] {
        let ran = run_in(folder.path(), &[typed]).await;
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{typed}: {}", ran.stderr);
        let tip = format!("a similar command exists: '{meant}'");
        assert!(
            ran.stderr.contains(&format!("there is no command '{typed}'")) && ran.stderr.contains(&tip),
            "{}",
            ran.stderr
        );
    }
    let far = run_in(folder.path(), &["teleport"]).await;
    assert!(far.status == Some(2) && !far.stderr.contains("tip:"), "{}", far.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_a_project_is_told_where_the_project_is() {
    let project = demo();
    let ran = run_in(&project.path().join("src/shared"), &["status"]).await;
    let root = project.path().canonicalize().expect("it is there");
    let next = format!("next:  name the project that this is a part of: {}", root.display());
    assert!(ran.status == Some(1) && ran.stderr.contains(&next), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_shown_with_its_lines_and_with_what_a_person_can_do() {
    let project = demo();
    let (_serving, port) = serve_with(project.path(), &["--headless"]).await;
    let agent = Agent { port };
    agent.ask("sync", json!({})).await;
    agent.eval("game.ReplicatedStorage.Shared.Config.Source = 'return { lanternsToWin = 1 }'").await;
    save(project.path(), CONFIG, "return { lanternsToWin = 2 }\n");
    let ran = run(project.path(), "sync", &[]).await;
    assert_eq!(ran.status, Some(4), "{}", ran.stderr);
    assert!(ran.stdout.contains("settle it with --mode manual") && !ran.stdout.contains("`resolve`"), "{}", ran.stdout);
    let lines = ["at line 1", "file    return { lanternsToWin = 2 }", "Studio  return { lanternsToWin = 1 }"];
    assert!(lines.iter().all(|line| ran.stdout.contains(&format!("\n    {line}\n"))), "{}", ran.stdout);
    let status = run(project.path(), "status", &[]).await;
    assert!(status.stdout.contains("rojo-mcp sync --mode manual"), "{}", status.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_about_properties_names_them() {
    let project = demo();
    let (_serving, _port) = serve_with(project.path(), &["--headless"]).await;
    save(project.path(), "src/shared/Config.meta.json", r#"{ "attributes": { "Owner": "me" } }"#);
    let ran = run(project.path(), "sync", &[]).await;
    let row = "push edit  ModuleScript  ReplicatedStorage.Shared.Config  src/shared/Config.luau  @Owner\n";
    assert!(ran.stdout.starts_with(row), "{}{}", ran.stdout, ran.stderr);
}
