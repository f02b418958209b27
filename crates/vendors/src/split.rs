//! Takes the body of a page apart: the records of its list, byte for byte, and what stands beside the list.
//!
//! The strict reader goes first. Where it refuses a body, a tolerant one follows, so that one title with a raw
//! control character or an unescaped quote costs nothing but, at worst, its own record. The records are slices of
//! the body; nothing is copied and nothing is mended here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::tolerant::{Cut, Scanner, Token, key_at, skip_blanks};

/// Where in its pages a vendor keeps the list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// The name of the list in the page's object.
    pub(crate) list: &'static str,
    /// Names of what may stand behind the list, each once; where a record's brackets do not match, they show its end.
    pub(crate) siblings: &'static [&'static str],
    /// A name that records have and objects inside a record have not.
    pub(crate) mark: &'static str,
}

impl Layout {
    /// The layout's own word for `name` if it is one that stands among `siblings` already.
    fn known_twice<T>(&self, siblings: &[(String, T)], name: &str) -> Option<&'static str> {
        let is_there = siblings.iter().any(|(known, _)| known == name);
        self.siblings.iter().copied().find(|known| is_there && *known == name)
    }
}

/// A page taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Split<'a> {
    /// The elements of the list as received.
    pub(crate) records: Vec<&'a [u8]>,
    /// What stands beside the list, as received.
    siblings: Vec<(String, &'a [u8])>,
}

impl<'a> Split<'a> {
    /// What stands beside the list under this name.
    pub(crate) fn sibling(&self, name: &str) -> Option<&'a [u8]> {
        self.siblings.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

/// Why a body is no page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SplitError {
    #[error("an empty body")]
    Empty,
    #[error("a page of HTML instead of JSON")]
    Html,
    #[error("{0} where an object belongs")]
    NotAnObject(&'static str),
    #[error("the page is cut: it ends inside its JSON")]
    Cut,
    #[error("something behind the end of the JSON")]
    Rubbish,
    #[error("a page without its list `{0}`")]
    NoList(&'static str),
    #[error("`{0}` is there but is no list")]
    NotAList(&'static str),
    #[error("`{0}` is there twice")]
    Twice(&'static str),
}

/// Takes a body apart.
///
/// # Errors
/// [`SplitError`] if the page itself is not whole or not a page; never because of what one record holds.
pub(crate) fn split<'a>(body: &'a [u8], layout: &Layout) -> Result<Split<'a>, SplitError> {
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body).trim_ascii();
    match text.first() {
        None => return Err(SplitError::Empty),
        Some(b'{') => {}
        Some(b'<') => return Err(SplitError::Html),
        Some(b'[') => return Err(SplitError::NotAnObject("a list")),
        Some(_) => return Err(SplitError::NotAnObject("something that is no JSON")),
    }
    match strict(text, layout) {
        Some(split) => split,
        None => Walk::new(text, layout).run(),
    }
}

/// Nothing if the body is no JSON, or no page as far as the strict reader can tell.
fn strict<'a>(text: &'a [u8], layout: &Layout) -> Option<Result<Split<'a>, SplitError>> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let page = deserializer.deserialize_map(StrictPage { layout }).ok()?;
    deserializer.end().ok()?;
    if let Some(name) = page.twice {
        return Some(Err(SplitError::Twice(name)));
    }
    let bytes = |raw: &'a RawValue| raw.get().as_bytes();
    Some(Ok(Split {
        records: page.records?.into_iter().map(bytes).collect(),
        siblings: page.siblings.into_iter().map(|(name, raw)| (name, bytes(raw))).collect(),
    }))
}

struct StrictPage<'l> {
    layout: &'l Layout,
}

#[derive(Default)]
struct Borrowed<'de> {
    records: Option<Vec<&'de RawValue>>,
    siblings: Vec<(String, &'de RawValue)>,
    /// A name of the layout that is there twice: nobody can say which of the two counts.
    twice: Option<&'static str>,
}

impl<'de> Visitor<'de> for StrictPage<'_> {
    type Value = Borrowed<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a page")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut page = Borrowed::default();
        while let Some(name) = map.next_key::<String>()? {
            if name != self.layout.list {
                page.twice = page.twice.or_else(|| self.layout.known_twice(&page.siblings, &name));
                page.siblings.push((name, map.next_value()?));
            } else if page.records.is_some() {
                page.twice = Some(self.layout.list);
                map.next_value::<IgnoredAny>()?;
            } else {
                page.records = Some(map.next_value()?);
            }
        }
        Ok(page)
    }
}

/// The tolerant reader's walk over a page.
///
/// Sound records are read strictly, one by one, so that only a broken one is ever guessed at.
struct Walk<'a, 'l> {
    text: &'a [u8],
    layout: &'l Layout,
    scanner: Scanner<'a>,
    key: Option<Range<usize>>,
    value: Option<Range<usize>>,
    element: Option<Range<usize>>,
    in_list: bool,
    saw_list: bool,
    /// The name that the first record begins with; the others begin with it too.
    head: Option<&'a [u8]>,
    split: Split<'a>,
}

/// Depth of the page's own names, and of the elements of its list.
const PAGE_DEPTH: usize = 1;
const LIST_DEPTH: usize = 2;

impl<'a, 'l> Walk<'a, 'l> {
    fn new(text: &'a [u8], layout: &'l Layout) -> Self {
        Self {
            text,
            layout,
            scanner: Scanner::new(text),
            key: None,
            value: None,
            element: None,
            in_list: false,
            saw_list: false,
            head: None,
            split: Split::default(),
        }
    }

    fn run(mut self) -> Result<Split<'a>, SplitError> {
        loop {
            if self.take_sound_value() || self.take_broken_record()? {
                continue;
            }
            let before = self.scanner.depth();
            let Some(token) = self.scanner.next().map_err(|Cut| SplitError::Cut)? else { break };
            if before == 0 && self.scanner.position() > 1 {
                return Err(SplitError::Rubbish);
            }
            self.take(token, before)?;
        }
        if self.saw_list { Ok(self.split) } else { Err(SplitError::NoList(self.layout.list)) }
    }

    /// Takes the next element of the list, or the value beside it, if it is valid as it stands.
    fn take_sound_value(&mut self) -> bool {
        let is_element = self.in_list && self.scanner.depth() == LIST_DEPTH;
        let is_sibling =
            self.scanner.depth() == PAGE_DEPTH && self.name() != Some(self.layout.list.as_bytes());
        let start = skip_blanks(self.text, self.scanner.position());
        if !self.scanner.expects_value() || !(is_element || is_sibling) || start == self.text.len() {
            return false;
        }
        let is_record = is_element && self.text[start] == b'{';
        let end = self.end_of_sound(start);
        // A title may end a record early with `"}]}`; then more than a bracket must be right behind it.
        let end =
            end.filter(|end| !is_record || self.after(*end, b',').is_some() || self.is_end_of_list(*end));
        let Some(end) = end else { return false };
        self.scanner.jump_behind_value(end);
        if is_sibling {
            self.value = Some(start..end);
            return true;
        }
        self.element = Some(start..end);
        if is_record {
            self.head = self.head.or_else(|| self.name_in(start));
        }
        true
    }

    fn take_broken_record(&mut self) -> Result<bool, SplitError> {
        let start = skip_blanks(self.text, self.scanner.position());
        let is_element = self.in_list && self.scanner.depth() == LIST_DEPTH && self.scanner.expects_value();
        if !is_element || self.text.get(start) != Some(&b'{') {
            return Ok(false);
        }
        self.head = self.head.or_else(|| self.name_in(start));
        let end = self.end_of_broken(start).ok_or(SplitError::Cut)?;
        self.scanner.jump_behind_value(end);
        self.element = Some(start..end);
        Ok(true)
    }

    /// The end of the valid value that begins here, if a comma or a bracket is behind it.
    fn end_of_sound(&self, start: usize) -> Option<usize> {
        let mut stream =
            serde_json::Deserializer::from_slice(self.text.get(start..)?).into_iter::<&RawValue>();
        stream.next()?.ok()?;
        let end = start + stream.byte_offset();
        let behind = self.text.get(skip_blanks(self.text, end));
        matches!(behind, Some(b',' | b']' | b'}')).then_some(end)
    }

    /// The end of a record that is no JSON. Where its brackets say, if the page goes on well there and no sound
    /// record was swallowed on the way; else the first bracket behind which the page goes on well.
    fn end_of_broken(&self, start: usize) -> Option<usize> {
        let by_brackets = self.scanner.clone().end_of_value(start);
        let by_next = self.closing_braces(start).find(|end| self.is_sound_record_behind(*end));
        match (by_brackets.filter(|end| self.goes_on_well(*end)), by_next) {
            (Some(end), Some(other)) => Some(end.min(other)),
            (Some(end), None) | (None, Some(end)) => Some(end),
            (None, None) => self.closing_braces(start).find(|end| self.goes_on_well(*end)).or(by_brackets),
        }
    }

    /// The places behind the closing braces from `start` on.
    fn closing_braces(&self, start: usize) -> impl Iterator<Item = usize> + use<'a> {
        let closing = self.text[start..].iter().enumerate().filter(|(_, byte)| **byte == b'}');
        closing.map(move |(at, _)| start + at + 1)
    }

    /// The first name in the object that begins here.
    fn name_in(&self, brace: usize) -> Option<&'a [u8]> {
        key_at(self.text, brace + 1).map(|key| &self.text[key])
    }

    fn is_sound_record_behind(&self, at: usize) -> bool {
        let next = self.after(at, b',').map(|at| skip_blanks(self.text, at));
        let next = next.filter(|next| self.is_record(*next));
        let sound = next.and_then(|next| self.end_of_sound(next).map(|end| next..end));
        sound.is_some_and(|sound| self.goes_on_well(sound.end) && self.is_marked(&self.text[sound]))
    }

    fn is_marked(&self, object: &[u8]) -> bool {
        let fields = serde_json::from_slice::<BTreeMap<Cow<'_, str>, IgnoredAny>>(object);
        fields.is_ok_and(|fields| fields.contains_key(self.layout.mark))
    }

    /// Whether the next record begins here, or the list ends.
    fn goes_on_well(&self, at: usize) -> bool {
        self.after(at, b',').is_some_and(|next| self.is_record(next)) || self.is_end_of_list(at)
    }

    /// Whether an object stands here that begins as the first record does.
    fn is_record(&self, at: usize) -> bool {
        let name = self.after(at, b'{').and_then(|at| key_at(self.text, at)).map(|key| &self.text[key]);
        name.is_some() && name == self.head
    }

    fn is_end_of_list(&self, at: usize) -> bool {
        let Some(end) = self.after(at, b']') else { return false };
        if let Some(comma) = self.after(end, b',') {
            let key = key_at(self.text, comma).map(|key| &self.text[key]);
            return key.is_some_and(|key| self.layout.siblings.iter().any(|name| name.as_bytes() == key));
        }
        self.after(end, b'}').is_some_and(|end| skip_blanks(self.text, end) == self.text.len())
    }

    /// The place behind this byte, if it comes next.
    fn after(&self, at: usize, byte: u8) -> Option<usize> {
        let at = skip_blanks(self.text, at);
        (self.text.get(at) == Some(&byte)).then_some(at + 1)
    }

    fn take(&mut self, token: Token, before: usize) -> Result<(), SplitError> {
        let after = self.scanner.depth();
        match &token {
            Token::Open(_) if before == 0 => return Ok(()),
            Token::Close(_) if after == 0 => return self.finish_sibling(),
            Token::Comma(_) if after == PAGE_DEPTH => return self.finish_sibling(),
            Token::Colon(_) if after == PAGE_DEPTH => return Ok(()),
            Token::Key(name) if after == PAGE_DEPTH => {
                self.key = Some(name.clone());
                return Ok(());
            }
            Token::Comma(_) if self.in_list && after == LIST_DEPTH => {
                self.finish_element();
                return Ok(());
            }
            Token::Close(_) if self.in_list && after < LIST_DEPTH => {
                self.finish_element();
                self.in_list = false;
                return Ok(());
            }
            Token::Open(at) if after == LIST_DEPTH && self.begins_list(at) => return self.begin_list(),
            _ => {}
        }
        let part = if self.in_list { &mut self.element } else { &mut self.value };
        let span = token.span();
        part.get_or_insert_with(|| span.clone()).end = span.end;
        Ok(())
    }

    fn begins_list(&self, at: &Range<usize>) -> bool {
        self.text[at.start] == b'['
            && self.value.is_none()
            && self.name() == Some(self.layout.list.as_bytes())
    }

    fn name(&self) -> Option<&'a [u8]> {
        self.key.clone().map(|key| &self.text[key])
    }

    fn begin_list(&mut self) -> Result<(), SplitError> {
        if self.saw_list {
            return Err(SplitError::Twice(self.layout.list));
        }
        self.saw_list = true;
        self.in_list = true;
        Ok(())
    }

    fn finish_element(&mut self) {
        if let Some(element) = self.element.take() {
            self.split.records.push(&self.text[element]);
        }
    }

    fn finish_sibling(&mut self) -> Result<(), SplitError> {
        self.in_list = false;
        let (Some(key), value) = (self.key.take(), self.value.take()) else { return Ok(()) };
        let is_list = self.text[key.clone()] == *self.layout.list.as_bytes();
        match value {
            Some(_) if is_list => Err(SplitError::NotAList(self.layout.list)),
            Some(value) => {
                let name = String::from_utf8_lossy(&self.text[key]).into_owned();
                if let Some(name) = self.layout.known_twice(&self.split.siblings, &name) {
                    return Err(SplitError::Twice(name));
                }
                self.split.siblings.push((name, &self.text[value]));
                Ok(())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
