//! What `get_console_output` answers.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::answers::word;
use crate::core::console;

/// The answer of `get_console_output`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConsoleOutput {
    /// Oldest first; their text comes from the place.
    pub entries: Vec<ConsoleEntry>,
    /// Give it as `since` for what comes after.
    pub next: u64,
    /// Lines after `since` that are no longer kept.
    pub dropped: u64,
    /// Lines after these.
    pub left: u64,
}

/// One line of Studio's output, or several equal ones.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConsoleEntry {
    /// The line.
    #[serde(flatten)]
    pub line: console::Line,
    /// The file and line that it names, as `src/Main.server.luau:12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

impl fmt::Display for ConsoleOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dropped > 0 {
            writeln!(f, "{} lines before these are no longer kept", self.dropped)?;
        }
        for ConsoleEntry { line, at } in &self.entries {
            let mark = match line.level {
                console::Level::Output => String::new(),
                level => format!("[{}] ", word(&level)),
            };
            let count = if line.count > 1 { format!(" (x{})", line.count) } else { String::new() };
            let at = at.as_ref().map_or(String::new(), |at| format!("  <- {at}"));
            writeln!(f, "{mark}{}{count}{at}", line.text)?;
            line.stack.iter().try_for_each(|frame| writeln!(f, "    {frame}"))?;
        }
        write!(f, "{} line(s); next: {}; left: {}", self.entries.len(), self.next, self.left)
    }
}
