//! What the journal has to say to people and agents.

use serde_json::Value;

use super::answers::Problem;
use crate::core::journal::Entry;

/// How many scripts a problem names.
const MAX_NAMED: usize = 5;

/// A run whose end nobody saw.
pub(super) fn cut_off_problem(id: u64, entry: &Value) -> Problem {
    let next = next_step(id, entry["undoes"].as_u64());
    let Ok(said) = serde_json::from_value::<Entry>(entry.clone()) else {
        return Problem { what: format!("journal entry {id} was cut off, and cannot be read"), next };
    };
    let by = said.who.as_ref().map(|who| format!(", by {who},")).unwrap_or_default();
    let Entry { what, place, changes, .. } = said;
    let mut named: Vec<&str> = changes.iter().take(MAX_NAMED).map(|line| line.path.as_str()).collect();
    if changes.len() > MAX_NAMED {
        named.push("…");
    }
    let (count, named) = (changes.len(), named.join(", "));
    Problem {
        what: format!("{what} {id} of {place}{by} was cut off: of its {count} change(s) some may be done: {named}"),
        next,
    }
}

fn next_step(id: u64, undoes: Option<u64>) -> String {
    let texts = "The texts of both sides, before and after, are in the journal";
    match undoes {
        Some(undone) => format!(
            "call undo with `change` {undone}: it goes on taking that back; or call sync: it does what is left and \
             lists what it leaves alone. {texts}"
        ),
        None => format!(
            "call sync: it does what is left and lists what it leaves alone; or call undo with `change` {id}: it takes \
             back what was done. {texts}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_read_is_named_all_the_same() {
        let problem = cut_off_problem(7, &json!(null));
        assert!(problem.what.contains("entry 7") && problem.next.contains("`change` 7"), "{problem:?}");
    }
}
