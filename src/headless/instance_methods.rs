//! The methods every instance has, and `Instance.new`.

use super::{
    errors::raise,
    instance::{Inst, as_instance},
    reflection,
    signal::{Signal, SignalName},
    values::{self, describe_type},
    world::{World, world},
};
use mlua::prelude::*;
use rbx_dom_weak::{InstanceBuilder, types::Ref, ustr};

type This = LuaUserDataRef<Inst>;

/// Fill the method table of `Instance` and make the global `Instance`.
pub(super) fn register(lua: &Lua, world: &World) -> LuaResult<()> {
    let methods = lua.create_table()?;
    tree_methods(lua, &methods)?;
    kinship_methods(lua, &methods)?;
    search_methods(lua, &methods)?;
    signal_methods(lua, &methods)?;
    attribute_methods(lua, &methods)?;
    world.members.methods.raw_set("Instance", methods)?;

    let instance = lua.create_table()?;
    instance.raw_set("new", lua.create_function(new_instance)?)?;
    instance.set_readonly(true);
    lua.globals().raw_set("Instance", instance)
}

fn new_instance(lua: &Lua, (class, parent): (LuaString, LuaValue)) -> LuaResult<LuaValue> {
    let world = world(lua);
    let class = class.to_string_lossy();
    if !reflection::is_creatable(&class) {
        return raise(format!("Unable to create an Instance of type \"{class}\""));
    }
    let parent = match (&parent, as_instance(&parent)) {
        (LuaValue::Nil, _) => Ref::none(),
        (_, Some(parent)) => parent,
        (other, None) => {
            return raise(format!("invalid argument #2 to 'new' (Instance expected, got {})", describe_type(other)));
        }
    };
    let this = world.create(&class);
    if parent.is_some() {
        world.set_parent(lua, this, parent)?;
    }
    world.to_lua(lua, this)
}

impl World {
    /// A new instance without a parent, whether or not scripts may make its class.
    pub(super) fn create(&self, class: &str) -> Ref {
        // The one family whose default name is not its class.
        let name = if reflection::is_a(class, "ValueBase") { "Value" } else { class };
        self.dom.borrow_mut().insert(Ref::none(), InstanceBuilder::new(ustr(class)).with_name(name))
    }
}

fn tree_methods(lua: &Lua, methods: &LuaTable) -> LuaResult<()> {
    let add = |name: &str, function: LuaResult<LuaFunction>| methods.raw_set(name, function?);
    add(
        "GetChildren",
        lua.create_function(|lua, this: This| {
            let world = world(lua);
            world.list_to_lua(lua, &world.children(this.referent))
        }),
    )?;
    add(
        "GetDescendants",
        lua.create_function(|lua, this: This| {
            let world = world(lua);
            world.list_to_lua(lua, &world.descendants(this.referent))
        }),
    )?;
    add("GetFullName", lua.create_function(|lua, this: This| Ok(world(lua).full_name(this.referent))))?;
    add(
        "GetDebugId",
        lua.create_function(|lua, (this, _length): (This, LuaValue)| {
            Ok(format!("0_{}", world(lua).debug_id(this.referent)))
        }),
    )?;
    add("Clone", lua.create_function(clone))?;
    add(
        "Destroy",
        lua.create_function(|lua, this: This| {
            let referent = this.referent;
            drop(this);
            world(lua).destroy(lua, referent)
        }),
    )?;
    add(
        "ClearAllChildren",
        lua.create_function(|lua, this: This| {
            let world = world(lua);
            world.children(this.referent).into_iter().rev().try_for_each(|child| world.destroy(lua, child))
        }),
    )
}

fn kinship_methods(lua: &Lua, methods: &LuaTable) -> LuaResult<()> {
    let add = |name: &str, function: LuaResult<LuaFunction>| methods.raw_set(name, function?);
    add(
        "IsA",
        lua.create_function(|lua, (this, class): (This, String)| {
            Ok(reflection::is_a(&world(lua).class(this.referent), &class))
        }),
    )?;
    add(
        "IsDescendantOf",
        lua.create_function(|lua, (this, other): (This, LuaValue)| {
            let world = world(lua);
            match as_instance(&other) {
                Some(other) => Ok(world.is_inside(this.referent, other)),
                // Everything is below nothing that has no parent: `IsDescendantOf(nil)`.
                None => Ok(world.top(this.referent) != world.game),
            }
        }),
    )?;
    add(
        "IsAncestorOf",
        lua.create_function(|lua, (this, other): (This, This)| Ok(world(lua).is_inside(other.referent, this.referent))),
    )
}

fn clone(lua: &Lua, this: This) -> LuaResult<LuaValue> {
    let world = world(lua);
    let class = world.class(this.referent);
    if !reflection::is_creatable(&class) {
        return raise(format!(
            "{class}:Clone of a class that cannot be created is not simulated by the headless Studio"
        ));
    }
    match world.clone_tree(this.referent) {
        Some(copy) => world.to_lua(lua, copy),
        None => Ok(LuaValue::Nil),
    }
}

type Matches = fn(&World, Ref, &str) -> bool;

fn is_named(world: &World, this: Ref, name: &str) -> bool {
    world.dom.borrow().get_by_ref(this).is_some_and(|instance| instance.name == name)
}

fn is_of_class(world: &World, this: Ref, class: &str) -> bool {
    world.class(this) == class
}

fn is_kind_of(world: &World, this: Ref, class: &str) -> bool {
    reflection::is_a(&world.class(this), class)
}

fn search_methods(lua: &Lua, methods: &LuaTable) -> LuaResult<()> {
    let below = |name: &str, matches: Matches| -> LuaResult<()> {
        let search = lua.create_function(move |lua, (this, wanted, deep): (This, LuaString, Option<bool>)| {
            let world = world(lua);
            let wanted = wanted.to_string_lossy();
            let found = if deep == Some(true) {
                world.descendants(this.referent).into_iter().find(|each| matches(&world, *each, &wanted))
            } else {
                world.children(this.referent).into_iter().find(|each| matches(&world, *each, &wanted))
            };
            world.to_lua(lua, found.unwrap_or_else(Ref::none))
        })?;
        methods.raw_set(name, search)
    };
    below("FindFirstChild", is_named)?;
    below("FindFirstChildOfClass", is_of_class)?;
    below("FindFirstChildWhichIsA", is_kind_of)?;
    methods.raw_set(
        "FindFirstDescendant",
        lua.create_function(|lua, (this, wanted): (This, LuaString)| {
            let world = world(lua);
            let wanted = wanted.to_string_lossy();
            let found = world.descendants(this.referent).into_iter().find(|each| is_named(&world, *each, &wanted));
            world.to_lua(lua, found.unwrap_or_else(Ref::none))
        })?,
    )?;
    let above = |name: &str, matches: Matches| -> LuaResult<()> {
        let search = lua.create_function(move |lua, (this, wanted): (This, LuaString)| {
            let world = world(lua);
            let wanted = wanted.to_string_lossy();
            let found = world.ancestors(this.referent).find(|each| matches(&world, *each, &wanted));
            world.to_lua(lua, found.unwrap_or_else(Ref::none))
        })?;
        methods.raw_set(name, search)
    };
    above("FindFirstAncestor", is_named)?;
    above("FindFirstAncestorOfClass", is_of_class)?;
    above("FindFirstAncestorWhichIsA", is_kind_of)
}

fn signal_methods(lua: &Lua, methods: &LuaTable) -> LuaResult<()> {
    methods.raw_set("GetPropertyChangedSignal", lua.create_function(property_changed_signal)?)?;
    methods.raw_set(
        "GetAttributeChangedSignal",
        lua.create_function(|lua, (this, name): (This, String)| {
            Ok(world(lua).signal(this.referent, SignalName::Attribute(ustr(&name))))
        })?,
    )
}

fn property_changed_signal(lua: &Lua, (this, name): (This, String)) -> LuaResult<Signal> {
    let world = world(lua);
    let class = world.class(this.referent);
    let exists = matches!(name.as_str(), "Name" | "Parent" | "ClassName")
        || reflection::find_property(&class, &name).is_some()
        || matches!(&*world.members.resolve(class, &name)?, super::members::Member::Getter(_));
    if !exists {
        return raise(format!("{name} is not a valid property name."));
    }
    Ok(world.signal(this.referent, SignalName::Property(ustr(&name))))
}

fn attribute_methods(lua: &Lua, methods: &LuaTable) -> LuaResult<()> {
    let add = |name: &str, function: LuaResult<LuaFunction>| methods.raw_set(name, function?);
    add(
        "GetAttribute",
        lua.create_function(|lua, (this, name): (This, String)| {
            match world(lua).attributes(this.referent).get(&name) {
                Some(value) => values::to_lua(lua, value),
                None => Ok(LuaValue::Nil),
            }
        }),
    )?;
    add(
        "GetAttributes",
        lua.create_function(|lua, this: This| {
            let table = lua.create_table()?;
            for (name, value) in world(lua).attributes(this.referent) {
                table.raw_set(name, values::to_lua(lua, &value)?)?;
            }
            Ok(table)
        }),
    )?;
    add(
        "SetAttribute",
        lua.create_function(|lua, (this, name, value): (This, String, LuaValue)| {
            world(lua).set_attribute(lua, this.referent, &name, &value)
        }),
    )?;
    add("GetTags", lua.create_function(|lua, this: This| Ok(world(lua).tags(this.referent))))?;
    add(
        "HasTag",
        lua.create_function(|lua, (this, tag): (This, String)| Ok(world(lua).tags(this.referent).contains(&tag))),
    )?;
    add(
        "AddTag",
        lua.create_function(|lua, (this, tag): (This, String)| world(lua).set_tag(lua, this.referent, &tag, true)),
    )?;
    add(
        "RemoveTag",
        lua.create_function(|lua, (this, tag): (This, String)| world(lua).set_tag(lua, this.referent, &tag, false)),
    )
}
