//! `doctor`: why it does not work, and what to do.

use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

use anstyle::AnsiColor;
use clap::Args;
use serde_json::{Value, json};

use super::{
    Failure,
    client::{Client, Told},
    exit::Exit,
    plugins_folder::{self, copies},
    port::Holder,
    progress::ProgressLine,
    reach,
    server::{self, DEFAULT_PORT},
    show,
};
use crate::{
    attach::{self, Claim, ServeFile},
    core::text::for_terminal,
    pairing::{PairingList, PairingReport},
    plugin_model,
    session::{ServeSession, find_project},
    state::StateFolder,
};

/// Look at everything that a working set-up needs, and say what to do about what is missing.
///
/// Ends with 1 if something is wrong that must be mended.
#[derive(Debug, Args)]
pub(super) struct DoctorCommand {
    /// The project: a folder or a project file.
    #[arg(default_value = ".")]
    project: PathBuf,

    /// Studio's Plugins folder, where it is not the usual one.
    #[arg(long, value_name = "FOLDER")]
    plugins: Option<PathBuf>,
}

/// One line of the report.
struct Check {
    grade: Grade,
    name: &'static str,
    what: String,
    next: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Grade {
    Ok,
    Warn,
    Fail,
}

impl Check {
    fn ok(name: &'static str, what: impl Into<String>) -> Self {
        Self { grade: Grade::Ok, name, what: what.into(), next: String::new() }
    }

    fn warn(name: &'static str, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { grade: Grade::Warn, name, what: what.into(), next: next.into() }
    }

    fn fail(name: &'static str, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { grade: Grade::Fail, name, what: what.into(), next: next.into() }
    }

    fn print(&self) {
        let (word, colour) = match self.grade {
            Grade::Ok => ("ok  ", AnsiColor::Green),
            Grade::Warn => ("warn", AnsiColor::Yellow),
            Grade::Fail => ("FAIL", AnsiColor::Red),
        };
        let style = colour.on_default();
        let mut text = format!("{style}{word}{style:#}  {:8}  {}\n", self.name, for_terminal(&self.what));
        if !self.next.is_empty() {
            text.push_str(&format!("                next: {}\n", for_terminal(&self.next)));
        }
        show::print(&text);
    }
}

impl DoctorCommand {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        server::run(self.look())
    }

    async fn look(self) -> Result<Exit, Failure> {
        let (mut checks, wanted) = project(&self.project).await;
        let state = find_project(&self.project).ok().map(|file| StateFolder::of(&file));
        let mut server = None;
        if let Some(state) = state {
            let (state_checks, running) = state_and_server(state).await;
            checks.extend(state_checks);
            server = running;
        }
        checks.push(port(wanted, server.as_ref()).await);
        if let Some(server) = &server {
            checks.extend(attach::pairing_of(server).await.iter().flat_map(pairing));
            checks.extend(studios(&self.project).await);
        }
        checks.push(plugin(self.plugins));
        checks.iter().for_each(Check::print);
        let failed = checks.iter().any(|check| check.grade == Grade::Fail);
        Ok(if failed { Exit::Failed } else { Exit::Done })
    }
}

/// Whether the project can be served, and the address that it would be served at.
async fn project(path: &Path) -> (Vec<Check>, SocketAddr) {
    let wanted = path.to_path_buf();
    let loaded = tokio::task::spawn_blocking(move || ServeSession::start(&wanted)).await;
    let default = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT);
    let session = match loaded {
        Ok(Ok(session)) => session,
        Ok(Err(error)) => return (vec![Check::fail("project", error.to_string(), reach::next_after(&error))], default),
        Err(error) => {
            let what = format!("reading the project failed: {error}");
            return (vec![Check::fail("project", what, "report this")], default);
        }
    };
    let info = session.project();
    let mut checks = vec![Check::ok("project", format!("{:?}, {}", info.name, info.file.display()))];
    checks.extend(session.problems().into_iter().map(|problem| {
        let path = problem.path.map(|path| format!("{}: ", path.display())).unwrap_or_default();
        Check::warn("project", format!("left out: {path}{}", problem.message), "mend the file")
    }));
    let ip = info.serve_address.unwrap_or(default.ip());
    (checks, SocketAddr::new(ip, info.serve_port.unwrap_or(DEFAULT_PORT)))
}

/// Whether there is a place for state, and who serves.
async fn state_and_server(state: std::io::Result<StateFolder>) -> (Vec<Check>, Option<ServeFile>) {
    let unusable = |what: String| {
        let next = "see to its rights and the free disk space, or name another folder in ROJO_MCP_STATE";
        (vec![Check::fail("state", what, next)], None)
    };
    let state = match state {
        Ok(state) => state,
        Err(error) => return unusable(format!("there is no folder for this project's state: {error}")),
    };
    let folder = state.path("").display().to_string();
    let claimed = Claim::take(&state);
    let writable = Check::ok("state", folder.clone());
    match claimed {
        Err(error) => unusable(format!("{folder} cannot be written: {error}")),
        Ok(Some(_)) => {
            let server = Check::warn("server", "none of this project runs", "start one: rojo-mcp serve");
            (vec![writable, server], None)
        }
        Ok(None) => match reach::running(&state).await {
            Ok(file) => (vec![writable, Check::ok("server", reach::describe(&file))], Some(file)),
            Err(failure) => {
                let next = failure.hint.clone().unwrap_or_default();
                (vec![writable, Check::fail("server", failure.message, next)], None)
            }
        },
    }
}

/// Whether `wanted` is ours or could be.
async fn port(wanted: SocketAddr, server: Option<&ServeFile>) -> Check {
    let name = "port";
    if server.is_some_and(|server| server.address.port() == wanted.port()) {
        return Check::ok(name, format!("{wanted}, in use by that server"));
    }
    let elsewhere = server.map(|server| format!(" (the server runs at {})", server.address)).unwrap_or_default();
    match tokio::net::TcpListener::bind(wanted).await {
        Ok(_) => Check::ok(name, format!("{wanted} is free{elsewhere}")),
        Err(error) => match error.kind() {
            ErrorKind::AddrInUse => {
                let holder = Holder::of(wanted).await;
                let what = format!("{wanted} is {holder}{elsewhere}");
                match server {
                    Some(_) => {
                        Check::warn(name, what, "Studio looks there: see that its plugin knows the server's port")
                    }
                    None => {
                        let next = "or serve at another --port (or servePort in the project)";
                        Check::fail(name, what, format!("{}, {next}", holder.next()))
                    }
                }
            }
            ErrorKind::PermissionDenied => Check::fail(
                name,
                format!("{wanted} is reserved by the system, though nothing need listen there: {error}"),
                "serve at another --port, above 1024; on Windows `netsh int ipv4 show excludedportrange tcp` lists them",
            ),
            ErrorKind::AddrNotAvailable => Check::fail(
                name,
                format!("this machine does not have the address of {wanted}"),
                "take serveAddress out of the project file, or name another --address",
            ),
            _ => Check::fail(name, format!("{wanted} cannot be used: {error}"), "serve at another --port or --address"),
        },
    }
}

/// Whether Studios must prove themselves, and which could not.
fn pairing(report: &PairingReport) -> Vec<Check> {
    let refused = report.refused.iter().map(|refused| Check::warn("pairing", refused.sentence(), report.next()));
    let required = format!("a token is required; paired plugins of this user: {}", report.paired);
    let required = report.required.then(|| Check::ok("pairing", required));
    required.into_iter().chain(refused).collect()
}

/// Which Studios the running server knows.
async fn studios(project: &Path) -> Vec<Check> {
    let asked = async {
        let mut client = Client::attach(project).await?.ok_or_else(|| Failure::new("it has just stopped", ""))?;
        let answer = client.call("status", json!({}), &mut ProgressLine::none()).await;
        client.close().await;
        answer
    };
    let structure = match asked.await {
        Ok(Ok(Told { structure, .. })) => structure,
        Ok(Err(error)) => return vec![Check::fail("studio", error.message, error.hint)],
        Err(failure) => return vec![Check::fail("studio", failure.message, "run `rojo-mcp doctor` again")],
    };
    let studios = structure["studios"].as_array().cloned().unwrap_or_default();
    if studios.is_empty() {
        let next = "open the place in Studio with the plugin; it connects by itself";
        return vec![Check::warn("studio", "none is connected", next)];
    }
    studios.iter().map(studio).collect()
}

fn studio(studio: &Value) -> Check {
    let text = |name: &str| studio[name].as_str().unwrap_or_default().to_owned();
    let what =
        format!("{} {:?}: {}, {}, mode {}", text("studio"), text("place"), text("link"), text("role"), text("mode"));
    let version = studio["pluginVersion"].as_str();
    match version {
        Some(version) if version != crate::VERSION => Check::warn(
            "studio",
            format!("{what}; its plugin is {version}, this is {}", crate::VERSION),
            "rojo-mcp plugin install, then start Studio again",
        ),
        None => Check::warn("studio", format!("{what}; a foreign plugin"), "rojo-mcp plugin install, for all tools"),
        Some(_) if text("link") != "live" => Check::warn("studio", what, "wait, or look whether Studio shows a dialog"),
        Some(_) => Check::ok("studio", what),
    }
}

/// Whether our plugin is installed, once, and is this version's.
fn plugin(folder: Option<PathBuf>) -> Check {
    let name = "plugin";
    let install = match &folder {
        Some(folder) => format!("rojo-mcp plugin install --path {:?}", folder.display().to_string()),
        None => "rojo-mcp plugin install".to_owned(),
    };
    let Some(folder) = folder.or_else(plugins_folder::find) else {
        return Check::ok(name, "Studio has no Plugins folder on this system (--plugins names one)");
    };
    let renew = format!("{install}, then start Studio again");
    let place = folder.display();
    let found = match copies(&folder) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Check::fail(name, format!("{place} cannot be read: {error}"), "see to its rights"),
    };
    match found.as_slice() {
        [] => Check::warn(name, format!("not installed in {place}"), renew),
        [copy] if plugin_model::build_with(copy.key.as_ref()).is_ok_and(|ours| copy.bytes == ours) => {
            let is_paired = copy.key.as_ref().is_some_and(|key| PairingList::of_user().knows(key));
            let paired = if is_paired { "paired" } else { "not paired" };
            Check::ok(name, format!("{} (version {}, {paired})", copy.file.display(), copy.version))
        }
        [copy] => {
            let what = format!(
                "{} is another build (version {}, this is {})",
                copy.file.display(),
                copy.version,
                crate::VERSION
            );
            Check::warn(name, what, renew)
        }
        several => {
            let files: Vec<String> = several.iter().map(|copy| copy.file.display().to_string()).collect();
            let what = format!("several copies, which would all connect: {}", files.join(", "));
            Check::fail(name, what, format!("{install} leaves one"))
        }
    }
}
