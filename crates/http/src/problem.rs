//! Errors as clients see them: `application/problem+json` (RFC 9457), and the only place that knows which status
//! belongs to which error.
//!
//! A handler returns a [`Problem`]; it travels in the extensions of an empty response until [`Rendering`] writes
//! the body, because only there the request's id and the server's public URL are known. Clients get the detail, the
//! log gets the cause.

use std::borrow::Cow;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde_json::{Map, Value, json};

use crate::request_id::RequestId;

/// What kind of error it is, in a stable word for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    InvalidJson,
    ValidationFailed,
    Unauthenticated,
    MissingScope,
    InvalidSignature,
    NotFound,
    MethodNotAllowed,
    SlugConflict,
    DomainConflict,
    ExternalIdConflict,
    StaleVersion,
    InvalidState,
    BodyTooLarge,
    UnsupportedMediaType,
    Internal,
    BadGateway,
    Unavailable,
    Timeout,
}

/// Status, word, title, and what a person can do about it.
type Facts = (StatusCode, &'static str, &'static str, &'static str);

impl Code {
    pub(crate) const ALL: [Self; 18] = [
        Self::InvalidJson,
        Self::ValidationFailed,
        Self::Unauthenticated,
        Self::MissingScope,
        Self::InvalidSignature,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::SlugConflict,
        Self::DomainConflict,
        Self::ExternalIdConflict,
        Self::StaleVersion,
        Self::InvalidState,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::Internal,
        Self::BadGateway,
        Self::Unavailable,
        Self::Timeout,
    ];

    #[rustfmt::skip]
    const fn facts(self) -> Facts {
        match self {
            Self::InvalidJson => (StatusCode::BAD_REQUEST, "invalid_json", "The body is not JSON",
                "The request's body could not be read as one JSON object. Send it with Content-Type: application/json."),
            Self::ValidationFailed => (StatusCode::BAD_REQUEST, "validation_failed", "The request is not valid",
                "Some fields or parameters break a rule. The member 'errors' names each with a JSON pointer, a code and a message."),
            Self::Unauthenticated => (StatusCode::UNAUTHORIZED, "unauthenticated", "A valid token is needed",
                "Send Authorization: Bearer and an API token that is neither revoked nor expired. 'crossdock token create' makes one."),
            Self::MissingScope => (StatusCode::FORBIDDEN, "missing_scope", "The token lacks a scope",
                "The token is valid and may not do this. The detail names the scope it would need."),
            Self::InvalidSignature => (StatusCode::FORBIDDEN, "invalid_signature", "The link is not valid",
                "The page's link was changed or has expired. Ask for a new one where you got it."),
            Self::NotFound => (StatusCode::NOT_FOUND, "not_found", "Not found",
                "There is no such thing here. What belongs to another workspace is answered in the same way."),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed",
                "The address exists and does not know this method. The Allow header lists those it knows."),
            Self::SlugConflict => (StatusCode::CONFLICT, "slug_conflict", "The slug is taken",
                "Another link of the domain has this slug. Choose another one, or change that link."),
            Self::DomainConflict => (StatusCode::CONFLICT, "domain_conflict", "The domain is taken",
                "The host is already a link domain of this server."),
            Self::ExternalIdConflict => (StatusCode::CONFLICT, "external_id_conflict", "The external id is taken",
                "Another link of the workspace, perhaps a deleted one, has this external id. Look it up, or use another id."),
            Self::StaleVersion => (StatusCode::CONFLICT, "stale_version", "The link has changed meanwhile",
                "The version that was sent is not the current one. Read the link again, apply your change to it, send it with the current version."),
            Self::InvalidState => (StatusCode::CONFLICT, "invalid_state", "Not possible in this state",
                "The object's state does not allow this now. The detail names the state."),
            Self::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "The body is too large",
                "The request's body is larger than this address takes."),
            Self::UnsupportedMediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "Unsupported media type",
                "Send the body with Content-Type: application/json."),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error",
                "Something failed here. The server's log tells more under the request's id."),
            Self::BadGateway => (StatusCode::BAD_GATEWAY, "bad_gateway", "The source did not answer properly",
                "A service that is asked on your behalf failed. Try again later."),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Not available for the moment",
                "Try again after the time that Retry-After names. Whether a write happened can be seen by reading."),
            Self::Timeout => (StatusCode::GATEWAY_TIMEOUT, "timeout", "The request took too long",
                "The server gave up. Whether a write happened can be seen by reading."),
        }
    }

    pub(crate) fn status(self) -> StatusCode {
        self.facts().0
    }

    pub(crate) fn word(self) -> &'static str {
        self.facts().1
    }

    pub(crate) fn title(self) -> &'static str {
        self.facts().2
    }

    pub(crate) fn advice(self) -> &'static str {
        self.facts().3
    }
}

/// One field that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldError {
    /// JSON pointer into the body (RFC 6901), or the name of a query parameter.
    pub(crate) pointer: String,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl FieldError {
    pub(crate) fn new(pointer: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), code, message: message.into() }
    }
}

/// An error on its way to a client. Boxed, because most results are none.
#[derive(Debug, Clone)]
pub(crate) struct Problem(Box<Told>);

#[derive(Debug, Clone)]
struct Told {
    code: Code,
    detail: Cow<'static, str>,
    errors: Vec<FieldError>,
    members: Map<String, Value>,
    retry_after_seconds: Option<u64>,
    /// For the log alone.
    cause: Option<String>,
    page: bool,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Told {
            code,
            detail: detail.into(),
            errors: Vec::new(),
            members: Map::new(),
            retry_after_seconds: None,
            cause: None,
            page: false,
        }))
    }

    pub(crate) fn validation(errors: Vec<FieldError>) -> Self {
        let detail = match errors.as_slice() {
            [one] if one.pointer.is_empty() => one.message.clone(),
            [one] => format!("{}: {}", one.pointer, one.message),
            several => format!("{} fields break a rule", several.len()),
        };
        let mut problem = Self::new(Code::ValidationFailed, detail);
        problem.0.errors = errors;
        problem
    }

    pub(crate) fn field(pointer: impl Into<String>, code: &'static str, message: impl Into<String>) -> Self {
        Self::validation(vec![FieldError::new(pointer, code, message)])
    }

    pub(crate) fn not_found() -> Self {
        Self::new(Code::NotFound, "there is nothing under this address")
    }

    pub(crate) fn unavailable(detail: impl Into<Cow<'static, str>>) -> Self {
        let mut problem = Self::new(Code::Unavailable, detail);
        problem.0.retry_after_seconds = Some(1);
        problem
    }

    pub(crate) fn internal(cause: impl std::fmt::Display) -> Self {
        Self::new(
            Code::Internal,
            "something failed on this server; its log tells more under the request's id",
        )
        .caused_by(cause)
    }

    /// A member of its own in the body.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.members.insert(name.to_owned(), value.into());
        self
    }

    /// For the log alone.
    pub(crate) fn caused_by(mut self, cause: impl std::fmt::Display) -> Self {
        self.0.cause = Some(cause.to_string());
        self
    }

    /// To be shown to a person in a browser.
    pub(crate) fn for_people(mut self) -> Self {
        self.0.page = true;
        self
    }

    #[cfg(test)]
    pub(crate) fn code(&self) -> Code {
        self.0.code
    }

    #[cfg(test)]
    pub(crate) fn errors(&self) -> &[FieldError] {
        &self.0.errors
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.0.code.status();
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes problems out.
#[derive(Debug, Clone)]
pub(crate) struct Rendering {
    /// Without a slash at its end.
    pub(crate) public_url: String,
}

impl Rendering {
    /// Writes the problem in the response, if there is one, and logs it once.
    pub(crate) fn finish(&self, mut response: Response, request_id: &RequestId) -> Response {
        let Some(Problem(problem)) = response.extensions_mut().remove() else { return response };
        log(&problem, request_id);
        let body = if problem.page { page(&problem, request_id) } else { self.json(&problem, request_id) };
        let content_type = if problem.page { "text/html; charset=utf-8" } else { "application/problem+json" };
        *response.body_mut() = Body::from(body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if problem.page {
            crate::pages::secure(headers);
        }
        if let Some(seconds) = problem.retry_after_seconds {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if problem.code == Code::Unauthenticated {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }

    fn json(&self, problem: &Told, request_id: &RequestId) -> Vec<u8> {
        let mut body = json!({
            "type": format!("{}/errors/{}", self.public_url, problem.code.word()),
            "title": problem.code.title(),
            "status": problem.code.status().as_u16(),
            "code": problem.code.word(),
            "detail": problem.detail,
            "request_id": request_id.as_str(),
        });
        let members = body.as_object_mut().expect("an object was just made");
        if !problem.errors.is_empty() {
            let errors: Vec<Value> = problem
                .errors
                .iter()
                .map(|error| json!({"pointer": error.pointer, "code": error.code, "message": error.message}))
                .collect();
            members.insert("errors".into(), errors.into());
        }
        members.extend(problem.members.clone());
        body.to_string().into_bytes()
    }
}

fn page(problem: &Told, request_id: &RequestId) -> Vec<u8> {
    crate::pages::error_page(problem.code, &problem.detail, request_id).into_bytes()
}

fn log(problem: &Told, request_id: &RequestId) {
    let cause = problem.cause.as_deref().unwrap_or("");
    if problem.code.status().is_server_error() {
        tracing::error!(%request_id, code = problem.code.word(), cause, "a request failed");
    } else {
        tracing::debug!(%request_id, code = problem.code.word(), detail = %problem.detail, "a request was refused");
    }
}

impl From<db::Error> for Problem {
    fn from(error: db::Error) -> Self {
        use db::Error::{Address, CommitUnknown, Connection, Data, Migration, Other, Retry, Unique};
        match &error {
            Retry(_) | Connection(_) => {
                Self::unavailable("the database does not answer; nothing was written")
            }
            CommitUnknown(_) => Self::unavailable(
                "the database went away while it committed; read before you repeat the write",
            ),
            Unique { .. } | Data(_) | Address(_) | Migration { .. } | Other(_) => Self::internal(&error),
        }
        .caused_by(error)
    }
}

impl From<links::Error> for Problem {
    fn from(error: links::Error) -> Self {
        use links::Error as E;
        let told = error.to_string();
        match error {
            E::SlugTaken { link_id, .. } => {
                Self::new(Code::SlugConflict, told).with("conflicting_link", link_id.to_string())
            }
            E::StaleVersion { expected, current } => {
                Self::new(Code::StaleVersion, told).with("version", expected).with("current_version", current)
            }
            E::NotFound(what) => Self::new(Code::NotFound, format!("there is no such {what}")),
            E::HostTaken(_) => Self::new(Code::DomainConflict, told),
            E::ExternalIdTaken(_) => Self::new(Code::ExternalIdConflict, told),
            E::InvalidState(_) | E::CaseCollision { .. } | E::NameTaken { .. } => {
                Self::new(Code::InvalidState, told)
            }
            E::Slug(_) => Self::field("/slug", "invalid_slug", told),
            E::Destination(_) => Self::field("/destination_url", "invalid_destination", told),
            E::Host(_) => Self::field("/host", "invalid_host", told),
            E::Name(_) => Self::field("", "invalid_name", told),
            E::Value(_) => Self::field("", "invalid_value", told),
            E::Json(_) => Self::field("", "invalid_json", told),
            E::NoFreeSlug => Self::internal(told),
            E::Db(error) => error.into(),
        }
    }
}

/// What a source says that was asked on the client's behalf.
impl From<engine::SourceError> for Problem {
    fn from(error: engine::SourceError) -> Self {
        use engine::SourceError as E;
        let told = error.to_string();
        match error {
            E::Unauthorized(_) => Self::field("/token", "token_refused", told),
            E::Refused(_) => Self::field("/filter", "refused_by_source", told),
            E::WaitUntil { .. } | E::CursorExpired(_) | E::Malformed(_) | E::Unavailable(_) => {
                Self::new(Code::BadGateway, told)
            }
        }
    }
}

impl From<imports::Error> for Problem {
    fn from(error: imports::Error) -> Self {
        use imports::Error as E;
        let told = error.to_string();
        match error {
            E::NotFound => Self::new(Code::NotFound, told),
            E::UnknownVendor(..) => Self::field("/vendor", "unknown_vendor", told),
            E::UnknownDomain(_) => Self::field("/domain", "unknown_domain", told),
            E::VendorsDomain(_) => Self::field("/domain", "vendor_domain", told),
            E::State { from, .. } => Self::new(Code::InvalidState, told).with("status_now", from.as_str()),
            E::Parameters(..) => Self::internal(told),
            E::Source(error) => error.into(),
            E::Links(error) => error.into(),
            E::Db(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_word_of_its_own_and_an_error_status() {
        let words: std::collections::HashSet<&str> = Code::ALL.iter().map(|code| code.word()).collect();
        assert_eq!(words.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!(code.status().is_client_error() || code.status().is_server_error(), "{code:?}");
            assert!(!code.title().is_empty() && !code.advice().is_empty());
        }
    }
}
