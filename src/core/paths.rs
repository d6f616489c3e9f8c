//! Paths: of files as people and agents write them, of instances as the store keys them.

use std::{
    fmt,
    path::{Component, Path},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

/// Names an instance by the names and classes from the root down to it. The same text in every
/// process; two instances have the same key only where they are twins, or below twins.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceKey(Arc<str>);

impl InstanceKey {
    /// The key of the root.
    pub fn root() -> Self {
        Self("".into())
    }

    /// The key of a child. `:` stands before the class, `/` between instances; in a name both are
    /// written as `%` and two digits, and so is `%`.
    pub fn child(&self, name: &str, class: &str) -> Self {
        let slash = if self.0.is_empty() { "" } else { "/" };
        Self(format!("{}{slash}{}:{}", self.0, Escaped(name), Escaped(class)).into())
    }

    /// The key above, and the name and class of this one; `None` for the root.
    pub fn split_last(&self) -> Option<(Self, String, String)> {
        let (above, last) = self.0.rsplit_once('/').unwrap_or(("", &self.0));
        let (name, class) = last.split_once(':')?;
        Some((Self(above.into()), unescaped(name), unescaped(class)))
    }

    /// This key, where `from` it lies at or below has become `to`.
    pub fn moved(&self, from: &Self, to: &Self) -> Option<Self> {
        let rest = self.0.strip_prefix(&*from.0).filter(|_| self.is_within(from))?;
        Some(Self(format!("{}{rest}", to.0).into()))
    }

    /// As the store has it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key under which its properties are kept. No class has such a name.
    pub fn of_properties(&self) -> Self {
        Self(format!("{}#", self.0).into())
    }

    /// The instance whose properties are kept under this key, if it is such a one.
    pub fn owner(&self) -> Option<Self> {
        self.0.strip_suffix('#').map(Self::from)
    }

    /// It is `other`, or lies below it.
    pub fn is_within(&self, other: &Self) -> bool {
        let rest = self.0.strip_prefix(&*other.0);
        rest.is_some_and(|rest| rest.is_empty() || other.0.is_empty() || rest.starts_with('/'))
    }
}

impl From<&str> for InstanceKey {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for InstanceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InstanceKey({})", self.0)
    }
}

struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        self.0.chars().try_for_each(|letter| match letter {
            '%' => f.write_str("%25"),
            '/' => f.write_str("%2F"),
            ':' => f.write_str("%3A"),
            other => f.write_char(other),
        })
    }
}

fn unescaped(text: &str) -> String {
    text.replace("%3A", ":").replace("%2F", "/").replace("%25", "%")
}

/// `path` relative to `folder`, with `/` between its parts. Lexical: nothing is looked up on disk.
/// `path` may be relative to the folder or absolute, and use `\` on Windows. `None`: it leaves
/// the folder. The folder itself is `.`.
pub fn relative_to(folder: &Path, path: &str) -> Option<String> {
    let native = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    let path = Path::new(&native);
    let path = if path.is_absolute() { path.strip_prefix(folder).ok()? } else { path };
    let mut parts: Vec<&str> = Vec::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::Prefix(_) | Component::RootDir => return None,
        }
    }
    Some(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_tells_instances_apart_whatever_their_names_hold() {
        let folder = InstanceKey::root().child("A/b", "Folder");
        assert_eq!(folder.child("c:d%", "ModuleScript").as_str(), "A%2Fb:Folder/c%3Ad%25:ModuleScript");
        assert!(folder.child("x", "Script").is_within(&folder) && folder.is_within(&InstanceKey::root()));
        assert!(!InstanceKey::root().child("A/b2", "Folder").is_within(&folder));
        assert_eq!(InstanceKey::root().split_last(), None);
    }

    proptest! {
        #[test]
        fn a_key_is_taken_apart_into_what_it_was_made_of(name in "[a/:%2F35A]{0,6}", class in "[a/:%]{1,3}") {
            let above = InstanceKey::root().child("x/%3A", "Folder");
            prop_assert_eq!(above.child(&name, &class).split_last(), Some((above, name, class)));
        }

        #[test]
        fn two_chains_have_one_key_only_if_they_are_equal(
            one in proptest::collection::vec(("[a/:%]{0,3}", "[a/:%]{1,2}"), 1..4),
            other in proptest::collection::vec(("[a/:%]{0,3}", "[a/:%]{1,2}"), 1..4),
        ) {
            let key = |chain: &[(String, String)]| {
                chain.iter().fold(InstanceKey::root(), |key, (name, class)| key.child(name, class))
            };
            prop_assert_eq!(key(&one) == key(&other), one == other);
        }
    }

    #[test]
    fn a_path_is_taken_relative_to_the_project_and_may_not_leave_it() {
        let folder = Path::new(if cfg!(windows) { "C:/game" } else { "/game" });
        let at = |path: &str| relative_to(folder, path);
        assert_eq!(at("src/a.luau").as_deref(), Some("src/a.luau"));
        assert_eq!(at("./src//deep/../a.luau").as_deref(), Some("src/a.luau"));
        assert_eq!(at(&format!("{}/src", folder.display())).as_deref(), Some("src"));
        assert_eq!(at("").as_deref(), Some("."));
        assert_eq!(at("../other"), None);
        assert_eq!(at("src/../../other"), None);
        assert_eq!(at("/elsewhere"), None);
    }
}
