//! The handle of a headless Studio.

use super::{
    config::{HeadlessConfig, HeadlessError, LogLine},
    host::{Command, Host},
    world::SharedLog,
};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
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
    stopping: Arc<AtomicBool>,
    thread: Mutex<Option<(JoinHandle<()>, mpsc::Receiver<()>)>>,
}

type Started = Result<Arc<AtomicBool>, HeadlessError>;

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
        let thread_log = log.clone();
        let thread = std::thread::Builder::new()
            .name("headless-studio".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                live(config, receiver, thread_log, &started);
                // The handle may have stopped waiting.
                let _unheard = ended.send(());
            })
            .map_err(HeadlessError::Thread)?;
        let stopping = answer.recv().map_err(|_| HeadlessError::Died)??;
        Ok(Self { commands, log, stopping, thread: Mutex::new(Some((thread, end))) })
    }

    /// Run Luau as a person types it into the command bar; it may yield.
    /// Returned values come as JSON: an instance is its full name, what JSON cannot
    /// hold is what `tostring` gives.
    ///
    /// # Errors
    /// The text of the error, as the output window shows it.
    pub async fn run(&self, code: &str) -> Result<Vec<serde_json::Value>, String> {
        let (reply, answer) = oneshot::channel();
        self.command(Command::Run { code: code.to_owned(), reply });
        answer.await.unwrap_or_else(|_| Err("the headless Studio has stopped".to_owned()))
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
            self.stopping.store(true, Ordering::Relaxed);
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
fn live(config: HeadlessConfig, commands: UnboundedReceiver<Command>, log: SharedLog, started: &mpsc::Sender<Started>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _gone = started.send(Err(HeadlessError::Thread(error)));
            return;
        }
    };
    runtime.block_on(async {
        match Host::start(config, commands, log) {
            Ok(host) => {
                // The caller of `start` waits for this; it cannot be gone.
                let _gone = started.send(Ok(host.stop_flag()));
                host.run().await;
            }
            Err(error) => {
                let _gone = started.send(Err(error));
            }
        }
    });
}
