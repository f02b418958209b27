//! What an import will meet and need, asked before it starts.

use std::fmt;

use engine::SourceError;
use time::{Duration, OffsetDateTime};

use super::PAGE_SIZE;
use super::source::Bitly;
use super::wire::{Group, Link, Next, Page, PlanLimits, PlatformLimits, User};
use crate::{dates, field, record};

/// Pages read of one large group to estimate how many links it has.
const SAMPLES: i32 = 6;
/// Groups that are looked into; an account with more is told so.
const GROUPS_LOOKED_INTO: usize = 10;
/// The endpoint by which Bitly names the list's limit.
const LIST_ENDPOINT: &str = "/groups/{group_guid}/bitlinks";

/// What the token sees, and what bringing it over will cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// Whose token it is, where Bitly tells.
    pub login: Option<String>,
    /// Their name, where Bitly tells.
    pub name: Option<String>,
    /// Every group the token sees, those left out included.
    pub groups: Vec<SurveyedGroup>,
    /// The API calls an import of the chosen groups will need.
    pub calls: CallsNeeded,
    /// Calls of the list within the hour, where Bitly tells.
    pub list_limit: Option<Allowance>,
    /// Calls of any kind within the month, where Bitly tells.
    pub monthly_limit: Option<Allowance>,
}

/// One group of the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurveyedGroup {
    /// Bitly's id of the group.
    pub guid: String,
    /// What people call it.
    pub name: Option<String>,
    /// Whether its links can be listed.
    pub is_active: bool,
    /// Whether it will be brought over.
    pub is_chosen: bool,
    /// Its own domains; a group without any has links on Bitly's domains, which need a mapping.
    pub domains: Vec<String>,
    /// How many links it has.
    pub links: LinkCount,
}

/// How many links a group has, as far as can be told without listing them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkCount {
    /// Exactly these.
    Exact(u64),
    /// About these, by samples over the group's lifetime.
    Estimated(u64),
    /// At least these; nothing more could be found out.
    AtLeast(u64),
    /// Not asked: the group is left out, or the account has too many.
    Unknown,
}

/// The API calls of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallsNeeded {
    /// One per hundred links of each group, and one for the list of groups.
    pub calls: u64,
    /// How far the number can be relied on.
    pub certainty: Certainty,
}

/// How far a number of calls can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Every link was counted.
    Exact,
    /// By samples.
    Estimated,
    /// It will be more, nobody knows how much.
    AtLeast,
}

impl fmt::Display for CallsNeeded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = self.calls;
        match self.certainty {
            Certainty::Exact => write!(formatter, "{calls} API calls (one per {PAGE_SIZE} links)"),
            Certainty::Estimated => {
                write!(
                    formatter,
                    "about {calls} API calls (one per {PAGE_SIZE} links, their number estimated from samples)"
                )
            }
            Certainty::AtLeast => {
                write!(
                    formatter,
                    "at least {calls} API calls (one per {PAGE_SIZE} links, their number is not known)"
                )
            }
        }
    }
}

/// A limit and how much of it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Calls allowed.
    pub limit: u64,
    /// Calls made so far.
    pub used: u64,
}

impl Allowance {
    /// Calls that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    fn of(limit: Option<u64>, used: Option<u64>) -> Option<Self> {
        limit.map(|limit| Self { limit, used: used.unwrap_or_default() })
    }
}

impl From<Survey> for imports::Forecast {
    fn from(survey: Survey) -> Self {
        let part = |group: SurveyedGroup| imports::ForecastPart {
            key: group.guid,
            name: group.name,
            domains: group.domains,
            comes_over: group.is_chosen,
            links: match group.links {
                LinkCount::Exact(links) | LinkCount::Estimated(links) | LinkCount::AtLeast(links) => {
                    Some(links)
                }
                LinkCount::Unknown => None,
            },
        };
        Self {
            account: survey.login,
            parts: survey.groups.into_iter().map(part).collect(),
            calls: survey.calls.calls,
            certainty: match survey.calls.certainty {
                Certainty::Exact => imports::Certainty::Exact,
                Certainty::Estimated => imports::Certainty::Estimated,
                Certainty::AtLeast => imports::Certainty::AtLeast,
            },
            records_per_call: PAGE_SIZE,
            month: survey
                .monthly_limit
                .map(|limit| imports::Allowance { limit: limit.limit, left: limit.left() }),
        }
    }
}

impl Bitly {
    /// Asks what an import will meet: the groups, about how many links, and the limits.
    ///
    /// Costs a few calls itself, at most seven per group. What Bitly does not tell to this token or plan is left
    /// out of the answer.
    ///
    /// # Errors
    /// As for [`engine::Source::partitions`]: a token that is refused, a group that is not there.
    pub async fn survey(&self) -> Result<Survey, SourceError> {
        let groups = self.groups().await?;
        self.chosen(&groups)?;
        let user = optional(self.object::<User>("user", &[]).await)?.unwrap_or_default();
        let list_limit = self.list_limit().await?;
        let monthly_limit = self.monthly_limit(&groups).await?;
        let mut surveyed = Vec::with_capacity(groups.len());
        let mut looked_into = 0;
        for group in &groups {
            let is_chosen = self.wants(group);
            let links = if is_chosen && looked_into < GROUPS_LOOKED_INTO {
                looked_into += 1;
                optional(self.count(group).await)?.unwrap_or(LinkCount::Unknown)
            } else {
                LinkCount::Unknown
            };
            surveyed.push(SurveyedGroup {
                guid: group.guid.clone(),
                name: group.name.clone(),
                is_active: group.is_active(),
                is_chosen,
                domains: group.bsds.clone().unwrap_or_default(),
                links,
            });
        }
        let calls = calls_needed(&surveyed);
        Ok(Survey { login: user.login, name: user.name, groups: surveyed, calls, list_limit, monthly_limit })
    }

    async fn list_limit(&self) -> Result<Option<Allowance>, SourceError> {
        let query = [("path", LIST_ENDPOINT)];
        let limits = optional(self.object::<PlatformLimits>("user/platform_limits", &query).await)?
            .unwrap_or_default();
        let endpoint = limits.platform_limits.into_iter().find(|limit| limit.endpoint == LIST_ENDPOINT);
        let methods = endpoint.map(|endpoint| endpoint.methods).unwrap_or_default();
        let get = methods.into_iter().find(|method| method.name.eq_ignore_ascii_case("GET"));
        Ok(get.and_then(|method| Allowance::of(method.limit, method.count)))
    }

    async fn monthly_limit(&self, groups: &[Group]) -> Result<Option<Allowance>, SourceError> {
        let chosen = groups.iter().find(|group| self.wants(group));
        let Some(organization) = chosen.and_then(|group| group.organization_guid.as_deref()) else {
            return Ok(None);
        };
        if !organization.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Ok(None);
        }
        let path = format!("organizations/{organization}/plan_limits");
        let limits = optional(self.object::<PlanLimits>(&path, &[]).await)?.unwrap_or_default();
        let calls =
            limits.plan_limits.into_iter().find(|limit| limit.name.to_ascii_lowercase().contains("api"));
        Ok(calls.and_then(|limit| Allowance::of(limit.limit, limit.count)))
    }

    /// How many links a group has: counted if one page holds them, else estimated.
    async fn count(&self, group: &Group) -> Result<LinkCount, SourceError> {
        let Some(first) = self.sample(group, None).await? else { return Ok(LinkCount::Unknown) };
        if let Some(total) = first.total {
            return Ok(LinkCount::Exact(total));
        }
        if first.is_last {
            return Ok(LinkCount::Exact(first.links));
        }
        let begun = group.created.as_deref().and_then(|created| dates::instant(created).ok());
        match (first.oldest, begun) {
            (Some(oldest), Some(begun)) if begun < oldest => {
                self.estimate(group, first.links, oldest, begun).await
            }
            _ => Ok(LinkCount::AtLeast(first.links)),
        }
    }

    /// Reads pages at even distances in time, and takes each for a picture of what lies up to the next.
    async fn estimate(
        &self,
        group: &Group,
        newest_links: u64,
        newest: OffsetDateTime,
        begun: OffsetDateTime,
    ) -> Result<LinkCount, SourceError> {
        let stretch = (newest - begun) / SAMPLES;
        let mut links = newest_links as f64;
        for step in 0..SAMPLES {
            let before = newest - stretch * step;
            let Some(sample) = self.sample(group, Some(before)).await? else {
                return Ok(LinkCount::AtLeast(newest_links));
            };
            if sample.newest.is_some_and(|newest| newest > before) {
                // The filter is not heeded, so the sample says nothing.
                return Ok(LinkCount::AtLeast(newest_links));
            }
            if sample.is_last {
                return Ok(LinkCount::Estimated((links as u64).saturating_add(sample.links)));
            }
            let seconds = |duration: Duration| duration.as_seconds_f64().max(1.0);
            let covered = sample.oldest.map_or(1.0, |oldest| seconds(before - oldest));
            links += sample.links as f64 / covered * seconds(stretch);
        }
        Ok(LinkCount::Estimated(links as u64))
    }

    async fn sample(
        &self,
        group: &Group,
        before: Option<OffsetDateTime>,
    ) -> Result<Option<Sample>, SourceError> {
        let before = before.map(|before| before.unix_timestamp().to_string());
        let query: Vec<(&str, &str)> =
            before.iter().map(|before| ("created_before", before.as_str())).collect();
        match self.list(&group.guid, &query).await {
            Ok(answer) => Ok(Page::read(&answer.body).ok().map(|page| Sample::of(&page))),
            Err(error) if matches!(error, upstream::Error::Unauthorized { .. }) => {
                Err(SourceError::Unauthorized(error.to_string()))
            }
            Err(error) => {
                tracing::info!(group = group.guid, %error, "bitly: links of the group cannot be counted");
                Ok(None)
            }
        }
    }
}

/// What one page tells about a stretch of time.
struct Sample {
    links: u64,
    newest: Option<OffsetDateTime>,
    oldest: Option<OffsetDateTime>,
    is_last: bool,
    total: Option<u64>,
}

impl Sample {
    fn of(page: &Page<'_>) -> Self {
        let mut dates = page.records.iter().filter_map(|record| created_at(record));
        let newest = dates.next();
        Self {
            links: page.records.len() as u64,
            newest,
            oldest: dates.next_back().or(newest),
            is_last: page.next == Next::End,
            total: page.total,
        }
    }
}

fn created_at(raw: &[u8]) -> Option<OffsetDateTime> {
    let json = record::open(raw, &[]).ok()?;
    let link: Link<'_> = serde_json::from_str(&json).ok()?;
    dates::instant(&field::text(link.created_at, "").ok()??).ok()
}

/// Nothing where Bitly does not tell; what would stop the import as well stays an error.
fn optional<T>(answer: Result<T, SourceError>) -> Result<Option<T>, SourceError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error @ SourceError::Unauthorized(_)) => Err(error),
        Err(error) => {
            tracing::info!(%error, "bitly: part of the survey is not answered");
            Ok(None)
        }
    }
}

fn calls_needed(groups: &[SurveyedGroup]) -> CallsNeeded {
    let mut needed = CallsNeeded { calls: 1, certainty: Certainty::Exact };
    for group in groups.iter().filter(|group| group.is_chosen) {
        let (links, certainty) = match group.links {
            LinkCount::Exact(links) => (links, Certainty::Exact),
            LinkCount::Estimated(links) => (links, Certainty::Estimated),
            LinkCount::AtLeast(links) => (links + 1, Certainty::AtLeast),
            LinkCount::Unknown => (0, Certainty::AtLeast),
        };
        needed.calls += links.div_ceil(PAGE_SIZE).max(1);
        needed.certainty = needed.certainty.max(certainty);
    }
    needed
}
