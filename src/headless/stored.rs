//! Attributes and tags: named values an instance carries.

use super::{
    errors::raise,
    history::Change,
    signal::{Signal, SignalName},
    values::{self, describe_type},
    world::World,
};
use mlua::prelude::*;
use rbx_dom_weak::{
    types::{Attributes, Ref, Tags, Variant},
    ustr,
};
use std::collections::{BTreeMap, BTreeSet};

const ATTRIBUTES: &str = "Attributes";
const TAGS: &str = "Tags";
/// The longest name of an attribute (creator documentation).
const NAME_LIMIT: usize = 100;

/// Which of the two signals a tag has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TagChange {
    Added,
    Removed,
}

/// What an instance carries, as it was at one time.
pub(super) struct NamedValues {
    attributes: BTreeMap<String, Variant>,
    tags: Vec<String>,
}

impl World {
    pub(super) fn attributes(&self, this: Ref) -> BTreeMap<String, Variant> {
        let dom = self.dom.borrow();
        match dom.get_by_ref(this).and_then(|instance| instance.properties.get(&ustr(ATTRIBUTES))) {
            Some(Variant::Attributes(attributes)) => {
                attributes.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
            }
            _ => BTreeMap::new(),
        }
    }

    pub(super) fn set_attribute(&self, lua: &Lua, this: Ref, name: &str, value: &LuaValue) -> LuaResult<()> {
        check_attribute_name(name)?;
        let new = match (value, values::attribute_from_lua(value)) {
            (LuaValue::Nil, _) => None,
            (_, Some(new)) => Some(new),
            (other, None) => return raise(format!("{} is not a supported attribute type", describe_type(other))),
        };
        let mut attributes = self.attributes(this);
        if attributes.get(name) == new.as_ref() {
            return Ok(());
        }
        match new {
            Some(new) => attributes.insert(name.to_owned(), new),
            None => attributes.remove(name),
        };
        let mut stored = Attributes::new();
        for (name, value) in attributes {
            stored.insert(name, value);
        }
        self.store(this, ATTRIBUTES, stored.into());
        self.tell_attribute(lua, this, name)
    }

    pub(super) fn tags(&self, this: Ref) -> Vec<String> {
        let dom = self.dom.borrow();
        match dom.get_by_ref(this).and_then(|instance| instance.properties.get(&ustr(TAGS))) {
            Some(Variant::Tags(tags)) => tags.iter().map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn set_tag(&self, lua: &Lua, this: Ref, tag: &str, present: bool) -> LuaResult<()> {
        let mut tags = self.tags(this);
        if tags.iter().any(|known| known == tag) == present {
            return Ok(());
        }
        if present {
            tags.push(tag.to_owned());
        } else {
            tags.retain(|known| known != tag);
        }
        self.store(this, TAGS, Tags::from(tags).into());
        self.tell_tag(lua, if present { TagChange::Added } else { TagChange::Removed }, tag, this)
    }

    /// Tell `CollectionService` of tagged instances that entered or left the DataModel.
    pub(super) fn tags_moved(&self, lua: &Lua, moved: &[Ref], from: Ref, to: Ref) -> LuaResult<()> {
        if self.tag_signals.borrow().is_empty() {
            return Ok(());
        }
        let in_game = |at: Ref| at.is_some() && self.top(at) == self.game;
        let change = match (in_game(from), in_game(to)) {
            (false, true) => TagChange::Added,
            (true, false) => TagChange::Removed,
            _ => return Ok(()),
        };
        for each in moved {
            for tag in self.tags(*each) {
                self.fire_tag(lua, change, &tag, *each)?;
            }
        }
        Ok(())
    }

    fn fire_tag(&self, lua: &Lua, change: TagChange, tag: &str, this: Ref) -> LuaResult<()> {
        let signal = self.tag_signals.borrow().get(&(change, tag.to_owned())).cloned();
        if let Some(signal) = signal.filter(Signal::has_listeners) {
            signal.fire(lua, self, &self.to_lua(lua, this)?.into_lua_multi(lua)?);
        }
        Ok(())
    }

    /// `CollectionService:GetInstanceAddedSignal` and its opposite.
    pub(super) fn tag_signal(&self, change: TagChange, tag: String) -> Signal {
        self.tag_signals.borrow_mut().entry((change, tag)).or_default().clone()
    }

    /// Everything in the DataModel that has a tag.
    pub(super) fn tagged(&self, tag: &str) -> Vec<Ref> {
        let mut all = self.descendants(self.game);
        all.retain(|each| self.tags(*each).iter().any(|own| own == tag));
        all
    }

    /// Every tag that something in the DataModel has, in alphabetical order.
    pub(super) fn all_tags(&self) -> Vec<String> {
        let all: BTreeSet<String> = self.descendants(self.game).into_iter().flat_map(|each| self.tags(each)).collect();
        all.into_iter().collect()
    }

    fn store(&self, this: Ref, name: &str, value: Variant) {
        let storage = ustr(name);
        let after = self.is_tracked(this).then(|| value.clone());
        let before = match self.dom.borrow_mut().get_by_ref_mut(this) {
            Some(instance) => instance.properties.insert(storage, value),
            None => return,
        };
        if let Some(after) = after {
            self.note_always(Change::Property { this, storage, before, after, told: Vec::new() });
        }
    }

    pub(super) fn named_values(&self, this: Ref) -> NamedValues {
        NamedValues { attributes: self.attributes(this), tags: self.tags(this) }
    }

    /// Fire what the way from `before` to the present fires.
    pub(super) fn tell_named_values(&self, lua: &Lua, this: Ref, before: &NamedValues) -> LuaResult<()> {
        let now = self.named_values(this);
        let names: BTreeSet<&String> = before.attributes.keys().chain(now.attributes.keys()).collect();
        for name in names {
            if before.attributes.get(name) != now.attributes.get(name) {
                self.tell_attribute(lua, this, name)?;
            }
        }
        for tag in now.tags.iter().filter(|tag| !before.tags.contains(tag)) {
            self.tell_tag(lua, TagChange::Added, tag, this)?;
        }
        for tag in before.tags.iter().filter(|tag| !now.tags.contains(tag)) {
            self.tell_tag(lua, TagChange::Removed, tag, this)?;
        }
        Ok(())
    }

    fn tell_attribute(&self, lua: &Lua, this: Ref, name: &str) -> LuaResult<()> {
        self.fire(lua, this, SignalName::Attribute(ustr(name)), || Ok(LuaMultiValue::new()))?;
        self.fire(lua, this, SignalName::Event(ustr("AttributeChanged")), || name.into_lua_multi(lua))
    }

    fn tell_tag(&self, lua: &Lua, change: TagChange, tag: &str, this: Ref) -> LuaResult<()> {
        if this == self.game || self.is_inside(this, self.game) {
            self.fire_tag(lua, change, tag, this)
        } else {
            Ok(())
        }
    }
}

/// The rules of the creator documentation: short, alphanumeric with `_ . - /`, not `RBX…`.
/// The texts are ours; Roblox' own are not documented.
fn check_attribute_name(name: &str) -> LuaResult<()> {
    if name.is_empty() || name.len() > NAME_LIMIT {
        return raise(format!("Attribute name must be 1 to {NAME_LIMIT} characters long"));
    }
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-/".contains(c)) {
        return raise(format!("Attribute name \"{name}\" has characters that are not allowed"));
    }
    if name.starts_with("RBX") {
        return raise(format!("Attribute name \"{name}\" begins with the reserved prefix RBX"));
    }
    Ok(())
}
