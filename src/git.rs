//! What git knows of a project's files. It only reads, and runs nothing that the repository, the
//! system or the user names: a repository that came from somewhere else is not trusted.
//!
//! A text is an earlier one of a file if the file held it in a commit that the checked-out one came
//! from. That git knows it elsewhere, on another branch or for another file, proves nothing.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ffi::{OsStr, OsString},
    io::{Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::core::{
    sync::{Asked, Version},
    text::TextHash,
};

/// How long git may take for each of its two answers. What comes later is not known.
const PATIENCE: Duration = Duration::from_secs(2);
/// Of an answer that is longer the rest is not read.
const MAX_BYTES: u64 = 32 << 20;

/// Settings that are read before those of the repository. What they leave out no command below uses.
const SETTINGS: [&str; 6] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "log.showSignature=false",
    "safe.bareRepository=explicit",
    "protocol.allow=never",
];

/// The program that is asked.
#[derive(Debug, Clone)]
pub struct Git {
    program: OsString,
    patience: Duration,
}

impl Default for Git {
    fn default() -> Self {
        Self { program: "git".into(), patience: PATIENCE }
    }
}

impl Git {
    /// Which of the texts, whose paths are relative to `folder`, their files had in an earlier
    /// commit. Without git, or a repository, none.
    /// A file is looked for in every form of its text.
    pub fn earlier(&self, folder: &Path, asked: &[Asked]) -> BTreeSet<Version> {
        let known = self.objects(folder, asked.iter().flat_map(forms));
        let is_known = |asked: &&Asked| forms(asked).any(|form| known.contains(&form)) && is_below(&asked.version.path);
        let asked: Vec<&Asked> = asked.iter().filter(is_known).collect();
        if asked.is_empty() {
            return BTreeSet::new();
        }
        let history = self.history(folder, asked.iter().map(|asked| asked.version.path.as_str()));
        let had = |asked: &&Asked| {
            history.get(&asked.version.path).is_some_and(|all| forms(asked).any(|form| all.contains(&form)))
        };
        asked.into_iter().filter(had).map(|asked| asked.version.clone()).collect()
    }

    /// Which texts git has at all: one look, whatever the history's length.
    fn objects(&self, folder: &Path, hashes: impl Iterator<Item = TextHash>) -> HashSet<TextHash> {
        let wanted: String = hashes.map(|hash| format!("{hash}\n")).collect();
        let answer = self.ask(folder, &["cat-file", "--batch-check=%(objectname) %(objecttype)"], wanted);
        let lines = answer.lines().filter_map(|line| line.strip_suffix(" blob"));
        lines.filter_map(|hash| hash.parse().ok()).collect()
    }

    /// The texts that each file had in the commits from which the checked-out one came.
    fn history<'a>(&self, folder: &Path, paths: impl Iterator<Item = &'a str>) -> HashMap<String, HashSet<TextHash>> {
        let wanted: String = ["HEAD", "--"].into_iter().chain(paths).map(|line| format!("{line}\n")).collect();
        let command = [
            "log",
            "--stdin",
            "--raw",
            "-z",
            "--no-abbrev",
            "--relative",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-show-signature",
            "--no-color",
            "--format=",
        ];
        let answer = self.ask(folder, &command, wanted);
        let mut history: HashMap<String, HashSet<TextHash>> = HashMap::new();
        let mut fields = answer.split('\0');
        while let Some(field) = fields.next() {
            // :100644 100644 <before> <after> M, then the path
            let Some(change) = field.trim_start().strip_prefix(':') else { continue };
            let Some(path) = fields.next() else { break };
            let hashes = change.split(' ').skip(2).take(2).filter_map(|hash| hash.parse::<TextHash>().ok());
            history.entry(path.to_owned()).or_default().extend(hashes);
        }
        history
    }

    /// What git answers to `input`; nothing, where it fails or takes too long.
    fn ask(&self, folder: &Path, arguments: &[&str], input: String) -> String {
        match self.start(folder, arguments) {
            Ok(child) => self.talk(child, input).unwrap_or_default(),
            Err(error) => {
                log::debug!("git is not asked: {error}");
                String::new()
            }
        }
    }

    fn start(&self, folder: &Path, arguments: &[&str]) -> std::io::Result<Child> {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
            command.env_remove(name);
        }
        let nowhere = if cfg!(windows) { "NUL" } else { "/dev/null" };
        let environment: [(&str, &OsStr); 8] = [
            ("GIT_CONFIG_NOSYSTEM", "1".as_ref()),
            ("GIT_CONFIG_SYSTEM", nowhere.as_ref()),
            ("GIT_CONFIG_GLOBAL", nowhere.as_ref()),
            ("GIT_NO_LAZY_FETCH", "1".as_ref()),
            ("GIT_ALLOW_PROTOCOL", "".as_ref()),
            ("GIT_OPTIONAL_LOCKS", "0".as_ref()),
            ("GIT_TERMINAL_PROMPT", "0".as_ref()),
            ("GIT_PAGER", "cat".as_ref()),
        ];
        command.envs(environment).args(["--no-pager", "--literal-pathspecs"]);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        no_window(&mut command);
        command
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
    }

    fn talk(&self, mut child: Child, input: String) -> Option<String> {
        let (mut stdin, stdout) = (child.stdin.take()?, child.stdout.take()?);
        // Apart, for a program that does not read must not hold us up.
        thread::spawn(move || stdin.write_all(input.as_bytes()));
        let (answer, wait) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = stdout.take(MAX_BYTES).read_to_end(&mut bytes);
            // Nobody waits for what comes too late.
            let _ = answer.send(read.map(|_| bytes));
        });
        let bytes = wait.recv_timeout(self.patience);
        if bytes.is_err() {
            log::warn!("git takes too long and is not waited for");
        }
        // It has ended, or may.
        let _ = child.kill();
        let _ = child.wait();
        String::from_utf8(bytes.ok()?.ok()?).ok()
    }
}

/// An agent's program that has no console would see one open for a moment, each time.
#[cfg(windows)]
fn no_window(command: &mut Command) {
    const CREATE_NO_WINDOW: u32 = 0x0800_0000;
    std::os::windows::process::CommandExt::creation_flags(command, CREATE_NO_WINDOW);
}

#[cfg(not(windows))]
fn no_window(_: &mut Command) {}

fn forms(asked: &Asked) -> impl Iterator<Item = TextHash> {
    std::iter::once(asked.version.hash).chain(asked.forms.iter().copied())
}

/// One line, and inside the folder.
fn is_below(path: &str) -> bool {
    !path.is_empty() && !path.contains('\n') && !path.starts_with('/') && !path.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests;
