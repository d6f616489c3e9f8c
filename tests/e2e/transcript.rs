//! The transcript in the README, produced anew and compared.
//!
//! Set `BLESS=1` to write it into the README instead.

use std::{
    path::Path,
    process::{Child, Stdio},
};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::{Agent, BOUND, demo, program, save};

const BEGIN: &str = "<!-- transcript: written by tests/e2e/transcript.rs -->\n";
const END: &str = "<!-- end of the transcript -->\n";
const CONFIG: &str = "src/shared/Config.luau";

struct Serving {
    #[expect(dead_code, reason = "killed when dropped")]
    child: tokio::process::Child,
}

async fn serve_headless(project: &Path) -> (Serving, u16) {
    let mut child = tokio::process::Command::from(program(project))
        .arg("serve")
        .arg(project)
        .args(["--headless", "--port", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the binary runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let port = async {
        while let Some(line) = lines.next_line().await.expect("text") {
            if let Some(port) = line.trim().strip_prefix("Port:") {
                return port.trim().parse().expect("a number");
            }
        }
        panic!("the server ended without naming its port");
    };
    let port = tokio::time::timeout(BOUND, port).await.expect("in time");
    (Serving { child }, port)
}

/// The transcript so far, and how to add to it.
struct Transcript {
    agent: Agent,
    text: String,
}

impl Transcript {
    async fn call(&mut self, tool: &str, args: Value) {
        let told = self.agent.call(tool, args.clone()).await;
        assert!(!told.is_error, "{tool} {args}: {}", told.text);
        self.text.push_str(&format!("> {tool} {args}\n{}\n\n", told.text.trim_end()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_readme_shows_what_happens() {
    let project = demo();
    let (serving, port) = serve_headless(project.path()).await;
    let agent = Agent { port };
    agent.until_live(1).await;
    let mut transcript = Transcript { agent, text: String::new() };
    transcript.call("status", json!({})).await;
    transcript.call("run_code", json!({ "command": "print(\"hi\") return 1+1" })).await;
    let text = std::fs::read_to_string(project.path().join(CONFIG)).expect("the module");
    save(project.path(), CONFIG, &text.replace("lanternsToWin = 5", "lanternsToWin = 3"));
    transcript.text.push_str(&format!("(an editor saves {CONFIG}: lanternsToWin = 3)\n\n"));
    transcript.call("sync", json!({})).await;
    let code = "return require(game.ReplicatedStorage.Shared.Config).lanternsToWin";
    transcript.call("run_code", json!({ "command": code })).await;
    transcript.call("get_script", json!({ "fsPath": CONFIG })).await;
    transcript.call("sync", json!({ "mode": "dryrun" })).await;
    drop(serving);

    let block = format!("{BEGIN}```text\n{}\n```\n{END}", plain(&transcript.text, project.path(), port).trim_end());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(&file).expect("the README").replace("\r\n", "\n");
    let (before, rest) = readme.split_once(BEGIN).expect("the README has a place for the transcript");
    let (_, after) = rest.split_once(END).expect("and its end");
    if std::env::var_os("BLESS").is_some() {
        save(Path::new(env!("CARGO_MANIFEST_DIR")), "README.md", &format!("{before}{block}{after}"));
    } else {
        assert_eq!(readme, format!("{before}{block}{after}"), "run once with BLESS=1 and read the difference");
    }
}

/// What differs from run to run, made plain: the folder, the port and the place's guid.
fn plain(text: &str, project: &Path, port: u16) -> String {
    let canonical = project.canonicalize().expect("it exists");
    let text = text
        .replace(&canonical.display().to_string(), "tests/fixtures/projects/demo")
        .replace(&project.display().to_string(), "tests/fixtures/projects/demo")
        .replace(&format!(":{port}"), ":34872");
    let mut words = text.split("anon:");
    let mut plain = words.next().unwrap_or_default().to_owned();
    for word in words {
        plain.push_str("anon:…");
        plain.push_str(word.trim_start_matches(|letter: char| letter.is_ascii_hexdigit() || letter == '-'));
    }
    plain
}

#[test]
fn a_wrong_command_line_says_what_to_do() {
    let project = demo();
    let run = |args: &[&str]| {
        let child: Child = program(project.path())
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{args:?}");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let folder = project.path().join("src").display().to_string();
    let (code, text) = run(&["serve", &folder]);
    assert_eq!(code, Some(1));
    assert!(
        text.contains("no project file") && text.contains("default.project.json") && text.contains("next:"),
        "{text}"
    );

    save(project.path(), "default.project.json", "{\n  \"name\": \"x\",\n  \"tree\": :\n}\n");
    let (code, text) = run(&["serve", &project.path().display().to_string()]);
    assert_eq!(code, Some(1));
    assert!(text.contains("default.project.json") && text.contains("line 3"), "{text}");

    assert_eq!(run(&["serve", "--port", "many"]).0, Some(2));
}

#[test]
fn c86_a_busy_port_is_said_in_one_line_and_nothing_claims_to_listen() {
    let project = demo();
    let busy = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = busy.local_addr().expect("an address").port().to_string();
    let output =
        program(project.path()).args(["serve", "--port", &port]).arg(project.path()).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(&format!("cannot listen on 127.0.0.1:{port}")) && text.contains("--port"), "{text}");
}
