//! What both sides last agreed on of properties.
//!
//! The values themselves are kept, for a value that went through Studio may have lost a little, and
//! only values can be compared with a tolerance. They are held as one text for each instance, long
//! texts in them as hashes. Every instance that is no script has such a text, be it empty: it says
//! that both sides had the instance.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{Agreement, Kept, picture::Picture};
use crate::core::{
    ids::NodeId,
    paths::InstanceKey,
    protocol::{Below, Node},
    text::TextHash,
    values::{Properties, short},
};

/// How many earlier states are kept.
const EARLIER: usize = 4;

/// One state of an instance as JSON; `null` where there was none.
type Text = Arc<str>;

/// The agreed properties of one Studio's instances.
#[derive(Debug, Clone, Default)]
pub(super) struct Settled {
    bases: HashMap<NodeId, Standing>,
    /// Of what is not in the tree.
    gone: HashMap<InstanceKey, Standing>,
    /// What the tree has and Studio has not confirmed.
    unconfirmed: HashMap<NodeId, Text>,
    /// What the store does not know yet.
    news: HashSet<NodeId>,
    gone_news: HashSet<InstanceKey>,
}

/// All that was agreed of one instance.
#[derive(Debug, Clone)]
struct Standing {
    last: Text,
    /// Newest first.
    earlier: Vec<Text>,
    /// Studio had the last state since this plugin session began.
    seen: bool,
    /// How many instances with one key it stands for; more than one where they are twins.
    count: usize,
}

/// All that was agreed of the properties of one instance, to decide by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PropertyBase {
    /// The last state; `None`: there never was one.
    pub last: Option<Properties>,
    /// Those that Studio may have gone back to. `None`: there was no such instance.
    pub earlier: Vec<Option<Properties>>,
}

/// What a comparison that is under way would confirm, with the base of then.
pub(super) type Unconfirmed = HashMap<NodeId, (Text, Option<Text>)>;

/// References are still the ids of nodes in it.
fn text_of(properties: &Properties) -> Text {
    let kept: Properties = properties.iter().map(|(name, value)| (name.clone(), short(value))).collect();
    serde_json::to_string(&kept).unwrap_or_default().into()
}

/// The same with the paths of what references lead to: a node lasts as long as this process at most.
fn by_path(text: Text, picture: &Picture) -> Text {
    match read(&text).filter(|_| text.contains("\"Ref\"")) {
        Some(properties) => {
            text_of(&properties.into_iter().map(|(name, value)| (name, picture.by_path(value))).collect())
        }
        None => text,
    }
}

fn read(text: &str) -> Option<Properties> {
    serde_json::from_str(text).unwrap_or_default()
}

impl Standing {
    fn of(last: Text) -> Self {
        Self { last, earlier: Vec::new(), seen: true, count: 1 }
    }

    /// Whether that is news.
    fn agree(&mut self, text: Text) -> bool {
        self.seen = true;
        if self.last == text {
            return false;
        }
        let before = std::mem::replace(&mut self.last, text);
        self.earlier.retain(|earlier| *earlier != self.last && *earlier != before);
        self.earlier.insert(0, before);
        self.earlier.truncate(EARLIER);
        true
    }

    fn base(&self) -> PropertyBase {
        let earlier = if self.seen { &[][..] } else { &self.earlier };
        PropertyBase { last: read(&self.last), earlier: earlier.iter().map(|text| read(text)).collect() }
    }

    /// All states as one text, newest first.
    fn to_text(&self) -> String {
        let states: Vec<&str> = std::iter::once(&self.last).chain(&self.earlier).map(|text| &**text).collect();
        format!("[{}]", states.join(","))
    }

    fn read(text: &str) -> Option<Self> {
        let states: Vec<Option<Properties>> = serde_json::from_str(text).ok()?;
        let mut texts = states.iter().map(|state| state.as_ref().map_or_else(|| "null".into(), text_of));
        Some(Self { last: texts.next()?, earlier: texts.collect(), seen: false, count: 1 })
    }
}

impl Settled {
    pub fn tree_has(&mut self, node: &Node) {
        if node.hash.is_some() && node.properties.is_empty() {
            self.unconfirmed.remove(&node.id);
            return;
        }
        let text = text_of(&node.properties);
        if self.bases.get(&node.id).is_some_and(|base| base.seen && base.last == text) {
            self.unconfirmed.remove(&node.id);
        } else {
            self.unconfirmed.insert(node.id, text);
        }
    }

    pub fn left(&mut self, id: NodeId) {
        self.unconfirmed.remove(&id);
    }

    pub fn holds(&self, id: NodeId) -> bool {
        self.bases.contains_key(&id)
    }

    pub fn none_gone(&self) -> bool {
        self.gone.is_empty()
    }

    /// The node leaves its place. Of twins it is kept how many there were, for this process.
    pub fn retire(&mut self, id: NodeId, key: Option<InstanceKey>, is_twin: bool) {
        let is_news = self.news.remove(&id);
        let Some((standing, key)) = self.bases.remove(&id).zip(key) else { return };
        if is_news && !is_twin {
            self.gone_news.insert(key.clone());
        }
        match self.gone.get_mut(&key) {
            Some(other) if is_twin => other.count += 1,
            _ => _ = self.gone.insert(key, standing),
        }
    }

    /// Of twins in the tree nothing that left it is remembered.
    pub fn forget_twins(&mut self, key: &InstanceKey) {
        self.gone.remove(key);
    }

    /// The node of `key` is in the tree again.
    pub fn adopt(&mut self, id: NodeId, key: &InstanceKey) {
        if let Some(standing) = self.gone.remove(key) {
            self.bases.insert(id, standing);
            if self.gone_news.remove(key) {
                self.news.insert(id);
            }
        }
    }

    /// What was at `from`, and all below it, is at `to`. `node` gives the node of a key.
    pub fn moved(&mut self, from: &InstanceKey, to: &InstanceKey, node: impl Fn(&InstanceKey) -> Option<NodeId>) {
        let old: Vec<InstanceKey> = self.gone.keys().filter(|key| key.is_within(from)).cloned().collect();
        for key in old {
            let Some((new, standing)) = key.moved(from, to).zip(self.gone.remove(&key)) else { continue };
            self.gone_news.insert(key);
            match node(&new) {
                Some(id) if self.bases.contains_key(&id) => {}
                Some(id) => {
                    self.bases.insert(id, standing);
                    self.news.insert(id);
                }
                None => {
                    self.gone.insert(new.clone(), standing);
                    self.gone_news.insert(new);
                }
            }
        }
    }

    fn agree(&mut self, id: NodeId, text: Text, picture: &Picture) {
        if self.unconfirmed.get(&id) == Some(&text) {
            self.unconfirmed.remove(&id);
        }
        let text = by_path(text, picture);
        let is_news = match self.bases.get_mut(&id) {
            Some(standing) => standing.agree(text),
            None => self.bases.insert(id, Standing::of(text)).is_none(),
        };
        if is_news {
            self.news.insert(id);
        }
    }

    pub fn unconfirmed(&self) -> Unconfirmed {
        let last = |id| self.bases.get(id).map(|standing| Arc::clone(&standing.last));
        self.unconfirmed.iter().map(|(id, text)| (*id, (Arc::clone(text), last(id)))).collect()
    }

    pub fn confirm(&mut self, compared: Unconfirmed, picture: &Picture, reported: impl Fn(NodeId) -> bool) {
        for (id, (text, base)) in compared {
            if !reported(id) && self.bases.get(&id).map(|standing| &standing.last) == base.as_ref() {
                self.agree(id, text, picture);
            }
        }
    }

    /// What the store knew of `key`, which is node `id` or not in the tree. What is known since stays.
    pub fn recall(&mut self, key: InstanceKey, id: Option<NodeId>, text: &str) {
        let Some(standing) = Standing::read(text) else { return };
        match id {
            Some(id) => _ = self.bases.entry(id).or_insert(standing),
            None => _ = self.gone.entry(key).or_insert(standing),
        }
    }

    /// The rows that the store should have. `key` gives the key of a node that is no twin.
    pub fn take_news(&mut self, key: impl Fn(NodeId) -> Option<InstanceKey>) -> Vec<Kept> {
        let mut all = Vec::new();
        for id in std::mem::take(&mut self.news) {
            all.extend(key(id).zip(self.bases.get(&id)).map(|(key, standing)| row(&key, Some(standing))));
        }
        for key in std::mem::take(&mut self.gone_news) {
            all.push(row(&key, self.gone.get(&key)));
        }
        all
    }
}

fn row(key: &InstanceKey, standing: Option<&Standing>) -> Kept {
    let text = standing.map(Standing::to_text);
    Kept { key: key.of_properties(), id: None, last: text.as_deref().map(TextHash::of), earlier: Vec::new(), text }
}

impl Agreement {
    /// What was agreed about the properties of `id`.
    pub fn properties(&self, id: NodeId) -> PropertyBase {
        self.settled.bases.get(&id).map(Standing::base).unwrap_or_default()
    }

    /// What both sides last had at `key`, which is no script and has left the tree. Without references:
    /// what they led to may have left it too.
    pub fn properties_gone(&self, key: &InstanceKey) -> Option<Properties> {
        let mut properties = read(&self.settled.gone.get(key)?.last)?;
        properties.retain(|_, value| value.get("Ref").is_none());
        Some(properties)
    }

    /// How many instances both sides had at `key` that are no scripts and have left the tree.
    pub fn count_gone(&self, key: &InstanceKey) -> usize {
        self.settled.gone.get(key).map_or(0, |standing| standing.count)
    }

    /// What both sides had below `top`, of which the tree has nothing any more.
    pub fn gone_below(&self, top: &InstanceKey) -> Vec<Below> {
        let below = |key: &InstanceKey| key != top && key.is_within(top);
        let listed = |key: &InstanceKey, studio_hash| {
            let mut path = Vec::new();
            let (mut at, mut class_name) = (key.clone(), String::new());
            while at != *top {
                let (above, name, class) = at.split_last()?;
                if path.is_empty() {
                    class_name = class;
                }
                path.push(name);
                at = above;
            }
            path.reverse();
            Some(Below { path, class_name, studio_hash, is_draft: false })
        };
        let scripts: HashMap<&InstanceKey, TextHash> = self
            .gone
            .iter()
            .filter(|(key, _)| below(key))
            .filter_map(|(key, base)| Some((key, base.last.flatten()?)))
            .collect();
        let others = self
            .settled
            .gone
            .iter()
            .filter(|(key, standing)| below(key) && !scripts.contains_key(key) && read(&standing.last).is_some());
        let others = others.flat_map(|(key, standing)| std::iter::repeat_n((key, None), standing.count));
        let scripts = scripts.iter().map(|(key, hash)| (*key, Some(*hash)));
        let mut all: Vec<Below> = scripts.chain(others).filter_map(|(key, hash)| listed(key, hash)).collect();
        // Each after what it lies in.
        all.sort_by(|one, other| one.path.cmp(&other.path));
        all
    }

    /// Both sides have these.
    pub fn agree_properties(&mut self, id: NodeId, properties: &Properties) {
        self.settled.agree(id, text_of(properties), &self.picture);
    }

    /// Both sides have these, and had no such instance before.
    pub fn made_with(&mut self, id: NodeId, properties: &Properties) {
        self.settled.bases.entry(id).or_insert_with(|| Standing::of("null".into()));
        self.agree_properties(id, properties);
    }

    /// What both sides had before a run that is taken back is what they have again.
    pub fn restore_properties(&mut self, id: NodeId, properties: Option<&Properties>) {
        match properties {
            Some(properties) => self.agree_properties(id, properties),
            None => {
                self.settled.bases.remove(&id);
                // The store is to know nothing either.
                let key = self.unique_key(id);
                self.settled.gone_news.extend(key);
                self.settled.news.remove(&id);
            }
        }
    }

    /// Both sides have these at `key`, of which the tree has no node; or neither has an instance.
    pub fn agree_properties_gone(&mut self, key: &InstanceKey, properties: Option<&Properties>) {
        match properties {
            Some(properties) => {
                let text = by_path(text_of(properties), &self.picture);
                self.settled.gone.insert(key.clone(), Standing::of(text));
            }
            None => _ = self.settled.gone.remove(key),
        }
        self.settled.gone_news.insert(key.clone());
    }
}

#[cfg(test)]
mod tests;
