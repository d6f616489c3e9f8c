//! What the DataModels of one Studio share.

use super::{
    carried::Carried,
    clock::Clock,
    config::{Knobs, LogLine, Play},
    net::NetEvent,
    scripts::ContextId,
};
use mlua::prelude::*;
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc::UnboundedSender;

/// The output window, read by the handle on another thread.
pub(super) type SharedLog = Arc<Mutex<Vec<LogLine>>>;
/// One DataModel; a number is never used again.
pub(super) type ModelId = u64;

/// How long code may still run when the play test is to end.
const LAST_TURN: Duration = Duration::from_millis(200);

/// What ends Luau code that does not yield; set from other threads.
#[derive(Debug, Default)]
pub(super) struct Stops {
    /// The Studio closes.
    pub(super) studio: AtomicBool,
    /// How often the end of a play test was asked for, and how often that was carried out.
    asked: AtomicU64,
    done: AtomicU64,
}

impl Stops {
    pub(super) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn carried_out(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether code that ran for `ran` without a pause must end.
    pub(super) fn ends(&self, is_play: bool, ran: Duration) -> bool {
        let is_over = is_play && self.asked.load(Ordering::Relaxed) > self.done.load(Ordering::Relaxed);
        self.studio.load(Ordering::Relaxed) || is_over && ran > LAST_TURN
    }
}

/// What Luau code asks of `StudioTestService`; carried out between two turns.
pub(super) enum Asked {
    Start {
        play: Play,
        args: Carried,
        waiter: Waiter,
    },
    End(Carried),
    /// More players.
    Join(u8),
    /// A client goes.
    Leave(ModelId),
}

/// A thread of the edit DataModel that waits for the end of a play test.
pub(super) struct Waiter {
    pub(super) context: ContextId,
    pub(super) thread: LuaThread,
}

/// The part of a Studio that is there once.
pub(super) struct Shared {
    pub(super) knobs: Knobs,
    /// One grid of frames for all DataModels.
    pub(super) clock: Clock,
    pub(super) stops: Arc<Stops>,
    pub(super) log: SharedLog,
    pub(super) net: UnboundedSender<(ModelId, NetEvent)>,
    /// `plugin:GetSetting`, for all DataModels and all loads of the plugin.
    pub(super) settings: RefCell<serde_json::Map<String, serde_json::Value>>,
    pub(super) asked: RefCell<VecDeque<Asked>>,
    /// What the running play test was given.
    pub(super) test_args: RefCell<Carried>,
    /// DataModels that exist.
    pub(super) models: Cell<usize>,
    /// Streams that are open or connecting.
    pub(super) streams: Cell<usize>,
    serial: Cell<u64>,
}

impl Shared {
    pub(super) fn new(
        knobs: Knobs,
        settings: serde_json::Map<String, serde_json::Value>,
        log: SharedLog,
        stops: Arc<Stops>,
        net: UnboundedSender<(ModelId, NetEvent)>,
    ) -> Self {
        Self {
            clock: Clock::start(knobs.frame),
            knobs,
            stops,
            log,
            net,
            settings: RefCell::new(settings),
            asked: RefCell::default(),
            test_args: RefCell::default(),
            models: Cell::new(0),
            streams: Cell::new(0),
            serial: Cell::new(0),
        }
    }

    /// A number that nothing else in this Studio has.
    pub(super) fn next_serial(&self) -> u64 {
        self.serial.set(self.serial.get() + 1);
        self.serial.get()
    }
}

/// Counts itself in a cell of `Shared` for as long as it lives.
pub(super) struct Counted {
    shared: Rc<Shared>,
    counter: fn(&Shared) -> &Cell<usize>,
}

impl Counted {
    pub(super) fn new(shared: &Rc<Shared>, counter: fn(&Shared) -> &Cell<usize>) -> Self {
        let cell = counter(shared);
        cell.set(cell.get() + 1);
        Self { shared: shared.clone(), counter }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let cell = (self.counter)(&self.shared);
        cell.set(cell.get() - 1);
    }
}

/// Where the socket tasks of one DataModel tell what happened.
#[derive(Clone)]
pub(super) struct NetSender {
    pub(super) model: ModelId,
    pub(super) events: UnboundedSender<(ModelId, NetEvent)>,
}

impl NetSender {
    /// A Studio that is gone needs no events.
    pub(super) fn send(&self, event: NetEvent) {
        let _ended = self.events.send((self.model, event));
    }
}
