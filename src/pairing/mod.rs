//! Which Studio plugins a server takes in where a token is required: those that hold a key which its
//! user knows. A key comes with `plugin install`, or by a code that a person types into the plugin.
//!
//! `docs/protocol.md` tells how a plugin proves itself; here is what it is compared with.

mod codes;
mod key;
mod list;

use std::{
    collections::VecDeque,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use self::codes::Codes;
pub use self::{
    codes::BadCode,
    key::{Key, KeyHash},
    list::{Paired, PairingList},
};
use crate::clock;

/// A refusal that is older is no longer told: that Studio has been closed, most likely. A plugin
/// that is refused tries again every minute.
const RECENT: Duration = Duration::from_secs(5 * 60);

/// How many refused Studios are remembered.
const MOST_REFUSED: usize = 16;

/// How many proofs are looked at. A plugin has up to three keys, and who is not known yet may send
/// a whole frame of them.
const MOST_PROOFS: usize = 8;

/// How much of a place's name is kept.
const LONGEST_NAME: usize = 80;

/// What a server knows of the plugins that may connect.
#[derive(Debug)]
pub struct Pairing {
    list: PairingList,
    /// Every Studio must prove itself, not only those of other machines.
    required: bool,
    state: Mutex<State>,
    refusals: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    codes: Codes,
    /// Keys of Studios in this process, which are no other's business.
    here: Vec<KeyHash>,
    refused: VecDeque<Refused>,
}

#[derive(Debug)]
struct Refused {
    studio: String,
    why: String,
    at: Instant,
}

/// How pairing stands, for the person at a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PairingReport {
    /// Every Studio must be paired, not only those of other machines.
    pub required: bool,
    /// How many are.
    pub paired: usize,
    /// The code that pairs one more, if one was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// For how many seconds it counts.
    pub code_seconds: u64,
    /// Who was refused of late, and why.
    pub refused: Vec<RefusedStudio>,
}

/// A Studio that was refused since it is not paired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedStudio {
    /// The name of its place.
    pub studio: String,
    /// Why.
    pub why: String,
}

impl RefusedStudio {
    /// In words.
    pub fn sentence(&self) -> String {
        format!("Studio {:?} was refused: {}", self.studio, self.why)
    }
}

impl Pairing {
    /// Pairing by `list`; `required` of every Studio, or only of those on other machines.
    pub fn new(list: PairingList, required: bool) -> Self {
        Self { list, required, state: Mutex::default(), refusals: watch::Sender::new(0) }
    }

    /// Whether every Studio must be paired.
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// How the list is named to plugins.
    ///
    /// # Errors
    /// The list cannot be read or made.
    pub fn realm(&self) -> io::Result<String> {
        self.list.realm()
    }

    /// A key for a Studio in this process; it is known as long as that lives.
    pub fn key_for_here(&self) -> Key {
        let key = Key::random();
        self.state().here.push(key.hash());
        key
    }

    /// Whose key one of `proofs` was made with.
    ///
    /// # Errors
    /// The list cannot be read.
    pub fn proven(&self, host: &str, nonce: &str, proofs: &[String]) -> io::Result<Option<KeyHash>> {
        let mut known = self.state().here.clone();
        known.extend(self.list.all()?.into_iter().map(|paired| paired.hash));
        let mut found = None;
        // To the end, so that how long it takes says nothing.
        for hash in known {
            if proofs.iter().take(MOST_PROOFS).filter(|proof| hash.is_proven(host, nonce, proof)).count() > 0 {
                found = Some(hash);
            }
        }
        Ok(found)
    }

    /// Whether this key still counts. A list that cannot be read takes nothing back.
    pub fn still_counts(&self, hash: &KeyHash) -> bool {
        let here = self.state().here.iter().any(|known| known.is(hash));
        match self.list.all() {
            Ok(all) => here || all.iter().any(|paired| paired.hash.is(hash)),
            Err(_) => true,
        }
    }

    /// Pair the plugin of `studio`, if `code` is the one that counts now. It counts no more then.
    ///
    /// # Errors
    /// It is not, or the list cannot be written.
    pub fn pair(&self, code: &str, hash: KeyHash, studio: &str) -> Result<(), BadCode> {
        self.state().codes.take(code, clock::now())?;
        self.list.add(hash, &shortened(studio)).map_err(|error| BadCode::NotKept(error.to_string()))
    }

    /// A Studio was refused.
    pub fn refused(&self, studio: &str, why: &str) {
        let studio = shortened(studio);
        let mut state = self.state();
        state.refused.retain(|refused| refused.studio != studio);
        state.refused.push_back(Refused { studio, why: why.to_owned(), at: clock::now() });
        if state.refused.len() > MOST_REFUSED {
            state.refused.pop_front();
        }
        drop(state);
        self.refusals.send_modify(|count| *count += 1);
    }

    /// It has come in since.
    pub fn came_in(&self, studio: &str) {
        let studio = shortened(studio);
        self.state().refused.retain(|refused| refused.studio != studio);
    }

    /// Who was refused of late.
    pub fn refused_of_late(&self) -> Vec<RefusedStudio> {
        let state = self.state();
        let recent = state.refused.iter().filter(|refused| refused.at.elapsed() < RECENT);
        recent.map(|refused| RefusedStudio { studio: refused.studio.clone(), why: refused.why.clone() }).collect()
    }

    /// Counts refusals, so that they can be waited for.
    pub fn refusals(&self) -> watch::Receiver<u64> {
        self.refusals.subscribe()
    }

    /// How pairing stands, for a person who asks. With a code if a Studio was refused: this is how
    /// the next one comes after wrong ones.
    pub fn report(&self) -> PairingReport {
        self.report_with(Codes::asked)
    }

    /// The same, for a person whose terminal shows what happens. After wrong codes there is none
    /// until somebody asks, else whoever guesses would have the next at once.
    pub fn report_unasked(&self) -> PairingReport {
        self.report_with(Codes::unasked)
    }

    fn report_with(&self, code: impl FnOnce(&mut Codes, Instant) -> Option<(String, Duration)>) -> PairingReport {
        let refused = self.refused_of_late();
        let code = if refused.is_empty() { None } else { code(&mut self.state().codes, clock::now()) };
        PairingReport {
            required: self.required,
            paired: self.list.all().map_or(0, |all| all.len()),
            code_seconds: code.as_ref().map_or(0, |(_, left)| left.as_secs()),
            code: code.map(|(code, _)| code),
            refused,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place may be called anything, at any length.
fn shortened(studio: &str) -> String {
    studio.chars().take(LONGEST_NAME).collect()
}

impl PairingReport {
    /// What a person can do about a Studio that was refused.
    pub fn next(&self) -> String {
        let install = "on this machine run `rojo-mcp plugin install` and start Studio again";
        match &self.code {
            Some(code) => {
                let minutes = self.code_seconds.div_ceil(60);
                format!("type code {code} in the plugin's window (it counts once, for {minutes} min), or {install}")
            }
            None => format!("run `rojo-mcp status` for a code to type in the plugin's window, or {install}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairing() -> Pairing {
        Pairing::new(PairingList::in_memory(), true)
    }

    #[test]
    fn a_key_is_known_until_it_is_revoked() {
        let pairing = pairing();
        let (key, stranger) = (Key::random(), Key::random());
        let proofs = |key: &Key| vec!["nonsense".to_owned(), key.prove("h", "n")];
        pairing.list.add(key.hash(), "a plugin").expect("kept");
        let proven = |key: &Key| pairing.proven("h", "n", &proofs(key)).expect("a list");
        assert_eq!(proven(&key), Some(key.hash()));
        assert_eq!(proven(&stranger), None);
        assert_eq!(pairing.proven("h", "n", &[]).expect("a list"), None);
        let mut late = vec!["nonsense".to_owned(); MOST_PROOFS];
        late.extend(proofs(&key));
        assert_eq!(pairing.proven("h", "n", &late).expect("a list"), None, "so many are no plugin's");
        let here = pairing.key_for_here();
        assert_eq!(proven(&here), Some(here.hash()));
        pairing.list.clear().expect("kept");
        assert_eq!(proven(&key), None);
        assert!(!pairing.still_counts(&key.hash()));
        assert!(pairing.still_counts(&here.hash()), "no list says that the Studio in here is a stranger");
    }

    #[test]
    fn a_code_is_made_only_where_somebody_sees_it_and_somebody_was_refused() {
        let pairing = pairing();
        assert_eq!(pairing.report().code, None, "nobody was refused");
        let hash = Key::random().hash();
        assert_eq!(pairing.pair("000000", hash.clone(), "x"), Err(BadCode::None));
        pairing.refused("Place1", "it is not paired");
        assert_eq!(pairing.pair("000000", hash.clone(), "x"), Err(BadCode::None), "nobody has seen one yet");
        let report = pairing.report_unasked();
        assert_eq!(report.refused.len(), 1);
        assert!(report.next().contains(report.code.as_deref().expect("a code")), "{}", report.next());
        let code = report.code.expect("a code");
        assert_eq!(pairing.report().code.as_deref(), Some(code.as_str()), "the same for all who look");
        assert_eq!(pairing.pair(&code, hash.clone(), "x"), Ok(()));
        assert!(pairing.still_counts(&hash));
        assert_eq!(pairing.pair(&code, hash, "x"), Err(BadCode::None), "it counts once");
        pairing.came_in("Place1");
        assert_eq!(pairing.report().refused, []);
    }

    #[test]
    fn the_names_of_the_refused_are_bounded() {
        let pairing = pairing();
        for number in 0..40 {
            pairing.refused(&format!("{number}{}", "é".repeat(500)), "why");
        }
        let refused = pairing.refused_of_late();
        assert_eq!(refused.len(), MOST_REFUSED);
        assert!(refused.iter().all(|refused| refused.studio.chars().count() <= LONGEST_NAME));
    }

    #[test]
    fn a_list_that_cannot_be_read_lets_nobody_in_and_ends_no_link() {
        let root = tempfile::tempdir().expect("a folder");
        let state = crate::state::StateFolder::below(root.path(), root.path()).expect("a state folder");
        let pairing = Pairing::new(PairingList::in_folder(&state), true);
        let key = Key::random();
        pairing.list.add(key.hash(), "a plugin").expect("kept");
        crate::state::write_private(&state.path("pairings.json"), b"{").expect("written");
        assert!(pairing.proven("h", "n", &[key.prove("h", "n")]).is_err());
        assert!(pairing.still_counts(&key.hash()), "nobody has taken it back");
    }

    #[test]
    fn a_name_of_any_length_leaves_the_list_readable() {
        let root = tempfile::tempdir().expect("a folder");
        let state = crate::state::StateFolder::below(root.path(), root.path()).expect("a state folder");
        let pairing = Pairing::new(PairingList::in_folder(&state), true);
        pairing.refused("Place1", "it is not paired");
        let code = pairing.report().code.expect("a code");
        assert_eq!(pairing.pair(&code, Key::random().hash(), &"é".repeat(1024 * 1024)), Ok(()));
        let all = pairing.list.all().expect("it can be read");
        assert_eq!(all[0].name.chars().count(), LONGEST_NAME);
    }
}
