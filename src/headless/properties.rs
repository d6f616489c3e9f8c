//! Reading and writing properties, as the reflection database describes them.

use super::{
    errors::raise,
    history::Change,
    instance::as_instance,
    reflection::{self, Access, Property},
    signal::SignalName,
    values::{self, describe_type},
    world::World,
};
use mlua::prelude::*;
use rbx_dom_weak::{
    Ustr,
    types::{CFrame, Enum, Matrix3, Ref, Variant, VariantType, Vector2},
    ustr,
};
use rbx_reflection::{DataType, PropertyKind, PropertySerialization};

/// What a widget says of its size: there is no screen.
const WIDGET_SIZE: Vector2 = Vector2 { x: 320.0, y: 210.0 };

/// Whether the position of such an instance is part of its frame.
fn has_frame(class: &str) -> bool {
    reflection::is_a(class, "BasePart") || reflection::is_a(class, "Attachment")
}

impl World {
    pub(super) fn get_property(&self, lua: &Lua, this: Ref, property: Property) -> LuaResult<LuaValue> {
        let class = self.class(this);
        if property.name == "Position" && has_frame(&class) {
            return values::to_lua(lua, &Variant::Vector3(self.cframe(this).position));
        }
        let value = self.stored_value(this, property);
        match (&property.data_type, value) {
            (DataType::Value(VariantType::ContentId), Some(Variant::Content(content))) => {
                content.as_uri().unwrap_or_default().into_lua(lua)
            }
            (DataType::Enum(name), Some(Variant::Enum(item))) => values::enum_item(lua, name, item.to_u32()),
            (DataType::Enum(name), None) => {
                let lowest = reflection::enum_named(name).and_then(|items| items.items.values().min().copied());
                values::enum_item(lua, name, lowest.unwrap_or_default())
            }
            (DataType::Value(VariantType::Ref), Some(Variant::Ref(target))) => self.to_lua(lua, target),
            (DataType::Value(VariantType::Ref), None) => Ok(LuaValue::Nil),
            (DataType::Value(expected), Some(value)) if fits(*expected, value.ty()) => values::to_lua(lua, &value),
            (DataType::Value(expected), None) => match self.computed(this, property, *expected) {
                Some(value) => values::to_lua(lua, &value),
                None => self.no_value(this, property),
            },
            _ => self.no_value(this, property),
        }
    }

    /// What is stored or the default, under the name the file formats use.
    pub(super) fn stored_value(&self, this: Ref, property: Property) -> Option<Variant> {
        let class = self.class(this);
        let storage = reflection::storage_name(&class, property);
        let stored = self.dom.borrow().get_by_ref(this).and_then(|i| i.properties.get(&ustr(storage)).cloned());
        stored.or_else(|| reflection::default_value(&class, storage, property.name).cloned())
    }

    /// What the engine would have. A property that can be set starts empty; one that only the engine
    /// works out is not simulated.
    fn computed(&self, this: Ref, property: Property, ty: VariantType) -> Option<Variant> {
        if matches!(property.name, "AbsoluteSize" | "AbsoluteWindowSize") {
            return Some(Variant::Vector2(WIDGET_SIZE));
        }
        let settable = reflection::access(&self.class(this), property) == Access::ReadWrite;
        if settable { values::zero(ty) } else { None }
    }

    fn no_value<T>(&self, this: Ref, property: Property) -> LuaResult<T> {
        raise(super::instance::not_simulated(&self.class(this), property.name))
    }

    pub(super) fn set_property(&self, lua: &Lua, this: Ref, property: Property, value: &LuaValue) -> LuaResult<()> {
        let class = self.class(this);
        if reflection::access(&class, property) != Access::ReadWrite {
            return raise(format!("Unable to assign property {}. Property is read only", property.name));
        }
        if let LuaValue::String(text) = value {
            values::check_length(property.name, text.as_bytes().len())?;
        }
        let Some(new) = property_from_lua(property, value) else {
            return raise(format!(
                "Unable to assign property {}. {} expected, got {}",
                property.name,
                type_name(property),
                describe_type(value)
            ));
        };
        if let ("Position", Variant::Vector3(position)) = (property.name, &new)
            && has_frame(&class)
        {
            let moved = CFrame::new(*position, self.cframe(this).orientation);
            return self.store_and_tell(lua, this, "CFrame", Variant::CFrame(moved), &["CFrame", "Position"]);
        }
        let storage = reflection::storage_name(&class, property);
        let stored = to_storage(&class, storage, property, new)?;
        self.store_and_tell(lua, this, storage, stored, &[property.name])
    }

    /// Store a value and, if it is another than before, fire the change of `names`.
    pub(super) fn store_and_tell(
        &self,
        lua: &Lua,
        this: Ref,
        storage: &str,
        value: Variant,
        names: &[&'static str],
    ) -> LuaResult<()> {
        let storage = ustr(storage);
        let tracked = self.is_tracked(this);
        let before = match self.dom.borrow_mut().get_by_ref_mut(this) {
            Some(instance) if instance.properties.get(&storage) != Some(&value) => {
                let after = tracked.then(|| value.clone());
                (instance.properties.insert(storage, value), after)
            }
            _ => return Ok(()),
        };
        if let (before, Some(after)) = before {
            self.note_always(Change::Property { this, storage, before, after, told: names.to_vec() });
        }
        if storage == "Disabled" {
            self.script_switched(this);
        }
        names.iter().try_for_each(|name| self.changed(lua, this, name))
    }

    /// Give a stored property another value, or none; tells what `store_and_tell` told.
    pub(super) fn restore_property(
        &self,
        lua: &Lua,
        this: Ref,
        storage: Ustr,
        value: Option<Variant>,
        told: &[&str],
    ) -> LuaResult<()> {
        let named = self.named_values(this);
        if let Some(instance) = self.dom.borrow_mut().get_by_ref_mut(this) {
            match value {
                Some(value) => instance.properties.insert(storage, value),
                None => instance.properties.remove(&storage),
            };
        }
        self.tell_named_values(lua, this, &named)?;
        told.iter().try_for_each(|name| self.changed(lua, this, name))
    }

    /// Fire `GetPropertyChangedSignal(name)` and `Changed`.
    pub(super) fn changed(&self, lua: &Lua, this: Ref, name: &str) -> LuaResult<()> {
        if !self.signals.borrow().contains_key(&this) {
            return Ok(());
        }
        self.fire(lua, this, SignalName::Property(ustr(name)), || Ok(LuaMultiValue::new()))?;
        let class = self.class(this);
        let changed = SignalName::Event(ustr("Changed"));
        if !reflection::is_a(&class, "ValueBase") {
            return self.fire(lua, this, changed, || name.into_lua_multi(lua));
        }
        // A ValueBase tells of `Value` only, and gives the new value.
        match reflection::find_property(&class, "Value") {
            Some(property) if name == "Value" => {
                self.fire(lua, this, changed, || self.get_property(lua, this, property)?.into_lua_multi(lua))
            }
            _ => Ok(()),
        }
    }

    fn cframe(&self, this: Ref) -> CFrame {
        let dom = self.dom.borrow();
        match dom.get_by_ref(this).and_then(|instance| instance.properties.get(&ustr("CFrame"))) {
            Some(Variant::CFrame(cframe)) => *cframe,
            _ => CFrame::new(rbx_dom_weak::types::Vector3::new(0.0, 0.0, 0.0), Matrix3::identity()),
        }
    }

    /// The text of a script.
    pub(super) fn source(&self, this: Ref) -> String {
        let dom = self.dom.borrow();
        match dom.get_by_ref(this).and_then(|instance| instance.properties.get(&ustr("Source"))) {
            Some(Variant::String(source)) => source.clone(),
            Some(Variant::BinaryString(source)) => {
                let bytes: &[u8] = source.as_ref();
                String::from_utf8_lossy(bytes).into_owned()
            }
            _ => String::new(),
        }
    }
}

/// Whether a stored value can be read as the type a property declares.
fn fits(expected: VariantType, stored: VariantType) -> bool {
    expected == stored
        || matches!(
            (expected, stored),
            (VariantType::Color3, VariantType::Color3uint8)
                | (VariantType::String | VariantType::ContentId, VariantType::BinaryString | VariantType::String)
                | (VariantType::BinaryString, VariantType::SharedString | VariantType::String)
                | (VariantType::CFrame, VariantType::OptionalCFrame)
        )
}

fn type_name(property: Property) -> String {
    match &property.data_type {
        DataType::Enum(name) => format!("EnumItem of type {name}"),
        DataType::Value(VariantType::Bool) => "bool".to_owned(),
        DataType::Value(VariantType::String | VariantType::BinaryString) => "string".to_owned(),
        DataType::Value(VariantType::Float32 | VariantType::Float64 | VariantType::Int32 | VariantType::Int64) => {
            "number".to_owned()
        }
        DataType::Value(VariantType::Ref) => "Instance".to_owned(),
        DataType::Value(other) => format!("{other:?}"),
        other => format!("{:?}", other.ty()),
    }
}

fn property_from_lua(property: Property, value: &LuaValue) -> Option<Variant> {
    match &property.data_type {
        DataType::Enum(name) => enum_value(name, value).map(|item| Variant::Enum(Enum::from_u32(item))),
        DataType::Value(VariantType::Ref) => match value {
            LuaValue::Nil => Some(Variant::Ref(Ref::none())),
            other => as_instance(other).map(Variant::Ref),
        },
        DataType::Value(ty) => values::from_lua(value, *ty),
        _ => None,
    }
}

/// An item by itself, by name or by number.
fn enum_value(enum_name: &str, value: &LuaValue) -> Option<u32> {
    let items = &reflection::enum_named(enum_name)?.items;
    if let LuaValue::String(name) = value {
        return items.get(&*name.to_str().ok()?).copied();
    }
    if let Some(number) = values::as_number(value) {
        return items.values().copied().find(|item| f64::from(*item) == number);
    }
    values::as_enum_item(value).filter(|item| item.ty == enum_name).map(|item| item.value)
}

/// The stored form may be of another type than the property: `Color` is kept in bytes, old names migrate.
fn to_storage(class: &str, storage: &str, property: Property, value: Variant) -> LuaResult<Variant> {
    if let PropertyKind::Canonical { serialization: PropertySerialization::Migrate(migration) } = &property.kind {
        return migration.perform(&value).map_err(|error| LuaError::RuntimeError(error.to_string()));
    }
    let stored_as = reflection::find_property(class, storage).map(|target| target.data_type.ty());
    Ok(match (stored_as, value) {
        (Some(VariantType::Color3uint8), Variant::Color3(color)) => Variant::Color3uint8(color.into()),
        (_, value) => value,
    })
}
