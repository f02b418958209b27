//! What a text must not hold, and how a foreign text is shown.

use engine::Reason;

/// Most characters of a foreign text that a reason shows.
const EXCERPT_CHARS_MAX: usize = 80;
/// How much of the surroundings of a bad place a reason shows.
const SURROUNDINGS_BYTES: usize = 24;

/// A foreign text on one line, shortened.
pub(crate) fn excerpt(text: &str) -> String {
    one_line(text, EXCERPT_CHARS_MAX)
}

/// A foreign text on one line, of at most so many characters.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    for (place, character) in text.chars().enumerate() {
        if place == chars_max {
            line.push('…');
            break;
        }
        if character.is_control() { line.extend(character.escape_default()) } else { line.push(character) }
    }
    line
}

/// The first escape in a JSON document that no database takes, if there is one.
///
/// `\u0000` is a character that Postgres refuses in `text` and `jsonb` (PostgreSQL documentation, section 8.14);
/// half of a surrogate pair is no character at all (RFC 8259, section 8.2). The JSON must be valid.
pub(crate) fn unstorable(json: &str) -> Option<Reason> {
    let bytes = json.as_bytes();
    let mut at = next_backslash(bytes, 0)?;
    loop {
        let length = match escaped_unit(bytes, at) {
            Some(0) => return Some(at_place("nul_in_text", "a NUL character", json, at)),
            Some(0xd800..=0xdbff) if matches!(escaped_unit(bytes, at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                return Some(at_place("lone_surrogate", "half of a surrogate pair", json, at));
            }
            Some(_) => 6,
            None => 2,
        };
        at = next_backslash(bytes, at + length)?;
    }
}

fn next_backslash(bytes: &[u8], from: usize) -> Option<usize> {
    bytes.get(from..)?.iter().position(|byte| *byte == b'\\').map(|offset| from + offset)
}

/// The UTF-16 unit that `\uXXXX` at this place stands for.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn at_place(code: &'static str, what: &str, json: &str, at: usize) -> Reason {
    let start = json.floor_char_boundary(at.saturating_sub(SURROUNDINGS_BYTES));
    let end = json.floor_char_boundary(at + SURROUNDINGS_BYTES);
    Reason::new(code, format!("{what} at byte {at} of the record: …{}…", excerpt(&json[start..end])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_that_no_database_takes_are_found() {
        for (json, expected) in [
            (r#"{"a":"plain"}"#, None),
            (r#"{"a":"\n\\u0000 \\\\ \""}"#, None),
            (r#"{"a":"\ud835\udd38 \u00e9"}"#, None),
            (r#"{"a":"a\u0000b"}"#, Some("nul_in_text")),
            (r#"{"a":"\\\u0000"}"#, Some("nul_in_text")),
            (r#"{"a":"\ud835"}"#, Some("lone_surrogate")),
            (r#"{"a":"\ud835\n"}"#, Some("lone_surrogate")),
            (r#"{"a":"\ud835\ud835\udd38"}"#, Some("lone_surrogate")),
            (r#"{"a":"\udd38"}"#, Some("lone_surrogate")),
            (r#"{"a":"\uD835x"}"#, Some("lone_surrogate")),
        ] {
            let found = unstorable(json).map(|reason| reason.code.into_owned());
            assert_eq!(found.as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt("a\nb\u{0}"), "a\\nb\\u{0}");
        assert_eq!(excerpt(&"é".repeat(90)), format!("{}…", "é".repeat(80)));
    }
}
