//! Reads JSON whose strings may hold what JSON forbids.
//!
//! Real answers have held raw control characters and unescaped quotes, mostly in titles taken from web pages. A
//! reader that follows the grammar stops there; a reader that only counts quotes turns inside and outside round
//! at the first odd one. This one asks of every quote whether the text after it goes on as JSON would: brackets
//! that close what is open, then a comma and the next key with its value. Bytes need not be UTF-8.
//!
//! It is the slow path, taken for a page or a record only after the strict reader refused it.

use std::ops::Range;

/// The text ended inside the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut;

/// A piece of the text, in the order received; blanks between pieces are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// `{` or `[`.
    Open(Range<usize>),
    /// `}` or `]`, and it closes something.
    Close(Range<usize>),
    /// `:` after a key.
    Colon(Range<usize>),
    /// `,`
    Comma(Range<usize>),
    /// A name in an object, without its quotes.
    Key(Range<usize>),
    /// A text, without its quotes.
    Text(Range<usize>),
    /// A number, a literal, or what should not be there.
    Other(Range<usize>),
}

impl Token {
    /// Where the token stands, quotes included.
    pub(crate) fn span(&self) -> Range<usize> {
        match self {
            Self::Key(inside) | Self::Text(inside) => inside.start - 1..inside.end + 1,
            Self::Open(at) | Self::Close(at) | Self::Colon(at) | Self::Comma(at) | Self::Other(at) => {
                at.clone()
            }
        }
    }
}

/// What is due next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Key,
    Colon,
    Value,
    /// A comma or a closing bracket.
    Separator,
}

/// How sure it is that a quote ends its string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    No,
    /// A key and a colon follow, but then nothing that is a value; or a bracket that leaves others open.
    Weak,
    Strong,
}

/// Names in objects are at most this long; a longer one is taken for a text with a colon behind it.
const KEY_BYTES_MAX: usize = 64;

/// Walks over a text and gives its tokens.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The brackets that are open.
    open: Vec<u8>,
    due: Due,
    /// Whether something that is no value stands where a value belongs.
    in_rubbish: bool,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, open: Vec::new(), due: Due::Value, in_rubbish: false }
    }

    /// How many brackets are open.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Where the next token is looked for.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Whether a value belongs here.
    pub(crate) fn expects_value(&self) -> bool {
        self.due == Due::Value
    }

    /// Goes on behind a value that the caller has read.
    pub(crate) fn jump_behind_value(&mut self, end: usize) {
        self.at = end;
        self.finish_value();
    }

    /// The end of the value in brackets that begins at `start`, as far as brackets tell.
    pub(crate) fn end_of_value(mut self, start: usize) -> Option<usize> {
        let depth = self.depth();
        self.at = start;
        loop {
            let token = self.next().ok()??;
            if self.depth() <= depth {
                return (self.depth() == depth).then(|| token.span().end);
            }
        }
    }

    /// The next token, or nothing at the end of a text that is complete.
    pub(crate) fn next(&mut self) -> Result<Option<Token>, Cut> {
        self.at = skip_blanks(self.bytes, self.at);
        let Some(&byte) = self.bytes.get(self.at) else {
            return if self.open.is_empty() { Ok(None) } else { Err(Cut) };
        };
        match byte {
            b'"' => self.string().map(Some),
            b'{' | b'[' => Ok(Some(self.opening(byte))),
            b'}' | b']' => Ok(Some(self.closing(byte))),
            b',' => Ok(Some(self.comma())),
            b':' if self.due == Due::Colon => {
                self.due = Due::Value;
                Ok(Some(Token::Colon(self.advance(1))))
            }
            _ => Ok(Some(self.other())),
        }
    }

    fn advance(&mut self, by: usize) -> Range<usize> {
        let start = self.at;
        self.at += by;
        start..self.at
    }

    fn finish_value(&mut self) {
        self.due = Due::Separator;
        self.in_rubbish = false;
    }

    fn opening(&mut self, byte: u8) -> Token {
        self.open.push(byte);
        self.due = if byte == b'{' { Due::Key } else { Due::Value };
        self.in_rubbish = false;
        Token::Open(self.advance(1))
    }

    fn closing(&mut self, byte: u8) -> Token {
        let partner = if byte == b'}' { b'{' } else { b'[' };
        let depth = self.open.iter().rposition(|open| *open == partner);
        let depth = match depth {
            Some(depth) if depth + 1 == self.open.len() => depth,
            // Something above it was never closed: believe the bracket only if all goes well after it.
            Some(depth) if goes_on(self.bytes, self.at + 1, &self.open[..depth]) == Fit::Strong => depth,
            _ => return self.rubbish(1),
        };
        self.open.truncate(depth);
        self.finish_value();
        Token::Close(self.advance(1))
    }

    fn comma(&mut self) -> Token {
        self.due = if self.open.last() == Some(&b'{') { Due::Key } else { Due::Value };
        self.in_rubbish = false;
        Token::Comma(self.advance(1))
    }

    fn rubbish(&mut self, length: usize) -> Token {
        self.in_rubbish = true;
        self.due = Due::Separator;
        Token::Other(self.advance(length))
    }

    fn other(&mut self) -> Token {
        let rest = &self.bytes[self.at..];
        let is_end = |byte: &u8| matches!(byte, b',' | b'{' | b'}' | b'[' | b']' | b'"') || is_blank(*byte);
        let length = rest.iter().position(is_end).unwrap_or(rest.len()).max(1);
        if self.due == Due::Value && is_scalar(&rest[..length]) {
            self.finish_value();
            return Token::Other(self.advance(length));
        }
        self.rubbish(length)
    }

    fn string(&mut self) -> Result<Token, Cut> {
        let start = self.at + 1;
        let is_out_of_place = self.in_rubbish || self.due == Due::Separator;
        if is_out_of_place && goes_on(self.bytes, start, &self.open) == Fit::Strong {
            // The quote that ends a text whose beginning was mistaken for something else.
            return Ok(self.rubbish(1));
        }
        let is_key = self.due == Due::Key;
        let end = self.end_of_string(start, is_key).ok_or(Cut)?;
        self.at = end + 1;
        if is_key && self.bytes.get(skip_blanks(self.bytes, self.at)) == Some(&b':') {
            self.due = Due::Colon;
            return Ok(Token::Key(start..end));
        }
        self.finish_value();
        Ok(Token::Text(start..end))
    }

    /// The place of the quote that ends the string which begins at `start`.
    fn end_of_string(&self, start: usize, is_key: bool) -> Option<usize> {
        let mut candidate = None;
        let mut at = start;
        while let Some(byte) = self.bytes.get(at) {
            match byte {
                // A backslash before the end was forgotten to be escaped itself: `"C:\"`.
                b'\\' if self.is_forgotten_backslash(at) => return Some(at + 1),
                b'\\' => at += 1,
                b'"' => match self.ends_at(at, is_key) {
                    Fit::Strong => return Some(at),
                    // The next field begins, so the doubtful quote before was the end.
                    Fit::No if candidate.is_some() && self.is_next_field(at) => return candidate,
                    Fit::Weak => candidate = candidate.or(Some(at)),
                    Fit::No => {}
                },
                b'}' if candidate.is_some() && self.is_next_object(at + 1) => return candidate,
                _ => {}
            }
            at += 1;
        }
        candidate
    }

    fn ends_at(&self, quote: usize, is_key: bool) -> Fit {
        let next = skip_blanks(self.bytes, quote + 1);
        if is_key && self.bytes.get(next) == Some(&b':') {
            return Fit::Strong;
        }
        match goes_on(self.bytes, next, &self.open) {
            Fit::No if self.closes_something(next) => Fit::Weak,
            fit => fit,
        }
    }

    /// Whether brackets follow, matching or not, and then the next field, the next object or the end.
    fn closes_something(&self, at: usize) -> bool {
        let is_part = |byte: &u8| matches!(byte, b'}' | b']') || is_blank(*byte);
        let end =
            self.bytes[at..].iter().position(|byte| !is_part(byte)).map_or(self.bytes.len(), |n| at + n);
        if end == at {
            return false;
        }
        match self.bytes.get(end) {
            None => true,
            Some(b',') => {
                is_object_start(self.bytes, end + 1) || key_and_value(self.bytes, end + 1) == Fit::Strong
            }
            Some(_) => false,
        }
    }

    /// Whether an escaped quote ends the string all the same. Rightly escaped ones stand before a comma in many
    /// a title, so nothing less than a whole next field or object will do.
    fn is_forgotten_backslash(&self, at: usize) -> bool {
        let is_quote = self.bytes.get(at + 1) == Some(&b'"');
        is_quote && goes_on_with(self.bytes, at + 2, &self.open, is_object_start) == Fit::Strong
    }

    /// Whether `"key":` with a value stands here, behind a comma.
    fn is_next_field(&self, quote: usize) -> bool {
        let before = self.bytes[..quote].iter().rev().find(|byte| !is_blank(**byte));
        before == Some(&b',') && key_and_value(self.bytes, quote) == Fit::Strong
    }

    /// Whether `, {"key":` follows, which no text holds by accident.
    fn is_next_object(&self, at: usize) -> bool {
        let comma = skip_blanks(self.bytes, at);
        self.bytes.get(comma) == Some(&b',') && is_object_start(self.bytes, comma + 1)
    }
}

/// Whether the text from `at` goes on as it would after a value inside the brackets `open`.
fn goes_on(bytes: &[u8], at: usize, open: &[u8]) -> Fit {
    goes_on_with(bytes, at, open, is_value_start)
}

/// The same, where `is_element` says what may follow a comma in a list.
fn goes_on_with(bytes: &[u8], mut at: usize, mut open: &[u8], is_element: fn(&[u8], usize) -> bool) -> Fit {
    loop {
        at = skip_blanks(bytes, at);
        let (innermost, outer) = match open.split_last() {
            Some((innermost, outer)) => (Some(*innermost), outer),
            None => (None, open),
        };
        match (bytes.get(at), innermost) {
            (None, None) => return Fit::Strong,
            (Some(b'}'), Some(b'{')) | (Some(b']'), Some(b'[')) => open = outer,
            (Some(b','), Some(b'{')) => return key_and_value(bytes, at + 1),
            (Some(b','), Some(_)) => {
                return if is_element(bytes, at + 1) { Fit::Strong } else { Fit::No };
            }
            _ => return Fit::No,
        }
        at += 1;
    }
}

fn key_and_value(bytes: &[u8], at: usize) -> Fit {
    match after_key(bytes, at) {
        Some(value) if is_value_start(bytes, value) => Fit::Strong,
        Some(_) => Fit::Weak,
        None => Fit::No,
    }
}

/// The place behind `"key":`.
fn after_key(bytes: &[u8], at: usize) -> Option<usize> {
    let key = key_at(bytes, at)?;
    let colon = skip_blanks(bytes, key.end + 1);
    (bytes.get(colon) == Some(&b':')).then_some(colon + 1)
}

/// The name that stands at `at` in quotes.
pub(crate) fn key_at(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let start = skip_blanks(bytes, at) + 1;
    if bytes.get(start - 1) != Some(&b'"') {
        return None;
    }
    let window = bytes.get(start..)?;
    let window = &window[..window.len().min(KEY_BYTES_MAX + 1)];
    let length = window.iter().position(|byte| *byte == b'"')?;
    let is_plain = !window[..length].iter().any(|byte| *byte == b'\\' || byte.is_ascii_control());
    (length > 0 && is_plain).then_some(start..start + length)
}

/// Whether `{"key":` or `{}` stands at `at`.
fn is_object_start(bytes: &[u8], at: usize) -> bool {
    let brace = skip_blanks(bytes, at);
    if bytes.get(brace) != Some(&b'{') {
        return false;
    }
    after_key(bytes, brace + 1).is_some() || bytes.get(skip_blanks(bytes, brace + 1)) == Some(&b'}')
}

fn is_value_start(bytes: &[u8], at: usize) -> bool {
    let start = skip_blanks(bytes, at);
    match bytes.get(start) {
        Some(b'"' | b'[') => true,
        Some(b'{') => is_object_start(bytes, start),
        Some(_) => {
            let rest = &bytes[start..];
            let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']') || is_blank(*byte);
            let Some(length) = rest.iter().position(is_end) else { return false };
            let next = rest.get(skip_blanks(rest, length));
            is_scalar(&rest[..length]) && matches!(next, Some(b',' | b'}' | b']'))
        }
        None => false,
    }
}

/// A literal, or what looks like a number.
fn is_scalar(word: &[u8]) -> bool {
    let looks_like_number =
        word.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E'));
    let begins_like_one = word.first().is_some_and(|first| first.is_ascii_digit() || *first == b'-');
    matches!(word, b"true" | b"false" | b"null") || (looks_like_number && begins_like_one)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// The first place from `at` on that is not blank (RFC 8259, section 2).
pub(crate) fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| is_blank(*byte)) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests;
