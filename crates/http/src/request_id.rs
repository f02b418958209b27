//! The name of a request, in its answer, in errors and on the log lines of what it started.

use std::fmt;

use axum::extract::FromRequestParts;
use http::HeaderValue;
use http::request::Parts;

/// The header that carries it in every answer of the API and the pages.
pub(crate) const HEADER: http::HeaderName = http::HeaderName::from_static("x-request-id");

/// `req_` and an id that is made here: what a client sends under this name is not taken over.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(String);

impl RequestId {
    pub(crate) fn new() -> Self {
        Self(format!("req_{}", db::Id::new()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).expect("an id is made of ASCII letters and digits")
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<S: Sync> FromRequestParts<S> for RequestId {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(Self::new))
    }
}
