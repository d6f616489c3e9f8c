//! What outlives the process: bases go to the store and come from it, and runs leave an entry; and
//! what else the outside has done for a run.

use super::{Bridge, Effect, Work, Worked};
use crate::core::{
    agreement::Kept,
    calls::Moment,
    ids::{InstanceId, NodeId, RunId},
    journal::Entry,
    paths::InstanceKey,
    protocol::Role,
    studios::{Studio, StudioKey},
    sync::{Begun, Cleared, Draft, Run},
    text::TextHash,
};

impl Bridge {
    /// A Studio is here for the first time: what was agreed with its place is wanted.
    pub(super) fn recall(&mut self, key: StudioKey) {
        let Some(studio) = self.studios.get_mut(key) else { return };
        match lasting_place(studio).zip(studio.session().cloned()) {
            Some((place, session)) => self.effects.push(Effect::LoadBases { place, session }),
            None => studio.recalled = true,
        }
    }

    pub(super) fn bases_loaded(
        &mut self,
        now: Moment,
        place: &InstanceId,
        (kept, cut_off, unseen): (Vec<Kept>, &[Entry], Option<Vec<InstanceKey>>),
    ) {
        let found = self.studios.iter_mut().find(|studio| lasting_place(studio).as_ref() == Some(place));
        let Some(studio) = found.filter(|studio| !studio.recalled) else { return };
        studio.recalled = true;
        studio.agreement.recall(kept);
        studio.agreement.recall_cut_off(cut_off);
        if let Some(unseen) = unseen {
            studio.agreement.recall_seen(&unseen.into_iter().collect());
        }
        let key = studio.key;
        self.remember(key);
        self.resume_parked(now, key);
    }

    /// The same plugin session says hello with another place. Where that was never published before,
    /// what was agreed with it goes along; another place keeps its own.
    pub(super) fn place_moved(&mut self, key: StudioKey, from: Option<InstanceId>) {
        let to = self.studios.get(key).and_then(lasting_place);
        let published = |(from, to): &(InstanceId, InstanceId)| from != to && from.as_str().starts_with("anon:");
        if let Some((from, to)) = from.zip(to).filter(published) {
            self.effects.push(Effect::MovePlace { from, to });
        }
    }

    /// A run has ended: what is seen by now is kept, where that changed.
    pub(super) fn note_session(&mut self, key: StudioKey) {
        let Some(studio) = self.studios.get_mut(key).filter(|studio| studio.recalled && studio.is_ready()) else {
            return;
        };
        let Some((place, session)) = lasting_place(studio).zip(studio.session().cloned()) else { return };
        if let Some(unseen) = studio.agreement.take_unseen() {
            self.effects.push(Effect::KeepSession { place, session, unseen });
        }
    }

    pub(super) fn place_of(&self, key: StudioKey) -> Option<InstanceId> {
        self.studios.get(key).and_then(lasting_place)
    }

    /// Keep what is new, once it is known what is old.
    pub(super) fn remember(&mut self, key: StudioKey) {
        let Some(studio) = self.studios.get_mut(key).filter(|studio| studio.recalled) else { return };
        let Some(place) = lasting_place(studio) else { return };
        let news = studio.agreement.take_news();
        if !news.is_empty() {
            self.effects.push(Effect::Remember { place, news });
        }
    }

    /// The outside has done its part.
    pub(super) fn worked(&mut self, now: Moment, id: &RunId, done: Worked) {
        if let (Worked::Begun(Begun::Entry(journal, _)), false) = (&done, self.runs.contains_key(id)) {
            self.effects.push(Effect::CutOff { journal: *journal });
        }
        self.advance(now, id, |run, agreement| match done {
            Worked::History(earlier) => run.knows_history(earlier, agreement),
            Worked::Merged(merged) => run.merged(merged, agreement),
            Worked::Checked(found) => run.checked(found, agreement),
            Worked::Begun(begun) => run.begun(begun, agreement),
            Worked::Recalled(recalled) => run.recalled(recalled, agreement),
            Worked::Written(wrote) => run.written(wrote, agreement),
            Worked::Concluded(kept) => run.concluded(kept),
        });
    }

    pub(super) fn begin_entry(&mut self, id: &RunId, mut draft: Draft) {
        if let Some(error) = self.play_came_between(id) {
            return self.run_failed(id, error);
        }
        let place = self.studio_of(id).and_then(|key| self.place_of(key));
        draft.entry.place = place.map(|place| place.to_string()).unwrap_or_default();
        self.effects.push(Effect::Work { run: id.clone(), work: Work::Begin(draft) });
    }

    /// A run has ended, and what became of its entry in the journal was not noted.
    pub(super) fn cut_off(&mut self, run: &Run) {
        if let Some(journal) = run.journal() {
            self.effects.push(Effect::CutOff { journal });
        }
    }

    pub(super) fn clear_cut_off(&mut self, key: StudioKey, cleared: Option<Cleared>) {
        if let Some((cleared, place)) = cleared.zip(self.place_of(key)) {
            self.effects.push(Effect::Clear { place, cleared });
        }
    }

    pub(super) fn conclude(&mut self, id: &RunId, journal: u64, entry: Entry) {
        let place = InstanceId::from(entry.place.as_str());
        let key = self.studio_of(id);
        let studio = key.and_then(|key| self.studios.get_mut(key)).filter(|studio| studio.recalled);
        let news = studio
            .filter(|studio| lasting_place(studio).as_ref() == Some(&place))
            .map(|studio| studio.agreement.take_news())
            .unwrap_or_default();
        let work = Work::Conclude { place, news, journal, entry };
        self.effects.push(Effect::Work { run: id.clone(), work });
    }
}

impl Bridge {
    /// The text that `studio` (or the only one) and the tree last agreed on.
    pub fn base(&self, studio: Option<&str>, id: NodeId) -> Option<TextHash> {
        self.studios.target(studio).ok()?.agreement.base(id)
    }
}

/// The place whose bases outlive the Studio: not those of a play test, nor a foreign plugin's.
fn lasting_place(studio: &Studio) -> Option<InstanceId> {
    let level1 = studio.hello.level1.as_ref()?;
    (level1.role == Role::Edit).then(|| level1.instance_id.clone())
}
