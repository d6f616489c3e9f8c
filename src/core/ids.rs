//! The identifiers that travel on the Studio link, each as a type of its own.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// An instance of the project's tree. On the wire: Rojo's referent, 32 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u128);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({self})")
    }
}

/// What a [`NodeId`] must look like, for error texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an instance id is 32 hex digits, got {0:?}")]
pub struct BadNodeId(String);

impl FromStr for NodeId {
    type Err = BadNodeId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let well_formed = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(value) if well_formed => Ok(Self(value)),
            _ => Err(BadNodeId(text.chars().take(80).collect())),
        }
    }
}

impl Serialize for NodeId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NodeId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// The id as it stands on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

text_id!(
    /// One request to a Studio, for ever: a UUID made by the server.
    RequestId
);
text_id!(
    /// One change, for as long as its outcome is kept: an id of its caller's.
    OperationId
);
text_id!(
    /// One run of `sync`; joins the requests it is made of.
    RunId
);
text_id!(
    /// One list of changes that a person is asked about: a UUID made by the server.
    ReviewId
);
text_id!(
    /// One server process. New with every start.
    ServerId
);
text_id!(
    /// One load of the plugin in one DataModel: a GUID made by the plugin.
    SessionId
);
text_id!(
    /// One play client behind a play server: a GUID made by its plugin.
    LogicalId
);
text_id!(
    /// The place a Studio has open: `place:<PlaceId>` or `anon:<guid>`.
    InstanceId
);
text_id!(
    /// An instance that only Studio has: `x1`, `x2`, … for as long as that is so. Never given to another.
    TempId
);
text_id!(
    /// One life of the serve session's tree: Rojo's session id.
    TreeId
);

/// What a step of a plan is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum OpId {
    /// A node of the tree.
    Node(NodeId),
    /// An instance that only Studio has.
    Temp(TempId),
}

impl<'de> Deserialize<'de> for OpId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let number = text.strip_prefix('x').filter(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()));
        match number {
            Some(_) => Ok(Self::Temp(text.as_ref().into())),
            None => text.parse().map(Self::Node).map_err(serde::de::Error::custom),
        }
    }
}

impl From<NodeId> for OpId {
    fn from(id: NodeId) -> Self {
        Self::Node(id)
    }
}

impl From<TempId> for OpId {
    fn from(id: TempId) -> Self {
        Self::Temp(id)
    }
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(id) => id.fmt(f),
            Self::Temp(id) => id.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_step_is_about_is_told_apart_by_its_form() {
        let read = |text: &str| serde_json::from_value::<OpId>(text.into()).expect("any text is one or the other");
        assert_eq!(read("0000000000000000000000000000001e"), NodeId(0x1e).into());
        assert_eq!(read("x30"), TempId::from("x30").into());
        for bad in ["7", "x", "x3y", ""] {
            assert!(serde_json::from_value::<OpId>(bad.into()).is_err(), "{bad:?} is neither");
        }
    }

    #[test]
    fn a_node_id_is_exactly_32_hex_digits() {
        let id = NodeId(0x1e);
        assert_eq!(id.to_string(), "0000000000000000000000000000001e");
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in ["", "1e", "+000000000000000000000000000001e", &"g".repeat(32), &"0".repeat(33)] {
            assert!(bad.parse::<NodeId>().is_err(), "{bad:?} must be refused");
        }
    }
}
