//! What a file that is not there yet would be read as: so that no script is made that the project's
//! own rules ignore, or take for something else.

use std::path::Path;

use crossbeam_channel::{Sender, bounded};
use librojo::{InstanceContext, InstanceSnapshot, snapshot_from_vfs};
use memofs::{InMemoryFs, Vfs, VfsSnapshot};
use rbx_dom_weak::{
    types::{Enum, Variant},
    ustr,
};

use super::{disk, engine::Engine, globs::is_ignored, run::Command};
use crate::files::{Rules, ScriptFile};

/// `RunContext.Client`.
const RUNS_ON_CLIENTS: u32 = 2;

/// An instance that a file gives.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadAs {
    name: String,
    class: String,
    on_clients: bool,
}

impl Engine {
    /// What an empty file at `path` would be read as.
    ///
    /// # Errors
    /// As nothing, and why.
    pub fn would_read(&self, path: &Path) -> Result<ReadAs, String> {
        let state = self.board.state.read();
        let is_init = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("init."));
        let item = path.parent().filter(|_| is_init).unwrap_or(path);
        let folder = item.parent().unwrap_or(item);
        let ids = state.tree.get_ids_at_path(folder);
        let contexts = ids.iter().filter_map(|&id| Some(state.tree.get_metadata(id)?.context.clone()));
        let mut read = Err("its folder gives no instance".to_owned());
        for context in contexts {
            if self.mirror.roots.ignores(path) || is_ignored(&context, path) {
                return Err("globIgnorePaths ignores it".to_owned());
            }
            let one = read_alone(&context, item, path)?;
            if read.as_ref().is_ok_and(|other| *other != one) {
                return Err("its folder is in the project twice, by different rules".to_owned());
            }
            read = Ok(one);
        }
        read
    }
}

/// `item` is the file, or the folder that it makes a script of.
fn read_alone(context: &InstanceContext, item: &Path, path: &Path) -> Result<ReadAs, String> {
    let mut fs = InMemoryFs::new();
    let file = VfsSnapshot::file("");
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let snapshot = if item == path { file } else { VfsSnapshot::dir([(name, file)]) };
    fs.load_snapshot(item, snapshot).map_err(|error| error.to_string())?;
    let read = snapshot_from_vfs(context, &Vfs::new(fs), item).map_err(|error| format!("{error:#}"))?;
    let InstanceSnapshot { name, class_name, properties, .. } = read.ok_or("syncRules make nothing of it")?;
    let context = match properties.get(&ustr("RunContext")) {
        Some(Variant::Enum(context)) => *context,
        Some(Variant::EnumItem(item)) => Enum::from_u32(item.value),
        _ => Enum::from_u32(0),
    };
    let on_clients = class_name.as_str() == "LocalScript" || context.to_u32() == RUNS_ON_CLIENTS;
    Ok(ReadAs { name: name.into_owned(), class: class_name.to_string(), on_clients })
}

/// The project's rules, asked of the thread that knows them.
pub(super) fn rules(session: Sender<Command>) -> Rules {
    std::sync::Arc::new(move |path, name, kind| {
        let (reply, answer) = bounded(1);
        let command = Command::WouldRead { path: disk::normal(path), reply };
        let asked = session.send(command).ok().and_then(|()| answer.recv().ok());
        let read = asked.ok_or("the session no longer follows the files")??;
        let fits = match kind {
            ScriptFile::Module => read.class == "ModuleScript",
            ScriptFile::Server => read.class == "Script" && !read.on_clients,
            ScriptFile::Client => read.class.ends_with("Script") && read.on_clients,
        };
        if read.name == name && fits {
            return Ok(());
        }
        Err(format!("the project's rules make a {} called {:?} of it", read.class, read.name))
    })
}
