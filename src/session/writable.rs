//! Of an instance's properties those that a plugin may write, as the reflection database says.

use librojo::InstanceWithMeta;
use rbx_dom_weak::{
    UstrMap,
    types::{Attributes, Variant},
};

use super::values::encode;
use crate::core::{
    classes::writable,
    values::{Properties, weight},
};

/// What is larger than this, encoded, no file means as a property.
const LARGEST: usize = 8 << 20;

/// Rojo's own attributes, which are about files alone.
const OF_ROJO: &str = "Rojo_";
/// The engine's own.
const OF_ENGINE: &str = "RBX";

/// What the files specify of `instance`, encoded.
pub(super) fn properties(instance: &InstanceWithMeta<'_>) -> Properties {
    of(instance.class_name().as_str(), instance.properties())
}

/// The same of any instance of `class`.
pub(super) fn of(class: &str, properties: &UstrMap<Variant>) -> Properties {
    let mut found = Properties::new();
    for (name, value) in properties {
        match value {
            Variant::Attributes(attributes) => add_attributes(attributes, &mut found),
            Variant::Tags(_) => found.extend(encode(value).map(|value| ("Tags".to_owned(), value))),
            // The pivot as it is stored; a plugin writes it by another name.
            Variant::OptionalCFrame(Some(pivot)) if name.as_str() == "WorldPivotData" => {
                found.extend(encode(&Variant::CFrame(*pivot)).map(|value| ("WorldPivot".to_owned(), value)));
            }
            _ if name.as_str() == "Source" => {}
            _ => {
                let Some(known) = writable(class, name.as_str()) else { continue };
                // The one that is given by its own name counts.
                if known == name.as_str() || !properties.contains_key(&known.into()) {
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
