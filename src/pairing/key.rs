//! Keys: what a plugin has, what is kept of it, and how it is shown without being sent.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

use crate::attach::{Token, same};

/// How many bytes a key has; a SHA-1 has as many.
const BYTES: usize = 20;

/// How many digits of a hash tell it from the others of one person.
const SHORT: usize = 8;

/// By which a plugin proves that it is paired. 20 random bytes, written as 40 hex digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; BYTES]);

/// A key is never printed by accident.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// A new one, from the system's randomness.
    pub fn random() -> Self {
        Self(Sha1::digest(Token::random().secret()).into())
    }

    /// The key that is written so.
    pub fn read(hex: &str) -> Option<Self> {
        from_hex(hex).map(Self)
    }

    /// The key itself, to put it into a plugin.
    pub fn secret(&self) -> String {
        to_hex(&self.0)
    }

    /// What is kept of it.
    pub fn hash(&self) -> KeyHash {
        KeyHash(to_hex(&Sha1::digest(self.0)))
    }

    /// What shows that somebody has this key, to a server that was dialled as `host` and said `nonce`.
    pub fn prove(&self, host: &str, nonce: &str) -> String {
        to_hex(&mask(&self.hash(), host, nonce, self.0))
    }
}

/// The SHA-1 of a key, in hex. Nobody comes in with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyHash(String);

impl KeyHash {
    /// The hash that is written so.
    pub fn read(hex: &str) -> Option<Self> {
        from_hex(hex).map(|bytes| Self(to_hex(&bytes)))
    }

    /// Whether `proof` was made with the key of this hash. Takes as long whether it was or not.
    pub fn is_proven(&self, host: &str, nonce: &str, proof: &str) -> bool {
        from_hex(proof).is_some_and(|proof| same(&Key(mask(self, host, nonce, proof)).hash().0, &self.0))
    }

    /// The first digits, by which a person names it.
    pub fn short(&self) -> &str {
        self.0.get(..SHORT).unwrap_or(&self.0)
    }

    /// Whether both are the same.
    pub fn is(&self, other: &Self) -> bool {
        same(&self.0, &other.0)
    }
}

/// `bytes` XOR what the hash makes of host and nonce; twice, it is `bytes` again.
fn mask(hash: &KeyHash, host: &str, nonce: &str, bytes: [u8; BYTES]) -> [u8; BYTES] {
    let key = from_hex(&hash.0).unwrap_or_default();
    let mut mac = Hmac::<Sha1>::new_from_slice(&key).expect("a key may have any length");
    mac.update(format!("rojo-mcp studio\n{host}\n{nonce}").as_bytes());
    let mac: [u8; BYTES] = mac.finalize().into_bytes().into();
    std::array::from_fn(|at| bytes[at] ^ mac[at])
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(hex: &str) -> Option<[u8; BYTES]> {
    if hex.len() != BYTES * 2 || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; BYTES];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_one_key_host_and_nonce() {
        let (key, other) = (Key::random(), Key::random());
        let proof = key.prove("localhost:34872", "n");
        assert!(key.hash().is_proven("localhost:34872", "n", &proof));
        assert!(!other.hash().is_proven("localhost:34872", "n", &proof));
        assert!(!key.hash().is_proven("localhost:40000", "n", &proof), "a proof that was passed on");
        assert!(!key.hash().is_proven("localhost:34872", "m", &proof), "a proof that was heard before");
        for bad in ["", "0", &key.secret(), &key.hash().0, "é", &"0".repeat(40), &format!("{proof}0")] {
            assert!(!key.hash().is_proven("localhost:34872", "n", bad), "{bad}");
        }
    }

    #[test]
    fn what_is_printed_and_sent_is_not_the_key() {
        let key = Key::random();
        assert_eq!(Key::read(&key.secret()), Some(key.clone()));
        assert_eq!(Key::read("abc"), None);
        let proof = key.prove("h", "n");
        for shown in [format!("{key:?}"), proof, key.hash().0] {
            assert!(!shown.contains(&key.secret()), "{shown}");
        }
    }

    /// The same numbers stand in the plugin's spec, so both sides reckon alike.
    #[test]
    fn both_sides_reckon_alike() {
        let key = Key::read("000102030405060708090a0b0c0d0e0f10111213").expect("a key");
        assert_eq!(key.hash().0, "602c63d2f3d13ca3206cdf204cde24e7d8f4266c");
        assert_eq!(key.prove("localhost:34872", "c0ffee"), "1cb72e7c544d246e71764add0517db2024a8a4c1");
    }
}
