//! `mcp`: an agent starts us and speaks over standard input and output.
//!
//! Standard output carries JSON-RPC only; everything else goes to standard error. The project
//! loads while the agent already shakes hands; if that fails, every call answers why, because an
//! agent does not see standard error.

use std::{sync::Arc, time::Duration};

use clap::Args;
use rmcp::{ServiceExt, service::ServerInitializeError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Failure, ServerOptions, server};
use crate::{
    core::error::ToolError,
    mcp::{BackendCell, McpHandler, Started},
};

/// How long the server may take to stop once the agent has gone.
const STOP_PATIENCE: Duration = Duration::from_millis(1500);

/// Speak MCP on standard input and output, with the server in this process.
#[derive(Debug, Args)]
pub(super) struct McpCommand {
    #[command(flatten)]
    options: ServerOptions,
}

impl McpCommand {
    pub(super) fn run(self) -> anyhow::Result<()> {
        server::run(self.serve())
    }

    async fn serve(self) -> Result<(), Failure> {
        let shutdown = CancellationToken::new();
        let (fill, backend) = BackendCell::new();
        let server = tokio::spawn(keep_serving(self.options, fill, shutdown.clone()));
        let outcome = tokio::select! {
            outcome = talk(McpHandler::new(backend)) => outcome,
            () = server::asked_to_stop() => Ok(()),
        };
        shutdown.cancel();
        // A load that is under way is left behind.
        match tokio::time::timeout(STOP_PATIENCE, server).await {
            Ok(Ok(served)) => outcome.and(served),
            Ok(Err(_)) | Err(_) => outcome,
        }
    }
}

/// Speak until the agent closes standard input.
async fn talk(handler: McpHandler) -> Result<(), Failure> {
    let failed = |why: String| {
        Failure::new(format!("the agent's side ended badly: {why}"), "start this command from an MCP client")
    };
    match handler.serve(rmcp::transport::stdio()).await {
        Ok(service) => service.waiting().await.map(|_| ()).map_err(|error| failed(error.to_string())),
        // The agent closed standard input before it said anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Serve until `shutdown`; a start that fails is what every call answers from then on.
async fn keep_serving(
    options: ServerOptions,
    fill: watch::Sender<Option<Started>>,
    shutdown: CancellationToken,
) -> Result<(), Failure> {
    let outcome = load_and_serve(options, &fill, &shutdown).await;
    if let Err(failure) = &outcome {
        log::error!("{failure}");
        let hint = failure.hint.clone().unwrap_or_default();
        let started = Err(ToolError::failed(failure.message.clone(), hint));
        // Nobody waits any more when the agent has gone.
        let _ = fill.send(Some(started));
        shutdown.cancelled().await;
    }
    outcome
}

async fn load_and_serve(
    options: ServerOptions,
    fill: &watch::Sender<Option<Started>>,
    shutdown: &CancellationToken,
) -> Result<(), Failure> {
    let project = options.project.clone();
    let loaded = tokio::task::spawn_blocking(move || server::load(&project))
        .await
        .map_err(|error| Failure::new(format!("loading the project failed: {error}"), "report this"))??;
    // A headless Studio is told where we are; a real one looks at the project's port.
    #[cfg(feature = "headless")]
    let default_port = options.headless.then_some(0);
    #[cfg(not(feature = "headless"))]
    let default_port = None;
    let running = server::start(&options, loaded, default_port, shutdown).await?;
    log::info!("listening on {}", crate::host_and_port(running.server.address));
    // Nobody waits any more when the agent has gone.
    let _ = fill.send(Some(Ok(Arc::clone(&running.server.backend))));
    shutdown.cancelled().await;
    running.stopped().await;
    Ok(())
}
