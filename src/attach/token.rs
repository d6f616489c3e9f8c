//! The secret of a running server.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use hyper::header::{AUTHORIZATION, HeaderMap};
use serde::{Deserialize, Serialize};
use sha1::Sha1;

/// What a running server and the programs of its user know, and nobody else. New at each start.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token(String);

/// A token is never printed by accident.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// A new one: 64 hex digits from the system's randomness.
    pub fn random() -> Self {
        Self(format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple()))
    }

    /// The token itself, to send it.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// What only the server with this token, listening on `port`, answers to `challenge`. The port
    /// is in it so that another program cannot have the server answer in its place.
    pub fn prove(&self, port: u16, challenge: &str) -> String {
        let proof = self.mac(port, challenge).finalize().into_bytes();
        proof.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether `proof` is that answer.
    pub fn is_proven(&self, port: u16, challenge: &str, proof: &str) -> bool {
        same(&self.prove(port, challenge), proof)
    }

    /// Whether a request carries this token, as `Authorization: Bearer …`.
    pub fn is_in(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = value.and_then(|value| value.split_once(' '));
        given.is_some_and(|(scheme, given)| scheme.eq_ignore_ascii_case("bearer") && same(&self.0, given.trim()))
    }

    fn mac(&self, port: u16, challenge: &str) -> Hmac<Sha1> {
        let mut mac = Hmac::new_from_slice(self.0.as_bytes()).expect("a key may have any length");
        mac.update(format!("rojo-mcp server\n{port}\n{challenge}").as_bytes());
        mac
    }
}

/// Whether two texts are equal, in a time that does not say where they differ.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_one_token_port_and_challenge() {
        let (token, other) = (Token::random(), Token::random());
        let proof = token.prove(34872, "abc");
        assert!(token.is_proven(34872, "abc", &proof));
        assert!(!other.is_proven(34872, "abc", &proof));
        assert!(!token.is_proven(34873, "abc", &proof), "an answer that was relayed");
        assert!(!token.is_proven(34872, "abd", &proof), "an answer that was heard before");
        assert!(!token.is_proven(34872, "abc", ""));
        assert_eq!(token.secret().len(), 64);
        assert!(!format!("{token:?}").contains(token.secret()));
    }

    #[test]
    fn a_bearer_is_known_by_the_whole_token() {
        let token = Token::random();
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().expect("a header value"));
            token.is_in(&headers)
        };
        assert!(with(&format!("Bearer {}", token.secret())));
        assert!(with(&format!("bearer  {}", token.secret())));
        assert!(!with(&format!("Basic {}", token.secret())));
        assert!(!with(token.secret()));
        assert!(!with("Bearer "));
        assert!(!with(&format!("Bearer {}", token.secret().get(..63).expect("64 digits"))));
        assert!(!token.is_in(&HeaderMap::new()));
    }
}
