//! The handle of a headless Studio.

use super::{
    config::{Census, HeadlessConfig, HeadlessError, LogLine, Play, Side},
    host::{Command, Host},
    shared::{SharedLog, Stops},
};
use std::{
    sync::{Arc, Mutex, PoisonError, atomic::Ordering, mpsc},
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::{
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    oneshot,
};

/// How long dropping the handle waits for the thread.
const STOP_PATIENCE: Duration = Duration::from_secs(2);
/// Luau calls nest on this stack, and so does what the host does for them.
const STACK: usize = 32 * 1024 * 1024;

/// A running headless Studio. Dropping it fires `plugin.Unloading` and ends its thread.
#[derive(Debug)]
pub struct HeadlessStudio {
    commands: UnboundedSender<Command>,
    pub(super) log: SharedLog,
    stops: Arc<Stops>,
    thread: Mutex<Option<(JoinHandle<()>, mpsc::Receiver<()>)>>,
}

type Started = Result<(), HeadlessError>;

impl HeadlessStudio {
    /// Start a Studio; returns when the plugin's script has run up to its first yield.
    ///
    /// # Errors
    /// When the place or the plugin cannot be read or has nothing to start.
    /// An error *in* the plugin is a line in the log, as in Studio.
    pub fn start(config: HeadlessConfig) -> Result<Self, HeadlessError> {
        let (commands, receiver) = unbounded_channel();
        let log = SharedLog::default();
        let (started, answer) = mpsc::channel();
        let (ended, end) = mpsc::channel();
        let stops = Arc::<Stops>::default();
        let (thread_log, thread_stops) = (log.clone(), stops.clone());
        let thread = std::thread::Builder::new()
            .name("headless-studio".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                live(config, receiver, thread_log, thread_stops, &started);
                // The handle may have stopped waiting.
                let _unheard = ended.send(());
            })
            .map_err(HeadlessError::Thread)?;
        answer.recv().map_err(|_| HeadlessError::Died)??;
        Ok(Self { commands, log, stops, thread: Mutex::new(Some((thread, end))) })
    }

    /// Run Luau as a person types it into the command bar; it may yield.
    /// Returned values come as JSON: an instance is its full name, what JSON cannot
    /// hold is what `tostring` gives.
    ///
    /// # Errors
    /// The text of the error, as the output window shows it.
    pub async fn run(&self, code: &str) -> Result<Vec<serde_json::Value>, String> {
        self.run_in(Side::Edit, code).await
    }

    /// The same in one of the DataModels of a play test.
    ///
    /// # Errors
    /// The text of the error; also when there is no such DataModel, or it ends while the code runs.
    pub async fn run_in(&self, side: Side, code: &str) -> Result<Vec<serde_json::Value>, String> {
        let (reply, answer) = oneshot::channel();
        self.command(Command::Run { side, code: code.to_owned(), reply });
        answer.await.unwrap_or_else(|_| Err("the headless Studio has stopped".to_owned()))
    }

    /// Press "Play" or "Run": returns when the plugin has started in each DataModel, as
    /// [`start`](Self::start) does.
    ///
    /// # Errors
    /// When a play test runs already, or the number of clients is none of 1 to 8.
    pub async fn start_play(&self, play: Play) -> Result<(), String> {
        let (reply, answer) = oneshot::channel();
        self.command(Command::StartPlay { play, reply });
        answer.await.unwrap_or_else(|_| Err("the headless Studio has stopped".to_owned()))
    }

    /// Press "Stop": the play test ends with what was started in it, also code that never yields.
    /// Without a play test nothing happens.
    pub async fn stop_play(&self) {
        let (done, answer) = oneshot::channel();
        self.stops.ask();
        self.command(Command::StopPlay { done });
        // A Studio that has stopped plays nothing.
        let _stopped = answer.await;
    }

    /// What the Studio holds now; `None` when it has stopped.
    pub async fn census(&self) -> Option<Census> {
        let (reply, answer) = oneshot::channel();
        self.command(Command::Census { reply });
        answer.await.ok()
    }

    /// Tear the TCP connections of all stream clients without a close frame.
    pub async fn drop_sockets(&self) {
        let (done, answer) = oneshot::channel();
        self.command(Command::DropSockets { done });
        // A Studio that has stopped has no sockets.
        let _stopped = answer.await;
    }

    /// The output window so far: prints, warnings and errors of all scripts.
    pub fn log(&self) -> Vec<LogLine> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Unload the plugin (its `Unloading` fires) and start it again.
    pub async fn reload_plugin(&self) {
        let (done, answer) = oneshot::channel();
        self.command(Command::ReloadPlugin { done });
        // A Studio that has stopped has no plugin.
        let _stopped = answer.await;
    }

    /// Stop without blocking the caller's runtime.
    pub async fn stop(self) {
        // The blocking wait is `drop`; a runtime that is shutting down may refuse the task.
        let _refused = tokio::task::spawn_blocking(move || drop(self)).await;
    }

    fn command(&self, command: Command) {
        // A thread that has ended answers through its dropped reply channel.
        let _ended = self.commands.send(command);
    }
}

impl Drop for HeadlessStudio {
    fn drop(&mut self) {
        self.command(Command::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((thread, end)) = thread else { return };
        if end.recv_timeout(STOP_PATIENCE / 2) == Err(mpsc::RecvTimeoutError::Timeout) {
            // Luau code that never yields is ended by the interrupt.
            self.stops.studio.store(true, Ordering::Relaxed);
            if end.recv_timeout(STOP_PATIENCE / 2) == Err(mpsc::RecvTimeoutError::Timeout) {
                log::warn!("the headless Studio did not stop in time; its thread is left behind");
                return;
            }
        }
        if thread.join().is_err() {
            log::error!("the thread of the headless Studio panicked");
        }
    }
}

/// The life of the thread.
fn live(
    config: HeadlessConfig,
    commands: UnboundedReceiver<Command>,
    log: SharedLog,
    stops: Arc<Stops>,
    started: &mpsc::Sender<Started>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _gone = started.send(Err(HeadlessError::Thread(error)));
            return;
        }
    };
    runtime.block_on(async {
        match Host::start(config, commands, log, stops) {
            Ok(host) => {
                // The caller of `start` waits for this; it cannot be gone.
                let _gone = started.send(Ok(()));
                host.run().await;
            }
            Err(error) => {
                let _gone = started.send(Err(error));
            }
        }
    });
}
