use std::{
    io::{Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{
    clock,
    core::{
        ids::{OperationId, RequestId},
        operations::{Intent, Intention},
        text::TextHash,
    },
};

const PLACE: &str = "place:123";
const KEY: &str = "ServerScriptService.Main";
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A folder with a store that is opened and closed.
struct Disk(TempDir);

impl Disk {
    fn new() -> Self {
        Self(TempDir::new().expect("a folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("store.redb")
    }

    fn open(&self) -> Store {
        let store = self.open_anyhow();
        assert_eq!(store.problem(), None);
        store
    }

    fn open_anyhow(&self) -> Store {
        Store::open_at(&self.path())
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.0.path())
            .expect("the folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

fn agree(store: &Store, key: &str, text: &str) {
    let agreed = Agreed { key, hash: TextHash::of(text), text: Some(text) };
    store.agree(PLACE, &[agreed]).expect("it is kept");
}

fn base(store: &Store, key: &str) -> Option<Base> {
    store.bases(PLACE).expect("they are read").remove(key)
}

fn text(store: &Store, text: &str) -> Option<String> {
    store.text(TextHash::of(text)).expect("it is read")
}

fn intent(args: &str) -> Intent {
    Intent {
        tool: "run_code".into(),
        args_hash: args.into(),
        request_id: RequestId::from("r1"),
        session: Some("s1".into()),
    }
}

#[test]
fn a_base_remembers_what_was_agreed_before_newest_last_and_bounded() {
    let disk = Disk::new();
    let store = disk.open();
    for number in 0..=66 {
        agree(&store, KEY, &number.to_string());
    }
    agree(&store, KEY, "66");
    agree(&store, KEY, "10");
    drop(store);
    let Base { hash, earlier } = base(&disk.open(), KEY).expect("it is kept");
    assert_eq!(hash, TextHash::of("10"));
    assert_eq!(earlier.len(), 64);
    assert_eq!(earlier.last(), Some(&TextHash::of("66")));
    assert_eq!(earlier.first(), Some(&TextHash::of("3")));
}

#[test]
fn places_and_keys_are_apart_and_can_be_moved_and_forgotten() {
    let store = Store::in_memory();
    let agreed = |key| Agreed { key, hash: TextHash::of("a"), text: None };
    store.agree("anon:x", &[agreed("A"), agreed("B")]).expect("kept");
    store.agree("place:1", &[agreed("Old")]).expect("kept");
    store.agree("place:10", &[agreed("Other")]).expect("kept");
    let keys = |place: &str| {
        let mut keys: Vec<String> = store.bases(place).expect("read").into_keys().collect();
        keys.sort();
        keys
    };
    store.move_place("anon:y", "place:1").expect("nothing to move");
    assert_eq!(keys("place:1"), ["Old"]);
    store.move_place("anon:x", "place:1").expect("moved");
    assert_eq!((keys("anon:x"), keys("place:1")), (vec![], vec!["A".to_owned(), "B".to_owned()]));
    store.move_key("place:1", "A", "C").expect("moved");
    store.move_key("place:1", "Nothing", "B").expect("nothing to move");
    assert_eq!(keys("place:1"), ["B", "C"]);
    store.restore("place:1", [("B", None), ("Nothing", None)]).expect("forgotten");
    assert_eq!((keys("place:1"), keys("place:10")), (vec!["C".to_owned()], vec!["Other".to_owned()]));
}

#[test]
fn a_text_is_kept_while_a_base_or_the_journal_needs_it() {
    let disk = Disk::new();
    let store = disk.open();
    agree(&store, KEY, "old");
    agree(&store, KEY, "new");
    let journalled = [(TextHash::of("before"), "before")];
    let id = store.begin(&json!({}), &journalled).expect("begun");
    store.keep_texts(id, &[(TextHash::of("after"), "after")]).expect("kept");
    assert_eq!(text(&store, "old").as_deref(), Some("old"), "not on the hot path");
    drop(store);
    let store = disk.open();
    store.tend(clock::unix_millis()).expect("tended");
    assert_eq!(text(&store, "old"), None);
    for needed in ["new", "before", "after"] {
        assert_eq!(text(&store, needed).as_deref(), Some(needed));
    }
    store.tend(clock::unix_millis() + 31 * DAY_MS).expect("dropped");
    assert_eq!((text(&store, "before"), text(&store, "new").as_deref()), (None, Some("new")));
}

#[test]
fn the_journal_counts_up_and_keeps_the_latest() {
    let store = Store::in_memory();
    for number in 1..=502 {
        let id = store.begin(&json!({ "number": number }), &[]).expect("begun");
        assert_eq!(id, number);
    }
    assert_eq!(store.entry(2).expect("read"), None);
    assert_eq!(store.entries(1000).expect("read").len(), 500);
    store.finish(502, EntryState::Done, &json!("done")).expect("finished");
    let latest = store.entries(2).expect("read");
    let seen: Vec<_> = latest.iter().map(|entry| (entry.id, entry.state, entry.entry.clone())).collect();
    assert_eq!(seen, [(502, EntryState::Done, json!("done")), (501, EntryState::Open, json!({ "number": 501 }))]);
    assert!(latest[0].at_ms >= latest[1].at_ms && latest[1].at_ms > 0);
    assert!(matches!(store.finish(1, EntryState::Done, &json!(1)), Err(StoreError::NoEntry(1))));
    assert!(matches!(store.keep_texts(1, &[]), Err(StoreError::NoEntry(1))));

    store.tend(clock::unix_millis() + 31 * DAY_MS).expect("dropped");
    assert_eq!(store.entries(10).expect("read"), []);
    assert_eq!(store.begin(&json!(0), &[]).expect("begun"), 503, "an id never means another entry");
}

#[test]
fn an_operation_is_fresh_once_and_its_outcome_is_kept_for_a_day() {
    let disk = Disk::new();
    let store = disk.open();
    let (op, another) = (OperationId::from("op"), OperationId::from("another"));
    assert_eq!(store.intend(&op, &intent("x")).expect("kept"), Intention::Fresh);
    drop(store);
    let store = disk.open();
    let Intention::Known(known) = store.intend(&op, &intent("y")).expect("read") else { panic!("it is known") };
    assert_eq!((known.intent.args_hash.as_str(), known.outcome), ("x", None));
    store.settle(&op, json!({ "ok": true })).expect("kept");
    store.settle(&another, json!(1)).expect("an operation that is not kept is not made up");
    assert_eq!(store.operation(&another).expect("read"), None);
    let (id, found) = store.operation_of_request(&RequestId::from("r1")).expect("read").expect("it is known");
    assert_eq!((id, &found.outcome), (op.clone(), &Some(json!({ "ok": true }))));
    assert_eq!(store.operation(&op).expect("read"), Some(found));

    store.tend(clock::unix_millis() + DAY_MS / 2).expect("nothing is old");
    assert!(store.operation(&op).expect("read").is_some());
    store.tend(clock::unix_millis() + DAY_MS + 1000).expect("dropped");
    assert_eq!(store.intend(&op, &intent("z")).expect("kept"), Intention::Fresh);

    store.never_ran(&op).expect("kept");
    assert_eq!(store.intend(&op, &intent("other")).expect("kept"), Intention::Fresh, "it did not run, so it may");
}

#[test]
fn a_result_that_outlived_its_server_is_kept_for_its_operation_once() {
    let disk = Disk::new();
    let store = disk.open();
    let (op, request) = (OperationId::from("op"), RequestId::from("r1"));
    store.intend(&op, &intent("x")).expect("kept");
    assert_eq!(store.recover(&"r2".into(), json!(1)).expect("read"), None, "no operation was that");
    assert_eq!(store.recover(&request, json!(1)).expect("kept"), Some(op.clone()));
    assert_eq!(store.recover(&request, json!(2)).expect("read"), None, "it has its outcome");
    assert_eq!(store.operation(&op).expect("read").expect("it is known").outcome, Some(json!(1)));
}

#[test]
fn a_store_that_is_in_use_is_left_alone() {
    let disk = Disk::new();
    let first = disk.open();
    agree(&first, KEY, "a");
    let second = disk.open_anyhow();
    assert!(second.problem().expect("it says so").what.contains("another server"), "{:?}", second.problem());
    agree(&second, "Other", "b");
    assert_eq!(base(&first, "Other"), None);
    drop(first);
    assert!(base(&disk.open(), KEY).is_some());
    assert_eq!(disk.files(), ["store.redb"]);
}

#[test]
fn what_cannot_be_read_is_set_aside_and_the_store_begins_anew() {
    let truncate = |path: &Path| {
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("the file");
        file.set_len(file.metadata().expect("its size").len() / 2).expect("cut");
    };
    let scribble = |path: &Path| {
        let mut file = std::fs::OpenOptions::new().write(true).open(path).expect("the file");
        let size = file.metadata().expect("its size").len();
        // Over everything but the header.
        file.seek(SeekFrom::Start(4096)).expect("sought");
        file.write_all(&vec![0xa5; usize::try_from(size - 4096).expect("small")]).expect("written");
    };
    let replace = |path: &Path| std::fs::File::create(path).expect("the file").write_all(b"no store").expect("written");
    let newer = |path: &Path| {
        let database = Database::create(path).expect("the file");
        let tx = database.begin_write().expect("begun");
        tx.open_table(META).expect("a table").insert("format", 2).expect("written");
        tx.commit().expect("kept");
    };
    for name in ["truncated", "scribbled", "replaced", "newer"] {
        let disk = Disk::new();
        agree(&disk.open(), KEY, &"text ".repeat(10_000));
        match name {
            "truncated" => truncate(&disk.path()),
            "scribbled" => scribble(&disk.path()),
            "replaced" => replace(&disk.path()),
            _ => newer(&disk.path()),
        }
        let damaged = std::fs::read(disk.path()).expect("the file");
        let store = disk.open_anyhow();
        let problem = store.problem().unwrap_or_else(|| panic!("{name}: it must be said"));
        assert!(problem.what.contains("store.set-aside-1.redb"), "{name}: {problem:?}");
        assert_eq!(problem.what.contains("format 2"), name == "newer", "{problem:?}");
        assert_eq!(disk.files(), ["store.redb", "store.set-aside-1.redb"], "{name}");
        if name == "replaced" {
            assert_eq!(std::fs::read(disk.0.path().join("store.set-aside-1.redb")).expect("kept"), damaged);
        }
        agree(&store, KEY, "new");
        drop(store);
        assert!(base(&disk.open(), KEY).is_some(), "{name}: the new one is kept");
    }
}

#[test]
fn a_store_that_cannot_be_opened_at_all_does_not_stop_the_server() {
    let folder = TempDir::new().expect("a folder");
    let store = Store::open_at(&folder.path().join("nowhere/store.redb"));
    assert!(store.problem().is_some());
    agree(&store, KEY, "a");
    assert!(base(&store, KEY).is_some());
}

#[cfg(unix)]
#[test]
fn others_may_not_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let disk = Disk::new();
    drop(disk.open());
    assert_eq!(disk.path().metadata().expect("it is there").permissions().mode() & 0o777, 0o600);
}

/// Not a test of its own: the other half of the next one.
#[test]
fn child_that_is_killed() {
    let Some(path) = std::env::var_os("ROJO_MCP_TEST_STORE") else { return };
    let store = Store::open_at(Path::new(&path));
    assert_eq!(store.problem(), None);
    let mut stdout = std::io::stdout().lock();
    for number in 0u32.. {
        agree(
            &store,
            &format!("K{number}"),
            &"a line of text\n".repeat(1000 + usize::try_from(number).expect("small")),
        );
        let id = store.begin(&json!(number), &[]).expect("begun");
        writeln!(stdout, "\nkept {number} {id}").expect("the parent reads");
        stdout.flush().expect("the parent reads");
    }
}

#[test]
fn a_process_killed_at_any_moment_loses_nothing_that_was_kept() {
    use std::io::{BufRead as _, BufReader};
    let disk = Disk::new();
    let mut last_entry = 0;
    for round in 0..6 {
        let mut child = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "store::tests::child_that_is_killed", "--nocapture"])
            .env("ROJO_MCP_TEST_STORE", disk.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let kept: Vec<(u32, u64)> = lines
            .filter_map(|line| {
                let mut numbers = line.strip_prefix("kept ")?.split(' ').map(str::to_owned);
                Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
            })
            .take(3 + round * 2)
            .collect();
        child.kill().expect("killed");
        child.wait().expect("gone");
        let (number, id) = *kept.last().expect("it kept something");
        assert!(id > last_entry, "it went on from where the one before was killed");
        let store = disk.open();
        for number in 0..=number {
            assert!(base(&store, &format!("K{number}")).is_some(), "base {number} was kept");
        }
        assert!(store.entry(id).expect("read").is_some());
        last_entry = id;
    }
}
