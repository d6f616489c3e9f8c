//! References between instances: from the ids of one snapshot to the ids of the tree, and by the
//! names that `Rojo_Id` and `Rojo_Target_<property>` attributes give.

use std::{collections::HashMap, sync::LazyLock};

use librojo::{InstanceSnapshot, REF_ID_ATTRIBUTE_NAME, REF_POINTER_ATTRIBUTE_PREFIX, RojoRef, RojoTree};
use rbx_dom_weak::{
    Ustr, UstrMap,
    types::{Attributes, Ref, Variant},
    ustr,
};

/// Which instances point at others by name. Kept beside the tree, because a target can come, go
/// or change its id while the file that points at it stays as it is.
#[derive(Debug, Default)]
pub(super) struct Pointers(HashMap<Ref, Vec<Pointer>>);

#[derive(Debug, PartialEq)]
struct Pointer {
    property: Ustr,
    target: RojoRef,
}

impl Pointers {
    /// Note what the attributes of `id` point at.
    pub fn note(&mut self, id: Ref, properties: &UstrMap<Variant>) {
        let pointers = pointers_of(properties);
        if pointers.is_empty() {
            self.0.remove(&id);
        } else {
            self.0.insert(id, pointers);
        }
    }

    /// `id` is gone.
    pub fn forget(&mut self, id: Ref) {
        self.0.remove(&id);
    }

    /// Set in `properties` what the pointers of `id` resolve to now; remove what resolves to nothing.
    pub fn resolve(&self, tree: &RojoTree, id: Ref, properties: &mut UstrMap<Variant>) {
        for pointer in self.0.get(&id).into_iter().flatten() {
            match tree.get_specified_id(&pointer.target) {
                Some(target) => properties.insert(pointer.property, Variant::Ref(target)),
                None => properties.remove(&pointer.property),
            };
        }
    }

    /// Every property whose value in the tree is not what its pointer resolves to.
    pub fn stale(&self, tree: &RojoTree) -> Vec<(Ref, Ustr, Option<Variant>)> {
        let mut stale = Vec::new();
        for (&id, pointers) in &self.0 {
            let Some(instance) = tree.get_instance(id) else { continue };
            for pointer in pointers {
                let wanted = tree.get_specified_id(&pointer.target).map(Variant::Ref);
                if instance.properties().get(&pointer.property) != wanted.as_ref() {
                    stale.push((id, pointer.property, wanted));
                }
            }
        }
        stale
    }
}

/// Put the name that a `Rojo_Id` attribute gives where the tree looks for it.
pub(super) fn name_by_attribute(snapshot: &mut InstanceSnapshot) {
    let named = attributes(&snapshot.properties).and_then(|attributes| {
        let (_, name) = attributes.iter().find(|(key, _)| key.as_str() == REF_ID_ATTRIBUTE_NAME)?;
        text(name)
    });
    if let Some(name) = named {
        snapshot.metadata.specified_id = Some(RojoRef::new(name.to_owned()));
    }
}

/// Rewrite references from the snapshot's ids to the tree's. What points outside the snapshot
/// points at nothing.
pub(super) fn translate(ids: &HashMap<Ref, Ref>, properties: &mut UstrMap<Variant>) {
    for value in properties.values_mut() {
        if let Variant::Ref(target) = value {
            *target = ids.get(target).copied().unwrap_or_else(Ref::none);
        }
    }
}

fn pointers_of(properties: &UstrMap<Variant>) -> Vec<Pointer> {
    let pointer = |(key, value): (&String, &Variant)| {
        let property = ustr(key.strip_prefix(REF_POINTER_ATTRIBUTE_PREFIX)?);
        Some(Pointer { property, target: RojoRef::new(text(value)?.to_owned()) })
    };
    attributes(properties).into_iter().flat_map(|attributes| attributes.iter().filter_map(pointer)).collect()
}

fn attributes(properties: &UstrMap<Variant>) -> Option<&Attributes> {
    static NAME: LazyLock<Ustr> = LazyLock::new(|| ustr("Attributes"));
    match properties.get(&*NAME) {
        Some(Variant::Attributes(attributes)) => Some(attributes),
        _ => None,
    }
}

fn text(value: &Variant) -> Option<&str> {
    match value {
        Variant::String(text) => Some(text),
        Variant::BinaryString(bytes) => std::str::from_utf8(bytes.as_ref()).ok(),
        _ => None,
    }
}
