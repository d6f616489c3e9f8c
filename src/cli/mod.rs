//! The command line: one file a command; what is Rojo's goes to Rojo.

mod bridge;
mod lines;
mod mcp;
mod plugin;
mod port;
mod reach;
mod serve;
mod server;

use std::{ffi::OsString, io::Write as _, path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};

/// One server for Rojo, Roblox Studio and AI agents.
#[derive(Debug, Parser)]
#[command(name = "rojo-mcp", version, about, after_help = ROJO_COMMANDS)]
struct Options {
    /// Say more on standard error; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,

    #[command(subcommand)]
    command: Command,
}

const ROJO_COMMANDS: &str = "\
Rojo's other commands work as you know them: init, build, sourcemap, syncback, upload, fmt-project, doc.
`rojo-mcp <command> --help` explains each.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a project to Roblox Studio and to agents.
    Serve(serve::ServeCommand),
    /// Speak MCP on standard input and output, for agents that start their servers.
    Mcp(mcp::McpCommand),
    /// The Studio plugin.
    Plugin(plugin::PluginCommand),
    /// Any other command is Rojo's.
    #[command(external_subcommand)]
    Rojo(Vec<OsString>),
}

/// What `serve` and `mcp` share.
#[derive(Debug, Clone, Args)]
struct ServerOptions {
    /// The project: a folder or a project file.
    #[arg(default_value = ".")]
    project: PathBuf,

    /// The address to listen on: the project's serveAddress, or 127.0.0.1.
    #[arg(long)]
    address: Option<std::net::IpAddr>,

    /// The port to listen on: the project's servePort, or 34872. 0 takes a free one.
    #[arg(long)]
    port: Option<u16>,

    /// Further values of Host and Origin to accept, such as mypc.lan. Replaces the project's
    /// serveAllowedHosts. Repeat it or use commas.
    #[arg(long, value_delimiter = ',')]
    allowed_hosts: Vec<String>,

    /// Let edits made in Studio be written to files outside the project's folder, where a $path
    /// leads there.
    #[arg(long)]
    write_outside: bool,

    /// Start a simulated Studio with the project in it, for machines without Roblox Studio.
    #[cfg(feature = "headless")]
    #[arg(long)]
    headless: bool,

    /// The simulated Studio takes every save at once, without a `sync`.
    #[cfg(feature = "headless")]
    #[arg(long, requires = "headless")]
    live: bool,

    /// As --live, and what is changed in the simulated Studio is written to the files.
    #[cfg(feature = "headless")]
    #[arg(long, requires = "headless")]
    two_way: bool,
}

impl ServerOptions {
    /// The port of a server that is started for one program only. A headless Studio is told where
    /// it is; a real one looks at the project's port.
    fn default_port(&self) -> Option<u16> {
        #[cfg(feature = "headless")]
        return self.headless.then_some(0);
        #[cfg(not(feature = "headless"))]
        None
    }
}

/// A failed command: what happened and what to do next.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    message: String,
    hint: Option<String>,
}

impl Failure {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: Some(hint.into()) }
    }
}

/// Run the command that this process was started with.
///
/// # Errors
/// As the command fails. A usage error ends the process by itself, with status 2.
pub fn run() -> anyhow::Result<()> {
    let options = Options::parse();
    match options.command {
        Command::Serve(command) => {
            start_logging(options.verbose);
            command.run()
        }
        Command::Mcp(command) => {
            start_logging(options.verbose);
            command.run()
        }
        Command::Plugin(command) => command.run(),
        Command::Rojo(args) => run_rojo(options.verbose, args),
    }
}

/// Print a failure and say with which status to end.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let mut stderr = std::io::stderr().lock();
    // Without a standard error there is nobody to tell.
    let _ = writeln!(stderr, "error: {error:#}");
    if let Some(Failure { hint: Some(hint), .. }) = error.downcast_ref() {
        let _ = writeln!(stderr, "next:  {hint}");
    }
    ExitCode::FAILURE
}

/// Rojo parses its own command line, so that every flag of its means what it means there.
fn run_rojo(verbose: u8, args: Vec<OsString>) -> anyhow::Result<()> {
    use clap3::Parser as _;

    let args = std::iter::once(OsString::from("rojo-mcp")).chain(args);
    let options = librojo::cli::Options::try_parse_from(args).unwrap_or_else(|error| error.exit());
    start_logging(verbose.max(options.global.verbosity));
    options.run()
}

fn start_logging(verbose: u8) {
    let filter = match verbose {
        // notify warns of watches that ended with their folder.
        0 => "warn,notify=error,rojo_mcp=info,studio=warn",
        1 => "info,notify=warn,rojo_mcp=debug,studio=info",
        _ => "trace",
    };
    let env = env_logger::Env::default().default_filter_or(filter);
    env_logger::Builder::from_env(env).format_target(false).target(env_logger::Target::Stderr).init();
}

/// Print for the person at the terminal.
#[expect(clippy::print_stdout, reason = "the one place that prints to standard output")]
fn say(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn rojo_has_a_help_for_each_command_that_we_pass_on() {
        for command in ["init", "build", "sourcemap", "syncback", "upload", "fmt-project", "doc"] {
            assert!(ROJO_COMMANDS.contains(command));
            let parsed = {
                use clap3::Parser as _;
                librojo::cli::Options::try_parse_from(["rojo-mcp", command, "--help"])
            };
            let error = parsed.expect_err("help is an early exit");
            assert_eq!(error.kind(), clap3::ErrorKind::DisplayHelp, "{command}");
        }
    }
}
