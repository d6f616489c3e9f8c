//! Studio: the scripts below the root, each perhaps with an editor open on it, and the plugin, which
//! compares them with a tree and carries out plans as the shipped one does.

use super::{
    server::{ROOT, Tree},
    *,
};
use crate::core::protocol::{Expected, Whose};

/// One script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Script {
    uid: u32,
    pub name: String,
    pub source: String,
    /// What somebody types and has not saved.
    pub draft: Option<String>,
    /// A person was seen to make it.
    made: bool,
    /// What it was called until a person was seen to rename it.
    was: Option<String>,
}

impl Script {
    /// The text that counts as Studio's.
    pub fn text(&self) -> &str {
        self.draft.as_ref().unwrap_or(&self.source)
    }

    pub fn save_draft(&mut self) {
        self.source = self.draft.take().unwrap_or_else(|| std::mem::take(&mut self.source));
    }

    fn is_draft(&self) -> bool {
        self.draft.as_ref().is_some_and(|draft| *draft != self.source)
    }

    fn temp_id(&self) -> TempId {
        format!("x{}", self.uid).as_str().into()
    }
}

/// The scripts, and the place as it was saved each time.
#[derive(Debug, Clone)]
pub(in super::super) struct Studio {
    pub scripts: Vec<Script>,
    saved: Vec<Vec<Script>>,
    next: u32,
    /// The plugin's.
    pub session: u32,
    /// What a person was seen to delete.
    pub deleted: BTreeSet<String>,
    /// What Studio does not let anybody change.
    pub refuses: BTreeSet<String>,
    /// The plugin tells of differences the other way round.
    pub is_reversed: bool,
}

impl Studio {
    pub fn new(texts: &Files) -> Self {
        let mut studio = Self {
            scripts: Vec::new(),
            saved: Vec::new(),
            next: 0,
            session: 0,
            deleted: BTreeSet::new(),
            refuses: BTreeSet::new(),
            is_reversed: false,
        };
        texts.iter().for_each(|(name, text)| studio.put(name, text, false));
        studio.save_place();
        studio
    }

    pub fn find(&self, name: &str) -> Option<&Script> {
        self.scripts.iter().find(|script| script.name == name)
    }

    pub fn find_mut(&mut self, name: &str) -> Option<&mut Script> {
        self.scripts.iter_mut().find(|script| script.name == name)
    }

    fn put(&mut self, name: &str, text: &str, made: bool) {
        self.next += 1;
        let (uid, name, source) = (self.next, name.to_owned(), text.to_owned());
        self.scripts.push(Script { uid, name, source, draft: None, made, was: None });
    }

    /// A person makes it, unless it is there.
    pub fn make(&mut self, name: &str, text: &str) {
        if self.find(name).is_none() {
            self.put(name, text, true);
        }
    }

    pub fn delete(&mut self, name: &str) {
        let before = self.scripts.len();
        self.scripts.retain(|script| script.name != name);
        if self.scripts.len() < before {
            self.deleted.insert(name.to_owned());
        }
    }

    pub fn rename(&mut self, from: &str, to: &str) {
        if self.find(to).is_none()
            && let Some(script) = self.find_mut(from)
        {
            let old = std::mem::replace(&mut script.name, to.to_owned());
            script.was.get_or_insert(old);
        }
    }

    pub fn save_place(&mut self) {
        self.saved.push(self.scripts.clone());
    }

    /// Closed without saving, and opened again; or, with `copy`, a copy of the place as it once was.
    pub fn reopen(&mut self, copy: bool) {
        let place = if copy { self.saved.first() } else { self.saved.last() };
        let scripts = place.expect("it was saved once").clone();
        self.scripts.clear();
        for script in scripts {
            self.put(&script.name, &script.source, false);
        }
        self.begin_session();
    }

    /// The plugin is loaded anew.
    pub fn begin_session(&mut self) {
        self.session += 1;
        self.deleted.clear();
        for script in &mut self.scripts {
            (script.made, script.was) = (false, None);
        }
    }

    /// What differs from `tree`.
    pub fn compare(&mut self, tree: &Tree) -> Vec<Fact> {
        for script in self.scripts.iter_mut().filter(|script| tree.nodes.contains_key(&script.name)) {
            (script.made, script.was) = (false, None);
        }
        let mut facts = Vec::new();
        for (name, (id, text)) in &tree.nodes {
            match self.find(name) {
                None => facts.push(missing(*id)),
                Some(script) if script.text() != text => {
                    facts.push(Fact { is_draft: script.is_draft(), ..differs(*id, script.text()) });
                }
                Some(_) => {}
            }
        }
        let strangers = self.scripts.iter().filter(|script| !tree.nodes.contains_key(&script.name));
        facts.extend(strangers.map(|script| self.extra(script, tree)));
        if self.is_reversed {
            facts.reverse();
        }
        facts
    }

    /// Somebody types what the file says already, so that a comparison does not tell of it.
    pub fn has_hidden_draft(&self, tree: &Tree) -> bool {
        let is_hidden = |script: &Script| tree.nodes.get(&script.name).is_some_and(|(_, text)| script.text() == text);
        self.scripts.iter().any(|script| script.is_draft() && is_hidden(script))
    }

    fn extra(&self, script: &Script, tree: &Tree) -> Fact {
        Fact {
            temp_id: Some(script.temp_id()),
            parent: Some(ROOT),
            name: Some(script.name.clone()),
            path: format!("Root.{}", script.name),
            studio_hash: Some(hash(script.text())),
            is_draft: script.is_draft(),
            subtree: Some(vec![]),
            siblings: Some(u32::try_from(self.scripts.len()).expect("few")),
            is_new: script.made,
            was: script.was.as_ref().and_then(|name| Some(tree.nodes.get(name)?.0)),
            ..fact(FactKind::Extra, None)
        }
    }

    /// The committed text of what `of` names.
    pub fn source(&self, of: &OpId, tree: &Tree) -> Option<String> {
        let script = match of {
            OpId::Node(id) => self.find(tree.name(*id)?),
            OpId::Temp(id) => self.stranger(id, tree),
        };
        Some(script?.source.clone())
    }

    /// What only Studio has, by its name in facts.
    fn stranger(&self, id: &TempId, tree: &Tree) -> Option<&Script> {
        let found = self.scripts.iter().find(|script| script.temp_id() == *id);
        found.filter(|script| !tree.nodes.contains_key(&script.name))
    }

    fn subject(&self, op: &PlanOp, tree: &Tree) -> Option<&Script> {
        match op {
            PlanOp::SetSource { id, .. }
            | PlanOp::Rename { temp_id: None, id, .. }
            | PlanOp::Remove { of: Whose::Node { id }, .. } => self.find(tree.name(*id)?),
            PlanOp::Rename { temp_id: Some(id), .. } | PlanOp::Remove { of: Whose::Extra { temp_id: id }, .. } => {
                self.stranger(id, tree)
            }
            PlanOp::Add { node, .. } => self.find(&node.name),
            PlanOp::SetProperties { .. } => panic!("{op:?}"),
        }
    }

    /// All guards first; then everything that is not refused.
    pub fn apply(&mut self, ops: &[PlanOp], all_or_nothing: bool, tree: &Tree) -> Vec<OpResult> {
        let leaving: BTreeSet<u32> = ops
            .iter()
            .filter(|op| matches!(op, PlanOp::Remove { .. } | PlanOp::Rename { .. }))
            .filter_map(|op| Some(self.subject(op, tree)?.uid))
            .collect();
        let hold: Vec<bool> = ops.iter().map(|op| self.holds(op, &leaving, tree)).collect();
        if hold.contains(&false) {
            let status = |holds: &bool| if *holds { OpStatus::Skipped } else { OpStatus::Guard };
            return ops.iter().zip(&hold).map(|(op, holds)| self.said(op, status(holds), tree)).collect();
        }
        let before = self.clone();
        let mut done: Vec<bool> = vec![false; ops.len()];
        // What waits for a place goes again when that is free.
        for _ in 0..ops.len() {
            for (op, done) in ops.iter().zip(&mut done).filter(|(_, done)| !**done) {
                *done = self.carry_out(op, tree);
            }
        }
        if all_or_nothing && done.contains(&false) {
            *self = before;
            let status = |done: &bool| if *done { OpStatus::Skipped } else { OpStatus::Failed };
            return ops.iter().zip(&done).map(|(op, done)| self.said(op, status(done), tree)).collect();
        }
        let status = |done: &bool| if *done { OpStatus::Done } else { OpStatus::Failed };
        ops.iter().zip(&done).map(|(op, done)| self.said(op, status(done), tree)).collect()
    }

    fn holds(&self, op: &PlanOp, leaving: &BTreeSet<u32>, tree: &Tree) -> bool {
        let there = self.subject(op, tree);
        let as_expected = |expect: &Expected| {
            there.is_some_and(|there| {
                let is_it = Some(&there.name) == expect.name.as_ref() && Some(hash(there.text())) == expect.studio_hash;
                is_it && !there.is_draft()
            })
        };
        let is_free = |name: &str| self.find(name).is_none_or(|there| leaving.contains(&there.uid));
        match op {
            PlanOp::SetSource { expect, .. } => {
                there.is_some_and(|there| hash(there.text()) == *expect && !there.is_draft())
            }
            PlanOp::Add { node, .. } => is_free(&node.name),
            PlanOp::Remove { expect, .. } => as_expected(expect),
            PlanOp::Rename { name, expect, .. } => as_expected(expect) && is_free(name),
            PlanOp::SetProperties { .. } => panic!("{op:?}"),
        }
    }

    fn carry_out(&mut self, op: &PlanOp, tree: &Tree) -> bool {
        let there = self.subject(op, tree).map(|there| there.name.clone());
        if there.as_ref().is_some_and(|name| self.refuses.contains(name)) {
            return false;
        }
        match (op, there) {
            (PlanOp::SetSource { source, .. }, Some(name)) => {
                let script = self.find_mut(&name).expect("it was found");
                (script.source, script.draft) = (source.clone(), None);
            }
            (PlanOp::Add { node, .. }, None) => self.put(&node.name, node.source.as_ref().expect("a script"), false),
            (PlanOp::Remove { .. }, Some(name)) => self.scripts.retain(|script| script.name != name),
            (PlanOp::Rename { name: new, .. }, Some(name)) if self.find(new).is_none() => {
                self.find_mut(&name).expect("it was found").name.clone_from(new);
            }
            _ => return false,
        }
        true
    }

    /// What became of a step, and what Studio has now.
    fn said(&self, op: &PlanOp, status: OpStatus, tree: &Tree) -> OpResult {
        let now = match op {
            PlanOp::Rename { name, .. } if status == OpStatus::Done => self.find(name),
            _ => self.subject(op, tree),
        };
        let hash = now.map(|script| hash(script.text()));
        OpResult { id: op.subject(), op: None, status, hash, error: None }
    }
}
