//! Mends one record's JSON where only the free texts in it are to blame.

use crate::tolerant::{Scanner, Token};

/// The record with its texts escaped as JSON wants it, everything else as it was.
///
/// Raw control characters are kept as what they are. Unescaped quotes and backslashes that escape nothing are kept
/// as what they were meant to be, but only in the fields `free_texts` and what is inside them: where such a text
/// ends is a guess, a good one, yet no destination and no date may rest on it.
///
/// The result is not necessarily JSON: the strict reader decides on it. Nothing if the record is cut, or a quote is
/// to be mended elsewhere.
pub(crate) fn mend(record: &str, free_texts: &[&str]) -> Option<String> {
    let bytes = record.as_bytes();
    let mut scanner = Scanner::new(bytes);
    let mut mended = String::with_capacity(record.len() + 16);
    let mut is_free = false;
    while let Some(token) = scanner.next().ok()? {
        match token {
            Token::Key(inside) => {
                let key = &record[inside];
                if scanner.depth() == 1 {
                    is_free = free_texts.contains(&key);
                }
                is_sound(key).then(|| write_text(&mut mended, key))?;
            }
            Token::Text(inside) => {
                let text = &record[inside];
                (is_free || is_sound(text)).then(|| write_text(&mut mended, text))?;
            }
            Token::Open(at) | Token::Close(at) | Token::Colon(at) | Token::Comma(at) => {
                mended.push_str(&record[at]);
            }
            Token::Other(at) => {
                mended.push_str(&record[at]);
                // Words must not run together: `1 2` is not `12`.
                mended.push(' ');
            }
        }
    }
    Some(mended)
}

/// Whether nothing but control characters is to be escaped.
fn is_sound(inside: &str) -> bool {
    let mut at = 0;
    while let Some(found) = inside[at..].find(['"', '\\']) {
        match escape_length(&inside[at + found..]) {
            Some(length) if inside.as_bytes()[at + found] == b'\\' => at += found + length,
            _ => return false,
        }
    }
    true
}

fn write_text(out: &mut String, inside: &str) {
    out.push('"');
    let mut characters = inside.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => match escape_length(&inside[at..]) {
                Some(length) => {
                    out.push_str(&inside[at..at + length]);
                    characters.nth(length - 2);
                }
                None => out.push_str("\\\\"),
            },
            '"' => out.push_str("\\\""),
            '\u{0}'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// The length of the escape that stands here, if it is one (RFC 8259, section 7).
fn escape_length(text: &str) -> Option<usize> {
    match text.as_bytes().get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => text.as_bytes().get(2..6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_as_it_was_meant() {
        for (raw, meant) in [
            (r#"The "best" offers, "all" of them"#, r#"The "best" offers, "all" of them"#),
            (r#"A 7" single"#, r#"A 7" single"#),
            ("a\u{1}b\tc\nd\r\n", "a\u{1}b\tc\nd\r\n"),
            (r#"properly \"escaped\" and "not""#, r#"properly "escaped" and "not""#),
            (r"C:\dir\", r"C:\dir\"),
            (r"\u00e9 and \u12", "é and \\u12"),
            ("ü 产品 🚀 \"", "ü 产品 🚀 \""),
        ] {
            let record =
                format!(r#"{{"id":"h/a","title":"{raw}","n":[1.50, true],"tags":["x"],"t":"{raw}"}}"#);
            let mended = mend(&record, &["title", "t"]).unwrap();
            let value: serde_json::Value =
                serde_json::from_str(&mended).unwrap_or_else(|e| panic!("{mended}: {e}"));
            let expected =
                serde_json::json!({"id":"h/a","title":meant,"n":[1.5,true],"tags":["x"],"t":meant});
            assert_eq!(value, expected, "{mended}");
        }
    }

    #[test]
    fn only_free_texts_are_guessed_at() {
        let free = ["title", "tags"];
        for (record, is_mended) in [
            (r#"{"id":"h/a","tags":["a "b" c"]}"#, true),
            (r#"{"id":"h/"a"","title":"x"}"#, false),
            (r#"{"title":"x","long_url":"https://e.example/?q="x""}"#, false),
            (r#"{"title":"x","long_url":"https://e.example/\\d\"\u00e9"}"#, true),
            (r#"{"title":"x","long_url":"https://e.example/\q"}"#, false),
            (r#"{"id":"h/a","n":<err "q"}"#, false),
            ("{\"title\":\"x\",\"long_url\":\"https://e.example/\n\"}", true),
        ] {
            let parsed =
                mend(record, &free).and_then(|json| serde_json::from_str::<serde_json::Value>(&json).ok());
            assert_eq!(parsed.is_some(), is_mended, "{record}");
        }
    }

    #[test]
    fn what_is_beyond_repair_stays_broken() {
        for record in
            [r#"{"a":<err>}"#, r#"{"a":fal}"#, r#"{"a":1 2}"#, r#"{"a":[,]}"#, r#"{"a":1"#, r#"{"a" 1}"#]
        {
            let mended = mend(record, &["a"]);
            let parsed = mended.map(|mended| serde_json::from_str::<serde_json::Value>(&mended));
            assert!(!matches!(parsed, Some(Ok(_))), "{record}");
        }
    }
}
