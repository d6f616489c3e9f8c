//! What runs do outside the core: the store, merges, files. Everything here blocks.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{Arc, mpsc},
    time::Duration,
};

use crate::{
    core::{
        agreement::Kept,
        bridge::{Work, Worked},
        ids::InstanceId,
        journal::Entry,
        merge::{self, Merge, Side},
        paths::InstanceKey,
        sync::{Begun, ChangeResult, Cleared, Draft, FileWrite, MergeJob, Merged, Recalled, Undo, Wrote},
        text::{ScriptText, TextHash},
    },
    files::{self, Displaced, ScriptFile, WriteError},
    session::ServeSession,
    store::{Agreed, EntryState, JournalEntry, Store, StoreError},
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
            Work::Write(writes) => Worked::Written(self.write(writes)),
            Work::Conclude { place, news, journal, entry } => {
                Worked::Concluded(self.conclude(&place, &news, journal, &entry))
            }
        }
    }

    /// What both sides agreed on in a place. A store that fails knows nothing.
    pub fn bases(&self, place: &InstanceId) -> Vec<Kept> {
        let bases = self.store.bases(place.as_str()).unwrap_or_else(|error| {
            log::error!("what was agreed with {place} could not be read: {error}");
            HashMap::new()
        });
        let kept = bases.into_iter().map(|(key, base)| Kept {
            key: InstanceKey::from(key.as_str()),
            id: None,
            last: side(base.hash),
            earlier: base.earlier.into_iter().map(side).collect(),
        });
        kept.collect()
    }

    pub fn remember(&self, place: &InstanceId, news: &[Kept]) {
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
            Cleared::Entry(id) => entry.id == id,
        });
        if let Err(error) = outcome {
            log::error!("that nothing is left of what was cut off could not be noted: {error}");
        }
    }

    fn try_remember(&self, place: &InstanceId, news: &[Kept]) -> Result<(), StoreError> {
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
                    hash: state.unwrap_or_else(|| TextHash::from(NOTHING)),
                    text: state.and_then(|hash| texts.get(&hash)).map(ScriptText::as_str),
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

    fn try_begin(&self, draft: Draft) -> Result<Begun, StoreError> {
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
        let texts = texts.iter().map(|(hash, text)| (*hash, text.as_str()));
        let all: Vec<(TextHash, &str)> = texts.chain(kept.iter().map(|(hash, text)| (*hash, text.as_str()))).collect();
        let id = self.store.begin(&serde_json::to_value(&draft.entry)?, &all)?;
        Ok(Begun::Entry(id, draft.entry))
    }

    fn recall(&self, place: &InstanceId, undo: &Undo) -> Result<Recalled, String> {
        let (id, entry) = self.find_entry(place, undo)?;
        let mut texts = HashMap::new();
        for hash in entry.texts() {
            if let Some(text) = self.store.text(hash).map_err(|error| error.to_string())? {
                texts.insert(hash, text);
            }
        }
        Ok(Recalled { id, entry, texts })
    }

    fn find_entry(&self, place: &InstanceId, undo: &Undo) -> Result<(u64, Entry), String> {
        let read = |entry: JournalEntry| -> Result<(u64, EntryState, Entry), String> {
            let said =
                serde_json::from_value(entry.entry).map_err(|error| format!("the entry is malformed: {error}"))?;
            Ok((entry.id, entry.state, said))
        };
        let Some(id) = undo.journal else {
            let entries = self.store.entries(MAX_LOOKED_THROUGH).map_err(|error| error.to_string())?;
            let mut entries = entries.into_iter().filter_map(|entry| read(entry).ok());
            let last = entries.find(|(_, state, entry)| {
                *state != EntryState::Undone && entry.undoes.is_none() && entry.place == place.as_str()
            });
            return last
                .map(|(id, _, entry)| (id, entry))
                .ok_or_else(|| format!("the journal has nothing of {place} that could be taken back"));
        };
        let entry = self.store.entry(id).map_err(|error| error.to_string())?;
        let (id, state, entry) = read(entry.ok_or_else(|| format!("the journal has no entry {id}, or no longer"))?)?;
        if entry.place != place.as_str() {
            return Err(format!("entry {id} was done in {}, and this is {place}", entry.place));
        }
        if state == EntryState::Undone {
            return Err(format!("entry {id} was taken back already"));
        }
        Ok((id, entry))
    }

    /// An entry of which nothing is left is taken back.
    fn mark_undone(&self, undo: &Entry) -> Result<(), StoreError> {
        let all = undo.changes.iter().all(|line| line.result == Some(ChangeResult::Done));
        let Some(id) = undo.undoes.filter(|_| all) else { return Ok(()) };
        match self.store.entry(id)? {
            Some(entry) => self.store.finish(id, EntryState::Undone, &entry.entry),
            None => Ok(()),
        }
    }

    fn conclude(&self, place: &InstanceId, news: &[Kept], journal: u64, entry: &Entry) -> Result<(), String> {
        let (kept, undo) = (self.try_remember(place, news), entry);
        let entry = serde_json::to_value(entry).map_err(|error| error.to_string())?;
        let finished = self.store.finish(journal, EntryState::Done, &entry);
        kept.and(finished).and(self.mark_undone(undo)).map_err(|error| error.to_string())
    }

    fn write(&self, writes: Vec<FileWrite>) -> Vec<Wrote> {
        let folder = self.session.project().folder.clone();
        let (mut written, mut displaced) = (Vec::new(), Vec::new());
        let wrote = writes.into_iter().map(|write| self.write_one(write, &mut written, &mut displaced)).collect();
        let written: Vec<PathBuf> = written.into_iter().map(|path| folder.join(path)).collect();
        // The tree holds what was written before the run goes on.
        if !written.is_empty()
            && let Err(error) = self.session.catch_up(Some(&written))
        {
            log::error!("what a sync wrote could not be read again: {error}");
        }
        tokio::spawn(crate::files::displaced::let_go(displaced));
        wrote
    }

    fn write_one(&self, write: FileWrite, written: &mut Vec<PathBuf>, displaced: &mut Vec<Displaced>) -> Wrote {
        let folder = self.session.project().folder.clone();
        let sources = self.session.sources();
        let outcome = match write {
            FileWrite::Replace { path, base, text: Some(text) } => {
                written.push(path.clone().into());
                let text = ScriptText::new(&text);
                files::replace(&sources, &folder.join(path), base, &text).map(|written| {
                    displaced.extend(written.displaced);
                    Wrote::Done(Some(written.hash))
                })
            }
            FileWrite::Remove { path, base } => {
                written.push(path.clone().into());
                files::remove(&sources, &folder.join(path), base).map(|removed| {
                    displaced.push(removed.displaced);
                    Wrote::Done(None)
                })
            }
            FileWrite::Create { folder: within, name, class, text: Some(text) } => {
                let text = ScriptText::new(&text);
                let kind = script_file(&class);
                files::create(&sources, &folder.join(within), &name, kind, &text).map(|path| {
                    let made = below(&folder, &path);
                    written.push(path);
                    Wrote::Made(made, text.hash())
                })
            }
            FileWrite::Replace { text: None, .. } | FileWrite::Create { text: None, .. } => {
                return Wrote::Failed("its text is not known".to_owned());
            }
        };
        outcome.unwrap_or_else(|error| match error {
            WriteError::Changed { .. } | WriteError::Gone(_) => Wrote::MovedOn(error.to_string()),
            other => Wrote::Failed(other.to_string()),
        })
    }
}

fn side(hash: TextHash) -> Side {
    (*hash.as_bytes() != NOTHING).then_some(hash)
}

fn script_file(class: &str) -> ScriptFile {
    match class {
        "Script" => ScriptFile::Server,
        "LocalScript" => ScriptFile::Client,
        _ => ScriptFile::Module,
    }
}

/// `path` relative to the project, with `/`.
fn below(folder: &std::path::Path, path: &std::path::Path) -> String {
    let canonical = folder.canonicalize();
    let bases = canonical.iter().map(PathBuf::as_path).chain([folder]);
    let mut relative = bases.filter_map(|base| path.strip_prefix(base).ok());
    relative.next().unwrap_or(path).to_string_lossy().replace('\\', "/")
}
