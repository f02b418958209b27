//! Opens one record: from the bytes received to JSON that can be read.

use std::borrow::Cow;

use engine::Reason;
use serde::de::IgnoredAny;

use crate::mend::mend;
use crate::texts::{excerpt, unstorable};

/// The record as valid JSON that a database takes: as it came, or mended (see [`mend`]).
///
/// # Errors
/// A reason with the code `invalid_utf8`, `malformed_json`, `nul_in_text` or `lone_surrogate`.
pub(crate) fn open<'a>(raw: &'a [u8], free_texts: &[&str]) -> Result<Cow<'a, str>, Reason> {
    let text = std::str::from_utf8(raw).map_err(|error| invalid_utf8(raw, error.valid_up_to()))?;
    let json = match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Cow::Borrowed(text),
        Err(error) => mended(text, free_texts).map(Cow::Owned).ok_or_else(|| malformed(&error, text))?,
    };
    match unstorable(&json) {
        Some(reason) => Err(reason),
        None => Ok(json),
    }
}

/// The reason for a record whose JSON the reader refuses.
pub(crate) fn malformed(error: &serde_json::Error, text: &str) -> Reason {
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    // Columns count bytes from 1.
    let start = line.floor_char_boundary(error.column().saturating_sub(24).min(line.len()));
    let end = line.floor_char_boundary((error.column() + 12).min(line.len()));
    Reason::new("malformed_json", format!("{error}, near: …{}…", excerpt(&line[start..end])))
}

/// The text under `name` in a record that cannot be opened, if it can be made out all the same.
pub(crate) fn glimpse(raw: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(raw);
    let after_name = text.split_once(&format!("\"{name}\""))?.1;
    let value = after_name.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let value = value.split('"').next()?;
    let value: String = serde_json::from_str(&format!("\"{value}\"")).ok()?;
    (!value.is_empty() && !value.contains(['\u{0}', '\u{fffd}'])).then(|| excerpt(&value))
}

fn mended(text: &str, free_texts: &[&str]) -> Option<String> {
    mend(text, free_texts).filter(|mended| serde_json::from_str::<IgnoredAny>(mended).is_ok())
}

fn invalid_utf8(raw: &[u8], at: usize) -> Reason {
    let byte = raw.get(at).copied().unwrap_or_default();
    Reason::new("invalid_utf8", format!("byte 0x{byte:02x} at {at} of the record is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_cannot_be_opened_says_where() {
        for (raw, code, detail) in [
            (&b"{\"a\":\"\xff\"}"[..], "invalid_utf8", "byte 0xff at 6"),
            (br#"{"a":<err>}"#, "malformed_json", "line 1 column 6"),
            (br#"{"a":"#, "malformed_json", "line 1 column 5"),
            (b"", "malformed_json", "line 1 column 0"),
            (b"{\"a\":\"x\0\"}", "nul_in_text", "byte 7"),
            (br#"{"a":"\ud835"}"#, "lone_surrogate", "byte 6"),
        ] {
            let reason = open(raw, &[]).unwrap_err();
            assert_eq!(reason.code, code);
            assert!(reason.detail.contains(detail), "{}", reason.detail);
        }
    }

    #[test]
    fn an_id_is_made_out_where_the_rest_is_lost() {
        assert_eq!(glimpse(br#"{"n":<err>,"id" : "h/\u00e9"}"#, "id").as_deref(), Some("h/é"));
        assert_eq!(glimpse(b"{\"id\":\"h/a\",\"t\":\"\xff\"}", "id").as_deref(), Some("h/a"));
        for raw in [&br#"{"id":5}"#[..], br#"{"id":"#, b"", b"{\"id\":\"\xff\"}", br#"{"id":""}"#] {
            assert_eq!(glimpse(raw, "id"), None);
        }
    }
}
