//! End to end: the real server on a free port, the plugin as it ships in the headless Studio, and
//! agents over real sockets.

mod attach;
mod command;
mod console;
mod doctor;
mod errors;
mod faults;
mod half_open;
mod identity;
mod level0;
mod live;
mod live_studio;
mod messages;
mod operations;
mod parts;
mod play;
mod recovery;
mod review;
mod rojo;
mod security;
mod stdio;
mod supervision;
mod support;
mod sync;
mod sync_at_once;
mod sync_both_ways;
mod sync_git;
mod sync_later;
mod sync_props;
mod sync_pulled;
mod sync_undo;
mod transcript;
mod trial;
mod undo;
