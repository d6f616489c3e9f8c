//! The thread of a headless Studio: it owns the DataModels and gives each its turn.

use super::{
    carried::Carried,
    config::{Census, HeadlessConfig, HeadlessError, Play, Side},
    data_model::{DataModel, or_logged},
    net::NetEvent,
    place,
    play_test::{MOST_CLIENTS, PlayTest},
    scheduler::Work,
    shared::{Asked, ModelId, Shared, SharedLog, Stops, Waiter},
    world::{Opening, RunResult},
};
use mlua::prelude::*;
use rbx_dom_weak::types::Ref;
use std::{rc::Rc, sync::Arc, time::Duration};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, unbounded_channel},
        oneshot,
    },
    time::{sleep_until, timeout},
};

/// What the handle asks of the thread.
pub(super) enum Command {
    Run { side: Side, code: String, reply: oneshot::Sender<RunResult> },
    DropSockets { done: oneshot::Sender<()> },
    ReloadPlugin { done: oneshot::Sender<()> },
    StartPlay { play: Play, reply: oneshot::Sender<Result<(), String>> },
    StopPlay { done: oneshot::Sender<()> },
    Census { reply: oneshot::Sender<Census> },
    Stop,
}

/// How long sockets that are closing may take when the Studio stops.
const GOODBYE: Duration = Duration::from_millis(500);
/// The plugin's setting that says whether it asks the person at the screen.
const ASKS_SETTING: &str = "RojoMcpReviews";
/// Roblox documents that it is an error, not its text.
const RUNNING: &str = "a test session is already running";

/// One simulated Studio on its own thread.
pub(super) struct Host {
    shared: Rc<Shared>,
    plugin: Rc<[u8]>,
    edit: DataModel,
    test: Option<PlayTest>,
    events: UnboundedReceiver<(ModelId, NetEvent)>,
    commands: UnboundedReceiver<Command>,
}

impl Host {
    /// Open the place and start the plugin.
    pub(super) fn start(
        config: HeadlessConfig,
        commands: UnboundedReceiver<Command>,
        log: SharedLog,
        stops: Arc<Stops>,
    ) -> Result<Self, HeadlessError> {
        let opening = Opening {
            side: Side::Edit,
            is_run_mode: false,
            dom: place::open(&config.place, &config.place_name)?,
            place_id: config.place_id,
            game_id: 0,
            player: Ref::none(),
        };
        let (sender, events) = unbounded_channel();
        let mut settings = config.settings;
        if !config.knobs.somebody_watches {
            settings.entry(ASKS_SETTING).or_insert(false.into());
        }
        let shared = Rc::new(Shared::new(config.knobs, settings, log, stops, sender));
        let plugin: Rc<[u8]> = config.plugin.into();
        let edit = DataModel::start(&shared, opening, plugin.clone())?;
        Ok(Self { shared, plugin, edit, test: None, events, commands })
    }

    /// Serve until told to stop.
    pub(super) async fn run(mut self) {
        loop {
            let busy = self.turn();
            let wake = self.models().filter_map(DataModel::next_wake).min();
            tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(Command::Stop) | None => break,
                    Some(command) => self.handle_command(command),
                },
                Some((model, event)) = self.events.recv() => self.handle_event(model, event),
                () = tokio::task::yield_now(), if busy => {}
                () = wait_until(wake), if !busy => self.models_mut().for_each(DataModel::frame),
            }
        }
        self.say_goodbye().await;
    }

    fn models(&self) -> impl Iterator<Item = &DataModel> {
        std::iter::once(&self.edit).chain(self.test.iter().flat_map(PlayTest::models))
    }

    fn models_mut(&mut self) -> impl Iterator<Item = &mut DataModel> {
        std::iter::once(&mut self.edit).chain(self.test.iter_mut().flat_map(PlayTest::models_mut))
    }

    /// Each DataModel runs what is due; then what they sent and asked is carried out.
    fn turn(&mut self) -> bool {
        let mut busy = false;
        for model in self.models() {
            busy |= model.turn();
        }
        let moved = self.test.as_ref().is_some_and(PlayTest::exchange);
        let asked = std::mem::take(&mut *self.shared.asked.borrow_mut());
        let is_asked = !asked.is_empty();
        asked.into_iter().for_each(|asked| self.carry_out(asked));
        busy || moved || is_asked
    }

    fn carry_out(&mut self, asked: Asked) {
        match asked {
            Asked::Start { play, args, waiter } => self.start_for(play, args, waiter),
            Asked::End(value) => self.end_play(&value),
            Asked::Join(count) => {
                for _ in 0..count {
                    if let Some(Err(error)) = self.test.as_mut().map(PlayTest::join) {
                        log::warn!("headless Studio: a player could not join: {error}");
                    }
                }
            }
            Asked::Leave(model) => {
                if let Some(test) = &mut self.test {
                    test.leave(model);
                }
            }
        }
    }

    /// Start a test for a thread that waits for its end.
    fn start_for(&mut self, play: Play, args: Carried, waiter: Waiter) {
        let (context, thread) = (waiter.context, waiter.thread.clone());
        if let Err(error) = self.start_play(play, args, Some(waiter)) {
            let args = (false, error).into_lua_multi(&self.edit.lua);
            if let Some(args) = or_logged("an error of a test", args) {
                self.edit.world.scheduler.push(context, Work::Resume(thread, args));
            }
        }
    }

    fn start_play(&mut self, play: Play, args: Carried, waiter: Option<Waiter>) -> Result<(), String> {
        if self.test.is_some() {
            return Err(RUNNING.to_owned());
        }
        if matches!(play, Play::Clients(count) if count == 0 || count > MOST_CLIENTS) {
            return Err(format!("a test has 1 to {MOST_CLIENTS} clients"));
        }
        *self.shared.test_args.borrow_mut() = args;
        self.test = Some(PlayTest::start(&self.shared, &self.edit, &self.plugin, play, waiter)?);
        Ok(())
    }

    fn end_play(&mut self, value: &Carried) {
        if let Some(test) = self.test.take() {
            test.end(&self.edit, value);
        }
    }

    fn handle_command(&mut self, command: Command) {
        // Whoever asked may be gone; it is done all the same.
        match command {
            Command::Run { side, code, reply } => match self.models().find(|model| model.world.side == side) {
                Some(model) => model.run_code(&code, reply),
                None => {
                    let _gone = reply.send(Err(format!("there is no DataModel {side:?}: no such play test runs")));
                }
            },
            Command::DropSockets { done } => {
                self.models().for_each(|model| model.world.streams.drop_all());
                let _gone = done.send(());
            }
            Command::ReloadPlugin { done } => {
                self.edit.unload_plugin();
                if let Err(error) = self.edit.load_plugin() {
                    log::error!("headless Studio: reload the plugin: {error}");
                }
                self.edit.turn();
                let _gone = done.send(());
            }
            Command::StartPlay { play, reply } => {
                let _gone = reply.send(self.start_play(play, Carried::Nil, None));
            }
            Command::StopPlay { done } => {
                self.shared.stops.carried_out();
                self.end_play(&Carried::Nil);
                let _gone = done.send(());
            }
            Command::Census { reply } => {
                let _gone = reply.send(self.census());
            }
            Command::Stop => {}
        }
    }

    fn census(&self) -> Census {
        Census {
            data_models: self.shared.models.get(),
            streams: self.shared.streams.get(),
            tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
        }
    }

    fn handle_event(&self, model: ModelId, event: NetEvent) {
        // What comes for a DataModel that has ended is nobody's.
        if let Some(model) = self.models().find(|each| each.world.model == model) {
            model.handle_event(event);
        }
    }

    /// The plugins' last words get out; sockets they forgot are torn.
    async fn say_goodbye(mut self) {
        self.end_play(&Carried::Nil);
        self.edit.unload_plugin();
        let closing = async {
            while self.edit.world.streams.any_closing() {
                match self.events.recv().await {
                    Some((model, event)) => self.handle_event(model, event),
                    None => break,
                }
            }
        };
        // Whoever does not answer the close frame in time is left behind.
        let _in_time = timeout(GOODBYE, closing).await;
    }
}

async fn wait_until(wake: Option<super::clock::Instant>) {
    match wake {
        Some(wake) => sleep_until(wake).await,
        None => std::future::pending().await,
    }
}
