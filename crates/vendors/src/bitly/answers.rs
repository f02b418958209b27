//! What Bitly's answers mean beyond their status.

use std::time::{Duration, SystemTime};

use serde::de::IgnoredAny;
use time::{Date, Month, OffsetDateTime};
use upstream::{Classify, HeaderMap, Reply, Verdict};

use super::wire::{ApiError, Page};

/// The list's limit counts minutes; Bitly does not say how long to wait.
const LIMIT_WAIT: Duration = Duration::from_secs(60);
/// After the month's end, so that its counter has surely been reset.
const MONTH_MARGIN: Duration = Duration::from_secs(5 * 60);
/// Ends of the addresses whose answers are pages of the list.
const LIST: &str = "/bitlinks";

/// Reads answers for the polite client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answers;

impl Classify for Answers {
    fn classify(&self, reply: &Reply<'_>) -> Verdict {
        if reply.status.is_success() {
            return success(reply);
        }
        let said = Said::read(reply.body);
        match reply.status.as_u16() {
            429 => limit(reply, &said),
            403 if said.is_limit() || reply.headers.contains_key("x-ratelimit-reason") => limit(reply, &said),
            401 => Verdict::Unauthorized,
            408 | 500..=599 => Verdict::Retry { after: None, reason: said.text_or("no explanation") },
            _ => Verdict::Fatal { reason: said.text_or("no explanation") },
        }
    }
}

/// A body with status 2xx is data only if it is what was asked for.
fn success(reply: &Reply<'_>) -> Verdict {
    let problem = if reply.url.path().ends_with(LIST) {
        Page::read(reply.body).err().map(|error| error.to_string())
    } else {
        serde_json::from_slice::<IgnoredAny>(reply.body).err().map(|_| unreadable(reply.body).to_owned())
    };
    let Some(problem) = problem else { return Verdict::Ok };
    let said = Said::read(reply.body);
    if said.is_limit() {
        return limit(reply, &said);
    }
    let reason = if said.0.message.is_some() { said.text_or("") } else { problem };
    Verdict::Retry { after: None, reason }
}

fn unreadable(body: &[u8]) -> &'static str {
    match body.trim_ascii().first() {
        None => "an empty body",
        Some(b'<') => "a page of HTML instead of JSON",
        Some(_) => "something that is no JSON",
    }
}

/// Two kinds of limit: one passes within the hour, the other lasts to the end of the month.
fn limit(reply: &Reply<'_>, said: &Said) -> Verdict {
    let reason = said.text_or("RATE_LIMIT_EXCEEDED");
    if !said.is_of_the_month() {
        let after = (!asks_for_a_wait(reply.headers)).then_some(LIMIT_WAIT);
        return Verdict::RateLimited { after, reason };
    }
    let wait = until_next_month(reply.server_now).unwrap_or(LIMIT_WAIT) + MONTH_MARGIN;
    match reply.local_now.checked_add(wait) {
        Some(until) => Verdict::WaitUntil { until, reason },
        None => Verdict::Fatal { reason },
    }
}

/// Whether the answer itself says how long to wait, in a way that can be believed.
fn asks_for_a_wait(headers: &HeaderMap) -> bool {
    let value = headers.get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::trim);
    value.is_some_and(|value| {
        let number = value.parse::<f64>().ok();
        // Dates, and numbers up to milliseconds since 1970; no wait at all is nothing to go by.
        number.map_or(value.contains(':'), |number| number > 0.0 && number < 1e13)
    })
}

/// The time to the first of the next month, 00:00 UTC.
fn until_next_month(now: SystemTime) -> Option<Duration> {
    let now = OffsetDateTime::from(now);
    let (year, month) = match now.month() {
        Month::December => (now.year() + 1, Month::January),
        month => (now.year(), month.next()),
    };
    let first = Date::from_calendar_date(year, month, 1).ok()?.midnight().assume_utc();
    Duration::try_from(first - now).ok()
}

/// What the body of an answer says about itself.
struct Said(ApiError);

impl Said {
    fn read(body: &[u8]) -> Self {
        Self(serde_json::from_slice(body).unwrap_or_default())
    }

    fn code(&self) -> &str {
        self.0.message.as_deref().unwrap_or_default()
    }

    fn is_limit(&self) -> bool {
        self.code().ends_with("LIMIT_EXCEEDED")
    }

    fn is_of_the_month(&self) -> bool {
        self.is_limit() && (self.code().contains("MONTHLY") || self.code().contains("USAGE"))
    }

    /// The code, the parameters it is about, and the description, in this order: what is long is cut at its end.
    fn text_or(&self, otherwise: &str) -> String {
        let mut parts = vec![self.code().to_owned()];
        for error in self.0.errors.iter().flatten() {
            let told = [&error.field, &error.error_code, &error.message]
                .map(|part| part.clone().unwrap_or_default());
            parts.push(format!("({})", told.join(" ").trim()));
        }
        parts.push(self.0.description.clone().unwrap_or_default());
        parts.retain(|part| !part.is_empty() && part != "()");
        if parts.is_empty() { otherwise.to_owned() } else { parts.join(" ") }
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn the_month_ends_on_its_last_day_also_in_december_and_february() {
        for (now, hours) in [
            (datetime!(2026-11-30 14:00 UTC), 10),
            (datetime!(2026-12-31 23:00 UTC), 1),
            (datetime!(2028-02-28 00:00 UTC), 48),
            (datetime!(2027-02-28 00:00 UTC), 24),
            (datetime!(2026-11-01 00:00 UTC), 30 * 24),
        ] {
            let wait = until_next_month(SystemTime::from(now)).unwrap();
            assert_eq!(wait, Duration::from_secs(hours * 3_600), "{now}");
        }
    }

    #[test]
    fn only_a_wait_that_can_be_believed_is_left_to_the_header() {
        for (value, is_asked) in [
            (Some("5"), true),
            (Some("0.5"), true),
            (Some("1796047200"), true),
            (Some("1796047200000"), true),
            (Some("Fri, 07 Sep 2029 21:00:00 GMT"), true),
            (Some("0"), false),
            (Some("-3"), false),
            (Some("99999999999999999999"), false),
            (Some("soon"), false),
            (Some(""), false),
            (None, false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert("retry-after", value.parse().unwrap());
            }
            assert_eq!(asks_for_a_wait(&headers), is_asked, "{value:?}");
        }
    }

    #[test]
    fn a_body_says_its_code_and_parameters_before_it_describes_them() {
        for (body, expected) in [
            (r#"{"message":"FORBIDDEN","description":"No."}"#, "FORBIDDEN No."),
            (
                r#"{"message":"INVALID","description":"No.","errors":[{"field":"search_after","error_code":"bad"},{}]}"#,
                "INVALID (search_after bad) No.",
            ),
            (r#"{"message":null}"#, "else"),
            (r#"{"message":5}"#, "else"),
            ("<html>", "else"),
            ("", "else"),
        ] {
            assert_eq!(Said::read(body.as_bytes()).text_or("else"), expected);
        }
    }
}
