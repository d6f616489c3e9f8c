//! Studio's Plugins folder, and the copies of our plugin in it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{pairing::Key, plugin_model};

/// The file that is ours.
pub(super) const FILE: &str = "RojoMcp.rbxm";

/// A larger file is not our plugin.
const LARGEST: u64 = 16 * 1024 * 1024;

/// A plugin of ours in a Plugins folder.
pub(super) struct Copy {
    pub(super) file: PathBuf,
    pub(super) version: String,
    /// The key that was put into it.
    pub(super) key: Option<Key>,
    pub(super) bytes: Vec<u8>,
}

/// Where Studio of this system looks for plugins. `None`: no such place is known. The folder itself
/// may still be missing: Studio makes it with the first plugin.
pub(super) fn find() -> Option<PathBuf> {
    if cfg!(windows) {
        return Some(dirs::data_local_dir()?.join("Roblox").join("Plugins"));
    }
    if cfg!(target_os = "macos") {
        return Some(dirs::home_dir()?.join("Documents").join("Roblox").join("Plugins"));
    }
    in_wine(&dirs::home_dir()?)
}

/// Studio under Wine, as Vinegar sets it up: with or without Flatpak.
fn in_wine(home: &Path) -> Option<PathBuf> {
    [".var/app/org.vinegarhq.Vinegar/data/vinegar", ".local/share/vinegar"]
        .iter()
        .map(|place| home.join(place).join("prefixes/studio/drive_c/users"))
        .flat_map(|users| fs::read_dir(users).into_iter().flatten().flatten())
        .map(|user| user.path().join("AppData/Local/Roblox"))
        .find(|roblox| roblox.is_dir())
        .map(|roblox| roblox.join("Plugins"))
}

/// The copies of our plugin in `folder`, whatever their names. Nothing else in it is touched.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn copies(folder: &Path) -> io::Result<Vec<Copy>> {
    let mut copies = Vec::new();
    for entry in fs::read_dir(folder)? {
        let file = entry?.path();
        let is_model = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("rbxm"));
        if !is_model || file.metadata().is_ok_and(|metadata| metadata.len() > LARGEST) {
            continue;
        }
        let Ok(bytes) = fs::read(&file) else { continue };
        if let Some(version) = plugin_model::version_of(&bytes) {
            copies.push(Copy { file, version, key: plugin_model::key_of(&bytes), bytes });
        }
    }
    copies.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(copies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studio_under_wine_is_found_where_it_is_installed() {
        let home = tempfile::tempdir().expect("a folder");
        assert_eq!(in_wine(home.path()), None);
        let users = ".var/app/org.vinegarhq.Vinegar/data/vinegar/prefixes/studio/drive_c/users";
        let roblox = home.path().join(users).join("steamuser/AppData/Local/Roblox");
        fs::create_dir_all(home.path().join(users).join("Public")).expect("a folder");
        assert_eq!(in_wine(home.path()), None);
        fs::create_dir_all(&roblox).expect("a folder");
        assert_eq!(in_wine(home.path()), Some(roblox.join("Plugins")));
    }
}
