//! What changes on the server changes on its clients; never the other way.
//!
//! The server notes each change in the terms of the history. A client that has the instance does the
//! same, with its events; one that does not have it yet gets a copy.

use super::{history::Change, place, reflection, signal::SignalName, world::World};
use mlua::prelude::*;
use rbx_dom_weak::{types::Ref, ustr};

impl World {
    /// Take a change of `server` over into this client.
    pub(super) fn replicate(&self, lua: &Lua, server: &World, change: &Change) -> LuaResult<()> {
        match change {
            Change::Property { this, storage, after, told, .. } if self.sees_property(server, *this, storage) => {
                self.restore_property(lua, *this, *storage, Some(after.clone()), told)
            }
            Change::Name { this, after, .. } if self.has(*this) => {
                if let Some(instance) = self.dom.borrow_mut().get_by_ref_mut(*this) {
                    instance.name.clone_from(after);
                }
                self.changed(lua, *this, "Name")
            }
            Change::Parent { this, after, .. } if server.has(*this) && server.is_replicated(*after) => {
                let is_new = !self.has(*this);
                self.put(lua, server, *this, *after)?;
                if is_new { self.tell_of_player(lua, "PlayerAdded", *this) } else { Ok(()) }
            }
            Change::Parent { this, .. } if self.parent(*this).is_some() => {
                self.tell_of_player(lua, "PlayerRemoving", *this)?;
                self.move_to(lua, *this, Ref::none())
            }
            Change::Locked(all) => {
                for each in all.iter().filter(|each| self.has(**each)) {
                    self.fire(lua, *each, SignalName::Event(ustr("Destroying")), || Ok(LuaMultiValue::new()))?;
                    self.lock(*each);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Fire an event of `Players` if this is one.
    pub(super) fn tell_of_player(&self, lua: &Lua, event: &str, this: Ref) -> LuaResult<()> {
        if self.class(this) != "Player" {
            return Ok(());
        }
        let players = self.service("Players");
        self.fire(lua, players, SignalName::Event(ustr(event)), || self.to_lua(lua, this)?.into_lua_multi(lua))
    }

    fn sees_property(&self, server: &World, this: Ref, storage: &str) -> bool {
        let dom = server.dom.borrow();
        self.has(this) && dom.get_by_ref(this).is_some_and(|each| place::is_property_replicated(each, storage))
    }

    /// Make `this` and what is below it as it is on the server, in the same parent.
    fn put(&self, lua: &Lua, server: &World, this: Ref, parent: Ref) -> LuaResult<()> {
        // A service is another instance on each side when it was made after the client joined.
        let parent = match server.class(parent) {
            class if !self.has(parent) && reflection::is_service(&class) => self.service(&class),
            _ => parent,
        };
        if !self.has(parent) || self.destroyed.borrow().contains(&this) {
            return Ok(());
        }
        for each in server.with_descendants(this) {
            let dom = server.dom.borrow();
            let Some(instance) = dom.get_by_ref(each) else { continue };
            let is_new = !self.has(each);
            if is_new {
                self.dom.borrow_mut().insert(Ref::none(), place::builder(instance, place::is_property_replicated));
            } else if let Some(known) = self.dom.borrow_mut().get_by_ref_mut(each) {
                known.name.clone_from(&instance.name);
                let seen = instance.properties.iter().filter(|(name, _)| place::is_property_replicated(instance, name));
                known.properties = seen.map(|(name, value)| (*name, value.clone())).collect();
            }
            let above = instance.parent();
            drop(dom);
            if each == this || self.parent(each) == above {
                continue;
            }
            if is_new {
                // Nobody here knows it yet: it comes with `this`.
                self.dom.borrow_mut().transfer_within(each, above);
            } else {
                self.move_to(lua, each, above)?;
            }
        }
        if self.parent(this) == parent { Ok(()) } else { self.move_to(lua, this, parent) }
    }
}
