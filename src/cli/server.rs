//! The server as `serve` and `mcp` start it.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{Failure, ServerOptions, port::Holder, reach};
use crate::{
    Server, ServerConfig,
    attach::{Claim, ServeFile},
    pairing::{Pairing, PairingList},
    session::{ServeSession, SessionError, find_project},
    store::Store,
};

/// How long the start waits for the headless Studio.
#[cfg(feature = "headless")]
const STUDIO_PATIENCE: Duration = Duration::from_secs(10);

/// How long threads that cannot be interrupted may hold the end of the process.
const STRAGGLERS: Duration = Duration::from_millis(200);

/// Rojo's port.
pub(super) const DEFAULT_PORT: u16 = 34872;

/// A server with, perhaps, a headless Studio.
pub(super) struct Running {
    pub(super) server: Server,
    pub(super) session: Arc<ServeSession>,
    #[cfg(feature = "headless")]
    studio: Option<crate::headless::HeadlessStudio>,
    claim: Option<Claim>,
}

/// A project with what is remembered of it.
pub(super) struct Loaded {
    session: Arc<ServeSession>,
    store: Store,
}

/// Load the project. Takes as long as reading all its files.
fn load(project: &Path) -> Result<Loaded, Failure> {
    let failed = |error: SessionError| Failure::new(error.to_string(), reach::next_after(&error));
    // The same state, whether the folder is named or the file.
    let project = find_project(project).map_err(failed)?;
    std::thread::scope(|scope| {
        let store = scope.spawn(|| Store::of_project(&project));
        let session = ServeSession::start(&project).map_err(failed)?;
        let store = store.join().map_err(|_| Failure::new("opening the project's state failed", "report this"))?;
        Ok(Loaded { session, store })
    })
}

/// Load the project beside what else goes on.
pub(super) async fn load_aside(project: &Path) -> Result<Loaded, Failure> {
    let project = project.to_path_buf();
    let loaded = tokio::task::spawn_blocking(move || load(&project)).await;
    loaded.map_err(|error| Failure::new(format!("loading the project failed: {error}"), "report this"))?
}

/// Bind, serve, start the headless Studio if it is wanted, and let others find the server by
/// `claim`. `default_port` is used when neither the command line nor the project names one.
pub(super) async fn start(
    options: &ServerOptions,
    Loaded { session, store }: Loaded,
    default_port: Option<u16>,
    claim: Option<Claim>,
    shutdown: &CancellationToken,
) -> Result<Running, Failure> {
    if options.write_outside {
        session.allow_writes_outside();
    }
    let project = session.project();
    let ip = options.address.or(project.serve_address).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let port = options.port.or(default_port).or(project.serve_port).unwrap_or(DEFAULT_PORT);
    let address = SocketAddr::new(ip, port);
    let listener = match TcpListener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => return Err(cannot_bind(address, &error).await),
    };
    let allowed_hosts = if options.allowed_hosts.is_empty() {
        project.serve_allowed_hosts.clone()
    } else {
        options.allowed_hosts.clone()
    };
    let end = shutdown.child_token();
    let pairing = Arc::new(Pairing::new(PairingList::of_user(), options.require_token));
    let config = ServerConfig { session: Arc::clone(&session), store, allowed_hosts, pairing, shutdown: end.clone() };
    let server = Server::start(listener, config)
        .map_err(|error| Failure::new(format!("the server on {address} did not start: {error}"), "report this"))?;
    #[cfg(feature = "headless")]
    let studio = match options.headless {
        true => {
            let studio = match headless(&session, &server, options).await {
                Ok(studio) => studio,
                Err(failure) => {
                    // The port must be free when it is tried again.
                    end.cancel();
                    server.stopped().await;
                    return Err(failure);
                }
            };
            until_live(&server.backend).await;
            Some(studio)
        }
        false => None,
    };
    let claim = publish(claim, &server, &session);
    Ok(Running {
        #[cfg(feature = "headless")]
        studio,
        claim,
        server,
        session,
    })
}

/// Let other commands of this user find the server.
fn publish(claim: Option<Claim>, server: &Server, session: &ServeSession) -> Option<Claim> {
    let mut claim = claim?;
    let told = claim.publish(ServeFile {
        pid: std::process::id(),
        address: server.address,
        token: server.token.clone(),
        version: crate::VERSION.to_owned(),
        requires_token: server.pairing.is_required(),
        project: session.project().file.clone(),
    });
    if let Err(error) = told {
        log::warn!("other commands will not find this server, since serve.json cannot be written: {error}");
    }
    Some(claim)
}

/// Wait, for a while, until a Studio has taken the tree in, so that the first call finds it.
#[cfg(feature = "headless")]
async fn until_live(backend: &crate::mcp::Backend) {
    use crate::core::{
        bridge::{Answer, Ask},
        status::LinkStatus,
    };

    let live = async {
        let wait = Duration::from_millis(10);
        while !matches!(
            backend.call(None, wait, Ask::Status(backend.hub.owner()), None).await,
            Ok(Answer::Status { studios, .. }) if studios.iter().any(|studio| studio.link == LinkStatus::Live)
        ) {
            tokio::time::sleep(wait).await;
        }
    };
    if tokio::time::timeout(STUDIO_PATIENCE, live).await.is_err() {
        log::warn!("the headless Studio is slow to connect; calls say when there is none");
    }
}

impl Running {
    /// Wait for the end of everything, once it was asked for.
    pub(super) async fn stopped(self) {
        #[cfg(feature = "headless")]
        if let Some(studio) = self.studio {
            studio.stop().await;
        }
        self.server.stopped().await;
        if let Some(claim) = self.claim {
            claim.retire();
        }
    }
}

#[cfg(feature = "headless")]
async fn headless(
    session: &Arc<ServeSession>,
    server: &Server,
    options: &ServerOptions,
) -> Result<crate::headless::HeadlessStudio, Failure> {
    use crate::headless::{HeadlessConfig, HeadlessStudio, Knobs};

    let failed = |error: String| Failure::new(format!("the headless Studio did not start: {error}"), "report this");
    let (session, pairing, address) = (Arc::clone(session), Arc::clone(&server.pairing), server.address);
    let (is_live, is_two_way) = (options.live || options.two_way, options.two_way);
    let started = tokio::task::spawn_blocking(move || {
        let project = session.project();
        let mut settings = serde_json::Map::new();
        settings.insert("RojoMcpServer".into(), crate::attach::from_this_machine(address).to_string().into());
        settings.insert("RojoMcpOneShotSync".into(), (!is_live).into());
        settings.insert("RojoMcpTwoWaySync".into(), is_two_way.into());
        if pairing.is_required() {
            let realm = pairing.realm().map_err(|error| error.to_string())?;
            settings.insert(format!("RojoMcpPairing:{realm}"), pairing.key_for_here().secret().into());
        }
        let config = HeadlessConfig {
            place: session.place_model(),
            plugin: crate::plugin_model::build().map_err(|error| error.to_string())?,
            settings,
            place_id: project.serve_place_ids.iter().flatten().copied().min().unwrap_or(0),
            place_name: project.name.clone(),
            knobs: Knobs::default(),
        };
        HeadlessStudio::start(config).map_err(|error| error.to_string())
    });
    started.await.map_err(|error| failed(error.to_string()))?.map_err(failed)
}

async fn cannot_bind(address: SocketAddr, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::AddrInUse {
        let holder = Holder::of(address).await;
        let hint = format!("{}, or take another --port (0 takes a free one)", holder.next());
        return Failure::new(format!("cannot listen on {address}: it is {holder}"), hint);
    }
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "the system reserves this port: take another --port, such as 34872",
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address: leave out --address",
        _ => "take another --port or --address",
    };
    Failure::new(format!("cannot listen on {address}: {error}"), hint)
}

/// Ends when the person or the system asks the process to stop.
pub(super) async fn asked_to_stop() {
    #[cfg(unix)]
    {
        let terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
        match terminate {
            Ok(mut terminate) => tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            },
            Err(_) => wait_for_ctrl_c().await,
        }
    }
    #[cfg(not(unix))]
    wait_for_ctrl_c().await;
}

async fn wait_for_ctrl_c() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without signals the process ends when it is killed.
        std::future::pending::<()>().await;
    }
}

/// Run a whole command on a runtime of its own.
pub(super) fn run<T>(command: impl Future<Output = Result<T, Failure>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("the runtime did not start: {error}"), "free some memory or threads"))?;
    let outcome = runtime.block_on(command);
    // A thread that waits on the disk or on standard input must not hold the process back.
    runtime.shutdown_timeout(STRAGGLERS);
    Ok(outcome?)
}
