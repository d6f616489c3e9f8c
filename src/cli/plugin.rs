//! `plugin`: the Studio plugin that this binary carries.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};

use super::{
    Failure,
    plugins_folder::{self, FILE, copies},
    say,
};
use crate::plugin_model;

/// The Studio plugin.
#[derive(Debug, Args)]
pub(super) struct PluginCommand {
    #[command(subcommand)]
    command: PluginSubcommand,
}

#[derive(Debug, Subcommand)]
enum PluginSubcommand {
    /// Put the plugin into Studio's Plugins folder, in place of any older copy of it.
    Install {
        /// The Plugins folder. Without it: %LOCALAPPDATA%\Roblox\Plugins on Windows,
        /// ~/Documents/Roblox/Plugins on macOS, that of Vinegar elsewhere.
        #[arg(long, value_name = "FOLDER")]
        path: Option<PathBuf>,
    },
    /// Write the plugin to a model file.
    Build {
        /// Where to write it.
        #[arg(short, long, default_value = FILE)]
        output: PathBuf,
    },
}

impl PluginCommand {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.command {
            PluginSubcommand::Install { path } => install(path)?,
            PluginSubcommand::Build { output } => build(&output)?,
        }
        Ok(())
    }
}

fn build(output: &Path) -> Result<(), Failure> {
    if output.extension().is_none_or(|extension| extension != "rbxm") {
        let text = format!("{} does not end in .rbxm, and that is what is written", output.display());
        return Err(Failure::new(text, format!("choose another --output, such as {FILE}")));
    }
    let model = model()?;
    let hint = "check that the folder exists and that you may write there, or choose another --output";
    write_model(output, &model).map_err(|error| cannot(&format!("write {}", output.display()), &error, hint))?;
    say(&format!("wrote {} ({} bytes)", output.display(), model.len()));
    Ok(())
}

fn install(path: Option<PathBuf>) -> Result<(), Failure> {
    let folder = path.or_else(plugins_folder::find).ok_or_else(|| {
        let what = "where Studio looks for plugins is not known on this system";
        Failure::new(
            what,
            "name the folder (in Studio: Plugins, Plugins Folder): rojo-mcp plugin install --path FOLDER",
        )
    })?;
    let model = model()?;
    let hint = "check that you may write there, or name another folder with --path";
    fs::create_dir_all(&folder).map_err(|error| cannot(&format!("make {}", folder.display()), &error, hint))?;
    let folder = folder.canonicalize().unwrap_or(folder);
    let file = folder.join(FILE);
    let hint = "close Studio if it holds the file, check that you may write there, and try again";
    write_model(&file, &model).map_err(|error| cannot(&format!("write {}", file.display()), &error, hint))?;
    let written = fs::read(&file).map_err(|error| cannot(&format!("read {}", file.display()), &error, hint))?;
    if written != model {
        let what = format!("{} does not hold what was written to it", file.display());
        return Err(Failure::new(what, "look for what else writes there (a sync service, a virus scanner)"));
    }
    say(&format!("installed {} (version {})", file.display(), crate::VERSION));
    remove_others(&folder, &file)?;
    say("Studio loads it when it starts the next time.");
    Ok(())
}

/// Two of us in one Studio would both connect.
fn remove_others(folder: &Path, ours: &Path) -> Result<(), Failure> {
    let hint = "remove the file by hand: two copies of the plugin would both connect";
    let found = copies(folder).map_err(|error| cannot(&format!("read {}", folder.display()), &error, hint))?;
    for copy in found.into_iter().filter(|copy| copy.file != ours) {
        let file = copy.file.display();
        remove(&copy.file).map_err(|error| cannot(&format!("remove the older copy {file}"), &error, hint))?;
        say(&format!("removed an older copy: {file} (version {})", copy.version));
    }
    Ok(())
}

fn model() -> Result<Vec<u8>, Failure> {
    plugin_model::build()
        .map_err(|error| Failure::new(format!("the plugin could not be built: {error}"), "report this"))
}

fn cannot(what: &str, error: &io::Error, hint: &str) -> Failure {
    Failure::new(format!("cannot {what}: {error}"), hint)
}

/// Write beside the target and move into place, so that Studio never loads half a plugin.
#[expect(clippy::disallowed_methods, reason = "a build product, not a file of the project")]
fn write_model(output: &Path, model: &[u8]) -> io::Result<()> {
    let beside = output.with_extension(format!("rbxm.{}.tmp", std::process::id()));
    let written = fs::write(&beside, model).and_then(|()| fs::rename(&beside, output));
    if written.is_err() {
        // Nothing more can be done about a file that cannot be removed.
        let _ = remove(&beside);
    }
    written
}

#[expect(clippy::disallowed_methods, reason = "a copy of our plugin, not a file of the project")]
fn remove(file: &Path) -> io::Result<()> {
    fs::remove_file(file)
}
