//! What writes displaced is held for a moment: an editor may still write into it.

use std::{fs, path::PathBuf};

use super::{KEEP_DISPLACED, Means, Scratch, Swap, exchange, kept_name, read_all, tell_kept, write_kept};

/// What a write displaced. Dropped, it is settled.
#[derive(Debug)]
pub struct Displaced {
    /// Still open, though it has no name any more.
    pub(super) file: fs::File,
    pub(super) place: PathBuf,
    pub(super) held: Vec<u8>,
    /// What took its place. `None`: nothing, it was removed.
    pub(super) ours: Option<Vec<u8>>,
    pub(super) means: Means,
}

impl Displaced {
    /// Look at what was displaced once more, and let go of it. Where an editor that had the file
    /// open has written into it meanwhile, that is what the file holds afterwards.
    pub fn settle(self) {}

    /// Whether `late` is in its place again. It goes there only if that still holds ours.
    fn put_back(&self, late: &[u8]) -> bool {
        let like = fs::metadata(&self.place).ok();
        let Ok(scratch) = Scratch::write(&self.place, late, like.as_ref()) else { return false };
        let Some(ours) = &self.ours else { return exchange::place_new(&scratch.0, &self.place).is_ok() };
        let swap = Swap { place: &self.place, held: ours, ours: late, means: self.means };
        let still_ours = fs::read(&self.place).is_ok_and(|now| now == *ours);
        still_ours && swap.run(&scratch).is_ok()
    }
}

impl Drop for Displaced {
    fn drop(&mut self) {
        let late = match read_all(&mut self.file) {
            Ok(late) if late != self.held && !late.is_empty() => late,
            _ => return,
        };
        if self.put_back(&late) {
            log::warn!("{} was written by another program while it was replaced; its text stays", self.place.display());
        } else if fs::read(&self.place).map_or(true, |now| now != late) {
            let kept = kept_name(&self.place);
            tell_kept(&self.place, &kept, write_kept(&kept, &late));
        }
    }
}

/// Hold on to what was displaced, then look at it once more and let go.
pub async fn let_go(displaced: Vec<Displaced>) {
    if displaced.is_empty() {
        return;
    }
    tokio::time::sleep(KEEP_DISPLACED).await;
    let settled = tokio::task::spawn_blocking(|| displaced.into_iter().for_each(Displaced::settle)).await;
    if let Err(error) = settled {
        log::error!("what was replaced could not be let go of: {error}");
    }
}
