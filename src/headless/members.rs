//! What a name on an instance means: method, event, property, or nothing.

use super::{
    api::{self, ApiKind},
    reflection::{self, Property},
};
use mlua::prelude::*;
use rbx_dom_weak::Ustr;
use std::{cell::RefCell, collections::HashMap, rc::Rc};

/// What `instance.name` is, before children are looked at.
pub(super) enum Member {
    Method(LuaFunction),
    /// A property the prelude computes.
    Getter(LuaFunction),
    Event,
    Property(Property),
    /// In Roblox, but not here; the class that has it.
    NotSimulated(&'static str),
    Unknown,
}

type Resolved = HashMap<Box<str>, Rc<Member>>;

/// The members of all classes: what the prelude and the host add, over the reflection database.
pub(super) struct Members {
    /// class -> name -> function, filled by the prelude.
    pub(super) methods: LuaTable,
    pub(super) getters: LuaTable,
    pub(super) setters: LuaTable,
    known: RefCell<HashMap<Ustr, Resolved>>,
}

impl Members {
    pub(super) fn new(lua: &Lua) -> LuaResult<Self> {
        Ok(Self {
            methods: lua.create_table()?,
            getters: lua.create_table()?,
            setters: lua.create_table()?,
            known: RefCell::default(),
        })
    }

    pub(super) fn resolve(&self, class: Ustr, name: &str) -> LuaResult<Rc<Member>> {
        if let Some(member) = self.known.borrow().get(&class).and_then(|own| own.get(name)) {
            return Ok(member.clone());
        }
        let member = Rc::new(self.look_up(&class, name)?);
        // Unknown names are mostly children, of which there is no end.
        if !matches!(*member, Member::Unknown) {
            self.known.borrow_mut().entry(class).or_default().insert(name.into(), member.clone());
        }
        Ok(member)
    }

    /// The prelude's setter of a property, if it has one.
    pub(super) fn setter(&self, class: Ustr, name: &str) -> LuaResult<Option<LuaFunction>> {
        for link in reflection::class_chain(&class) {
            if let Some(setter) = function_in(&self.setters, link, name)? {
                return Ok(Some(setter));
            }
        }
        Ok(None)
    }

    fn look_up(&self, class: &str, name: &str) -> LuaResult<Member> {
        let mut elsewhere = None;
        for link in reflection::class_chain(class) {
            if let Some(method) = function_in(&self.methods, link, name)? {
                return Ok(Member::Method(method));
            }
            if let Some(getter) = function_in(&self.getters, link, name)? {
                return Ok(Member::Getter(getter));
            }
            match api::own_member(link, name) {
                Some(ApiKind::Event) => return Ok(Member::Event),
                Some(ApiKind::Method) => return Ok(Member::NotSimulated(link)),
                Some(_) => elsewhere = elsewhere.or(Some(link)),
                None => {}
            }
        }
        if name == "Changed" {
            return Ok(Member::Event);
        }
        let property = reflection::find_property(class, name)
            .filter(|property| reflection::access(class, property) != reflection::Access::Hidden);
        Ok(match (property, elsewhere) {
            (Some(property), _) => Member::Property(property),
            (None, Some(owner)) => Member::NotSimulated(owner),
            (None, None) => Member::Unknown,
        })
    }
}

fn function_in(classes: &LuaTable, class: &str, name: &str) -> LuaResult<Option<LuaFunction>> {
    match classes.raw_get::<Option<LuaTable>>(class)? {
        Some(own) => own.raw_get(name),
        None => Ok(None),
    }
}
