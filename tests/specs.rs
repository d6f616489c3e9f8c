//! The plugin's Luau specs, run in the headless Studio: `plugin/src/**/X.spec.luau` lies beside
//! the module it is about and is left out of the built plugin. See `specs/runner.luau` for what a
//! spec is given.

use librojo::{InstanceContext, RojoTree, snapshot_from_vfs};
use memofs::Vfs;
use rbx_dom_weak::{InstanceBuilder, WeakDom};
use rojo_mcp::headless::{HeadlessConfig, HeadlessStudio, Knobs};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// A spec that is lost must not go unnoticed: raise these with the specs.
const FEWEST_SPECS: usize = 33;
const FEWEST_TESTS: usize = 190;

#[derive(Deserialize)]
struct Outcome {
    /// Names below the plugin's script, joined with dots.
    spec: String,
    name: String,
    /// In the spec; 0 is unknown.
    line: f64,
    problem: Option<String>,
    checks: f64,
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("plugin/src")
}

fn written(dom: &WeakDom) -> Vec<u8> {
    let mut bytes = Vec::new();
    rbx_binary::to_writer(&mut bytes, dom, dom.root().children()).expect("a model in memory can be written");
    bytes
}

/// The golden frames of `tests/fixtures/wire`, each a `StringValue` with its file's name.
fn frames() -> InstanceBuilder {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/wire");
    let files = std::fs::read_dir(folder).expect("the folder of frames").map(|entry| {
        let path = entry.expect("a file of it").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a text file");
        InstanceBuilder::new("StringValue").with_name(name).with_property("Value", text)
    });
    InstanceBuilder::new("Folder").with_name("Wire").with_children(files)
}

/// The plugin with its specs, as `ServerStorage.Specs`. From the disk, so that an edited spec needs no build.
fn place() -> Vec<u8> {
    let vfs = Vfs::new_default().expect("the disk can be watched");
    let snapshot = snapshot_from_vfs(&InstanceContext::default(), &vfs, &sources())
        .expect("plugin/src can be read")
        .expect("plugin/src is a script");
    let tree = RojoTree::new(snapshot);
    let mut from = Vec::new();
    rbx_binary::to_writer(&mut from, tree.inner(), &[tree.get_root_id()]).expect("the plugin can be written");
    let mut plugin = rbx_binary::from_reader(&from[..]).expect("what was just written");
    let script = plugin.root().children()[0];
    plugin.get_by_ref_mut(script).expect("the root's child").name = "Specs".to_owned();

    let storage = InstanceBuilder::new("ServerStorage").with_child(frames());
    let mut dom = WeakDom::new(InstanceBuilder::new("Folder").with_child(storage));
    let storage = dom.root().children()[0];
    plugin.transfer(script, &mut dom, storage);
    written(&dom)
}

/// Only a plugin's own script sees `plugin`; this one hands it to the runner.
const LENDER: &str = r#"
    local lent = Instance.new("ObjectValue")
    lent.Name = "Plugin"
    lent.Value = plugin
    lent.Parent = game:GetService("ServerStorage")
"#;

fn lending_plugin() -> Vec<u8> {
    let script = InstanceBuilder::new("Script").with_name("Lender").with_property("Source", LENDER);
    written(&WeakDom::new(InstanceBuilder::new("Folder").with_child(script)))
}

fn specs_on_disk() -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![sources()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("plugin/src can be read") {
            let path = entry.expect("plugin/src can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(".spec.luau") {
                let below = path.strip_prefix(sources()).expect("below the sources");
                found.push(below.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

fn file_of(spec: &str) -> String {
    let stem = spec.strip_suffix(".spec").unwrap_or(spec);
    format!("{}.spec.luau", stem.replace('.', "/"))
}

fn describe(outcome: &Outcome) -> Option<String> {
    let problem = outcome.problem.as_ref()?;
    let place = format!("plugin/src/{}:{}", file_of(&outcome.spec), outcome.line);
    Some(format!("{place}: {}\n    {problem}", outcome.name))
}

async fn run(knobs: Knobs, only: Option<&str>) -> Vec<Outcome> {
    let config = HeadlessConfig { place: place(), plugin: lending_plugin(), knobs, ..HeadlessConfig::default() };
    let studio = HeadlessStudio::start(config).expect("the Studio starts");
    let mut runner = include_str!("specs/runner.luau").to_owned();
    if let Some(only) = only {
        runner = runner.replace("local ONLY: string? = nil", &format!("local ONLY: string? = {only:?}"));
    }
    let values = studio.run(&runner).await.expect("the runner itself holds");
    let outcomes: Vec<Outcome> =
        serde_json::from_value(values.into_iter().next().expect("the runner returns a list")).expect("of outcomes");
    let failures: Vec<String> = outcomes.iter().filter_map(describe).collect();
    assert!(failures.is_empty(), "{} of {} failed:\n{}", failures.len(), outcomes.len(), failures.join("\n"));
    outcomes
}

#[tokio::test]
async fn every_spec_of_the_plugin_holds() {
    let outcomes = run(Knobs::default(), None).await;
    let mut ran: BTreeMap<String, usize> = BTreeMap::new();
    for outcome in &outcomes {
        *ran.entry(file_of(&outcome.spec)).or_default() += 1;
    }
    assert_eq!(ran.keys().collect::<Vec<_>>(), specs_on_disk().iter().collect::<Vec<_>>());
    assert!(ran.len() >= FEWEST_SPECS, "only {} specs", ran.len());
    assert!(outcomes.len() >= FEWEST_TESTS, "only {} tests", outcomes.len());
    let checks: f64 = outcomes.iter().map(|outcome| outcome.checks).sum();
    eprintln!("{} specs, {} tests, {checks} checks", ran.len(), outcomes.len());
}

#[tokio::test]
async fn the_plugin_bears_either_form_of_a_hash() {
    let knobs = Knobs { hash_as_hex: true, ..Knobs::default() };
    assert_eq!(run(knobs, Some("Hash.spec")).await.len(), 3);
}
