//! A script's text as both sides compare it, and its hash.

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

/// A script's text with one leading U+FEFF removed and CRLF or CR turned into LF. Nothing else
/// changes; the final newline counts. Two scripts are equal when their `ScriptText` is.
#[derive(Clone, PartialEq, Eq)]
pub struct ScriptText(String);

impl ScriptText {
    /// Normalise `raw`. Allocates once, and copies only.
    pub fn new(raw: &str) -> Self {
        Self(normalised(raw).into_owned())
    }

    /// The normalised text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The normalised text, by value.
    pub fn into_string(self) -> String {
        self.0
    }

    /// What both sides call this text.
    pub fn hash(&self) -> TextHash {
        TextHash::of_normalised(&self.0)
    }
}

impl fmt::Debug for ScriptText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptText({} bytes, {})", self.0.len(), self.hash())
    }
}

fn normalised(raw: &str) -> Cow<'_, str> {
    let text = raw.strip_prefix('\u{feff}').unwrap_or(raw);
    if !text.contains('\r') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// SHA-1 of the git blob of a [`ScriptText`]: what `git hash-object` prints for it. On the wire
/// 40 lower-case hex digits. A name for a text, not a proof against forgery.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextHash([u8; 20]);

impl TextHash {
    /// The hash of `raw` once normalised.
    pub fn of(raw: &str) -> Self {
        Self::of_normalised(&normalised(raw))
    }

    /// What git calls a file that holds exactly this.
    pub fn of_exactly(text: &str) -> Self {
        Self::of_normalised(text)
    }

    fn of_normalised(text: &str) -> Self {
        Self::of_bytes(text.as_bytes())
    }

    /// Of `bytes` as they are, nothing normalised.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut sha = Sha1::new();
        sha.update(format!("blob {}\0", bytes.len()));
        sha.update(bytes);
        Self(sha.finalize().into())
    }

    /// Its 20 bytes.
    pub fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }
}

impl From<[u8; 20]> for TextHash {
    fn from(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for TextHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TextHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TextHash({self})")
    }
}

/// What a [`TextHash`] must look like, for error texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a text hash is 40 hex digits, got {0:?}")]
pub struct BadTextHash(String);

impl FromStr for TextHash {
    type Err = BadTextHash;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadTextHash(text.chars().take(80).collect());
        let digits: Vec<u8> = text
            .chars()
            .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
            .collect::<Option<_>>()
            .ok_or_else(bad)?;
        let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair.iter().fold(0, |sum, d| sum << 4 | d)).collect();
        match (digits.len(), bytes.try_into()) {
            (40, Ok(bytes)) => Ok(Self(bytes)),
            _ => Err(bad()),
        }
    }
}

impl Serialize for TextHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TextHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The word that stands for an enum's value in JSON.
pub fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}

/// Text from a place, fit for a terminal: it may hold anything, escape sequences included.
pub fn for_terminal(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() && letter != '\n' && letter != '\t' { '\u{fffd}' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_hash_is_what_git_prints() {
        // `printf '' | git hash-object --stdin`, then `printf 'hello\n' | …`
        assert_eq!(TextHash::of("").to_string(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(TextHash::of("hello\n").to_string(), "ce013625030ba8dba906f756967f9e9ca394464a");
    }

    #[test]
    fn c25_bom_and_line_endings_do_not_count_but_the_final_newline_does() {
        let plain = TextHash::of("local a = 1\nreturn a\n");
        assert_eq!(TextHash::of("\u{feff}local a = 1\r\nreturn a\r\n"), plain);
        assert_eq!(TextHash::of("local a = 1\rreturn a\r"), plain);
        assert_ne!(TextHash::of("local a = 1\nreturn a"), plain);
        assert_ne!(TextHash::of("\u{feff}\u{feff}local a = 1\nreturn a\n"), plain, "one mark only");
        assert_eq!(ScriptText::new("a\r\n\r\rb").as_str(), "a\n\n\nb");
    }

    #[test]
    fn a_text_hash_is_exactly_40_hex_digits() {
        let hash = TextHash::of("x");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        for bad in ["", "ce", &"z".repeat(40), &"0".repeat(39), &"0".repeat(42), "é".repeat(20).as_str()] {
            assert!(bad.parse::<TextHash>().is_err(), "{bad:?} must be refused");
        }
    }

    proptest! {
        #[test]
        fn normalising_is_idempotent_where_no_second_mark_leads(raw in "[a\r\n\u{feff}é]{0,12}") {
            let once = ScriptText::new(&raw);
            prop_assert!(!once.as_str().contains('\r'));
            if !once.as_str().starts_with('\u{feff}') {
                prop_assert_eq!(&ScriptText::new(once.as_str()), &once);
            }
        }
    }
}
