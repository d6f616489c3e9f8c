//! `serve`: the main job.

use std::sync::Arc;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::{Failure, ServerOptions, reach, say, server, show};
use crate::{core::text::for_terminal, pairing::Pairing, session::Health};

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
            () = tell_refusals(Arc::clone(&running.server.pairing)) => Ok(()),
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

/// Say which Studios are refused, and the code that lets them in. Never ends before the server does.
async fn tell_refusals(pairing: Arc<Pairing>) {
    let mut refusals = pairing.refusals();
    let mut told = None;
    while refusals.changed().await.is_ok() {
        let asked = Arc::clone(&pairing);
        let Ok(report) = tokio::task::spawn_blocking(move || asked.report_unasked()).await else { continue };
        // A Studio that tries again is no news; another code is.
        let news = (report.code.clone(), report.refused.clone());
        if !report.refused.is_empty() && told.as_ref() != Some(&news) {
            say(&for_terminal(&show::refusals(&report)));
            told = Some(news);
        }
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
    if running.server.pairing.is_required() {
        text.push_str(
            "  Token:   required. Agents: `rojo-mcp mcp` sends it. Studio: its plugin must be paired, as\n           \
             `rojo-mcp plugin install` does; for any other a code is shown here when it connects.\n           \
             Rojo's own plugin is refused.\n",
        );
    } else if !address.ip().is_loopback() {
        text.push_str(
            "  Note:    Rojo's own API can be reached from other machines here, without a password\n           \
             (--require-token turns it off); agents need the token there, and Studio must be paired.\n",
        );
    }
    text.push_str("Press Ctrl-C to stop.");
    text
}
