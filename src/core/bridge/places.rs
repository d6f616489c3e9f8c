//! Which places may link.

use std::collections::HashSet;

use super::{Bridge, links::Refusal};
use crate::core::{
    calls::Moment,
    protocol::{Notice, RejectCode, ServerFrame},
    studios::{LinkId, StudioKey},
};

/// Which places the project serves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacePolicy {
    /// Only these; `None`: any.
    pub serve: Option<HashSet<u64>>,
    /// Never these.
    pub blocked: HashSet<u64>,
}

impl PlacePolicy {
    /// This place may link.
    pub fn admits(&self, place: u64) -> bool {
        !self.blocked.contains(&place) && self.serve.as_ref().is_none_or(|serve| serve.contains(&place))
    }
}

impl Bridge {
    pub(super) fn apply_places(&mut self, now: Moment, places: PlacePolicy) {
        self.places = places;
        let refused: Vec<(StudioKey, Option<LinkId>, u64)> = self
            .studios
            .iter()
            .filter(|studio| !self.places.admits(studio.hello.place_id))
            .map(|studio| (studio.key, studio.link, studio.hello.place_id))
            .collect();
        for (key, link, place) in refused {
            let refusal = place_not_served(place);
            if let (Some(link), true) = (link, self.studios.get(key).is_some_and(|s| s.is_level1())) {
                let notice = Notice::Rejected { code: refusal.code, reason: refusal.reason.clone(), retry_after: None };
                self.send(link, ServerFrame::Notice(notice));
            }
            self.leave(key, &refusal.reason);
        }
        self.expire_hellos(now);
    }
}

pub(super) fn place_not_served(place: u64) -> Refusal {
    Refusal::new(
        RejectCode::PlaceNotServed,
        format!("the project does not serve place {place}; see servePlaceIds and blockedPlaceIds in its project file"),
    )
}
