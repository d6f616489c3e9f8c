//! The list of pairings of a user: which keys are known, as hashes.

use std::{fs, io, path::PathBuf, sync::Mutex};

use serde::{Deserialize, Serialize};

use super::{Key, KeyHash};
use crate::{
    clock,
    state::{StateFolder, write_private},
};

const NAME: &str = "pairings.json";

/// A file of more than this is not ours.
const LARGEST: u64 = 1024 * 1024;

/// More pairings than this are not kept; the oldest goes.
const MOST: usize = 64;

/// Fewer digits name nobody.
const SHORTEST_ID: usize = 4;

/// A plugin that is paired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paired {
    /// What is kept of its key.
    pub hash: KeyHash,
    /// Which it is, for the person.
    pub name: String,
    /// Since when, in milliseconds since 1970.
    pub since: u64,
}

impl Paired {
    /// What tells it from others of its name.
    pub fn id(&self) -> &str {
        self.hash.short()
    }

    /// Whether a person means it who names it so: by its name or the beginning of that, or by its id.
    pub fn is_meant_by(&self, wanted: &str) -> bool {
        let wanted = wanted.to_lowercase();
        self.name.to_lowercase().starts_with(&wanted) || wanted.len() >= SHORTEST_ID && self.id().starts_with(&wanted)
    }
}

/// What the file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Pairings {
    /// Names the list to plugins; random, and the same for ever.
    realm: String,
    keys: Vec<Paired>,
}

/// Where the list is.
#[derive(Debug)]
enum Place {
    /// In a file that all servers of the user share.
    File(PathBuf),
    /// In this process alone.
    Memory(Mutex<Pairings>),
}

/// The pairings of a user. Every look reads the file: another program may have changed it.
#[derive(Debug)]
pub struct PairingList {
    place: Place,
}

impl PairingList {
    /// That of this user; if the user has no state folder, one that ends with the process.
    pub fn of_user() -> Self {
        match StateFolder::of_user() {
            Ok(state) => Self::in_folder(&state),
            Err(error) => {
                log::warn!("no state folder, so pairings are forgotten at the end: {error}");
                Self::in_memory()
            }
        }
    }

    /// The one in this state folder.
    pub fn in_folder(state: &StateFolder) -> Self {
        Self { place: Place::File(state.path(NAME)) }
    }

    /// One that ends with the process.
    pub fn in_memory() -> Self {
        Self { place: Place::Memory(Mutex::new(Pairings { realm: new_realm(), keys: Vec::new() })) }
    }

    /// How the list is named to plugins. Makes the list if there is none.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn realm(&self) -> io::Result<String> {
        let realm = self.read()?.realm;
        if realm.is_empty() { self.change(|pairings| pairings.realm.clone()) } else { Ok(realm) }
    }

    /// Who is paired.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn all(&self) -> io::Result<Vec<Paired>> {
        Ok(self.read()?.keys)
    }

    /// Whether this key is one of them.
    pub fn knows(&self, key: &Key) -> bool {
        let hash = key.hash();
        self.read().is_ok_and(|pairings| pairings.keys.iter().any(|one| one.hash.is(&hash)))
    }

    /// Add a key.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&self, hash: KeyHash, name: &str) -> io::Result<()> {
        let name = name.to_owned();
        self.change(|pairings| {
            pairings.keys.retain(|one| !one.hash.is(&hash));
            pairings.keys.push(Paired { hash, name, since: clock::unix_millis() });
            let over = pairings.keys.len().saturating_sub(MOST);
            pairings.keys.drain(..over);
        })
    }

    /// Forget all keys; gives those that were known.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn clear(&self) -> io::Result<Vec<Paired>> {
        self.forget(|_| true)
    }

    /// Forget the keys that are meant; gives them.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn forget(&self, is_meant: impl Fn(&Paired) -> bool) -> io::Result<Vec<Paired>> {
        self.change(|pairings| {
            let (gone, kept) = std::mem::take(&mut pairings.keys).into_iter().partition(is_meant);
            pairings.keys = kept;
            gone
        })
    }

    fn read(&self) -> io::Result<Pairings> {
        match &self.place {
            Place::Memory(pairings) => Ok(pairings.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()),
            Place::File(path) => match fs::metadata(path) {
                Ok(metadata) if metadata.len() > LARGEST => Err(io::Error::other("it is too large to be ours")),
                Ok(_) => serde_json::from_slice(&fs::read(path)?).map_err(io::Error::other),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Pairings::default()),
                Err(error) => Err(error),
            },
        }
        .map_err(|error| match &self.place {
            Place::Memory(_) => error,
            Place::File(path) => io::Error::new(error.kind(), format!("{}: {error}", path.display())),
        })
    }

    /// Change it while no other program does.
    fn change<T>(&self, change: impl FnOnce(&mut Pairings) -> T) -> io::Result<T> {
        match &self.place {
            Place::Memory(pairings) => {
                Ok(change(&mut pairings.lock().unwrap_or_else(std::sync::PoisonError::into_inner)))
            }
            Place::File(path) => {
                let lock = fs::OpenOptions::new()
                    .create(true)
                    .truncate(false)
                    .write(true)
                    .open(path.with_extension("lock"))?;
                lock.lock()?;
                let mut pairings = self.read()?;
                if pairings.realm.is_empty() {
                    pairings.realm = new_realm();
                }
                let made = change(&mut pairings);
                write_private(path, &serde_json::to_vec_pretty(&pairings).map_err(io::Error::other)?)?;
                Ok(made)
            }
        }
    }
}

fn new_realm() -> String {
    uuid::Uuid::new_v4().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, StateFolder) {
        let root = tempfile::tempdir().expect("a folder");
        let state = StateFolder::below(root.path(), root.path()).expect("a state folder");
        (root, state)
    }

    #[test]
    fn the_list_is_shared_outlives_the_process_and_holds_no_key() {
        let (_root, state) = folder();
        let (one, other) = (PairingList::in_folder(&state), PairingList::in_folder(&state));
        let key = Key::random();
        assert!(!one.knows(&key));
        assert_eq!(one.all().expect("none yet"), []);
        let realm = one.realm().expect("it is made");
        one.add(key.hash(), "Place1").expect("written");
        assert!(other.knows(&key));
        assert_eq!(other.realm().expect("it is there"), realm, "the same for ever");
        let text = fs::read_to_string(state.path(NAME)).expect("the file");
        assert!(!text.contains(&key.secret()), "{text}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = state.path(NAME).metadata().expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "for the user alone");
        }
        let gone = other.clear().expect("written");
        assert_eq!(gone.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["Place1"]);
        assert!(!one.knows(&key));
        assert_eq!(one.realm().expect("it is there"), realm);
    }

    #[test]
    fn programs_that_change_it_at_the_same_time_lose_nothing() {
        let (_root, state) = folder();
        let keys: Vec<Key> = (0..8).map(|_| Key::random()).collect();
        std::thread::scope(|scope| {
            for key in &keys {
                scope.spawn(|| PairingList::in_folder(&state).add(key.hash(), "one of many").expect("written"));
            }
        });
        let list = PairingList::in_folder(&state);
        assert!(keys.iter().all(|key| list.knows(key)), "{:?}", list.all());
    }

    #[test]
    fn a_file_that_is_broken_lets_nobody_in_and_is_named() {
        let (_root, state) = folder();
        write_private(&state.path(NAME), b"{").expect("written");
        let list = PairingList::in_folder(&state);
        assert!(!list.knows(&Key::random()));
        let error = list.add(Key::random().hash(), "x").expect_err("nothing is written over it");
        assert!(error.to_string().contains(NAME), "{error}");
    }

    #[test]
    fn one_is_forgotten_by_its_name_the_beginning_of_it_or_its_id() {
        let list = PairingList::in_memory();
        let names = ["Arena", "the plugin in /home/x/RojoMcp.rbxm", "Château"];
        for name in names {
            list.add(Key::random().hash(), name).expect("kept");
        }
        let all = list.all().expect("a list");
        let meant = |wanted: &str| -> Vec<&str> {
            all.iter().filter(|one| one.is_meant_by(wanted)).map(|one| one.name.as_str()).collect()
        };
        for (wanted, found) in
            [("arena", names[0]), ("the plugin", names[1]), ("CHÂT", names[2]), (all[2].id(), names[2])]
        {
            assert_eq!(meant(wanted), [found], "{wanted}");
        }
        assert_eq!(meant(all[2].id().get(..3).expect("digits")), [] as [&str; 0], "three digits are too few");
        assert_eq!(meant("lantern"), [] as [&str; 0]);
        let gone = list.forget(|one| one.is_meant_by("arena")).expect("kept");
        assert_eq!(gone, all.get(..1).expect("the first"));
        assert_eq!(list.all().expect("a list"), all.get(1..).expect("the others"));
    }

    #[test]
    fn the_list_is_bounded() {
        let list = PairingList::in_memory();
        let first = Key::random();
        list.add(first.hash(), "first").expect("kept");
        for _ in 0..MOST {
            list.add(Key::random().hash(), "another").expect("kept");
        }
        assert_eq!(list.all().expect("a list").len(), MOST);
        assert!(!list.knows(&first));
    }
}
