//! Everything the simulation knows, shared by all host functions.

use super::{
    config::{LogLine, Side},
    game_scripts::GameScripts,
    history::History,
    instance::Inst,
    json,
    members::Members,
    net::Streams,
    remotes::Remotes,
    scheduler::Scheduler,
    scripts::{ContextId, Contexts},
    shared::{Counted, ModelId, NetSender, Shared},
    signal::{Signal, SignalName},
    stored::TagChange,
    values,
};
use mlua::prelude::*;
use rbx_dom_weak::{AHashMap, InstanceBuilder, Ustr, WeakDom, types::Ref, ustr};
use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    rc::Rc,
    sync::PoisonError,
};
use tokio::{sync::oneshot, task::AbortHandle};

/// What a finished command gives back.
pub(super) type RunResult = Result<Vec<serde_json::Value>, String>;

/// A command that runs.
pub(super) struct Run {
    pub(super) reply: oneshot::Sender<RunResult>,
    pub(super) thread: LuaThread,
}

/// An HTTP request that is on its way.
pub(super) struct Requesting {
    pub(super) context: ContextId,
    pub(super) thread: LuaThread,
    pub(super) task: AbortHandle,
}

impl Drop for Requesting {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a DataModel begins with.
pub(super) struct Opening {
    pub(super) side: Side,
    /// The server of a test that was begun with "Run".
    pub(super) is_run_mode: bool,
    /// The DataModel is its root.
    pub(super) dom: WeakDom,
    pub(super) place_id: u64,
    pub(super) game_id: u64,
    /// Whose client this is.
    pub(super) player: Ref,
}

/// How many lines the output window keeps.
const LOG_LINES: usize = 100_000;
/// Unreferenced instances are looked for when this many userdata were collected.
const SWEEP_AT: usize = 4096;

/// The state of one DataModel. Lives on the Studio's thread only.
pub(super) struct World {
    pub(super) shared: Rc<Shared>,
    pub(super) model: ModelId,
    pub(super) side: Side,
    pub(super) is_run_mode: bool,
    pub(super) player: Ref,
    /// The DataModel is the root; an instance without a parent has `Ref::none()`.
    pub(super) dom: RefCell<WeakDom>,
    pub(super) game: Ref,
    pub(super) members: Members,
    pub(super) scheduler: Scheduler,
    pub(super) contexts: Contexts,
    pub(super) streams: Streams,
    pub(super) net: NetSender,
    pub(super) requests: RefCell<HashMap<u64, Requesting>>,
    pub(super) runs: RefCell<HashMap<u64, Run>>,
    pub(super) remotes: Remotes,
    pub(super) game_scripts: GameScripts,
    /// Unsaved editor text of scripts.
    pub(super) drafts: RefCell<HashMap<Ref, String>>,
    pub(super) place_id: Cell<u64>,
    pub(super) game_id: Cell<u64>,
    /// Instances that were destroyed: their parent is locked.
    pub(super) destroyed: RefCell<HashSet<Ref>>,
    pub(super) history: RefCell<History>,
    pub(super) tag_signals: RefCell<HashMap<(TagChange, String), Signal>>,
    pub(super) signals: RefCell<AHashMap<Ref, AHashMap<SignalName, Signal>>>,
    /// How many `DescendantAdded`/`DescendantRemoving` signals exist: most places have none.
    pub(super) descendant_signals: Cell<usize>,
    _counted: Counted,
    /// `GetDebugId` numbers, which are also the keys of `userdata`.
    ids: RefCell<AHashMap<Ref, i64>>,
    /// Weak: id -> userdata, so that one instance is one Luau value.
    userdata: LuaTable,
    collected: Rc<RefCell<Vec<Ref>>>,
}

/// The world behind a VM.
pub(super) fn world(lua: &Lua) -> Rc<World> {
    lua.app_data_ref::<Rc<World>>().expect("the world is set before any Luau code runs").clone()
}

impl World {
    pub(super) fn new(lua: &Lua, shared: &Rc<Shared>, opening: Opening) -> LuaResult<Self> {
        let userdata = lua.create_table()?;
        let weak = lua.create_table()?;
        weak.set("__mode", "v")?;
        userdata.set_metatable(Some(weak))?;
        let model = shared.next_serial();
        Ok(Self {
            model,
            side: opening.side,
            is_run_mode: opening.is_run_mode,
            player: opening.player,
            game: opening.dom.root_ref(),
            dom: RefCell::new(opening.dom),
            members: Members::new(lua)?,
            scheduler: Scheduler::new(shared, opening.side != Side::Edit),
            contexts: Contexts::default(),
            streams: Streams::default(),
            net: NetSender { model, events: shared.net.clone() },
            requests: RefCell::default(),
            runs: RefCell::default(),
            remotes: Remotes::default(),
            game_scripts: GameScripts::default(),
            drafts: RefCell::default(),
            place_id: Cell::new(opening.place_id),
            game_id: Cell::new(opening.game_id),
            destroyed: RefCell::default(),
            history: RefCell::default(),
            tag_signals: RefCell::default(),
            signals: RefCell::default(),
            descendant_signals: Cell::new(0),
            ids: RefCell::default(),
            userdata,
            collected: Rc::default(),
            _counted: Counted::new(shared, |shared| &shared.models),
            shared: shared.clone(),
        })
    }

    /// A number nothing else in this Studio has.
    pub(super) fn next_serial(&self) -> u64 {
        self.shared.next_serial()
    }

    /// Whether an instance exists here.
    pub(super) fn has(&self, referent: Ref) -> bool {
        self.dom.borrow().get_by_ref(referent).is_some()
    }

    /// The one Luau value of an instance; `nil` for no instance.
    pub(super) fn to_lua(&self, lua: &Lua, referent: Ref) -> LuaResult<LuaValue> {
        if referent.is_none() || self.dom.borrow().get_by_ref(referent).is_none() {
            return Ok(LuaValue::Nil);
        }
        let id = self.debug_id(referent);
        if let LuaValue::UserData(known) = self.userdata.raw_get(id)? {
            return Ok(LuaValue::UserData(known));
        }
        let value = lua.create_userdata(Inst::new(referent, self.collected.clone()))?;
        self.userdata.raw_set(id, &value)?;
        Ok(LuaValue::UserData(value))
    }

    pub(super) fn list_to_lua(&self, lua: &Lua, referents: &[Ref]) -> LuaResult<LuaTable> {
        let list = lua.create_table_with_capacity(referents.len(), 0)?;
        for (index, referent) in referents.iter().enumerate() {
            list.raw_set(index + 1, self.to_lua(lua, *referent)?)?;
        }
        Ok(list)
    }

    /// A number that stays with the instance.
    pub(super) fn debug_id(&self, referent: Ref) -> i64 {
        *self
            .ids
            .borrow_mut()
            .entry(referent)
            .or_insert_with(|| i64::try_from(self.next_serial()).expect("a counter does not reach 2^63"))
    }

    /// Add a line to the output window and tell `LogService.MessageOut`.
    pub(super) fn print(&self, lua: &Lua, level: u8, text: &[u8]) -> LuaResult<()> {
        self.log_line(level, text);
        let Some(service) = self.find_service("LogService") else { return Ok(()) };
        self.fire(lua, service, SignalName::Event(ustr("MessageOut")), || {
            (lua.create_string(text)?, values::enum_item(lua, "MessageType", level.into())?).into_lua_multi(lua)
        })
    }

    fn log_line(&self, level: u8, text: &[u8]) {
        let mut log = self.shared.log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() >= LOG_LINES {
            log.drain(..LOG_LINES / 2);
        }
        log.push(LogLine { level, text: text.to_vec(), side: self.side, model: self.model });
    }

    /// What this DataModel printed.
    pub(super) fn log_lines(&self) -> Vec<LogLine> {
        let log = self.shared.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().filter(|line| line.model == self.model).cloned().collect()
    }

    /// Settle a command: its values as JSON, or the text of its error.
    pub(super) fn finish_run(&self, id: u64, outcome: Result<LuaMultiValue, String>) {
        let Some(run) = self.runs.borrow_mut().remove(&id) else { return };
        let result = outcome.map(|values| values.iter().map(|value| json::describe(self, value)).collect());
        // The caller may have stopped waiting; then nobody wants the result.
        let _unwanted = run.reply.send(result);
    }

    /// Settle the command whose thread died, if it was one.
    pub(super) fn fail_run(&self, thread: &LuaThread, message: String) -> bool {
        let id = self.runs.borrow().iter().find(|(_, run)| run.thread == *thread).map(|(id, _)| *id);
        if let Some(id) = id {
            self.finish_run(id, Err(message));
        }
        id.is_some()
    }

    /// The service of a class, if the place has it already.
    pub(super) fn find_service(&self, class: &str) -> Option<Ref> {
        let dom = self.dom.borrow();
        let class = ustr(class);
        dom.root().children().iter().copied().find(|child| dom.get_by_ref(*child).is_some_and(|i| i.class == class))
    }

    /// The service of a class, made on first use.
    pub(super) fn service(&self, class: &str) -> Ref {
        self.find_service(class)
            .unwrap_or_else(|| self.dom.borrow_mut().insert(self.game, InstanceBuilder::new(ustr(class))))
    }

    pub(super) fn class(&self, referent: Ref) -> Ustr {
        self.dom.borrow().get_by_ref(referent).map_or_else(|| ustr(""), |instance| instance.class)
    }

    pub(super) fn name(&self, referent: Ref) -> String {
        self.dom.borrow().get_by_ref(referent).map_or_else(String::new, |instance| instance.name.clone())
    }

    /// Forget instances outside the DataModel that no Luau value and no handler can reach.
    /// `Ref` properties do not keep them: an `ObjectValue` of such an instance reads `nil`.
    pub(super) fn sweep(&self) {
        if self.collected.borrow().len() < SWEEP_AT {
            return;
        }
        let collected = std::mem::take(&mut *self.collected.borrow_mut());
        let mut seen = HashSet::new();
        let kept = self.history.borrow().mentioned();
        let tops: Vec<Ref> = collected.into_iter().filter_map(|each| self.unseen_top(each, &mut seen)).collect();
        for top in tops {
            if top == self.game || self.dom.borrow().get_by_ref(top).is_none() {
                continue;
            }
            let tree = self.with_descendants(top);
            if tree.iter().any(|referent| kept.contains(referent) || self.is_reachable(*referent)) {
                continue;
            }
            self.dom.borrow_mut().destroy(top);
            for referent in tree {
                self.forget(referent);
            }
        }
    }

    /// The top of the tree `this` is in, unless the walk up meets an instance seen before.
    fn unseen_top(&self, this: Ref, seen: &mut HashSet<Ref>) -> Option<Ref> {
        let mut top = this;
        for each in std::iter::once(this).chain(self.ancestors(this)) {
            if !seen.insert(each) {
                return None;
            }
            top = each;
        }
        Some(top)
    }

    fn is_reachable(&self, referent: Ref) -> bool {
        let id = self.ids.borrow().get(&referent).copied();
        let has_value = id.is_some_and(|id| matches!(self.userdata.raw_get(id), Ok(LuaValue::UserData(_))));
        let signals = self.signals.borrow();
        has_value || signals.get(&referent).is_some_and(|own| own.values().any(Signal::has_listeners))
    }

    fn forget(&self, referent: Ref) {
        self.signals.borrow_mut().remove(&referent);
        self.destroyed.borrow_mut().remove(&referent);
        self.drafts.borrow_mut().remove(&referent);
        self.ids.borrow_mut().remove(&referent);
    }
}
