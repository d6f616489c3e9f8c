//! The `rojo-mcp` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    match rojo_mcp::cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => rojo_mcp::cli::report(&error),
    }
}
