//! The simulated Studio: a DataModel in a Luau VM that loads our real plugin.
//!
//! It is the test bed for both halves of the product, and `--headless` lends it
//! to machines that have no Studio. Its rule is honesty: what a plugin or an
//! ordinary command touches behaves as in Studio, and everything else that
//! exists in Roblox is a loud error, never a value that looks right.
//!
//! ```text
//! HeadlessStudio --Command--> Host (its own thread, one tokio runtime)
//!                               |  drains Scheduler: threads, handlers, timers
//!                               |  World: DataModel (WeakDom), signals, settings, log
//!                               |  prelude/*.luau: the services, over host_functions/
//!                               '- net/: sockets as tasks; they know ids and bytes only
//! ```
//!
//! `docs/headless.md` lists what is simulated and what is only believed.

mod api;
mod clock;
mod config;
mod datatypes;
mod datetime;
mod errors;
mod history;
mod host;
mod host_functions;
mod instance;
mod instance_methods;
mod json;
mod members;
mod net;
mod properties;
mod records;
mod reflection;
mod scheduler;
mod scripts;
mod signal;
mod stored;
mod studio;
#[cfg(test)]
mod tests;
mod tree;
mod values;
mod vm;
mod world;

pub use config::{HeadlessConfig, HeadlessError, Knobs, LogLine, LossEvents};
pub use studio::HeadlessStudio;
