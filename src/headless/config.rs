//! What a headless Studio is started with, and what it hands back.

use std::time::Duration;

/// Everything a [`HeadlessStudio`](super::HeadlessStudio) needs to start.
#[derive(Debug, Clone, Default)]
pub struct HeadlessConfig {
    /// The place as `.rbxm` bytes: its roots are the children of the DataModel.
    /// A root whose class is a service becomes that service. Empty: an empty place.
    pub place: Vec<u8>,
    /// The plugin as `.rbxm` bytes: every enabled `Script` in it is started.
    pub plugin: Vec<u8>,
    /// What `plugin:GetSetting` knows at the start.
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// `game.PlaceId`; 0 is a place that was never published.
    pub place_id: u64,
    /// `game.Name`; empty is `Place1`, as in a fresh Studio.
    pub place_name: String,
    /// Where the engine has a choice.
    pub knobs: Knobs,
}

/// What differs between Studio versions and settings, and what a test wants to provoke.
#[derive(Debug, Clone)]
pub struct Knobs {
    /// `SignalBehavior.Immediate` instead of the default `Deferred`.
    pub immediate_signals: bool,
    /// How many `WebStreamClient`s may be open or connecting at once.
    pub stream_limit: usize,
    /// What a stream fires when its connection fails or breaks.
    pub loss_events: LossEvents,
    /// How long one Luau thread may run without yielding.
    pub script_timeout: Duration,
    /// The length of a frame: `task.wait()` wakes on frame boundaries.
    pub frame: Duration,
    /// `EncodingService:ComputeStringHash` gives hex digits instead of the digest's bytes,
    /// which the documentation promises.
    pub hash_as_hex: bool,
    /// Somebody sits at the screen, so the plugin may ask there. Elsewhere its setting says no.
    pub somebody_watches: bool,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            immediate_signals: false,
            stream_limit: 6,
            loss_events: LossEvents::default(),
            script_timeout: Duration::from_secs(10),
            frame: Duration::from_micros(16_667),
            hash_as_hex: false,
            somebody_watches: false,
        }
    }
}

/// The order in which a stream client tells of a lost or refused connection.
/// The documentation promises none, so a plugin must bear all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LossEvents {
    /// `Error`, then `Closed`.
    #[default]
    ErrorThenClosed,
    /// `Closed`, then `Error`.
    ClosedThenError,
    /// `Error` alone.
    ErrorOnly,
    /// `Closed` alone.
    ClosedOnly,
}

/// One of the DataModels of a Studio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Side {
    /// The place that is edited; it is always there.
    #[default]
    Edit,
    /// The server of a play test.
    Server,
    /// A client of a play test, counted from 1 in the order of joining.
    Client(u8),
}

/// What a person can start from Studio's toolbar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Play {
    /// A server and one client.
    Solo,
    /// A server alone: the button "Run".
    Run,
    /// A server and this many clients, 1 to 8.
    Clients(u8),
}

/// What a Studio holds at one time. After a play test it is what it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Census {
    /// DataModels whose memory is not released.
    pub data_models: usize,
    /// `WebStreamClient`s that are open or connecting.
    pub streams: usize,
    /// Tasks of the Studio's thread: one a socket or request.
    pub tasks: usize,
}

/// One line of the output window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// `Enum.MessageType`: output 0, info 1, warning 2, error 3.
    pub level: u8,
    /// The bytes as printed; Luau strings need not be UTF-8.
    pub text: Vec<u8>,
    /// Which DataModel printed it.
    pub side: Side,
    /// The same, and no other DataModel has this number.
    pub(super) model: u64,
}

impl LogLine {
    /// The text, with U+FFFD for what is not UTF-8.
    pub fn text_lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }
}

/// Why a headless Studio could not start.
#[derive(Debug, thiserror::Error)]
pub enum HeadlessError {
    /// The place is not a model file this crate can read.
    #[error("read the place file: {0}")]
    Place(#[source] rbx_binary::DecodeError),
    /// The plugin is not a model file this crate can read.
    #[error("read the plugin file: {0}")]
    Plugin(#[source] rbx_binary::DecodeError),
    /// There is nothing to start in the plugin.
    #[error("start the plugin: the model has no Script in it")]
    NoPluginScript,
    /// The Luau VM could not be set up: a bug in the simulation.
    #[error("set up the Luau VM: {0}")]
    Vm(String),
    /// The thread or its runtime could not be made.
    #[error("start the thread of the headless Studio: {0}")]
    Thread(#[source] std::io::Error),
    /// The thread ended before it was ready: a panic in the simulation.
    #[error("the thread of the headless Studio ended while starting")]
    Died,
}
