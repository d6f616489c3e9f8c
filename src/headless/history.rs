//! What `ChangeHistoryService` remembers: the changes of the DataModel, cut into actions that can
//! be undone and done again.

use super::{errors::raise, remotes::Outgoing, signal::Signal, world::World};
use mlua::prelude::*;
use rbx_dom_weak::{
    Ustr,
    types::{Ref, Variant},
};
use std::collections::HashSet;

/// How many actions can be undone.
const MOST_ACTIONS: usize = 200;
/// How many changes outside of recordings wait for a waypoint.
const MOST_OPEN: usize = 5000;
/// Services whose contents are no part of the place.
pub(super) const UNTRACKED: [&str; 4] = ["PluginGuiService", "CoreGui", "ScriptEditorService", "PluginDebugService"];

/// One step, with what it takes to go back.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Property {
        this: Ref,
        storage: Ustr,
        before: Option<Variant>,
        after: Variant,
        told: Vec<&'static str>,
    },
    Name {
        this: Ref,
        before: String,
        after: String,
    },
    Parent {
        this: Ref,
        before: Ref,
        after: Ref,
    },
    /// `Destroy` locked these.
    Locked(Vec<Ref>),
}

impl Change {
    fn mentioned(&self) -> Vec<Ref> {
        match self {
            Self::Property { this, .. } | Self::Name { this, .. } => vec![*this],
            Self::Parent { this, before, after } => vec![*this, *before, *after],
            Self::Locked(all) => all.clone(),
        }
    }
}

struct Action {
    name: String,
    changes: Vec<Change>,
}

struct Recording {
    id: String,
    name: String,
    display_name: Option<String>,
}

/// How a recording ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Commit,
    Append,
    Cancel,
}

/// What `OnRecordingFinished` says of a recording.
pub(super) struct Finished {
    pub(super) name: String,
    pub(super) display_name: Option<String>,
    pub(super) id: String,
}

/// Which way through the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Undo,
    Redo,
}

/// The history of one DataModel.
#[derive(Default)]
pub(super) struct History {
    /// Since the last cut: the recording's, or what waits for a waypoint.
    open: Vec<Change>,
    recording: Option<Recording>,
    done: Vec<Action>,
    undone: Vec<Action>,
    disabled: bool,
    /// Its own steps are not history.
    replaying: bool,
}

impl History {
    fn listens(&self) -> bool {
        !self.disabled && !self.replaying
    }

    fn push(&mut self, change: Change) {
        self.open.push(change);
        if self.recording.is_none() && self.open.len() > MOST_OPEN {
            self.open.drain(..MOST_OPEN / 2);
        }
    }

    /// Begin a recording unless there is one. What was changed outside of any cannot be undone.
    pub(super) fn begin(&mut self, id: String, name: String, display_name: Option<String>) -> Option<&str> {
        if self.recording.is_some() {
            return None;
        }
        self.open.clear();
        Some(&self.recording.insert(Recording { id, name, display_name }).id)
    }

    pub(super) fn is_recording(&self, id: Option<&str>) -> bool {
        self.recording.as_ref().is_some_and(|recording| id.is_none_or(|id| id == recording.id))
    }

    /// Make an action of what is open.
    pub(super) fn cut(&mut self, name: &str, appends: bool) {
        let changes = std::mem::take(&mut self.open);
        if changes.is_empty() || self.disabled {
            return;
        }
        self.undone.clear();
        match self.done.last_mut().filter(|_| appends) {
            Some(last) => last.changes.extend(changes),
            None => self.done.push(Action { name: name.to_owned(), changes }),
        }
        if self.done.len() > MOST_ACTIONS {
            self.done.remove(0);
        }
    }

    pub(super) fn reset(&mut self) {
        self.done.clear();
        self.undone.clear();
        self.open.clear();
    }

    pub(super) fn enable(&mut self, enabled: bool) {
        self.disabled = !enabled;
        if !enabled {
            self.reset();
        }
    }

    fn stack(&mut self, direction: Direction) -> &mut Vec<Action> {
        match direction {
            Direction::Undo => &mut self.done,
            Direction::Redo => &mut self.undone,
        }
    }

    /// The name of what would be undone or done again.
    pub(super) fn next(&mut self, direction: Direction) -> Option<String> {
        self.stack(direction).last().map(|action| action.name.clone())
    }

    /// Instances that must stay, because a step back may need them.
    pub(super) fn mentioned(&self) -> HashSet<Ref> {
        let actions = self.done.iter().chain(&self.undone).flat_map(|action| &action.changes);
        actions.chain(&self.open).flat_map(Change::mentioned).collect()
    }
}

impl World {
    /// Whether changes of an instance belong into the history.
    pub(super) fn is_tracked(&self, this: Ref) -> bool {
        if !self.history.borrow().listens() && !self.remotes.replicates() {
            return false;
        }
        let mut below = this;
        for each in std::iter::once(this).chain(self.ancestors(this)) {
            if each == self.game {
                return !UNTRACKED.contains(&self.class(below).as_str());
            }
            below = each;
        }
        false
    }

    /// Note a change of an instance that is tracked.
    pub(super) fn note(&self, this: Ref, change: impl FnOnce() -> Change) {
        if self.is_tracked(this) {
            self.note_always(change());
        }
    }

    /// Note a change whose instance was or will be tracked.
    pub(super) fn note_always(&self, change: Change) {
        if self.remotes.replicates() {
            self.remotes.send(Outgoing::Change(change.clone()));
        }
        let mut history = self.history.borrow_mut();
        if history.listens() {
            history.push(change);
        }
    }

    /// End the recording; `None` when there is none of this id. A cancelled one is the current one.
    pub(super) fn finish_recording(&self, lua: &Lua, id: &str, ending: Ending) -> LuaResult<Option<Finished>> {
        let mut history = self.history.borrow_mut();
        if !history.is_recording(Some(id).filter(|_| ending != Ending::Cancel)) {
            return Ok(None);
        }
        let Some(Recording { id, name, display_name }) = history.recording.take() else { return Ok(None) };
        if ending == Ending::Cancel {
            let changes = std::mem::take(&mut history.open);
            drop(history);
            self.replay(lua, &changes, Direction::Undo)?;
        } else {
            history.cut(&name, ending == Ending::Append);
        }
        Ok(Some(Finished { name, display_name, id }))
    }

    /// Undo or redo one action; gives its name, or `None` when there is none.
    pub(super) fn step(&self, lua: &Lua, direction: Direction) -> LuaResult<Option<String>> {
        if self.history.borrow().recording.is_some() {
            return raise("Undo and Redo inside a recording are not simulated by the headless Studio");
        }
        self.history.borrow_mut().open.clear();
        let Some(action) = self.history.borrow_mut().stack(direction).pop() else { return Ok(None) };
        self.replay(lua, &action.changes, direction)?;
        let name = action.name.clone();
        let back = if direction == Direction::Undo { Direction::Redo } else { Direction::Undo };
        self.history.borrow_mut().stack(back).push(action);
        Ok(Some(name))
    }

    fn replay(&self, lua: &Lua, changes: &[Change], direction: Direction) -> LuaResult<()> {
        self.history.borrow_mut().replaying = true;
        let replayed = match direction {
            Direction::Undo => changes.iter().rev().try_for_each(|change| self.restore(lua, change, direction)),
            Direction::Redo => changes.iter().try_for_each(|change| self.restore(lua, change, direction)),
        };
        self.history.borrow_mut().replaying = false;
        replayed
    }

    fn restore(&self, lua: &Lua, change: &Change, direction: Direction) -> LuaResult<()> {
        let undo = direction == Direction::Undo;
        match change {
            Change::Property { this, storage, before, after, told } => {
                let value = if undo { before.clone() } else { Some(after.clone()) };
                self.restore_property(lua, *this, *storage, value, told)
            }
            Change::Name { this, before, after } => {
                if let Some(instance) = self.dom.borrow_mut().get_by_ref_mut(*this) {
                    instance.name.clone_from(if undo { before } else { after });
                }
                self.changed(lua, *this, "Name")
            }
            Change::Parent { this, before, after } => {
                let to = if undo { *before } else { *after };
                // What was moved since, outside of the history, may stand in the way.
                if to == *this || self.is_inside(to, *this) { Ok(()) } else { self.move_to(lua, *this, to) }
            }
            Change::Locked(all) => {
                for each in all {
                    if undo {
                        self.destroyed.borrow_mut().remove(each);
                    } else {
                        self.lock(*each);
                    }
                }
                Ok(())
            }
        }
    }

    /// What `Destroy` leaves: a parent that cannot be set, and no connections.
    pub(super) fn lock(&self, this: Ref) {
        self.destroyed.borrow_mut().insert(this);
        self.end_script(this);
        if let Some(own) = self.signals.borrow().get(&this) {
            own.values().for_each(Signal::release);
        }
    }
}
