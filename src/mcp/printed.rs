//! What `get_console_output` answers.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::core::{console, text::word};

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

/// Leave out of a line what `room` bytes do not hold, and take from them what it has.
pub(super) fn bound(line: &mut console::Line, room: &mut usize) {
    if line.text.len() > *room {
        let kept = line.text.get(..line.text.floor_char_boundary(*room)).unwrap_or_default();
        line.text = format!("{kept} [{} bytes in all]", line.text.len());
    }
    *room = room.saturating_sub(line.text.len());
    let (frames, before) = (line.stack.len(), *room);
    let held = line.stack.iter().scan(before, |left, frame| {
        *left = left.checked_sub(frame.len())?;
        Some(frame.len())
    });
    let held: Vec<usize> = held.collect();
    line.stack.truncate(held.len());
    *room -= held.iter().sum::<usize>();
    if held.len() < frames {
        line.stack.push(format!("[{} of {frames} frames]", held.len()));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(text: &str, stack: &[&str], mut room: usize) -> (String, Vec<String>, usize) {
        let stack = stack.iter().map(|frame| (*frame).to_owned()).collect();
        let mut line = console::Line { level: console::Level::Error, text: text.to_owned(), stack, count: 1 };
        bound(&mut line, &mut room);
        (line.text, line.stack, room)
    }

    #[test]
    fn a_line_and_its_stack_are_cut_to_what_there_is_room_for() {
        let whole = |frames: &[&str]| frames.iter().map(|frame| (*frame).to_owned()).collect::<Vec<_>>();
        assert_eq!(bounded("boom", &["one", "two"], 10), ("boom".into(), whole(&["one", "two"]), 0));
        assert_eq!(bounded("boom", &["one", "two"], 9), ("boom".into(), whole(&["one", "[1 of 2 frames]"]), 2));
        assert_eq!(bounded("ééé", &["one"], 3), ("é [6 bytes in all]".into(), whole(&["[0 of 1 frames]"]), 0));
    }
}
