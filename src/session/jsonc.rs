//! Project files may hold comments and trailing commas. To say in which line something is wrong,
//! they are read as plain JSON with every letter in its place.

/// `text` with spaces for its comments and trailing commas.
pub(super) fn plain(text: &[u8]) -> Vec<u8> {
    let mut plain = text.to_vec();
    let mut comma: Option<usize> = None;
    let mut at = 0;
    while let Some(&byte) = plain.get(at) {
        match (byte, plain.get(at + 1)) {
            (b'"', _) => {
                comma = None;
                at = after_string(&plain, at);
                continue;
            }
            (b'/', Some(b'/')) => {
                let end = plain.iter().skip(at).position(|byte| *byte == b'\n').map_or(plain.len(), |rest| at + rest);
                at = blank(&mut plain, at, end);
                continue;
            }
            (b'/', Some(b'*')) => {
                let rest = plain.get(at + 2..).unwrap_or_default();
                let end = rest.windows(2).position(|two| two == b"*/").map_or(plain.len(), |rest| at + rest + 4);
                at = blank(&mut plain, at, end);
                continue;
            }
            (b',', _) => comma = Some(at),
            (b']' | b'}', _) => {
                if let Some(comma) = comma.take() {
                    blank(&mut plain, comma, comma + 1);
                }
            }
            (byte, _) if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
    plain
}

/// Where the string ends that begins at `start`.
fn after_string(text: &[u8], start: usize) -> usize {
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate().skip(start + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Put spaces from `from` to `to`, but for the ends of lines. Returns `to`.
fn blank(text: &mut [u8], from: usize, to: usize) -> usize {
    for byte in text.iter_mut().take(to).skip(from).filter(|byte| !matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_become_spaces_in_their_place() {
        let cases = [
            ("{} // end", "{}       "),
            ("/* a\n b */{}", "    \n     {}"),
            (r#"{"a//b": "/* no */", "c": ",]"}"#, r#"{"a//b": "/* no */", "c": ",]"}"#),
            (r#"["\",", 1,] "#, r#"["\",", 1 ] "#),
            ("[1, // one\n 2 , /* two */ ]", "[1,       \n 2             ]"),
            ("[1, 2]", "[1, 2]"),
            ("\"open", "\"open"),
            ("/* open", "       "),
            ("/", "/"),
        ];
        for (text, wanted) in cases {
            assert_eq!(String::from_utf8_lossy(&plain(text.as_bytes())), wanted, "{text}");
        }
    }
}
