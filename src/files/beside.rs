//! What Rojo reads beside the file of a script, its `.meta.json`: it goes where the file goes.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{WriteError, folders::give_name};

/// How the files end that say more of the instance whose name they begin with.
const METAS: [&str; 2] = [".meta.json", ".meta.jsonc"];

/// How the other files end that such a one would say more of.
const MODELS: [&str; 11] =
    [".rbxm", ".rbxmx", ".model.json", ".model.jsonc", ".json", ".jsonc", ".toml", ".txt", ".csv", ".yml", ".yaml"];

/// The files beside a script that is to have another name or folder, each with its new place.
#[derive(Debug, Default)]
pub(super) struct Beside(Vec<(PathBuf, PathBuf)>);

impl Beside {
    /// Those of the script at `path`, which goes to `new`. `was` and `name` are the names of the instance.
    ///
    /// # Errors
    /// One cannot go along: something has its place, or another instance of its name needs it.
    pub fn of((path, was): (&Path, &str), (new, name): (&Path, &str)) -> Result<Self, WriteError> {
        let mut all = Vec::new();
        for meta in METAS {
            let (old, new) = (path.with_file_name(format!("{was}{meta}")), new.with_file_name(format!("{name}{meta}")));
            let Ok(metadata) = old.symlink_metadata() else { continue };
            if metadata.is_symlink() {
                return Err(WriteError::Link(old));
            }
            let own = path.file_name().unwrap_or_default().to_string_lossy();
            if [(&*old, was), (&*new, name)].into_iter().any(|(of, name)| is_shared(of, name, &own)) {
                return Err(WriteError::Shared(old));
            }
            if new.symlink_metadata().is_ok() && !super::folders::is_same(&old, &new) {
                return Err(WriteError::Exists(new));
            }
            all.push((old, new));
        }
        Ok(Self(all))
    }

    /// Let all of them go along, or none.
    pub fn go(&self) -> Result<(), WriteError> {
        for (at, (old, new)) in self.0.iter().enumerate() {
            if let Err(error) = give_name(old, new) {
                go_back(self.0.get(..at).unwrap_or_default());
                return Err(WriteError::io(new, error));
            }
        }
        Ok(())
    }

    /// They went along with what stays after all.
    pub fn back(&self) {
        go_back(&self.0);
    }

    /// Where they were and are.
    pub fn places(self) -> impl Iterator<Item = PathBuf> {
        self.0.into_iter().flat_map(|(old, new)| [old, new])
    }
}

fn go_back(all: &[(PathBuf, PathBuf)]) {
    for (old, new) in all.iter().rev() {
        match give_name(new, old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                log::error!("{} could not get its name back: {error}", new.display());
            }
            _ => {}
        }
    }
}

/// Whether an instance besides that of the file `own` is called `name` in the folder of `meta`.
fn is_shared(meta: &Path, name: &str, own: &str) -> bool {
    let Some(Ok(listed)) = meta.parent().map(fs::read_dir) else { return false };
    let mut others = listed.flatten().map(|entry| entry.file_name()).filter(|other| other.to_string_lossy() != own);
    others.any(|other| {
        let other = other.to_string_lossy();
        let rest = other.strip_prefix(name).unwrap_or_default();
        MODELS.contains(&rest) || super::names::is_script_ending(rest)
    })
}
