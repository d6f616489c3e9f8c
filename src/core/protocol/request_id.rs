//! The request of a frame that could not be read.

use crate::core::ids::RequestId;

/// Make out the request of a frame that is not JSON, so that its caller gets the error. Only a
/// field of the frame itself counts: one deeper down may be the id of another call.
pub(super) fn find_request_id(text: &str) -> Option<RequestId> {
    let mut depth = 0;
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        match char {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            '"' => {
                let string = rest_of_string(&mut rest);
                if depth == 1
                    && string == "requestId"
                    && let Some(value) = rest.as_str().trim_start().strip_prefix(':')
                {
                    let (id, _) = value.trim_start().strip_prefix('"')?.split_once('"')?;
                    return (id.len() <= 64).then(|| RequestId::from(id));
                }
            }
            _ => {}
        }
    }
    None
}

/// What stands before the closing quote, escapes as they are.
fn rest_of_string(chars: &mut std::str::Chars<'_>) -> String {
    let mut escaped = false;
    chars
        .take_while(|char| {
            let ends = *char == '"' && !escaped;
            escaped = *char == '\\' && !escaped;
            !ends
        })
        .collect()
}
