//! An outside judge of the headless Studio: Luau that others wrote for Roblox, with its own specs.
//!
//! The specs come with the `rojo` crate, which we build upon: those of Rojo's official plugin and
//! of the libraries in it. They are run by TestEZ, which `tools/luau/outside` fetches. Neither is
//! in this tree; where one of them is absent, the test says so and checks nothing.

use librojo::{InstanceContext, RojoTree, snapshot_from_vfs};
use memofs::Vfs;
use rbx_dom_weak::{InstanceBuilder, WeakDom, types::Ref};
use rojo_mcp::headless::{HeadlessConfig, HeadlessStudio, Knobs};
use serde::Deserialize;
use std::path::{Path, PathBuf};

const VERSIONS: &str = include_str!("../tools/luau/versions");
const MANIFEST: &str = include_str!("../Cargo.toml");

/// How many tests of each must hold. Some of these libraries count on immediate signals, which
/// were the only ones when they were written; the others must hold either way.
const EITHER_WAY: [(&str, f64); 6] =
    [("Plugin", 64.0), ("Flipper", 26.0), ("MessagePack", 51.0), ("t", 36.0), ("Http", 1.0), ("Log", 1.0)];
const IMMEDIATE: [(&str, f64); 2] = [("Promise", 108.0), ("Roact", 249.0)];

#[derive(Debug, Deserialize)]
struct Suite {
    name: String,
    held: f64,
    failed: f64,
    skipped: f64,
    failures: Vec<String>,
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).expect("the file has this entry");
    rest.split(after).next().unwrap_or_default().trim()
}

fn home(variable: &str, below_home: &str) -> Option<PathBuf> {
    let own = std::env::var_os(variable).map(PathBuf::from);
    own.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(below_home)))
}

/// Where `tools/luau/outside` puts TestEZ.
fn testez() -> Option<PathBuf> {
    let tools = std::env::var_os("ROJO_MCP_TOOLS").map(PathBuf::from);
    let tools = tools.or_else(|| Some(home("XDG_CACHE_HOME", ".cache")?.join("rojo-mcp/luau-tools")))?;
    let folder = tools.join(format!("testez-{}/package/src", between(VERSIONS, "\nTESTEZ=", "#")));
    folder.is_dir().then_some(folder)
}

/// The sources of the `rojo` crate, where cargo unpacked them.
fn rojo() -> Option<PathBuf> {
    let name = format!("rojo-{}", between(MANIFEST, "\nrojo = \"=", "\""));
    let registries = std::fs::read_dir(home("CARGO_HOME", ".cargo")?.join("registry/src")).ok()?;
    let mut found = registries.flatten().map(|registry| registry.path().join(&name).join("plugin.project.json"));
    found.find(|project| project.is_file())
}

/// Put what Rojo makes of a path below `parent`.
fn add(dom: &mut WeakDom, parent: Ref, path: &Path, name: &str) -> Ref {
    let vfs = Vfs::new_default().expect("the disk can be watched");
    let snapshot = snapshot_from_vfs(&InstanceContext::default(), &vfs, path)
        .expect("a project")
        .expect("a project that is not empty");
    let tree = RojoTree::new(snapshot);
    let mut bytes = Vec::new();
    rbx_binary::to_writer(&mut bytes, tree.inner(), &[tree.get_root_id()]).expect("a model can be written");
    let mut model = rbx_binary::from_reader(&bytes[..]).expect("what was just written");
    let root = model.root().children()[0];
    model.get_by_ref_mut(root).expect("the root's child").name = name.to_owned();
    model.transfer(root, dom, parent);
    root
}

fn written(dom: &WeakDom) -> Vec<u8> {
    let mut bytes = Vec::new();
    rbx_binary::to_writer(&mut bytes, dom, dom.root().children()).expect("a model can be written");
    bytes
}

/// A Studio with TestEZ and what it is to run; `None` says why not.
fn studio(immediate_signals: bool) -> Option<HeadlessStudio> {
    let (Some(testez), Some(rojo)) = (testez(), rojo()) else {
        eprintln!("skipped: TestEZ is not there (run tools/luau/outside), or rojo was not built from a registry");
        return None;
    };
    let storage = InstanceBuilder::new("ReplicatedStorage");
    let mut place = WeakDom::new(InstanceBuilder::new("Folder").with_child(storage));
    let storage = place.root().children()[0];
    add(&mut place, storage, &testez, "TestEZ");
    add(&mut place, storage, &rojo, "Rojo");
    // Its own project leaves the spec out.
    add(&mut place, storage, &rojo.with_file_name("plugin/Packages/msgpack-luau/src"), "MessagePack");
    let idle = InstanceBuilder::new("Script").with_name("Idle").with_property("Source", "");
    let plugin = written(&WeakDom::new(InstanceBuilder::new("Folder").with_child(idle)));
    let knobs = Knobs { immediate_signals, ..Knobs::default() };
    let config = HeadlessConfig { place: written(&place), plugin, knobs, ..HeadlessConfig::default() };
    Some(HeadlessStudio::start(config).expect("the Studio starts"))
}

async fn run(studio: &HeadlessStudio) -> Vec<Suite> {
    let values = studio.run(include_str!("outside/runner.luau")).await.expect("the runner itself holds");
    serde_json::from_value(values[0].clone()).expect("a list of suites")
}

fn assert_held(suites: &[Suite], fewest: &[(&str, f64)]) {
    for (name, fewest) in fewest {
        let suite = suites.iter().find(|suite| suite.name == *name).expect(name);
        assert!(suite.failed == 0.0, "{name}: {} failed:\n{}", suite.failed, suite.failures.join("\n"));
        assert!(suite.held >= *fewest, "{name}: only {} held", suite.held);
        eprintln!("{name}: {} held, {} skipped by its authors", suite.held, suite.skipped);
    }
}

#[tokio::test]
async fn specs_of_others_hold() {
    let Some(studio) = studio(false) else { return };
    assert_held(&run(&studio).await, &EITHER_WAY);
}

#[tokio::test]
async fn specs_of_others_hold_with_immediate_signals() {
    let Some(studio) = studio(true) else { return };
    let suites = run(&studio).await;
    assert_held(&suites, &EITHER_WAY);
    assert_held(&suites, &IMMEDIATE);
}
