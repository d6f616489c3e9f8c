//! Trees as they can be compared: without ids.

use std::collections::{BTreeMap, HashMap};

use librojo::web_api::Instance;
use rbx_dom_weak::types::{Ref, Variant};

/// A line for each instance: path, class with `ignoreUnknownInstances`, properties; sorted.
pub type Shape = Vec<(String, String, BTreeMap<String, String>)>;

/// What can be compared of a tree: ids become paths.
pub fn of(instances: &HashMap<Ref, Instance<'static>>) -> Shape {
    let line = |instance: &Instance<'static>| {
        let show = |value: &Variant| match value {
            Variant::Ref(target) => format!("-> {}", path_of(instances, *target)),
            value => format!("{value:?}"),
        };
        let properties = instance.properties.iter().map(|(key, value)| (key.to_string(), show(value))).collect();
        let ignore = instance.metadata.as_ref().map(|metadata| metadata.ignore_unknown_instances);
        (path_of(instances, instance.id), format!("{} {ignore:?}", instance.class_name), properties)
    };
    let mut shape: Shape = instances.values().map(line).collect();
    shape.sort();
    shape
}

fn path_of(instances: &HashMap<Ref, Instance<'static>>, id: Ref) -> String {
    let up = std::iter::successors(instances.get(&id), |instance| instances.get(&instance.parent));
    let mut names: Vec<&str> = up.map(|instance| instance.name.as_ref()).collect();
    names.reverse();
    names.join(".")
}

/// Where two trees differ, for people.
pub fn difference(left: (&str, &Shape), right: (&str, &Shape)) -> String {
    let only = |a: &Shape, b: &Shape| {
        let mut left = a.clone();
        for line in b {
            if let Some(at) = left.iter().position(|other| other == line) {
                left.remove(at);
            }
        }
        left
    };
    format!("only {}: {:#?}\nonly {}: {:#?}", left.0, only(left.1, right.1), right.0, only(right.1, left.1))
}
