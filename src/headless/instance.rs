//! The Luau value of an instance.

use super::{
    api,
    errors::raise,
    history::Change,
    members::Member,
    reflection,
    signal::SignalName,
    values::{self, describe_type},
    world::{World, world},
};
use mlua::prelude::*;
use rbx_dom_weak::{types::Ref, ustr};
use std::{cell::RefCell, rc::Rc};

/// An instance as Luau code holds it; see [`World::to_lua`] for its identity.
pub(super) struct Inst {
    pub(super) referent: Ref,
    collected: Rc<RefCell<Vec<Ref>>>,
}

impl Inst {
    pub(super) fn new(referent: Ref, collected: Rc<RefCell<Vec<Ref>>>) -> Self {
        Self { referent, collected }
    }
}

impl Drop for Inst {
    fn drop(&mut self) {
        // Also dropped by the garbage collector while the list is in use elsewhere; then the next one tells.
        if let Ok(mut collected) = self.collected.try_borrow_mut() {
            collected.push(self.referent);
        }
    }
}

impl LuaUserData for Inst {
    fn add_fields<F: LuaUserDataFields<Self>>(fields: &mut F) {
        fields.add_meta_field(LuaMetaMethod::Type, "Instance");
    }

    fn add_methods<M: LuaUserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_function(LuaMetaMethod::Index, index);
        methods.add_meta_function(LuaMetaMethod::NewIndex, new_index);
        methods.add_meta_method(LuaMetaMethod::ToString, |lua, this, ()| Ok(world(lua).name(this.referent)));
        methods.add_meta_method(LuaMetaMethod::Eq, |_, this, other: LuaAnyUserData| {
            Ok(other.borrow::<Self>().is_ok_and(|other| other.referent == this.referent))
        });
    }
}

/// The instance in a value, if it is one.
pub(super) fn as_instance(value: &LuaValue) -> Option<Ref> {
    match value {
        LuaValue::UserData(userdata) => userdata.borrow::<Inst>().ok().map(|this| this.referent),
        _ => None,
    }
}

fn member_name(key: &LuaValue) -> LuaResult<String> {
    match key {
        LuaValue::String(name) => Ok(name.to_string_lossy()),
        other => raise(format!("invalid argument #2 (string expected, got {})", describe_type(other))),
    }
}

fn index(lua: &Lua, (userdata, key): (LuaAnyUserData, LuaValue)) -> LuaResult<LuaValue> {
    let world = world(lua);
    let this = userdata.borrow::<Inst>()?.referent;
    let key = member_name(&key)?;
    let class = world.class(this);
    match key.as_str() {
        "Name" => return world.name(this).into_lua(lua),
        "ClassName" => return class.as_str().into_lua(lua),
        "Parent" => return world.to_lua(lua, world.parent(this)),
        _ => {}
    }
    match &*world.members.resolve(class, &key)? {
        Member::Method(function) => Ok(LuaValue::Function(function.clone())),
        Member::Getter(getter) => getter.call(userdata),
        Member::Event => world.signal(this, SignalName::Event(ustr(&key))).into_lua(lua),
        Member::Property(property) => world.get_property(lua, this, property),
        Member::NotSimulated(owner) => raise(not_simulated(owner, &key)),
        Member::Unknown => match world.child_named(this, &key) {
            Some(child) => world.to_lua(lua, child),
            None => raise(world.not_a_member(this, &key)),
        },
    }
}

fn new_index(lua: &Lua, (userdata, key, value): (LuaAnyUserData, LuaValue, LuaValue)) -> LuaResult<()> {
    let world = world(lua);
    let this = userdata.borrow::<Inst>()?.referent;
    let key = member_name(&key)?;
    let class = world.class(this);
    match key.as_str() {
        "Name" => return world.set_name(lua, this, &value),
        "Parent" => return world.set_parent_value(lua, this, &value),
        "ClassName" => return raise("Unable to assign property ClassName. Property is read only"),
        _ => {}
    }
    if let Some(setter) = world.members.setter(class, &key)? {
        return setter.call((userdata, value));
    }
    match &*world.members.resolve(class, &key)? {
        Member::Property(property) => world.set_property(lua, this, property, &value),
        Member::NotSimulated(owner) => raise(not_simulated(owner, &key)),
        Member::Method(_) | Member::Getter(_) | Member::Event => {
            raise(format!("Unable to assign property {key}. Property is read only"))
        }
        Member::Unknown => raise(world.not_a_member(this, &key)),
    }
}

/// The one text for what Roblox has and we do not; it ends in what is known of the member.
pub(super) fn not_simulated(class: &str, member: &str) -> String {
    let is = |known: fn(&str, &str) -> bool| reflection::class_chain(class).any(|link| known(link, member));
    let remark = match (is(api::yields), is(api::is_plugin_only)) {
        (false, false) => "",
        (true, false) => " (yields)",
        (false, true) => " (plugins only)",
        (true, true) => " (yields, plugins only)",
    };
    format!("{class}.{member} exists in Roblox but is not simulated by the headless Studio{remark}")
}

impl World {
    pub(super) fn not_a_member(&self, this: Ref, key: &str) -> String {
        format!("{key} is not a valid member of {} \"{}\"", self.class(this), self.full_name(this))
    }

    fn set_name(&self, lua: &Lua, this: Ref, value: &LuaValue) -> LuaResult<()> {
        let name = match value {
            LuaValue::String(text) => match text.to_str() {
                Ok(text) => text.to_owned(),
                Err(_) => return raise("a Name that is not UTF-8 is not simulated by the headless Studio"),
            },
            LuaValue::Number(_) | LuaValue::Integer(_) => value.to_string()?,
            other => {
                return raise(format!("Unable to assign property Name. string expected, got {}", describe_type(other)));
            }
        };
        values::check_length("Name", name.len())?;
        if self.name(this) == name {
            return Ok(());
        }
        let before = self.name(this);
        self.note(this, || Change::Name { this, before, after: name.clone() });
        if let Some(instance) = self.dom.borrow_mut().get_by_ref_mut(this) {
            instance.name = name;
        }
        self.changed(lua, this, "Name")
    }

    fn set_parent_value(&self, lua: &Lua, this: Ref, value: &LuaValue) -> LuaResult<()> {
        let parent = match (value, as_instance(value)) {
            (LuaValue::Nil, _) => Ref::none(),
            (_, Some(parent)) => parent,
            (other, None) => {
                return raise(format!(
                    "Unable to assign property Parent. Instance expected, got {}",
                    describe_type(other)
                ));
            }
        };
        self.set_parent(lua, this, parent)
    }
}
