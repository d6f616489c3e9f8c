//! What a command shows a person: aligned lines, with colour on a terminal only.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use serde_json::Value;

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

/// A sync's receipt: a line for each change, then what it came to. `structure` is the whole answer.
pub(super) fn receipt(receipt: &Receipt, structure: &Value) -> String {
    let rows: Vec<(Style, [String; 5])> = receipt.changes.iter().map(row).collect();
    let mut text = aligned(&rows);
    let left = structure["total"].as_u64().unwrap_or_default().saturating_sub(receipt.changes.len() as u64);
    if left > 0 {
        text.push_str(&format!("… and {left} more; name some of them with --paths to see them\n"));
    }
    for problem in structure["problems"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        text.push_str(&format!("problem: {}\n", for_terminal(problem)));
    }
    text.push_str(&outcome(receipt, structure));
    text
}

fn row(change: &Change) -> (Style, [String; 5]) {
    let result = match change.result {
        ChangeResult::Done | ChangeResult::Unresolved => String::new(),
        result => word(&result),
    };
    let reason = as_flags(change.reason.as_deref().unwrap_or_default());
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

/// The cells in columns; the first in the row's style.
fn aligned<const N: usize>(rows: &[(Style, [String; N])]) -> String {
    let width = |column: usize| {
        let widths = rows.iter().map(|(_, cells)| cells[column].chars().count());
        widths.filter(|width| *width <= WIDEST).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for (style, cells) in rows {
        let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = padded.collect::<Vec<_>>().join("  ");
        let (first, rest) = line.split_at_checked(cells[0].len()).unwrap_or((&line, ""));
        text.push_str(&format!("{style}{first}{style:#}{}\n", rest.trim_end()));
    }
    text
}

/// `success: 3 pushed, 1 unresolved; …`
fn outcome(receipt: &Receipt, structure: &Value) -> String {
    let count = |name: &str| structure[name].as_u64().filter(|count| *count > 0);
    let counts: Vec<String> =
        COUNTS.iter().filter_map(|name| count(name).map(|count| format!("{count} {name}"))).collect();
    let status = word(&receipt.status).replace('_', ", ");
    let journal = receipt.journal.map(|id| format!("journal {id}: rojo-mcp undo --change {id} takes it back"));
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
