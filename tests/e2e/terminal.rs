//! What `rojo-mcp sync --mode manual` asks at a terminal.

use std::{
    io::{Read, Write},
    path::Path,
    process::Child,
    sync::{Arc, Mutex, PoisonError},
};

use pty_process::blocking::{Command, Pty, open};
use serde_json::json;

use crate::{
    attach::serve_with,
    review::{asked, post, reviews},
    support::{Agent, demo, program, save, until},
};

const CONFIG: &str = "src/shared/Config.luau";
const MONEY: &str = "src/shared/Money.luau";
const MINE: &str = "return 'from the file'\n";
const PROMPT: &str = "push edit [accept/push/pull/skip] (accept) ";

/// A command that runs at a terminal of its own.
struct Terminal {
    command: Child,
    pty: Arc<Pty>,
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    /// Run `rojo-mcp sync <project> --mode manual`.
    fn sync(project: &Path) -> Self {
        let (pty, end) = open().expect("the system has terminals");
        let command = Command::from(program(project)).arg("sync").arg(project).args(["--mode", "manual"]);
        let command = command.spawn(end).expect("it runs");
        let (pty, screen) = (Arc::new(pty), Arc::<Mutex<String>>::default());
        let (from, to) = (Arc::clone(&pty), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // When the command has ended there is nothing to read any more.
            while let Ok(count @ 1..) = (&*from).read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                to.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            }
        });
        Self { command, pty, screen }
    }

    fn screen(&self) -> String {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).expect("it is there");
    }

    /// Wait until this stands there so many times.
    async fn shows(&self, text: &str, times: usize) {
        until(text, || async { self.screen().matches(text).count() >= times }).await;
    }

    /// Its exit status, and all that it has shown.
    async fn ended(mut self) -> (Option<i32>, String) {
        let mut status = None;
        until("it ends", || {
            status = self.command.try_wait().expect("it can be asked");
            let is_over = status.is_some();
            async move { is_over }
        })
        .await;
        // What it printed last is read by another thread.
        let screen = self.screen();
        (status.and_then(|status| status.code()), screen)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.command.kill();
        let _ = self.command.wait();
    }
}

fn read(project: &Path, path: &str) -> String {
    std::fs::read_to_string(project.join(path)).expect("a text")
}

async fn source(agent: Agent, script: &str) -> String {
    let source = agent.eval(&format!("return game.ReplicatedStorage.Shared.{script}.Source")).await;
    source.as_str().expect("a text").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_is_asked_about_until_the_answer_makes_sense() {
    let project = demo();
    let (_serving, port) = serve_with(project.path(), &["--headless"]).await;
    let agent = Agent { port };
    agent.until_live(1).await;
    save(project.path(), CONFIG, MINE);
    save(project.path(), MONEY, MINE);
    let before = source(agent, "Money").await;
    let terminal = Terminal::sync(project.path());
    terminal.shows(PROMPT, 1).await;
    for (typed, prompts) in [("what?\n", 2), ("\u{7}\u{1b}[A\n", 3), ("y\n", 4)] {
        terminal.press(typed);
        terminal.shows(PROMPT, prompts).await;
    }
    terminal.press("n\n");
    terminal.shows("1 pushed", 1).await;
    let (status, screen) = terminal.ended().await;
    assert_eq!(status, Some(4), "what is left alone is unresolved: {screen}");
    assert_eq!(screen.matches("y: as proposed, n: leave it").count(), 3, "once, and after each slip: {screen}");
    let is_pushed = [("Config", &before), ("Money", &before)];
    let mut pushed = 0;
    for (script, before) in is_pushed {
        let now = source(agent, script).await;
        pushed += usize::from(now == MINE);
        assert!(now == MINE || script == "Config" || now == *before, "{script}: {now}");
    }
    assert_eq!(pushed, 1, "one was chosen, and one left alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_input_is_no_answer() {
    let project = demo();
    let (_serving, port) = serve_with(project.path(), &["--headless"]).await;
    let agent = Agent { port };
    agent.until_live(1).await;
    let before = source(agent, "Config").await;
    save(project.path(), CONFIG, MINE);
    let terminal = Terminal::sync(project.path());
    terminal.shows(PROMPT, 1).await;
    terminal.press("\u{4}");
    terminal.shows("rejected", 1).await;
    let (status, screen) = terminal.ended().await;
    assert_eq!(status, Some(5), "{screen}");
    assert_eq!((source(agent, "Config").await, read(project.path(), CONFIG)), (before, MINE.to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stops_the_command_takes_the_question_back() {
    let project = demo();
    let (_serving, port) = serve_with(project.path(), &["--headless"]).await;
    let agent = Agent { port };
    agent.until_live(1).await;
    let before = source(agent, "Config").await;
    save(project.path(), CONFIG, MINE);
    let terminal = Terminal::sync(project.path());
    terminal.shows(PROMPT, 1).await;
    terminal.press("\u{3}");
    terminal.shows("stopped before the answer came", 1).await;
    let (status, screen) = terminal.ended().await;
    assert_eq!(status, Some(1), "{screen}");
    until("nobody is asked any more", || async {
        reviews(&agent).await.iter().all(|review| review["state"] == "over")
    })
    .await;
    assert_eq!((source(agent, "Config").await, read(project.path(), CONFIG)), (before, MINE.to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_answered_elsewhere_ends_here() {
    let project = demo();
    let (_serving, port) = serve_with(project.path(), &["--headless"]).await;
    let agent = Agent { port };
    agent.until_live(1).await;
    save(project.path(), CONFIG, MINE);
    let terminal = Terminal::sync(project.path());
    // What is typed before there is a question does not answer it.
    terminal.press("y\nall\n");
    terminal.shows(PROMPT, 1).await;
    let review = asked(&agent).await;
    let (status, answer) = post(&agent, &review["id"], &json!({ "all": "push" })).await;
    assert!(status.is_success(), "{answer}");
    terminal.shows("it was answered elsewhere, or is over", 1).await;
    terminal.shows("success: 1 pushed", 1).await;
    let (status, screen) = terminal.ended().await;
    assert_eq!((status, screen.matches(PROMPT).count()), (Some(0), 1), "{screen}");
    assert_eq!(source(agent, "Config").await, MINE);
}
