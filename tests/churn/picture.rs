//! A client that speaks Rojo's protocol as the official plugin's own modules do, and is stricter:
//! it holds a copy of the tree that lives by the messages alone, and nothing may be in them that
//! this copy does not know.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use librojo::{
    SessionId,
    web_api::{Instance, InstanceUpdate, ReadResponse, SocketPacket, SocketPacketBody, SubscribeMessage},
};
use rbx_dom_weak::types::{Ref, Variant};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;

use crate::client;

/// One instance, as two trees can be compared by: everything but the order of its children.
pub type Line = (Ref, String, String, HashSet<Ref>, Option<bool>, BTreeMap<String, String>);

/// A tree with its ids.
pub type Tree = HashMap<Ref, Line>;

/// So many removed instances are remembered: a copy must not grow over the day, for its memory is
/// that of the process.
const REMEMBERED: usize = 20_000;

/// What a client makes of the messages.
pub struct Picture {
    session: SessionId,
    instances: HashMap<Ref, Instance<'static>>,
    /// What was removed of late.
    gone: Gone,
    cursor: u32,
    /// How many messages it took in.
    pub patches: u32,
}

/// What was removed, the last of it.
#[derive(Default)]
struct Gone {
    all: HashSet<Ref>,
    order: VecDeque<Ref>,
}

impl Gone {
    fn insert(&mut self, id: Ref) {
        if self.all.insert(id) {
            self.order.push_back(id);
        }
        if self.order.len() > REMEMBERED {
            self.order.pop_front().iter().for_each(|oldest| _ = self.all.remove(oldest));
        }
    }

    fn contains(&self, id: &Ref) -> bool {
        self.all.contains(id)
    }
}

/// A tree as the server answers it.
pub fn tree(instances: &HashMap<Ref, Instance<'static>>) -> Tree {
    let line = |instance: &Instance<'static>| {
        let children = instance.children.iter().copied().collect();
        let properties = instance.properties.iter().map(|(key, value)| (key.to_string(), format!("{value:?}")));
        let ignore = instance.metadata.as_ref().map(|metadata| metadata.ignore_unknown_instances);
        let (name, class) = (instance.name.to_string(), instance.class_name.to_string());
        (instance.parent, name, class, children, ignore, properties.collect())
    };
    instances.iter().map(|(id, instance)| (*id, line(instance))).collect()
}

impl Picture {
    /// Of what was just read.
    pub fn new(read: ReadResponse<'static>) -> Self {
        let ReadResponse { session_id: session, message_cursor: cursor, instances } = read;
        Self { session, instances, gone: Gone::default(), cursor, patches: 0 }
    }

    pub fn cursor(&self) -> u32 {
        self.cursor
    }

    pub fn instances(&self) -> &HashMap<Ref, Instance<'static>> {
        &self.instances
    }

    /// Follow `socket` until the version `last` is reached, which is told when it is known. A slow
    /// client reads nothing for so long, again and again.
    pub async fn follow(
        mut self,
        mut socket: WebSocketStream<TcpStream>,
        slow: Option<Duration>,
        mut last: tokio::sync::watch::Receiver<u32>,
    ) -> Self {
        let mut rested = Instant::now();
        while self.cursor < *last.borrow_and_update() {
            let message = tokio::select! {
                message = socket.next() => message.expect("it is open").expect("a frame"),
                changed = last.changed() => {
                    changed.expect("the test goes on");
                    continue;
                }
            };
            self.take(client::decode(&message.into_data()));
            if let Some(pause) = slow.filter(|pause| rested.elapsed() > *pause / 4) {
                tokio::time::sleep(pause).await;
                rested = Instant::now();
            }
        }
        self
    }

    fn take(&mut self, packet: SocketPacket<'static>) {
        assert_eq!(packet.session_id, self.session, "a packet of another session");
        let SocketPacketBody::Messages(batch) = packet.body;
        let count = u32::try_from(batch.messages.len()).expect("not so many");
        assert!(count > 0, "a packet without messages");
        assert_eq!(batch.message_cursor, self.cursor + count, "a version was left out, or came twice");
        batch.messages.into_iter().for_each(|message| self.apply(message));
        self.cursor = batch.message_cursor;
        self.patches += count;
    }

    fn apply(&mut self, message: SubscribeMessage<'static>) {
        message.removed.iter().for_each(|id| self.remove(*id));
        let added: Vec<Ref> = message.added.keys().copied().collect();
        for (id, instance) in message.added {
            assert_eq!(id, instance.id);
            assert!(!self.gone.contains(&id), "{id} was removed and comes again");
            assert!(self.instances.insert(id, instance).is_none(), "{id} is added, and was there");
        }
        for id in &added {
            let parent = self.instances[id].parent;
            let parent = self.instances.get_mut(&parent).expect("what is added has a parent");
            if !parent.children.contains(id) {
                parent.children.to_mut().push(*id);
            }
        }
        let mut named: Vec<Ref> = added.iter().flat_map(|id| self.instances[id].children.iter().copied()).collect();
        named.extend(
            added.iter().flat_map(|id| self.instances[id].properties.values()).filter_map(|value| ref_of(value)),
        );
        for update in message.updated {
            named.extend(update.changed_properties.values().flatten().filter_map(ref_of));
            self.update(update);
        }
        for id in named {
            assert!(
                self.instances.contains_key(&id),
                "{id} is named, and is not in the tree (gone: {})",
                self.gone.contains(&id)
            );
        }
    }

    fn remove(&mut self, id: Ref) {
        let parent = self.instances.get(&id).expect("what is removed is known").parent;
        if let Some(parent) = self.instances.get_mut(&parent) {
            parent.children.to_mut().retain(|child| *child != id);
        }
        let mut below = vec![id];
        while let Some(id) = below.pop() {
            let instance = self.instances.remove(&id).expect("children are known");
            below.extend(instance.children.iter());
            self.gone.insert(id);
        }
    }

    fn update(&mut self, update: InstanceUpdate) {
        let instance = self.instances.get_mut(&update.id).expect("what is updated is known");
        instance.name = update.changed_name.map_or_else(|| instance.name.clone(), Into::into);
        instance.class_name = update.changed_class_name.unwrap_or(instance.class_name);
        instance.metadata = update.changed_metadata.or(instance.metadata.take());
        for (key, value) in update.changed_properties {
            match value {
                Some(value) => _ = instance.properties.insert(key, Cow::Owned(value)),
                None => _ = instance.properties.remove(&key),
            }
        }
    }
}

/// The instance that a value points at.
fn ref_of(value: &Variant) -> Option<Ref> {
    match value {
        Variant::Ref(target) if target.is_some() => Some(*target),
        _ => None,
    }
}
