//! The tree on its way to a Studio: in parts, then patch by patch.

use std::sync::Arc;

use super::{Bridge, Effect, Link};
use crate::core::{
    live::LiveMode,
    protocol::{Notice, Patch, ServerFrame, TreePart},
    studios::{LinkId, StudioKey, TreeState},
};

impl Bridge {
    pub(super) fn tree_built(&mut self, link: LinkId, parts: Vec<TreePart>) {
        let Some(Link::Of(key)) = self.links.get(&link) else { return };
        let Some(studio) = self.studios.get_mut(*key).filter(|studio| studio.link == Some(link)) else { return };
        for node in parts.iter().flat_map(|part| &part.nodes) {
            studio.agreement.tree_has_node(node);
        }
        studio.agreement.tree_is(&parts.iter().flat_map(|part| &part.nodes).map(|node| node.id).collect());
        if let TreeState::Sending { parts: waiting, cursor, .. } = &mut studio.tree {
            *cursor = parts.first().map(|part| part.cursor);
            *waiting = parts.into();
            self.send_next_part(link);
        }
    }

    pub(super) fn tree_part_taken(&mut self, link: LinkId, key: StudioKey, part: u32) {
        let expected = self.studios.get(key).and_then(|studio| match &studio.tree {
            TreeState::Sending { parts, cursor: Some(_), .. } => parts.front().map(|next| next.part),
            TreeState::Sending { .. } | TreeState::None | TreeState::Ready { .. } => None,
        });
        if expected.is_some_and(|next| next == part + 1) {
            self.send_next_part(link);
        }
    }

    fn send_next_part(&mut self, link: LinkId) {
        let Some(Link::Of(key)) = self.links.get(&link) else { return };
        let Some(studio) = self.studios.get_mut(*key) else { return };
        if let TreeState::Sending { parts, .. } = &mut studio.tree
            && let Some(part) = parts.pop_front()
        {
            self.send(link, ServerFrame::Notice(Notice::Tree(part)));
        }
    }

    /// Hand over the patches that came while the tree was on its way. The caller sees to the facts.
    /// `false`: this is not the version that was sent.
    pub(super) fn release_patches(&mut self, link: LinkId, key: StudioKey, ready: u32) -> bool {
        let Some(studio) = self.studios.get_mut(key) else { return false };
        let TreeState::Sending { parts, cursor: Some(cursor), patches } = &mut studio.tree else { return false };
        if !parts.is_empty() || *cursor != ready {
            return false;
        }
        let (cursor, patches) = (*cursor, std::mem::take(patches));
        studio.tree = TreeState::Ready { cursor };
        for patch in patches {
            self.send_patch(link, key, &patch);
        }
        true
    }

    pub(super) fn patched(&mut self, patch: &Arc<Patch>) {
        let mut ready = Vec::new();
        for studio in self.studios.iter_mut() {
            match (&mut studio.tree, studio.link) {
                (TreeState::Sending { patches, .. }, _) => patches.push(Arc::clone(patch)),
                (TreeState::Ready { .. }, Some(link)) => ready.push((link, studio.key)),
                (TreeState::Ready { .. }, None) | (TreeState::None, _) => {}
            }
        }
        for (link, key) in ready {
            self.send_patch(link, key, patch);
        }
    }

    fn send_patch(&mut self, link: LinkId, key: StudioKey, patch: &Arc<Patch>) {
        let Some(studio) = self.studios.get_mut(key) else { return };
        let TreeState::Ready { cursor } = &mut studio.tree else { return };
        if patch.cursor <= *cursor {
            return;
        }
        *cursor = patch.cursor;
        if studio.live_mode() != LiveMode::Off {
            let agreement = &studio.agreement;
            studio.live.patching(&patch.ops, |id| agreement.parent(id), |op| agreement.stays(op));
        }
        studio.agreement.patched(&patch.ops);
        self.send(link, ServerFrame::Notice(Notice::Patch(Patch::clone(patch))));
    }

    /// Patches were lost: every Studio takes the whole tree again.
    pub(super) fn restart_trees(&mut self) {
        let mut linked = Vec::new();
        for studio in self.studios.iter_mut().filter(|studio| studio.takes_tree()) {
            studio.tree = TreeState::wanted();
            linked.extend(studio.link);
        }
        self.effects.extend(linked.into_iter().map(|link| Effect::BuildTree { link }));
    }
}
