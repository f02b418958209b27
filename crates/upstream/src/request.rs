//! What is asked for, and what comes back.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use url::Url;

use crate::excerpt::shown;

/// One GET, to be sent as often as needed.
#[derive(Debug, Clone)]
pub struct Request {
    pub(crate) target: String,
    pub(crate) against: Option<Url>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) wants_json: bool,
}

impl Request {
    /// Asks for `target`: a path below the base (`groups/x`), a path from the host's root (`/v4/groups`), or a
    /// whole URL on the API's own origin, such as a `next` link.
    #[must_use]
    pub fn get(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            against: None,
            query: Vec::new(),
            headers: HeaderMap::new(),
            wants_json: false,
        }
    }

    /// Reads a relative target against `url` instead of the base: for a `next` link, the URL of the answer that
    /// holds it.
    #[must_use]
    pub fn relative_to(mut self, url: &Url) -> Self {
        self.against = Some(url.clone());
        self
    }

    /// Adds parameters behind those the target already has.
    #[must_use]
    pub fn query<'a>(mut self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.query.extend(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
        self
    }

    /// Sends one more header, in place of a default one of the same name.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Takes only a whole JSON document for an answer: an empty body, HTML and a document without its end are
    /// asked for again and then are [`Error::Malformed`](crate::Error::Malformed), never data. What the strings
    /// inside hold is not judged.
    #[must_use]
    pub fn expect_json(mut self) -> Self {
        self.wants_json = true;
        self
    }
}

/// A whole answer.
#[derive(Clone)]
#[non_exhaustive]
pub struct Answer {
    /// The status, usually 200.
    pub status: StatusCode,
    /// The headers as received.
    pub headers: HeaderMap,
    /// The decoded body. With [`Request::expect_json`] it begins with `{`, `[` or blanks: a byte order mark is
    /// taken off.
    pub body: Bytes,
    /// Where the answer came from, after redirects. Relative `next` links are relative to it.
    pub url: Url,
    /// Times the request was sent until this answer; redirects do not count.
    pub attempts: u32,
    /// Time from the call to the answer, waits included.
    pub elapsed: Duration,
    /// Size of the body as received.
    pub wire_bytes: u64,
}

impl fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Answer")
            .field("status", &self.status)
            .field("url", &shown(&self.url))
            .field("body_bytes", &self.body.len())
            .field("attempts", &self.attempts)
            .field("elapsed", &self.elapsed)
            .finish_non_exhaustive()
    }
}
