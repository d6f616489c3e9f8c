//! Against a real git, in a repository of its own. Where there is none the tests need
//! `ROJO_MCP_WITHOUT_GIT=1` to pass, so that nobody takes that for a check.
#![expect(clippy::disallowed_methods, reason = "an editor is not the server")]

use std::{fs, path::PathBuf};

use super::*;

const WITHOUT_GIT: &str = "ROJO_MCP_WITHOUT_GIT";

struct Repository(tempfile::TempDir);

impl Repository {
    /// `None`: there is no git here, and the caller of the tests knows.
    fn new() -> Option<Self> {
        if Command::new("git").arg("--version").output().is_err() {
            let known = std::env::var_os(WITHOUT_GIT).is_some_and(|value| value == "1");
            assert!(known, "there is no git; {WITHOUT_GIT}=1 leaves these tests out");
            eprintln!("not tested: there is no git");
            return None;
        }
        let repository = Self(tempfile::tempdir().expect("a folder"));
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        Some(repository)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn git(&self, arguments: &[&str]) {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgSign=false"];
        let run = Command::new("git").current_dir(self.path()).args(who).args(arguments).output().expect("git runs");
        assert!(run.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
    }

    fn answer(&self, arguments: &[&str], input: &str) -> String {
        let mut child = Command::new("git")
            .current_dir(self.path())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("git runs");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    }

    /// A commit with a signature, which git may want to have checked by a program.
    fn sign_last(&self) {
        let (tree, parent) = (self.answer(&["rev-parse", "HEAD^{tree}"], ""), self.answer(&["rev-parse", "HEAD^"], ""));
        let signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----";
        let who = "a <a@b> 1 +0000";
        let commit = format!("tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n{signature}\n\nsigned\n");
        let id = self.answer(&["hash-object", "-t", "commit", "-w", "--stdin"], &commit);
        self.git(&["update-ref", "HEAD", &id]);
    }

    fn save(&self, path: &str, text: &str) {
        let file = self.path().join(path);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        fs::write(file, text).expect("saved");
    }

    fn commit(&self, path: &str, text: &str) {
        self.save(path, text);
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "--message=change"]);
    }

    fn earlier(&self, folder: &str, versions: &[(&str, &str)]) -> Vec<(String, bool)> {
        let asked: Vec<Asked> = versions.iter().map(|(path, text)| asked(path, text)).collect();
        let found = Git::default().earlier(&self.path().join(folder), &asked);
        asked.into_iter().map(|asked| (asked.version.path.clone(), found.contains(&asked.version))).collect()
    }

    fn had(&self, path: &str, text: &str) -> bool {
        self.earlier("", &[(path, text)])[0].1
    }
}

fn asked(path: &str, text: &str) -> Asked {
    Version { path: path.to_owned(), hash: TextHash::of(text) }.ask(text)
}

#[test]
fn a_text_is_found_whatever_the_line_endings_that_it_was_committed_with() {
    let Some(repository) = Repository::new() else { return };
    repository.git(&["config", "core.autocrlf", "false"]);
    let committed = ["return 1\r\n-- a\r\n", "\u{feff}return 2\n", "\u{feff}return 3\r\n-- b\r\n", "return 4\n"];
    for text in committed {
        repository.commit("a.luau", text);
    }
    for text in ["return 1\n-- a\n", "return 2\n", "return 3\n-- b\n", "return 4\n"] {
        assert!(repository.had("a.luau", text), "{text:?}");
    }
    assert!(!repository.had("a.luau", "return 1\n-- b\n"));
}

#[test]
fn only_a_text_that_the_file_had_before_the_checked_out_commit_is_an_earlier_one() {
    let Some(repository) = Repository::new() else { return };
    repository.commit("game/src/a.luau", "one");
    repository.commit("game/src/b c\u{fc}.luau", "other");
    repository.commit("game/src/a.luau", "two");
    repository.git(&["switch", "--quiet", "--create", "side"]);
    repository.commit("game/src/a.luau", "on a branch");
    repository.git(&["switch", "--quiet", "main"]);
    repository.save("game/src/a.luau", "not committed");
    repository.save("game/loose", "only an object");
    repository.git(&["hash-object", "-w", "game/loose"]);
    for (text, expected) in [
        ("one", true),
        ("two", true),
        ("other", false),
        ("on a branch", false),
        ("not committed", false),
        ("only an object", false),
        ("typed in Studio", false),
    ] {
        assert_eq!(repository.had("game/src/a.luau", text), expected, "{text}");
    }
    let both =
        repository.earlier("game", &[("src/a.luau", "one"), ("src/b c\u{fc}.luau", "other"), ("src/a.luau", "x")]);
    assert_eq!(
        both.iter().map(|(_, known)| *known).collect::<Vec<_>>(),
        [true, true, false],
        "relative to a subfolder"
    );
    repository.git(&["switch", "--quiet", "--force", "side"]);
    assert!(repository.had("game/src/a.luau", "on a branch"), "now it is of this history");
}

#[test]
fn a_merge_brings_the_history_of_both_sides() {
    let Some(repository) = Repository::new() else { return };
    repository.commit("a.luau", "one");
    repository.git(&["switch", "--quiet", "--create", "side"]);
    repository.commit("a.luau", "two");
    repository.git(&["switch", "--quiet", "main"]);
    repository.commit("b.luau", "else");
    repository.git(&["merge", "--quiet", "--no-ff", "--message=merge", "side"]);
    assert!(repository.had("a.luau", "one") && repository.had("a.luau", "two"));
}

#[test]
fn odd_paths_are_no_options_and_no_patterns() {
    let Some(repository) = Repository::new() else { return };
    repository.commit("[ab].luau", "pattern");
    repository.commit("a.luau", "plain");
    repository.commit("--all", "option");
    assert!(repository.had("[ab].luau", "pattern") && !repository.had("[ab].luau", "plain"));
    assert!(repository.had("--all", "option"));
    for path in ["../a.luau", "/etc/passwd", "", "x\ny"] {
        assert!(!repository.had(path, "plain"), "{path}");
    }
}

#[test]
fn without_git_a_repository_or_an_answer_nothing_is_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let wanted = [asked("a.luau", "one")];
    let absent = Git { program: "/there/is/no/such/git".into(), ..Git::default() };
    assert!(absent.earlier(folder.path(), &wanted).is_empty());
    assert!(Git::default().earlier(folder.path(), &wanted).is_empty());
    assert!(Git::default().earlier(&folder.path().join("gone"), &wanted).is_empty());
}

/// A program that leaves a file behind where it is run.
#[cfg(unix)]
fn trap(folder: &Path, marks: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let program = folder.join("trap.sh");
    fs::write(&program, format!("#!/bin/sh\necho \"$0 $@\" >> '{}'\n", marks.display())).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it may run");
    program
}

#[cfg(unix)]
#[test]
fn a_hostile_repository_gets_nothing_run() {
    let Some(repository) = Repository::new() else { return };
    let elsewhere = tempfile::tempdir().expect("a folder");
    let marks = elsewhere.path().join("was-run");
    let trap = trap(elsewhere.path(), &marks);
    let trap = trap.to_str().expect("a path");
    repository.commit(".gitattributes", "*.luau diff=trap filter=trap\n");
    repository.commit("a.luau", "one");
    repository.commit("a.luau", "two");
    repository.sign_last();
    for name in [
        "core.fsmonitor",
        "core.pager",
        "pager.log",
        "diff.external",
        "diff.trap.textconv",
        "diff.trap.command",
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "gpg.program",
        "core.sshCommand",
        "core.gitProxy",
        "core.editor",
        "core.alternateRefsCommand",
        "credential.helper",
        "alias.log",
        "remote.origin.uploadpack",
        "core.askPass",
        "uploadpack.packObjectsHook",
    ] {
        repository.git(&["config", name, trap]);
    }
    let ext = format!("ext::{trap} %S");
    for (name, value) in [
        ("log.showSignature", "true"),
        ("remote.origin.url", ext.as_str()),
        ("remote.origin.promisor", "true"),
        ("remote.origin.partialclonefilter", "blob:none"),
        ("extensions.partialClone", "origin"),
        ("protocol.ext.allow", "always"),
        ("core.repositoryFormatVersion", "1"),
    ] {
        repository.git(&["config", name, value]);
    }
    let hooks = repository.path().join(".git/hooks");
    fs::create_dir_all(&hooks).expect("a folder");
    for hook in ["post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout"] {
        fs::copy(trap, hooks.join(hook)).expect("a hook");
    }
    // The trap works: git runs it where it may.
    let _ = Command::new("git").current_dir(repository.path()).args(["status", "--short"]).output().expect("git runs");
    assert!(marks.exists(), "the test proves nothing: the trap is never run");
    fs::remove_file(&marks).expect("it is there");

    assert!(repository.had("a.luau", "one"));
    assert!(!repository.had("a.luau", "nowhere: it might be fetched"));
    assert!(!marks.exists(), "{}", fs::read_to_string(&marks).unwrap_or_default());
}

#[cfg(unix)]
#[test]
fn a_git_that_hangs_is_not_waited_for() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("git");
    fs::write(&program, "#!/bin/sh\nexec sleep 600\n").expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it may run");
    let hangs = Git { program: program.into(), patience: Duration::from_millis(50) };
    assert!(hangs.earlier(folder.path(), &[asked("a.luau", "one")]).is_empty());
}
