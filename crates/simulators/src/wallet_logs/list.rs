//! The list: its parameters, its pages, and what goes wrong with them.

use std::{
    ops::Range,
    sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use http::header;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{
    cursor::{Cursor, SESSION},
    faults::{CursorFault, Fault},
    id::{Place, Uuid},
    listing::Listing,
    routes::error,
    server::{Cursors, State},
    wire,
};
use crate::{
    plan::RetryAfter,
    reply::{Delivery, Reply},
};

const LIMIT_DEFAULT: u64 = 100;
const LIMIT_MAX: u64 = 1_000;
/// About what a record takes, so that a page's buffer need not grow.
const RECORD_BYTES: usize = 560;
const OVER_LIMIT: u64 = 10;

/// Answers one list request.
pub(super) async fn reply(state: &State, parameters: &[(String, String)]) -> Reply {
    let query = match Query::read(state, parameters) {
        Ok(query) => query,
        Err(Refused { field, code }) => return error(400, field, code),
    };
    let request = state.counters.list(query.shard, query.start);
    let mut page = Page { state, limit: query.limit, query, twist: Twist::default(), instead: None };
    for strike in state.faults.strikes(request) {
        state.counters.struck(request, strike.name);
        page.take(strike.fault);
    }
    if !page.twist.wait.is_zero() {
        tokio::time::sleep(page.twist.wait).await;
    }
    page.reply()
}

/// What was asked.
struct Query {
    limit: u64,
    shard: Option<u64>,
    /// The logs that the shard and the times leave.
    range: Range<u64>,
    /// The record that comes first.
    start: Place,
    /// The cursor as it was sent.
    cursor: Option<String>,
    given: Option<Cursor>,
}

/// A parameter that cannot be taken.
struct Refused {
    field: &'static str,
    code: &'static str,
}

impl Query {
    fn read(state: &State, parameters: &[(String, String)]) -> Result<Self, Refused> {
        let parameters = Parameters(parameters);
        let limit = parameters.number("limit")?.unwrap_or(LIMIT_DEFAULT);
        if !(1..=LIMIT_MAX).contains(&limit) {
            return Err(Refused { field: "limit", code: "OUT_OF_RANGE" });
        }
        let shard = parameters.number("shard")?;
        let range = range(state, &parameters, shard)?;
        let cursor = parameters.get("cursor").map(str::to_owned);
        let mut query = Self { limit, shard, start: Place::at(range.start), range, cursor, given: None };
        if query.cursor.is_some() {
            query.start_at_cursor(state)?;
        } else if let Some(id) = parameters.get("after_id") {
            let place = Uuid::read(id).and_then(|id| state.logs.place(id));
            let place = place.ok_or(Refused { field: "after_id", code: "UNKNOWN_ID" })?;
            let after = read_listing(state).place_from(Place { sub: place.sub + 1, ..place });
            query.start = after.clamp(query.start, Place::at(query.range.end));
        } else if let Some(offset) = parameters.number("offset")? {
            query.start = read_listing(state).place_of(offset, query.range.clone());
        }
        Ok(query)
    }

    fn start_at_cursor(&mut self, state: &State) -> Result<(), Refused> {
        let invalid = Refused { field: "cursor", code: "INVALID_PAGE_TOKEN" };
        let text = self.cursor.as_deref().unwrap_or_default();
        if state.faults.stateful_cursor {
            let cursors = read_cursors(state);
            let session = cursors.sessions.get(&(self.range.start, self.range.end));
            self.start = *session.filter(|_| text == SESSION).ok_or(invalid)?;
            return Ok(());
        }
        let cursor = Cursor::read(state.logs.seed(), text).ok_or(invalid)?;
        let bounds = Place::at(self.range.start)..=Place::at(self.range.end);
        if !bounds.contains(&cursor.place) {
            return Err(Refused { field: "cursor", code: "INVALID_PAGE_TOKEN" });
        }
        (self.start, self.given) = (cursor.place, Some(cursor));
        Ok(())
    }
}

/// The parameters as they were sent; one that is empty was not.
struct Parameters<'a>(&'a [(String, String)]);

impl Parameters<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        found.filter(|value| !value.is_empty())
    }

    fn number(&self, field: &'static str) -> Result<Option<u64>, Refused> {
        let number = self.get(field).map(|text| text.parse().map_err(|_| Refused { field, code: "INVALID" }));
        number.transpose()
    }

    /// A time in milliseconds; finer ones count as the next millisecond.
    fn millis(&self, field: &'static str) -> Result<Option<i64>, Refused> {
        let Some(text) = self.get(field) else { return Ok(None) };
        let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| Refused { field, code: "INVALID" })?;
        let nanos = time.unix_timestamp_nanos() + 999_999;
        Ok(Some(nanos.div_euclid(1_000_000) as i64))
    }
}

fn range(state: &State, parameters: &Parameters<'_>, shard: Option<u64>) -> Result<Range<u64>, Refused> {
    let (generator, count) = (state.logs.generator(), state.logs.count());
    let shards = parameters.number("shards")?.unwrap_or(state.options.partitions).max(1);
    let mut range = match shard {
        None => 0..count,
        Some(shard) if shard < shards => bound(count, shard, shards)..bound(count, shard + 1, shards),
        Some(_) => return Err(Refused { field: "shard", code: "OUT_OF_RANGE" }),
    };
    if let Some(from) = parameters.millis("from")? {
        range.start = range.start.max(generator.first_from(from));
    }
    if let Some(to) = parameters.millis("to")? {
        range.end = range.end.min(generator.first_from(to));
    }
    range.end = range.end.max(range.start);
    Ok(range)
}

/// Where a shard begins.
fn bound(count: u64, shard: u64, shards: u64) -> u64 {
    (u128::from(count) * u128::from(shard) / u128::from(shards)) as u64
}

/// What faults do to a page that is sent all the same.
#[derive(Default)]
struct Twist {
    wait: Duration,
    empty: bool,
    no_data: bool,
    delivery: Delivery,
    cursor: Option<CursorFault>,
}

/// A page that is about to be answered.
struct Page<'a> {
    state: &'a State,
    query: Query,
    /// How many records it may have.
    limit: u64,
    twist: Twist,
    instead: Option<Reply>,
}

/// How a page leads on.
struct Next {
    cursor: Option<String>,
    has_more: bool,
}

impl Page<'_> {
    fn take(&mut self, fault: Fault) {
        let twist = &mut self.twist;
        match fault {
            Fault::Slow(wait) => twist.wait += wait,
            Fault::Delivered(delivery) => twist.delivery = delivery,
            Fault::OverLimit => self.limit *= OVER_LIMIT,
            Fault::ShortPage => self.limit = (self.limit / 2).max(1),
            Fault::EmptyPage => twist.empty = true,
            Fault::NoData => twist.no_data = true,
            Fault::Cursor(fault) => twist.cursor = Some(fault),
            Fault::Expired(code) => {
                if let Some(cursor) = &self.query.cursor {
                    write_cursors(self.state).dead.insert(cursor.clone(), code);
                }
            }
            Fault::ExpiredAll(code) => {
                let mut cursors = write_cursors(self.state);
                cursors.generation = cursors.generation.wrapping_add(1);
                cursors.code = code;
            }
            Fault::ExpiredOnce(code) => {
                if self.query.cursor.is_some() {
                    self.instead = Some(error(400, "cursor", &code));
                }
            }
            Fault::TokenExpires => {
                self.state.token.expire();
                self.instead = Some(error(401, "authorization", "UNAUTHORIZED"));
            }
            Fault::ThrottledAndExpired(retry_after) => {
                self.state.token.expire();
                self.instead = Some(self.error(429, &retry_after));
            }
            Fault::Error { status, retry_after } => self.instead = Some(self.error(status, &retry_after)),
            Fault::Throttled200 => {
                let body = serde_json::json!({"errors": [{"extensions": {"code": "THROTTLED"}}]});
                self.instead = Some(Reply::json(200, &body));
            }
            Fault::Html(status) => self.instead = Some(Reply::html(status)),
            Fault::Body(body) => self.instead = Some(Reply::bytes(200, "application/json", body)),
            Fault::Redirect(url) => {
                self.instead = Some(error(302, "path", "FOUND").with_header(header::LOCATION, url));
            }
            Fault::Huge(bytes) => self.instead = Some(Reply::huge(br#"{"data":["#, bytes)),
        }
    }

    fn error(&self, status: u16, retry_after: &RetryAfter) -> Reply {
        let reply = match status {
            401 => error(status, "authorization", "UNAUTHORIZED"),
            429 => error(status, "request", "RATE_LIMITED"),
            status if status >= 500 => error(status, "service", "UNAVAILABLE"),
            status => error(status, "request", "REFUSED"),
        };
        match self.state.faults.retry_after(retry_after).header((self.state.options.clock)()) {
            Some(value) => reply.with_header(header::RETRY_AFTER, value),
            None => reply,
        }
    }

    fn reply(self) -> Reply {
        if let Some(reply) = self.instead {
            return reply.delivered_by_default(self.twist.delivery);
        }
        if let Some(code) = self.expired() {
            return error(400, "cursor", &code);
        }
        let Query { start, range, .. } = &self.query;
        let first = start.index + u64::from(start.sub > 0);
        let asked = first..(first + self.limit).min(range.end);
        if self.state.logs.has_bad_page(&asked) {
            return error(400, "page", "UNPROCESSABLE");
        }
        let body = self.body();
        Reply::bytes(200, "application/json", body).delivered(self.twist.delivery)
    }

    /// The code of an expired cursor.
    fn expired(&self) -> Option<String> {
        let cursors = read_cursors(self.state);
        let given = self.query.given.filter(|given| given.generation != cursors.generation);
        match given {
            Some(_) => Some(cursors.code.clone()),
            None => self.query.cursor.as_ref().and_then(|cursor| cursors.dead.get(cursor)).cloned(),
        }
    }

    fn body(&self) -> Vec<u8> {
        let Query { start, range, .. } = &self.query;
        let listing = read_listing(self.state);
        let limit = if self.twist.empty { 0 } else { self.limit };
        let mut out = Vec::with_capacity(limit as usize * RECORD_BYTES + 256);
        out.push(b'{');
        let key: &[u8] = if self.twist.no_data { b"\"records\":[" } else { b"\"data\":[" };
        out.extend_from_slice(key);
        let empty = out.len();
        let next = listing.write(&mut out, &self.state.logs, *start, range.end, limit);
        let has_records = out.len() > empty;
        out.push(b']');
        let total = listing.total(range.clone());
        let covered = start.index..next.map_or(range.end, |next| next.index);
        let waiting = listing.is_waiting_for(covered.clone());
        drop(listing);
        self.meta(&mut out, next, has_records, total);
        out.push(b'}');
        if self.is_whole() && !self.twist.empty {
            self.state.counters.served(self.query.shard, *start);
            if waiting {
                write_listing(self.state).served(&self.state.logs, covered);
            }
            if self.state.faults.stateful_cursor {
                let place = next.unwrap_or(Place::at(range.end));
                write_cursors(self.state).sessions.insert((range.start, range.end), place);
            }
        }
        out
    }

    /// Whether the client gets all of the page.
    fn is_whole(&self) -> bool {
        use Delivery::{Gzip, GzipChunked, Stall, Whole};
        matches!(self.twist.delivery, Whole | Gzip | GzipChunked | Stall(_))
    }

    fn meta(&self, out: &mut Vec<u8>, next: Option<Place>, has_records: bool, total: u64) {
        if self.twist.cursor == Some(CursorFault::NoMeta) {
            return;
        }
        let Next { cursor, has_more } = self.next(next, has_records);
        out.extend_from_slice(b",\"meta\":{");
        if self.twist.cursor != Some(CursorFault::Missing) {
            out.extend_from_slice(b"\"next_cursor\":");
            match cursor {
                Some(cursor) => out.extend_from_slice(format!("\"{cursor}\",").as_bytes()),
                None => out.extend_from_slice(b"null,"),
            }
        }
        if !self.state.faults.stalled_end {
            out.extend_from_slice(if has_more { b"\"has_more\":true," } else { b"\"has_more\":false," });
        }
        out.extend_from_slice(b"\"limit\":");
        wire::number(out, self.query.limit);
        out.extend_from_slice(b",\"total\":");
        wire::number(out, total);
        out.push(b'}');
    }

    fn next(&self, next: Option<Place>, has_records: bool) -> Next {
        let Query { start, range, limit, .. } = &self.query;
        let faults = &self.state.faults;
        let place = match next {
            None if faults.stalled_end => Some(Place::at(range.end)),
            None if faults.trailing_empty_page && has_records => Some(Place::at(range.end)),
            next => next,
        };
        let more = |cursor| Next { cursor, has_more: true };
        match self.twist.cursor {
            Some(CursorFault::Repeat) => {
                more(self.query.cursor.clone().or_else(|| Some(self.cursor(*start, 0))))
            }
            Some(CursorFault::Ring) => {
                let second = (range.start + limit).min(range.end);
                more(Some(self.cursor(Place::at(second), 0)))
            }
            Some(CursorFault::Empty) => more(Some(String::new())),
            Some(CursorFault::Null) => more(None),
            Some(CursorFault::WithoutMore) => {
                let place = place.unwrap_or(Place::at(range.end));
                Next { cursor: Some(self.cursor(place, 0)), has_more: false }
            }
            _ if faults.stateful_cursor => {
                Next { cursor: place.map(|_| SESSION.to_owned()), has_more: place.is_some() }
            }
            // The same place again, and yet another cursor.
            _ if self.twist.empty => {
                let turn = self.query.given.map_or(0, |given| given.turn).wrapping_add(1);
                more(Some(self.cursor(*start, turn)))
            }
            _ => Next { cursor: place.map(|place| self.cursor(place, 0)), has_more: place.is_some() },
        }
    }

    fn cursor(&self, place: Place, turn: u8) -> String {
        let generation = read_cursors(self.state).generation;
        Cursor { place, generation, turn }.write(self.state.logs.seed())
    }
}

fn read_listing(state: &State) -> RwLockReadGuard<'_, Listing> {
    state.listing.read().unwrap_or_else(PoisonError::into_inner)
}

fn write_listing(state: &State) -> RwLockWriteGuard<'_, Listing> {
    state.listing.write().unwrap_or_else(PoisonError::into_inner)
}

fn read_cursors(state: &State) -> RwLockReadGuard<'_, Cursors> {
    state.cursors.read().unwrap_or_else(PoisonError::into_inner)
}

fn write_cursors(state: &State) -> RwLockWriteGuard<'_, Cursors> {
    state.cursors.write().unwrap_or_else(PoisonError::into_inner)
}
