//! The DataModels of one Studio, and which of them a call means.

use std::{fmt, num::NonZeroU32, str::FromStr};

use serde::{Deserialize, Serialize};

use super::protocol::Role;

/// One DataModel of a Studio. As text: `edit`, `server`, `client-1`, `client-2` …; `client` is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Target {
    /// The place as it is edited.
    #[default]
    Edit,
    /// The server of a play test.
    Server,
    /// The client of a player in a play test, from 1.
    Client(NonZeroU32),
}

/// A word that names no DataModel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected edit, server, client or client-2, got {0:?}")]
pub struct BadTarget(String);

impl Target {
    /// The client with this number, from 1.
    pub const fn client(number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Self::Client(number)),
            None => None,
        }
    }
}

impl From<Role> for Target {
    fn from(role: Role) -> Self {
        match role {
            Role::Edit => Self::Edit,
            Role::Server => Self::Server,
            Role::Client => Self::Client(NonZeroU32::MIN),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edit => f.write_str("edit"),
            Self::Server => f.write_str("server"),
            Self::Client(number) => write!(f, "client-{number}"),
        }
    }
}

impl FromStr for Target {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "edit" => Ok(Self::Edit),
            "server" => Ok(Self::Server),
            "client" => Ok(Role::Client.into()),
            _ => {
                let number = text.strip_prefix("client-").filter(|digits| !digits.starts_with(['0', '+']));
                let number = number.and_then(|digits| digits.parse().ok());
                number.map(Self::Client).ok_or_else(|| BadTarget(text.chars().take(80).collect()))
            }
        }
    }
}

impl Serialize for Target {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_word_and_the_first_client_may_go_without_its_number() {
        for (text, printed) in
            [("edit", "edit"), ("server", "server"), ("client", "client-1"), ("client-12", "client-12")]
        {
            assert_eq!(text.parse::<Target>().map(|target| target.to_string()), Ok(printed.to_owned()));
        }
        for bad in ["", "Edit", "client-0", "client-01", "client-+1", "client-", "client-x", "studio"] {
            let error = bad.parse::<Target>().expect_err("no DataModel");
            assert!(error.to_string().ends_with(&format!("got {bad:?}")), "{error}");
        }
    }
}
