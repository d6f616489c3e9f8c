//! Rojo itself, in a process of its own: its panics end that process and not the test.
//!
//! The process is the caller's own executable again. A test binary gives it a test named
//! `stock_rojo` that calls [`run_if_asked`]; a bench calls that first in `main`.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Set in the process that shall be Rojo.
const ASKED: &str = "ROJO_MCP_TEST_STOCK";

/// In the process that [`Spare::start`] began: wait for a port and a project, then be `rojo serve`.
pub fn run_if_asked() {
    if std::env::var_os(ASKED).is_none() {
        return;
    }
    // As Rojo's own `main` does: a panic on any thread is the end.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("Rojo crashed: {panic}");
        std::process::exit(101);
    }));
    let mut input = BufReader::new(std::io::stdin());
    let mut line = String::new();
    input.read_line(&mut line).expect("a line");
    let Some((port, project)) = line.trim_end_matches('\n').split_once('\t') else { std::process::exit(0) };
    std::thread::spawn(move || {
        _ = input.read_to_end(&mut Vec::new()); // ends with the parent
        std::process::exit(0);
    });
    let command = librojo::cli::ServeCommand {
        project: PathBuf::from(project),
        address: None,
        port: Some(port.parse().expect("a port")),
        allowed_hosts: Vec::new(),
    };
    let global = librojo::cli::GlobalOptions { verbosity: 0, color: librojo::cli::ColorChoice::Never };
    if let Err(error) = command.run(global) {
        eprintln!("Rojo does not serve it: {error:#}");
    }
    std::process::exit(1);
}

/// A running Rojo. Ends when dropped.
pub struct Stock {
    pub child: Child,
    pub port: u16,
}

impl Stock {
    /// Whether its process still runs. It may hang nevertheless.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        _ = self.child.kill(); // it may have ended
        _ = self.child.wait();
    }
}

/// A process that is ready to become Rojo: starting one takes longer than reading a small project.
pub struct Spare(Child);

impl Spare {
    pub fn start() -> Self {
        let child = Command::new(std::env::current_exe().expect("this executable"))
            .args(["stock_rojo", "--exact", "--nocapture"])
            .env(ASKED, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(if std::env::var_os("ROJO_MCP_TEST_SHOW_STOCK").is_some() {
                Stdio::inherit()
            } else {
                Stdio::null()
            })
            .spawn();
        Self(child.expect("this executable starts again"))
    }

    pub fn serve(mut self, project: &Path) -> Stock {
        let port = free_port();
        let input = self.0.stdin.as_mut().expect("it is piped");
        writeln!(input, "{port}\t{}", project.display()).expect("it waits for this line");
        Stock { child: self.0, port }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}
