//! `logs`: Studio's output in the terminal.

use std::{path::PathBuf, time::Duration};

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Failure,
    client::{Client, Told, no_server, tool_failure},
    exit::Exit,
    progress::ProgressLine,
    server, show,
};
use crate::core::{
    console::{Level, Line},
    error::{ErrorCode, ToolError},
    text::for_terminal,
};

/// How often `--follow` asks for more.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// As many lines as the tool gives at once.
const MOST: u64 = 1000;

/// Print what Studio printed: output, warnings, errors with their stack, and the file and line of
/// the project that they are about.
#[derive(Debug, Args)]
pub(super) struct LogsCommand {
    /// The project: a folder or a project file.
    #[arg(default_value = ".")]
    project: PathBuf,

    /// This loud or louder.
    #[arg(long, value_enum, default_value_t = Loudness::Output)]
    level: Loudness,

    /// At most so many of the newest lines.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=MOST))]
    lines: u64,

    /// Go on until Ctrl-C.
    #[arg(short, long)]
    follow: bool,

    /// Print each line as JSON.
    #[arg(long)]
    json: bool,

    /// Which Studio, if several are connected: a name that `rojo-mcp status` lists.
    #[arg(long, value_name = "NAME")]
    studio: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Loudness {
    /// Everything.
    Output,
    /// Studio's own notes, warnings and errors.
    Info,
    /// Warnings and errors.
    Warning,
    /// Errors.
    Error,
}

/// A page of the console, as the tool answers it.
#[derive(Deserialize)]
struct Page {
    entries: Vec<Value>,
    next: u64,
    dropped: u64,
    left: u64,
}

impl LogsCommand {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        server::run(async {
            tokio::select! {
                outcome = self.print() => outcome,
                // That is how one stops to follow.
                () = server::asked_to_stop() => Ok(Exit::Done),
            }
        })
    }

    async fn print(self) -> Result<Exit, Failure> {
        let Some(mut client) = Client::attach(&self.project).await? else {
            return Err(tool_failure(&no_server("start one: rojo-mcp serve")));
        };
        let mut since = None;
        loop {
            let answer = client.call("get_console_output", self.args(since), &mut ProgressLine::none()).await?;
            let mut left = 0;
            match answer {
                Ok(Told { structure, .. }) => {
                    let page = Page::deserialize(structure)
                        .map_err(|error| Failure::new(format!("the output is malformed: {error}"), "report this"))?;
                    if !self.show(&page, since.is_some()) {
                        return Ok(Exit::Done);
                    }
                    if self.follow && page.next == 0 && !page.entries.is_empty() {
                        return Err(cannot_follow());
                    }
                    (since, left) = (Some(page.next), page.left);
                }
                Err(error) if self.follow && is_away(&error) => {}
                Err(error) => return Err(tool_failure(&error)),
            }
            if !self.follow {
                return Ok(Exit::Done);
            }
            if left == 0 {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }

    fn args(&self, since: Option<u64>) -> Value {
        let level = self.level.to_possible_value().expect("no level is hidden");
        let limit = if since.is_some() { MOST } else { self.lines };
        let mut args =
            Map::from_iter([("level".to_owned(), json!(level.get_name())), ("limit".to_owned(), json!(limit))]);
        args.extend(since.map(|since| ("since".to_owned(), json!(since))));
        args.extend(self.studio.as_ref().map(|studio| ("studio".to_owned(), json!(studio))));
        Value::Object(args)
    }

    /// Whether somebody still reads it.
    fn show(&self, page: &Page, goes_on: bool) -> bool {
        let mut text = String::new();
        if goes_on && page.dropped > 0 && !self.json {
            text.push_str(&format!("… {} lines went by too fast\n", page.dropped));
        }
        for entry in &page.entries {
            match self.json {
                true => text.push_str(&format!("{entry}\n")),
                false => text.push_str(&shown(entry)),
            }
        }
        text.is_empty() || show::print(&text)
    }
}

/// A foreign plugin gives all its output again whenever it is asked.
fn cannot_follow() -> Failure {
    Failure::new(
        "this Studio's plugin does not number its output, so it cannot be followed",
        "call again without --follow, or install our plugin: rojo-mcp plugin install",
    )
}

/// Studio may come back.
fn is_away(error: &ToolError) -> bool {
    matches!(error.code, ErrorCode::NoStudio | ErrorCode::Reconnecting)
}

fn shown(entry: &Value) -> String {
    let Ok(Line { level, text, stack, count }) = Line::deserialize(entry) else { return format!("{entry}\n") };
    let style = match level {
        Level::Output => Style::new(),
        Level::Info => AnsiColor::Cyan.on_default(),
        Level::Warning => AnsiColor::Yellow.on_default(),
        Level::Error => AnsiColor::Red.on_default(),
    };
    let count = if count > 1 { format!(" (x{count})") } else { String::new() };
    let at = entry["at"].as_str().map_or(String::new(), |at| format!("  <- {at}"));
    let mut shown = format!("{style}{}{style:#}{count}{}\n", for_terminal(&text), for_terminal(&at));
    for frame in stack {
        shown.push_str(&format!("    {}\n", for_terminal(&frame)));
    }
    shown
}
