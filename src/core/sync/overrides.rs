//! Decisions that the caller took beforehand, each with guards.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::receipt::Rejected;
use crate::core::{
    ids::OpId,
    protocol::Fact,
    text::TextHash,
    values::{is_close, short},
};

/// Which side wins for one difference, as long as Studio is as the caller saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Override {
    /// The change's id, or tempId
    #[schemars(with = "String")]
    pub id: OpId,
    /// push: the files win; pull: Studio wins
    pub direction: OverrideDirection,
    /// Studio's hash as a receipt named it; it must still hold
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub studio_hash: Option<String>,
    /// Properties in Studio as a receipt named them; they must still hold
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_properties: Option<Map<String, Value>>,
}

/// Which side wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OverrideDirection {
    /// The files.
    Push,
    /// Studio.
    Pull,
}

/// What is wanted of one script, with the texts that both sides must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// Which.
    pub id: OpId,
    /// What both sides get.
    pub take: Forced,
    /// Guard: the file's text.
    pub disk: Option<TextHash>,
    /// Guard: Studio's.
    pub studio: Option<TextHash>,
}

/// Which side wins by the caller's will.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forced {
    /// The files'.
    Push,
    /// Studio's.
    Pull,
    /// Neither: both get this text.
    Text(String),
}

/// The overrides of a run, as they are used up.
#[derive(Debug, Clone, Default)]
pub(super) struct Overrides {
    by_id: HashMap<OpId, Override>,
    resolution: Option<Resolution>,
    order: Vec<OpId>,
    rejected: Vec<Rejected>,
}

impl Override {
    /// Without guards.
    pub fn new(id: impl Into<OpId>, direction: OverrideDirection) -> Self {
        Self { id: id.into(), direction, studio_hash: None, expected_properties: None }
    }

    fn objection(&self, fact: &Fact) -> Option<String> {
        for (name, wanted) in self.expected_properties.iter().flatten() {
            // A receipt shortens long texts.
            let there = fact.properties.get(name);
            if !there.is_some_and(|there| is_close(there, wanted) || is_close(&short(there), wanted)) {
                let there = there.map_or_else(|| "as the file has it".to_owned(), Value::to_string);
                return Some(format!("{name} in Studio is not {wanted}, but {there}"));
            }
        }
        let there = fact.studio_hash.map(|hash| hash.to_string());
        let wanted = self.studio_hash.as_ref().filter(|wanted| Some(*wanted) != there.as_ref())?;
        Some(format!("Studio's text is not {wanted}, but {}", there.as_deref().unwrap_or("none")))
    }
}

impl Resolution {
    fn objection(&self, fact: &Fact, disk: Option<TextHash>) -> Option<String> {
        let words = |hash: Option<TextHash>| hash.map_or_else(|| "none".to_owned(), |hash| hash.to_string());
        if self.studio != fact.studio_hash {
            return Some(format!("Studio's text is not {}, but {}", words(self.studio), words(fact.studio_hash)));
        }
        (self.disk != disk).then(|| format!("the file's text is not {}, but {}", words(self.disk), words(disk)))
    }
}

impl Overrides {
    pub fn new(all: Vec<Override>, resolution: Option<Resolution>) -> Self {
        let order = all.iter().map(|one| &one.id).chain(resolution.iter().map(|one| &one.id)).cloned().collect();
        let by_id = all.into_iter().map(|one| (one.id.clone(), one)).collect();
        Self { by_id, resolution, order, rejected: Vec::new() }
    }

    /// What the caller wants for `fact`.
    ///
    /// # Errors
    /// Its guards do not hold: then nothing is to be done about it at all.
    pub fn take(&mut self, fact: &Fact, disk: Option<TextHash>) -> Result<Option<Forced>, String> {
        let Some(id) = fact.id.map(OpId::from).or_else(|| fact.temp_id.clone().map(OpId::from)) else {
            return Ok(None);
        };
        let (objection, forced) = if let Some(wanted) = self.resolution.take_if(|wanted| wanted.id == id) {
            (wanted.objection(fact, disk), wanted.take)
        } else {
            let Some(wanted) = self.by_id.remove(&id) else { return Ok(None) };
            let forced = match wanted.direction {
                OverrideDirection::Push => Forced::Push,
                OverrideDirection::Pull => Forced::Pull,
            };
            (wanted.objection(fact), forced)
        };
        let Some(reason) = objection else { return Ok(Some(forced)) };
        self.rejected.push(Rejected { id: id.to_string(), reason: reason.clone() });
        Err(format!("its override was rejected: {reason}"))
    }

    /// Those that no difference was found for are rejected as well.
    pub fn finish(self) -> Vec<Rejected> {
        let Self { by_id, resolution, order, mut rejected } = self;
        let is_left = |id: &OpId| by_id.contains_key(id) || resolution.as_ref().is_some_and(|one| one.id == *id);
        rejected.extend(order.into_iter().filter(is_left).map(|id| Rejected {
            id: id.to_string(),
            reason: "nothing that differs has this id (a dry run lists the ids)".to_owned(),
        }));
        rejected
    }
}
