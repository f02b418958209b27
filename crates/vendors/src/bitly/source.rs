//! How a Bitly account is paged.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use engine::{Cursor, Page, PartitionSpec, Position, Profile, Source, SourceError};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use time::OffsetDateTime;
use upstream::{Answer, Client, Clock, Options, Pace, Request, RetryPolicy, Url};

use super::answers::Answers;
use super::wire::{self, Group, Groups, Next};
use super::{BASE_URL, PAGE_SIZE};
use crate::secret::SecretHeader;
use imports::Token;

use crate::Surroundings;

/// Requests a minute and connections at once that Bitly allows for the list.
const PACE: Pace = Pace { requests: 150, per: Duration::from_secs(60), concurrent: 5 };
/// Groups fetched side by side: one connection less than Bitly allows.
const PARALLEL_GROUPS: usize = 4;
/// When every retry was limited the hour's quota is used up; ask again after this.
const LIMITED_WAIT: Duration = Duration::from_secs(10 * 60);
/// Groups named in a message.
const NAMED_GROUPS_MAX: usize = 20;

/// What a Bitly account is asked with.
#[derive(Debug, Clone)]
pub struct BitlyOptions {
    /// The API, without a slash at its end.
    pub base_url: String,
    /// The access token. A clone that is kept can replace it while the source is in use.
    pub token: Token,
    /// The guid of the only group to bring over; all active groups if none is named.
    pub group: Option<String>,
    /// How fast to ask; `None` asks as fast as the API answers.
    pub pace: Option<Pace>,
    /// When and how often to ask again.
    pub retry: RetryPolicy,
}

impl BitlyOptions {
    /// Bitly itself, at the pace it allows, with all groups.
    #[must_use]
    pub fn new(token: Token) -> Self {
        Self {
            base_url: BASE_URL.to_owned(),
            token,
            group: None,
            pace: Some(PACE),
            retry: RetryPolicy::default(),
        }
    }
}

/// A Bitly account as a source: one partition per group.
#[derive(Clone)]
pub struct Bitly {
    client: Client,
    clock: Arc<dyn Clock>,
    group: Option<String>,
    profile: Profile,
}

impl Bitly {
    /// A source for this account. Asks nothing yet.
    ///
    /// # Errors
    /// [`SourceError::Refused`] for a base URL or a group that cannot be asked for.
    pub fn new(options: BitlyOptions, surroundings: Surroundings) -> Result<Self, SourceError> {
        let refuse =
            |reason: &dyn fmt::Display| SourceError::Refused(format!("Bitly cannot be asked: {reason}"));
        let base = Url::parse(&options.base_url).map_err(|error| refuse(&error))?;
        let clock = surroundings.clock();
        let settings = Options { pace: options.pace, retry: options.retry, ..Options::default() };
        let builder = Client::builder(base)
            .options(settings)
            .credentials(SecretHeader::bearer(options.token))
            .classify(Answers);
        let client = surroundings.around(builder).build().map_err(|error| refuse(&error))?;
        let profile = Profile {
            name: "bitly",
            parallel_partitions: PARALLEL_GROUPS,
            stalled_is_end: false,
            // A thousand calls a month on the free plan.
            prefetch: false,
            stateful_cursor: false,
        };
        Ok(Self { client, clock, group: options.group.map(|group| group.trim().to_owned()), profile })
    }

    /// What the client has done so far: requests, retries, time waited.
    #[must_use]
    pub fn stats(&self) -> upstream::Stats {
        self.client.stats()
    }

    /// Every group that the token sees, in the order of their guids, whether active or not.
    pub(super) async fn groups(&self) -> Result<Vec<Group>, SourceError> {
        let mut groups = self.object::<Groups>("groups", &[]).await?.groups;
        groups.sort_by(|a, b| a.guid.cmp(&b.guid));
        groups.dedup_by(|a, b| a.guid == b.guid);
        Ok(groups)
    }

    /// The groups to bring over: the chosen one, or all that are active.
    pub(super) fn chosen(&self, groups: &[Group]) -> Result<Vec<Group>, SourceError> {
        let Some(guid) = &self.group else {
            let active: Vec<Group> = groups.iter().filter(|group| group.is_active()).cloned().collect();
            if active.is_empty() {
                return Err(SourceError::Refused(format!(
                    "no group of this token is active; it sees {}",
                    named(groups)
                )));
            }
            return Ok(active);
        };
        match groups.iter().find(|group| group.guid == *guid) {
            Some(group) if group.is_active() => Ok(vec![group.clone()]),
            Some(_) => Err(SourceError::Refused(format!(
                "Bitly group '{guid}' is not active, so its links cannot be listed"
            ))),
            None => Err(no_such_group(guid, groups)),
        }
    }

    /// Whether this group is among those to bring over.
    pub(super) fn wants(&self, group: &Group) -> bool {
        self.group.as_ref().map_or(group.is_active(), |guid| *guid == group.guid)
    }

    /// One answer of a group's list with further parameters.
    pub(super) async fn list(&self, guid: &str, query: &[(&str, &str)]) -> Result<Answer, upstream::Error> {
        let guid = utf8_percent_encode(guid, NON_ALPHANUMERIC);
        let size = PAGE_SIZE.to_string();
        let request = Request::get(format!("groups/{guid}/bitlinks"))
            .query([("size", size.as_str()), ("archived", "both")])
            .query(query.iter().copied());
        self.client.send(request).await
    }

    /// A small object under `path`.
    pub(super) async fn object<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, SourceError> {
        let answer =
            self.client.get_json(path, query).await.map_err(|error| self.source_error(error, false))?;
        serde_json::from_slice(&answer.body).map_err(|error| {
            SourceError::Malformed(format!("GET {path} does not say what it should: {error}"))
        })
    }

    /// The error of a list request, explained as well as can be.
    async fn list_error(&self, guid: &str, had_cursor: bool, error: upstream::Error) -> SourceError {
        if error.status().map(|status| status.as_u16()) == Some(404) {
            return match self.groups().await {
                Ok(groups) => no_such_group(guid, &groups),
                Err(_) => {
                    SourceError::Refused(format!("Bitly knows no group '{}' for this token", shown(guid)))
                }
            };
        }
        self.source_error(error, had_cursor)
    }

    /// What an error of the client means for a job.
    fn source_error(&self, error: upstream::Error, had_cursor: bool) -> SourceError {
        use upstream::Error;
        match &error {
            Error::Unauthorized { .. } | Error::Credentials { .. } => {
                SourceError::Unauthorized(format!("{error}; give a valid Bitly access token"))
            }
            Error::WaitUntil { until, reason, .. } => wait_until(*until, reason.clone()),
            Error::RateLimited { .. } => wait_until(self.clock.now() + LIMITED_WAIT, error.to_string()),
            Error::Unavailable { status, .. } if status.is_success() => {
                SourceError::Malformed(error.to_string())
            }
            Error::Unavailable { .. } | Error::Transport { .. } => {
                SourceError::Unavailable(error.to_string())
            }
            Error::Status { status, excerpt, .. } => refusal(status.as_u16(), excerpt, had_cursor, &error),
            Error::Malformed { .. }
            | Error::BodyTooLarge { .. }
            | Error::ForeignOrigin { .. }
            | Error::TooManyRedirects { .. } => SourceError::Malformed(error.to_string()),
            _ => SourceError::Refused(error.to_string()),
        }
    }

    /// Reads a page for the engine. The records are slices of the body.
    fn read_page(&self, answer: &Answer) -> Result<Page, SourceError> {
        let malformed = |reason: &dyn fmt::Display| {
            SourceError::Malformed(format!("GET {}: {reason}", answer.url.path()))
        };
        let page = wire::Page::read(&answer.body).map_err(|error| malformed(&error))?;
        let next = match page.next {
            Next::End => Position::End,
            Next::After { cursor, url } => {
                if let Some(url) = url.filter(|url| !self.is_at_home(url)) {
                    let shown: String = url.chars().take(100).collect();
                    return Err(malformed(&format!("`pagination.next` leads away from Bitly: {shown:?}")));
                }
                Position::At(Cursor::new(cursor).map_err(|error| malformed(&error))?)
            }
        };
        let records = page.records.into_iter().map(|record| answer.body.slice_ref(record)).collect();
        let total = page.total.and_then(|total| i64::try_from(total).ok());
        Ok(Page { records, next, total, retries: answer.attempts.saturating_sub(1) })
    }

    /// Whether a URL is on the API's host or, for Bitly's own, on another of Bitly's. It is never followed:
    /// the walk uses `search_after` alone.
    fn is_at_home(&self, url: &str) -> bool {
        let base = self.client.base();
        let Ok(url) = base.join(url) else { return false };
        let (Some(host), Some(home)) = (url.host_str(), base.host_str()) else { return false };
        let is_bitlys = |host: &str| host == "bitly.com" || host.ends_with(".bitly.com");
        let is_web = matches!(url.scheme(), "http" | "https");
        let same_port = url.port() == base.port() || url.port().is_none();
        is_web
            && ((host == home && same_port) || (is_bitlys(host) && is_bitlys(home) && url.port().is_none()))
    }
}

impl fmt::Debug for Bitly {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Bitly")
            .field("client", &self.client)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Source for Bitly {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    async fn partitions(&self) -> Result<Vec<PartitionSpec>, SourceError> {
        let groups = self.groups().await?;
        let chosen = self.chosen(&groups)?;
        let chosen: BTreeSet<&str> = chosen.iter().map(|group| group.guid.as_str()).collect();
        let left_out = |group: &Group| {
            let why = if group.is_active() { "was not chosen" } else { "is not active" };
            (!chosen.contains(group.guid.as_str())).then(|| format!("the group {} {why}", one_named(group)))
        };
        Ok(groups
            .iter()
            .map(|group| PartitionSpec {
                key: group.guid.clone(),
                expected: None,
                left_out: left_out(group),
                closing: false,
            })
            .collect())
    }

    async fn page(&self, partition: &PartitionSpec, at: &Position) -> Result<Page, SourceError> {
        let cursor = match at {
            Position::Beginning => None,
            Position::At(cursor) => Some(("search_after", cursor.as_str())),
            Position::End => {
                return Err(SourceError::Malformed("asked for a page behind the end".to_owned()));
            }
        };
        match self.list(&partition.key, cursor.as_slice()).await {
            Ok(answer) => self.read_page(&answer),
            Err(error) => Err(self.list_error(&partition.key, cursor.is_some(), error).await),
        }
    }
}

fn wait_until(until: SystemTime, reason: String) -> SourceError {
    let until = until.max(UNIX_EPOCH);
    SourceError::WaitUntil { until: OffsetDateTime::from(until).into(), reason }
}

/// A refusal that will not change by asking again, with advice where there is one.
fn refusal(status: u16, said: &str, had_cursor: bool, error: &upstream::Error) -> SourceError {
    let names_cursor = said.to_ascii_lowercase().contains("search_after");
    match status {
        400 | 422 if had_cursor && names_cursor => SourceError::CursorExpired(error.to_string()),
        402 => SourceError::Refused(format!(
            "{error}; this plan of Bitly has no such API: upgrade it, or export the links as CSV and import that"
        )),
        403 => SourceError::Refused(format!(
            "{error}; this token may not read that: ask an admin of the group for one that may"
        )),
        _ => SourceError::Refused(error.to_string()),
    }
}

fn no_such_group(guid: &str, groups: &[Group]) -> SourceError {
    SourceError::Refused(format!(
        "Bitly knows no group '{}' for this token; it sees {}",
        shown(guid),
        named(groups)
    ))
}

/// Groups for people: guid, name, and whether they are inactive.
fn named(groups: &[Group]) -> String {
    if groups.is_empty() {
        return "none".to_owned();
    }
    let mut names: Vec<String> = groups.iter().take(NAMED_GROUPS_MAX).map(one_named).collect();
    if groups.len() > NAMED_GROUPS_MAX {
        names.push(format!("{} more", groups.len() - NAMED_GROUPS_MAX));
    }
    names.join(", ")
}

fn one_named(group: &Group) -> String {
    let name = group.name.as_deref().map(|name| format!(" ({})", shown(name))).unwrap_or_default();
    let state = if group.is_active() { "" } else { ", not active" };
    format!("{}{name}{state}", shown(&group.guid))
}

fn shown(text: &str) -> String {
    crate::texts::excerpt(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bitly(base_url: &str, group: Option<&str>) -> Bitly {
        let mut options = BitlyOptions::new(Token::new("t"));
        options.base_url = base_url.to_owned();
        options.group = group.map(str::to_owned);
        Bitly::new(options, Surroundings::default()).unwrap()
    }

    #[test]
    fn b6_a_group_without_a_domain_of_its_own_is_not_hidden() {
        let groups = r#"{"groups":[{"guid":"Bc","bsds":[]},{"guid":"Bb","bsds":null,"is_active":null,"new":1},
            {"guid":"Ba","is_active":false,"bsds":["go.example.com"]}]}"#;
        let groups = serde_json::from_str::<Groups>(groups).unwrap().groups;
        let chosen = |group| bitly(BASE_URL, group).chosen(&groups);
        let guids: Vec<String> = chosen(None).unwrap().into_iter().map(|group| group.guid).collect();
        assert_eq!(guids, ["Bc", "Bb"]);
        assert_eq!(chosen(Some("Bb")).unwrap().len(), 1);
        assert!(matches!(chosen(Some("Ba")), Err(SourceError::Refused(_))));
        assert!(matches!(chosen(Some("Bx")), Err(SourceError::Refused(_))));
        assert!(matches!(bitly(BASE_URL, None).chosen(&[]), Err(SourceError::Refused(_))));
    }

    #[test]
    fn next_stays_at_home() {
        for (base, next, is_at_home) in [
            (BASE_URL, "https://api-ssl.bitly.com/v4/groups/B/bitlinks?search_after=x", true),
            (BASE_URL, "https://api.bitly.com/v4/groups/B/bitlinks?search_after=x", true),
            (BASE_URL, "http://api-ssl.bitly.com/v4/x", true),
            (BASE_URL, "/v4/groups/B/bitlinks?search_after=x", true),
            (BASE_URL, "https://evil.example/v4", false),
            (BASE_URL, "https://bitly.com.evil.example/v4", false),
            (BASE_URL, "https://evilbitly.com/v4", false),
            (BASE_URL, "https://api-ssl.bitly.com:8443/v4", false),
            (BASE_URL, "https://api-ssl.bitly.com@evil.example/v4", false),
            (BASE_URL, "//evil.example/v4", false),
            (BASE_URL, "ftp://api-ssl.bitly.com/v4", false),
            (BASE_URL, "https://[", false),
            ("http://127.0.0.1:8080/v4", "http://127.0.0.1:8080/v4/x", true),
            ("http://127.0.0.1:8080/v4", "http://127.0.0.1:9090/v4/x", false),
            ("http://127.0.0.1:8080/v4", "https://api-ssl.bitly.com/v4/x", false),
        ] {
            assert_eq!(bitly(base, None).is_at_home(next), is_at_home, "{base} {next}");
        }
    }
}
