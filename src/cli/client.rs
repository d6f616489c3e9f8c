//! A command's line to the server of a project: it calls the very tools that agents call.

use std::{future::Future, sync::Arc};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{
    Failure, ServerOptions,
    asked::Asker,
    bridge::handler_on,
    exit::Exit,
    lines::Lines,
    progress::ProgressLine,
    reach::{self, Reached},
    server::{self, Running},
};
use crate::{
    core::error::{ErrorCode, ToolError},
    mcp::BackendCell,
};

/// The tools that only look.
const READING: [&str; 2] = ["status", "get_console_output"];

/// A connection to the server of a project.
pub(super) struct Client {
    lines: Lines,
    last_id: u64,
    /// The server, if it was started for this command.
    here: Option<Box<Running>>,
    shutdown: CancellationToken,
    /// Who answers what the server asks.
    asker: Option<Asker>,
    /// Whether something was asked that may change anything.
    changes: bool,
}

/// What a tool answered, in both of its forms.
pub(super) struct Told {
    pub(super) structure: Value,
    pub(super) text: String,
}

/// A tool's answer, or its own error.
pub(super) type Answer = Result<Told, ToolError>;

/// What the server says.
#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error: Option<Value>,
}

impl Client {
    /// Connect to the running server of the project. `None`: none runs.
    pub(super) async fn attach(project: &std::path::Path) -> Result<Option<Self>, Failure> {
        Self::attach_asking(project, None).await
    }

    /// The same, with somebody who answers what the server asks.
    pub(super) async fn attach_asking(
        project: &std::path::Path,
        asker: Option<Asker>,
    ) -> Result<Option<Self>, Failure> {
        match reach::reach(project).await? {
            Reached::Attached(stream, _) => Self::greet(Lines::over(stream), None, asker).await.map(Some),
            Reached::Vacant(_) => Ok(None),
        }
    }

    /// Connect to the running server of the project, or start one for this command.
    pub(super) async fn attach_or_start(options: &ServerOptions, asker: Option<Asker>) -> Result<Self, Failure> {
        let claim = match reach::reach(&options.project).await? {
            Reached::Attached(stream, _) => return Self::greet(Lines::over(stream), None, asker).await,
            Reached::Vacant(claim) => claim,
        };
        let loaded = server::load_aside(&options.project).await?;
        let shutdown = CancellationToken::new();
        let running = server::start(options, loaded, options.default_port(), claim, &shutdown).await?;
        let handler = handler_on(BackendCell::ready(Arc::clone(&running.server.backend)));
        Self::greet(handler, Some((Box::new(running), shutdown)), asker).await
    }

    async fn greet(
        lines: Lines,
        here: Option<(Box<Running>, CancellationToken)>,
        asker: Option<Asker>,
    ) -> Result<Self, Failure> {
        let (here, shutdown) = here.map_or_else(Default::default, |(running, end)| (Some(running), end));
        let capabilities = if asker.is_some() { json!({ "elicitation": {} }) } else { json!({}) };
        let mut client = Self { lines, last_id: 0, here, shutdown, asker, changes: false };
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": capabilities,
            "clientInfo": { "name": "command line", "version": crate::VERSION },
        });
        client.request("initialize", params, &mut ProgressLine::none()).await?;
        client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
        Ok(client)
    }

    /// Where the server is, if it was started for this command.
    pub(super) fn started_at(&self) -> Option<std::net::SocketAddr> {
        self.here.as_ref().map(|running| running.server.address)
    }

    /// Call a tool. The inner error is the tool's own.
    ///
    /// # Errors
    /// The server has gone, or does not speak as it should.
    pub(super) async fn call(
        &mut self,
        tool: &str,
        args: Value,
        progress: &mut ProgressLine,
    ) -> Result<Answer, Failure> {
        self.changes |= !READING.contains(&tool);
        let params = json!({ "name": tool, "arguments": args, "_meta": { "progressToken": tool } });
        let mut result = self.request("tools/call", params, progress).await?;
        let structure = result["structuredContent"].take();
        if result["isError"] != true {
            let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
            return Ok(Ok(Told { structure, text }));
        }
        let error = ToolError::deserialize(&structure["error"]);
        error.map(Err).map_err(|error| Failure::new(format!("{tool}'s error is malformed: {error}"), "report this"))
    }

    /// End the connection, and the server if it was started for this command.
    pub(super) async fn close(self) {
        drop(self.lines);
        self.shutdown.cancel();
        if let Some(running) = self.here {
            running.stopped().await;
        }
    }

    async fn request(&mut self, method: &str, params: Value, progress: &mut ProgressLine) -> Result<Value, Failure> {
        self.last_id += 1;
        let id = json!(self.last_id);
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await?;
        let mut beat = seconds();
        loop {
            let line = tokio::select! {
                line = self.lines.heard.recv() => line.ok_or_else(|| gone(self.changes))?,
                response = answered(&mut self.asker) => {
                    self.say(&response).await?;
                    continue;
                }
                _ = beat.tick() => {
                    progress.beat();
                    continue;
                }
            };
            let message: Message = serde_json::from_slice(&line)
                .map_err(|error| Failure::new(format!("the server does not speak JSON-RPC: {error}"), "report this"))?;
            if message.method.as_deref() == Some("notifications/progress") {
                progress.say(message.params["message"].as_str().unwrap_or_default());
            } else if let (Some("elicitation/create"), Some(asker)) = (message.method.as_deref(), &mut self.asker) {
                progress.end();
                progress.pause();
                asker.ask(message.id.unwrap_or_default(), &message.params, &mut std::io::stderr());
            } else if let (Some("notifications/cancelled"), Some(asker)) = (message.method.as_deref(), &mut self.asker)
            {
                asker.withdraw(&message.params["requestId"], &mut std::io::stderr());
            } else if message.method.is_none() && message.id.as_ref() == Some(&id) {
                progress.end();
                return match message.error {
                    None => Ok(message.result),
                    Some(error) => Err(Failure::new(format!("the server refuses {method}: {error}"), "report this")),
                };
            }
        }
    }

    async fn say(&mut self, message: &Value) -> Result<(), Failure> {
        self.lines.say(message.to_string().as_bytes()).await.map_err(|_| gone(self.changes))
    }
}

/// What the person at the terminal answers, once they do.
async fn answered(asker: &mut Option<Asker>) -> Value {
    match asker {
        Some(asker) => asker.answered(&mut std::io::stderr()).await,
        None => std::future::pending().await,
    }
}

fn seconds() -> Interval {
    let mut beat = interval(std::time::Duration::from_secs(1));
    beat.set_missed_tick_behavior(MissedTickBehavior::Skip);
    beat
}

fn gone(changes: bool) -> Failure {
    if !changes {
        return Failure::new("the server of the project has ended", "start it again: rojo-mcp serve");
    }
    Failure::new(
        "the server of the project has ended; what was asked of it may have run",
        "run `rojo-mcp status`, and look at Studio before you repeat a change",
    )
}

/// Print what the tool answered to standard output, as it answered it.
pub(super) fn print_json(answer: &Answer) {
    let value = match answer {
        Ok(told) => told.structure.clone(),
        Err(error) => json!({ "error": error }),
    };
    super::say(&format!("{value:#}"));
}

/// A tool's error as a command's.
pub(super) fn tool_failure(error: &ToolError) -> Failure {
    Failure::new(as_flags(&error.message), as_flags(&error.hint)).with(Exit::of_error(error.code))
}

/// What only agents have, and what a person at a terminal has instead.
const FOR_PEOPLE: [(&str, &str); 6] = [
    ("`resolve`, `overrides`, or a person", "rojo-mcp sync --mode manual asks"),
    ("`resolve`, or an override", "--mode manual"),
    ("`resolve`", "--mode manual"),
    ("with an override for each", "with --mode manual"),
    ("with an override", "with --mode manual"),
    ("an override with `", "--mode manual with `"),
];

/// What is said to agents of their arguments, as it is said of flags.
pub(super) fn as_flags(text: &str) -> String {
    let text = text.replace("the argument `", "`").replace("argument `", "`");
    let text = FOR_PEOPLE.iter().fold(text, |text, (agents, people)| text.replace(agents, people));
    ["studio", "paths", "mode", "level", "partial"]
        .iter()
        .fold(text, |text, name| text.replace(&format!("`{name}`"), &format!("--{name}")))
        .replace("`allowRemovals`", "--yes")
}

/// That no server runs, for a command that starts none.
pub(super) fn no_server(next: &str) -> ToolError {
    ToolError::new(ErrorCode::NoStudio, "no server of this project runs, so no Studio is connected", next)
}

/// Do `work`, unless the person stops it first.
pub(super) async fn until_stopped<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        // The work may know better what a stop means.
        biased;
        outcome = work => outcome,
        () = server::asked_to_stop() => Err(Failure::new(
            "stopped before the answer came; what was asked may have run",
            "run `rojo-mcp status`, and look at Studio before you repeat a change",
        )),
    }
}
