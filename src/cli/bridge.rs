//! An agent's standard input and output, joined to whatever serves the project at the moment.
//!
//! ```text
//! agent <-lines-> bridge <-lines-> the handler in this process    until it is known who serves,
//!                                                                 and from then on if we do
//!                        \-lines-> the running server             if another process does
//! ```
//!
//! The agent notices no change from one to the other: its `initialize` is repeated to the new one,
//! and calls that only waited here are handed on. Calls that were in flight with a server that went
//! away end with an error, since they may have run; then the next server is found or started.

use std::{future::Future, io, sync::Arc, time::Duration};

use rmcp::ServiceExt;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    task::JoinHandle,
};

use super::{Failure, lines::Lines, server::Running};
use crate::{
    core::error::{ErrorCode, ToolError},
    mcp::{BackendCell, McpHandler, Started, error_result},
};

/// How much may wait in the pipe to the handler of this process.
const PIPE: usize = 64 * 1024;

/// How long the answers may take that are under way when the agent closes its side.
const LAST_ANSWERS: Duration = Duration::from_millis(250);

/// How long after the loss of a server the next is looked for.
const BREATH: Duration = Duration::from_millis(50);

/// A connection to a server in another process.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Who serves the project.
pub(super) enum Opened {
    /// Another process.
    Attached(Box<dyn Io>),
    /// This one.
    Here(Box<Running>),
}

/// What the agent's lines go through.
pub(super) struct Bridge<O> {
    agent: Lines,
    server: Lines,
    /// What the handler in this process works on.
    here: BackendCell,
    open: O,
    state: State,
    /// Requests of the agent that are not answered yet, oldest first.
    asked: Vec<Asked>,
    /// What the server has asked the agent, and it has not answered yet.
    questions: Vec<Value>,
    hello: Hello,
    /// The id of a repeated `initialize`, whose answer the agent has had.
    unwanted: Option<Value>,
}

enum State {
    /// It is being found out who serves. The handler here answers what needs no server.
    Opening { task: JoinHandle<Result<Opened, Failure>>, fill: watch::Sender<Option<Started>> },
    /// Another process serves.
    Attached,
    /// This process does.
    Here(Box<Running>),
    /// Nobody does; the handler here says why, and the next call tries again.
    Failed(Failure),
}

struct Asked {
    id: Value,
    method: String,
    line: Vec<u8>,
}

/// What opens a session, as the agent said it.
#[derive(Default)]
struct Hello {
    initialize: Option<(Value, Vec<u8>)>,
    initialized: Option<Vec<u8>>,
}

/// What the bridge needs to know of a message.
#[derive(Default, Deserialize)]
struct Head {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
}

impl Head {
    fn of(line: &[u8]) -> Self {
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        serde_json::from_slice(line).unwrap_or_default()
    }
}

impl<O, F> Bridge<O>
where
    O: Fn() -> F,
    F: Future<Output = Result<Opened, Failure>> + Send + 'static,
{
    /// Join `agent` to what `open` finds or starts; `open` is asked again when that goes away.
    pub(super) fn new(agent: Lines, open: O) -> Self {
        let (here, state) = search(open());
        let server = handler_on(here.clone());
        let (asked, questions, hello) = (Vec::new(), Vec::new(), Hello::default());
        Self { agent, server, here, open, state, asked, questions, hello, unwanted: None }
    }

    /// Carry lines until the agent has gone.
    pub(super) async fn run(&mut self) {
        loop {
            let carried = tokio::select! {
                line = self.agent.heard.recv() => match line {
                    Some(line) => self.agent_said(line).await,
                    None => return self.last_answers().await,
                },
                line = self.server.heard.recv() => match line {
                    Some(line) => self.server_said(&line).await,
                    None => self.lost().await,
                },
                opened = opened(&mut self.state) => self.opened(opened).await,
            };
            if carried.is_err() {
                // The agent no longer reads.
                return;
            }
        }
    }

    /// Stop what was started here.
    ///
    /// # Errors
    /// Nothing served the agent in the end.
    pub(super) async fn close(self) -> Result<(), Failure> {
        match self.state {
            State::Opening { task, .. } => task.abort(),
            State::Attached => {}
            State::Here(running) => running.stopped().await,
            State::Failed(failure) => return Err(failure),
        }
        Ok(())
    }

    async fn last_answers(&mut self) {
        let answers = async {
            while !self.asked.is_empty() {
                let Some(line) = self.server.heard.recv().await else { break };
                if self.server_said(&line).await.is_err() {
                    break;
                }
            }
        };
        // What takes longer is taken back: nobody listens.
        let _ = tokio::time::timeout(LAST_ANSWERS, answers).await;
    }

    async fn agent_said(&mut self, line: Vec<u8>) -> io::Result<()> {
        let Head { id, method } = Head::of(&line);
        if method.as_deref() == Some("tools/call") && matches!(self.state, State::Failed(_)) {
            self.reopen().await;
        }
        match (id, method) {
            (Some(id), Some(method)) => {
                if method == "initialize" {
                    self.hello.initialize = Some((id.clone(), line.clone()));
                }
                // Only what waits here can be handed on later.
                let waits = matches!(self.state, State::Opening { .. } | State::Failed(_));
                let kept = if waits { line.clone() } else { Vec::new() };
                self.asked.push(Asked { id, method, line: kept });
            }
            (None, Some(method)) if method == "notifications/initialized" => {
                self.hello.initialized = Some(line.clone());
            }
            (None, Some(method)) if method == "notifications/cancelled" => self.taken_back(&line),
            // Servers count their questions alike, so an answer to one that has gone would answer the next.
            (Some(id), None) if !self.answers(&id) => return Ok(()),
            _ => {}
        }
        // If it has gone, that is heard at its end.
        let _ = self.server.say(&line).await;
        Ok(())
    }

    /// Whether the server has asked this, which is answered now.
    fn answers(&mut self, question: &Value) -> bool {
        let before = self.questions.len();
        self.questions.retain(|open| open != question);
        self.questions.len() < before
    }

    /// The agent takes a request back: it is not answered, and not handed on.
    fn taken_back(&mut self, line: &[u8]) {
        let message: Value = serde_json::from_slice(line).unwrap_or_default();
        self.asked.retain(|asked| asked.method == "initialize" || asked.id != message["params"]["requestId"]);
    }

    async fn server_said(&mut self, line: &[u8]) -> io::Result<()> {
        match Head::of(line) {
            Head { id: Some(id), method: None } if self.unwanted.as_ref() == Some(&id) => {
                self.unwanted = None;
                return Ok(());
            }
            Head { id: Some(id), method: None } => self.asked.retain(|asked| asked.id != id),
            Head { id: Some(id), method: Some(_) } => self.questions.push(id),
            Head { id: None, .. } => {}
        }
        self.agent.say(line).await
    }

    /// It is known who serves.
    async fn opened(&mut self, opened: Result<Opened, Failure>) -> io::Result<()> {
        let state = match opened {
            Ok(Opened::Attached(stream)) => {
                self.switch(Lines::over(stream)).await;
                self.handed_over();
                State::Attached
            }
            Ok(Opened::Here(running)) => {
                self.fill(Ok(Arc::clone(&running.server.backend)));
                self.handed_over();
                State::Here(running)
            }
            Err(failure) => {
                log::error!("{failure}");
                let hint = failure.hint.clone().unwrap_or_default();
                self.fill(Err(ToolError::failed(failure.message.clone(), hint)));
                State::Failed(failure)
            }
        };
        self.state = state;
        Ok(())
    }

    /// From here on, what was asked may have run.
    fn handed_over(&mut self) {
        self.asked.iter_mut().for_each(|asked| asked.line = Vec::new());
    }

    fn fill(&self, started: Started) {
        if let State::Opening { fill, .. } = &self.state {
            // The handler lives as long as its pipe.
            let _ = fill.send(Some(started));
        }
    }

    /// The server has gone, and with it what it was asked.
    async fn lost(&mut self) -> io::Result<()> {
        for id in std::mem::take(&mut self.questions) {
            let params = json!({ "requestId": id, "reason": "the server that asked has ended" });
            let over = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
            self.agent.say(over.to_string().as_bytes()).await?;
        }
        for Asked { id, method, .. } in std::mem::take(&mut self.asked) {
            let answer = lost_answer(&id, &method);
            self.agent.say(answer.to_string().as_bytes()).await?;
        }
        if matches!(self.state, State::Attached) {
            log::warn!("the server of the project has gone; looking for it, or starting it");
            tokio::time::sleep(BREATH).await;
            self.reopen().await;
        } else {
            // The handler here gave up on what the agent said; it gets a new one.
            self.switch(handler_on(self.here.clone())).await;
        }
        Ok(())
    }

    async fn reopen(&mut self) {
        (self.here, self.state) = search((self.open)());
        self.switch(handler_on(self.here.clone())).await;
    }

    /// Go on with `server`, which shall know what the agent said to the one before.
    async fn switch(&mut self, server: Lines) {
        self.server = server;
        self.unwanted = None;
        let answered = |id: &Value| self.asked.iter().all(|asked| asked.id != *id);
        let mut lines: Vec<&[u8]> = Vec::new();
        if let Some((id, line)) = self.hello.initialize.as_ref().filter(|(id, _)| answered(id)) {
            self.unwanted = Some(id.clone());
            lines.push(line);
        }
        // An `initialize` that is not answered yet is the first of these.
        let (first, rest): (Vec<&Asked>, Vec<&Asked>) =
            self.asked.iter().partition(|asked| asked.method == "initialize");
        lines.extend(first.iter().map(|asked| asked.line.as_slice()));
        lines.extend(self.hello.initialized.as_deref());
        lines.extend(rest.iter().map(|asked| asked.line.as_slice()));
        for line in lines {
            // If it has gone, that is heard at its end.
            let _ = self.server.say(line).await;
        }
    }
}

/// Find out who serves; the cell is filled if it is this process, or nobody.
fn search(open: impl Future<Output = Result<Opened, Failure>> + Send + 'static) -> (BackendCell, State) {
    let (fill, cell) = BackendCell::new();
    (cell, State::Opening { task: tokio::spawn(open), fill })
}

/// A handler in this process.
pub(super) fn handler_on(cell: BackendCell) -> Lines {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    tokio::spawn(async move {
        // How it ends is heard at the other end of the pipe.
        if let Ok(service) = McpHandler::new(cell).serve(theirs).await {
            let _ = service.waiting().await;
        }
    });
    Lines::over(ours)
}

/// Who serves, once that is found out.
async fn opened(state: &mut State) -> Result<Opened, Failure> {
    match state {
        State::Opening { task, .. } => task
            .await
            .unwrap_or_else(|error| Err(Failure::new(format!("the server did not start: {error}"), "report this"))),
        _ => std::future::pending().await,
    }
}

/// The answer of a server that is no longer there.
fn lost_answer(id: &Value, method: &str) -> Value {
    let error = ToolError::new(
        ErrorCode::OutcomeUnknown,
        format!("the rojo-mcp server that got this {method} has ended; it may have run"),
        "call status, and read Studio's state before you repeat a change",
    );
    if method == "tools/call" {
        json!({ "jsonrpc": "2.0", "id": id, "result": error_result(&error) })
    } else {
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": error.message } })
    }
}

#[cfg(test)]
mod tests;
