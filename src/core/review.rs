//! A review: what a run found, put to a person who chooses for each change.
//!
//! The same list goes to every face that can ask (Studio's window, the agent's client, the HTTP
//! API), and the first answer counts. An answer is no order to write: it becomes wishes of another
//! run, which compares anew. Each wish carries the digest of what was shown of both sides, so what a
//! person has not seen is never overwritten. Who is asked, and when, is decided in `bridge/reviews.rs`.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{
    ids::{OpId, ReviewId},
    protocol::Fact,
    sync::{Change, ChangeResult, Direction, NodeView},
    text::TextHash,
};

/// What a person wants of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// What is proposed.
    Accept,
    /// The files win.
    Push,
    /// Studio wins.
    Pull,
    /// It is left alone.
    Skip,
}

/// A choice for one change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeChoice {
    /// The change's `id`, or its `tempId` where it has no `id`.
    pub id: OpId,
    /// What to do about it.
    pub choice: Choice,
}

/// What a person answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewAnswer {
    /// For some of the changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<ChangeChoice>,
    /// For all others; without it they are left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<Choice>,
}

/// Where a person can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Face {
    /// In the window of Studio's plugin.
    Studio,
    /// By the client of the agent that called.
    Agent,
    /// Over the HTTP API, which the browser page uses.
    Page,
}

impl Face {
    /// Where that is.
    pub fn place(self) -> &'static str {
        match self {
            Self::Studio => "in Studio",
            Self::Agent => "in the agent's client",
            Self::Page => "on the page",
        }
    }
}

/// Digests of all that was compared of each difference, on both sides.
pub type Seen = HashMap<OpId, TextHash>;

/// A list of changes that a person is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// Names it.
    pub id: ReviewId,
    /// The Studio it is about.
    pub studio: String,
    /// No run waits for the answer.
    pub standing: bool,
    /// What is asked about.
    pub changes: Vec<Change>,
    /// What was seen of it.
    pub seen: Seen,
}

/// What a person wants, for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    picks: HashMap<OpId, Pick>,
    /// What was not chosen is none of the run's business.
    only: bool,
}

/// What is wanted of one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// This.
    pub choice: Choice,
    /// What was shown of it: a node that differs in its text and in its properties is two changes.
    pub shown: Vec<Change>,
}

/// The name of a change in an answer.
pub fn name_of(change: &Change) -> Option<OpId> {
    change.id.map(OpId::from).or_else(|| change.temp_id.clone().map(OpId::from))
}

/// All names that differences of this change have: a rename is two of them.
fn names_of(change: &Change) -> impl Iterator<Item = OpId> {
    change.id.map(OpId::from).into_iter().chain(change.temp_id.clone().map(OpId::from))
}

/// It is proposed to do something about it.
fn is_proposed(change: &Change) -> bool {
    change.direction != Direction::Unresolved && change.result != ChangeResult::Unresolved
}

impl Review {
    /// What `answer` says of each change.
    ///
    /// # Errors
    /// The text names the field that is wrong. Nothing of such an answer counts.
    pub fn chosen(&self, answer: &ReviewAnswer) -> Result<Chosen, String> {
        if answer.choices.is_empty() && answer.all.is_none() {
            return Err("give `choices`, or `all`, or both".to_owned());
        }
        let mut by_name: HashMap<OpId, Vec<Change>> = HashMap::new();
        for change in &self.changes {
            if let Some(name) = name_of(change) {
                by_name.entry(name).or_default().push(change.clone());
            }
        }
        let mut named: HashMap<&OpId, Choice> = HashMap::new();
        for (at, ChangeChoice { id, choice }) in answer.choices.iter().enumerate() {
            let Some(changes) = by_name.get(id) else {
                return Err(format!("choices[{at}].id: nothing that is shown has the id {id}"));
            };
            if *choice == Choice::Accept && !changes.iter().any(is_proposed) {
                let path = &changes[0].path;
                return Err(format!("choices[{at}].choice: nothing is proposed for {path}; push, pull or skip it"));
            }
            if named.insert(id, *choice).is_some() {
                return Err(format!("choices[{at}].id: {id} is there twice"));
            }
        }
        let mut picks = HashMap::new();
        for (name, shown) in by_name {
            let choice = named.get(&name).copied().or(answer.all).unwrap_or(Choice::Skip);
            let choice = simplified(choice, &shown);
            if self.standing && choice == Choice::Skip {
                continue;
            }
            let names: Vec<OpId> = shown.iter().flat_map(names_of).collect();
            let pick = Pick { choice, shown };
            picks.extend(names.into_iter().map(|name| (name, pick.clone())));
        }
        Ok(Chosen { picks, only: self.standing })
    }
}

/// What is proposed anyway is accepted, and nothing can be accepted where nothing is proposed.
fn simplified(choice: Choice, shown: &[Change]) -> Choice {
    let all = |direction: Direction| shown.iter().all(|one| is_proposed(one) && one.direction == direction);
    match choice {
        Choice::Push if all(Direction::Push) => Choice::Accept,
        Choice::Pull if all(Direction::Pull) => Choice::Accept,
        Choice::Accept if !shown.iter().any(is_proposed) => Choice::Skip,
        _ => choice,
    }
}

impl Chosen {
    /// Everything is to be left alone.
    pub fn is_nothing(&self) -> bool {
        self.picks.values().all(|pick| pick.choice == Choice::Skip)
    }

    /// Only what was chosen is the run's business.
    pub fn is_only(&self) -> bool {
        self.only
    }

    /// What is wanted of `fact`; `None`: it was not shown.
    pub fn of(&self, fact: &Fact) -> Option<&Pick> {
        self.picks.get(&name_of_fact(fact)?)
    }

    /// What is wanted of a change.
    pub fn of_change(&self, change: &Change) -> Option<&Pick> {
        self.picks.get(&name_of(change)?)
    }

    /// What was chosen and none of `facts` is about, by the changes' names.
    pub fn without(&self, facts: &[Fact]) -> Vec<OpId> {
        let there: HashSet<OpId> = facts.iter().filter_map(name_of_fact).collect();
        let mut names: Vec<OpId> = self
            .picks
            .values()
            .filter(|pick| pick.choice != Choice::Skip)
            .filter(|pick| !pick.shown.iter().flat_map(names_of).any(|name| there.contains(&name)))
            .filter_map(|pick| name_of(pick.shown.first()?))
            .collect();
        names.sort();
        names.dedup();
        names
    }
}

fn name_of_fact(fact: &Fact) -> Option<OpId> {
    fact.id.map(OpId::from).or_else(|| fact.temp_id.clone().map(OpId::from))
}

/// The digest of what is known of a difference: the plugin's fact and the tree's node.
pub fn digest(fact: &Fact, view: Option<&NodeView>) -> TextHash {
    // What else stands below the parent, and how Studio words the path, is not what was shown.
    let fact = Fact { siblings: None, path: String::new(), ..fact.clone() };
    let mut text = serde_json::to_string(&fact).expect("a fact is plain data");
    if let Some(view) = view {
        let properties = &view.properties;
        text.push_str(&format!("\n{:?} {:?} {:?} {properties:?}", view.class_name, view.fs_path, view.hash));
        text.push_str(&serde_json::to_string(&view.subtree).expect("a node is plain data"));
    }
    TextHash::of(&text)
}

/// What a face asks.
#[derive(Debug, Clone, PartialEq)]
pub enum ReviewAsk {
    /// All reviews. Who asks for them shows them to somebody.
    List,
    /// One.
    One(ReviewId),
    /// Studio's text of a change.
    Text {
        /// Of which review.
        review: ReviewId,
        /// Which change.
        id: OpId,
    },
    /// A person has answered.
    Answer {
        /// Which review.
        review: ReviewId,
        /// Where.
        by: Face,
        /// What.
        answer: ReviewAnswer,
    },
    /// The agent's client does not show it any more.
    Withdraw(ReviewId),
}

/// What becomes of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewReply {
    /// It counts.
    Taken,
    /// It does not say what is to be done; nothing of it counts.
    Wrong(String),
    /// It comes too late, for this reason.
    Over(String),
    /// There is no such review.
    Unknown,
}

/// How a review is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewState {
    /// Names it.
    pub id: ReviewId,
    /// The Studio it is about.
    pub studio: String,
    /// No call waits for the answer.
    pub standing: bool,
    /// `waiting`, `running` (an answer is being carried out), or `over`.
    pub state: String,
    /// What is asked about.
    pub changes: Vec<Change>,
    /// How long an answer counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
    /// Who answered, or why nobody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether all that was chosen was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// What came of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}
