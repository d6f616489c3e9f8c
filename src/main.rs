//! The `rojo-mcp` command.

fn main() {}
