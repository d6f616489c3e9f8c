//! What writes displaced is held for a moment: an editor may still write into it.

use super::{Displaced, KEEP_DISPLACED};

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
