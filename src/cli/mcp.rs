//! `mcp`: an agent starts us and speaks over standard input and output.
//!
//! Standard output carries JSON-RPC only; everything else goes to standard error. The project's
//! server answers, be it in this process or in another ([`Bridge`]); if there is none and none can
//! be started, every call answers why, because an agent does not see standard error.

use std::{sync::Arc, time::Duration};

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::{
    Failure, ServerOptions,
    bridge::{Bridge, Opened},
    lines::Lines,
    reach::{self, Reached},
    server,
};

/// How long the server may take to stop once the agent has gone.
const STOP_PATIENCE: Duration = Duration::from_millis(1500);

/// Speak MCP on standard input and output, for agents that start their servers. Uses the running
/// server of the project, or starts one in this process.
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
        let options = Arc::new(self.options);
        let open = {
            let shutdown = shutdown.clone();
            move || open(Arc::clone(&options), shutdown.clone())
        };
        let mut bridge = Bridge::new(Lines::new(tokio::io::stdin(), tokio::io::stdout()), open);
        tokio::select! {
            () = bridge.run() => {}
            () = server::asked_to_stop() => {}
        }
        shutdown.cancel();
        // A load that is under way is left behind.
        tokio::time::timeout(STOP_PATIENCE, bridge.close()).await.unwrap_or(Ok(()))
    }
}

/// Attach to the project's server, or start it here.
async fn open(options: Arc<ServerOptions>, shutdown: CancellationToken) -> Result<Opened, Failure> {
    let claim = match reach::reach(&options.project).await? {
        Reached::Attached(stream, server) => {
            if options.require_token {
                reach::requires_token(&server)?;
            }
            return Ok(Opened::Attached(Box::new(stream)));
        }
        Reached::Vacant(claim) => claim,
    };
    let loaded = server::load_aside(&options.project).await?;
    let running = server::start(&options, loaded, options.default_port(), claim, &shutdown).await?;
    log::info!("listening on {}", crate::host_and_port(running.server.address));
    Ok(Opened::Here(Box::new(running)))
}
