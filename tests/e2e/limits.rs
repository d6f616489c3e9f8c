//! The system gives the server less than it wants, or files stay broken: the log says so once.

use std::{net::TcpStream, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStderr, Command},
};

use crate::support::{Agent, BOUND, demo, save, until};

struct Served {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    agent: Agent,
    /// What the log has said so far.
    said: Vec<String>,
}

impl Served {
    /// The server of `project` as a process that `shell` starts as `"$@"`.
    async fn start(project: &std::path::Path, shell: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", shell, "sh", env!("CARGO_BIN_EXE_rojo-mcp"), "serve", "--port", "0"]).arg(project);
        command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().expect("a shell");
        let mut out = BufReader::new(child.stdout.take().expect("piped")).lines();
        let log = BufReader::new(child.stderr.take().expect("piped")).lines();
        let port = async {
            loop {
                let line = out.next_line().await.expect("text").expect("it serves");
                if let Some(port) = line.trim().strip_prefix("Port:") {
                    return port.trim().parse().expect("a number");
                }
            }
        };
        let agent = Agent { port: tokio::time::timeout(BOUND, port).await.expect("in time") };
        Self { child, log, agent, said: Vec::new() }
    }

    /// Read the log until a line has these words.
    async fn until_said(&mut self, words: &str) {
        let said = async {
            while !self.said.iter().any(|line| line.contains(words)) {
                let line = self.log.next_line().await.expect("text").expect("it runs");
                self.said.push(line);
            }
        };
        tokio::time::timeout(BOUND, said).await.unwrap_or_else(|_| panic!("the log says {words:?}"));
    }

    /// End it. Returns all that its log said.
    async fn end(mut self) -> Vec<String> {
        self.child.start_kill().expect("it runs");
        while let Some(line) = self.log.next_line().await.expect("text") {
            self.said.push(line);
        }
        self.said
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_read_for_want_of_handles_is_read_once_there_are_some() {
    let project = demo();
    let mut served = Served::start(project.path(), r#"ulimit -n 64; exec "$@""#).await;
    let connect = || TcpStream::connect(("127.0.0.1", served.agent.port)).expect("the system takes it");
    let connections: Vec<TcpStream> = std::iter::repeat_with(connect).take(100).collect();
    served.until_said("connections cannot be accepted").await;
    save(project.path(), "src/shared/Config.luau", "return 'saved'\n");
    served.until_said("Config.luau: Too many open files").await;
    drop(connections);
    until("the file is read", || async {
        let (_, _, page) = served.agent.http("GET", "/", &[], "").await;
        !String::from_utf8_lossy(&page).contains("Too many open files")
    })
    .await;
    let said = served.end().await;
    let count = |words: &str| said.iter().filter(|line| line.contains(words)).count();
    assert_eq!((count("cannot be accepted"), count("Config.luau")), (1, 1), "{said:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_is_named_in_the_log_when_it_breaks_and_not_again() {
    let project = demo();
    let mut served = Served::start(project.path(), r#"exec "$@""#).await;
    for number in 0..4 {
        save(project.path(), &format!("src/shared/Bad{number}.json"), "{");
        served.until_said(&format!("Bad{number}.json")).await;
    }
    let said = served.end().await;
    let count = |words: &str| said.iter().filter(|line| line.contains(words)).count();
    assert_eq!((count("Bad0.json"), count("Bad1.json"), count("Bad3.json")), (1, 1, 1), "{said:#?}");
}
