//! The commands that say how things stand, and the one that installs the plugin.

use std::{path::Path, process::Stdio};

use rojo_mcp::plugin_model::{build_with, key_of};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

use crate::{
    attach::serve_with,
    command::{Ran, run},
    faults::{hello1, take_tree},
    level0::{FakePlugin, hello},
    support::{Agent, BOUND, demo, program, save, until},
};

#[tokio::test(flavor = "multi_thread")]
async fn status_says_what_agents_hear_and_ends_with_3_without_a_studio() {
    let project = demo();
    let ran = run(project.path(), "status", &["--json"]).await;
    assert_eq!((ran.status, &ran.json()["error"]["code"]), (Some(3), &json!("no_studio")));

    let (serving, port) = serve_with(project.path(), &[]).await;
    let ran = run(project.path(), "status", &[]).await;
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    assert!(ran.stdout.contains("Lantern Run") && ran.stdout.contains(&port.to_string()), "{}", ran.stdout);
    stop(serving).await;

    let (_serving, port) = serve_with(project.path(), &["--headless"]).await;
    let ran = run(project.path(), "status", &["--json"]).await;
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!(ran.json()["server"], Agent { port }.ask("status", json!({})).await["server"]);
    assert_eq!(ran.json()["studios"][0]["link"], "live");
}

async fn stop(mut serving: tokio::process::Child) {
    serving.kill().await.expect("killed");
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_print_what_studio_printed_by_level_and_go_on() {
    let project = demo();
    assert_eq!(run(project.path(), "logs", &[]).await.status, Some(3));
    let (_serving, port) = serve_with(project.path(), &["--headless"]).await;
    let agent = Agent { port };
    agent.eval("print('one') warn('two \\27[31m') warn('two \\27[31m')").await;
    let all = run(project.path(), "logs", &[]).await;
    assert_eq!(all.status, Some(0), "{}", all.stderr);
    assert!(all.stdout.contains("one\n") && all.stdout.contains("two \u{fffd}[31m (x2)\n"), "{}", all.stdout);
    let loud = run(project.path(), "logs", &["--level", "warning", "--json"]).await;
    assert_eq!(loud.json()["count"], 2, "{}", loud.stdout);

    let mut child = Command::from(program(project.path()));
    child.arg("logs").arg(project.path()).args(["--follow", "-n", "1"]).kill_on_drop(true);
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let follow = async {
        let first = lines.next_line().await.expect("text").expect("a line");
        assert!(first.starts_with("two"), "{first}");
        agent.eval("print('three')").await;
        lines.next_line().await.expect("text").expect("a line")
    };
    assert_eq!(tokio::time::timeout(BOUND, follow).await.expect("in time"), "three");
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_is_not_numbered_is_printed_once_and_cannot_be_followed() {
    let project = demo();
    let (_serving, port) = serve_with(project.path(), &[]).await;
    let mut plugin = FakePlugin::connect(port).await;
    plugin.send(hello(7)).await;
    until("it is linked", || async { Agent { port }.ask("status", json!({})).await["studios"][0].is_object() }).await;
    let answer = async {
        loop {
            let asked = plugin.next().await.expect("the link is open");
            if asked["type"] == "get_console_output" {
                let id = asked["requestId"].clone();
                plugin.send(json!({ "requestId": id, "status": "success", "response": "all of it" })).await;
            }
        }
    };
    let ran = tokio::select! {
        ran = run(project.path(), "logs", &["--follow"]) => ran,
        () = answer => unreachable!("it goes on for ever"),
    };
    assert_eq!(ran.status, Some(1), "{}", ran.stdout);
    assert_eq!(ran.stdout, "all of it\n");
    assert!(ran.stderr.contains("cannot be followed") && ran.stderr.contains("next:"), "{}", ran.stderr);
}

/// The doctor's line of this name.
fn line<'a>(ran: &'a Ran, name: &str) -> &'a str {
    let is_it = |line: &&str| line.split_whitespace().nth(1) == Some(name);
    ran.stdout.lines().find(is_it).unwrap_or_else(|| panic!("no {name}: {}", ran.stdout))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_finds_nothing_wrong_with_what_works() {
    let project = demo();
    let plugins = project.path().join("Plugins");
    let folder = plugins.display().to_string();
    let before = run(project.path(), "doctor", &["--plugins", &folder]).await;
    assert!(
        line(&before, "server").starts_with("warn") && before.stdout.contains("rojo-mcp serve"),
        "{}",
        before.stdout
    );
    assert!(line(&before, "plugin").starts_with("warn") && before.stdout.contains("plugin install"));

    assert_eq!(install(project.path(), &["--path", &folder]).await.status, Some(0));
    let (serving, port) = serve_with(project.path(), &["--headless"]).await;
    let ran = run(project.path(), "doctor", &["--plugins", &folder]).await;
    for name in ["project", "state", "server", "studio", "plugin"] {
        assert!(line(&ran, name).starts_with("ok"), "{}", ran.stdout);
    }
    let pid = serving.id().expect("it runs").to_string();
    assert!(line(&ran, "server").contains(&port.to_string()) && line(&ran, "server").contains(&pid));
}

#[tokio::test(flavor = "multi_thread")]
async fn c89_the_doctor_names_both_versions_of_a_plugin_that_is_not_ours() {
    let project = demo();
    let (_serving, port) = serve_with(project.path(), &[]).await;
    let mut plugin = FakePlugin::connect(port).await;
    plugin.send(hello1("s", "place:1")).await;
    take_tree(&mut plugin).await;
    Agent { port }.until_live(1).await;
    let ran = run(project.path(), "doctor", &[]).await;
    let said = line(&ran, "studio");
    assert!(said.starts_with("warn") && said.contains("9.9.9") && said.contains(rojo_mcp::VERSION), "{said}");
    assert!(ran.stdout.contains("rojo-mcp plugin install"), "{}", ran.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn c29_the_doctor_names_the_file_and_line_of_a_broken_project() {
    let broken = [
        ("{ \"name\": \"x\", \"tree\": {} :", "line 1"),
        ("{\n  \"name\": \"x\",\n  \"sideways\": 1,\n  \"tree\": { \"$path\": \"src\" }\n}", "sideways"),
        ("", "default.project.json"),
    ];
    let mut seen = std::collections::BTreeSet::new();
    for (text, expected) in broken {
        let project = demo();
        save(project.path(), "default.project.json", text);
        let ran = run(project.path(), "doctor", &[]).await;
        let said = line(&ran, "project").replace(&project.path().display().to_string(), "");
        assert!(said.contains("default.project.json") && said.contains(expected), "{said}");
        assert_eq!(ran.status, Some(1));
        seen.insert(said);
    }
    let project = demo();
    let ran = run(&project.path().join("src"), "doctor", &[]).await;
    assert!(line(&ran, "project").contains("no project file"), "{}", ran.stdout);
    seen.insert(line(&ran, "project").to_owned());
    assert_eq!(seen.len(), 4, "each is another message: {seen:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn c86_the_doctor_tells_who_holds_the_port() {
    let project = demo();
    let busy = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = busy.local_addr().expect("an address").port();
    let file = project.path().join("default.project.json");
    let mut settings: Value = serde_json::from_slice(&std::fs::read(file).expect("the project")).expect("JSON");
    settings["servePort"] = json!(port);
    save(project.path(), "default.project.json", &settings.to_string());
    let ran = run(project.path(), "doctor", &[]).await;
    assert_eq!(ran.status, Some(1));
    let said = line(&ran, "port");
    assert!(said.starts_with("FAIL") && said.contains(&port.to_string()) && said.contains("another program"), "{said}");

    drop(busy);
    assert!(line(&run(project.path(), "doctor", &[]).await, "port").contains("is free"));
    let other = demo();
    let (_serving, held) = serve_with(other.path(), &[]).await;
    settings["servePort"] = json!(held);
    save(project.path(), "default.project.json", &settings.to_string());
    let ran = run(project.path(), "doctor", &[]).await;
    assert!(line(&ran, "port").contains("rojo-mcp") && line(&ran, "port").contains("Lantern Run"), "{}", ran.stdout);
}

async fn install(project: &Path, args: &[&str]) -> Ran {
    plugin(project, "install", args).await
}

/// `rojo-mcp plugin …`
pub async fn plugin(project: &Path, command: &str, args: &[&str]) -> Ran {
    let mut child = Command::from(program(project));
    child.args(["plugin", command]).args(args).env("HOME", project.join("nobody")).kill_on_drop(true);
    let output = tokio::time::timeout(BOUND, child.output()).await.expect("it ends").expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ran { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[tokio::test(flavor = "multi_thread")]
async fn c88_the_plugin_is_installed_once_and_says_where() {
    let project = demo();
    let plugins = project.path().join("Roblox").join("Plugins");
    let folder = plugins.display().to_string();
    let ran = install(project.path(), &["--path", &folder]).await;
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let file = plugins.canonicalize().expect("it was made").join("RojoMcp.rbxm");
    assert!(ran.stdout.contains(&file.display().to_string()), "{}", ran.stdout);
    let installed = std::fs::read(&file).expect("it is there");
    let key = key_of(&installed).expect("it is paired");
    assert_eq!(installed, build_with(Some(&key)).expect("it builds"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "its key is for the user alone");
    }

    std::fs::copy(&file, plugins.join("An older one.rbxm")).expect("a copy");
    save(&plugins, "Somebody's.rbxm", "not a model");
    save(&plugins, "RojoMcp.rbxm", "half of it");
    let ran = install(project.path(), &["--path", &folder]).await;
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("An older one.rbxm"), "{}", ran.stdout);
    let mut left: Vec<_> = std::fs::read_dir(&plugins)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    left.sort();
    assert_eq!(left, ["RojoMcp.rbxm", "Somebody's.rbxm"]);
    assert_eq!(std::fs::read(&file).expect("it is there"), installed, "a Studio that runs goes on with its key");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installed_plugin_has_a_key_that_can_be_revoked_and_a_built_one_has_none() {
    let project = demo();
    let plugins = project.path().join("Plugins");
    let folder = plugins.display().to_string();
    let installed = || key_of(&std::fs::read(plugins.join("RojoMcp.rbxm")).expect("it is there")).expect("a key");
    assert_eq!(install(project.path(), &["--path", &folder]).await.status, Some(0));
    let first = installed();
    let ran = run(project.path(), "doctor", &["--plugins", &folder]).await;
    assert!(line(&ran, "plugin").starts_with("ok") && line(&ran, "plugin").contains(", paired)"), "{}", ran.stdout);
    let list = std::fs::read_to_string(project.path().join(".state/pairings.json")).expect("the list");
    assert!(!list.contains(&first.secret()), "only the hash is kept: {list}");

    let ran = plugin(project.path(), "unpair", &[]).await;
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("RojoMcp.rbxm") && !ran.stdout.contains(&first.secret()), "{}", ran.stdout);
    let ran = run(project.path(), "doctor", &["--plugins", &folder]).await;
    assert!(line(&ran, "plugin").contains("not paired"), "{}", ran.stdout);
    let ran = install(project.path(), &["--path", &folder]).await;
    assert!(ran.stdout.contains("paired"), "{}", ran.stdout);
    assert_ne!(installed(), first, "a revoked key is not used again");

    let built = project.path().join("built.rbxm");
    let ran = plugin(project.path(), "build", &["--output", &built.display().to_string()]).await;
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!(key_of(&std::fs::read(built).expect("it is there")), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn c88_an_install_that_fails_says_so_and_what_to_do() {
    let project = demo();
    save(project.path(), "Plugins", "a file, not a folder");
    let ran = install(project.path(), &["--path", &project.path().join("Plugins").display().to_string()]).await;
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("Plugins") && ran.stderr.contains("--path"), "{}", ran.stderr);
    #[cfg(target_os = "linux")]
    {
        let ran = install(project.path(), &[]).await;
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""));
        assert!(ran.stderr.contains("--path"), "{}", ran.stderr);
    }
    let folder = project.path().join("Held");
    std::fs::create_dir_all(folder.join("RojoMcp.rbxm")).expect("a folder in the file's place");
    let ran = install(project.path(), &["--path", &folder.display().to_string()]).await;
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(1), ""));
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 1, "nothing half done is left");
}
