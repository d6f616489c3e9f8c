//! End to end: the real server on a free port, the plugin as it ships in the headless Studio, and
//! agents over real sockets.

mod attach;
mod command;
mod console;
mod doctor;
mod errors;
mod faults;
mod first_steps;
mod half_open;
mod identity;
mod level0;
#[cfg(unix)] // by a shell
mod limits;
mod live;
mod live_names;
mod live_studio;
mod messages;
mod operations;
mod pairing;
mod parts;
mod play;
mod play_steps;
mod recovery;
mod remote;
mod review;
mod rojo;
mod security;
mod stdio;
mod supervision;
mod support;
mod sync;
mod sync_at_once;
mod sync_both_ways;
mod sync_csv;
mod sync_git;
mod sync_later;
mod sync_props;
mod sync_pulled;
mod sync_undo;
mod sync_undo_files;
mod sync_undo_live;
mod sync_undo_many;
mod sync_undo_random;
#[cfg(unix)] // a console of Windows is another process, and no small crate opens one
mod terminal;
mod transcript;
mod trial;
mod undo;
