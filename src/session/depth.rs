//! How deep a file is nested. librojo follows it by recursion, and a stack that overflows cannot
//! be caught; so what is nested deeper than anything sensible is not shown to it.

use std::path::Path;

/// Deeper than any place that was ever built: a model of 500 levels has 1,000 brackets.
const MOST: usize = 1_000;

/// Why the file at `path` is nested too deep, if it is.
pub(super) fn too_deep(path: &Path, contents: &[u8]) -> Option<String> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    let depth = match ending.as_str() {
        "json" | "jsonc" | "toml" => brackets(contents),
        "rbxmx" | "rbxlx" => items(contents),
        _ => return None,
    };
    (depth > MOST).then(|| format!("nested {depth} levels deep, and {MOST} are followed; skipped"))
}

/// The deepest nesting of `[` and `{` outside of strings.
fn brackets(contents: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut in_string = false;
    let mut escaped = false;
    for byte in contents {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// The deepest nesting of `<Item>` elements.
fn items(contents: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for (at, byte) in contents.iter().enumerate() {
        let rest = contents.get(at..).unwrap_or_default();
        if *byte != b'<' {
            continue;
        }
        if rest.starts_with(b"<Item") {
            depth += 1;
            deepest = deepest.max(depth);
        } else if rest.starts_with(b"</Item") {
            depth = depth.saturating_sub(1);
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_real_nesting_counts() {
        let path = Path::new("a.json");
        assert_eq!(too_deep(path, &vec![b'['; MOST]), None);
        assert!(too_deep(path, &vec![b'['; MOST + 1]).is_some());
        assert_eq!(too_deep(path, "[]".repeat(MOST * 3).as_bytes()), None);
        assert_eq!(too_deep(path, format!("\"\\\"{}\"", "[".repeat(MOST * 2)).as_bytes()), None);
        assert_eq!(too_deep(Path::new("a.luau"), &vec![b'['; MOST * 2]), None);
        assert!(too_deep(Path::new("a.rbxmx"), "<Item class=\"Folder\">".repeat(MOST + 1).as_bytes()).is_some());
        assert_eq!(too_deep(Path::new("a.rbxmx"), "<Item></Item>".repeat(MOST * 2).as_bytes()), None);
    }
}
