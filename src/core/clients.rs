//! The play clients behind one play server. They reach no network, so their calls go through it.

use std::num::NonZeroU32;

use super::{console::Console, ids::LogicalId, targets::Target};

/// How many clients a play server may bring.
pub const MAX_CLIENTS: usize = 64;

/// One play client.
#[derive(Debug)]
pub struct Client {
    /// Which.
    pub id: LogicalId,
    /// Its number among the clients of its test, from 1.
    pub number: NonZeroU32,
    /// Whose it is.
    pub player: String,
    /// Its play server has named it since its last hello.
    pub here: bool,
    /// What it printed.
    pub console: Console,
}

impl Client {
    /// What calls name it by.
    pub fn target(&self) -> Target {
        Target::Client(self.number)
    }
}

/// The clients of one play server, in the order of their numbers.
#[derive(Debug, Default)]
pub struct Clients(Vec<Client>);

impl Clients {
    /// A client is there. It keeps the name that it has or had, where that is free. `None`: there are
    /// too many.
    pub fn attach(&mut self, id: LogicalId, wanted: Option<Target>, player: String) -> Option<Target> {
        if let Some(client) = self.get_mut(&id) {
            client.here = true;
            client.player = player;
            return Some(client.target());
        }
        if self.0.len() >= MAX_CLIENTS {
            return None;
        }
        let wanted = match wanted {
            Some(Target::Client(number)) => Some(number),
            _ => None,
        };
        let free = |number: &NonZeroU32| self.0.iter().all(|client| client.number != *number);
        let lowest = || (1..).filter_map(NonZeroU32::new).find(free).expect("numbers do not run out");
        let number = wanted.filter(free).unwrap_or_else(lowest);
        let at = self.0.partition_point(|client| client.number < number);
        self.0.insert(at, Client { id, number, player, here: true, console: Console::default() });
        Some(Target::Client(number))
    }

    /// A client is gone.
    pub fn detach(&mut self, id: &LogicalId) -> Option<Client> {
        let at = self.0.iter().position(|client| client.id == *id)?;
        Some(self.0.remove(at))
    }

    /// The play server has another link: it will name those that are still there.
    pub fn doubt(&mut self) {
        self.0.iter_mut().for_each(|client| client.here = false);
    }

    /// Those that the play server has not named again.
    pub fn doubted(&self) -> Vec<LogicalId> {
        self.0.iter().filter(|client| !client.here).map(|client| client.id.clone()).collect()
    }

    /// The client of this id.
    pub fn get(&self, id: &LogicalId) -> Option<&Client> {
        self.0.iter().find(|client| client.id == *id)
    }

    /// The client of this id.
    pub fn get_mut(&mut self, id: &LogicalId) -> Option<&mut Client> {
        self.0.iter_mut().find(|client| client.id == *id)
    }

    /// The client of this name.
    pub fn of_target(&self, target: Target) -> Option<&Client> {
        self.0.iter().find(|client| client.target() == target)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Client> {
        self.0.iter()
    }

    /// The play test is over: what they printed is left.
    pub fn into_consoles(self) -> impl Iterator<Item = (Target, Console)> {
        self.0.into_iter().map(|client| (client.target(), client.console))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(clients: &Clients) -> Vec<String> {
        clients.iter().map(|client| format!("{} {}", client.target(), client.player)).collect()
    }

    #[test]
    fn a_client_has_the_lowest_free_number_or_the_one_it_had() {
        let mut clients = Clients::default();
        let mut attach = |id: &str, wanted: Option<u32>| {
            clients.attach(id.into(), wanted.and_then(Target::client), id.to_uppercase())
        };
        assert_eq!(attach("a", None), Target::client(1));
        assert_eq!(attach("b", Some(3)), Target::client(3));
        assert_eq!(attach("c", Some(1)), Target::client(2), "that one is another's");
        assert_eq!(attach("b", Some(1)), Target::client(3), "it is there already");
        assert_eq!(names(&clients), ["client-1 A", "client-2 C", "client-3 B"]);
        assert!(clients.detach(&"a".into()).is_some() && clients.detach(&"a".into()).is_none());
        assert_eq!(clients.attach("d".into(), None, "D".into()), Target::client(1));
    }

    #[test]
    fn those_that_are_not_named_again_are_doubted() {
        let mut clients = Clients::default();
        for id in ["a", "b"] {
            clients.attach(id.into(), None, id.into());
        }
        clients.doubt();
        clients.attach("b".into(), Target::client(2), "b".into());
        assert_eq!(clients.doubted(), ["a".into()]);
    }

    #[test]
    fn they_are_bounded() {
        let mut clients = Clients::default();
        for number in 0..MAX_CLIENTS {
            assert!(clients.attach(number.to_string().into(), None, String::new()).is_some());
        }
        assert_eq!(clients.attach("one more".into(), None, String::new()), None);
        assert!(clients.attach("7".into(), None, String::new()).is_some(), "it is there already");
    }
}
