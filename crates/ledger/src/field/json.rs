//! JSON values inside records: what Postgres would refuse in them, and their canonical text.

use super::decimal::Decimal;

/// What a text of a JSON document may not hold if Postgres is to keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unstorable {
    /// `\u0000`
    Nul,
    /// Half of a surrogate pair.
    LoneSurrogate,
}

/// Looks through the escapes of valid JSON.
pub(crate) fn unstorable(token: &str) -> Option<Unstorable> {
    let bytes = token.as_bytes();
    let mut at = 0;
    let mut high = false;
    while let Some(found) = memchr::memchr(b'\\', bytes.get(at..)?).map(|index| at + index) {
        if high && found != at {
            return Some(Unstorable::LoneSurrogate);
        }
        if bytes.get(found + 1) != Some(&b'u') {
            if high {
                return Some(Unstorable::LoneSurrogate);
            }
            at = found + 2;
            continue;
        }
        let unit = token.get(found + 2..found + 6).and_then(|hex| u16::from_str_radix(hex, 16).ok())?;
        match unit {
            0 => return Some(Unstorable::Nul),
            0xD800..=0xDBFF if !high => high = true,
            0xDC00..=0xDFFF if high => high = false,
            0xD800..=0xDFFF => return Some(Unstorable::LoneSurrogate),
            _ if high => return Some(Unstorable::LoneSurrogate),
            _ => {}
        }
        at = found + 6;
    }
    high.then_some(Unstorable::LoneSurrogate)
}

/// The text of a string token, which holds no [`Unstorable`].
pub(crate) fn text_of(token: &str) -> Option<std::borrow::Cow<'_, str>> {
    let inner = token.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str::<String>(token).ok().map(std::borrow::Cow::Owned)
    } else {
        Some(std::borrow::Cow::Borrowed(inner))
    }
}

/// The text that Postgres prints for the value as `jsonb`: names sorted by length, then by bytes, the last of equal ones
/// kept; one blank after `:` and `,`; numbers with their decimals and without exponents.
///
/// `None` for a number that no numeric holds. The token must be valid JSON.
pub(crate) fn canonical(token: &str) -> Option<String> {
    let mut walk = Walk { rest: token.trim_ascii() };
    let mut out = String::with_capacity(token.len() + 16);
    walk.value(&mut out)?;
    Some(out)
}

struct Walk<'a> {
    rest: &'a str,
}

impl<'a> Walk<'a> {
    fn value(&mut self, out: &mut String) -> Option<()> {
        match self.peek()? {
            b'{' => self.object(out),
            b'[' => self.array(out),
            b'"' => {
                let text = self.string()?;
                write_string(out, &text);
                Some(())
            }
            b't' => self.word("true", out),
            b'f' => self.word("false", out),
            b'n' => self.word("null", out),
            _ => {
                let end = self
                    .rest
                    .find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'))
                    .unwrap_or(self.rest.len());
                let (number, rest) = self.rest.split_at(end);
                self.rest = rest;
                out.push_str(&Decimal::parse(number).ok()?.plain());
                Some(())
            }
        }
    }

    fn object(&mut self, out: &mut String) -> Option<()> {
        self.take(b'{')?;
        // All values in one text, and where each stands.
        let mut values = String::with_capacity(64);
        let mut members = Vec::with_capacity(8);
        while self.peek()? != b'}' {
            let name = self.string()?;
            self.take(b':')?;
            let start = values.len();
            self.value(&mut values)?;
            let value = start..values.len();
            match members.iter_mut().find(|(known, _)| *known == name) {
                Some(member) => member.1 = value,
                None => members.push((name, value)),
            }
            if self.peek()? == b',' {
                self.take(b',')?;
            }
        }
        self.take(b'}')?;
        members.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes())));
        out.push('{');
        for (index, (name, value)) in members.into_iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            write_string(out, &name);
            out.push_str(": ");
            out.push_str(&values[value]);
        }
        out.push('}');
        Some(())
    }

    fn array(&mut self, out: &mut String) -> Option<()> {
        self.take(b'[')?;
        out.push('[');
        let mut first = true;
        while self.peek()? != b']' {
            if !first {
                out.push_str(", ");
            }
            first = false;
            self.value(out)?;
            if self.peek()? == b',' {
                self.take(b',')?;
            }
        }
        self.take(b']')?;
        out.push(']');
        Some(())
    }

    fn string(&mut self) -> Option<std::borrow::Cow<'a, str>> {
        self.peek()?;
        let bytes = self.rest.as_bytes();
        let mut end = 1;
        while *bytes.get(end)? != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let (token, rest) = self.rest.split_at(end + 1);
        self.rest = rest;
        text_of(token)
    }

    fn word(&mut self, word: &str, out: &mut String) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        out.push_str(word);
        Some(())
    }

    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.bytes().next()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.rest = &self.rest[1..])
    }
}

/// As `escape_json` of Postgres (`src/backend/utils/adt/json.c`).
fn write_string(out: &mut String, text: &str) {
    out.push('"');
    if !text.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\')) {
        out.push_str(text);
        out.push('"');
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_that_no_database_keeps_are_found() {
        for (token, expected) in [
            (r#""plain""#, None),
            (r#""a\u0041\n""#, None),
            (r#""\ud835\udd38""#, None),
            (r#""\\u0000""#, None),
            (r#""a\u0000b""#, Some(Unstorable::Nul)),
            (r#"{"a":["\u0000"]}"#, Some(Unstorable::Nul)),
            (r#""\ud835""#, Some(Unstorable::LoneSurrogate)),
            (r#""\udd38""#, Some(Unstorable::LoneSurrogate)),
            (r#""\ud835x\udd38""#, Some(Unstorable::LoneSurrogate)),
            (r#""\ud835\n""#, Some(Unstorable::LoneSurrogate)),
            (r#""\ud835\ud835""#, Some(Unstorable::LoneSurrogate)),
            (r#""\ud835\u0041""#, Some(Unstorable::LoneSurrogate)),
        ] {
            assert_eq!(unstorable(token), expected, "{token}");
        }
    }

    #[test]
    fn the_canonical_text_is_that_of_jsonb() {
        for (token, expected) in [
            ("1.50", "1.50"),
            ("1e2", "100"),
            ("-0.00", "0.00"),
            (r#"{"bb":1,"a":[ 1 , {} , [] ],"c":null}"#, r#"{"a": [1, {}, []], "c": null, "bb": 1}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a": 2}"#),
            (r#""tab\t \u00e9 \/ \u001f""#, r#""tab\t é / \u001f""#),
            ("true", "true"),
        ] {
            assert_eq!(canonical(token).as_deref(), Some(expected), "{token}");
        }
    }
}
