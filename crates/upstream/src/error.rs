//! Everything that can go wrong with a request, told by what the caller can do about it.

use std::fmt;
use std::time::SystemTime;

use http::StatusCode;

/// Why a request gave no answer.
///
/// Texts of servers inside are at most 200 characters, on one line, without the credential; URLs are without
/// user and secret parameters. All of them may be logged and shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The credential is refused, also after it was asked for afresh. Ask for another one.
    #[error("GET {url} refused the credential (status {status}): {excerpt}")]
    Unauthorized {
        /// What was asked for.
        url: String,
        /// Usually 401.
        status: StatusCode,
        /// Beginning of the body.
        excerpt: String,
    },
    /// Nothing will be answered before `until`. Put the work aside and come back then.
    #[error("GET {url} is not answered before {}: {reason}", httpdate::fmt_http_date(*.until))]
    WaitUntil {
        /// What was asked for.
        url: String,
        /// When to come back, on the local clock.
        until: SystemTime,
        /// Why, for people.
        reason: String,
    },
    /// Still refused for asking too often after every retry. Come back later.
    #[error("GET {url} was limited on all of {attempts} attempts: {reason}")]
    RateLimited {
        /// What was asked for.
        url: String,
        /// Attempts made.
        attempts: u32,
        /// Why, for people.
        reason: String,
    },
    /// Answered with a temporary failure on every attempt. Come back later.
    #[error("GET {url} failed on all of {attempts} attempts, last with status {status}: {reason}")]
    Unavailable {
        /// What was asked for.
        url: String,
        /// Status of the last attempt; 200 when the failure was in the body.
        status: StatusCode,
        /// Attempts made.
        attempts: u32,
        /// Why, for people.
        reason: String,
    },
    /// No whole answer arrived on any attempt. Come back later.
    #[error("GET {url} got no whole answer in {attempts} attempts: {kind}: {detail}")]
    Transport {
        /// What was asked for.
        url: String,
        /// What broke.
        kind: Broken,
        /// Attempts made.
        attempts: u32,
        /// Why, for people.
        detail: String,
    },
    /// Answered with a status that will not change by asking again. Change the request.
    #[error("GET {url} answered {status}: {excerpt}")]
    Status {
        /// What was asked for.
        url: String,
        /// The status.
        status: StatusCode,
        /// Beginning of the body, or what the source says about it.
        excerpt: String,
    },
    /// A body of the wrong kind on every attempt: nothing, a page for people, or a document without its end.
    #[error("GET {url} answered {status} with {problem} on all of {attempts} attempts: {excerpt}")]
    Malformed {
        /// What was asked for.
        url: String,
        /// The status, which claimed success.
        status: StatusCode,
        /// What is wrong with the body.
        problem: String,
        /// Attempts made.
        attempts: u32,
        /// Beginning of the body.
        excerpt: String,
    },
    /// The body passes the limit, as received or decoded. Ask for smaller pages.
    #[error("GET {url} answered with more than {limit_bytes} bytes")]
    BodyTooLarge {
        /// What was asked for.
        url: String,
        /// The limit that was passed.
        limit_bytes: usize,
    },
    /// A redirect or a `next` URL leads away from the API. It is not followed, for the credential would go along.
    #[error("{url} is not on {origin}, so it is not followed")]
    ForeignOrigin {
        /// Where it leads.
        url: String,
        /// The only origin that is asked.
        origin: String,
    },
    /// More redirects than anybody needs.
    #[error("GET {url} redirects more than {limit} times")]
    TooManyRedirects {
        /// What was asked for.
        url: String,
        /// Redirects that were followed.
        limit: u32,
    },
    /// A URL that is none, or that cannot be asked.
    #[error("cannot ask for {url:?}: {reason}")]
    BadUrl {
        /// The text.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The provider gave no credential.
    #[error("no credential to ask with: {reason}")]
    Credentials {
        /// What the provider says.
        reason: String,
    },
    /// The client cannot be built from these options.
    #[error("cannot build the client: {reason}")]
    Options {
        /// What is wrong with them.
        reason: String,
    },
}

impl Error {
    /// The status of the last answer, if there was one and it is what the error is about.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Unauthorized { status, .. }
            | Self::Unavailable { status, .. }
            | Self::Status { status, .. }
            | Self::Malformed { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the same request may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::WaitUntil { .. } | Self::RateLimited { .. } | Self::Unavailable { .. } => true,
            Self::Malformed { .. } => true,
            Self::Transport { kind, .. } => kind.is_worth_a_retry(),
            _ => false,
        }
    }
}

/// What broke on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// No connection: refused, no such host, no route.
    Connect,
    /// The server could not prove who it is; asking again does not help.
    Certificate,
    /// One of the time limits passed.
    Timeout,
    /// The connection ended before the head of an answer.
    Connection,
    /// The connection ended inside the body.
    Body,
    /// The body's compression is broken or ends early.
    Encoding,
}

impl Broken {
    pub(crate) fn is_worth_a_retry(self) -> bool {
        self != Self::Certificate
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Connect => "no connection",
            Self::Certificate => "certificate not trusted",
            Self::Timeout => "time limit passed",
            Self::Connection => "connection lost",
            Self::Body => "body cut off",
            Self::Encoding => "body cannot be decoded",
        })
    }
}
