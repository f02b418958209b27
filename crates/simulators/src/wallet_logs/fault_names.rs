//! The names of the faults, what each means, and how an argument is read.

use super::{
    faults::{CursorFault, Fault, Planting},
    listing::ExtraKind,
    oddity::{Oddity, TextOddity, TimeOddity},
};
use crate::{
    plan::{Argument, PlanError, RetryAfter},
    reply::Delivery,
};

pub(super) const NAMES: &[(&str, &str)] = &[
    ("none", "nothing goes wrong"),
    ("rough", "a seeded mixture that a right migration survives without loss, and some bad records"),
    // List requests, from 1.
    (
        "429:RETRY_AFTER",
        "429; by default with Retry-After: 1; also none, far-date, date+S, epoch+S, epochms+S, any text",
    ),
    (
        "429-expire:SECONDS",
        "429 with Retry-After: 120, and the token is refused from then on until it is renewed",
    ),
    ("400 … 599:RETRY_AFTER", "any other status; without Retry-After by default; 401 does not end the token"),
    ("throttled200", "{\"errors\":[{\"extensions\":{\"code\":\"THROTTLED\"}}]} with status 200"),
    ("token-expires", "401 from this list request on, until the token is renewed"),
    ("html200", "an HTML page with status 200"),
    ("html502", "an HTML page with status 502"),
    ("empty-body", "no body with status 200"),
    ("empty-object", "{} with status 200"),
    ("redirect:URL", "302 to another origin"),
    ("cut", "half the page under the whole length, then the connection is cut"),
    ("cut-chunked", "half the page in chunks, then the connection is cut"),
    ("drop", "the connection is closed before any answer"),
    ("truncated-json", "a page that ends in the middle, correctly announced"),
    ("gzip", "the page compressed, if accepted; without a place: every answer"),
    ("gzip-chunked", "the page compressed and in chunks, if accepted"),
    ("truncated-gzip:BYTES", "a compressed page without its last 8 bytes, correctly announced"),
    ("slow:MS", "the answer comes 3,000 ms later"),
    ("stall:MS", "half the answer, a pause of 3,000 ms, the other half"),
    ("huge:BYTES", "a body of 1 GiB"),
    ("over-limit", "a page of ten times as many records as were asked for"),
    ("expired-once:CODE", "400 for the cursor with code EXPIRED; asked again it works"),
    ("expired:CODE", "400 for the cursor with code EXPIRED, and for ever; other cursors work"),
    ("expired-all:CODE", "400 with code EXPIRED for this cursor and every cursor given before, for ever"),
    ("repeat-cursor", "the page gives the cursor that was asked for"),
    ("ring", "the page gives a cursor that leads back to the second page"),
    ("empty-cursor", "next_cursor is \"\" and has_more is true"),
    ("null-cursor", "next_cursor is null and has_more is true"),
    ("cursor-without-more", "next_cursor is a cursor and has_more is false"),
    ("no-cursor", "meta has no next_cursor"),
    ("no-meta", "a page without meta"),
    ("no-data", "a page without data"),
    ("empty-page", "a page without records whose new cursor leads on"),
    ("short-page", "a page of half the size that was asked for, with a cursor"),
    // Switches.
    ("no-retry-after", "switch: no answer carries Retry-After"),
    (
        "stateful-cursor",
        "switch: the cursor is always the same, and every request with it gives the next records",
    ),
    (
        "trailing-empty-page",
        "switch: the last page that has records has a cursor too, and an empty page follows",
    ),
    (
        "stalled-end",
        "switch: as trailing-empty-page, and the empty page repeats the cursor; no page says has_more",
    ),
    // Records, from 0 in the order of the list.
    ("bad-page", "record: 400 for every page that would hold the record, for ever"),
    ("tied", "record: K records in one instant"),
    ("late", "record: appears only after the page that should hold it was served"),
    ("edit", "record: its status and narration change after it was served"),
    ("delete", "record: gone after it was served"),
    (
        "move-back:RECORDS",
        "record: moves 1,000 records back once its new place was served; a walk may not meet it",
    ),
    ("move-ahead:RECORDS", "record: moves 1,000 records ahead after it was served; a walk meets it twice"),
    ("duplicate:RECORDS", "record: comes again at once, or this many records later"),
    (
        "conflict:RECORDS",
        "record: its id comes again with another amount, at once or this many records later",
    ),
    (
        "twin:RECORDS",
        "record: another with equal content and a new id, at once or this many records (and some time) later",
    ),
    (
        "self-transfer",
        "record: behind it a credit from its wallet to itself, which leaves the balance as it is",
    ),
    ("missing-id", "record: no id; must fail"),
    ("null-id", "record: id is null; must fail"),
    ("numeric-id", "record: id is a number above 2^53; must fail"),
    ("big-seq", "record: seq is above 2^53"),
    ("amount-number", "record: the amount is a JSON number"),
    (
        "amount:NUMBER",
        "record: the amount is this JSON number (0.1), as it is written; fails if it cannot be stored exactly",
    ),
    ("nul", "record: \\u0000 in the narration; must fail"),
    ("lone-surrogate", "record: \\ud835 alone in the narration; must fail"),
    ("invalid-utf8", "record: the byte FF in the narration; must fail"),
    ("missing-narration", "record: no narration"),
    ("null-narration", "record: narration is null"),
    ("missing-created-at", "record: no created_at; must fail"),
    ("null-created-at", "record: created_at is null; must fail"),
    ("local-time", "record: created_at without an offset; must fail"),
    ("offset-time", "record: created_at with the offset +01:00"),
    ("created-at:TEXT", "record: created_at is this text (2024-03-31T02:30:00); its place in the list stays"),
    ("unknown-type:TYPE", "record: type is cashback; must fail"),
    ("unknown-wallet", "record: a wallet that no account has; must fail"),
    ("currency-mismatch", "record: another currency than the account's; must fail"),
    ("broken-balance", "record: its balances do not begin where the wallet's movement before it ended"),
    ("wrong-balance", "record: its balance after is not balance before and amount"),
    ("same-reference", "record: the reference of the record before it"),
    ("broken-json", "record: JSON broken inside this record alone; must fail"),
];

const SLOW_MS: u64 = 3_000;
const HUGE_BYTES: u64 = 1 << 30;
/// Checksum and length (RFC 1952, section 2.3.1).
const GZIP_TRAILER: u64 = 8;
/// How far a record moves.
const MOVE: u64 = 1_000;
const WAIT_SECONDS: u64 = 120;

/// The fault of this name that strikes a list request.
pub(super) fn request_fault(name: &str, argument: Option<&str>) -> Result<Fault, PlanError> {
    let reader = Argument { name, text: argument };
    let milliseconds = || reader.milliseconds(SLOW_MS);
    let code = || reader.text("EXPIRED");
    Ok(match name {
        "429" => Fault::Error { status: 429, retry_after: reader.retry_after("1")? },
        "429-expire" => {
            Fault::ThrottledAndExpired(RetryAfter::Text(reader.number(WAIT_SECONDS)?.to_string()))
        }
        "throttled200" => Fault::Throttled200,
        "token-expires" => Fault::TokenExpires,
        "html200" => Fault::Html(200),
        "html502" => Fault::Html(502),
        "empty-body" => Fault::Body(""),
        "empty-object" => Fault::Body("{}"),
        "redirect" => Fault::Redirect(reader.text("https://elsewhere.example/wallet-logs")),
        "cut" => Fault::Delivered(Delivery::Cut),
        "cut-chunked" => Fault::Delivered(Delivery::CutChunked),
        "drop" => Fault::Delivered(Delivery::Drop),
        "truncated-json" => Fault::Delivered(Delivery::TruncatedJson),
        "gzip" => Fault::Delivered(Delivery::Gzip),
        "gzip-chunked" => Fault::Delivered(Delivery::GzipChunked),
        "truncated-gzip" => Fault::Delivered(Delivery::TruncatedGzip(reader.number(GZIP_TRAILER)? as usize)),
        "stall" => Fault::Delivered(Delivery::Stall(milliseconds()?)),
        "slow" => Fault::Slow(milliseconds()?),
        "huge" => Fault::Huge(reader.number(HUGE_BYTES)?),
        "over-limit" => Fault::OverLimit,
        "expired-once" => Fault::ExpiredOnce(code()),
        "expired" => Fault::Expired(code()),
        "expired-all" => Fault::ExpiredAll(code()),
        "repeat-cursor" => Fault::Cursor(CursorFault::Repeat),
        "ring" => Fault::Cursor(CursorFault::Ring),
        "empty-cursor" => Fault::Cursor(CursorFault::Empty),
        "null-cursor" => Fault::Cursor(CursorFault::Null),
        "cursor-without-more" => Fault::Cursor(CursorFault::WithoutMore),
        "no-cursor" => Fault::Cursor(CursorFault::Missing),
        "no-meta" => Fault::Cursor(CursorFault::NoMeta),
        "no-data" => Fault::NoData,
        "empty-page" => Fault::EmptyPage,
        "short-page" => Fault::ShortPage,
        status => match status.parse() {
            Ok(status @ 400..=599) => Fault::Error { status, retry_after: reader.retry_after("none")? },
            _ => return Err(PlanError::UnknownName(name.to_owned())),
        },
    })
}

/// What the fault of this name does to a record; nothing if it is none of a record.
pub(super) fn planting(name: &str, argument: Option<&str>) -> Result<Option<Planting>, PlanError> {
    let reader = Argument { name, text: argument };
    let extra = |kind| Ok::<_, PlanError>(Planting::Extra { kind, distance: reader.number(0)? });
    let text = |oddity| Planting::Oddity(Oddity::Text(oddity));
    let time = |oddity| Planting::Oddity(Oddity::Time(oddity));
    Ok(Some(match name {
        "bad-page" => Planting::BadPage,
        "tied" => Planting::Tied,
        "late" => Planting::Late,
        "edit" => Planting::Edit,
        "delete" => Planting::Delete,
        "move-back" => Planting::MoveBack(reader.number(MOVE)?.max(1)),
        "move-ahead" => Planting::MoveAhead(reader.number(MOVE)?.max(1)),
        "duplicate" => extra(ExtraKind::Copy)?,
        "conflict" => extra(ExtraKind::Conflict)?,
        "twin" => extra(ExtraKind::Twin)?,
        "self-transfer" => Planting::Extra { kind: ExtraKind::ToItself, distance: 0 },
        "amount" => Planting::Oddity(Oddity::Amount(json_number(&reader)?)),
        "unknown-type" => Planting::Oddity(Oddity::UnknownType(word(&reader)?)),
        "nul" => text(TextOddity::Nul),
        "lone-surrogate" => text(TextOddity::LoneSurrogate),
        "invalid-utf8" => text(TextOddity::InvalidUtf8),
        "missing-narration" => text(TextOddity::Missing),
        "null-narration" => text(TextOddity::Null),
        "missing-created-at" => time(TimeOddity::Missing),
        "null-created-at" => time(TimeOddity::Null),
        "local-time" => time(TimeOddity::Local),
        "offset-time" => time(TimeOddity::OtherOffset),
        "created-at" => time(TimeOddity::Text(reader.text("2024-03-31T02:30:00"))),
        "missing-id" => Planting::Oddity(Oddity::MissingId),
        "null-id" => Planting::Oddity(Oddity::NullId),
        "numeric-id" => Planting::Oddity(Oddity::NumericId),
        "big-seq" => Planting::Oddity(Oddity::BigSeq),
        "amount-number" => Planting::Oddity(Oddity::AmountNumber),
        "unknown-wallet" => Planting::Oddity(Oddity::UnknownWallet),
        "currency-mismatch" => Planting::Oddity(Oddity::OtherCurrency),
        "broken-balance" => Planting::Oddity(Oddity::BrokenBalance),
        "wrong-balance" => Planting::Oddity(Oddity::WrongBalance),
        "same-reference" => Planting::Oddity(Oddity::SameReference),
        "broken-json" => Planting::Oddity(Oddity::BrokenJson),
        _ => return Ok(None),
    }))
}

fn json_number(reader: &Argument<'_>) -> Result<String, PlanError> {
    let text = reader.text("0.1");
    match serde_json::from_str::<&serde_json::value::RawValue>(&text) {
        Ok(_) if text.starts_with(|sign: char| sign == '-' || sign.is_ascii_digit()) => Ok(text),
        _ => Err(reader.unreadable()),
    }
}

fn word(reader: &Argument<'_>) -> Result<String, PlanError> {
    let text = reader.text("cashback");
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
    if plain { Ok(text) } else { Err(reader.unreadable()) }
}
