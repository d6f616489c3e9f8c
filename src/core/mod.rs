//! The decisions, free of input and output: no sockets, files, clock or log in here.
//!
//! Everything in this folder is a value or a pure function of values, so that a test can drive
//! it through any order of events. `tests/tidy.rs` checks that it stays so.

pub mod agreement;
pub mod base;
pub mod bridge;
pub mod calls;
pub mod choice;
pub mod classes;
pub mod clients;
pub mod console;
pub mod error;
pub mod gathered;
pub mod ids;
pub mod journal;
pub mod lanes;
pub mod live;
pub mod merge;
pub mod operations;
pub mod paths;
pub mod play;
pub mod protocol;
pub mod review;
pub mod standing;
pub mod status;
pub mod studios;
pub mod sync;
pub mod targets;
pub mod text;
pub mod values;
