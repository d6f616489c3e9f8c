//! `plugin`: the Studio plugin that this binary carries.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Failure, say};

/// The Studio plugin.
#[derive(Debug, Args)]
pub(super) struct PluginCommand {
    #[command(subcommand)]
    command: PluginSubcommand,
}

#[derive(Debug, Subcommand)]
enum PluginSubcommand {
    /// Write the plugin to a model file. Put it into Studio's Plugins folder.
    Build {
        /// Where to write it.
        #[arg(short, long, default_value = "RojoMcp.rbxm")]
        output: PathBuf,
    },
}

impl PluginCommand {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let PluginSubcommand::Build { output } = self.command;
        if output.extension().is_none_or(|extension| extension != "rbxm") {
            let text = format!("{} does not end in .rbxm, and that is what is written", output.display());
            return Err(Failure::new(text, "choose another --output, such as RojoMcp.rbxm").into());
        }
        let model = crate::plugin_model::build()?;
        write_model(&output, &model)?;
        say(&format!("wrote {} ({} bytes)", output.display(), model.len()));
        Ok(())
    }
}

/// Write beside the target and move into place, so that Studio never loads half a plugin.
#[expect(clippy::disallowed_methods, reason = "a build product, not a file of the project")]
fn write_model(output: &std::path::Path, model: &[u8]) -> Result<(), Failure> {
    let hint = "check that the folder exists and that you may write there, or choose another --output";
    let failed = |error: std::io::Error| Failure::new(format!("cannot write {}: {error}", output.display()), hint);
    let beside = output.with_extension(format!("rbxm.{}.tmp", std::process::id()));
    std::fs::write(&beside, model).map_err(failed)?;
    std::fs::rename(&beside, output).map_err(|error| {
        // Nothing more can be done about a file that cannot be removed.
        let _ = std::fs::remove_file(&beside);
        failed(error)
    })
}
