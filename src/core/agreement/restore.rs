//! What is told to the store: what was agreed, and what was before, where a run is taken back.

use std::collections::HashMap;

use super::{Agreement, Kept};
use crate::core::{
    ids::NodeId,
    journal::{Entry, Line},
    merge::{Aim, Base, CutOff, Side},
    paths::InstanceKey,
    sync::{Direction, PatchType},
};

/// What the store should know and does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// Both sides have had these.
    Agreed(Kept),
    /// A run was taken back: of this script the store is to know this and nothing else.
    Restored {
        /// Whose.
        key: InstanceKey,
        /// The last agreed state and those before it, oldest first; `None`: nothing.
        base: Option<(Side, Vec<Side>)>,
    },
}

impl News {
    /// What was agreed, if that is what it is.
    pub fn agreed(&self) -> Option<&Kept> {
        match self {
            Self::Agreed(kept) => Some(kept),
            Self::Restored { .. } => None,
        }
    }

    fn key(&self) -> &InstanceKey {
        match self {
            Self::Agreed(Kept { key, .. }) | Self::Restored { key, .. } => key,
        }
    }
}

impl Agreement {
    /// The node of `key`; `None` also where twins share it.
    pub fn node(&self, key: &InstanceKey) -> Option<NodeId> {
        let found = self.picture.find(key)?;
        if self.picture.is_twin(found) { None } else { Some(found) }
    }

    /// `id`, which has no other name than `key`.
    pub fn is_at(&self, id: NodeId, key: &InstanceKey) -> bool {
        self.picture.key(id).as_ref() == Some(key)
    }

    /// What both sides had before is what they are taken to have had last (`None`: nothing is
    /// known); `undone` is no state that either of them went back to.
    pub fn restore(&mut self, id: NodeId, base: Option<Side>, undone: Side) {
        match base {
            Some(side) => self.bases.entry(id).or_default().go_back(side, undone),
            None => _ = self.bases.remove(&id),
        }
        self.news.remove(&id);
        self.rewritten.extend(self.unique_key(id));
    }

    /// The same, whether or not the tree has a node there by now.
    pub fn restore_at(&mut self, key: &InstanceKey, base: Option<Side>, undone: Side) {
        if let Some(id) = self.node(key) {
            return self.restore(id, base, undone);
        }
        match base {
            Some(side) => self.gone.entry(key.clone()).or_default().go_back(side, undone),
            None => _ = self.gone.remove(key),
        }
        self.gone_news.remove(key);
        self.rewritten.insert(key.clone());
    }

    /// A run that was cut off had decided about `id`, and nothing was agreed since.
    pub fn was_cut_off(&self, id: NodeId) -> bool {
        self.bases.get(&id).is_some_and(|base| base.cut_off.is_some())
    }

    /// What runs had decided of which nobody saw the end, oldest first.
    pub fn recall_cut_off(&mut self, runs: &[Entry]) {
        for (run, line) in runs.iter().flat_map(|run| run.changes.iter().map(move |line| (run, line))) {
            let Some(key) = line.key.as_ref().filter(|_| is_about_a_text(line)) else { continue };
            let aim = match line.direction {
                _ if run.undoes.is_some() => Aim::Undo(line.then),
                Direction::Push => Aim::Push,
                _ => Aim::Take,
            };
            let known = match self.node(key) {
                Some(id) => self.bases.get_mut(&id),
                None => self.gone.get_mut(key),
            };
            if let Some(base) = known.filter(|base| !base.seen) {
                base.cut_off = Some(Box::new(CutOff { disk: line.disk, studio: line.studio, aim }));
            }
        }
    }

    /// What the store should know and does not, in a fixed order.
    pub fn take_news(&mut self) -> Vec<News> {
        let mut all: HashMap<InstanceKey, News> = HashMap::new();
        for id in std::mem::take(&mut self.news) {
            let key = self.unique_key(id);
            let kept = key.zip(self.bases.get(&id)).and_then(|(key, base)| to_keep(key, Some(id), base));
            all.extend(kept.map(|kept| (kept.key.clone(), News::Agreed(kept))));
        }
        for key in std::mem::take(&mut self.gone_news) {
            let kept = self.gone.get(&key).and_then(|base| to_keep(key.clone(), None, base));
            all.extend(kept.map(|kept| (key, News::Agreed(kept))));
        }
        for key in std::mem::take(&mut self.rewritten) {
            let known = self.node(&key).map_or_else(|| self.gone.get(&key), |id| self.bases.get(&id));
            let base = known.and_then(|base| Some((base.last?, base.earlier.clone())));
            all.insert(key.clone(), News::Restored { key, base });
        }
        let mut all: Vec<News> = all.into_values().collect();
        let (picture, settled) = (&self.picture, &mut self.settled);
        let key = |id| if picture.is_twin(id) { None } else { picture.key(id) };
        all.extend(settled.take_news(key).into_iter().map(News::Agreed));
        all.sort_by(|one, other| one.key().cmp(other.key()));
        all
    }
}

/// What is made, renamed or removed in Studio is told from its file alone.
fn is_about_a_text(line: &Line) -> bool {
    let edits = line.patch_type == PatchType::Edit && line.properties.is_none();
    edits || (line.direction, line.patch_type) == (Direction::Pull, PatchType::Remove)
}

fn to_keep(key: InstanceKey, id: Option<NodeId>, base: &Base) -> Option<Kept> {
    Some(Kept { key, id, last: base.last?, earlier: base.earlier.last().copied().into_iter().collect(), text: None })
}
