//! One line on standard error that says what a long call is at.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use crate::{clock, core::text::for_terminal};

/// What is over sooner needs no line.
const LONG: Duration = Duration::from_secs(1);

/// The line. On a terminal it is one that changes; elsewhere each new message is a line.
pub(super) struct ProgressLine {
    what: String,
    message: String,
    began: Instant,
    terminal: bool,
    shown: bool,
    silent: bool,
}

impl ProgressLine {
    /// A line that begins with `what`.
    pub(super) fn new(what: &str) -> Self {
        let terminal = io::stderr().is_terminal();
        Self { what: what.into(), message: String::new(), began: clock::now(), terminal, shown: false, silent: false }
    }

    /// None at all.
    pub(super) fn none() -> Self {
        let mut line = Self::new("");
        line.silent = true;
        line
    }

    /// What it is at now.
    pub(super) fn say(&mut self, message: &str) {
        if message != self.message {
            self.message = for_terminal(message).replace('\n', " ");
            if !self.terminal {
                self.show();
            }
        }
        self.beat();
    }

    /// Time has passed.
    pub(super) fn beat(&mut self) {
        if self.terminal {
            self.show();
        }
    }

    /// Say no more: somebody is asked on the same terminal.
    pub(super) fn pause(&mut self) {
        self.silent = true;
    }

    /// Take the line away.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.shown) && self.terminal {
            write("\r\x1b[2K");
        }
    }

    fn show(&mut self) {
        let time = self.began.elapsed();
        if self.silent || time < LONG {
            return;
        }
        let colon = if self.message.is_empty() { "" } else { ": " };
        let text = format!("{}{colon}{} ({} s)", self.what, self.message, time.as_secs());
        write(&if self.terminal { format!("\r\x1b[2K{text}") } else { format!("{text}\n") });
        self.shown = true;
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.end();
    }
}

fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    // Without a standard error there is nobody to tell.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
