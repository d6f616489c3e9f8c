//! Links and servers that break at random points, and what must hold all the same: no change runs
//! twice, what was answered as done ran once, and no call hangs.
//!
//! Each test is seeded and bounded. The variables of [`number`] make a run longer or repeat one.

mod callers;
mod counted;
mod frames;
mod guards;
mod half_open;
mod kill;
mod kill_sync;
mod kill_undo;
mod level0;
mod proxy;
mod random;
#[path = "../e2e/support.rs"]
#[expect(dead_code, reason = "shared with the end-to-end tests, which need all of it")]
mod support;
mod tap;

use std::io::Write;

/// A number from the environment, for longer runs.
fn number(variable: &str, otherwise: u64) -> u64 {
    let Ok(text) = std::env::var(variable) else { return otherwise };
    text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}"))
}

/// Not swallowed when the test passes.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
