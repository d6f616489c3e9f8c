//! The simulated Studio: a DataModel in a Luau VM that loads our real plugin.
//!
//! It is the test bed for both halves of the product, and `--headless` lends it
//! to machines that have no Studio. Its rule is honesty: what a plugin or an
//! ordinary command touches behaves as in Studio, and everything else that
//! exists in Roblox is a loud error, never a value that looks right.
//!
//! ```text
//! HeadlessStudio --Command--> Host (its own thread, one tokio runtime)
//!                               |  edit DataModel; PlayTest: server and clients
//!                               |    |  drains Scheduler: threads, handlers, timers
//!                               |    |  World: instances (WeakDom), signals, outbox
//!                               |    '- prelude/*.luau: the services, over host_functions/
//!                               |  Shared: settings, output, frames, what Luau code asks for
//!                               '- net/: sockets as tasks; they know ids and bytes only
//! ```
//!
//! `docs/headless.md` lists what is simulated and what is only believed.

mod api;
mod carried;
mod clock;
mod config;
mod data_model;
mod datatypes;
mod datetime;
mod errors;
mod game_scripts;
mod history;
mod host;
mod host_functions;
mod instance;
mod instance_methods;
mod json;
mod members;
mod net;
mod place;
mod play_test;
mod properties;
mod records;
mod reflection;
mod remotes;
mod replication;
mod scheduler;
mod scripts;
mod shared;
mod signal;
mod stored;
mod studio;
#[cfg(test)]
mod tests;
mod tree;
mod values;
mod vm;
mod world;

pub use config::{Census, HeadlessConfig, HeadlessError, Knobs, LogLine, LossEvents, Play, Side};
pub use studio::HeadlessStudio;
