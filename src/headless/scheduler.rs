//! Who runs when: the queue of threads and handlers, timers, and the time limit.

use super::{
    clock::{Clock, Instant, now},
    errors::raise,
    scripts::ContextId,
    shared::{Shared, Stops},
    signal::Handler,
};
use mlua::{VmState, prelude::*};
use std::{
    cell::{Cell, OnceCell, RefCell},
    cmp::Reverse,
    collections::{BinaryHeap, HashSet, VecDeque},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

/// How long the queue may keep the thread before sockets and commands get their turn.
const SLICE: Duration = Duration::from_millis(8);
/// The clock is read once in this many interrupts; they come at every loop and call.
const INTERRUPTS_PER_CHECK: u32 = 512;

/// How far up a timeout looks for the script that is to blame.
const FRAMES_SEARCHED: usize = 16;

/// One thing to run.
pub(super) enum Work {
    Resume(LuaThread, LuaMultiValue),
    Handler(Rc<Handler>, LuaMultiValue),
}

struct Job {
    context: ContextId,
    work: Work,
}

/// A thread to wake on a frame boundary.
pub(super) struct Timer {
    pub(super) thread: LuaThread,
    pub(super) seconds: f64,
    pub(super) args: LuaMultiValue,
    /// Give the thread the seconds it slept, as `task.wait` does, instead of `args`.
    pub(super) gives_elapsed: bool,
}

struct Sleeping {
    at: Instant,
    since: Instant,
    serial: u64,
    context: ContextId,
    timer: Timer,
}

impl PartialEq for Sleeping {
    fn eq(&self, other: &Self) -> bool {
        self.serial == other.serial
    }
}
impl Eq for Sleeping {}
impl PartialOrd for Sleeping {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Sleeping {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
}

/// The queue of one VM.
pub(super) struct Scheduler {
    queue: RefCell<VecDeque<Job>>,
    sleeping: RefCell<BinaryHeap<Reverse<Sleeping>>>,
    serial: Cell<u64>,
    current: Cell<ContextId>,
    /// Contexts that were unloaded: nothing of theirs runs any more.
    ended: RefCell<HashSet<ContextId>>,
    clock: Clock,
    limit: Duration,
    resumed_at: Cell<Option<Instant>>,
    interrupts: Cell<u32>,
    /// The text of a timeout that is being raised.
    timed_out: RefCell<Option<String>>,
    stops: Arc<Stops>,
    /// Whether the end of the play test is the end of this.
    is_play: bool,
    /// `function(thread, ...)`: resumes and reports an error; Luau, so that any error value survives.
    step: OnceCell<LuaFunction>,
    main_thread: OnceCell<LuaThread>,
}

impl Scheduler {
    pub(super) fn new(shared: &Shared, is_play: bool) -> Self {
        Self {
            queue: RefCell::default(),
            sleeping: RefCell::default(),
            serial: Cell::new(0),
            current: Cell::new(ContextId::CommandBar),
            ended: RefCell::default(),
            clock: shared.clock,
            limit: shared.knobs.script_timeout,
            resumed_at: Cell::new(None),
            interrupts: Cell::new(0),
            timed_out: RefCell::default(),
            stops: shared.stops.clone(),
            is_play,
            step: OnceCell::new(),
            main_thread: OnceCell::new(),
        }
    }

    /// Called on the main thread, which is where steps run.
    pub(super) fn set_step(&self, lua: &Lua, step: LuaFunction) {
        // The prelude runs once per VM.
        let _first = (self.step.set(step), self.main_thread.set(lua.current_thread()));
    }

    /// On whose behalf code runs now.
    pub(super) fn current(&self) -> ContextId {
        self.current.get()
    }

    pub(super) fn push(&self, context: ContextId, work: Work) {
        self.queue.borrow_mut().push_back(Job { context, work });
    }

    pub(super) fn sleep(&self, timer: Timer) {
        self.sleep_for(self.current.get(), timer);
    }

    /// Like `sleep`, on behalf of another context.
    pub(super) fn sleep_for(&self, context: ContextId, timer: Timer) {
        let since = now();
        let seconds =
            Duration::try_from_secs_f64(timer.seconds.max(0.0)).unwrap_or(Duration::from_secs(u32::MAX.into()));
        self.serial.set(self.serial.get() + 1);
        self.sleeping.borrow_mut().push(Reverse(Sleeping {
            at: self.clock.frame_after(since + seconds),
            since,
            serial: self.serial.get(),
            context,
            timer,
        }));
    }

    /// When the next sleeping thread is due.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.sleeping.borrow().peek().map(|Reverse(sleeping)| sleeping.at)
    }

    /// When the next frame begins.
    pub(super) fn next_frame(&self) -> Instant {
        self.clock.frame_after(now())
    }

    pub(super) fn end_context(&self, context: ContextId) {
        self.ended.borrow_mut().insert(context);
    }

    /// Run what is due, for one slice at most; `true` if work is left.
    pub(super) fn drain(&self, lua: &Lua) -> bool {
        let until = now() + SLICE;
        loop {
            self.wake_sleeping();
            let Some(job) = self.queue.borrow_mut().pop_front() else { return false };
            self.run(lua, job.context, job.work);
            if now() >= until {
                return !self.queue.borrow().is_empty();
            }
        }
    }

    fn wake_sleeping(&self) {
        let mut sleeping = self.sleeping.borrow_mut();
        if sleeping.is_empty() {
            return;
        }
        let now = now();
        while sleeping.peek().is_some_and(|Reverse(first)| first.at <= now) {
            let Some(Reverse(due)) = sleeping.pop() else { return };
            let args = if due.timer.gives_elapsed {
                LuaMultiValue::from_iter([LuaValue::Number(now.duration_since(due.since).as_secs_f64())])
            } else {
                due.timer.args
            };
            self.push(due.context, Work::Resume(due.timer.thread, args));
        }
    }

    /// Run one thing now, on behalf of its context.
    pub(super) fn run(&self, lua: &Lua, context: ContextId, work: Work) {
        if self.ended.borrow().contains(&context) {
            return;
        }
        let Some((thread, args)) = thread_of(lua, work) else { return };
        if thread.status() != mlua::thread::ThreadStatus::Resumable {
            return;
        }
        let outer = (self.current.replace(context), self.resumed_at.get());
        if outer.1.is_none() {
            self.resumed_at.set(Some(now()));
        }
        let step = self.step.get().expect("the prelude sets the step before any script runs");
        if let Err(error) = step.call::<()>((thread, args)) {
            log::error!("headless Studio: the scheduler step failed: {error}");
        }
        self.current.set(outer.0);
        self.resumed_at.set(outer.1);
        if outer.1.is_none() {
            self.timed_out.take();
        }
    }

    /// Called by the VM at loops and calls: ends code that runs too long.
    pub(super) fn interrupt(&self, lua: &Lua) -> LuaResult<VmState> {
        if self.timed_out.borrow().is_none() {
            self.interrupts.set(self.interrupts.get().wrapping_add(1));
            if !self.interrupts.get().is_multiple_of(INTERRUPTS_PER_CHECK) {
                return Ok(VmState::Continue);
            }
            let ran = self.resumed_at.get().map(|since| now().duration_since(since)).unwrap_or_default();
            if ran <= self.limit && !self.stops.ends(self.is_play, ran) {
                return Ok(VmState::Continue);
            }
            // From here every interrupt raises, so that a `pcall` in a loop ends as well.
            let text = format!("{}Script timeout: exhausted allowed execution time", position(lua));
            self.timed_out.replace(Some(text));
        }
        // The step itself runs on the main thread and still has to report.
        if self.resumed_at.get().is_none() || self.main_thread.get() == Some(&lua.current_thread()) {
            return Ok(VmState::Continue);
        }
        raise(self.timed_out.borrow().clone().unwrap_or_default())
    }
}

/// Where the script is, as it stands before an error message; the prelude is no script.
fn position(lua: &Lua) -> String {
    let frames = (0..FRAMES_SEARCHED).map_while(|level| {
        lua.inspect_stack(level, |frame| Some((frame.source().short_src?.into_owned(), frame.current_line()?)))
    });
    let script = frames.flatten().find(|(source, _)| !source.starts_with("headless."));
    script.map_or_else(String::new, |(source, line)| format!("{source}:{line}: "))
}

fn thread_of(lua: &Lua, work: Work) -> Option<(LuaThread, LuaMultiValue)> {
    match work {
        Work::Resume(thread, args) => Some((thread, args)),
        Work::Handler(handler, args) => {
            let thread = handler.take_turn().then(|| lua.create_thread(handler.function.clone()))?;
            thread.ok().map(|thread| (thread, args))
        }
    }
}
