//! Random edits, by whatever mixture of steps.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};

use crate::pair::{Pair, Tally, remove, write};

/// How many steps, at least.
const STEPS: &str = "ROJO_MCP_DIFFERENTIAL_STEPS";
const SEED: &str = "ROJO_MCP_DIFFERENTIAL_SEED";

/// Steps in one case. A step is a few edits at once, after which both trees are compared.
const IN_A_CASE: std::ops::Range<usize> = 16..28;

/// Cases that run at the same time: most of a step is waiting for a watcher.
const SIDE_BY_SIDE: u8 = 4;

/// What a minimal case may cost: one that fails waits until nobody can hope for it any more.
const MOST_SHRINKING: u32 = 40;

const FOLDERS: [&str; 6] = ["src", "src/A", "src/A/B", "src/C", "src/C/init", "src/P"];

const NAMES: [&str; 4] = ["x", "y", "init", "A"];

/// How a file's name ends, and contents that all are valid.
const KINDS: [(&str, [&str; 3]); 12] = [
    (".luau", ["return 1", "return 2\n", ""]),
    (".server.luau", ["print(1)", "print(2)", "print(3)"]),
    (".client.luau", ["print(1)", "print(2)", "print(3)"]),
    (".plugin.luau", ["print(1)", "print(2)", "print(3)"]),
    (".lua", ["return 1", "return 'lua'", "return {}"]),
    (".json", [r#"{"a":1}"#, "[1,2]", r#"{"a":{"b":null}}"#]),
    (".txt", ["one", "two", ""]),
    (".toml", ["a = 1", "[a]\nb = 2", ""]),
    (".csv", ["Key,Source,Context,Example,en\nk,s,c,e,hi\n", "Key,Source,Context,Example,en\n", "Key,en\nk,hi\n"]),
    (".meta.json", [r#"{"ignoreUnknownInstances":true}"#, r#"{"attributes":{"A":1.5}}"#, "{}"]),
    (
        ".model.json",
        [
            r#"{"className":"Model","children":[{"name":"P","className":"Part","id":"p"}],"attributes":{"Rojo_Target_PrimaryPart":"p"}}"#,
            r#"{"className":"ObjectValue","attributes":{"Rojo_Target_Value":"p"}}"#,
            r#"{"className":"Folder","children":[{"className":"Part","name":"x"},{"className":"Part","name":"x"}]}"#,
        ],
    ),
    (
        ".rbxmx",
        [
            r#"<roblox version="4"><Item class="Part" referent="R1"><Properties><bool name="Anchored">true</bool></Properties></Item></roblox>"#,
            r#"<roblox version="4"><Item class="Folder" referent="R1"><Properties></Properties></Item></roblox>"#,
            r#"<roblox version="4"><Item class="ObjectValue" referent="R1"><Properties><Ref name="Value">R1</Ref></Properties></Item></roblox>"#,
        ],
    ),
];

const PROJECTS: [&str; 6] = [
    r#"{"name":"R","tree":{"$className":"DataModel","ServerStorage":{"$path":"src"}}}"#,
    r#"{"name":"R","emitLegacyScripts":false,"tree":{"$className":"DataModel","ServerStorage":{"$path":"src"}}}"#,
    r#"{"name":"R","globIgnorePaths":["**/y.*"],"tree":{"$className":"DataModel","ServerStorage":{"$path":"src"}}}"#,
    r#"{"name":"R","syncRules":[{"pattern":"x.*","use":"text"}],"tree":{"$className":"Folder","S":{"$path":"src"}}}"#,
    r#"{"name":"R","tree":{"$className":"DataModel","ServerStorage":{"$path":"src","Z":{"$className":"Folder","$path":{"optional":"opt"}}},"Lighting":{"A":{"$path":{"optional":"src/A"}}}}}"#,
    r#"{"name":"R","tree":{"$path":"src"}}"#,
];

const NESTED: [&str; 3] = [
    r#"{"name":"N","tree":{"$className":"Folder","L":{"$path":{"optional":"lib"}}}}"#,
    r#"{"tree":{"$className":"Model","$attributes":{"N":1.5}}}"#,
    r#"{"globIgnorePaths":["**/x.luau"],"tree":{"$className":"Folder","I":{"$path":{"optional":"../A"}}}}"#,
];

#[derive(Debug, Clone)]
enum Edit {
    Write {
        folder: &'static str,
        name: &'static str,
        kind: usize,
        text: usize,
    },
    Make {
        folder: &'static str,
    },
    /// The file or folder at this place in a listing of all.
    Remove {
        at: prop::sample::Index,
    },
    Rename {
        at: prop::sample::Index,
        folder: &'static str,
        name: &'static str,
        kind: usize,
    },
    /// A folder becomes a module of that name, a module a folder.
    Swap {
        at: prop::sample::Index,
        text: usize,
    },
    Project {
        text: &'static str,
    },
    Nested {
        folder: &'static str,
        text: &'static str,
    },
}

fn steps() -> impl Strategy<Value = Vec<Vec<Edit>>> {
    let (folder, name) = (prop::sample::select(&FOLDERS[..]), prop::sample::select(&NAMES[..]));
    let (kind, text, at) = (0..KINDS.len(), 0..3_usize, any::<prop::sample::Index>());
    let step = prop_oneof![
        8 => (folder.clone(), name.clone(), kind.clone(), text.clone())
            .prop_map(|(folder, name, kind, text)| Edit::Write { folder, name, kind, text }),
        1 => folder.clone().prop_map(|folder| Edit::Make { folder }),
        3 => at.clone().prop_map(|at| Edit::Remove { at }),
        3 => (at.clone(), folder.clone(), name, kind)
            .prop_map(|(at, folder, name, kind)| Edit::Rename { at, folder, name, kind }),
        2 => (at, text).prop_map(|(at, text)| Edit::Swap { at, text }),
        1 => prop::sample::select(&PROJECTS[..]).prop_map(|text| Edit::Project { text }),
        1 => (folder, prop::sample::select(&NESTED[..])).prop_map(|(folder, text)| Edit::Nested { folder, text }),
    ];
    prop::collection::vec(prop::collection::vec(step, 1..4), IN_A_CASE)
}

impl Edit {
    fn run(&self, pair: &Pair) {
        let all = listing(&pair.path("src"));
        let pick = |at: &prop::sample::Index| (!all.is_empty()).then(|| at.get(&all).clone());
        match self {
            Self::Write { folder, name, kind, text } => {
                put(pair, folder, &format!("{name}{}", KINDS[*kind].0), KINDS[*kind].1[*text])
            }
            Self::Make { folder } => make(&pair.path(folder)),
            Self::Remove { at } => pick(at).iter().for_each(|path| remove(path)),
            Self::Rename { at, folder, name, kind } => {
                let Some(from) = pick(at) else { return };
                let name = if from.is_dir() { (*name).to_owned() } else { format!("{name}{}", ending(&from, *kind)) };
                let to = pair.path(folder).join(name);
                if to.starts_with(&from) || to.is_dir() {
                    return;
                }
                make(&pair.path(folder));
                if from.exists() {
                    _ = fs::rename(from, to); // a folder does not take a file's place
                }
            }
            Self::Swap { at, text } => {
                let Some(path) = pick(at) else { return };
                remove(&path);
                if path.extension().is_some() {
                    write(&path.with_extension("").join("init.luau"), KINDS[0].1[*text]);
                } else {
                    write(&path.with_extension("luau"), KINDS[0].1[*text]);
                }
            }
            Self::Project { text } => pair.write("default.project.json", text),
            Self::Nested { folder, text } => {
                if *folder != "src" {
                    put(pair, folder, "default.project.json", text);
                }
            }
        }
    }
}

/// A renamed file mostly stays what it is.
fn ending(from: &Path, kind: usize) -> String {
    let name = from.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let own = name.split_once('.').map(|(_, rest)| format!(".{rest}"));
    own.filter(|_| kind != 0).unwrap_or_else(|| KINDS[kind % 5].0.to_owned())
}

fn put(pair: &Pair, folder: &str, name: &str, text: &str) {
    let folder = pair.path(folder);
    make(&folder);
    if !folder.join(name).is_dir() {
        write(&folder.join(name), text);
    }
}

/// Make a folder, even where a file stands.
fn make(folder: &Path) {
    for above in folder.ancestors() {
        if above.is_file() {
            remove(above);
        }
    }
    fs::create_dir_all(folder).expect("folders can be made");
}

/// Everything below `folder`, sorted.
fn listing(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path.clone());
            }
            found.push(path);
        }
    }
    found.sort();
    found
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// What the cases came to, together.
#[derive(Default)]
struct Done(Mutex<Tally>);

impl Done {
    fn steps(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).steps()
    }

    fn add(&self, tally: &Tally) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(tally);
    }
}

/// One case's steps against both servers.
fn play(done: &Done, steps: &[Vec<Edit>]) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut pair = Pair::start(&[("default.project.json", PROJECTS[0]), ("src/x.luau", "return 1")]).await;
        for (number, batch) in steps.iter().enumerate() {
            batch.iter().for_each(|edit| edit.run(&pair));
            let agreed = pair.agree().await;
            agreed.map_err(|difference| {
                let files = listing(&pair.path("src"));
                format!("after step {number}, {batch:?}, with {files:#?}: {difference}")
            })?;
        }
        done.add(&pair.tally);
        Ok(())
    })
}

/// Cases until all together have made `wanted` steps.
fn random(done: &Done, wanted: usize, seed: u8) {
    let enough = wanted / IN_A_CASE.start + 1;
    let config = Config {
        cases: u32::try_from(enough).expect("not so many"),
        max_shrink_iters: MOST_SHRINKING,
        failure_persistence: None,
        ..Config::default()
    };
    let mut bytes = [seed; 32];
    bytes[..8].copy_from_slice(&number(SEED).unwrap_or_default().to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let outcome = runner.run(&steps(), |steps| {
        if done.steps() >= wanted {
            return Ok(());
        }
        play(done, &steps).map_err(TestCaseError::fail)
    });
    if let Err(TestError::Fail(reason, steps)) = outcome {
        panic!("{reason}\nafter these steps: {}", steps.iter().map(|batch| format!("\n{batch:?}")).collect::<String>());
    }
}

#[test]
fn random_edits() {
    let wanted = number(STEPS).map_or(120, |steps| usize::try_from(steps).expect("not so many"));
    let done = Done::default();
    std::thread::scope(|scope| {
        for seed in 1..=SIDE_BY_SIDE {
            let done = &done;
            scope.spawn(move || random(done, wanted, seed));
        }
    });
    eprintln!("{} random steps compared: {:?}", done.steps(), done.0.lock().unwrap_or_else(PoisonError::into_inner));
    assert!(done.steps() >= wanted, "{wanted} steps were asked for");
}
