//! `status`: what agents call `status`, for people and scripts.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{
    Failure,
    client::{Client, Told, no_server, print_json, tool_failure, until_stopped},
    exit::Exit,
    progress::ProgressLine,
    server, show,
};
use crate::core::text::for_terminal;

/// Say what the project's running server serves, which Studios are connected, and what is wrong.
///
/// Ends with 3 if no server runs or no Studio is connected.
#[derive(Debug, Args)]
pub(super) struct StatusCommand {
    /// The project: a folder or a project file.
    #[arg(default_value = ".")]
    project: PathBuf,

    /// Print it as JSON, exactly as agents get it.
    #[arg(long)]
    json: bool,
}

impl StatusCommand {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        server::run(until_stopped(self.status()))
    }

    async fn status(self) -> Result<Exit, Failure> {
        let answer = match Client::attach(&self.project).await? {
            Some(mut client) => {
                let answer = client.call("status", json!({}), &mut ProgressLine::new("asking")).await;
                client.close().await;
                answer?
            }
            None => Err(no_server("start one: rojo-mcp serve")),
        };
        if self.json {
            print_json(&answer);
        }
        let Told { structure, text } = answer.map_err(|error| tool_failure(&error))?;
        if !self.json {
            show::print(&format!("{}\n", for_terminal(text.trim_end())));
        }
        let studios = structure["studios"].as_array().is_some_and(|studios| !studios.is_empty());
        Ok(if studios { Exit::Done } else { Exit::NoStudio })
    }
}
