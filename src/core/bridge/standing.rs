//! What the window of a Studio is told of itself.

use std::collections::BTreeSet;

use super::{Bridge, CallerId, What};
use crate::core::{
    protocol::{Notice, ServerFrame},
    standing::Standing,
    studios::StudioKey,
};

impl Bridge {
    /// Tell each Studio how it stands, where that is news.
    pub(super) fn tell_all_standings(&mut self) {
        let keys: Vec<StudioKey> = self.studios.iter().map(|studio| studio.key).collect();
        keys.into_iter().for_each(|key| self.tell_standing(key));
    }

    /// Tell a Studio how it stands, if that is news.
    pub(super) fn tell_standing(&mut self, key: StudioKey) {
        let now = self.standing(key);
        let Some(studio) = self.studios.get_mut(key).filter(|studio| studio.is_level1()) else { return };
        let Some(link) = studio.link.filter(|_| studio.told != now) else { return };
        studio.told = now.clone();
        let rival = now.rival.then(|| {
            let place = match &studio.hello.level1 {
                Some(level1) if !level1.place_name.is_empty() => format!("place {:?}", level1.place_name),
                _ => "this place".to_owned(),
            };
            format!("{place} is open in another window as well, which is refused: close one of the two")
        });
        let Standing { agents, pending, .. } = now;
        self.send(link, ServerFrame::Notice(Notice::Status { agents, pending, rival }));
    }

    fn standing(&self, key: StudioKey) -> Standing {
        let of_it = self.calls.iter().filter(|(_, waiting)| waiting.studio == key);
        let (mut callers, mut pending) = (BTreeSet::<CallerId>::new(), 0);
        for (_, waiting) in of_it {
            callers.extend(self.callers(&waiting.who));
            pending += usize::from(matches!(waiting.what, What::Request { sent: true, .. }));
        }
        let rival = self.studios.get(key).is_some_and(|studio| studio.rival.is_some());
        Standing { agents: callers.len(), pending, rival }
    }
}
