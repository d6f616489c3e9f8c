//! `sync`: what agents call `sync`, for people and scripts.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Failure, ServerOptions,
    asked::Asker,
    client::{Answer, Client, Told, no_server, print_json, tool_failure, until_stopped},
    exit::{Exit, STATUSES},
    progress::ProgressLine,
    server, show,
};
use crate::{
    clock,
    core::{
        error::{ErrorCode, ToolError},
        sync::Receipt,
    },
};

/// How often a Studio is looked for while there is none.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What brings a Studio.
const NO_STUDIO: &str = "open the place in Roblox Studio with the rojo-mcp plugin";

/// Bring Studio and the files to the same state, and say what was done: a line for each change.
///
/// It works through the project's running server (`rojo-mcp serve`, or one that an agent started).
/// Where none runs, --wait and --headless start one for the time of the sync.
#[derive(Debug, Args)]
#[command(after_help = STATUSES)]
pub(super) struct SyncCommand {
    /// The project: a folder or a project file.
    #[arg(default_value = ".")]
    project: PathBuf,

    /// What to do with what differs.
    #[arg(long, value_enum, default_value_t = Mode::Standard)]
    mode: Mode,

    /// Only these files or folders, relative to the project. Repeat it or use commas.
    #[arg(long, value_delimiter = ',', value_name = "PATH")]
    paths: Vec<String>,

    /// Agree to removing many instances in Studio whose files are gone. It decides no conflict.
    #[arg(long, short)]
    yes: bool,

    /// Print the receipt as JSON, exactly as agents get it.
    #[arg(long)]
    json: bool,

    /// Wait so many seconds (60 if not said) for a Studio to connect.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60", value_parser = clap::value_parser!(u64).range(..=86_400))]
    wait: Option<u64>,

    /// Which Studio, if several are connected: a name that `rojo-mcp status` lists.
    #[arg(long, value_name = "NAME")]
    studio: Option<String>,

    /// The port of a server that is started for this sync: the project's servePort, or 34872. Studio
    /// looks there.
    #[arg(long)]
    port: Option<u16>,

    /// Where no server runs, sync to a simulated Studio with the project in it.
    #[cfg(feature = "headless")]
    #[arg(long)]
    headless: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// Apply what is resolved, and list the rest.
    Standard,
    /// Ask a person about each change: here if this is a terminal, and in Studio. Rejected where nobody
    /// can be asked.
    Manual,
    /// All or nothing: apply only if nothing is unresolved.
    Fastfail,
    /// Only report.
    Dryrun,
}

impl SyncCommand {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        server::run(until_stopped(self.sync()))
    }

    async fn sync(self) -> Result<Exit, Failure> {
        let mut can_undo = true;
        let answer = match self.client().await? {
            Some(mut client) => {
                // A simulated Studio goes with the server that was started for it.
                can_undo = !self.is_headless() || client.started_at().is_none();
                let answer = self.call(&mut client).await;
                client.close().await;
                answer?
            }
            None => Err(no_server("start one (rojo-mcp serve), or wait for Studio here (--wait)")),
        };
        finish(answer, self.json, can_undo)
    }

    /// `None`: no server runs, and none is to be started.
    async fn client(&self) -> Result<Option<Client>, Failure> {
        if !self.starts() {
            return Client::attach_asking(&self.project, self.asker()).await;
        }
        let client = Client::attach_or_start(&self.server_options(), self.asker()).await?;
        if let Some(address) = client.started_at() {
            log::info!("serving at {} for this sync", crate::host_and_port(address));
        }
        Ok(Some(client))
    }

    /// Who is asked here; elsewhere somebody may be asked as well.
    fn asker(&self) -> Option<Asker> {
        if matches!(self.mode, Mode::Manual) { Asker::at_terminal() } else { None }
    }

    fn starts(&self) -> bool {
        self.is_headless() || self.wait.is_some()
    }

    fn is_headless(&self) -> bool {
        #[cfg(feature = "headless")]
        return self.headless;
        #[cfg(not(feature = "headless"))]
        false
    }

    fn server_options(&self) -> ServerOptions {
        ServerOptions {
            project: self.project.clone(),
            port: self.port,
            #[cfg(feature = "headless")]
            headless: self.headless,
            ..ServerOptions::default()
        }
    }

    /// Call the tool; until the time is up, again while there is no Studio.
    async fn call(&self, client: &mut Client) -> Result<Answer, Failure> {
        let until = clock::now() + Duration::from_secs(self.wait.unwrap_or(0));
        let mut progress = ProgressLine::new("syncing");
        loop {
            let answer = client.call("sync", self.args(), &mut progress).await?;
            match &answer {
                Err(error) if is_missing(error) && clock::now() < until => wait(&mut progress, until).await?,
                _ => return Ok(answer),
            }
        }
    }

    fn args(&self) -> Value {
        let mode = self.mode.to_possible_value().expect("no mode is hidden");
        let mut args = Map::from_iter([("mode".to_owned(), json!(mode.get_name()))]);
        if !self.paths.is_empty() {
            args.insert("paths".into(), json!(self.paths));
        }
        if self.yes {
            args.insert("allowRemovals".into(), json!(true));
        }
        if let Some(studio) = &self.studio {
            args.insert("studio".into(), json!(studio));
        }
        Value::Object(args)
    }
}

/// Print a receipt, and say with which status it ends. Whether it can still be taken back.
pub(super) fn finish(answer: Answer, json: bool, can_undo: bool) -> Result<Exit, Failure> {
    if json {
        print_json(&answer);
    }
    let Told { structure, .. } = answer.map_err(|error| tool_failure(&error))?;
    let receipt = Receipt::deserialize(&structure)
        .map_err(|error| Failure::new(format!("the receipt is malformed: {error}"), "report this"))?;
    if !json {
        show::print(&show::receipt(&receipt, &structure, can_undo));
    }
    Ok(Exit::of_receipt(&receipt))
}

/// Nothing was sent, since there is nobody to send it to.
fn is_missing(error: &ToolError) -> bool {
    matches!(error.code, ErrorCode::NoStudio | ErrorCode::Reconnecting)
}

async fn wait(progress: &mut ProgressLine, until: Instant) -> Result<(), Failure> {
    progress.say("waiting for Studio");
    tokio::select! {
        () = tokio::time::sleep(LOOK_AGAIN.min(until.saturating_duration_since(clock::now()))) => Ok(()),
        () = server::asked_to_stop() => {
            progress.end();
            Err(Failure::new("stopped; no Studio had connected, so nothing was changed", NO_STUDIO).with(Exit::NoStudio))
        }
    }
}
