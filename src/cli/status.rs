//! `status`: what agents call `status`, for people and scripts.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{
    Failure,
    client::{Client, Told, as_flags, no_server, print_json, tool_failure, until_stopped},
    exit::Exit,
    progress::ProgressLine,
    reach, server, show,
};
use crate::{
    attach::{self, ServeFile},
    core::text::for_terminal,
};

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
            show::print(&format!("{}\n", for_terminal(&as_flags(text.trim_end()))));
            if let Some(pairing) = self.pairing().await {
                show::print(&format!("{}\n", for_terminal(&pairing)));
            }
        }
        let studios = structure["studios"].as_array().is_some_and(|studios| !studios.is_empty());
        Ok(if studios { Exit::Done } else { Exit::NoStudio })
    }

    /// How the pairing of Studios stands, if it matters here; with the code, which agents are not told.
    async fn pairing(&self) -> Option<String> {
        let state = reach::state_of(&self.project).ok().flatten()?;
        let report = attach::pairing_of(&ServeFile::read(&state)?).await?;
        let mut lines = Vec::new();
        if report.required {
            lines.push(format!("a token is required here; paired plugins of this user: {}", report.paired));
        }
        if !report.refused.is_empty() {
            lines.push(show::refusals(&report));
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}
