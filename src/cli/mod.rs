//! The command line: one file a command; what is Rojo's goes to Rojo.

mod asked;
mod bridge;
mod client;
mod doctor;
mod exit;
mod lines;
mod logs;
mod mcp;
mod plugin;
mod plugins_folder;
mod port;
mod progress;
mod reach;
mod serve;
mod server;
mod show;
mod status;
mod sync;
mod typo;
mod undo;

use std::{ffi::OsString, io::Write as _, path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};

use self::exit::Exit;
use crate::core::text::for_terminal;

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
    Serve(serve::ServeCommand),
    Mcp(mcp::McpCommand),
    Sync(sync::SyncCommand),
    Undo(undo::UndoCommand),
    Status(status::StatusCommand),
    Logs(logs::LogsCommand),
    Doctor(doctor::DoctorCommand),
    Plugin(plugin::PluginCommand),
    /// Any other command is Rojo's.
    #[command(external_subcommand)]
    Rojo(Vec<OsString>),
}

/// What `serve` and `mcp` share.
#[derive(Debug, Default, Clone, Args)]
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

    /// Want a token of everybody, on this machine too: agents send the server's (`rojo-mcp mcp` does),
    /// Studios must be paired (`rojo-mcp plugin install` does it), and Rojo's own plugin is refused.
    #[arg(long)]
    require_token: bool,

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
    exit: Exit,
}

impl Failure {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: Some(hint.into()), exit: Exit::Failed }
    }

    fn with(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }
}

/// Run the command that this process was started with.
///
/// # Errors
/// As the command fails. A usage error ends the process by itself, with status 2.
pub fn run() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    match options.command {
        Command::Rojo(_) => {}
        Command::Serve(_) | Command::Mcp(_) => {
            start_logging(options.verbose, "warn,notify=error,rojo_mcp=info,studio=warn")
        }
        // They say themselves what there is to say.
        _ => start_logging(options.verbose, "warn,notify=error,studio=off"),
    }
    let exit = match options.command {
        Command::Serve(command) => command.run().map(|()| Exit::Done),
        Command::Mcp(command) => command.run().map(|()| Exit::Done),
        Command::Sync(command) => command.run(),
        Command::Undo(command) => command.run(),
        Command::Status(command) => command.run(),
        Command::Logs(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Plugin(command) => command.run().map(|()| Exit::Done),
        Command::Rojo(args) => run_rojo(options.verbose, args).map(|()| Exit::Done),
    };
    exit.map(ExitCode::from)
}

/// Print a failure and say with which status to end.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let mut stderr = std::io::stderr().lock();
    // Without a standard error there is nobody to tell.
    let _ = writeln!(stderr, "error: {}", for_terminal(&format!("{error:#}")));
    let Some(failure) = error.downcast_ref::<Failure>() else { return ExitCode::FAILURE };
    if let Some(hint) = &failure.hint {
        let _ = writeln!(stderr, "next:  {}", for_terminal(hint));
    }
    failure.exit.into()
}

/// Whether `name` is a command of Rojo's; else an error with the one that was meant.
fn known(name: &str) -> Result<(), clap::Error> {
    use clap::{CommandFactory as _, error::ErrorKind};

    let rojos: Vec<String> = clap3_names();
    if rojos.iter().any(|known| known == name) {
        return Ok(());
    }
    let mut command = Options::command();
    let ours: Vec<String> = command.get_subcommands().map(|each| each.get_name().to_owned()).collect();
    let near = typo::nearest(name, ours.iter().chain(&rojos).map(String::as_str));
    let tip = near.map(|near| format!("\n\n  tip: a similar command exists: '{near}'")).unwrap_or_default();
    Err(command.error(ErrorKind::InvalidSubcommand, format!("there is no command '{name}'{tip}")))
}

/// The commands that Rojo's command line has.
fn clap3_names() -> Vec<String> {
    use clap3::IntoApp as _;

    let command = librojo::cli::Options::into_app();
    command.get_subcommands().map(|each| each.get_name().to_owned()).collect()
}

/// Rojo parses its own command line, so that every flag of its means what it means there.
fn run_rojo(verbose: u8, args: Vec<OsString>) -> anyhow::Result<()> {
    use clap3::Parser as _;

    if let Some(name) = args.first().and_then(|name| name.to_str()) {
        known(name).unwrap_or_else(|error| error.exit());
    }
    let args = std::iter::once(OsString::from("rojo-mcp")).chain(args);
    let options = librojo::cli::Options::try_parse_from(args).unwrap_or_else(|error| error.exit());
    start_logging(verbose.max(options.global.verbosity), "warn,notify=error,rojo_mcp=info");
    options.run()
}

/// `calm` is what is logged without `-v`. notify warns of watches that ended with their folder.
fn start_logging(verbose: u8, calm: &str) {
    let filter = match verbose {
        0 => calm,
        1 => "info,notify=warn,rojo_mcp=debug,studio=info",
        _ => "trace",
    };
    let env = env_logger::Env::default().default_filter_or(filter);
    env_logger::Builder::from_env(env).format_target(false).target(env_logger::Target::Stderr).init();
}

/// Print for the person at the terminal.
fn say(text: &str) {
    // Who reads it may have seen enough.
    let _ = writeln!(std::io::stdout().lock(), "{text}");
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
