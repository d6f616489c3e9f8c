//! `undo`: what agents call `undo`, for people and scripts.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use super::{
    Failure,
    client::{Client, no_server, until_stopped},
    exit::{Exit, STATUSES},
    progress::ProgressLine,
    server, sync,
};

/// Take a sync back, in Studio and in the files that it wrote.
///
/// What was changed again since stays, and then nothing is taken back unless --partial says so.
#[derive(Debug, Args)]
#[command(after_help = STATUSES)]
pub(super) struct UndoCommand {
    /// The project: a folder or a project file.
    #[arg(default_value = ".")]
    project: PathBuf,

    /// Which sync: `journal` of its receipt. Without it, the last one.
    #[arg(long, value_name = "JOURNAL")]
    change: Option<u64>,

    /// Take back what can be, even if something cannot.
    #[arg(long)]
    partial: bool,

    /// Print the receipt as JSON, exactly as agents get it.
    #[arg(long)]
    json: bool,

    /// Which Studio, if several are connected: a name that `rojo-mcp status` lists.
    #[arg(long, value_name = "NAME")]
    studio: Option<String>,
}

impl UndoCommand {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        server::run(until_stopped(self.undo()))
    }

    async fn undo(self) -> Result<Exit, Failure> {
        let answer = match Client::attach(&self.project).await? {
            Some(mut client) => {
                let answer = client.call("undo", self.args(), &mut ProgressLine::new("taking back")).await;
                client.close().await;
                answer?
            }
            None => Err(no_server("start one: rojo-mcp serve")),
        };
        sync::finish(answer, self.json, true)
    }

    fn args(&self) -> Value {
        let mut args = Map::from_iter([("partial".to_owned(), json!(self.partial))]);
        args.extend(self.change.map(|change| ("change".to_owned(), json!(change))));
        args.extend(self.studio.as_ref().map(|studio| ("studio".to_owned(), json!(studio))));
        Value::Object(args)
    }
}
