//! What Bitly's answers mean beyond their status.

use std::time::{Duration, SystemTime};

use serde::de::IgnoredAny;
use time::{Date, Month, OffsetDateTime};
use upstream::{Classify, Reply, Verdict};

use super::wire::{ApiError, Page};

/// The list's limit counts minutes; Bitly itself does not say how long to wait.
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
        // Not left to backoff where no wait is named: its retries would all be used up within the same minute.
        let after = Some(reply.asked_wait().unwrap_or(LIMIT_WAIT));
        return Verdict::RateLimited { after, reason };
    }
    let wait = until_next_month(reply.server_now).unwrap_or(LIMIT_WAIT) + MONTH_MARGIN;
    match reply.local_now.checked_add(wait) {
        Some(until) => Verdict::WaitUntil { until, reason },
        None => Verdict::Fatal { reason },
    }
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
        Self(ApiError::read(body))
    }

    /// The machine's codes, today's first.
    fn codes(&self) -> impl Iterator<Item = &str> {
        [&self.0.message, &self.0.status_txt].into_iter().flatten().map(String::as_str)
    }

    fn limits(&self) -> impl Iterator<Item = &str> {
        self.codes().filter(|code| code.ends_with("LIMIT_EXCEEDED"))
    }

    fn is_limit(&self) -> bool {
        self.limits().next().is_some()
    }

    fn is_of_the_month(&self) -> bool {
        self.limits().any(|code| code.contains("MONTHLY") || code.contains("USAGE"))
    }

    /// The code, the parameters it is about, and the description, in this order: what is long is cut at its end.
    fn text_or(&self, otherwise: &str) -> String {
        let mut parts: Vec<String> = self.codes().take(1).map(str::to_owned).collect();
        for error in &self.0.errors {
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
    fn a_field_of_the_wrong_kind_hides_no_limit() {
        for (body, is_limit, is_of_the_month) in [
            (r#"{"message":"RATE_LIMIT_EXCEEDED"}"#, true, false),
            (r#"{"message":"MONTHLY_LIMIT_EXCEEDED","errors":"x"}"#, true, true),
            (r#"{"message":"MONTHLY_LIMIT_EXCEEDED","errors":{"a":1}}"#, true, true),
            (r#"{"message":"MONTHLY_LIMIT_EXCEEDED","errors":[1,{"field":2},null]}"#, true, true),
            (r#"{"description":5,"message":"API_USAGE_LIMIT_EXCEEDED","resource":[]}"#, true, true),
            (r#"{"message":"MONTHLY_LIMIT_EXCEEDED","message":"MONTHLY_LIMIT_EXCEEDED"}"#, true, true),
            (r#"{"status_code":403,"status_txt":"RATE_LIMIT_EXCEEDED","data":null}"#, true, false),
            (r#"{"status_txt":"MONTHLY_RATE_LIMIT_EXCEEDED"}"#, true, true),
            (r#"{"message":"FORBIDDEN","status_txt":"RATE_LIMIT_EXCEEDED"}"#, true, false),
            (r#"{"message":"FORBIDDEN","description":"MONTHLY_LIMIT_EXCEEDED"}"#, false, false),
            (r#"{"message":["RATE_LIMIT_EXCEEDED"]}"#, false, false),
            (r#""RATE_LIMIT_EXCEEDED""#, false, false),
        ] {
            let said = Said::read(body.as_bytes());
            assert_eq!((said.is_limit(), said.is_of_the_month()), (is_limit, is_of_the_month), "{body}");
        }
        let said = Said::read(b"{\"message\":\"MONTHLY_LIMIT_EXCEEDED\",\"description\":\"\xff\"}");
        assert!(said.is_of_the_month());
    }

    #[test]
    fn a_body_says_its_code_and_parameters_before_it_describes_them() {
        for (body, expected) in [
            (r#"{"message":"FORBIDDEN","description":"No."}"#, "FORBIDDEN No."),
            (
                r#"{"message":"INVALID","description":"No.","errors":[{"field":"search_after","error_code":"bad"},{}]}"#,
                "INVALID (search_after bad) No.",
            ),
            (r#"{"message":"INVALID","errors":[{"field":"size","message":5}]}"#, "INVALID (size)"),
            (r#"{"message":"NEW","status_txt":"OLD"}"#, "NEW"),
            (r#"{"message":"","status_txt":"OLD"}"#, "OLD"),
            (r#"{"message":null}"#, "else"),
            (r#"{"message":5}"#, "else"),
            ("<html>", "else"),
            ("", "else"),
        ] {
            assert_eq!(Said::read(body.as_bytes()).text_or("else"), expected);
        }
    }
}
