//! A new text in the dress of the old one: byte order mark and line endings.

use crate::core::text::ScriptText;

const MARK: char = '\u{feff}';

/// Larger texts with mixed line endings are not compared line by line in their middle.
const MAX_COMPARISONS: usize = 4_000_000;

/// One line and how it ends.
type Line<'a> = (&'a str, &'a str);

/// `new` as the file that holds `old` would have it: with its byte order mark, the endings of the
/// lines that stay, and for new lines the ending that most have.
pub(super) fn render(old: &str, new: &ScriptText) -> String {
    let marked = old.starts_with(MARK) || new.as_str().starts_with(MARK);
    let mut out = String::with_capacity(new.as_str().len() + 16);
    if marked {
        out.push(MARK);
    }
    let old = lines(old.strip_prefix(MARK).unwrap_or(old));
    let new = lines(new.as_str());
    let usual = usual(&old);
    let mixed = old.iter().any(|(_, ending)| !ending.is_empty() && *ending != usual);
    let kept = if mixed { keep(&old, &new) } else { vec![None; new.len()] };
    for ((line, ending), kept) in new.into_iter().zip(kept) {
        out.push_str(line);
        if !ending.is_empty() {
            let own = kept.and_then(|at: usize| old.get(at)).map(|(_, ending)| *ending);
            let ending = own.filter(|ending| !ending.is_empty()).unwrap_or(usual);
            // After a bare CR a bare LF would make one ending of the two.
            let merges = line.is_empty() && ending == "\n" && out.ends_with('\r');
            out.push_str(if merges { "\r" } else { ending });
        }
    }
    out
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some((line, after)) = rest.split_once(['\n', '\r']) {
        let ending = rest.get(line.len()..).unwrap_or_default();
        let length = if ending.starts_with("\r\n") { 2 } else { 1 };
        lines.push((line, ending.get(..length).unwrap_or_default()));
        rest = if length == 2 { after.strip_prefix('\n').unwrap_or(after) } else { after };
    }
    if !rest.is_empty() {
        lines.push((rest, ""));
    }
    lines
}

fn usual(lines: &[Line<'_>]) -> &'static str {
    let count = |wanted: &str| lines.iter().filter(|(_, ending)| *ending == wanted).count();
    let (crlf, lf, cr) = (count("\r\n"), count("\n"), count("\r"));
    if crlf > lf && crlf >= cr {
        "\r\n"
    } else if cr > lf {
        "\r"
    } else {
        "\n"
    }
}

/// For each new line the old one that it is, if it stays: a longest common subsequence.
fn keep(old: &[Line<'_>], new: &[Line<'_>]) -> Vec<Option<usize>> {
    let same = |a: &Line<'_>, b: &Line<'_>| a.0 == b.0;
    let mut kept = vec![None; new.len()];
    let start = old.iter().zip(new).take_while(|(a, b)| same(a, b)).count();
    let limit = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(limit).take_while(|(a, b)| same(a, b)).count();
    (0..start).for_each(|at| kept[at] = Some(at));
    (1..=end).for_each(|back| kept[new.len() - back] = Some(old.len() - back));
    let (old_middle, new_middle) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    let width = new_middle.len() + 1;
    if old_middle.len().saturating_mul(width) > MAX_COMPARISONS {
        return kept;
    }
    // common[a * width + b]: how much of the rests from `a` and `b` on is common.
    let mut common = vec![0_u32; (old_middle.len() + 1) * width];
    for a in (0..old_middle.len()).rev() {
        for b in (0..new_middle.len()).rev() {
            common[a * width + b] = if same(&old_middle[a], &new_middle[b]) {
                common[(a + 1) * width + b + 1] + 1
            } else {
                common[(a + 1) * width + b].max(common[a * width + b + 1])
            };
        }
    }
    let (mut a, mut b) = (0, 0);
    while a < old_middle.len() && b < new_middle.len() {
        if same(&old_middle[a], &new_middle[b]) {
            kept[start + b] = Some(start + a);
            (a, b) = (a + 1, b + 1);
        } else if common[(a + 1) * width + b] >= common[a * width + b + 1] {
            a += 1;
        } else {
            b += 1;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rendered(old: &str, new: &str) -> String {
        render(old, &ScriptText::new(new))
    }

    #[test]
    fn lines_that_stay_keep_their_bytes() {
        let old = "\u{feff}a\r\nb\nc\rd";
        assert_eq!(rendered(old, "a\nb\nc\nd"), old);
        assert_eq!(rendered(old, "a\nnew\nb\nc\nd\n"), "\u{feff}a\r\nnew\nb\nc\rd\n");
        assert_eq!(rendered("a\r\nb\r\n", "a\nx\nb\n"), "a\r\nx\r\nb\r\n");
        assert_eq!(rendered("a\r\nx\ny\r\nb\nz\r\n", "b\nx\ny\nz\n"), "b\r\nx\ny\r\nz\r\n");
        assert_eq!(rendered("\na\r", "a\n\n"), "a\r\r", "no line is lost between endings");
        assert_eq!(rendered("", "a\n"), "a\n");
        assert_eq!(rendered("a\r\n", ""), "");
        assert_eq!(rendered("a", "\u{feff}\u{feff}a"), "\u{feff}\u{feff}a", "a mark that belongs to the text");
    }

    proptest! {
        #[test]
        fn what_is_rendered_is_the_text(old in "\u{feff}?[ab\r\n]{0,24}", new in "\u{feff}{0,2}[ab\r\n]{0,24}") {
            let text = ScriptText::new(&new);
            let rendered = render(&old, &text);
            prop_assert_eq!(ScriptText::new(&rendered), text);
            prop_assert_eq!(rendered.starts_with(MARK), old.starts_with(MARK) || text_starts_marked(&new));
        }

        #[test]
        fn the_same_text_is_the_same_bytes(old in "\u{feff}?[ab\r\n]{0,24}") {
            prop_assert_eq!(render(&old, &ScriptText::new(&old)), old);
        }
    }

    fn text_starts_marked(raw: &str) -> bool {
        ScriptText::new(raw).as_str().starts_with(MARK)
    }
}
