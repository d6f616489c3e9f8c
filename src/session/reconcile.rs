//! Snapshot → tree: make parts of the tree equal to fresh snapshots, keep the id of every instance
//! that stays, and report what changed.
//!
//! An instance stays if its parent stays and its name and class are the same (twins are paired in
//! order), or if it is the one script with that text that went while one with the same text came:
//! a renamed file.

use std::collections::{HashMap, HashSet, VecDeque};

use librojo::{InstanceSnapshot, RojoTree};
use rbx_dom_weak::{
    Ustr, UstrMap,
    types::{Ref, Variant, VariantType},
    ustr,
};

use super::{
    refs::{self, Pointers},
    wire,
};
use crate::core::text::TextHash;

/// What to make of the tree.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Existing instances and what they shall be; `None`: gone. None lies below another.
    pub replaced: Vec<(Ref, Option<InstanceSnapshot>)>,
    /// New children of existing instances.
    pub added: Vec<(Ref, InstanceSnapshot)>,
    /// Scripts of which only the text shall change.
    pub texts: Vec<(Ref, String)>,
}

/// What changed in the tree.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// Instances that went; what was below them went too.
    pub removed: Vec<Ref>,
    /// Everything that went, those below included.
    pub gone: Vec<Ref>,
    /// Everything that came, parents first.
    pub added: Vec<Ref>,
    /// What stayed but changed.
    pub updated: Vec<Update>,
}

/// What changed in one instance.
#[derive(Debug)]
pub(super) struct Update {
    pub id: Ref,
    pub name: Option<String>,
    pub class: Option<Ustr>,
    /// New values; `None`: no longer set.
    pub properties: UstrMap<Option<Variant>>,
    /// Whether unknown children are left alone has changed.
    pub ignore_unknown: bool,
    /// The text that it had, where it is a script that has another now.
    pub text_before: Option<TextHash>,
}

impl Applied {
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty() && self.updated.is_empty()
    }
}

/// Make the tree as `wanted`.
pub(super) fn apply(tree: &mut RojoTree, pointers: &mut Pointers, mut wanted: Wanted) -> Applied {
    let texts = std::mem::take(&mut wanted.texts);
    let mut run = Run { tree, pointers, ids: HashMap::new(), kept: Vec::new(), applied: Applied::default() };
    let plan = run.pair(wanted);
    run.remove(plan.removed);
    run.insert(plan.added);
    let ignore_changed = run.update_metadata();
    run.fill_in_added();
    run.update_kept(&ignore_changed);
    run.update_stale();
    for (id, text) in texts {
        run.update_text(id, text);
    }
    run.applied
}

struct Run<'a> {
    tree: &'a mut RojoTree,
    pointers: &'a mut Pointers,
    /// Id in a snapshot → id in the tree.
    ids: HashMap<Ref, Ref>,
    kept: Vec<(Ref, InstanceSnapshot)>,
    applied: Applied,
}

struct Plan {
    removed: Vec<Ref>,
    added: Vec<(Ref, InstanceSnapshot)>,
}

impl Run<'_> {
    fn pair(&mut self, wanted: Wanted) -> Plan {
        let mut plan = Plan { removed: Vec::new(), added: Vec::new() };
        let mut todo: Vec<(Ref, InstanceSnapshot)> = Vec::new();
        let mut siblings: HashMap<Ref, (Vec<Ref>, Vec<InstanceSnapshot>)> = HashMap::new();
        for (id, snapshot) in wanted.replaced {
            match snapshot {
                Some(snapshot) => todo.push((id, snapshot)),
                None => {
                    let parent = self.tree.get_instance(id).map(|instance| instance.parent());
                    if let Some(parent) = parent.filter(Ref::is_some) {
                        siblings.entry(parent).or_default().0.push(id);
                    }
                }
            }
        }
        for (parent, snapshot) in wanted.added {
            siblings.entry(parent).or_default().1.push(snapshot);
        }
        for (parent, (old, new)) in siblings {
            self.match_up(parent, old, new, &mut todo, &mut plan);
        }
        while let Some((id, mut snapshot)) = todo.pop() {
            if snapshot.snapshot_id.is_some() {
                self.ids.insert(snapshot.snapshot_id, id);
            }
            let children = self.tree.get_instance(id).map(|instance| instance.children().to_vec()).unwrap_or_default();
            self.match_up(id, children, std::mem::take(&mut snapshot.children), &mut todo, &mut plan);
            self.kept.push((id, snapshot));
        }
        plan
    }

    /// Pair the children `old` of `parent` with the snapshots `new`.
    fn match_up(
        &self,
        parent: Ref,
        old: Vec<Ref>,
        new: Vec<InstanceSnapshot>,
        pairs: &mut Vec<(Ref, InstanceSnapshot)>,
        plan: &mut Plan,
    ) {
        let mut free: HashMap<(String, Ustr), VecDeque<Ref>> = HashMap::with_capacity(old.len());
        for &id in &old {
            if let Some(instance) = self.tree.get_instance(id) {
                free.entry((instance.name().to_owned(), instance.class_name())).or_default().push_back(id);
            }
        }
        let key = |snapshot: &InstanceSnapshot| (snapshot.name.to_string(), snapshot.class_name);
        let mut others = Vec::new();
        for snapshot in new {
            let twins = free.get_mut(&key(&snapshot));
            match twins.and_then(|twins| twins.remove(self.with_same_text(twins, &snapshot)?)) {
                Some(id) => pairs.push((id, snapshot)),
                None => others.push(snapshot),
            }
        }
        let mut unpaired = Vec::new();
        for snapshot in others {
            match free.get_mut(&key(&snapshot)).and_then(VecDeque::pop_front) {
                Some(id) => pairs.push((id, snapshot)),
                None => unpaired.push(snapshot),
            }
        }
        let left: HashSet<Ref> = free.into_values().flatten().collect();
        let mut left: Vec<Ref> = old.into_iter().filter(|id| left.contains(id)).collect();
        self.pair_renamed(parent, &mut left, &mut unpaired, pairs);
        plan.removed.extend(left);
        plan.added.extend(unpaired.into_iter().map(|snapshot| (parent, snapshot)));
    }

    fn with_same_text(&self, twins: &VecDeque<Ref>, snapshot: &InstanceSnapshot) -> Option<usize> {
        let text = script_text(&snapshot.properties)?;
        let of = |id: Ref| script_text(self.tree.get_instance(id)?.properties());
        twins.iter().position(|&id| of(id) == Some(text))
    }

    /// Pair what went with what came where a file was renamed. Not where a twin makes that a guess.
    fn pair_renamed(
        &self,
        parent: Ref,
        old: &mut Vec<Ref>,
        new: &mut Vec<InstanceSnapshot>,
        pairs: &mut Vec<(Ref, InstanceSnapshot)>,
    ) {
        if old.is_empty() || new.is_empty() {
            return;
        }
        // Text and class → the only holder, or `None` where there are several.
        let mut holders: HashMap<(Ustr, &str), Option<Ref>> = HashMap::new();
        for &id in old.iter() {
            let Some(instance) = self.tree.get_instance(id) else { continue };
            if let Some(text) = script_text(instance.properties()) {
                let holder = holders.entry((instance.class_name(), text));
                holder.and_modify(|only| *only = None).or_insert(Some(id));
            }
        }
        let mut wanted: HashMap<(Ustr, String), usize> = HashMap::new();
        let mut names: HashMap<String, usize> = HashMap::new();
        for snapshot in new.iter() {
            *names.entry(snapshot.name.to_string()).or_default() += 1;
            if let Some(text) = script_text(&snapshot.properties) {
                *wanted.entry((snapshot.class_name, text.to_owned())).or_default() += 1;
            }
        }
        let going: HashSet<Ref> = old.iter().copied().collect();
        let siblings = self.tree.get_instance(parent).map(|parent| parent.children()).unwrap_or_default();
        for sibling in siblings.iter().filter(|id| !going.contains(id)).filter_map(|&id| self.tree.get_instance(id)) {
            *names.entry(sibling.name().to_owned()).or_default() += 1;
        }
        for snapshot in std::mem::take(new) {
            let text = script_text(&snapshot.properties).unwrap_or_default();
            let alone = wanted.get(&(snapshot.class_name, text.to_owned())) == Some(&1)
                && names.get(snapshot.name.as_ref()) == Some(&1);
            match holders.get(&(snapshot.class_name, text)).copied().flatten().filter(|_| alone) {
                Some(id) => {
                    old.retain(|other| *other != id);
                    pairs.push((id, snapshot));
                }
                None => new.push(snapshot),
            }
        }
    }

    fn remove(&mut self, removed: Vec<Ref>) {
        for id in removed {
            // It may have gone with what was above it.
            if self.tree.get_instance(id).is_none() {
                continue;
            }
            let below: Vec<Ref> = self.tree.descendants(id).map(|instance| instance.id()).collect();
            for &gone in &below {
                self.pointers.forget(gone);
            }
            self.applied.gone.extend(below);
            self.tree.remove(id);
            self.applied.removed.push(id);
        }
    }

    fn insert(&mut self, added: Vec<(Ref, InstanceSnapshot)>) {
        let mut todo: VecDeque<(Ref, InstanceSnapshot)> = added.into();
        while let Some((parent, mut snapshot)) = todo.pop_front() {
            if self.tree.get_instance(parent).is_none() {
                continue;
            }
            refs::name_by_attribute(&mut snapshot);
            let children = std::mem::take(&mut snapshot.children);
            let snapshot_id = snapshot.snapshot_id;
            let id = self.tree.insert_instance(parent, snapshot);
            if snapshot_id.is_some() {
                self.ids.insert(snapshot_id, id);
            }
            self.applied.added.push(id);
            todo.extend(children.into_iter().map(|child| (id, child)));
        }
    }

    /// First of all, since it decides which names and paths lead to which instance. Returns those
    /// in which a visible part of it changed.
    fn update_metadata(&mut self) -> HashSet<Ref> {
        let mut visible = HashSet::new();
        for (id, snapshot) in &mut self.kept {
            refs::name_by_attribute(snapshot);
            let new = std::mem::take(&mut snapshot.metadata);
            let Some(old) = self.tree.get_metadata(*id) else { continue };
            if old.ignore_unknown_instances != new.ignore_unknown_instances {
                visible.insert(*id);
            }
            if *old != new {
                self.tree.update_metadata(*id, new);
            }
        }
        visible
    }

    fn fill_in_added(&mut self) {
        for &id in &self.applied.added {
            let Some(instance) = self.tree.get_instance(id) else { continue };
            self.pointers.note(id, instance.properties());
            let has_refs = |value: &Variant| matches!(value, Variant::Ref(_));
            if !instance.properties().values().any(has_refs) {
                continue; // pointers are resolved in `update_stale`
            }
            let mut properties = instance.properties().clone();
            refs::translate(&self.ids, &mut properties);
            if let Some(mut instance) = self.tree.get_instance_mut(id) {
                *instance.properties_mut() = properties;
            }
        }
    }

    fn update_kept(&mut self, ignore_changed: &HashSet<Ref>) {
        for (id, snapshot) in std::mem::take(&mut self.kept) {
            let mut properties = snapshot.properties;
            self.pointers.note(id, &properties);
            refs::translate(&self.ids, &mut properties);
            self.pointers.resolve(self.tree, id, &mut properties);
            migrate_pivot(snapshot.class_name, &mut properties);
            let Some(instance) = self.tree.get_instance(id) else { continue };
            let update = Update {
                id,
                name: (snapshot.name != instance.name()).then(|| snapshot.name.into_owned()),
                class: (snapshot.class_name != instance.class_name()).then_some(snapshot.class_name),
                properties: changed(instance.properties(), &properties),
                ignore_unknown: ignore_changed.contains(&id),
                text_before: None,
            };
            self.commit(update);
        }
    }

    /// References by name whose target came, went or changed its id.
    fn update_stale(&mut self) {
        let new: HashSet<Ref> = self.applied.added.iter().copied().collect();
        for (id, property, value) in self.pointers.stale(self.tree) {
            if new.contains(&id) {
                self.set(id, property, value); // reported whole
                continue;
            }
            let properties = UstrMap::from_iter([(property, value)]);
            self.commit(Update { id, name: None, class: None, properties, ignore_unknown: false, text_before: None });
        }
    }

    fn update_text(&mut self, id: Ref, text: String) {
        let Some(instance) = self.tree.get_instance(id) else { return };
        let target = UstrMap::from_iter([(ustr("Source"), Variant::String(text))]);
        let properties = target.into_iter().filter(|(key, value)| instance.properties().get(key) != Some(value));
        let properties = properties.map(|(key, value)| (key, Some(value))).collect();
        self.commit(Update { id, name: None, class: None, properties, ignore_unknown: false, text_before: None });
    }

    fn set(&mut self, id: Ref, property: Ustr, value: Option<Variant>) {
        if let Some(mut instance) = self.tree.get_instance_mut(id) {
            match value {
                Some(value) => instance.properties_mut().insert(property, value),
                None => instance.properties_mut().remove(&property),
            };
        }
    }

    fn commit(&mut self, mut update: Update) {
        if update.name.is_none() && update.class.is_none() && update.properties.is_empty() && !update.ignore_unknown {
            return;
        }
        if update.properties.contains_key(&ustr("Source")) {
            let before = self.tree.get_instance(update.id);
            update.text_before = before.and_then(|instance| wire::source(&instance)).map(TextHash::of);
        }
        if let Some(mut instance) = self.tree.get_instance_mut(update.id) {
            if let Some(name) = &update.name {
                instance.name_mut().clone_from(name);
            }
            if let Some(class) = update.class {
                instance.set_class_name(class.as_str());
            }
        }
        for (property, value) in &update.properties {
            self.set(update.id, *property, value.clone());
        }
        self.applied.updated.push(update);
    }
}

/// The text of a script, unless it is empty.
fn script_text(properties: &UstrMap<Variant>) -> Option<&str> {
    match properties.get(&ustr("Source")) {
        Some(Variant::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

fn changed(old: &UstrMap<Variant>, new: &UstrMap<Variant>) -> UstrMap<Option<Variant>> {
    let set = new
        .iter()
        .filter(|(key, value)| !old.get(key).is_some_and(|before| same(before, value)))
        .map(|(key, value)| (*key, Some(value.clone())));
    let unset = old.keys().filter(|key| !new.contains_key(key)).map(|key| (*key, None));
    set.chain(unset).collect()
}

/// Equal, where NaN equals itself: else a model that holds one would change for ever.
fn same(a: &Variant, b: &Variant) -> bool {
    use VariantType::{CFrame, Color3, Float32, Float64, NumberRange, Rect, UDim, UDim2, Vector2, Vector3};
    let plain_floats =
        [Float32, Float64, Vector2, Vector3, CFrame, Color3, NumberRange, Rect, UDim, UDim2].contains(&a.ty());
    a == b || (plain_floats && format!("{a:?}") == format!("{b:?}"))
}

/// What the tree adds to every new instance of these classes, librojo's work-around for pivots;
/// an instance that becomes or stays one needs it too.
fn migrate_pivot(class: Ustr, properties: &mut UstrMap<Variant>) {
    let models = ["Model", "Actor", "Tool", "HopperBin", "Flag", "WorldModel", "Workspace", "Status"];
    if models.contains(&class.as_str()) {
        properties.entry(ustr("NeedsPivotMigration")).or_insert(Variant::Bool(false));
    }
}
