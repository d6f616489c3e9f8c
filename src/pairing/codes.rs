//! The code that a person carries from a terminal to a plugin. One counts at a time.

use std::time::{Duration, Instant};

use crate::attach::same;

/// How long a code counts.
const LIFE: Duration = Duration::from_secs(10 * 60);

/// How many wrong codes are taken, over all links together, before no code counts until somebody
/// asks for the next.
const TRIES: u32 = 5;

/// Why a code is not taken. The texts are for the person at the plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCode {
    /// None counts now: none was shown, it is too old, it was used, or there were too many wrong ones.
    #[error("no code counts at the moment; run `rojo-mcp status` where the server runs for one")]
    None,
    /// It is another.
    #[error("that is not the code; {left} more tries")]
    Wrong {
        /// How many more may be wrong.
        left: u32,
    },
    /// It was the last try.
    #[error("that is not the code, and it was the last try; run `rojo-mcp status` where the server runs for a new one")]
    Last,
    /// It was the code, and the list of pairings cannot be written.
    #[error("the code is right, but the pairing cannot be kept: {0}")]
    NotKept(String),
    /// The plugin sent no hash of a key.
    #[error("the frame's `hash` must be 40 hex digits")]
    NoHash,
}

#[derive(Debug, Default)]
pub(super) struct Codes {
    code: Option<Code>,
    /// Wrong codes since somebody asked for one.
    wrong: u32,
}

#[derive(Debug)]
struct Code {
    text: String,
    until: Instant,
}

impl Codes {
    /// The code that counts, or a new one, with the time that it has left. Somebody asks, so it may
    /// be guessed at anew.
    pub(super) fn asked(&mut self, now: Instant) -> Option<(String, Duration)> {
        if self.counting(now).is_none() {
            self.wrong = 0;
        }
        self.unasked(now)
    }

    /// The same, if too many wrong ones were not given since somebody asked.
    pub(super) fn unasked(&mut self, now: Instant) -> Option<(String, Duration)> {
        if self.wrong >= TRIES {
            return None;
        }
        if self.counting(now).is_none() {
            self.code = Some(Code { text: random(), until: now + LIFE });
        }
        self.counting(now).map(|code| (code.text.clone(), code.until.saturating_duration_since(now)))
    }

    /// Use the code up, if it is `given`. Spaces do not count.
    pub(super) fn take(&mut self, given: &str, now: Instant) -> Result<(), BadCode> {
        let given: String = given.chars().filter(|letter| !letter.is_whitespace()).collect();
        let code = self.counting(now).ok_or(BadCode::None)?;
        if same(&code.text, &given) {
            self.code = None;
            self.wrong = 0;
            return Ok(());
        }
        self.wrong += 1;
        if self.wrong >= TRIES {
            self.code = None;
            return Err(BadCode::Last);
        }
        Err(BadCode::Wrong { left: TRIES - self.wrong })
    }

    fn counting(&self, now: Instant) -> Option<&Code> {
        self.code.as_ref().filter(|code| now < code.until)
    }
}

/// Six digits.
fn random() -> String {
    format!("{:06}", uuid::Uuid::new_v4().as_u128() % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    fn wrong(code: &str) -> String {
        let number: u32 = code.parse().expect("six digits");
        format!("{:06}", (number + 1) % 1_000_000)
    }

    #[test]
    fn a_code_counts_once_and_for_ten_minutes() {
        let (mut codes, now) = (Codes::default(), clock::now());
        let (code, left) = codes.asked(now).expect("a code");
        assert_eq!((code.len(), left), (6, LIFE));
        let later = now + LIFE - Duration::from_secs(1);
        assert_eq!(codes.asked(later), Some((code.clone(), Duration::from_secs(1))), "the same for all who ask");
        let spaced = format!(" {} {} ", code.get(..3).expect("digits"), code.get(3..).expect("digits"));
        assert_eq!(codes.take(&spaced, later), Ok(()));
        assert_eq!(codes.take(&code, later), Err(BadCode::None));

        let (code, _) = codes.asked(now).expect("a code");
        assert_eq!(codes.take(&code, now + LIFE), Err(BadCode::None), "too old");
    }

    #[test]
    fn five_wrong_codes_end_it_until_somebody_asks() {
        let (mut codes, now) = (Codes::default(), clock::now());
        let (code, _) = codes.unasked(now).expect("a code");
        let left: Vec<_> = (0..5).map(|_| codes.take(&wrong(&code), now)).collect();
        assert_eq!(left[0], Err(BadCode::Wrong { left: 4 }));
        assert_eq!(left[3], Err(BadCode::Wrong { left: 1 }));
        assert_eq!(left[4], Err(BadCode::Last));
        assert_eq!(codes.take(&code, now), Err(BadCode::None), "not even the right one");
        assert_eq!(codes.unasked(now), None, "nobody gets the next by guessing");
        assert_eq!(codes.unasked(now + LIFE * 2), None);
        let (next, _) = codes.asked(now).expect("somebody asks");
        assert_eq!(codes.take(&next, now), Ok(()));
    }

    #[test]
    fn waiting_for_the_next_code_gives_no_more_tries() {
        let (mut codes, mut now) = (Codes::default(), clock::now());
        let mut tries = 0;
        for _ in 0..20 {
            let Some((code, _)) = codes.unasked(now) else { break };
            // Four tries at each, so that none of them is spent.
            for _ in 0..4 {
                tries += u32::from(codes.take(&wrong(&code), now) != Err(BadCode::None));
            }
            now += LIFE;
        }
        assert_eq!(tries, TRIES, "over all codes together");
    }
}
