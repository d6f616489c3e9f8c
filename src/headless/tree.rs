//! The tree of instances: parents, children, and the events of moving them.

use super::{
    errors::raise,
    history::Change,
    signal::{Signal, SignalName},
    world::World,
};
use mlua::prelude::*;
use rbx_dom_weak::{types::Ref, ustr};

const DESCENDANT_EVENTS: [&str; 2] = ["DescendantAdded", "DescendantRemoving"];

fn event(name: &str) -> SignalName {
    SignalName::Event(ustr(name))
}

impl World {
    /// The parent, or `Ref::none()`.
    pub(super) fn parent(&self, this: Ref) -> Ref {
        self.dom.borrow().get_by_ref(this).map_or_else(Ref::none, |instance| instance.parent())
    }

    pub(super) fn children(&self, this: Ref) -> Vec<Ref> {
        self.dom.borrow().get_by_ref(this).map_or_else(Vec::new, |instance| instance.children().to_vec())
    }

    /// Everything below, depth first, each before its children.
    pub(super) fn descendants(&self, this: Ref) -> Vec<Ref> {
        let mut all = self.with_descendants(this);
        all.remove(0);
        all
    }

    /// `this` and everything below it, depth first.
    pub(super) fn with_descendants(&self, this: Ref) -> Vec<Ref> {
        let dom = self.dom.borrow();
        let mut found = Vec::new();
        let mut open = vec![this];
        while let Some(next) = open.pop() {
            found.push(next);
            if let Some(instance) = dom.get_by_ref(next) {
                open.extend(instance.children().iter().rev());
            }
        }
        found
    }

    /// The ancestors, nearest first.
    pub(super) fn ancestors(&self, this: Ref) -> impl Iterator<Item = Ref> {
        let mut next = self.parent(this);
        std::iter::from_fn(move || {
            let current = next;
            next = self.parent(current);
            current.is_some().then_some(current)
        })
    }

    /// The last ancestor, or `this` itself.
    pub(super) fn top(&self, this: Ref) -> Ref {
        self.ancestors(this).last().unwrap_or(this)
    }

    pub(super) fn is_inside(&self, this: Ref, ancestor: Ref) -> bool {
        self.ancestors(this).any(|found| found == ancestor)
    }

    /// Dotted names from below the DataModel; the DataModel itself is its name.
    pub(super) fn full_name(&self, this: Ref) -> String {
        let mut names = vec![self.name(this)];
        names
            .extend(self.ancestors(this).filter(|ancestor| *ancestor != self.game).map(|ancestor| self.name(ancestor)));
        names.reverse();
        names.join(".")
    }

    pub(super) fn child_named(&self, this: Ref, name: &str) -> Option<Ref> {
        let dom = self.dom.borrow();
        let children = dom.get_by_ref(this)?.children();
        children.iter().copied().find(|child| dom.get_by_ref(*child).is_some_and(|instance| instance.name == name))
    }

    /// The signal of an instance, made when first asked for.
    pub(super) fn signal(&self, this: Ref, name: SignalName) -> Signal {
        let mut signals = self.signals.borrow_mut();
        let own = signals.entry(this).or_default();
        if !own.contains_key(&name) && DESCENDANT_EVENTS.iter().any(|watched| name == event(watched)) {
            self.descendant_signals.set(self.descendant_signals.get() + 1);
        }
        own.entry(name).or_default().clone()
    }

    /// Fire a signal if anybody listens; only then are the arguments made.
    pub(super) fn fire(
        &self,
        lua: &Lua,
        this: Ref,
        name: SignalName,
        args: impl FnOnce() -> LuaResult<LuaMultiValue>,
    ) -> LuaResult<()> {
        let signal = self.signals.borrow().get(&this).and_then(|own| own.get(&name)).cloned();
        if let Some(signal) = signal.filter(Signal::has_listeners) {
            signal.fire(lua, self, &args()?);
        }
        Ok(())
    }

    fn fire_with(&self, lua: &Lua, this: Ref, name: &str, argument: Ref) -> LuaResult<()> {
        self.fire(lua, this, event(name), || self.to_lua(lua, argument)?.into_lua_multi(lua))
    }

    fn fire_on_ancestors(&self, lua: &Lua, from: Ref, name: &str, moved: &[Ref]) -> LuaResult<()> {
        if self.descendant_signals.get() == 0 || from.is_none() {
            return Ok(());
        }
        let name = event(name);
        for watcher in std::iter::once(from).chain(self.ancestors(from)) {
            let signal = self.signals.borrow().get(&watcher).and_then(|own| own.get(&name)).cloned();
            let Some(signal) = signal.filter(Signal::has_listeners) else { continue };
            for descendant in moved {
                signal.fire(lua, self, &self.to_lua(lua, *descendant)?.into_lua_multi(lua)?);
            }
        }
        Ok(())
    }

    pub(super) fn set_parent(&self, lua: &Lua, this: Ref, to: Ref) -> LuaResult<()> {
        let from = self.parent(this);
        if from == to && !self.destroyed.borrow().contains(&this) {
            return Ok(());
        }
        self.check_new_parent(this, from, to)?;
        if self.is_tracked(this) || self.is_tracked(to) {
            self.note_always(Change::Parent { this, before: from, after: to });
        }
        self.move_to(lua, this, to)
    }

    /// Give an instance another parent, whatever speaks against it.
    pub(super) fn move_to(&self, lua: &Lua, this: Ref, to: Ref) -> LuaResult<()> {
        let from = self.parent(this);
        let moved = self.with_descendants(this);
        self.fire_on_ancestors(lua, from, "DescendantRemoving", &moved)?;
        self.dom.borrow_mut().transfer_within(this, to);
        if from.is_some() {
            self.fire_with(lua, from, "ChildRemoved", this)?;
        }
        if to.is_some() {
            self.fire_with(lua, to, "ChildAdded", this)?;
        }
        self.fire_on_ancestors(lua, to, "DescendantAdded", &moved)?;
        if !self.signals.borrow().is_empty() {
            for each in &moved {
                self.fire(lua, *each, event("AncestryChanged"), || {
                    (self.to_lua(lua, this)?, self.to_lua(lua, to)?).into_lua_multi(lua)
                })?;
            }
        }
        self.tags_moved(lua, &moved, from, to)?;
        self.scripts_moved(&moved);
        self.changed(lua, this, "Parent")
    }

    fn check_new_parent(&self, this: Ref, from: Ref, to: Ref) -> LuaResult<()> {
        let is_service = from == self.game && super::reflection::is_service(&self.class(this));
        if this == self.game || is_service || self.destroyed.borrow().contains(&this) {
            let name_of = |at: Ref| if at.is_none() { "NULL".to_owned() } else { self.name(at) };
            return raise(format!(
                "The Parent property of {} is locked, current parent: {}, new parent {}",
                self.name(this),
                name_of(from),
                name_of(to)
            ));
        }
        if to == this {
            return raise(format!("Attempt to set {} as its own parent", self.full_name(this)));
        }
        let has_children = self.dom.borrow().get_by_ref(this).is_some_and(|instance| !instance.children().is_empty());
        if has_children && to.is_some() && self.is_inside(to, this) {
            return raise(format!(
                "Attempt to set parent of {} to {} would result in circular reference",
                self.full_name(this),
                self.full_name(to)
            ));
        }
        Ok(())
    }

    /// Unparent and lock an instance and everything below it, and end its connections.
    pub(super) fn destroy(&self, lua: &Lua, this: Ref) -> LuaResult<()> {
        let all = self.with_descendants(this);
        let tracked = self.is_tracked(this);
        for each in &all {
            self.fire(lua, *each, event("Destroying"), || Ok(LuaMultiValue::new()))?;
        }
        if !self.destroyed.borrow().contains(&this) {
            self.set_parent(lua, this, Ref::none())?;
        }
        // Last first: taking a child from the end of its parent's list is cheap.
        for each in all.iter().skip(1).rev() {
            if tracked {
                self.note_always(Change::Parent { this: *each, before: self.parent(*each), after: Ref::none() });
            }
            self.orphan(lua, *each)?;
        }
        all.iter().for_each(|each| self.lock(*each));
        if tracked {
            self.note_always(Change::Locked(all));
        }
        Ok(())
    }

    /// Take a descendant of a destroyed instance from its parent.
    fn orphan(&self, lua: &Lua, this: Ref) -> LuaResult<()> {
        let from = self.parent(this);
        self.dom.borrow_mut().transfer_within(this, Ref::none());
        self.fire_with(lua, from, "ChildRemoved", this)?;
        self.fire(lua, this, event("AncestryChanged"), || {
            (self.to_lua(lua, this)?, LuaValue::Nil).into_lua_multi(lua)
        })?;
        self.changed(lua, this, "Parent")
    }

    /// A copy without a parent; `None` if the instance is not archivable.
    pub(super) fn clone_tree(&self, this: Ref) -> Option<Ref> {
        if !self.is_archivable(this) {
            return None;
        }
        let copy = self.dom.borrow_mut().clone_within(this);
        // What may not be archived was copied as well: the copy has the same order.
        let pairs = self.with_descendants(this).into_iter().zip(self.with_descendants(copy));
        let unwanted: Vec<Ref> =
            pairs.filter(|(original, _)| !self.is_archivable(*original)).map(|(_, copy)| copy).collect();
        for each in unwanted {
            if self.dom.borrow().get_by_ref(each).is_some() {
                self.dom.borrow_mut().destroy(each);
            }
        }
        Some(copy)
    }
}
