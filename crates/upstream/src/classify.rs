//! What an answer means, where the source knows better than its status.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};
use url::Url;

use crate::retry_after;

/// An answer as a classifier sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Reply<'a> {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The decoded body. Of a refusal it may be a beginning, or empty if it could not be read.
    pub body: &'a [u8],
    /// Where the answer came from.
    pub url: &'a Url,
    /// The server's time by its `Date`, else the local one.
    pub server_now: SystemTime,
    /// The local time, on which [`Verdict::WaitUntil`] is told.
    pub local_now: SystemTime,
}

impl Reply<'_> {
    /// The wait that the answer itself asks for, in whatever form servers send it; `None` if it asks for none, for
    /// a moment that has passed, or for an absurd one. The client looks here itself where a [`Verdict`] names no
    /// wait; a source that knows a better one than backoff asks first.
    #[must_use]
    pub fn asked_wait(&self) -> Option<Duration> {
        retry_after::asked(self.headers, self.body, self.local_now)
    }
}

/// What the client shall do with an answer. Reasons are for people; name the vendor's code in them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// As the status says: 2xx is data, 401 a refused credential, 429 a limit, 500, 502, 503 and 504
    /// temporary, everything else final.
    Default,
    /// Data, whatever the status.
    Ok,
    /// A temporary failure of this request: ask again, after the given time or with backoff.
    Retry {
        /// The wait, if the answer names one; else `Retry-After` of a 429 or 503, else backoff.
        after: Option<Duration>,
        /// Why.
        reason: String,
    },
    /// We ask too often: all requests of the client pause, then one goes first.
    RateLimited {
        /// The wait, if the source knows one; else `Retry-After`, else backoff.
        after: Option<Duration>,
        /// Why.
        reason: String,
    },
    /// Nothing will be answered before a moment, such as the first of the next month.
    WaitUntil {
        /// The moment on the local clock.
        until: SystemTime,
        /// Why.
        reason: String,
    },
    /// Final: asking again cannot help.
    Fatal {
        /// Why.
        reason: String,
    },
    /// The credential is refused.
    Unauthorized,
}

/// What the status alone says; `explanation` becomes the reason.
pub(crate) fn by_status(status: StatusCode, explanation: &str) -> Verdict {
    let reason = explanation.to_owned();
    match status.as_u16() {
        200..=299 => Verdict::Ok,
        401 => Verdict::Unauthorized,
        429 => Verdict::RateLimited { after: None, reason },
        500 | 502 | 503 | 504 => Verdict::Retry { after: None, reason },
        _ => Verdict::Fatal { reason },
    }
}

/// Reads the meaning of answers for one source: "this 403 is a rate limit", "this 429 is the month's quota",
/// "this 200 is an error".
pub trait Classify: Send + Sync + 'static {
    /// Judges one answer. Called for every answer except redirects, also for 2xx.
    fn classify(&self, reply: &Reply<'_>) -> Verdict;
}

impl<F: Fn(&Reply<'_>) -> Verdict + Send + Sync + 'static> Classify for F {
    fn classify(&self, reply: &Reply<'_>) -> Verdict {
        self(reply)
    }
}
