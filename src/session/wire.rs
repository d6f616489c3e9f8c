//! From the tree to what is said of it: Rojo's web structures and our own nodes.

use std::{borrow::Cow, collections::HashMap};

use librojo::{InstanceMetadata, InstanceWithMeta, RojoTree, web_api};
use rbx_dom_weak::{
    types::{Ref, Variant, VariantType},
    ustr,
};

use super::{
    reconcile::{Applied, Update},
    writable,
};
use crate::core::{
    ids::NodeId,
    protocol::{NewNode, Node, PatchOp},
    text::TextHash,
};

/// The id that our protocol uses for `id`: the same number.
pub fn node_id(id: Ref) -> NodeId {
    // Rojo prints a referent as its number, and gives no other way to it.
    NodeId(u128::from_str_radix(&id.to_string(), 16).expect("a referent prints as hex digits"))
}

/// The referent of `id`.
pub fn referent(id: NodeId) -> Ref {
    if id.0 == 0 { Ref::none() } else { Ref::some(id.0) }
}

/// `instance` as Rojo's API says it.
pub fn web_instance(instance: InstanceWithMeta<'_>) -> web_api::Instance<'_> {
    let properties = instance.properties().iter().filter(|(_, value)| sendable(value));
    web_api::Instance {
        id: instance.id(),
        parent: instance.parent(),
        name: Cow::Borrowed(instance.name()),
        class_name: instance.class_name(),
        properties: properties.map(|(key, value)| (*key, Cow::Borrowed(value))).collect(),
        children: Cow::Borrowed(instance.children()),
        metadata: Some(web_metadata(instance.metadata())),
    }
}

/// The text of a script; `None` for anything else.
pub fn source<'a>(instance: &InstanceWithMeta<'a>) -> Option<&'a str> {
    if !matches!(instance.class_name().as_str(), "Script" | "LocalScript" | "ModuleScript") {
        return None;
    }
    match instance.properties().get(&ustr("Source")) {
        Some(Variant::String(text)) => Some(text),
        _ => None,
    }
}

pub(super) fn node(instance: InstanceWithMeta<'_>, hash: Option<TextHash>) -> Node {
    Node {
        id: node_id(instance.id()),
        parent: instance.parent().is_some().then(|| node_id(instance.parent())),
        name: instance.name().to_owned(),
        class_name: instance.class_name().as_str().to_owned(),
        ignore_unknown: instance.metadata().ignore_unknown_instances,
        hash,
        properties: writable::properties(&instance),
    }
}

pub(super) fn new_node(tree: &RojoTree, id: Ref) -> Option<NewNode> {
    let instance = tree.get_instance(id)?;
    Some(NewNode {
        id: node_id(id),
        name: instance.name().to_owned(),
        class_name: instance.class_name().as_str().to_owned(),
        source: source(&instance).map(str::to_owned),
        properties: writable::properties(&instance),
        children: instance.children().iter().filter_map(|&child| new_node(tree, child)).collect(),
    })
}

/// What happened, in Rojo's words.
pub(super) fn web_message(tree: &RojoTree, applied: &Applied) -> web_api::SubscribeMessage<'static> {
    let added = applied.added.iter().filter_map(|&id| tree.get_instance(id));
    web_api::SubscribeMessage {
        removed: applied.removed.clone(),
        added: added.map(|instance| (instance.id(), owned(web_instance(instance)))).collect::<HashMap<_, _>>(),
        updated: applied.updated.iter().map(|update| web_update(tree, update)).collect(),
    }
}

/// What happened, in ours. `hash` knows the hash of a script.
pub(super) fn patch_ops(
    tree: &RojoTree,
    applied: &Applied,
    hash: impl Fn(InstanceWithMeta<'_>) -> Option<TextHash>,
) -> Vec<PatchOp> {
    // The tree sets this one by itself.
    let hidden = ustr("NeedsPivotMigration");
    let seen = |update: &&Update| {
        update.name.is_some()
            || update.class.is_some()
            || update.ignore_unknown
            || update.properties.keys().any(|name| *name != hidden)
    };
    let put = |id: Ref| {
        let instance = tree.get_instance(id)?;
        Some(PatchOp::Put { node: node(instance, hash(instance)) })
    };
    let dropped = applied.removed.iter().map(|&id| PatchOp::Drop { id: node_id(id) });
    let added = applied.added.iter().filter_map(|&id| put(id));
    let updated = applied.updated.iter().filter(seen).filter_map(|update| put(update.id));
    dropped.chain(added).chain(updated).collect()
}

fn web_update(tree: &RojoTree, update: &Update) -> web_api::InstanceUpdate {
    let properties = update.properties.iter().filter(|(_, value)| value.as_ref().is_none_or(sendable));
    let metadata = tree.get_metadata(update.id).filter(|_| update.ignore_unknown);
    web_api::InstanceUpdate {
        id: update.id,
        changed_name: update.name.clone(),
        changed_class_name: update.class,
        changed_properties: properties.map(|(key, value)| (*key, value.clone())).collect(),
        changed_metadata: metadata.map(web_metadata),
    }
}

fn web_metadata(metadata: &InstanceMetadata) -> web_api::InstanceMetadata {
    web_api::InstanceMetadata { ignore_unknown_instances: metadata.ignore_unknown_instances }
}

fn owned(instance: web_api::Instance<'_>) -> web_api::Instance<'static> {
    web_api::Instance {
        id: instance.id,
        parent: instance.parent,
        name: Cow::Owned(instance.name.into_owned()),
        class_name: instance.class_name,
        properties: instance.properties.into_iter().map(|(key, value)| (key, Cow::Owned(value.into_owned()))).collect(),
        children: Cow::Owned(instance.children.into_owned()),
        metadata: instance.metadata,
    }
}

/// A `SharedString` cannot be serialised, and the plugin could do nothing with it: Rojo leaves it out.
fn sendable(value: &Variant) -> bool {
    value.ty() != VariantType::SharedString
}
