//! What a command shows a person: aligned lines, with colour on a terminal only.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use serde_json::{Map, Value};

use super::client::as_flags;
use crate::core::{
    sync::{Change, ChangeResult, Receipt},
    text::{for_terminal, word},
};
use crate::pairing::{PairingReport, RefusedStudio};

/// A cell wider than this does not widen its column.
const WIDEST: usize = 64;

/// The counts of a receipt that are worth a word, in this order.
const COUNTS: [&str; 7] = ["pushed", "pulled", "merged", "removed", "renamed", "unresolved", "failed"];

/// A sync's receipt: a line for each change, then what it came to. `structure` is the whole answer. Whether
/// its Studio is still there to take it back.
pub(super) fn receipt(receipt: &Receipt, structure: &Value, can_undo: bool) -> String {
    let rows: Vec<(Style, [String; 5])> = receipt.changes.iter().map(row).collect();
    let lines = aligned(&rows);
    let mut text: String =
        lines.into_iter().zip(&receipt.changes).map(|(line, change)| line + &conflict(change)).collect();
    let left = structure["total"].as_u64().unwrap_or_default().saturating_sub(receipt.changes.len() as u64);
    if left > 0 {
        text.push_str(&format!("… and {left} more; name some of them with --paths to see them\n"));
    }
    for problem in structure["problems"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        text.push_str(&format!("problem: {}\n", for_terminal(problem)));
    }
    text.push_str(&outcome(receipt, structure, can_undo));
    text
}

fn row(change: &Change) -> (Style, [String; 5]) {
    let result = match change.result {
        ChangeResult::Done | ChangeResult::Unresolved => String::new(),
        result => word(&result),
    };
    let reason = match change.reason.as_deref() {
        Some(reason) => as_flags(reason),
        None => properties(change),
    };
    let colon = if result.is_empty() || reason.is_empty() { "" } else { ": " };
    let cells = [
        format!("{} {}", word(&change.direction), word(&change.patch_type).to_lowercase()),
        change.class_name.clone(),
        change.path.clone(),
        change.fs_path.clone().unwrap_or_else(|| "-".to_owned()),
        format!("{result}{colon}{reason}"),
    ];
    let colour = match change.result {
        ChangeResult::Done => AnsiColor::Green,
        ChangeResult::Planned => AnsiColor::Cyan,
        ChangeResult::Unresolved => AnsiColor::Yellow,
        ChangeResult::Guard | ChangeResult::MovedOn | ChangeResult::Failed => AnsiColor::Red,
        ChangeResult::Skipped | ChangeResult::Unknown => AnsiColor::BrightBlack,
    };
    (colour.on_default(), cells.map(|cell| for_terminal(&cell).replace('\n', " ")))
}

/// The names of the properties that it is about.
fn properties(change: &Change) -> String {
    let names = change.foreign.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The lines that both sides changed, below the line of their script.
fn conflict(change: &Change) -> String {
    let mut text = String::new();
    for hunk in &change.conflict {
        text.push_str(&format!("    at line {}\n", hunk.line));
        for (side, lines) in [("file", &hunk.disk), ("Studio", &hunk.studio)] {
            let removed = if lines.is_empty() { &["(nothing)"][..] } else { &[] };
            for line in lines.lines().chain(removed.iter().copied()) {
                text.push_str(&format!("    {side:6}  {}\n", for_terminal(line)));
            }
        }
    }
    text
}

/// The cells in columns, a line for each row; the first in the row's style.
fn aligned<const N: usize>(rows: &[(Style, [String; N])]) -> Vec<String> {
    let width = |column: usize| {
        let widths = rows.iter().map(|(_, cells)| cells[column].chars().count());
        widths.filter(|width| *width <= WIDEST).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |(style, cells): &(Style, [String; N])| {
        let padded = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        let line = padded.collect::<Vec<_>>().join("  ");
        let (first, rest) = line.split_at_checked(cells[0].len()).unwrap_or((&line, ""));
        format!("{style}{first}{style:#}{}\n", rest.trim_end())
    };
    rows.iter().map(line).collect()
}

/// `success: 3 pushed, 1 unresolved; …`
fn outcome(receipt: &Receipt, structure: &Value, can_undo: bool) -> String {
    let count = |name: &str| structure[name].as_u64().filter(|count| *count > 0);
    let counts: Vec<String> =
        COUNTS.iter().filter_map(|name| count(name).map(|count| format!("{count} {name}"))).collect();
    let status = word(&receipt.status).replace('_', ", ");
    let journal = receipt.journal.filter(|_| can_undo);
    let journal = journal.map(|id| format!("journal {id}: rojo-mcp undo --change {id} takes it back"));
    let message = as_flags(receipt.message.as_deref().unwrap_or_default());
    let parts = [counts.join(", "), message, journal.unwrap_or_default()];
    let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    let colon = if parts.is_empty() { "" } else { ": " };
    for_terminal(&format!("{status}{colon}{}\n", parts.join("; ")))
}

/// Who was refused since it is not paired, and what to do: a sentence each.
pub(super) fn refusals(report: &PairingReport) -> String {
    let mut lines: Vec<String> = report.refused.iter().map(RefusedStudio::sentence).collect();
    lines.push(format!("next: {}", report.next()));
    lines.join("\n")
}

/// Print to standard output; styles are left out where they would not be seen. Whether somebody
/// still reads it.
pub(super) fn print(text: &str) -> bool {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_can_be_taken_back_says_how_and_the_rest_does_not() {
        let structure = json!({ "status": "success", "pushed": 1, "total": 0, "journal": 4, "changes": [],
            "pulled": 0, "merged": 0, "removed": 0, "renamed": 0, "unresolved": 0, "failed": 0, "cursor": 1,
            "truncated": false });
        let sync = Receipt::deserialize(&structure).expect("a receipt");
        assert_eq!(
            receipt(&sync, &structure, true),
            "success: 1 pushed; journal 4: rojo-mcp undo --change 4 takes it back\n"
        );
        assert_eq!(receipt(&sync, &structure, false), "success: 1 pushed\n");
    }
}
