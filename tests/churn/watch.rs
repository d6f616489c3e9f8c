//! What is watched while the day goes on: the log, panics, and how much memory the process holds.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

static PANICS: AtomicUsize = AtomicUsize::new(0);
static SAID: OnceLock<Said> = OnceLock::new();

/// What may be in the log: files that the day broke, edits made in Studio that lost against a save,
/// and saves that fell into the very moment of such an edit and were kept. Everything else is a fault.
const EXPECTED: [&str; 5] = [
    "src/Cfg.json: ",
    "src/Broken.model.json: ",
    "an edit made in Studio was not written: ",
    " was written by another program while it was replaced; its text stays",
    " meanwhile is kept in ",
];

/// Everything that was logged as a warning or an error.
#[derive(Default)]
struct Said {
    unexpected: Mutex<BTreeMap<String, usize>>,
    expected: AtomicUsize,
}

impl log::Log for Said {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn && metadata.target().starts_with("rojo_mcp")
    }

    fn log(&self, record: &log::Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let text = record.args().to_string();
        if EXPECTED.iter().any(|expected| text.contains(expected)) {
            self.expected.fetch_add(1, Ordering::SeqCst);
            return;
        }
        let mut unexpected = self.unexpected.lock().unwrap_or_else(PoisonError::into_inner);
        *unexpected.entry(format!("{}: {text}", record.level())).or_default() += 1;
    }

    fn flush(&self) {}
}

/// Begin to watch. Panics on any thread count: the session survives some, and none must happen.
pub fn begin() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        report(panic);
    }));
    log::set_logger(SAID.get_or_init(Said::default)).expect("the only logger");
    log::set_max_level(log::LevelFilter::Warn);
}

pub fn panics() -> usize {
    PANICS.load(Ordering::SeqCst)
}

/// How much was logged that was to be expected, and all that was not.
pub fn said() -> (usize, BTreeMap<String, usize>) {
    let said = SAID.get_or_init(Said::default);
    let unexpected = said.unexpected.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (said.expected.load(Ordering::SeqCst), unexpected)
}

/// How much memory this process held, over time.
#[derive(Debug, Default)]
pub struct Memory(Vec<f64>);

impl Memory {
    /// Look again and again until `end`. Blocks.
    pub fn watch(end: Instant) -> Self {
        let mut memory = Self::default();
        while Instant::now() < end {
            memory.0.extend(held());
            std::thread::sleep(Duration::from_millis(100));
        }
        memory
    }

    /// The middle value of one quarter, 0 to 3, in MiB. `None`: this system does not tell.
    pub fn quarter(&self, quarter: usize) -> Option<f64> {
        let size = self.0.len() / 4;
        let mut values = self.0.get(quarter * size..(quarter + 1) * size)?.to_vec();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }
}

/// The resident memory, in MiB.
fn held() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?;
    Some(kibibytes.parse::<f64>().ok()? / 1024.0)
}
