//! What a Studio printed: the newest lines, in order, with an exact count of what was dropped.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many lines are kept.
pub const MAX_LINES: usize = 10_000;

/// How many bytes of text are kept.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// How loud a line is: `Enum.MessageType`, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// `print`.
    Output,
    /// Studio's own notes.
    Info,
    /// `warn`.
    Warning,
    /// `error`.
    Error,
}

impl From<u8> for Level {
    fn from(number: u8) -> Self {
        match number {
            0 => Self::Output,
            1 => Self::Info,
            2 => Self::Warning,
            _ => Self::Error,
        }
    }
}

/// One line, or several equal ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// How loud.
    pub level: Level,
    /// The text; it comes from the place.
    pub text: String,
    /// For errors: where it came from, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// How often it came, where equal lines are counted.
    pub count: usize,
}

/// The lines of one Studio.
#[derive(Debug, Default)]
pub struct Console {
    lines: VecDeque<Line>,
    /// The cursor of the oldest line that is kept: how many came before it.
    oldest: u64,
    bytes: usize,
    in_stack: bool,
}

/// Which lines are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The `next` of an earlier page; `None` asks for the newest lines.
    pub since: Option<u64>,
    /// This loud or louder.
    pub level: Level,
    /// At most so many.
    pub limit: usize,
    /// Count equal lines instead of repeating them.
    pub dedupe: bool,
}

/// Some lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Oldest first.
    pub lines: Vec<Line>,
    /// Ask with this as `since` for what comes after.
    pub next: u64,
    /// How many lines after `since` are no longer kept, of any level.
    pub dropped: u64,
    /// How many lines there are after this page.
    pub left: u64,
}

impl Console {
    /// Take in a line. The stack that Studio prints after an error becomes part of the error.
    pub fn push(&mut self, level: Level, text: String) {
        if self.took_stack(&text) {
            return;
        }
        self.bytes += text.len();
        self.lines.push_back(Line { level, text, stack: Vec::new(), count: 1 });
        while self.lines.len() > MAX_LINES || self.bytes > MAX_BYTES {
            let Some(line) = self.lines.pop_front() else { break };
            self.bytes -= line.size();
            self.oldest += 1;
        }
    }

    /// `Stack Begin`, frames, `Stack End`: lines of their own in Studio.
    fn took_stack(&mut self, text: &str) -> bool {
        let Some(error) = self.lines.back_mut().filter(|line| line.level == Level::Error) else {
            self.in_stack = false;
            return false;
        };
        match text.trim() {
            "Stack Begin" => self.in_stack = true,
            "Stack End" if self.in_stack => self.in_stack = false,
            frame if self.in_stack && error.stack.len() < 64 => {
                self.bytes += frame.len();
                error.stack.push(frame.to_owned());
            }
            _ => return self.in_stack,
        }
        true
    }

    /// The lines that `query` asks for.
    pub fn read(&self, query: &Query) -> Page {
        let end = self.oldest + self.lines.len() as u64;
        let asked = query.since.map_or(self.oldest, |since| since.min(end));
        let start = asked.max(self.oldest);
        let mut wanted =
            self.lines.iter().zip(self.oldest..).filter(|(line, at)| *at >= start && line.level >= query.level);
        let mut picked: Vec<(&Line, u64)> = if query.since.is_none() {
            let all: Vec<_> = wanted.collect();
            all.iter().skip(all.len().saturating_sub(query.limit)).copied().collect()
        } else {
            wanted.by_ref().take(query.limit).collect()
        };
        let full = query.since.is_some() && picked.len() == query.limit;
        let next = if full { picked.last().map_or(end, |(_, at)| at + 1) } else { end };
        let lines = picked.drain(..).map(|(line, _)| line.clone());
        Page {
            lines: if query.dedupe { count_equal(lines) } else { lines.collect() },
            next,
            dropped: start - asked,
            left: end - next,
        }
    }
}

impl Line {
    fn size(&self) -> usize {
        self.text.len() + self.stack.iter().map(String::len).sum::<usize>()
    }
}

/// Equal lines as one with its count, in the order in which each came first.
fn count_equal(lines: impl Iterator<Item = Line>) -> Vec<Line> {
    let mut counted: Vec<Line> = Vec::new();
    let mut places: std::collections::HashMap<(Level, String, Vec<String>), usize> = std::collections::HashMap::new();
    for line in lines {
        let key = (line.level, line.text.clone(), line.stack.clone());
        match places.get(&key) {
            Some(place) => counted[*place].count += 1,
            None => {
                places.insert(key, counted.len());
                counted.push(line);
            }
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Query = Query { since: None, level: Level::Output, limit: 200, dedupe: false };

    fn texts(page: &Page) -> Vec<&str> {
        page.lines.iter().map(|line| line.text.as_str()).collect()
    }

    fn console(texts: &[&str]) -> Console {
        let mut console = Console::default();
        for text in texts {
            console.push(Level::Output, (*text).to_owned());
        }
        console
    }

    #[test]
    fn pages_follow_one_another_without_gap_or_repeat() {
        let mut console = console(&["a", "b", "c", "d", "e"]);
        let newest = console.read(&Query { limit: 2, ..ALL });
        assert_eq!((texts(&newest), newest.next, newest.left), (vec!["d", "e"], 5, 0));
        let mut query = Query { since: Some(0), limit: 2, ..ALL };
        let mut seen = Vec::new();
        for _ in 0..3 {
            let page = console.read(&query);
            seen.extend(page.lines.iter().map(|line| line.text.clone()));
            query.since = Some(page.next);
        }
        assert_eq!(seen, ["a", "b", "c", "d", "e"]);
        assert_eq!(texts(&console.read(&query)), Vec::<&str>::new());
        console.push(Level::Output, "f".into());
        assert_eq!(texts(&console.read(&query)), ["f"]);
        assert_eq!(console.read(&Query { since: Some(99), ..ALL }).next, 6, "a cursor of another life is no panic");
    }

    #[test]
    fn what_was_dropped_is_counted_exactly() {
        let mut console = Console::default();
        for number in 0..MAX_LINES + 30 {
            console.push(Level::Output, number.to_string());
        }
        let page = console.read(&Query { since: Some(10), limit: 1, ..ALL });
        assert_eq!((texts(&page), page.dropped), (vec!["30"], 20));
        assert_eq!(console.read(&ALL).dropped, 0, "who asks for the newest misses nothing");
        console.push(Level::Output, "x".repeat(MAX_BYTES));
        assert_eq!(console.read(&ALL).lines.len(), 1, "the bytes are bounded too");
    }

    #[test]
    fn lines_are_filtered_by_level_and_counted_when_equal() {
        let mut console = console(&["a", "b", "a"]);
        console.push(Level::Warning, "a".into());
        console.push(Level::Error, "boom".into());
        assert_eq!(texts(&console.read(&Query { level: Level::Warning, ..ALL })), ["a", "boom"]);
        let counted = console.read(&Query { dedupe: true, ..ALL });
        let counts: Vec<(&str, usize)> = counted.lines.iter().map(|line| (line.text.as_str(), line.count)).collect();
        assert_eq!(counts, [("a", 2), ("b", 1), ("a", 1), ("boom", 1)], "a warning is not an output");
    }

    #[test]
    fn the_stack_belongs_to_its_error() {
        let mut console = Console::default();
        console.push(Level::Error, "Main:3: boom".into());
        for text in ["Stack Begin", "Script 'Main', Line 3 - function go", "Script 'Main', Line 9", "Stack End"] {
            console.push(Level::Info, text.into());
        }
        console.push(Level::Output, "after".into());
        let page = console.read(&ALL);
        assert_eq!(texts(&page), ["Main:3: boom", "after"]);
        assert_eq!(page.lines[0].stack, ["Script 'Main', Line 3 - function go", "Script 'Main', Line 9"]);
        let mut console = self::console(&["x"]);
        console.push(Level::Info, "Stack Begin".into());
        assert_eq!(texts(&console.read(&ALL)), ["x", "Stack Begin"], "without an error it is a line like others");
    }
}
