//! What is kept of a link for its redirects, and the responses made of it.

use bytes::Bytes;
use db::{Id, Timestamp};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use links::{Destination, Fallback, RedirectCode, Resolved};

use super::stamps::{Stamp, Stamps, Stripe};

/// A finished response of a link domain.
pub(crate) type Short = Response<Full<Bytes>>;

/// No cache keeps it, so that a change of the link is seen at the next click.
const NO_STORE: HeaderValue = HeaderValue::from_static("private, no-store");
/// Clients that were promised a permanent redirect may keep it this long, and shared caches not at all.
const SHORT: HeaderValue = HeaderValue::from_static("private, max-age=90");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// A link, prepared: everything that does not depend on the visitor is done.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) link: Id,
    /// Where imports note that they have written it again.
    record: Option<Stripe>,
    /// From before the read.
    stamp: Stamp,
    /// Set: the slug that was asked for does not exist itself, the link has it with or without its trailing slash.
    /// That it does not exist is believed until then.
    by_other_slash: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    /// Where the link's own expired URL leads.
    expired: Option<HeaderValue>,
    /// `None`: the domain's default.
    code: Option<RedirectCode>,
    query_passthrough: bool,
    state: State,
}

#[derive(Debug)]
enum State {
    Open(HeaderValue),
    /// Behind a password, which nobody can give here.
    Closed,
    /// Switched off, or a destination that must not be sent to a browser.
    Off,
}

/// What a link says to a visitor.
#[derive(Debug)]
pub(crate) enum Said {
    /// A redirect to the link's destination: a click.
    Click(Short),
    /// Anything else.
    Other(Short),
}

impl Answer {
    pub(crate) fn new(resolved: &Resolved, by_other_slash: Option<Timestamp>, stamp: Stamp) -> Self {
        let state = if !resolved.enabled {
            State::Off
        } else if resolved.password_protected {
            State::Closed
        } else {
            carried(&resolved.destination).map_or_else(
                || {
                    tracing::warn!(link.id = %resolved.link_id, "a link's destination is refused; it is not served");
                    State::Off
                },
                State::Open,
            )
        };
        Self {
            link: resolved.link_id,
            record: resolved.source.as_ref().map(|source| Stripe::of_record(&source.reference())),
            stamp,
            by_other_slash,
            expires_at: resolved.expires_at,
            expired: resolved.expired_url.as_ref().and_then(carried),
            code: resolved.redirect_code,
            query_passthrough: resolved.query_passthrough,
            state,
        }
    }

    /// Whether the answer still holds, as far as this process knows.
    pub(crate) fn holds(&self, stamps: &Stamps, now: impl FnOnce() -> Timestamp) -> bool {
        stamps.holds(Stripe::of_link(self.link), self.stamp)
            && self.record.is_none_or(|record| stamps.holds(record, self.stamp))
            && self.by_other_slash.is_none_or(|until| stamps.absence_holds(self.stamp) && now() < until)
    }

    /// Bytes that the answer keeps outside of itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        let location = match &self.state {
            State::Open(location) => location.len(),
            State::Closed | State::Off => 0,
        };
        location + self.expired.as_ref().map_or(0, HeaderValue::len)
    }

    /// `query` is what stood behind the `?` of the request.
    pub(crate) fn say(&self, rules: &Rules, query: Option<&str>, now: Timestamp) -> Said {
        let location = match &self.state {
            State::Off => return Said::Other(not_found()),
            State::Closed => return Said::Other(closed()),
            State::Open(location) => location,
        };
        if self.expires_at.is_some_and(|instant| instant <= now) {
            let elsewhere = self.expired.as_ref().or(rules.expired.as_ref());
            return Said::Other(elsewhere.map_or_else(expired, |location| temporary(location.clone())));
        }
        let location = match query {
            Some(query) if self.query_passthrough && !query.is_empty() => merged(location, query),
            _ => location.clone(),
        };
        let code = self.code.unwrap_or(rules.default_code);
        Said::Click(redirect(status(code), location, self.caching(code)))
    }

    /// A client that kept the redirect would not notice that the link expires.
    fn caching(&self, code: RedirectCode) -> HeaderValue {
        let permanent = matches!(code, RedirectCode::MovedPermanently | RedirectCode::PermanentRedirect);
        if permanent && self.expires_at.is_none() { SHORT } else { NO_STORE }
    }
}

/// What a domain adds to its links' answers.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) default_code: RedirectCode,
    pub(crate) expired: Option<HeaderValue>,
    pub(crate) root: Option<HeaderValue>,
    pub(crate) fallback: Option<Fallback>,
}

impl Rules {
    pub(crate) fn new(settings: &links::DomainSettings) -> Self {
        Self {
            default_code: settings.default_redirect_code,
            expired: settings.expired_url.as_ref().and_then(carried),
            root: settings.root_redirect.as_ref().and_then(carried),
            fallback: settings.fallback_url.clone(),
        }
    }

    /// The answer to the domain's own address.
    pub(crate) fn root(&self) -> Short {
        self.root.as_ref().map_or_else(not_found, |location| temporary(location.clone()))
    }

    /// The answer to a slug that nobody has. `path` is the request's, with its leading slash.
    pub(crate) fn unknown(&self, path: &str) -> Short {
        let Some(fallback) = &self.fallback else { return not_found() };
        let path = path.strip_prefix('/').unwrap_or(path);
        // What browsers and crawlers ask every host for is not somebody's mistyped slug.
        if links::Slug::from_path(path).is_ok_and(|slug| slug.reserved().is_some()) {
            return not_found();
        }
        let asked = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
        let location = fallback.destination(&asked).ok().as_ref().and_then(carried);
        location.map_or_else(not_found, temporary)
    }
}

/// The header value for a destination, after looking at the destination's rules once more: what was stored by
/// another way than ours must not reach a browser either.
fn carried(destination: &Destination) -> Option<HeaderValue> {
    let checked = Destination::with_limit(destination.as_str(), usize::MAX).ok()?;
    HeaderValue::from_str(&checked.location()).ok()
}

/// A location is a destination of its own, and its own location.
fn merged(location: &HeaderValue, query: &str) -> HeaderValue {
    location
        .to_str()
        .ok()
        .and_then(|text| Destination::with_limit(text, usize::MAX).ok())
        .and_then(|destination| HeaderValue::from_str(&destination.location_with_query(query)).ok())
        .unwrap_or_else(|| location.clone())
}

fn status(code: RedirectCode) -> StatusCode {
    match code {
        RedirectCode::MovedPermanently => StatusCode::MOVED_PERMANENTLY,
        RedirectCode::Found => StatusCode::FOUND,
        RedirectCode::TemporaryRedirect => StatusCode::TEMPORARY_REDIRECT,
        RedirectCode::PermanentRedirect => StatusCode::PERMANENT_REDIRECT,
    }
}

fn redirect(status: StatusCode, location: HeaderValue, caching: HeaderValue) -> Short {
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(LOCATION, location);
    headers.insert(CACHE_CONTROL, caching);
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Never permanent: it is the answer of a state that can end.
fn temporary(location: HeaderValue) -> Short {
    redirect(StatusCode::FOUND, location, NO_STORE)
}

fn text(status: StatusCode, body: &'static str) -> Short {
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

pub(crate) fn not_found() -> Short {
    text(StatusCode::NOT_FOUND, "There is no such link.\n")
}

fn expired() -> Short {
    text(StatusCode::GONE, "This link has expired.\n")
}

fn closed() -> Short {
    text(StatusCode::FORBIDDEN, "This link is protected by a password and closed here.\n")
}

/// No domain of this server has the host of the request.
pub(crate) fn unknown_host() -> Short {
    text(StatusCode::NOT_FOUND, "This server does not know the host of this address.\n")
}

pub(crate) fn invalid_host() -> Short {
    text(StatusCode::BAD_REQUEST, "The request names no host, or more than one.\n")
}

pub(crate) fn method_not_allowed() -> Short {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "Links answer GET and HEAD.\n");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

/// More slugs are being looked up at once than the database is let to.
pub(crate) fn busy() -> Short {
    let mut response = text(StatusCode::SERVICE_UNAVAILABLE, "Too busy for the moment; try again.\n");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
