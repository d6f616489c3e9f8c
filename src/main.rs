//! The `rojo-mcp` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    match rojo_mcp::cli::run() {
        Ok(status) => status,
        Err(error) => rojo_mcp::cli::report(&error),
    }
}
