//! Takes a page apart: its records, byte for byte, and what stands beside them.
//!
//! The walk follows strings and brackets alone. What is inside a record is not judged here: a record with a broken number
//! or bytes that are no text costs itself and not its page. What decides where the walk goes on (cursors) is read
//! strictly by whoever asked for it.

use std::ops::Range;

use crate::pointer::{Pointer, Tree};

/// Why a body is no page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PageError {
    #[error("an empty body")]
    Empty,
    #[error("a page of HTML instead of JSON")]
    Html,
    #[error("the body is no whole JSON document: something is wrong at byte {0}")]
    Broken(usize),
    #[error("the body ends in the middle of its JSON")]
    Cut,
    #[error("{0} stands twice in the page")]
    Twice(String),
    #[error("the page has no list at {0}")]
    NoList(String),
}

/// Which values of a page are wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    tree: Tree,
    pointers: Vec<Pointer>,
}

impl Wanted {
    /// The values at these pointers.
    pub(crate) fn new(pointers: &[&Pointer]) -> Self {
        let tree = Tree::of(pointers.iter().copied());
        Self { tree, pointers: pointers.iter().map(|pointer| (*pointer).clone()).collect() }
    }

    /// Where each wanted value stands in a body, in the order of the pointers; `None` if it is not there.
    pub(crate) fn find(&self, body: &[u8]) -> Result<Vec<Option<Range<usize>>>, PageError> {
        self.walk(body, None).map(|walk| walk.found)
    }

    /// As [`Wanted::find`], and the elements of the list that the first pointer leads to.
    pub(crate) fn find_list(&self, body: &[u8]) -> Result<Found, PageError> {
        let walk = self.walk(body, Some(0))?;
        let pointer = &self.pointers[0];
        let list = walk.found[0].clone().ok_or_else(|| PageError::NoList(pointer.to_string()))?;
        let elements = match walk.elements {
            Some(elements) => elements,
            None => elements(body, &list, pointer)?,
        };
        Ok(Found { values: walk.found, elements })
    }

    fn walk<'a>(&'a self, body: &'a [u8], list: Option<usize>) -> Result<Walk<'a>, PageError> {
        let found = vec![None; self.pointers.len()];
        let mut walk = Walk { body, at: 0, found, wanted: self, list, elements: None };
        if body.starts_with(b"\xef\xbb\xbf") {
            walk.at = 3;
        }
        match walk.peek() {
            None => return Err(PageError::Empty),
            Some(b'<') => return Err(PageError::Html),
            Some(_) => {}
        }
        walk.value(Some(&self.tree), 0)?;
        match walk.peek() {
            None => Ok(walk),
            Some(_) => Err(PageError::Broken(walk.at)),
        }
    }
}

/// What a body holds of what is wanted.
#[derive(Debug)]
pub(crate) struct Found {
    /// As [`Wanted::find`] gives them.
    pub(crate) values: Vec<Option<Range<usize>>>,
    /// Where the elements of the list stand.
    pub(crate) elements: Vec<Range<usize>>,
}

/// The elements of the list that stands at `range`.
fn elements(body: &[u8], range: &Range<usize>, pointer: &Pointer) -> Result<Vec<Range<usize>>, PageError> {
    let wanted = Wanted::default();
    let body = &body[..range.end];
    let mut walk =
        Walk { body, at: range.start, found: Vec::new(), wanted: &wanted, list: None, elements: None };
    if walk.peek() != Some(b'[') {
        let shown = if pointer.tokens().is_empty() { "its root".to_owned() } else { pointer.to_string() };
        return Err(PageError::NoList(shown));
    }
    walk.list()
}

/// Deeper than any page; a body of brackets must not use up the stack.
const DEPTH_MAX: usize = 100;

struct Walk<'a> {
    body: &'a [u8],
    at: usize,
    found: Vec<Option<Range<usize>>>,
    wanted: &'a Wanted,
    /// The pointer whose list is taken apart on the way, if nothing else is wanted inside it.
    list: Option<usize>,
    elements: Option<Vec<Range<usize>>>,
}

impl<'a> Walk<'a> {
    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.body.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Walks over a value; into it where something inside is wanted.
    fn value(&mut self, node: Option<&'a Tree>, depth: usize) -> Result<(), PageError> {
        let first = self.peek().ok_or(PageError::Cut)?;
        let start = self.at;
        match (first, node.filter(|node| !node.children.is_empty())) {
            (b'{', Some(node)) if depth < DEPTH_MAX => self.object(node, depth)?,
            (b'[', Some(node)) if depth < DEPTH_MAX => self.array(node, depth)?,
            (b'[', None)
                if self.list.is_some_and(|list| node.is_some_and(|node| node.leaves.contains(&list))) =>
            {
                self.elements = Some(self.list()?);
            }
            (b'{' | b'[', _) => self.skip_brackets()?,
            (b'"', _) => self.string().map(drop)?,
            (b',' | b':' | b'}' | b']', _) => return Err(PageError::Broken(self.at)),
            _ => {
                let rest = &self.body[self.at..];
                let length = rest
                    .iter()
                    .position(|byte| {
                        matches!(
                            byte,
                            b',' | b'}' | b']' | b':' | b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'{' | b'['
                        )
                    })
                    .unwrap_or(rest.len());
                self.at += length;
            }
        }
        for leaf in node.map(|node| node.leaves.as_slice()).unwrap_or_default() {
            if self.found[*leaf].is_some() {
                return Err(PageError::Twice(self.wanted.pointers[*leaf].to_string()));
            }
            self.found[*leaf] = Some(start..self.at);
        }
        Ok(())
    }

    fn object(&mut self, node: &'a Tree, depth: usize) -> Result<(), PageError> {
        self.at += 1;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            match self.peek() {
                Some(b'"') => {}
                Some(_) => return Err(PageError::Broken(self.at)),
                None => return Err(PageError::Cut),
            }
            let name = self.string()?;
            let name = std::str::from_utf8(&self.body[name]).ok().and_then(crate::field::json::text_of);
            match self.peek() {
                Some(b':') => self.at += 1,
                Some(_) => return Err(PageError::Broken(self.at)),
                None => return Err(PageError::Cut),
            }
            let child = name.and_then(|name| node.children.get(&*name));
            self.value(child, depth + 1)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) => return Err(PageError::Broken(self.at)),
                None => return Err(PageError::Cut),
            }
        }
    }

    fn array(&mut self, node: &'a Tree, depth: usize) -> Result<(), PageError> {
        self.at += 1;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        let mut index = 0_usize;
        loop {
            self.value(node.children.get(index.to_string().as_str()), depth + 1)?;
            index += 1;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) => return Err(PageError::Broken(self.at)),
                None => return Err(PageError::Cut),
            }
        }
    }

    /// The elements of the list that begins here.
    fn list(&mut self) -> Result<Vec<Range<usize>>, PageError> {
        self.at += 1;
        let mut elements = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(elements);
        }
        loop {
            self.peek().ok_or(PageError::Cut)?;
            let start = self.at;
            self.value(None, 0)?;
            elements.push(start..self.at);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(elements);
                }
                Some(_) => return Err(PageError::Broken(self.at)),
                None => return Err(PageError::Cut),
            }
        }
    }

    /// A string with its quotes.
    fn string(&mut self) -> Result<Range<usize>, PageError> {
        let start = self.at;
        let mut at = start + 1;
        loop {
            let rest = self.body.get(at..).unwrap_or_default();
            at += memchr::memchr2(b'"', b'\\', rest).ok_or(PageError::Cut)?;
            if self.body[at] == b'"' {
                break;
            }
            at += 2;
        }
        self.at = at + 1;
        Ok(start..self.at)
    }

    /// From an opening bracket to the one that closes it, however deep.
    fn skip_brackets(&mut self) -> Result<(), PageError> {
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.body.get(self.at) {
                None => return Err(PageError::Cut),
                Some(b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'{') => open.push(b'}'),
                Some(b'[') => open.push(b']'),
                Some(byte @ (b'}' | b']')) => {
                    if open.pop() != Some(*byte) {
                        return Err(PageError::Broken(self.at));
                    }
                    if open.is_empty() {
                        self.at += 1;
                        return Ok(());
                    }
                }
                Some(_) => {}
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(text: &str) -> Pointer {
        Pointer::parse(text).unwrap()
    }

    fn find<'a>(body: &'a [u8], pointers: &[&str]) -> Result<Vec<Option<&'a [u8]>>, PageError> {
        let pointers: Vec<Pointer> = pointers.iter().map(|text| pointer(text)).collect();
        let wanted = Wanted::new(&pointers.iter().collect::<Vec<_>>());
        let found = wanted.find(body)?;
        Ok(found.into_iter().map(|range| range.map(|range| &body[range])).collect())
    }

    fn records(body: &[u8], at: &str) -> Result<Vec<Vec<u8>>, PageError> {
        let pointer = pointer(at);
        let wanted = Wanted::new(&[&pointer]);
        let range = wanted.find(body)?.remove(0).ok_or(PageError::NoList(at.to_owned()))?;
        Ok(elements(body, &range, &pointer)?.into_iter().map(|range| body[range].to_vec()).collect())
    }

    #[test]
    fn values_are_found_byte_for_byte() {
        let body = br#" {"data":[{"id":1,"x":{"next":"no"}}, {"id": 2}],"meta":{"next":"c\u0031","more" : true ,"n":[7,8]}} "#;
        let found =
            find(body, &["/meta/next", "/meta/more", "/meta/absent", "/meta/n/1", "/data/0/id"]).unwrap();
        let shown: Vec<Option<&str>> =
            found.iter().map(|value| value.map(|bytes| std::str::from_utf8(bytes).unwrap())).collect();
        assert_eq!(shown, [Some(r#""c\u0031""#), Some("true"), None, Some("8"), Some("1")]);
        assert_eq!(
            records(body, "/data").unwrap(),
            [br#"{"id":1,"x":{"next":"no"}}"#.to_vec(), br#"{"id": 2}"#.to_vec()]
        );
        assert_eq!(records(b"[]", "").unwrap(), Vec::<Vec<u8>>::new());
        assert_eq!(records(b"[1,\"a\",null]", "").unwrap().len(), 3);
    }

    #[test]
    fn a_bad_record_costs_itself_alone() {
        let body = b"{\"data\":[{\"a\":\"\xff\"},{\"a\":},{\"a\":01},{\"a\":\"]}\\\"\"}]}";
        assert_eq!(records(body, "/data").unwrap().len(), 4);
    }

    #[test]
    fn what_is_no_whole_page_is_an_error() {
        for (body, error) in [
            (&b""[..], PageError::Empty),
            (b"  \n", PageError::Empty),
            (b"<html>", PageError::Html),
            (b"{\"data\":[{\"a\":1}", PageError::Cut),
            (b"{\"data\":[{\"a\":\"1", PageError::Cut),
            (b"{\"data\":[]", PageError::Cut),
            (b"{\"data\":[]}}", PageError::Broken(11)),
            (b"{\"data\":[}]}", PageError::Broken(9)),
            (b"{\"data\" []}", PageError::Broken(8)),
            (b"{\"data\":[],\"data\":[]}", PageError::Twice("/data".to_owned())),
            (b"{\"data\":{}}", PageError::NoList("/data".to_owned())),
            (b"{}", PageError::NoList("/data".to_owned())),
        ] {
            assert_eq!(records(body, "/data"), Err(error), "{}", String::from_utf8_lossy(body));
        }
        let deep = [b"{\"data\":".to_vec(), vec![b'['; 200_000]].concat();
        assert_eq!(records(&deep, "/data/0/0"), Err(PageError::Cut));
    }
}
