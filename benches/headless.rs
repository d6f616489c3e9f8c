//! How long the headless Studio takes to start, and with a large place in it.
//!
//! `cargo bench --bench headless` prints the median of a few runs of each.

use rbx_dom_weak::{InstanceBuilder, WeakDom};
use rojo_mcp::headless::{HeadlessConfig, HeadlessStudio};
use std::time::Duration;

const RUNS: usize = 7;
const SCRIPTS: usize = 10_000;

#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

fn written(dom: &WeakDom) -> Vec<u8> {
    let mut bytes = Vec::new();
    rbx_binary::to_writer(&mut bytes, dom, dom.root().children()).expect("a model can be written");
    bytes
}

/// Folders of a hundred modules each.
fn large_place() -> Vec<u8> {
    let module = |index: usize| {
        let source = format!("-- module {index}\nlocal value = {index}\nreturn {{ value = value }}\n");
        InstanceBuilder::new("ModuleScript").with_name(format!("M{index}")).with_property("Source", source)
    };
    let folders = (0..SCRIPTS / 100).map(|folder| {
        let modules = (0..100).map(|index| module(folder * 100 + index));
        InstanceBuilder::new("Folder").with_name(format!("F{folder}")).with_children(modules)
    });
    let storage = InstanceBuilder::new("ServerStorage").with_children(folders);
    written(&WeakDom::new(InstanceBuilder::new("Folder").with_child(storage)))
}

fn config(place: &[u8]) -> HeadlessConfig {
    let mut settings = serde_json::Map::new();
    settings.insert("RojoMcpAutoConnect".to_owned(), serde_json::json!(false));
    let plugin = rojo_mcp::plugin_model::build().expect("the plugin is a project");
    HeadlessConfig { place: place.to_vec(), plugin, settings, ..HeadlessConfig::default() }
}

fn median(mut run: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS).map(|_| run()).collect();
    times.sort();
    times[RUNS / 2]
}

fn start(place: &[u8]) -> Duration {
    let config = config(place);
    let since = now();
    let studio = HeadlessStudio::start(config).expect("the Studio starts");
    let took = since.elapsed();
    drop(studio);
    took
}

/// Every text of a large place, as a plugin reads it that compares.
const READ_ALL: &str = "
    local bytes = 0
    for _, each in game.ServerStorage:GetDescendants() do
        if each:IsA('LuaSourceContainer') then bytes += #each.Source end
    end
    return bytes
";

const MAKE_ALL: &str = "
    local root = Instance.new('Folder')
    for index = 1, 10000 do
        local made = Instance.new('ModuleScript')
        made.Name = 'M' .. index
        made.Source = 'return ' .. index
        made.Parent = root
    end
    root.Parent = workspace
    return #root:GetChildren()
";

fn command(place: &[u8], code: &str) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let studio = HeadlessStudio::start(config(place)).expect("the Studio starts");
    let since = now();
    runtime.block_on(studio.run(code)).expect("the command holds");
    let took = since.elapsed();
    drop(studio);
    took
}

#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn main() {
    let large = large_place();
    println!("start, empty place           {:>9.1?}", median(|| start(&[])));
    println!("start, {SCRIPTS} scripts        {:>9.1?}", median(|| start(&large)));
    println!("read {SCRIPTS} scripts          {:>9.1?}", median(|| command(&large, READ_ALL)));
    println!("make {SCRIPTS} scripts          {:>9.1?}", median(|| command(&[], MAKE_ALL)));
}
