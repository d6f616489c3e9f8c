//! `plugin`: the Studio plugin that this binary carries.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};

use super::{
    Failure,
    plugins_folder::{self, FILE, copies},
    say,
};
use crate::{
    core::text::for_terminal,
    pairing::{Key, Paired, PairingList},
    plugin_model,
};

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
    /// Forget plugins that are paired with this user's servers, by `install` or by a code.
    ///
    /// Where a token is required, their Studios lose their link within seconds.
    Unpair {
        /// Which one: its name or the beginning of that, or its id. All of them, if not said.
        #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
        which: Option<String>,
    },
}

impl PluginCommand {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.command {
            PluginSubcommand::Install { path } => install(path)?,
            PluginSubcommand::Build { output } => build(&output)?,
            PluginSubcommand::Unpair { which } => unpair(which.as_deref())?,
        }
        Ok(())
    }
}

fn build(output: &Path) -> Result<(), Failure> {
    if output.extension().is_none_or(|extension| extension != "rbxm") {
        let text = format!("{} does not end in .rbxm, and that is what is written", output.display());
        return Err(Failure::new(text, format!("choose another --output, such as {FILE}")));
    }
    let model = model(None)?;
    let hint = "check that the folder exists and that you may write there, or choose another --output";
    write_model(output, &model, false).map_err(|error| cannot(&format!("write {}", output.display()), &error, hint))?;
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
    let hint = "check that you may write there, or name another folder with --path";
    fs::create_dir_all(&folder).map_err(|error| cannot(&format!("make {}", folder.display()), &error, hint))?;
    let folder = folder.canonicalize().unwrap_or(folder);
    let pairings = PairingList::of_user();
    let key = key_for(&folder, &pairings);
    let model = model(Some(&key))?;
    let file = folder.join(FILE);
    let hint = "close Studio if it holds the file, check that you may write there, and try again";
    write_model(&file, &model, true).map_err(|error| cannot(&format!("write {}", file.display()), &error, hint))?;
    let written = fs::read(&file).map_err(|error| cannot(&format!("read {}", file.display()), &error, hint))?;
    if written != model {
        let what = format!("{} does not hold what was written to it", file.display());
        return Err(Failure::new(what, "look for what else writes there (a sync service, a virus scanner)"));
    }
    say(&format!("installed {} (version {})", file.display(), crate::VERSION));
    remove_others(&folder, &file)?;
    pair(&pairings, &key, &file);
    say("Studio loads it when it starts the next time.");
    Ok(())
}

/// The key of the copy that is there, if it still counts: a Studio that runs goes on with it. Else a
/// new one.
fn key_for(folder: &Path, pairings: &PairingList) -> Key {
    let known = copies(folder).unwrap_or_default().into_iter().filter_map(|copy| copy.key);
    known.into_iter().find(|key| pairings.knows(key)).unwrap_or_else(Key::random)
}

/// A plugin that could not be paired is as good, where no token is required.
fn pair(pairings: &PairingList, key: &Key, file: &Path) {
    match pairings.add(key.hash(), &format!("the plugin in {}", file.display())) {
        Ok(()) => say("It is paired with your servers on this machine."),
        Err(error) => say(&format!("It is not paired, which --require-token needs: {error}")),
    }
}

fn unpair(which: Option<&str>) -> Result<(), Failure> {
    let hint = "see to the rights of the state folder; a list that is broken can be deleted";
    let failed = |error: io::Error| cannot("forget the pairings", &error, hint);
    let list = PairingList::of_user();
    let gone = match which {
        None => list.clear().map_err(failed)?,
        Some(which) => {
            let meant = the_one(&list.all().map_err(failed)?, which)?;
            list.forget(|paired| paired.hash.is(&meant.hash)).map_err(failed)?
        }
    };
    for paired in &gone {
        say(&format!("unpaired {}", in_words(paired)));
    }
    match which {
        _ if gone.is_empty() => say("Nothing was paired."),
        None => say("`rojo-mcp plugin install` pairs this machine's again."),
        // It need not be this machine's.
        Some(_) => {}
    }
    Ok(())
}

/// The plugin that a person means; never one of several.
fn the_one(all: &[Paired], which: &str) -> Result<Paired, Failure> {
    let meant: Vec<&Paired> = all.iter().filter(|paired| paired.is_meant_by(which)).collect();
    let listed = |some: &[&Paired]| some.iter().map(|paired| in_words(paired)).collect::<Vec<_>>().join("; ");
    match meant.as_slice() {
        [one] => Ok((*one).clone()),
        [] if all.is_empty() => {
            let hint = "`rojo-mcp plugin install` pairs this machine's";
            Err(Failure::new(format!("no plugin is called {which:?}: nothing is paired"), hint))
        }
        [] => {
            let hint = format!("name one of these, or none for all: {}", listed(&all.iter().collect::<Vec<_>>()));
            Err(Failure::new(format!("no plugin that is paired is called {which:?}; nothing was forgotten"), hint))
        }
        several => {
            let hint = format!("name one by its id: {}", listed(several));
            Err(Failure::new(
                format!("{} plugins may be meant by {which:?}; nothing was forgotten", several.len()),
                hint,
            ))
        }
    }
}

fn in_words(paired: &Paired) -> String {
    format!("{} (id {})", for_terminal(&paired.name), paired.id())
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

fn model(key: Option<&Key>) -> Result<Vec<u8>, Failure> {
    plugin_model::build_with(key)
        .map_err(|error| Failure::new(format!("the plugin could not be built: {error}"), "report this"))
}

fn cannot(what: &str, error: &io::Error, hint: &str) -> Failure {
    Failure::new(format!("cannot {what}: {error}"), hint)
}

/// Write beside the target and move into place, so that Studio never loads half a plugin.
#[expect(clippy::disallowed_methods, reason = "a build product, not a file of the project")]
fn write_model(output: &Path, model: &[u8], is_private: bool) -> io::Result<()> {
    let beside = output.with_extension(format!("rbxm.{}.tmp", std::process::id()));
    let written = write_file(&beside, model, is_private).and_then(|()| fs::rename(&beside, output));
    if written.is_err() {
        // Nothing more can be done about a file that cannot be removed.
        let _ = remove(&beside);
    }
    written
}

/// What is private is for the user alone. (Windows keeps the Plugins folder so.)
#[cfg_attr(not(unix), expect(unused_variables, reason = "the folder's rights count there"))]
fn write_file(file: &Path, model: &[u8], is_private: bool) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if is_private { 0o600 } else { 0o666 });
    options.open(file)?.write_all(model)
}

#[expect(clippy::disallowed_methods, reason = "a copy of our plugin, not a file of the project")]
fn remove(file: &Path) -> io::Result<()> {
    fs::remove_file(file)
}
