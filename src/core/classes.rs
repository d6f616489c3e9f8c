//! What the reflection database says of classes: which properties a plugin may write.

use std::collections::BTreeMap;

use rbx_reflection::{
    ClassDescriptor, DataType, PropertyDescriptor, PropertyKind, PropertySerialization, ReflectionDatabase,
    Scriptability,
};

/// For each property of a class, by name, the type that its value is written in.
pub type PropertyTypes = BTreeMap<String, String>;

/// The name by which a plugin writes the property `name` of a class; `None`: it may not, or the
/// property is the instance itself (its name, a script's text).
pub fn writable(class: &str, name: &str) -> Option<&'static str> {
    let known = named(class, name)?;
    is_writable(known).then_some(known.name)
}

/// The properties of a class that a plugin can read and a file then holds.
pub fn kept(class: &str) -> PropertyTypes {
    let all = chain(class).flat_map(|class| class.properties.values());
    let stored = |known: &&PropertyDescriptor<'_>| {
        matches!(known.kind, PropertyKind::Canonical { serialization: PropertySerialization::Serializes })
            || matches!(known.kind, PropertyKind::Canonical { serialization: PropertySerialization::SerializesAs(_) })
    };
    let named = all.filter(stored).filter(|known| is_writable(known) && known.name != "Archivable");
    named.map(|known| (known.name.to_owned(), type_of(&known.data_type))).collect()
}

fn type_of(data_type: &DataType<'_>) -> String {
    match data_type {
        DataType::Enum(_) => "Enum".to_owned(),
        other => format!("{:?}", other.ty()),
    }
}

fn is_writable(known: &PropertyDescriptor<'_>) -> bool {
    let is_own = matches!(known.name, "Name" | "Parent" | "ClassName" | "Source");
    !is_own && (matches!(known.scriptability, Scriptability::ReadWrite) || has_methods(known))
}

/// What is in a LocalizationTable is hidden, and read and written by methods of it.
fn has_methods(known: &PropertyDescriptor<'_>) -> bool {
    known.name == "Contents" && matches!(known.scriptability, Scriptability::Custom)
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
        assert_eq!(writable("LocalizationTable", "Contents"), Some("Contents"), "by its methods");
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

    #[test]
    fn a_file_holds_each_property_once_and_by_its_type() {
        let part = kept("Part");
        let of = |name: &str| part.get(name).map(String::as_str);
        assert_eq!((of("Size"), of("Material"), of("Anchored")), (Some("Vector3"), Some("Enum"), Some("Bool")));
        assert_eq!((of("size"), of("Position"), of("BrickColor"), of("Name")), (None, None, None, None));
        assert_eq!(kept("Model").get("PrimaryPart").map(String::as_str), Some("Ref"));
        assert_eq!(kept("LocalizationTable").get("Contents").map(String::as_str), Some("String"));
    }
}
