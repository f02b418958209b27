//! Whether a body looks like one whole JSON document, without judging what is inside.
//!
//! The raw bytes of a record go to staging as they came: a control character in a title, a lone surrogate, a
//! byte that is no UTF-8 concern that record alone and must not cost the page. So this does not parse; it
//! follows strings and brackets from the first byte to the last, which is enough to tell a page from an empty
//! body, from HTML, and from a page that was cut.

/// What keeps a body from being a JSON document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misshape {
    Empty,
    Html,
    NotJson,
    Unfinished,
    Rubbish,
}

impl Misshape {
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Empty => "an empty body",
            Self::Html => "a page of HTML instead of JSON",
            Self::NotJson => "something that is not JSON",
            Self::Unfinished => "JSON that ends early",
            Self::Rubbish => "something behind the end of the JSON",
        }
    }
}

/// Without the byte order mark that some servers put in front and RFC 8259 §8.1 lets readers ignore.
pub(crate) fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

/// `Ok` for an object or an array with its matching end and nothing but blanks around it.
pub(crate) fn check(body: &[u8]) -> Result<(), Misshape> {
    let body = without_mark(body).trim_ascii();
    match body.first() {
        None => return Err(Misshape::Empty),
        Some(b'{' | b'[') => {}
        Some(b'<') => return Err(Misshape::Html),
        Some(_) => return Err(Misshape::NotJson),
    }
    match end_of_document(body) {
        None => Err(Misshape::Unfinished),
        Some(end) if end == body.len() => Ok(()),
        Some(_) => Err(Misshape::Rubbish),
    }
}

/// The place behind the bracket that closes the first one.
fn end_of_document(body: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut position = 0;
    while let Some(byte) = body.get(position) {
        match byte {
            b'"' => position = end_of_string(body, position + 1)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(position + 1);
                }
            }
            _ => {}
        }
        position += 1;
    }
    None
}

/// The place of the quote that closes the string which begins at `start`.
fn end_of_string(body: &[u8], start: usize) -> Option<usize> {
    let mut position = start;
    loop {
        match body.get(position)? {
            b'"' => return Some(position),
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_documents_pass_whatever_their_strings_hold() {
        let cases: [&[u8]; 9] = [
            b"{}",
            b" [1, 2] \n",
            b"\xef\xbb\xbf{\"a\":1}",
            b"{\"a\":\"}]{[\"}",
            b"{\"a\":\"quote \\\" and backslash \\\\\"}",
            b"{\"title\":\"raw \x01 control\"}",
            b"{\"memo\":\"not \xff utf-8\"}",
            b"{\"memo\":\"\\ud835\"}",
            b"[[[]],{\"a\":[{}]}]",
        ];
        for body in cases {
            assert_eq!(check(body), Ok(()), "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn everything_else_is_named() {
        let cases: [(&[u8], Misshape); 10] = [
            (b"", Misshape::Empty),
            (b" \n", Misshape::Empty),
            (b"\xef\xbb\xbf", Misshape::Empty),
            (b"<html></html>", Misshape::Html),
            (b"\n<!doctype html>", Misshape::Html),
            (b"Unauthorized", Misshape::NotJson),
            (b"null", Misshape::NotJson),
            (b"{\"a\":\"b}", Misshape::Unfinished),
            (b"{\"a\":\"b\\", Misshape::Unfinished),
            (b"{\"a\":1}{\"a\":2}", Misshape::Rubbish),
        ];
        for (body, expected) in cases {
            assert_eq!(check(body), Err(expected), "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn a_document_cut_at_any_byte_is_unfinished() {
        let whole = br#"{"links":[{"title":"a \"b\" {c","n":1}],"next":""}"#;
        for end in 1..whole.len() {
            assert_eq!(check(&whole[..end]), Err(Misshape::Unfinished), "cut at {end}");
        }
    }
}
