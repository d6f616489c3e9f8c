//! What goes wrong with the files or the session reaches whoever uses the server.

use std::{
    path::Path,
    process::{Output, Stdio},
};

use librojo::web_api::ServerInfoResponse;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::support::{Agent, BOUND, TestServer, delete, demo, save, until};

fn serve(project: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rojo-mcp"));
    command.args(["serve", "--port", "0"]).arg(project).env_remove("RUST_LOG");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn c29_what_is_wrong_with_a_project_file_is_said_with_its_line() {
    // What the file holds, where that is wrong, and a word that says what.
    let broken = [
        ("{\n  \"name\": \"Demo\",\n  \"tree\":\n}\n", "line 4", "close brace"),
        ("{\n  // The old name.\n  \"name\": \"Demo\",\n  \"tre\": {\"$path\": \"src\"},\n}\n", "line 4", "`tre`"),
        ("", "line 1", "empty"),
        ("{\"name\": \"Demo\",\n/* none\n yet */ }\n", "line 3", "missing field `tree`"),
        ("{\"name\": \"Demo\",\n \"tree\": {\"$className\": \"Folder\",\n \"Kid\": 5}}", "line 3", "integer `5`"),
        ("{\"name\": \"Demo\", // a string that does not end\n\"tree\": {\"$path\": \"src}}", "line 2", "nterminated"),
    ];
    let mut said = Vec::new();
    for (text, line, word) in broken {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = save(folder.path(), "default.project.json", text);
        let file = std::fs::canonicalize(file).expect("it is there");
        let words = refusal(folder.path()).await;
        assert!(words.contains(&file.display().to_string()), "{text:?}: {words}");
        assert!(words.contains(line) && words.contains(word), "{text:?}: {words}");
        said.push(words.replace(&file.display().to_string(), ""));
    }
    let nothing = tempfile::tempdir().expect("a temporary folder");
    let words = refusal(nothing.path()).await;
    assert!(words.contains("no project file in") && words.contains("default.project.jsonc"), "{words}");
    said.push(words);
    let count = said.len();
    said.sort();
    said.dedup();
    assert_eq!(said.len(), count, "each says something else: {said:#?}");
}

/// What `serve` says of a project that it does not serve.
async fn refusal(project: &Path) -> String {
    let output = tokio::time::timeout(BOUND, serve(project).output()).await.expect("it ends").expect("it runs");
    let Output { status, stdout, stderr } = output;
    let words = String::from_utf8(stderr).expect("text");
    assert_eq!(status.code(), Some(1), "{words}");
    assert!(stdout.is_empty(), "nothing claims to serve");
    assert!(words.starts_with("error: ") && words.contains("\nnext: "), "{words}");
    words
}

/// An agent of the server that `child` is, once it serves.
async fn agent_of(child: &mut Child) -> Agent {
    let mut out = BufReader::new(child.stdout.take().expect("piped")).lines();
    let port = async {
        loop {
            let line = out.next_line().await.expect("text").expect("it serves");
            if let Some(port) = line.trim().strip_prefix("Port:") {
                return port.trim().parse().expect("a number");
            }
        }
    };
    Agent { port: tokio::time::timeout(BOUND, port).await.expect("in time") }
}

/// The whole tree as Rojo's plugin reads it: names and texts are in it as they are.
async fn tree(agent: &Agent) -> String {
    let (_, _, body) = agent.http("GET", "/api/rojo", &[], "").await;
    let root = crate::rojo::decode::<ServerInfoResponse>(&body).root_instance_id;
    let (_, _, body) = agent.http("GET", &format!("/api/read/{root}"), &[], "").await;
    String::from_utf8_lossy(&body).into_owned()
}

/// Add, edit and delete a script above the project, and wait until each is in the tree.
async fn follows(agent: &Agent, folder: &Path) {
    let is = |text: &'static str, there: bool| async move {
        until(text, || async { tree(agent).await.contains(text) == there }).await;
    };
    is("return 'first'", true).await;
    save(folder, "shared/Deep/New.luau", "return 'new'");
    is("return 'new'", true).await;
    save(folder, "shared/Deep/New.luau", "return 'edited'");
    is("return 'edited'", true).await;
    delete(folder, "shared/Deep/New.luau");
    is("return 'edited'", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c16_sources_above_the_project_are_followed_wherever_the_server_is_started() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let project = r#"{"name":"App","tree":{"$className":"DataModel","ServerStorage":{"Kit":{"$path":"../shared"}}}}"#;
    save(folder.path(), "app/default.project.json", project);
    save(folder.path(), "shared/Alpha.luau", "return 'first'");
    save(folder.path(), "far/away/note", "");
    let mut starts = vec![("app", "."), ("far/away", "../../app"), ("", "app/default.project.json")];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../app", folder.path().join("far/alias")).expect("a link");
        starts.push(("far/away", "../alias"));
        starts.push(("far/alias", "."));
    }
    for (from, project) in starts {
        let mut child = serve(Path::new(project)).current_dir(folder.path().join(from)).spawn().expect("it runs");
        follows(&agent_of(&mut child).await, folder.path()).await;
        child.kill().await.expect("it was running");
    }
}

#[cfg(debug_assertions)]
#[tokio::test(flavor = "multi_thread")]
async fn c04_three_panics_within_a_minute_end_the_process() {
    let project = demo();
    let mut child = serve(project.path()).env("ROJO_MCP_TEST_PANIC", "Boom.luau").spawn().expect("the binary runs");
    let mut log = BufReader::new(child.stderr.take().expect("piped")).lines();
    let agent = agent_of(&mut child).await;
    for round in 1..=3 {
        save(project.path(), "src/shared/Boom.luau", &format!("return {round}\n"));
        let panicked = async {
            while !log.next_line().await.expect("text").expect("it runs").contains("the session panicked (asked to)") {}
        };
        tokio::time::timeout(BOUND, panicked).await.expect("its log says so");
        if round < 3 {
            until("everything was looked at again", || async {
                let status = agent.ask("status", json!({})).await;
                !status["problems"].to_string().contains("stale")
            })
            .await;
            assert!(tree(&agent).await.contains(&format!("return {round}\n")), "with what it was about to take in");
        }
    }
    let status = tokio::time::timeout(BOUND, child.wait()).await.expect("it ends").expect("a status");
    assert_eq!(status.code(), Some(1));
    let mut last = String::new();
    while let Some(line) = log.next_line().await.expect("text") {
        last.push_str(&line);
    }
    assert!(last.contains("the files are no longer followed: asked to"), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_rest_on_the_tree_say_what_it_lacks() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let config = json!({ "fsPath": "src/shared/Config.luau" });
    assert_eq!(agent.ask("sync", json!({})).await.get("warning"), None);
    assert_eq!(agent.ask("get_script", config.clone()).await.get("warning"), None);
    save(project.path(), "src/shared/Config.meta.json", "{");
    for (tool, args) in [("sync", json!({})), ("get_script", config.clone())] {
        let told = agent.call(tool, args).await;
        let warning = told.structure["warning"].as_str().unwrap_or_default();
        assert!(warning.contains("1 file or folder is left out"), "{tool}: {}", told.text);
        assert!(told.text.contains(warning), "{tool}: the text says it too");
    }
    let status = agent.ask("status", json!({})).await;
    assert!(status["problems"][0]["what"].as_str().expect("a text").contains("Config.meta.json"), "{status}");
    save(project.path(), "src/shared/Config.meta.json", "{}");
    assert_eq!(agent.ask("sync", json!({})).await.get("warning"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn c37_status_says_when_a_setting_needs_a_restart() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let agent = server.agent();
    let file = project.path().join("default.project.json");
    let text = std::fs::read_to_string(file).expect("the project");
    let restart = || async {
        let status = agent.ask("status", json!({})).await;
        status["problems"].to_string().contains("restart needed: servePort was edited")
    };
    assert!(!restart().await);
    save(project.path(), "default.project.json", &text.replacen('{', "{\"servePort\": 4001,", 1));
    until("status says it", restart).await;
    save(project.path(), "default.project.json", &text);
    until("status says it no longer", || async { !restart().await }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c31_unicode_is_the_same_at_every_hop() {
    let project = demo();
    let server = TestServer::start(project.path()).await;
    let _studio = server.studio().await;
    let agent = server.agent();
    let text = "return '🦊', 'a\0b', 'line\u{2028}end', '\\u{D800}', 'e\u{301}', '\u{e9}'\n";
    let names = ["\u{e9}t\u{e9}", "e\u{301}te\u{301}", "🦊", "日本語"];
    for name in names {
        save(project.path(), &format!("src/shared/{name}.luau"), text);
    }
    let receipt = agent.ask("sync", json!({})).await;
    assert_eq!((&receipt["status"], &receipt["pushed"]), (&json!("success"), &json!(names.len())), "{receipt}");
    for name in names {
        let file = format!("src/shared/{name}.luau");
        let script = agent.ask("get_script", json!({ "fsPath": file })).await;
        assert_eq!(script["source"], text, "{name}");
        assert_eq!((&script["verdict"], &script["fsPath"]), (&json!("equal"), &json!(file)), "{name}");
    }
    assert_eq!(agent.ask("sync", json!({ "mode": "dryrun" })).await["total"], 0);
}
