//! What each tool answers, as a structure and as a text with the same facts.

use std::fmt::{self, Write as _};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::core::{
    status::{Busy, DataModelStatus, Played, StudioStatus},
    sync::{Change, ChangeResult, Direction, Receipt, Rejected},
    text::word,
};

/// How many characters of a script or output an answer carries; the rest is paged.
pub const MAX_TEXT: usize = 24_000;

/// What JSON puts around a printed line, about.
const AROUND_A_LINE: usize = 32;

/// How many changes of a receipt the text lists; the structure has as many.
pub const MAX_CHANGES: usize = 100;

/// How many problems a receipt names; `status` names all.
pub const MAX_PROBLEMS: usize = 10;

/// The answer of `status`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Status {
    /// What is served.
    pub project: Project,
    /// Who serves it.
    pub server: Server,
    /// Who is connected.
    pub studios: Vec<StudioStatus>,
    /// Calls that wait for a Studio.
    pub calls: usize,
    /// What is wrong, and what to do.
    pub problems: Vec<Problem>,
}

/// What is served.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Project {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: String,
}

/// Who serves it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Server {
    /// Our version.
    pub version: String,
    /// Where.
    pub url: String,
}

/// Something that is wrong.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Problem {
    /// What.
    pub what: String,
    /// What to do.
    pub next: String,
}

/// The answer of `get_script`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Script {
    /// Studio's text; only some lines of it if `truncated`.
    pub source: String,
    /// Hash of the whole text in Studio.
    pub studio_hash: String,
    /// Hash of the text in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_hash: Option<String>,
    /// How the two sides stand.
    pub verdict: Verdict,
    /// The instance's class.
    pub class_name: String,
    /// The instance's full name.
    pub instance_path: String,
    /// The file, relative to the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_path: Option<String>,
    /// The text is an unsaved editor draft.
    pub is_draft: bool,
    /// How many lines the whole text has.
    pub total_lines: usize,
    /// The first line of `source`, from 1.
    pub first_line: usize,
    /// Not the whole text.
    pub truncated: bool,
    /// The first line that was left out at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
    /// What makes the server's tree other than the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// How file and Studio stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Both have the same text.
    Equal,
    /// The file was changed since both had the same.
    FileChanged,
    /// Studio was.
    StudioChanged,
    /// Both were.
    BothChanged,
    /// They differ, and it is not known which is newer.
    Unknown,
}

/// The answer of `run_code`, as our plugin gives it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunCode {
    /// It ran to its end.
    pub ok: bool,
    /// What it printed, in order.
    #[serde(default)]
    pub output: Vec<Line>,
    /// What it returned.
    #[serde(default)]
    pub returns: Vec<Value>,
    /// What stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// Something too long was left out, here or (`outputTruncated`) by the plugin.
    #[serde(default, alias = "outputTruncated")]
    pub truncated: bool,
}

/// The answer of `get_studio_mode`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StudioMode {
    /// edit, play or run; of one DataModel: edit, run, server or client.
    pub mode: String,
}

impl fmt::Display for StudioMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.mode)
    }
}

/// A printed line.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// output, info, warning or error.
    pub level: String,
    /// Its text, from the place.
    pub text: String,
}

impl RunCode {
    /// A foreign plugin answers one text.
    pub fn from_text(text: String) -> Self {
        let output = vec![Line { level: "output".into(), text }];
        Self { ok: true, output, returns: Vec::new(), error: None, truncated: false }
    }

    /// Cut what would flood an agent; say so.
    pub fn bounded(mut self) -> Self {
        let mut left = MAX_TEXT;
        let mut kept = Vec::new();
        for line in std::mem::take(&mut self.output) {
            if line.text.len() + AROUND_A_LINE > left {
                self.truncated = true;
                let text: String = line.text.chars().take(left).collect();
                kept.push(Line { text, ..line });
                break;
            }
            left -= line.text.len() + AROUND_A_LINE;
            kept.push(line);
        }
        self.output = kept;
        if self.error.as_ref().is_some_and(|error| error.to_string().len() > MAX_TEXT) {
            self.truncated = true;
            self.error = self.error.as_ref().map(shortened);
        }
        let size: usize = self.returns.iter().map(|value| value.to_string().len()).sum();
        if size > MAX_TEXT {
            self.truncated = true;
            self.returns = vec![Value::String(format!("[{size} characters of values were left out]"))];
        }
        self
    }
}

/// The beginning of an error's message, and its line.
fn shortened(error: &Value) -> Value {
    let text = error.get("message").unwrap_or(error).as_str().unwrap_or_default();
    let end = text.floor_char_boundary(MAX_TEXT / 2);
    let message = format!("{} [{} bytes in all]", text.get(..end).unwrap_or_default(), error.to_string().len());
    serde_json::json!({ "message": message, "line": error.get("line") })
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "project {} in {}", self.project.name, self.project.folder)?;
        writeln!(f, "server {} at {}", self.server.version, self.server.url)?;
        writeln!(f, "{} Studio(s), {} call(s) waiting", self.studios.len(), self.calls)?;
        for studio in &self.studios {
            let running = if studio.running { ", play test" } else { "" };
            let plugin = studio.plugin_version.as_deref().unwrap_or("foreign");
            writeln!(
                f,
                "- {} {:?} (place {}): {}, role {}, mode {}, plugin {plugin}, protocol {}{running}",
                studio.studio,
                studio.place,
                studio.place_id,
                word(&studio.link),
                studio.role,
                studio.mode,
                studio.protocol
            )?;
            if let Some(paused) = &studio.paused {
                writeln!(f, "  live mode waits: {paused}")?;
            }
            if let Some(review) = &studio.review {
                writeln!(f, "  {review}")?;
            }
            if !studio.held.is_empty() {
                writeln!(f, "  left alone until somebody decides: {}", studio.held.join(", "))?;
            }
            if let Some(Played { by, seconds, next }) = &studio.played {
                writeln!(f, "  played by {by} for {seconds} s; next: {next}")?;
            }
            let plays = studio.data_models.len() > 1;
            for DataModelStatus { target, link, player, busy } in &studio.data_models {
                if plays {
                    let of = player.as_ref().map_or(String::new(), |player| format!(" of {player}"));
                    writeln!(f, "  target {target}{of}: {}", word(link))?;
                }
                if let Some(Busy { tool, call, seconds, queued, cannot_end: _, next }) = busy {
                    write!(f, "  {tool} (call {call}) runs for {seconds} s; {queued} change(s) wait for it")?;
                    next.iter().try_for_each(|next| write!(f, "; next: {next}"))?;
                    writeln!(f)?;
                }
            }
        }
        for problem in &self.problems {
            writeln!(f, "problem: {}\n  next: {}", problem.what, problem.next)?;
        }
        Ok(())
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.fs_path.as_deref().unwrap_or("no file");
        let draft = if self.is_draft { ", unsaved draft" } else { "" };
        writeln!(f, "{} {} ({file}){draft}", self.class_name, self.instance_path)?;
        let disk = self.disk_hash.as_deref().unwrap_or("none");
        writeln!(f, "{}: Studio {}, file {disk}", word(&self.verdict), self.studio_hash)?;
        if self.truncated {
            let next = self.next.map_or(String::new(), |line| format!("; next: lines [{line}, …]"));
            writeln!(f, "truncated: from line {} of {}{next}", self.first_line, self.total_lines)?;
        }
        self.warning.iter().try_for_each(|warning| writeln!(f, "warning: {warning}"))?;
        write!(f, "\n{}", self.source)
    }
}

impl fmt::Display for RunCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.error.as_ref().and_then(|error| error.get("message")).and_then(Value::as_str);
        // Studio prints the error as well.
        let repeats = |line: &&Line| line.level == "error" && Some(line.text.as_str()) == message;
        for line in self.output.iter().filter(|line| !repeats(line)) {
            let mark = if line.level == "output" { String::new() } else { format!("[{}] ", line.level) };
            writeln!(f, "{mark}{}", line.text)?;
        }
        for value in &self.returns {
            writeln!(f, "returned {value}")?;
        }
        if let Some(error) = &self.error {
            let text = error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned);
            let line = error.get("line").map_or(String::new(), |line| format!(" (line {line})"));
            writeln!(f, "error: {text}{line}")?;
        }
        if self.truncated {
            writeln!(f, "truncated: it was too long")?;
        }
        write!(f, "{}", if self.ok { "ok" } else { "failed" })
    }
}

/// The answer of `sync`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Synced {
    /// What was found and done.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// How many changes there are in all.
    pub total: usize,
    /// Not all of them are listed; those that need attention come first.
    pub truncated: bool,
    /// Files that could not be read; their last good version was compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What makes the server's tree other than the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl Synced {
    /// The receipt, with as many changes as an agent can take.
    pub fn new(mut receipt: Receipt, problems: &[crate::session::Problem], warning: Option<String>) -> Self {
        let problems = problems.iter().take(MAX_PROBLEMS).map(ToString::to_string).collect();
        let total = receipt.changes.len();
        let truncated = total > MAX_CHANGES;
        if truncated {
            receipt.changes.sort_by_key(|change| matches!(change.result, ChangeResult::Done | ChangeResult::Planned));
            receipt.changes.truncate(MAX_CHANGES);
        }
        Self { receipt, total, truncated, problems, warning }
    }
}

impl fmt::Display for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Receipt { status, cursor, pushed, unresolved, failed, changes, message, .. } = &self.receipt;
        write!(f, "{}: {pushed} pushed", word(status))?;
        let Receipt { pulled, merged, removed, renamed, .. } = &self.receipt;
        for (count, what) in [(pulled, "pulled"), (merged, "merged"), (removed, "removed"), (renamed, "renamed")] {
            if *count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        write!(f, ", {unresolved} unresolved, {failed} failed (tree {cursor})")?;
        if let Some(message) = message {
            write!(f, "; {message}")?;
        }
        if let Some(journal) = self.receipt.journal {
            write!(f, "; journal {journal}: `undo` with `change` {journal} takes it back")?;
        }
        for change in changes {
            write!(f, "\n- {change}")?;
        }
        for Rejected { id, reason } in &self.receipt.rejected {
            write!(f, "\nrejected override of {id}: {reason}")?;
        }
        if self.truncated {
            write!(f, "\ntruncated: {} of {} listed; sync fewer `paths`", changes.len(), self.total)?;
        }
        self.problems.iter().try_for_each(|problem| write!(f, "\nproblem: {problem}"))?;
        self.warning.iter().try_for_each(|warning| write!(f, "\nwarning: {warning}"))
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Direction::Push => "push",
            Direction::Pull => "pull",
            Direction::Merge => "merge",
            Direction::Unresolved => "unresolved",
        };
        let mut text = format!("{direction} {:?} {} {}", self.patch_type, self.class_name, self.path);
        if let Some(file) = &self.fs_path {
            let _ = write!(text, " ({file})");
        }
        if self.result != ChangeResult::Unresolved {
            let _ = write!(text, ": {}", word(&self.result));
        }
        if let Some(hash) = &self.disk_hash {
            let _ = write!(text, ", file {hash}");
        }
        if let Some(hash) = &self.studio_hash {
            let _ = write!(text, ", Studio {hash}");
        }
        if let Some(reason) = &self.reason {
            let _ = write!(text, ": {reason}");
        }
        for (key, value) in &self.foreign {
            let value: String = value.to_string().chars().take(300).collect();
            let _ = write!(text, ", {key} {value}");
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests;
