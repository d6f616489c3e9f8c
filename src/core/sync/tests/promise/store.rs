//! What outlives a server: bases, texts, the journal. Each method is one transaction.

use super::*;
use crate::core::{
    agreement::{Kept, News},
    journal::Entry,
    merge::Side,
    paths::InstanceKey,
    text::ScriptText,
};

/// Where an entry of the journal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum State {
    Open,
    Done,
    CutOff,
    Undone,
}

#[derive(Debug, Clone)]
struct Noted {
    entry: Entry,
    texts: BTreeSet<TextHash>,
    state: State,
}

#[derive(Debug, Clone, Default)]
pub(in super::super) struct Store {
    rows: BTreeMap<InstanceKey, (Side, Vec<Side>)>,
    texts: HashMap<TextHash, String>,
    journal: Vec<Noted>,
    /// What this plugin session has not seen.
    session: Option<(u32, BTreeSet<InstanceKey>)>,
    /// Its disk is full.
    pub is_broken: bool,
}

impl Store {
    pub fn bases(&self) -> Vec<Kept> {
        let kept = |(key, (last, earlier)): (&InstanceKey, &(Side, Vec<Side>))| Kept {
            key: key.clone(),
            id: None,
            last: *last,
            earlier: earlier.clone(),
            text: None,
        };
        self.rows.iter().map(kept).collect()
    }

    /// Everything that is known to have been agreed last.
    pub fn last(&self) -> impl Iterator<Item = (&InstanceKey, Side)> {
        self.rows.iter().map(|(key, (last, _))| (key, *last))
    }

    pub fn text(&self, hash: TextHash) -> Option<&String> {
        self.texts.get(&hash)
    }

    /// A base or an entry of the journal keeps it.
    pub fn keeps(&self, hash: TextHash) -> bool {
        self.texts.contains_key(&hash) && self.needs(hash)
    }

    fn needs(&self, hash: TextHash) -> bool {
        self.rows.values().any(|(last, _)| *last == Some(hash))
            || self.journal.iter().any(|kept| kept.texts.contains(&hash))
    }

    /// Drop what nothing refers to.
    pub fn tend(&mut self) {
        let all = std::mem::take(&mut self.texts);
        self.texts = all.into_iter().filter(|(hash, _)| self.needs(*hash)).collect();
    }

    pub fn agree(&mut self, news: &[News], text_of: impl Fn(NodeId) -> Option<String>) {
        for kept in news.iter().filter_map(News::agreed) {
            let text = kept.id.and_then(&text_of);
            for state in kept.earlier.iter().chain([&kept.last]) {
                match self.rows.get_mut(&kept.key) {
                    None => _ = self.rows.insert(kept.key.clone(), (*state, Vec::new())),
                    Some((last, earlier)) if last != state => {
                        let before = std::mem::replace(last, *state);
                        earlier.retain(|earlier| *earlier != before);
                        earlier.push(before);
                    }
                    Some(_) => {}
                }
                if let Some(text) = text.clone().filter(|text| Some(hash(text)) == *state) {
                    self.texts.insert(hash(&text), text);
                }
            }
        }
    }

    pub fn restore(&mut self, news: &[News]) {
        for one in news {
            let News::Restored { key, base } = one else { continue };
            match base {
                Some(base) => _ = self.rows.insert(key.clone(), base.clone()),
                None => _ = self.rows.remove(key),
            }
        }
    }

    pub fn begin(&mut self, draft: Draft) -> Begun {
        if self.is_broken {
            return Begun::Failed("the disk is full".into());
        }
        let given: HashMap<TextHash, String> =
            draft.texts.iter().map(|text| (hash(text), ScriptText::new(text).into_string())).collect();
        let is_lacking = |hash: &TextHash| !given.contains_key(hash) && !self.texts.contains_key(hash);
        let lacks: BTreeSet<TextHash> = draft.entry.texts().filter(is_lacking).collect();
        if !lacks.is_empty() {
            return Begun::Lacks(lacks.into_iter().collect());
        }
        let texts = given.keys().copied().chain(draft.entry.texts()).collect();
        self.texts.extend(given);
        self.journal.push(Noted { entry: draft.entry.clone(), texts, state: State::Open });
        Begun::Entry(number(self.journal.len() - 1), draft.entry)
    }

    pub fn finish(&mut self, id: u64, entry: Entry) {
        let kept = &mut self.journal[index(id)];
        (kept.entry, kept.state) = (entry, State::Done);
    }

    pub fn mark_undone(&mut self, id: u64) {
        self.journal[index(id)].state = State::Undone;
    }

    /// Nobody goes on with what is open.
    pub fn cut_off(&mut self) {
        for kept in self.journal.iter_mut().filter(|kept| kept.state == State::Open) {
            kept.state = State::CutOff;
        }
    }

    pub fn cut_off_entries(&self) -> Vec<Entry> {
        let cut_off = self.journal.iter().filter(|kept| kept.state == State::CutOff);
        cut_off.map(|kept| kept.entry.clone()).collect()
    }

    /// What is left of these is known.
    pub fn clear(&mut self, cleared: Cleared) {
        for (at, kept) in self.journal.iter_mut().enumerate().filter(|(_, kept)| kept.state == State::CutOff) {
            let meant = match cleared {
                Cleared::Everything => true,
                Cleared::Undone(id) => number(at) == id || kept.entry.undoes == Some(id),
            };
            if meant {
                kept.state = State::Done;
            }
        }
    }

    pub fn recall(&self, undo: &Undo) -> Result<Recalled, String> {
        let is_last =
            |kept: &Noted| kept.entry.undoes.is_none() && kept.state != State::Undone && kept.entry.changed_something();
        let found = match undo.journal {
            None => self.journal.iter().rposition(is_last).ok_or("there is none")?,
            Some(id) => index(id),
        };
        let kept = self.journal.get(found).filter(|kept| kept.state != State::Undone).ok_or("no such entry")?;
        let texts = kept.entry.texts().filter_map(|hash| Some((hash, self.texts.get(&hash)?.clone()))).collect();
        Ok(Recalled { id: number(found), entry: kept.entry.clone(), texts, when: "noon".into() })
    }

    pub fn entry(&self, id: u64) -> &Entry {
        &self.journal[index(id)].entry
    }

    pub fn entries(&self) -> usize {
        self.journal.len()
    }

    pub fn keep_session(&mut self, session: u32, unseen: Vec<InstanceKey>) {
        self.session = Some((session, unseen.into_iter().collect()));
    }

    pub fn unseen(&self, session: u32) -> Option<&BTreeSet<InstanceKey>> {
        self.session.as_ref().filter(|(known, _)| *known == session).map(|(_, unseen)| unseen)
    }
}

fn index(id: u64) -> usize {
    usize::try_from(id).expect("few")
}

fn number(at: usize) -> u64 {
    u64::try_from(at).expect("few")
}
