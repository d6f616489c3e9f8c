//! Paths as people and agents write them.

use std::path::{Component, Path};

/// `path` relative to `folder`, with `/` between its parts. Lexical: nothing is looked up on disk.
/// `path` may be relative to the folder or absolute, and use `\` on Windows. `None`: it leaves
/// the folder. The folder itself is `.`.
pub fn relative_to(folder: &Path, path: &str) -> Option<String> {
    let native = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    let path = Path::new(&native);
    let path = if path.is_absolute() { path.strip_prefix(folder).ok()? } else { path };
    let mut parts: Vec<&str> = Vec::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::Prefix(_) | Component::RootDir => return None,
        }
    }
    Some(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_relative_to_the_project_and_may_not_leave_it() {
        let folder = Path::new(if cfg!(windows) { "C:/game" } else { "/game" });
        let at = |path: &str| relative_to(folder, path);
        assert_eq!(at("src/a.luau").as_deref(), Some("src/a.luau"));
        assert_eq!(at("./src//deep/../a.luau").as_deref(), Some("src/a.luau"));
        assert_eq!(at(&format!("{}/src", folder.display())).as_deref(), Some("src"));
        assert_eq!(at("").as_deref(), Some("."));
        assert_eq!(at("../other"), None);
        assert_eq!(at("src/../../other"), None);
        assert_eq!(at("/elsewhere"), None);
    }
}
