//! What a client knows of the tree by the messages alone.

use std::{borrow::Cow, collections::HashMap};

use futures_util::StreamExt;
use librojo::web_api::{Instance, SocketPacket, SocketPacketBody, SubscribeMessage};
use rbx_dom_weak::types::Ref;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;

use crate::client;

/// What a client makes of the messages.
pub struct Picture {
    pub instances: HashMap<Ref, Instance<'static>>,
    pub cursor: u32,
}

impl Picture {
    /// Follow `socket` until the version `last` is reached, which is told when it is known.
    pub async fn follow(
        mut self,
        mut socket: WebSocketStream<TcpStream>,
        mut last: tokio::sync::watch::Receiver<u32>,
    ) -> Self {
        while self.cursor < *last.borrow_and_update() {
            let message = tokio::select! {
                message = socket.next() => message.expect("it is open").expect("a frame"),
                changed = last.changed() => {
                    changed.expect("the test goes on");
                    continue;
                }
            };
            let packet: SocketPacket<'static> = client::decode(&message.into_data());
            let SocketPacketBody::Messages(batch) = packet.body;
            batch.messages.into_iter().for_each(|message| self.take(message));
            self.cursor = batch.message_cursor;
        }
        self
    }

    fn take(&mut self, message: SubscribeMessage<'static>) {
        for id in message.removed {
            let parent = self.instances.get(&id).expect("what is removed is known").parent;
            if let Some(parent) = self.instances.get_mut(&parent) {
                parent.children.to_mut().retain(|child| *child != id);
            }
            let mut gone = vec![id];
            while let Some(id) = gone.pop() {
                gone.extend(self.instances.remove(&id).into_iter().flat_map(|instance| instance.children.into_owned()));
            }
        }
        let added: Vec<(Ref, Ref)> = message.added.values().map(|instance| (instance.parent, instance.id)).collect();
        self.instances.extend(message.added);
        for (parent, id) in added {
            let parent = self.instances.get_mut(&parent).expect("what is added has a parent");
            if !parent.children.contains(&id) {
                parent.children.to_mut().push(id);
            }
        }
        for update in message.updated {
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
}
