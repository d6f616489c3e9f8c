//! `serve`: the main job.

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::{Failure, ServerOptions, reach, say, server};
use crate::session::Health;

/// Serve a project to Roblox Studio and to agents.
#[derive(Debug, Args)]
pub(super) struct ServeCommand {
    #[command(flatten)]
    options: ServerOptions,
}

impl ServeCommand {
    pub(super) fn run(self) -> anyhow::Result<()> {
        server::run(self.serve())
    }

    async fn serve(self) -> Result<(), Failure> {
        let options = self.options;
        let stop = server::asked_to_stop();
        tokio::pin!(stop);
        let claim = reach::claim_for_serving(&options.project).await?;
        let loaded = tokio::select! {
            loaded = server::load_aside(&options.project) => loaded?,
            () = &mut stop => return Ok(()),
        };
        let shutdown = CancellationToken::new();
        let running = server::start(&options, loaded, None, claim, &shutdown).await?;
        say(&banner(&running));
        let mut health = running.session.health();
        let outcome = tokio::select! {
            () = stop => Ok(()),
            Ok(dead) = health.wait_for(|health| matches!(health, Health::Dead { .. })) => {
                let why = match &*dead {
                    Health::Dead { reason } => reason.clone(),
                    Health::Live | Health::Behind { .. } => String::new(),
                };
                Err(Failure::new(format!("the files are no longer followed: {why}"), "start it again, and report this"))
            }
        };
        shutdown.cancel();
        tokio::select! {
            () = running.stopped() => {}
            // Asked twice: at once.
            () = server::asked_to_stop() => {}
        }
        outcome
    }
}

fn banner(running: &server::Running) -> String {
    let project = running.session.project();
    let address = running.server.address;
    let mut text = format!(
        "rojo-mcp {} serves {}\n  Address: {}\n  Port:    {}\n  Agents:  http://{}/mcp\n",
        crate::VERSION,
        project.name,
        if address.ip().is_loopback() { "localhost".to_owned() } else { address.ip().to_string() },
        address.port(),
        crate::host_and_port(address),
    );
    for problem in running.session.problems() {
        text.push_str(&format!("  Problem: {problem}\n"));
    }
    if !address.ip().is_loopback() {
        text.push_str(
            "  Note:    Rojo's own API can be reached from other machines here, without a password;\n           \
             agents need the token there, and our plugin can connect from this machine only.\n",
        );
    }
    text.push_str("Press Ctrl-C to stop.");
    text
}
