//! What runs do outside the core: the store, merges, files. Everything here blocks.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, mpsc},
    time::Duration,
};

use super::writes::note;
use crate::{
    clock,
    core::{
        agreement::{Kept, News},
        bridge::{Work, Worked},
        ids::{InstanceId, SessionId},
        journal::Entry,
        merge::{self, Merge, Side},
        paths::InstanceKey,
        sync::{Asked, Begun, ChangeResult, Cleared, Draft, MergeJob, Merged, Recalled, Undo, Version},
        text::{ScriptText, TextHash},
    },
    git::Git,
    session::ServeSession,
    store::{Agreed, Base, EntryState, JournalEntry, Session, Store, StoreError},
};

/// A merge that takes longer is a conflict.
const MERGE_PATIENCE: Duration = Duration::from_millis(200);

/// How far back the last entry of a place is looked for.
const MAX_LOOKED_THROUGH: usize = 500;

/// What the store has in the place of a hash where there was no text; as git writes it.
const NOTHING: [u8; 20] = [0; 20];

/// Carries out work of runs.
#[derive(Clone)]
pub(super) struct Worker {
    pub session: Arc<ServeSession>,
    pub store: Store,
}

impl Worker {
    pub fn work(&self, work: Work) -> Worked {
        match work {
            Work::Merge(jobs) => Worked::Merged(jobs.into_iter().map(|job| self.merge(job)).collect()),
            Work::Begin(draft) => Worked::Begun(self.begin(draft)),
            Work::Recall { place, undo } => Worked::Recalled(self.recall(&place, &undo)),
            Work::History(asked) => Worked::History(self.earlier(asked)),
            Work::Check(writes) => Worked::Checked(self.check(&writes)),
            Work::Write(writes) => Worked::Written(self.write(writes)),
            Work::Conclude { place, news, journal, entry } => {
                Worked::Concluded(self.conclude(&place, &news, journal, &entry))
            }
        }
    }

    /// Which of the texts their files had before: while they were served, or as git knows.
    fn earlier(&self, asked: Vec<Asked>) -> BTreeSet<Version> {
        let had = |asked: &Asked| self.session.had(&asked.version.path, asked.version.hash);
        let (earlier, unknown): (Vec<Asked>, Vec<Asked>) = asked.into_iter().partition(had);
        let mut earlier = BTreeSet::from_iter(earlier.into_iter().map(|asked| asked.version));
        if !unknown.is_empty() {
            earlier.extend(Git::default().earlier(&self.session.project().folder, &unknown));
        }
        earlier
    }

    /// Runs in a place of which nobody saw the end, oldest first. A store that fails knows none.
    pub fn cut_off_runs(&self, place: &InstanceId) -> Vec<Entry> {
        let entries = self.store.cut_off_entries().unwrap_or_else(|error| {
            log::error!("what was cut off in {place} could not be read: {error}");
            Vec::new()
        });
        let entries = entries.into_iter().filter_map(|entry| serde_json::from_value::<Entry>(entry.entry).ok());
        entries.filter(|entry| entry.place == place.as_str()).collect()
    }

    /// What `session` has not seen in its place; `None`: it is not known to have been there.
    pub fn unseen(&self, place: &InstanceId, session: &SessionId) -> Option<Vec<InstanceKey>> {
        let known = self.store.session(place.as_str()).unwrap_or_else(|error| {
            log::error!("what was seen in {place} could not be read: {error}");
            None
        });
        let unseen = known.filter(|known| known.id == session.as_str())?.unseen;
        Some(unseen.iter().map(|key| InstanceKey::from(key.as_str())).collect())
    }

    pub fn keep_session(&self, place: &InstanceId, session: &SessionId, unseen: &[InstanceKey]) {
        let unseen = unseen.iter().map(|key| key.as_str().to_owned()).collect();
        let session = Session { id: session.to_string(), unseen };
        if let Err(error) = self.store.keep_session(place.as_str(), &session) {
            log::error!("what was seen in {place} could not be kept: {error}");
        }
    }

    /// What both sides agreed on in a place. A store that fails knows nothing.
    pub fn bases(&self, place: &InstanceId) -> Vec<Kept> {
        let bases = self.store.bases(place.as_str()).unwrap_or_else(|error| {
            log::error!("what was agreed with {place} could not be read: {error}");
            HashMap::new()
        });
        let kept = bases.into_iter().map(|(key, base)| {
            let key = InstanceKey::from(key.as_str());
            let text = key.owner().and_then(|_| self.store.text(base.hash).ok().flatten());
            Kept { key, id: None, last: side(base.hash), earlier: base.earlier.into_iter().map(side).collect(), text }
        });
        kept.collect()
    }

    pub fn remember(&self, place: &InstanceId, news: &[News]) {
        if let Err(error) = self.try_remember(place, news) {
            log::error!("what was agreed with {place} could not be kept: {error}");
        }
    }

    pub fn move_place(&self, from: &InstanceId, to: &InstanceId) {
        if let Err(error) = self.store.move_place(from.as_str(), to.as_str()) {
            log::error!("what was agreed with {from} could not be moved to {to}: {error}");
        }
    }

    pub fn cut_off(&self, journal: u64) {
        if let Err(error) = self.store.cut_off(journal) {
            log::error!("that journal entry {journal} was cut off could not be noted: {error}");
        }
    }

    pub fn clear(&self, place: &InstanceId, cleared: Cleared) {
        let outcome = self.store.clear(|entry| match cleared {
            Cleared::Everything => entry.entry["place"] == place.as_str(),
            Cleared::Undone(id) => entry.id == id || entry.entry["undoes"] == id,
        });
        let outcome = match cleared {
            Cleared::Everything => outcome,
            Cleared::Undone(id) => outcome.and_then(|()| self.mark_undone(id)),
        };
        if let Err(error) = outcome {
            log::error!("that nothing is left of what was cut off could not be noted: {error}");
        }
    }

    fn try_remember(&self, place: &InstanceId, news: &[News]) -> Result<(), StoreError> {
        let agreed: Vec<&Kept> = news.iter().filter_map(News::agreed).collect();
        self.remember_agreed(place, &agreed)?;
        let restored = news.iter().filter_map(|news| match news {
            News::Restored { key, base } => Some((key.as_str(), base.as_ref().map(to_base))),
            News::Agreed(_) => None,
        });
        self.store.restore(place.as_str(), restored)
    }

    fn remember_agreed(&self, place: &InstanceId, news: &[&Kept]) -> Result<(), StoreError> {
        let ids: Vec<_> = news.iter().filter_map(|kept| kept.id).collect();
        let (_, looks) = self.session.look(&ids);
        let texts: HashMap<TextHash, ScriptText> =
            looks.into_iter().flatten().filter_map(|look| Some((look.hash?, ScriptText::new(&look.source?)))).collect();
        let agreed: Vec<Agreed<'_>> = news
            .iter()
            .flat_map(|kept| {
                let states = kept.earlier.iter().chain(std::iter::once(&kept.last));
                states.map(|state| Agreed {
                    key: kept.key.as_str(),
                    hash: to_hash(*state),
                    text: kept
                        .text
                        .as_deref()
                        .or_else(|| state.and_then(|hash| texts.get(&hash)).map(ScriptText::as_str)),
                })
            })
            .collect();
        self.store.agree(place.as_str(), &agreed)
    }

    fn merge(&self, job: MergeJob) -> Merged {
        let base = match self.store.text(job.base) {
            Ok(Some(base)) => base,
            Ok(None) => return Merged::Not("the text that both last had is not kept".to_owned()),
            Err(error) => return Merged::Not(error.to_string()),
        };
        let (disk, studio) = (ScriptText::new(&job.disk), ScriptText::new(&job.studio));
        let (outcome, wait) = mpsc::channel();
        std::thread::spawn(move || {
            // Nobody waits for what comes too late.
            let _ = outcome.send(merge::merge(&base, disk.as_str(), studio.as_str()));
        });
        match wait.recv_timeout(MERGE_PATIENCE) {
            Ok(Merge::Clean(text)) => Merged::Clean(text),
            Ok(Merge::Conflict(hunks)) => Merged::Conflict(hunks),
            Ok(Merge::TooLarge) => Merged::Not("it is too large to be merged".to_owned()),
            Err(_) => Merged::Not("merging it takes too long".to_owned()),
        }
    }

    fn begin(&self, draft: Draft) -> Begun {
        self.try_begin(draft).unwrap_or_else(|error| Begun::Failed(error.to_string()))
    }

    fn try_begin(&self, mut draft: Draft) -> Result<Begun, StoreError> {
        let texts: HashMap<TextHash, ScriptText> =
            draft.texts.iter().map(|text| ScriptText::new(text)).map(|text| (text.hash(), text)).collect();
        let mut kept: HashMap<TextHash, String> = HashMap::new();
        let needed: HashSet<TextHash> = draft.entry.texts().filter(|hash| !texts.contains_key(hash)).collect();
        let mut lacks = Vec::new();
        for hash in needed {
            match self.store.text(hash)? {
                Some(text) => _ = kept.insert(hash, text),
                None => lacks.push(hash),
            }
        }
        if !lacks.is_empty() {
            return Ok(Begun::Lacks(lacks));
        }
        note(&self.session, &mut draft);
        let texts = texts.iter().map(|(hash, text)| (*hash, text.as_str()));
        let all: Vec<(TextHash, &str)> = texts.chain(kept.iter().map(|(hash, text)| (*hash, text.as_str()))).collect();
        let id = self.store.begin(&serde_json::to_value(&draft.entry)?, &all)?;
        Ok(Begun::Entry(id, draft.entry))
    }

    fn recall(&self, place: &InstanceId, undo: &Undo) -> Result<Recalled, String> {
        let Found { id, at_ms, entry } = self.find_entry(place, undo)?;
        let mut texts = HashMap::new();
        for hash in entry.texts() {
            if let Some(text) = self.store.text(hash).map_err(|error| error.to_string())? {
                texts.insert(hash, text);
            }
        }
        Ok(Recalled { id, entry, texts, when: clock::time_of_day(at_ms) })
    }

    fn find_entry(&self, place: &InstanceId, undo: &Undo) -> Result<Found, String> {
        let read = |entry: JournalEntry| -> Result<(Found, EntryState), String> {
            let said =
                serde_json::from_value(entry.entry).map_err(|error| format!("the entry is malformed: {error}"))?;
            Ok((Found { id: entry.id, at_ms: entry.at_ms, entry: said }, entry.state))
        };
        let Some(id) = undo.journal else {
            let entries = self.store.entries(MAX_LOOKED_THROUGH).map_err(|error| error.to_string())?;
            let mut entries = entries.into_iter().filter_map(|entry| read(entry).ok());
            let last = entries.find(|(Found { entry, .. }, state)| {
                let is_of_this = entry.undoes.is_none() && entry.place == place.as_str();
                is_of_this && *state != EntryState::Undone && entry.changed_something()
            });
            return last
                .map(|(found, _)| found)
                .ok_or_else(|| format!("the journal has nothing of {place} that could be taken back"));
        };
        let entry = self.store.entry(id).map_err(|error| error.to_string())?;
        let (found, state) = read(entry.ok_or_else(|| format!("the journal has no entry {id}, or no longer"))?)?;
        if found.entry.place != place.as_str() {
            return Err(format!("entry {id} was done in {}, and this is {place}", found.entry.place));
        }
        if state == EntryState::Undone {
            return Err(format!("entry {id} was taken back already"));
        }
        Ok(found)
    }

    /// Nothing is left of an entry.
    fn mark_undone(&self, id: u64) -> Result<(), StoreError> {
        match self.store.entry(id)? {
            Some(entry) => self.store.finish(id, EntryState::Undone, &entry.entry),
            None => Ok(()),
        }
    }

    fn conclude(&self, place: &InstanceId, news: &[News], journal: u64, entry: &Entry) -> Result<(), String> {
        let all = entry.changes.iter().all(|line| line.result == Some(ChangeResult::Done));
        let undone = entry.undoes.filter(|_| all);
        let kept = self.try_remember(place, news);
        let is_void = entry.undoes.is_some() && entry.did_nothing();
        let entry = serde_json::to_value(entry).map_err(|error| error.to_string())?;
        let finished = match is_void {
            // Called again and again, it would drive out what can be taken back.
            true => self.store.forget(journal),
            false => self.store.finish(journal, EntryState::Done, &entry),
        };
        let undone = undone.map_or(Ok(()), |id| self.mark_undone(id));
        kept.and(finished).and(undone).map_err(|error| error.to_string())
    }
}

/// An entry of the journal that can be taken back.
struct Found {
    id: u64,
    at_ms: u64,
    entry: Entry,
}

fn to_base((last, earlier): &(Side, Vec<Side>)) -> Base {
    Base { hash: to_hash(*last), earlier: earlier.iter().copied().map(to_hash).collect() }
}

fn to_hash(side: Side) -> TextHash {
    side.unwrap_or_else(|| TextHash::from(NOTHING))
}

fn side(hash: TextHash) -> Side {
    (*hash.as_bytes() != NOTHING).then_some(hash)
}
