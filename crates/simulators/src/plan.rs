//! What the fault plans of all simulators share: how a plan is read and where its faults strike.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Why a text is no fault plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No fault has this name; the simulator's `FaultPlan::NAMES` lists them all.
    #[error("unknown fault {0:?}")]
    UnknownName(String),
    /// A fault that strikes a request or a record was named without saying which.
    #[error("fault {0:?} needs a place, such as {0}@3")]
    PlaceMissing(String),
    /// A switch was given a place.
    #[error("fault {0:?} is a switch and takes no place")]
    PlaceUnwanted(String),
    /// A place, a repetition or an argument cannot be read.
    #[error("fault {0:?} has a place, a count or an argument that cannot be read")]
    Unreadable(String),
}

/// How a `Retry-After` header is written (RFC 9110, section 10.2.3, and the forms met in the wild).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryAfter {
    /// No header; this is what Bitly does, for one.
    Absent,
    /// This text as it stands: `1`, `0.5`, `99999999999999999999`.
    Text(String),
    /// An HTTP date this many seconds from now.
    DateIn(u64),
    /// Seconds since 1970, this many seconds from now.
    EpochIn(u64),
    /// Milliseconds since 1970, this many seconds from now.
    EpochMillisIn(u64),
}

impl RetryAfter {
    /// The header's text, for an answer that is given `now`.
    pub(crate) fn header(&self, now: SystemTime) -> Option<String> {
        let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        match self {
            Self::Absent => None,
            Self::Text(text) => Some(text.clone()),
            Self::DateIn(seconds) => Some(httpdate::fmt_http_date(now + Duration::from_secs(*seconds))),
            Self::EpochIn(seconds) => Some((since_epoch.as_secs() + seconds).to_string()),
            Self::EpochMillisIn(seconds) => {
                Some((since_epoch.as_millis() + u128::from(seconds * 1_000)).to_string())
            }
        }
    }
}

/// A date that no clock will show; it has a comma, which a plan cannot hold.
const FAR_DATE: &str = "Fri, 07 Sep 99999 21:00:00 GMT";

/// Where a fault strikes, and how often in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) at: u64,
    pub(crate) count: u64,
}

impl Place {
    /// Reads `7` or `7x3`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (at, count) = match text.split_once('x') {
            Some((at, count)) => (at, count.parse().ok().filter(|count| *count > 0)?),
            None => (text, 1),
        };
        Some(Self { at: at.parse().ok()?, count })
    }
}

/// One item of a plan, taken apart: `NAME[@PLACE[xCOUNT]][:ARGUMENT]`.
pub(crate) struct Item<'a> {
    pub(crate) text: &'a str,
    pub(crate) name: &'a str,
    pub(crate) place: Option<Place>,
    pub(crate) argument: Option<&'a str>,
}

impl<'a> Item<'a> {
    pub(crate) fn read(text: &'a str) -> Result<Self, PlanError> {
        let (head, argument) = match text.split_once(':') {
            Some((head, argument)) => (head, Some(argument)),
            None => (text, None),
        };
        let (name, place) = match head.split_once('@') {
            Some((name, place)) => {
                let place = Place::read(place).ok_or_else(|| PlanError::Unreadable(text.to_owned()))?;
                (name, Some(place))
            }
            None => (head, None),
        };
        Ok(Self { text, name, place, argument })
    }
}

/// A fault's argument and the fault it belongs to.
pub(crate) struct Argument<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: Option<&'a str>,
}

impl Argument<'_> {
    pub(crate) fn text(&self, default: &str) -> String {
        self.text.unwrap_or(default).to_owned()
    }

    pub(crate) fn number(&self, default: u64) -> Result<u64, PlanError> {
        self.text.map_or(Ok(default), |text| text.parse().map_err(|_| self.unreadable()))
    }

    pub(crate) fn milliseconds(&self, default: u64) -> Result<Duration, PlanError> {
        self.number(default).map(Duration::from_millis)
    }

    /// `none`, `far-date`, `date+S`, `epoch+S`, `epochms+S` (S seconds from now), or the header's text.
    pub(crate) fn retry_after(&self, default: &str) -> Result<RetryAfter, PlanError> {
        let text = self.text.unwrap_or(default);
        let Some((form, seconds)) = text.split_once('+') else {
            let header_safe = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            return match text {
                "none" => Ok(RetryAfter::Absent),
                "far-date" => Ok(RetryAfter::Text(FAR_DATE.to_owned())),
                _ if header_safe => Ok(RetryAfter::Text(text.to_owned())),
                _ => Err(self.unreadable()),
            };
        };
        let seconds = seconds.parse().map_err(|_| self.unreadable())?;
        match form {
            "date" => Ok(RetryAfter::DateIn(seconds)),
            "epoch" => Ok(RetryAfter::EpochIn(seconds)),
            "epochms" => Ok(RetryAfter::EpochMillisIn(seconds)),
            _ => Err(self.unreadable()),
        }
    }

    pub(crate) fn unreadable(&self) -> PlanError {
        PlanError::Unreadable(format!("{}:{}", self.name, self.text.unwrap_or_default()))
    }
}
