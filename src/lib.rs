//! `rojo-mcp`: one server for Rojo, Roblox Studio and AI agents.

pub mod clock;
pub mod core;
#[cfg(feature = "headless")]
pub mod headless;
pub mod plugin_model;
pub mod rojo_api;
pub mod session;
pub mod upgrade;
