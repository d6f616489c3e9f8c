//! A project in git, and what is done to it.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Command,
};

pub const PROJECT: &str =
    r#"{"name":"Churn","tree":{"$className":"DataModel","ServerStorage":{"Kit":{"$path":"src"}}}}"#;

/// A xorshift: the same steps for the same seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).expect("less than the sides")
    }
}

/// A project that is a git repository with two branches.
pub struct Repository {
    pub folder: tempfile::TempDir,
    pub dice: Dice,
    /// How often a branch was switched.
    pub switches: usize,
}

impl Repository {
    pub fn new(seed: u64) -> Self {
        let repository =
            Self { folder: tempfile::tempdir().expect("a temporary folder"), dice: Dice(seed | 1 << 40), switches: 0 };
        repository.write("default.project.json", PROJECT);
        for pack in 0..8 {
            for file in 0..12 {
                repository.write(&format!("src/Pack{pack}/f{file}.luau"), &format!("return {file}"));
            }
        }
        repository.write("src/Beta/init.luau", "return {}");
        repository.git(&["init", "-q", "-b", "main"]);
        // A stash must not take up what the writer has beside a file for a moment.
        repository.write(".git/info/exclude", ".*.rojo-mcp-*\n");
        repository.commit("all");
        repository.git(&["checkout", "-q", "-b", "feat"]);
        for pack in 0..8 {
            if pack % 2 == 0 {
                fs::remove_dir_all(repository.path(&format!("src/Pack{pack}"))).expect("removed");
                repository.write(&format!("src/Pack{pack}.luau"), "return 'one file'");
            } else {
                let to = repository.path(&format!("src/Renamed{pack}"));
                fs::rename(repository.path(&format!("src/Pack{pack}")), to).expect("renamed");
            }
        }
        fs::rename(repository.path("src/Beta/init.luau"), repository.path("src/Beta/init.server.luau"))
            .expect("renamed");
        repository.write("default.project.json", &PROJECT.replace("\"Kit\"", "\"Kit2\""));
        repository.commit("otherwise");
        repository
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders can be made");
        fs::write(path, text).expect("a file can be written");
    }

    /// Run git as nobody in particular. It may refuse: a stash may be empty, a switch overwrite.
    fn git(&self, args: &[&str]) -> bool {
        let mut git = Command::new("git");
        git.current_dir(self.folder.path()).args(["-c", "user.name=churn", "-c", "user.email=churn@example.com"]);
        git.args(["-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"]).args(args);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        git.output().expect("git runs").status.success()
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        assert!(self.git(&["commit", "-q", "-m", message]));
    }

    /// Something in `src`, file or folder.
    fn any(&mut self) -> Option<PathBuf> {
        let mut all = self.everything();
        (!all.is_empty()).then(|| all.swap_remove(self.dice.roll(all.len())))
    }

    pub fn everything(&self) -> Vec<PathBuf> {
        let mut all = Vec::new();
        let mut folders = vec![self.path("src")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path.clone());
                }
                all.push(path);
            }
        }
        all.sort();
        all
    }

    /// One thing that an editor or a person with git does.
    pub fn step(&mut self) {
        let number = self.dice.roll(1000);
        match self.dice.roll(22) {
            0..=6 => {
                if let Some(file) = self.any().filter(|path| path.extension().is_some_and(|end| end == "luau")) {
                    fs::write(file, format!("return 'edit {number}'")).expect("a file can be written");
                }
            }
            7..=9 => self.write(&format!("src/New{}/deep/n{number}.luau", number % 7), "return 'new'"),
            10..=11 => self.any().iter().for_each(|path| remove(path)),
            12 => {
                let to = self.path(&format!("src/Moved{number}"));
                if let Some(from) = self.any().filter(|path| path.is_dir()) {
                    _ = fs::rename(from, to); // not into itself
                }
            }
            13 => {
                let saved = self.path("src/.saved");
                fs::write(&saved, format!("return 'by rename {number}'")).expect("a file can be written");
                fs::rename(saved, self.path("src/Saved.luau")).expect("renamed");
            }
            14 => self.write("src/Cfg.json", if number < 300 { "{" } else { "{\"a\":1}" }),
            15 => {
                let branch = if number < 500 { "main" } else { "feat" };
                self.switches += usize::from(self.git(&["checkout", "-q", "-f", branch]));
            }
            16 => _ = self.git(&["stash", "-q", "-u"]),
            17 => _ = self.git(&["stash", "pop", "-q"]),
            18 => _ = self.git(&["clean", "-fdq"]),
            19 => _ = self.git(&["checkout", "-q", "--", "."]),
            20 => self.write(&format!("src/Ref{}.model.json", number % 5), &pointer(number % 3)),
            _ => self.write(&format!("src/Target{}.model.json", number % 3), &target(number)),
        }
        fs::create_dir_all(self.path("src")).expect("the root stays");
    }
}

/// A model that points at the target of that number, wherever it is.
fn pointer(target: usize) -> String {
    format!(r#"{{"className":"ObjectValue","attributes":{{"Rojo_Target_Value":"target{target}"}}}}"#)
}

/// One of three targets, in different shapes.
fn target(number: usize) -> String {
    let class = ["Folder", "Part", "Model"][number / 3 % 3];
    format!(r#"{{"className":"{class}","id":"target{}","attributes":{{"N":{number}}}}}"#, number % 3)
}

fn remove(path: &Path) {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    if let Err(error) = removed {
        // The writer beside us may come and go in the same folder.
        assert!(matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty), "{error}");
    }
}
