//! A paginated API, asked as declared.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Cursor, Fingerprint, Page, PartitionSpec, Position, Profile, Source, SourceError};
use time::OffsetDateTime;
use upstream::{Answer, Classify, Client, Options, Reply, Request, Url, Verdict};

use super::page::{Found, Wanted};
use super::parts;
use super::secret::Secret;
use crate::declaration::{ErrorRule, HttpSource, Meaning, Next, Paging};
use crate::field::{cut, json};
use crate::pointer::Pointer;

/// Marks a refusal that the declaration calls an expired cursor.
const EXPIRED: &str = "the cursor has expired";
/// When every retry was limited and no answer said for how long.
const LIMITED_WAIT: Duration = Duration::from_secs(10 * 60);
/// The largest page that is read.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Adds to a client what its surroundings want.
pub type Around = dyn Fn(upstream::Builder) -> upstream::Builder + Send + Sync;

/// Pages of an API.
pub struct HttpPages {
    client: Client,
    url: Url,
    declared: HttpSource,
    layout: Arc<Layout>,
    profile: Profile,
    /// Partitions whose latest cursor was refused: where the next one is refused too, their records are asked for by key.
    refused: Mutex<HashSet<String>>,
}

/// Where things stand in a page.
struct Layout {
    /// The list of records is the first.
    wanted: Wanted,
    paging: Paging,
    /// Indexes among the wanted.
    cursor: Option<usize>,
    has_more: Option<usize>,
    total: Option<usize>,
    /// What the classifier has read of bodies that are on their way to whoever asked for them.
    passing: Mutex<HashMap<Fingerprint, Read>>,
}

/// Bodies on their way at one time; more are read twice.
const PASSING_MAX: usize = 64;

impl Layout {
    fn new(source: &HttpSource) -> Self {
        let mut pointers = vec![&source.records];
        let mut add = |pointer| {
            pointers.push(pointer);
            pointers.len() - 1
        };
        let cursor = match &source.paging.from {
            Next::Cursor(pointer) => Some(add(pointer)),
            Next::Last(_) => None,
        };
        let has_more = source.paging.has_more.as_ref().map(&mut add);
        let total = source.paging.total.as_ref().map(&mut add);
        Self {
            wanted: Wanted::new(&pointers),
            paging: source.paging.clone(),
            cursor,
            has_more,
            total,
            passing: Mutex::default(),
        }
    }

    /// Keeps what was read of a body for [`Layout::read_again`].
    fn keep(&self, body: &[u8], read: Read) {
        let mut passing = self.passing.lock().unwrap_or_else(PoisonError::into_inner);
        // An answer may have got lost between.
        if passing.len() >= PASSING_MAX {
            passing.clear();
        }
        passing.insert(Fingerprint::of(body), read);
    }

    /// As [`Layout::read`], without a second walk over a body that was kept.
    fn read_again(&self, body: &[u8]) -> Result<Read, String> {
        let fingerprint = Fingerprint::of(body);
        let kept = self.passing.lock().unwrap_or_else(PoisonError::into_inner).remove(&fingerprint);
        kept.map_or_else(|| self.read(body), Ok)
    }

    /// Reads a page: where its records stand, where it leads, and how many records it says there are.
    ///
    /// A page that says too little is an error. It may be asked for again; it is never the end.
    fn read(&self, body: &[u8]) -> Result<Read, String> {
        let Found { values: found, elements: records } =
            self.wanted.find_list(body).map_err(|error| error.to_string())?;
        let token = |index: Option<usize>| -> Result<Option<&str>, String> {
            let Some(range) = index.and_then(|index| found[index].clone()) else { return Ok(None) };
            let text = std::str::from_utf8(&body[range]);
            text.map(Some).map_err(|_| "what leads to the next page is not UTF-8".to_owned())
        };
        let has_more = match (token(self.has_more)?, &self.paging.has_more) {
            (_, None) => None,
            (Some("true"), _) => Some(true),
            (Some("false"), _) => Some(false),
            (said, Some(pointer)) => {
                let said = said.map_or("nothing".to_owned(), cut);
                return Err(format!(
                    "the page says {said} at {pointer}, where it says whether there is more"
                ));
            }
        };
        let next = match &self.paging.from {
            Next::Cursor(pointer) => self.cursor(token(self.cursor)?, pointer, has_more),
            Next::Last(pointer) => last(body, records.last(), pointer, has_more),
        }?;
        let total = token(self.total)?.and_then(|text| text.parse().ok()).filter(|total: &i64| *total >= 0);
        Ok(Read { records, next, total })
    }

    /// The position that a cursor stands for: present is a cursor, `null` the end, missing an error.
    fn cursor(
        &self,
        token: Option<&str>,
        pointer: &Pointer,
        has_more: Option<bool>,
    ) -> Result<Position, String> {
        let next = match token {
            None if has_more == Some(false) => Position::End,
            None => {
                return Err(format!(
                    "the page has nothing at {pointer}, where its cursor belongs; the end is null there"
                ));
            }
            Some("null") => Position::End,
            Some(token) => {
                let text = match token.as_bytes().first() {
                    Some(b'"') => json::text_of(token)
                        .ok_or_else(|| format!("the cursor {} is no text", cut(token)))?
                        .into_owned(),
                    Some(b'-' | b'0'..=b'9') => token.to_owned(),
                    _ => {
                        return Err(format!(
                            "the cursor at {pointer} is {}, neither a text nor a number",
                            cut(token)
                        ));
                    }
                };
                if text.is_empty() && self.paging.empty_text_is_end {
                    Position::End
                } else {
                    Position::At(Cursor::new(text).map_err(|error| error.to_string())?)
                }
            }
        };
        match (next, has_more) {
            (Position::End, Some(true)) => {
                Err(format!("the page says that there is more, but gives no cursor at {pointer}"))
            }
            (Position::At(_), Some(false)) if self.paging.cursor_at_end => Ok(Position::End),
            (Position::At(cursor), Some(false)) => Err(format!(
                "the page says that there is no more, and names the cursor {} at {pointer} all the same; if the last \
                 page of this API does so, declare cursor_at_end = true under [source.paging]",
                cut(cursor.as_str())
            )),
            (next, _) => Ok(next),
        }
    }
}

/// What a page says.
struct Read {
    records: Vec<Range<usize>>,
    next: Position,
    total: Option<i64>,
}

/// Reads answers for the polite client.
struct Answers {
    rules: Vec<(ErrorRule, Option<Wanted>)>,
    layout: Arc<Layout>,
}

impl Answers {
    /// The first rule that speaks of an answer.
    fn rule(&self, reply: &Reply<'_>) -> Option<(Meaning, String)> {
        self.rules.iter().find_map(|(rule, wanted)| {
            if rule.status.is_some_and(|status| status != reply.status.as_u16()) {
                return None;
            }
            let said = match (&rule.body, wanted) {
                (Some((pointer, values)), Some(wanted)) => {
                    if !may_hold(reply.body, pointer) {
                        return None;
                    }
                    let range = wanted.find(reply.body).ok()?.remove(0)?;
                    let token = std::str::from_utf8(&reply.body[range]).ok()?;
                    let text = json::text_of(token).unwrap_or(token.into());
                    values.iter().find(|value| **value == *text)?.clone()
                }
                _ => format!("status {}", reply.status.as_u16()),
            };
            Some((rule.means, said))
        })
    }
}

/// Whether a body may have something at a pointer, without a walk: every name on the way is somewhere in it, as far as
/// names are written without escapes.
fn may_hold(body: &[u8], pointer: &Pointer) -> bool {
    memchr::memchr(b'\\', body).is_some()
        || pointer
            .tokens()
            .iter()
            // These may be places in a list.
            .filter(|token| !token.bytes().all(|byte| byte.is_ascii_digit()))
            .all(|token| memchr::memmem::find(body, token.as_bytes()).is_some())
}

impl Classify for Answers {
    fn classify(&self, reply: &Reply<'_>) -> Verdict {
        if let Some((meaning, reason)) = self.rule(reply) {
            return match meaning {
                Meaning::CursorExpired => Verdict::Fatal { reason: format!("{EXPIRED}: {reason}") },
                Meaning::RateLimited(wait) => {
                    Verdict::RateLimited { after: reply.asked_wait().or(wait), reason }
                }
                Meaning::Retry => Verdict::Retry { after: None, reason },
                Meaning::Unauthorized => Verdict::Unauthorized,
                Meaning::Fatal => Verdict::Fatal { reason },
            };
        }
        if !reply.status.is_success() {
            return Verdict::Default;
        }
        match self.layout.read(reply.body) {
            Ok(read) => {
                self.layout.keep(reply.body, read);
                Verdict::Ok
            }
            // What is no page may be a page the next time; it is never the end.
            Err(reason) => Verdict::Retry { after: None, reason },
        }
    }
}

impl HttpPages {
    /// Whether this machine has the credentials that the source needs.
    pub fn is_reachable(source: &HttpSource) -> bool {
        source.auth.as_ref().is_none_or(Secret::is_here)
    }

    /// Over an API as declared. Asks nothing yet. `around` has the last word about the client: tests give it a clock.
    ///
    /// # Errors
    /// [`SourceError::Refused`] for what cannot be asked.
    pub fn new(declared: HttpSource, around: &Around) -> Result<Self, SourceError> {
        let refuse = |reason: &dyn std::fmt::Display| {
            SourceError::Refused(format!("the source cannot be asked: {reason}"))
        };
        let url = Url::parse(&declared.url).map_err(|error| refuse(&error))?;
        let layout = Arc::new(Layout::new(&declared));
        let rules = declared
            .errors
            .iter()
            .map(|rule| (rule.clone(), rule.body.as_ref().map(|(pointer, _)| Wanted::new(&[pointer]))))
            .collect();
        let mut headers = upstream::HeaderMap::new();
        for (name, value) in &declared.headers {
            let name = upstream::HeaderName::from_bytes(name.as_bytes()).map_err(|error| refuse(&error))?;
            headers.insert(name, upstream::HeaderValue::from_str(value).map_err(|error| refuse(&error))?);
        }
        let pace = declared.pace.map(|pace| upstream::Pace {
            requests: pace.requests,
            per: pace.per,
            concurrent: pace.concurrent,
        });
        let options = Options { pace, headers, body_max_bytes: BODY_BYTES_MAX, ..Options::default() };
        let mut builder =
            Client::builder(url.clone()).options(options).classify(Answers { rules, layout: layout.clone() });
        if let Some(auth) = declared.auth.clone() {
            builder = builder.credentials(Secret::new(auth));
        }
        let client = around(builder).build().map_err(|error| refuse(&error))?;
        let profile = Profile {
            name: "ledger",
            parallel_partitions: declared.side_by_side,
            stalled_is_end: declared.paging.stalled_is_end,
            prefetch: true,
            stateful_cursor: declared.paging.stateful,
        };
        Ok(Self { client, url, declared, layout, profile, refused: Mutex::default() })
    }

    fn read(&self, answer: &Answer) -> Result<Page, SourceError> {
        let read = self
            .layout
            .read_again(&answer.body)
            .map_err(|reason| SourceError::Malformed(format!("GET {}: {reason}", answer.url.path())))?;
        let records = read.records.into_iter().map(|range| answer.body.slice(range)).collect();
        Ok(Page { records, next: read.next, total: read.total, retries: answer.attempts.saturating_sub(1) })
    }

    /// The cursor of a position, and the key of the last record before it where the declaration goes on by key.
    fn place<'p>(&self, at: &'p Position) -> Result<Option<Place<'p>>, SourceError> {
        let cursor = match at {
            Position::Beginning => return Ok(None),
            Position::At(cursor) => cursor.as_str(),
            Position::End => {
                return Err(SourceError::Malformed("asked for a page behind the end".to_owned()));
            }
        };
        // A cursor of before the declaration went on by key has none.
        let marked = self.declared.paging.reanchor.as_ref().and_then(|_| serde_json::from_str(cursor).ok());
        Ok(Some(marked.map_or(
            Place { cursor: cursor.into(), key: None },
            |(cursor, key): (String, String)| Place { cursor: cursor.into(), key: Some(key) },
        )))
    }

    /// Puts the key of a page's last record beside the cursor behind it.
    fn mark(&self, page: &mut Page, before: Option<&Place<'_>>) -> Result<(), SourceError> {
        let Some(reanchor) = &self.declared.paging.reanchor else { return Ok(()) };
        let Position::At(next) = &page.next else { return Ok(()) };
        if before.is_some_and(|before| before.cursor == next.as_str()) {
            return Err(SourceError::Malformed(format!(
                "stalled: the cursor {} leads to itself",
                cut(next.as_str())
            )));
        }
        let key = match page.records.last() {
            Some(record) => key_of(record, &reanchor.key),
            None => before.and_then(|before| before.key.clone()),
        };
        if let Some(key) = key {
            let text = serde_json::to_string(&(next.as_str(), key)).expect("texts are JSON");
            page.next = Cursor::new(text)
                .map(Position::At)
                .map_err(|error| SourceError::Malformed(error.to_string()))?;
        }
        Ok(())
    }

    async fn ask(
        &self,
        partition: &PartitionSpec,
        position: Option<(&str, &str)>,
    ) -> Result<Page, SourceError> {
        let chosen = parts::parameters(&self.declared, &partition.key).ok_or_else(|| {
            SourceError::Refused(format!("the declaration has no partition '{}'", partition.key))
        })?;
        let mut query = self.declared.params.clone();
        query.extend(chosen);
        if let Some((param, size)) = &self.declared.page_size {
            query.push((param.clone(), size.to_string()));
        }
        let request = Request::get(self.url.as_str())
            .query(query.iter().map(|(name, value)| (name.as_str(), value.as_str())))
            .query(position);
        match self.client.send(request).await {
            Ok(answer) => self.read(&answer),
            Err(error) => Err(self.error(error)),
        }
    }

    fn error(&self, error: upstream::Error) -> SourceError {
        use upstream::Error;
        let until = |until: std::time::SystemTime, reason: String| SourceError::WaitUntil {
            until: OffsetDateTime::from(until.max(std::time::UNIX_EPOCH)).into(),
            reason,
        };
        match &error {
            Error::Unauthorized { .. } | Error::Credentials { .. } => {
                SourceError::Unauthorized(error.to_string())
            }
            Error::WaitUntil { until: moment, reason, .. } => until(*moment, reason.clone()),
            Error::RateLimited { .. } => {
                until(std::time::SystemTime::now() + LIMITED_WAIT, error.to_string())
            }
            Error::Unavailable { status, .. } if status.is_success() => {
                SourceError::Malformed(error.to_string())
            }
            Error::Unavailable { .. } | Error::Transport { .. } => {
                SourceError::Unavailable(error.to_string())
            }
            Error::Status { excerpt, .. } if excerpt.starts_with(EXPIRED) => {
                SourceError::CursorExpired(error.to_string())
            }
            Error::Malformed { .. }
            | Error::BodyTooLarge { .. }
            | Error::ForeignOrigin { .. }
            | Error::TooManyRedirects { .. } => SourceError::Malformed(error.to_string()),
            _ => SourceError::Refused(error.to_string()),
        }
    }
}

/// A position as the source is asked for it.
struct Place<'p> {
    cursor: Cow<'p, str>,
    key: Option<String>,
}

/// The key of a record, if it has one that can be asked for.
fn key_of(record: &[u8], pointer: &Pointer) -> Option<String> {
    let range = Wanted::new(&[pointer]).find(record).ok()?.remove(0)?;
    let token = std::str::from_utf8(&record[range]).ok()?;
    match token.as_bytes().first() {
        Some(b'"') => json::text_of(token).map(Cow::into_owned),
        Some(b'-' | b'0'..=b'9') => Some(token.to_owned()),
        _ => None,
    }
}

/// The key of a page's last record, with which the next page begins. An empty page is the end, unless the page says that
/// there is more; then nothing says where.
fn last(
    body: &[u8],
    last: Option<&Range<usize>>,
    pointer: &Pointer,
    has_more: Option<bool>,
) -> Result<Position, String> {
    let Some(range) = last else {
        return if has_more == Some(true) {
            Err("the page is empty and says that there is more: no record to go on from".to_owned())
        } else {
            Ok(Position::End)
        };
    };
    if has_more == Some(false) {
        return Ok(Position::End);
    }
    let text = key_of(&body[range.clone()], pointer).ok_or_else(|| {
        format!(
            "the last record of the page has no key at {pointer}, so nobody knows where the next page begins"
        )
    })?;
    Cursor::new(text).map(Position::At).map_err(|error| error.to_string())
}

#[async_trait]
impl Source for HttpPages {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    async fn partitions(&self) -> Result<Vec<PartitionSpec>, SourceError> {
        let now = OffsetDateTime::from(self.client.now()).unix_timestamp();
        parts::specs(&self.declared, now).map_err(SourceError::Refused)
    }

    async fn page(&self, partition: &PartitionSpec, at: &Position) -> Result<Page, SourceError> {
        let place = self.place(at)?;
        let cursor = place.as_ref().map(|place| (self.declared.paging.param.as_str(), place.cursor.as_ref()));
        let mut asked = self.ask(partition, cursor).await;
        let refused = || self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match &asked {
            Err(SourceError::CursorExpired(_)) => {
                // The first one is told: who asks goes back to where its segment began. If that is refused as well, the
                // records behind the key are the same ones, and whoever asks compares them.
                let again = !refused().insert(partition.key.clone());
                let key = place.as_ref().and_then(|place| place.key.as_deref());
                if let (true, Some(key), Some(reanchor)) = (again, key, &self.declared.paging.reanchor) {
                    tracing::info!(partition = partition.key, "no cursor is accepted; going on by key");
                    asked = self.ask(partition, Some((&reanchor.param, key))).await;
                    refused().remove(&partition.key);
                }
            }
            Err(_) => {}
            Ok(_) => drop(refused().remove(&partition.key)),
        }
        let mut page = asked?;
        self.mark(&mut page, place.as_ref())?;
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_walked_only_where_it_may_hold_what_is_looked_for() {
        let pointer = Pointer::parse("/errors/0/code").unwrap();
        for (body, expected) in [
            (r#"{"errors":[{"code":"THROTTLED"}]}"#, true),
            (r#"{"data":[{"id":1}]}"#, false),
            (r#"{"errors":[]}"#, false),
            (r#"{"\u0065rrors":[{"c\u006fde":"THROTTLED"}]}"#, true),
            (r#"{"data":[{"id":1,"memo":"a \"b\""}]}"#, true),
        ] {
            assert_eq!(may_hold(body.as_bytes(), &pointer), expected, "{body}");
        }
    }
}
