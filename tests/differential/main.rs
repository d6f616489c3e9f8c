//! Our server beside Rojo's own, on the same folder with the same edits: after every step both
//! must give the plugin the same tree.
//!
//! After a step the tree that we follow live must become the one that we read anew, and Rojo must
//! agree with that. Where Rojo's live tree does not (it crashes or goes stale on many events) it is
//! started again, and its fresh tree must agree.
//!
//! The random part is small by default. `ROJO_MCP_DIFFERENTIAL_STEPS=2000` makes it larger,
//! `ROJO_MCP_DIFFERENTIAL_SEED=7` different; `ROJO_MCP_TEST_SHOW_STOCK=1` shows what Rojo says. A
//! case that fails is made as small as it can be, and printed.
//! Differences on purpose are listed in `docs/rojo-differences.md`.
#![expect(clippy::disallowed_methods, reason = "an editor is not the server")]

mod cases;
#[path = "../support/client.rs"]
mod client;
mod pair;
mod random;
mod settings;
#[path = "../support/shape.rs"]
mod shape;
#[path = "../support/stock.rs"]
mod stock;
mod writes;

/// No test: this binary, started again at this name, is Rojo.
#[test]
fn stock_rojo() {
    stock::run_if_asked();
}
