//! Of an instance's properties those that a plugin may write, as the reflection database says.

use librojo::InstanceWithMeta;
use rbx_dom_weak::types::{Attributes, Variant};
use rbx_reflection::{ClassDescriptor, PropertyDescriptor, PropertyKind, ReflectionDatabase, Scriptability};

use super::values::encode;
use crate::core::values::{Properties, weight};

/// What is larger than this, encoded, no file means as a property.
const LARGEST: usize = 8 << 20;

/// Rojo's own attributes, which are about files alone.
const OF_ROJO: &str = "Rojo_";
/// The engine's own.
const OF_ENGINE: &str = "RBX";

/// What the files specify of `instance`, encoded.
pub(super) fn properties(instance: &InstanceWithMeta<'_>) -> Properties {
    let class = instance.class_name();
    let mut found = Properties::new();
    for (name, value) in instance.properties() {
        match value {
            Variant::Attributes(attributes) => add_attributes(attributes, &mut found),
            Variant::Tags(_) => found.extend(encode(value).map(|value| ("Tags".to_owned(), value))),
            // The pivot as it is stored; a plugin writes it by another name.
            Variant::OptionalCFrame(Some(pivot)) if name.as_str() == "WorldPivotData" => {
                found.extend(encode(&Variant::CFrame(*pivot)).map(|value| ("WorldPivot".to_owned(), value)));
            }
            _ if name.as_str() == "Source" => {}
            _ => {
                let Some(known) = writable(class.as_str(), name.as_str()) else { continue };
                // The one that is given by its own name counts.
                if known == name.as_str() || !instance.properties().contains_key(&known.into()) {
                    found.extend(encode(value).map(|value| (known.to_owned(), value)));
                }
            }
        }
    }
    if weight(&found) > LARGEST {
        found.retain(|_, value| weight(&Properties::from([(String::new(), value.clone())])) <= LARGEST);
    }
    found
}

fn add_attributes(attributes: &Attributes, found: &mut Properties) {
    for (name, value) in attributes {
        if !name.starts_with(OF_ROJO) && !name.starts_with(OF_ENGINE) {
            found.extend(encode(value).map(|value| (format!("@{name}"), value)));
        }
    }
}

/// The name by which a plugin writes the property `name` of a class; `None`: it may not, or the
/// property is the instance itself (its name, a script's text).
fn writable(class: &str, name: &str) -> Option<&'static str> {
    let known = named(class, name)?;
    let is_own = matches!(known.name, "Name" | "Parent" | "ClassName" | "Source");
    (matches!(known.scriptability, Scriptability::ReadWrite) && !is_own).then_some(known.name)
}

/// The property that `name` stands for.
fn named(class: &str, name: &str) -> Option<&'static PropertyDescriptor<'static>> {
    let known = chain(class).find_map(|class| class.properties.get(name))?;
    match known.kind {
        PropertyKind::Alias { alias_for } => chain(class).find_map(|class| class.properties.get(alias_for)),
        PropertyKind::Canonical { .. } => Some(known),
        _ => None,
    }
}

fn chain(class: &str) -> impl Iterator<Item = &'static ClassDescriptor<'static>> {
    let mut next = database().classes.get(class);
    std::iter::from_fn(move || {
        let current = next?;
        next = current.superclass.and_then(|above| database().classes.get(above));
        Some(current)
    })
}

fn database() -> &'static ReflectionDatabase<'static> {
    rbx_reflection_database::get().expect("the bundled database is part of the binary")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_writes_by_the_name_of_today() {
        assert_eq!(writable("Part", "size"), Some("Size"));
        assert_eq!(writable("Part", "Anchored"), Some("Anchored"), "inherited");
        assert_eq!(writable("TextLabel", "Font"), Some("Font"));
    }

    #[test]
    fn what_a_plugin_may_not_write_is_left_out() {
        for (class, name) in [
            ("Lighting", "Technology"),
            ("HttpService", "HttpEnabled"),
            ("MeshPart", "MeshId"),
            ("ModuleScript", "Source"),
            ("Part", "Name"),
            ("Part", "NoSuchProperty"),
            ("NoSuchClass", "Size"),
        ] {
            assert_eq!(writable(class, name), None, "{class}.{name}");
        }
    }
}
