//! Tests of the simulation: each starts a Studio as the product does.

mod conformance;
mod network;
mod play;
mod running;

use super::{HeadlessConfig, HeadlessStudio, Knobs};
use rbx_dom_weak::{InstanceBuilder, WeakDom};

/// A model of one Script named `Plugin`, with module scripts below it.
fn plugin(source: &str, modules: &[(&str, &str)]) -> Vec<u8> {
    let children = modules
        .iter()
        .map(|(name, source)| InstanceBuilder::new("ModuleScript").with_name(*name).with_property("Source", *source));
    let script =
        InstanceBuilder::new("Script").with_name("Plugin").with_property("Source", source).with_children(children);
    model(script)
}

fn model(root: InstanceBuilder) -> Vec<u8> {
    let dom = WeakDom::new(InstanceBuilder::new("Folder").with_child(root));
    let mut bytes = Vec::new();
    rbx_binary::to_writer(&mut bytes, &dom, dom.root().children()).expect("a small model can be written");
    bytes
}

/// A place with these services.
fn place(services: Vec<InstanceBuilder>) -> Vec<u8> {
    let dom = WeakDom::new(InstanceBuilder::new("Folder").with_children(services));
    let mut bytes = Vec::new();
    rbx_binary::to_writer(&mut bytes, &dom, dom.root().children()).expect("a small place can be written");
    bytes
}

fn script(class: &str, name: &str, source: &str) -> InstanceBuilder {
    InstanceBuilder::new(class).with_name(name).with_property("Source", source)
}

fn studio_with(plugin_source: &str, knobs: Knobs) -> HeadlessStudio {
    let config = HeadlessConfig { plugin: plugin(plugin_source, &[]), knobs, ..HeadlessConfig::default() };
    HeadlessStudio::start(config).expect("the Studio starts")
}

/// A Studio whose plugin does nothing.
fn studio() -> HeadlessStudio {
    studio_with("", Knobs::default())
}

fn log_text(studio: &HeadlessStudio) -> Vec<String> {
    studio.log().iter().map(|line| format!("{} {}", line.level, line.text_lossy())).collect()
}
