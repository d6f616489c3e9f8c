//! Questions to the reflection database: classes and their properties.

use super::api::{self, ApiKind};
use rbx_dom_weak::types::Variant;
use rbx_reflection::{
    ClassDescriptor, ClassTag, EnumDescriptor, PropertyDescriptor, PropertyKind, PropertySerialization,
    ReflectionDatabase, Scriptability,
};

pub(super) type Property = &'static PropertyDescriptor<'static>;

/// The root of all classes; the database begins one below it.
const OBJECT: &str = "Object";

fn database() -> &'static ReflectionDatabase<'static> {
    rbx_reflection_database::get().expect("the bundled database is part of the binary")
}

/// The descriptor of a class, if Roblox has one of this name.
pub(super) fn class(name: &str) -> Option<&'static ClassDescriptor<'static>> {
    database().classes.get(name)
}

/// The descriptor of an enum, if Roblox has one of this name.
pub(super) fn enum_named(name: &str) -> Option<&'static EnumDescriptor<'static>> {
    database().enums.get(name)
}

/// The class and its superclasses, most derived first, `Object` last.
pub(super) fn class_chain(name: &str) -> impl Iterator<Item = &'static str> {
    let mut next = class(name);
    let known = std::iter::from_fn(move || {
        let current = next?;
        next = current.superclass.and_then(class);
        Some(current.name)
    });
    known.filter(|name| *name != OBJECT).chain([OBJECT])
}

pub(super) fn is_a(class: &str, ancestor: &str) -> bool {
    class_chain(class).any(|name| name == ancestor)
}

pub(super) fn is_service(name: &str) -> bool {
    class(name).is_some_and(|class| class.tags.contains(&ClassTag::Service))
}

pub(super) fn is_creatable(name: &str) -> bool {
    class(name).is_some_and(|class| !class.tags.contains(&ClassTag::NotCreatable))
}

/// The property `name` of a class, own or inherited.
pub(super) fn find_property(class_name: &str, name: &str) -> Option<Property> {
    class_chain(class_name).find_map(|link| class(link)?.properties.get(name))
}

/// The name a property is stored under, which is also what `rbx_binary` reads and writes.
pub(super) fn storage_name(class: &str, property: Property) -> &'static str {
    let target = match &property.kind {
        PropertyKind::Alias { alias_for } => Some(*alias_for),
        PropertyKind::Canonical { serialization: PropertySerialization::Migrate(migration) } => {
            migration.new_property_names().first().copied()
        }
        _ => None,
    };
    let Some(target) = target.filter(|target| *target != property.name) else { return property.name };
    match find_property(class, target) {
        Some(next) => storage_name(class, next),
        None => property.name,
    }
}

/// The value of a property that was never set.
pub(super) fn default_value(class_name: &str, storage: &str, name: &str) -> Option<&'static Variant> {
    class_chain(class_name).find_map(|link| {
        let defaults = &class(link)?.default_properties;
        defaults.get(storage).or_else(|| defaults.get(name))
    })
}

/// What a plugin may do with a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    ReadWrite,
    ReadOnly,
    Hidden,
}

/// The database has no security levels: what only plugins may touch looks hidden
/// there, so the member table is asked as well.
pub(super) fn access(class_name: &str, property: Property) -> Access {
    match property.scriptability {
        Scriptability::ReadWrite => Access::ReadWrite,
        Scriptability::Read => Access::ReadOnly,
        _ if property.name == "Source" && is_a(class_name, "LuaSourceContainer") => Access::ReadWrite,
        _ if class_chain(class_name)
            .any(|link| api::own_member(link, property.name) == Some(ApiKind::PluginProperty)) =>
        {
            Access::ReadWrite
        }
        _ => Access::Hidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chain_ends_in_object() {
        assert_eq!(
            class_chain("ModuleScript").collect::<Vec<_>>(),
            ["ModuleScript", "LuaSourceContainer", "Instance", "Object"]
        );
        assert!(is_a("Part", "BasePart") && is_a("Part", "Object") && !is_a("Part", "Model"));
    }

    #[test]
    fn aliases_lead_to_what_is_stored() {
        let size = find_property("Part", "size").expect("the database has the old name");
        assert_eq!(storage_name("Part", size), "Size");
    }

    #[test]
    fn a_plugin_may_touch_source() {
        let source = find_property("ModuleScript", "Source").expect("scripts have a source");
        assert_eq!(access("ModuleScript", source), Access::ReadWrite);
    }
}
