//! The names of the faults, what each means, and how an argument is read.

use super::faults::{Fault, PlanError, RetryAfter};
use crate::plan::Argument;

pub(super) const NAMES: &[(&str, &str)] = &[
    ("none", "nothing goes wrong"),
    ("rough", "a seeded mixture that a right importer survives without help"),
    ("429:RETRY_AFTER", "429 RATE_LIMIT_EXCEEDED; by default with Retry-After: 1"),
    ("429-bare", "429 RATE_LIMIT_EXCEEDED without Retry-After, as Bitly sends it"),
    ("monthly", "429 MONTHLY_LIMIT_EXCEEDED"),
    ("api-usage", "429 API_USAGE_LIMIT_EXCEEDED"),
    ("403-limit:RETRY_AFTER", "403 RATE_LIMIT_EXCEEDED with X-Ratelimit-Reason, as the old API sent it"),
    ("400", "400 BAD_REQUEST"),
    ("401", "401 UNAUTHORIZED, once"),
    ("402", "402 UPGRADE_REQUIRED"),
    ("403", "403 FORBIDDEN"),
    ("404", "404 NOT_FOUND"),
    ("422", "422 UNPROCESSABLE_ENTITY"),
    ("500", "500 INTERNAL_ERROR"),
    ("502", "502 BAD_GATEWAY"),
    ("503:RETRY_AFTER", "503 TEMPORARILY_UNAVAILABLE; by default without Retry-After"),
    ("504", "504 GATEWAY_TIMEOUT"),
    ("error200", "the body of a rate limit with status 200"),
    ("token-expires", "401 everywhere from this list request on, until the token is renewed"),
    ("html200", "an HTML page with status 200"),
    ("html502", "an HTML page with status 502"),
    ("empty-object", "{} with status 200"),
    ("empty-body", "no body with status 200"),
    ("redirect:URL", "302 to another origin"),
    ("cut", "half the page under the whole length, then the connection is cut"),
    ("cut-chunked", "half the page in chunks, then the connection is cut"),
    ("drop", "the connection is closed before any answer"),
    ("truncated-json", "a page that ends in the middle, correctly announced"),
    ("gzip", "the page compressed, if accepted; without a place: every answer"),
    ("truncated-gzip:BYTES", "a compressed page without its last 8 bytes, correctly announced"),
    ("slow:MS", "the answer comes 3,000 ms later"),
    ("stall:MS", "half the answer, a pause of 3,000 ms, the other half"),
    ("huge:BYTES", "a body of 1 GiB"),
    ("repeat-cursor", "the page gives the cursor that was asked for"),
    ("ring", "the page gives a cursor that leads back to the beginning"),
    ("no-pagination", "a page without pagination"),
    ("no-cursor", "a page whose pagination has neither search_after nor next"),
    ("foreign-next:URL", "a page whose next points to another origin"),
    ("dead-cursor", "400 INVALID_ARG_SEARCH_AFTER, as for a cursor that is too old"),
    ("empty-page", "a page without links whose new cursor leads on"),
    ("short-page", "a page of half the size that was asked for, with a cursor"),
    ("dup-page-overlap:LINKS", "the page begins with 3 links of the page before"),
    ("link-added", "a new link on top; a walk that has begun does not meet it"),
    ("link-added-ahead", "a link appears further down; the walk meets it"),
    ("link-deleted", "a link further down is deleted"),
    ("link-deleted-behind", "a link that was already listed is deleted"),
    (
        "total-off:TEXT",
        "the page counts 10 links more than the group has; +K and -K are relative, other text stands as it is",
    ),
    ("total", "switch: every page tells how many links the group has, as the older API did"),
    ("no-retry-after", "switch: no limit carries Retry-After"),
    ("trailing-empty-page", "switch: a last page that is full still has a cursor, and an empty page follows"),
    ("control-in-title", "record: raw control characters in a title; repairable"),
    ("quotes-in-title", "record: unescaped quotes in a title; repairable"),
    ("deleted-record", "record: is_deleted is true; to be left out"),
    ("missing-long-url", "record: no long_url; must fail"),
    ("null-long-url", "record: long_url is null; must fail"),
    ("empty-long-url", "record: long_url is empty; must fail"),
    ("javascript-destination", "record: long_url is a javascript: URL; must fail"),
    ("self-destination", "record: long_url is the short URL itself; must fail"),
    ("broken-record", "record: JSON broken beyond repair inside this record alone; must fail"),
];

const LIMIT: &str = "RATE_LIMIT_EXCEEDED";
const SLOW_MS: u64 = 3_000;
const HUGE_BYTES: u64 = 1 << 30;
const OVERLAP_LINKS: u64 = 3;
/// Checksum and length (RFC 1952, section 2.3.1).
const GZIP_TRAILER: u64 = 8;

/// The fault of this name that strikes a list request.
pub(super) fn request_fault(name: &str, argument: Option<&str>) -> Result<Fault, PlanError> {
    let reader = Argument { name, text: argument };
    let fault = match name {
        "429" => error(429, LIMIT, reader.retry_after("1")?),
        "429-bare" => error(429, LIMIT, RetryAfter::Absent),
        "monthly" => error(429, "MONTHLY_LIMIT_EXCEEDED", RetryAfter::Absent),
        "api-usage" => error(429, "API_USAGE_LIMIT_EXCEEDED", RetryAfter::Absent),
        "403-limit" => error(403, LIMIT, reader.retry_after("none")?),
        "400" => plain_error(400, "BAD_REQUEST"),
        "401" => plain_error(401, "UNAUTHORIZED"),
        "402" => plain_error(402, "UPGRADE_REQUIRED"),
        "403" => plain_error(403, "FORBIDDEN"),
        "404" => plain_error(404, "NOT_FOUND"),
        "422" => plain_error(422, "UNPROCESSABLE_ENTITY"),
        "500" => plain_error(500, "INTERNAL_ERROR"),
        "502" => plain_error(502, "BAD_GATEWAY"),
        "503" => error(503, "TEMPORARILY_UNAVAILABLE", reader.retry_after("none")?),
        "504" => plain_error(504, "GATEWAY_TIMEOUT"),
        "error200" => Fault::ErrorWith200,
        "token-expires" => Fault::TokenExpires,
        "html200" => Fault::Html(200),
        "html502" => Fault::Html(502),
        "empty-object" => Fault::EmptyObject,
        "empty-body" => Fault::EmptyBody,
        "redirect" => Fault::Redirect(reader.text("https://elsewhere.example/v4/")),
        "cut" => Fault::Cut,
        "cut-chunked" => Fault::CutChunked,
        "drop" => Fault::Drop,
        "truncated-json" => Fault::TruncatedJson,
        "gzip" => Fault::Gzip,
        "truncated-gzip" => Fault::TruncatedGzip(reader.number(GZIP_TRAILER)? as usize),
        "slow" => Fault::Slow(reader.milliseconds(SLOW_MS)?),
        "stall" => Fault::Stall(reader.milliseconds(SLOW_MS)?),
        "huge" => Fault::Huge(reader.number(HUGE_BYTES)?),
        "repeat-cursor" => Fault::RepeatCursor,
        "ring" => Fault::Ring,
        "no-pagination" => Fault::NoPagination,
        "no-cursor" => Fault::NoCursor,
        "foreign-next" => Fault::ForeignNext(reader.text("https://elsewhere.example")),
        "dead-cursor" => Fault::DeadCursor,
        "empty-page" => Fault::EmptyPage,
        "short-page" => Fault::ShortPage,
        "dup-page-overlap" => Fault::Overlap(reader.number(OVERLAP_LINKS)? as usize),
        "total-off" => Fault::TotalOff(reader.text("+10")),
        "link-added" => Fault::LinkAdded,
        "link-added-ahead" => Fault::LinkAddedAhead,
        "link-deleted" => Fault::LinkDeleted,
        "link-deleted-behind" => Fault::LinkDeletedBehind,
        _ => return Err(PlanError::UnknownName(name.to_owned())),
    };
    Ok(fault)
}

fn error(status: u16, message: &'static str, retry_after: RetryAfter) -> Fault {
    Fault::Error { status, message, retry_after }
}

fn plain_error(status: u16, message: &'static str) -> Fault {
    error(status, message, RetryAfter::Absent)
}
