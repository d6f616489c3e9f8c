//! What only Studio has: of a file that is gone, or made there.
//!
//! It is removed only where every script in it is what both sides last agreed on, everything else
//! in it was once agreed on too, and it is not too much at once. Everything else is left alone.

use std::collections::{HashMap, HashSet};

use super::{
    decision::{Decision, Lost, Needs, NodeView, Removal, Rules, Then},
    overrides::Forced,
    receipt::{Change, Direction, PatchType},
    verdicts,
    writes::FileWrite,
};
use crate::core::{
    agreement::Agreement,
    ids::{NodeId, TempId},
    merge::{Base, Side, Verdict, verdict},
    paths::InstanceKey,
    protocol::{Expected, Fact, PlanOp, Whose, digest},
    text::TextHash,
};

/// More scripts than these are not removed unasked.
const MAX_REMOVALS: usize = 20;

/// How files end that hold a whole instance.
const MODEL_FILES: [&str; 7] = [".json", ".jsonc", ".toml", ".rbxm", ".rbxmx", ".txt", ".csv"];

const SCRIPTS: [&str; 3] = ["Script", "LocalScript", "ModuleScript"];

/// One instance that only Studio has, with all below it.
#[derive(Debug, Clone)]
pub(super) struct Extra {
    pub temp_id: TempId,
    pub class: String,
    pub scripts: Vec<OldScript>,
    /// Instances of it that are no scripts, and that both sides had.
    pub others: Vec<InstanceKey>,
    /// Its own.
    pub key: InstanceKey,
    /// What it must still be.
    pub expect: Expected,
    /// Nothing in it was made in Studio.
    whole: bool,
    /// One of its scripts is not as agreed.
    changed: bool,
    drafts: bool,
}

/// A script of it.
#[derive(Debug, Clone)]
pub(super) struct OldScript {
    pub key: InstanceKey,
    /// Below the instance.
    pub below: InstanceKey,
    pub hash: TextHash,
    verdict: Verdict,
    /// Its text is known without Studio.
    known: bool,
}

impl Extra {
    /// `None`: it cannot be told what it is.
    pub fn read(fact: &Fact, agreement: &Agreement) -> Option<Self> {
        let (temp_id, parent, name) = (fact.temp_id.clone()?, fact.parent?, fact.name.as_deref()?);
        if agreement.has_child(parent, name, &fact.class_name) {
            return None; // a twin of what the tree has
        }
        let top = agreement.key(parent)?.child(name, &fact.class_name);
        let expect = Expected::of(fact).or_else(|| as_agreed(fact, &top, agreement))?;
        let mut seats = HashMap::from([(&[][..], (top.clone(), InstanceKey::root()))]);
        let mut extra = Self {
            temp_id,
            class: fact.class_name.clone(),
            scripts: Vec::new(),
            others: Vec::new(),
            key: top,
            expect: expect.clone(),
            whole: true,
            changed: false,
            drafts: fact.is_draft,
        };
        let mut folders: Vec<InstanceKey> = Vec::new();
        let all = std::iter::once((&[][..], fact.class_name.as_str(), fact.studio_hash));
        let below = expect.subtree.iter().map(|one| (&one.path[..], one.class_name.as_str(), one.studio_hash));
        for (path, class, hash) in all.chain(below) {
            if let Some((name, up)) = path.split_last() {
                let (key, below) = seats.get(up)?;
                let seat = (key.child(name, class), below.child(name, class));
                // Of twins the one that was listed last is meant: what lies below follows it.
                if seats.insert(path, seat).is_some() && hash.is_some() {
                    return None; // scripts that are twins
                }
            }
            let (key, below) = seats.get(path).expect("put there above").clone();
            match hash {
                Some(hash) => extra.add(key, below, hash, agreement),
                None if agreement.count_gone(&key) > 0 => extra.others.push(key),
                None if class == "Folder" => folders.push(below),
                None => extra.whole = false,
            }
        }
        let scripts: HashSet<&InstanceKey> = extra.scripts.iter().map(|script| &script.key).collect();
        if scripts.len() != extra.scripts.len() {
            return None; // scripts of twins
        }
        let count = |key| extra.others.iter().filter(|other| *other == key).count();
        extra.whole &= extra.others.iter().all(|key| count(key) <= agreement.count_gone(key));
        extra.drafts |= expect.subtree.iter().any(|one| one.is_draft);
        extra.whole &= folders.iter().all(|folder| extra.scripts.iter().any(|script| script.below.is_within(folder)));
        Some(extra)
    }

    fn add(&mut self, key: InstanceKey, below: InstanceKey, hash: TextHash, agreement: &Agreement) {
        let base = agreement.gone(&key).cloned().unwrap_or_default();
        let verdict = verdict(&base, None, Some(hash));
        self.whole &= verdict == Verdict::Push;
        self.changed |= verdict == Verdict::Gone;
        self.scripts.push(OldScript { key, below, hash, verdict, known: knows(&base, Some(hash)) });
    }

    /// Its scripts are what both sides last had; it may hold other things made in Studio.
    pub fn is_old(&self) -> bool {
        !self.drafts && !self.scripts.is_empty() && self.scripts.iter().all(|script| script.verdict == Verdict::Push)
    }

    /// What the journal keeps of scripts and folders does not make it again.
    fn holds_more_than_scripts(&self) -> bool {
        let below = self.expect.subtree.iter().map(|one| (one.studio_hash, &one.class_name));
        let mut all = std::iter::once((self.expect.studio_hash, &self.class)).chain(below);
        all.any(|(hash, class)| hash.is_none() && class != "Folder")
    }

    fn remove(&self, change: Change, parent: NodeId, siblings: Option<u32>) -> Decision {
        let op = PlanOp::Remove { of: Whose::Extra { temp_id: self.temp_id.clone() }, expect: self.expect.clone() };
        let change = change.planned(Direction::Push, PatchType::Remove);
        let removal = Removal { parent, siblings, scripts: self.scripts.len().max(1) };
        let lost = if self.holds_more_than_scripts() { Lost::Wanted } else { Lost::Nothing };
        let decision = Decision { removal: Some(removal), lost, ..Decision::new(change).does(op) };
        let scripts = self.scripts.iter().map(|script| Then::Absent(script.key.clone()));
        let others = self.others.iter().map(|key| Then::PropertiesGone(key.clone(), None));
        scripts.chain(others).fold(decision, Decision::then)
    }
}

/// What is too much to be listed, if it is what both sides had.
fn as_agreed(fact: &Fact, top: &InstanceKey, agreement: &Agreement) -> Option<Expected> {
    let below = agreement.gone_below(top);
    let expect = Fact { subtree: Some(below), ..fact.clone() };
    let expect = Expected::of(&expect)?;
    fact.subtree_digest.filter(|known| *known == digest(&expect.subtree)).map(|_| expect)
}

fn knows(base: &Base, side: Side) -> bool {
    base.last == Some(side) || base.earlier.contains(&side)
}

/// Decide about what only Studio has. `parent` is the node that it stands below.
pub(super) fn about_extra(
    fact: &Fact,
    parent: Option<&NodeView>,
    agreement: &Agreement,
    rules: &Rules,
    forced: Option<Forced>,
) -> (Decision, Option<Extra>) {
    let change = verdicts::change(fact, None, PatchType::Remove);
    let extra = Extra::read(fact, agreement);
    let decision = match forced {
        Some(Forced::Push) => force_remove(fact, change, extra.as_ref()),
        Some(Forced::Pull) => create(fact, change, parent),
        Some(Forced::Text(_)) => Decision::unresolved(change, "only Studio has it; pull it first"),
        None if fact.is_new && rules.follows => create(fact, change, parent),
        None => unasked(fact, change, extra.as_ref(), rules),
    };
    let decision = match fact.parent.zip(fact.name.as_deref()) {
        Some((parent, name)) => decision.at(parent, name),
        None => decision,
    };
    (decision, extra)
}

fn unasked(fact: &Fact, change: Change, extra: Option<&Extra>, rules: &Rules) -> Decision {
    let made = "it was made in Studio: to keep it, pull it with an override or save it as a file; \
                to drop it, push it with an override";
    let Some((extra, parent)) = extra.zip(fact.parent) else {
        let reason = if fact.subtree_cut { "too much lies in it to be told apart; it is left alone" } else { made };
        return Decision::unresolved(change, reason);
    };
    let old = !extra.others.is_empty() || extra.scripts.iter().any(|script| script.verdict == Verdict::Push);
    let reason = if extra.changed && fact.studio_hash.is_none() {
        "its file is gone, and scripts in it were changed in Studio: bring what is to be kept into files, \
         then remove it in Studio"
    } else if extra.changed {
        "its file is gone, and its text in Studio was changed (an override with `push` removes it, \
         with `pull` it makes the file again)"
    } else if !old {
        made
    } else if extra.drafts {
        "its file is gone, but a person is editing it in Studio and has not saved"
    } else if !extra.whole {
        "its file is gone, but it holds things that were made in Studio: move what is to be kept, \
         then remove it in Studio"
    } else if !rules.alone {
        "its file is gone, and other people edit this place (an override with `push` removes it)"
    } else {
        return extra.remove(change, parent, fact.siblings);
    };
    Decision::unresolved(change, reason)
}

fn force_remove(fact: &Fact, change: Change, extra: Option<&Extra>) -> Decision {
    let Some((extra, parent)) = extra.zip(fact.parent) else {
        return Decision::unresolved(change, "it cannot be told apart from others there; remove it in Studio");
    };
    if extra.drafts {
        return Decision::unresolved(change, "a person is editing it in Studio and has not saved");
    }
    let (top, below): (Vec<_>, Vec<_>) =
        extra.scripts.iter().filter(|script| !script.known).partition(|script| script.below == InstanceKey::root());
    if !below.is_empty() {
        let reason = "it holds scripts that only Studio has and no journal could give back; remove it in Studio";
        return Decision::unresolved(change, reason);
    }
    let decision = Decision { removal: None, ..extra.remove(change, parent, fact.siblings) };
    match top.first() {
        Some(script) => decision.needs(Needs::text(extra.temp_id.clone().into(), script.hash)),
        None => decision,
    }
}

/// What was made in Studio becomes files.
fn create(fact: &Fact, change: Change, parent: Option<&NodeView>) -> Decision {
    let (Some(temp_id), Some(name)) = (&fact.temp_id, &fact.name) else {
        return Decision::unresolved(change, "its name is not UTF-8, so no file can bear it; rename it in Studio");
    };
    let Some((at, folder)) = fact.parent.zip(parent.and_then(folder_of)) else {
        let reason = "what it stands below has no folder on disk; make one (Name/init.luau) and sync again";
        return Decision::unresolved(change, reason);
    };
    let Some(expect) = Expected::of(fact) else {
        return Decision::unresolved(change, "too much lies in it to be read at once; save it as a model file");
    };
    if fact.is_draft || expect.subtree.iter().any(|one| one.is_draft) {
        return Decision::unresolved(change, "a person is editing it in Studio and has not saved");
    }
    let change = change.planned(Direction::Pull, PatchType::Add);
    let (temp_id, name, class) = (temp_id.clone(), name.clone(), fact.class_name.clone());
    let Some(hash) = fact.studio_hash.filter(|_| expect.subtree.is_empty() && SCRIPTS.contains(&class.as_str())) else {
        return Decision::new(change).writes(FileWrite::Instance { folder, temp_id, expect, node: None });
    };
    let write = FileWrite::Create { folder, name: name.clone(), class: class.clone(), text: None, holds: false };
    Decision::new(change).writes(write).needs(Needs::text(temp_id.into(), hash)).then(Then::At {
        parent: at,
        name,
        class,
        hash,
    })
}

/// The folder that the children of an instance lie in.
pub(super) fn folder_of(view: &NodeView) -> Option<String> {
    let path = view.fs_path.as_deref()?;
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    if MODEL_FILES.iter().any(|ending| file.ends_with(ending)) {
        return None;
    }
    match &view.source {
        Some(_) if file.starts_with("init.") => Some(folder.to_owned()),
        Some(_) => None,
        None => Some(path.to_owned()),
    }
}

/// Removals that are too many at once wait for somebody who agrees.
pub(super) fn ask_for_many(decisions: &mut [Decision], rules: &Rules) {
    if rules.allow_removals {
        return;
    }
    let mut scripts = 0;
    let mut children: HashMap<NodeId, (usize, Option<u32>)> = HashMap::new();
    for removal in decisions.iter().filter_map(|decision| decision.removal.as_ref()) {
        scripts += removal.scripts;
        children.entry(removal.parent).or_insert((0, removal.siblings)).0 += 1;
    }
    let too_many: HashSet<NodeId> = children
        .iter()
        .filter(|(_, (gone, siblings))| siblings.is_none_or(|all| gone * 2 > usize::try_from(all).unwrap_or(0)))
        .map(|(parent, _)| *parent)
        .collect();
    for decision in decisions {
        let Some(removal) = &decision.removal else { continue };
        let (gone, where_to, how) = match decision.change.direction {
            Direction::Pull => ("it was removed in Studio", "on disk", ""),
            _ => ("its file is gone", "in Studio", "with `allowRemovals`, or "),
        };
        let why = if scripts > MAX_REMOVALS {
            format!("{scripts} scripts at once would be removed {where_to}")
        } else if too_many.contains(&removal.parent) {
            format!("more than half of what is there would be removed {where_to}")
        } else {
            continue;
        };
        decision.drop_it(format!("{gone}, but {why}: sync {how}with an override for each"));
    }
}
