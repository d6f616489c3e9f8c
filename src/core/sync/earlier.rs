//! The part of a run that asks which texts of Studio's are old ones of their files, where no base
//! says so. Those are read first: git names a file by its bytes, and Studio's text may stand in it with
//! other line endings.

use std::collections::{BTreeSet, HashMap};

use super::{FETCHES, Run, Step, decision::NodeView};
use crate::core::{
    agreement::Agreement,
    ids::{NodeId, OpId},
    protocol::{Fact, FactKind},
    text::{ScriptText, TextHash},
};

/// At most so many texts are read for this. Of the others only the usual form is looked for.
const MOST_READ: usize = 500;

/// A text that Studio has and that its file may have had earlier.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// The file, relative to the project with `/`.
    pub path: String,
    /// Of the text.
    pub hash: TextHash,
}

/// A question about one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Which.
    pub version: Version,
    /// What git calls the same text with other line endings, or with a byte order mark.
    pub forms: Vec<TextHash>,
}

/// What is going to be asked, and the texts that were read for it.
#[derive(Debug, Default)]
pub(super) struct Questions {
    asked: Vec<(NodeId, Asked)>,
    to_read: Vec<OpId>,
    reading: usize,
    texts: HashMap<OpId, String>,
}

impl Run {
    /// Ask about what nothing else says, or go on.
    pub(super) fn ask_history(&mut self, agreement: &mut Agreement) -> Step {
        let asked = match &self.recalled {
            None if !self.args.unread => without_base(&self.facts, &self.views, agreement),
            _ => Vec::new(),
        };
        if asked.is_empty() {
            return self.decided(agreement);
        }
        let mut to_read: Vec<OpId> = asked.iter().take(MOST_READ).map(|(id, _)| OpId::from(*id)).collect();
        to_read.reverse();
        self.questions = Questions { asked, to_read, ..Questions::default() };
        self.read_more()
    }

    fn read_more(&mut self) -> Step {
        let room = FETCHES - self.questions.reading.min(FETCHES);
        let next: Vec<OpId> = (0..room).map_while(|_| self.questions.to_read.pop()).collect();
        self.questions.reading += next.len();
        if self.questions.reading > 0 {
            return Step::Read(next);
        }
        Step::History(self.questions.asked.iter().map(|(_, asked)| asked.clone()).collect())
    }

    /// A text that was read for a question; gives it back if it is none.
    pub(super) fn note_read<E>(&mut self, of: &OpId, text: Result<String, E>) -> Result<Step, Result<String, E>> {
        if self.questions.reading == 0 {
            return Err(text);
        }
        self.questions.reading -= 1;
        let asked = self.questions.asked.iter_mut().find(|(id, _)| OpId::from(*id) == *of);
        if let (Some((_, asked)), Ok(text)) = (asked, text)
            && TextHash::of(&text) == asked.version.hash
        {
            *asked = asked.version.clone().ask(&text);
            self.questions.texts.insert(of.clone(), text);
        }
        Ok(self.read_more())
    }

    /// What of it their files had before.
    pub fn knows_history(&mut self, earlier: BTreeSet<Version>, agreement: &mut Agreement) -> Step {
        self.rules.earlier = earlier;
        self.decided(agreement)
    }

    /// The text of `of` was read for a question.
    pub(super) fn has_read(&self, of: &OpId) -> bool {
        self.questions.texts.contains_key(of)
    }

    /// Give it to the decision that needs it.
    pub(super) fn take_read(&mut self, of: &OpId) {
        if let Some(text) = self.questions.texts.remove(of) {
            self.take_fetched(of, Ok(text));
        }
    }
}

impl Version {
    /// The question whether its file had it, in whatever form. `text` is the version's.
    pub fn ask(self, text: &str) -> Asked {
        let text = ScriptText::new(text).into_string();
        let crlf = text.replace('\n', "\r\n");
        let marked = [&text, &crlf].map(|text| format!("\u{feff}{text}"));
        let forms = std::iter::once(&crlf).chain(&marked).map(|form| TextHash::of_exactly(form));
        Asked { forms: forms.filter(|form| *form != self.hash).collect(), version: self }
    }
}

/// Texts of Studio's of which nothing but the history of their files could say that they are old.
fn without_base(facts: &[Fact], views: &HashMap<NodeId, NodeView>, agreement: &Agreement) -> Vec<(NodeId, Asked)> {
    let mut all: Vec<(NodeId, Asked)> = facts
        .iter()
        .filter(|fact| fact.kind == FactKind::Differs && !fact.is_draft)
        .filter_map(|fact| {
            let (id, hash) = (fact.id?, fact.studio_hash?);
            let path = views.get(&id)?.fs_path.clone()?;
            let asked = Asked { version: Version { path, hash }, forms: Vec::new() };
            agreement.standing(id).last.is_none().then_some((id, asked))
        })
        .collect();
    all.sort_by(|(_, one), (_, other)| one.version.cmp(&other.version));
    all
}
