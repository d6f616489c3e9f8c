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
        "rbxm" | "rbxl" => instances(contents),
        _ => return None,
    };
    (depth > MOST).then(|| format!("nested {depth} levels deep, and {MOST} are followed"))
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

/// The deepest nesting of instances in a binary model. What cannot be read has none; librojo says
/// what is wrong with it.
fn instances(contents: &[u8]) -> usize {
    // The header says how many instances there are; so few cannot be nested too deep.
    let count = contents.get(20..24).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
    if usize::try_from(count).is_ok_and(|count| count <= MOST) {
        return 0;
    }
    let Ok(dom) = rbx_binary::from_reader(contents) else { return 0 };
    let mut level = vec![dom.root_ref()];
    let mut depth = 0;
    while !level.is_empty() {
        depth += 1;
        let children = level.iter().filter_map(|&id| dom.get_by_ref(id)).flat_map(|each| each.children());
        level = children.copied().collect();
    }
    depth
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
