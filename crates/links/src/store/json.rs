//! Rows as JSON, which SQLite takes as one value.

use db::{Id, Timestamp};

/// Builds `[[…],[…]]`.
pub(super) struct Rows(Vec<u8>);

impl Rows {
    pub(super) fn new() -> Self {
        Self(vec![b'['])
    }

    pub(super) fn row(&mut self) -> Row<'_> {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.0.push(b'[');
        Row { bytes: &mut self.0, first: true }
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push(b']');
        String::from_utf8(self.0).expect("JSON is written as UTF-8")
    }
}

/// One row; ends when it is dropped.
pub(super) struct Row<'r> {
    bytes: &'r mut Vec<u8>,
    first: bool,
}

impl Row<'_> {
    fn separate(&mut self) {
        if !self.first {
            self.bytes.push(b',');
        }
        self.first = false;
    }

    pub(super) fn number(&mut self, number: Option<i64>) -> &mut Self {
        self.separate();
        match number {
            Some(number) => self.bytes.extend_from_slice(number.to_string().as_bytes()),
            None => self.bytes.extend_from_slice(b"null"),
        }
        self
    }

    pub(super) fn id(&mut self, id: Id) -> &mut Self {
        self.number(Some(id.get()))
    }

    pub(super) fn time(&mut self, time: Option<Timestamp>) -> &mut Self {
        self.number(time.map(Timestamp::micros))
    }

    pub(super) fn flag(&mut self, flag: bool) -> &mut Self {
        self.number(Some(i64::from(flag)))
    }

    pub(super) fn text(&mut self, text: Option<&str>) -> &mut Self {
        self.separate();
        match text {
            Some(text) => serde_json::to_writer(&mut *self.bytes, text).expect("a vector takes every byte"),
            None => self.bytes.extend_from_slice(b"null"),
        }
        self
    }

    /// As hexadecimal digits, for SQLite's `unhex`.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        self.separate();
        self.bytes.push(b'"');
        for byte in bytes {
            self.bytes.push(DIGITS[usize::from(byte >> 4)]);
            self.bytes.push(DIGITS[usize::from(byte & 15)]);
        }
        self.bytes.push(b'"');
        self
    }
}

impl Drop for Row<'_> {
    fn drop(&mut self) {
        self.bytes.push(b']');
    }
}

/// `[1,2,3]`
pub(super) fn ids(ids: &[Id]) -> String {
    let numbers: Vec<String> = ids.iter().map(|id| id.get().to_string()).collect();
    format!("[{}]", numbers.join(","))
}

/// `["a","b"]`
pub(super) fn texts(texts: &[&str]) -> String {
    serde_json::to_string(texts).expect("text is always JSON")
}
