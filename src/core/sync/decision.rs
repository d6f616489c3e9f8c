//! What a decision is made of: what Studio does, what is written, and what both sides agree then.

use std::collections::BTreeSet;

use super::{
    earlier::Version,
    receipt::{Change, ChangeResult},
    writes::FileWrite,
};
use crate::core::{
    agreement::Agreement,
    ids::{NodeId, OpId},
    merge::{Base, Side},
    paths::InstanceKey,
    protocol::{MAX_FRAME_BYTES, NewNode, PlanOp},
    text::TextHash,
    values::Properties,
};

/// A node as the tree has it at the moment of the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// Its parent; `None` for the root.
    pub parent: Option<NodeId>,
    /// Names from the root, joined with dots.
    pub path: String,
    /// Its class.
    pub class_name: String,
    /// Its file, relative to the project with `/`.
    pub fs_path: Option<String>,
    /// For scripts: the text.
    pub source: Option<String>,
    /// For scripts: the hash of the text.
    pub hash: Option<TextHash>,
    /// What the files specify of it.
    pub properties: Properties,
    /// The node with all below it, where that was asked for.
    pub subtree: Option<NewNode>,
}

/// What a run may do unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Nobody else edits this place.
    pub alone: bool,
    /// The caller agreed to any number of removals.
    pub allow_removals: bool,
    /// Studio's changes may go to the files.
    pub takes: bool,
    /// A person was seen to delete these in Studio.
    pub deleted: Vec<NodeId>,
    /// What a person was seen to make, rename or move in Studio is followed.
    pub follows: bool,
    /// Their files had these before.
    pub earlier: BTreeSet<Version>,
}

impl Rules {
    /// Studio's text may be taken over: it changed under our eyes, and by this Studio's person.
    pub fn may_take(&self, base: &Base) -> bool {
        self.alone && self.takes && base.seen
    }

    /// Why not.
    pub fn why_not(&self) -> &'static str {
        match self {
            Self { alone: false, .. } => "and other people edit this place",
            Self { takes: false, .. } => "and only the files are live",
            _ => "before it connected",
        }
    }
}

/// A change and how it is made. Neither step nor file: unresolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// For the receipt.
    pub change: Change,
    /// For the plugin.
    pub op: Option<PlanOp>,
    /// For the writer of files.
    pub write: Option<FileWrite>,
    /// What has to be known before.
    pub needs: Option<Needs>,
    /// What both sides have once it is done.
    pub then: Vec<Then>,
    /// Texts that it replaces or removes, for the journal.
    pub keeps: Vec<String>,
    /// A removal of scripts in Studio that nobody asked for one by one.
    pub removal: Option<Removal>,
    /// Its place in the journal's entry.
    pub line: Option<usize>,
    /// Where its instance stands, if that is not the place of a node.
    pub place: Option<Place>,
    /// Its key, where neither a node nor `place` gives it.
    pub key: Option<InstanceKey>,
    /// Where its instance stood before it was renamed.
    pub was: Option<Place>,
    /// Its file is written only once this step is done.
    pub after: Option<OpId>,
    /// The instance that goes, in Studio or with its files, for the journal.
    pub lost: Lost,
}

/// What is known of an instance that goes.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Lost {
    /// Nothing, or nothing goes.
    #[default]
    Nothing,
    /// Studio is to be asked.
    Wanted,
    /// This.
    Known(Box<NewNode>),
}

/// Where an instance stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Below which node.
    pub parent: NodeId,
    /// Its name.
    pub name: String,
}

/// A text of Studio's that has to be fetched first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    /// Whose.
    pub of: OpId,
    /// The text that was decided on.
    pub hash: TextHash,
    /// Then it is merged with the file's, over this base.
    pub merge: Option<TextHash>,
}

/// What both sides have once a change is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Then {
    /// This text.
    Agree(NodeId, TextHash),
    /// This text, and nothing before.
    Made(NodeId, TextHash),
    /// These properties.
    Properties(NodeId, Properties),
    /// These properties, and no such instance before.
    MadeWith(NodeId, Properties),
    /// The properties that they had before a run that is taken back (`None`: nothing was known).
    RestoreProperties(NodeId, Option<Properties>),
    /// No instance where there was one that is no script, or these properties of it again.
    PropertiesGone(InstanceKey, Option<Properties>),
    /// Nothing.
    Absent(InstanceKey),
    /// What was at `from` is this node.
    Renamed {
        /// Its key before.
        from: InstanceKey,
        /// What it is now.
        id: NodeId,
        /// With this text.
        hash: TextHash,
    },
    /// What was at `from`, and all below it, is at `to`.
    Moved {
        /// Its key before.
        from: InstanceKey,
        /// Its key now.
        to: InstanceKey,
    },
    /// What they had before a run that is taken back.
    Restore {
        /// Of this script.
        of: Restored,
        /// `None`: nothing was known.
        base: Option<Side>,
        /// What the run had made of it.
        undone: Side,
    },
    /// This text, at a place that the tree may not have yet.
    At {
        /// Below this node.
        parent: NodeId,
        /// Its name.
        name: String,
        /// Its class.
        class: String,
        /// The text.
        hash: TextHash,
    },
}

/// Whose earlier base comes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    /// That of a node.
    Node(NodeId),
    /// That of an instance, whether or not the tree has it by then.
    At(InstanceKey),
}

/// How much a removal removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Below which node.
    pub parent: NodeId,
    /// How many children that has in Studio.
    pub siblings: Option<u32>,
    /// How many scripts go.
    pub scripts: usize,
}

impl Needs {
    /// Only the text.
    pub fn text(of: OpId, hash: TextHash) -> Self {
        Self { of, hash, merge: None }
    }
}

impl Decision {
    /// Nothing is done about `change` so far.
    pub fn new(change: Change) -> Self {
        let (then, keeps) = (Vec::new(), Vec::new());
        Self {
            change,
            op: None,
            write: None,
            needs: None,
            then,
            keeps,
            removal: None,
            line: None,
            place: None,
            key: None,
            was: None,
            after: None,
            lost: Lost::Nothing,
        }
    }

    /// It is left to somebody else.
    pub fn unresolved(change: Change, reason: impl Into<String>) -> Self {
        Self::new(change.unresolved(reason))
    }

    pub(super) fn does(self, op: PlanOp) -> Self {
        Self { op: Some(op), ..self }
    }

    pub(super) fn writes(self, write: FileWrite) -> Self {
        Self { write: Some(write), ..self }
    }

    pub(super) fn needs(self, needs: Needs) -> Self {
        Self { needs: Some(needs), ..self }
    }

    pub(super) fn keeps(mut self, text: &str) -> Self {
        self.keeps.push(text.to_owned());
        self
    }

    pub(super) fn then(mut self, then: Then) -> Self {
        self.then.push(then);
        self
    }

    pub(super) fn restores(self, of: Restored, base: Option<Side>, undone: Side) -> Self {
        self.then(Then::Restore { of, base, undone })
    }

    pub(super) fn at(self, parent: NodeId, name: &str) -> Self {
        Self { place: Some(Place { parent, name: name.to_owned() }), ..self }
    }

    /// This goes.
    pub(super) fn loses(self, node: &NewNode) -> Self {
        Self { lost: Lost::Known(Box::new(node.clone())), ..self }
    }

    /// It is done, or going to be.
    pub fn is_resolved(&self) -> bool {
        self.op.is_some() || self.write.is_some()
    }

    /// It is for somebody else to decide.
    pub(super) fn is_left(&self) -> bool {
        self.change.result == ChangeResult::Unresolved
    }

    /// It is not done after all.
    pub(super) fn drop_it(&mut self, reason: impl Into<String>) {
        let change = self.change.clone();
        *self = Self::unresolved(change, reason);
    }

    /// What no frame can carry fails by itself, and the rest goes on.
    pub(super) fn check_size(&mut self) {
        if let Some(bytes) = self.op.as_ref().and_then(PlanOp::oversize) {
            self.drop_it(format!(
                "it has {bytes} bytes on the way to Studio, and at most {MAX_FRAME_BYTES} can be sent: make it smaller, \
                 or several scripts of it"
            ));
            self.change.result = ChangeResult::Failed;
        }
    }

    /// The text that is known now.
    pub(super) fn set_text(&mut self, known: &str) {
        if let Some(PlanOp::SetSource { source, .. }) = &mut self.op {
            known.clone_into(source);
        }
        if let Some(FileWrite::Replace { text, .. } | FileWrite::Create { text, .. } | FileWrite::Move { text, .. }) =
            &mut self.write
        {
            *text = Some(known.to_owned());
        }
    }

    /// Both sides have what was decided.
    pub(super) fn agree(&self, agreement: &mut Agreement) {
        for then in &self.then {
            match then {
                Then::Agree(id, hash) => agreement.agree(*id, *hash),
                Then::Made(id, hash) => {
                    agreement.was_absent(*id);
                    agreement.agree(*id, *hash);
                }
                Then::Properties(id, properties) => agreement.agree_properties(*id, properties),
                Then::MadeWith(id, properties) => agreement.made_with(*id, properties),
                Then::RestoreProperties(id, base) => agreement.restore_properties(*id, base.as_ref()),
                Then::PropertiesGone(key, properties) => agreement.agree_properties_gone(key, properties.as_ref()),
                Then::Absent(key) => agreement.agree_gone(key, None),
                Then::Restore { of: Restored::Node(id), base, undone } => agreement.restore(*id, *base, *undone),
                Then::Restore { of: Restored::At(key), base, undone } => agreement.restore_at(key, *base, *undone),
                Then::Renamed { from, id, hash } => agreement.renamed(from, *id, *hash),
                Then::Moved { from, to } => agreement.moved(from, to),
                Then::At { parent, name, class, hash } => agreement.agree_at(*parent, name, class, *hash),
            }
        }
    }
}
