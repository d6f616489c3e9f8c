//! Numbers that look random and are the same for the same seed (SplitMix64).

use super::PLUGINS;

pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let limit = u64::try_from(limit).expect("a small number");
        usize::try_from((mixed ^ (mixed >> 31)) % limit).expect("below a small number")
    }

    /// One of the plugins.
    pub fn plugin(&mut self) -> usize {
        self.below(PLUGINS.len())
    }

    /// One of the places.
    pub fn place(&mut self) -> u64 {
        let plugin = self.plugin();
        PLUGINS[plugin].0
    }

    /// Milliseconds, at least one.
    pub fn time(&mut self, most: usize) -> u64 {
        1 + self.below(most) as u64
    }
}
