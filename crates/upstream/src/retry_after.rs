//! How long a server asks us to wait, in all the forms servers use.
//!
//! `Retry-After` is seconds or a date by RFC 9110 §10.2.3. In the wild it is also decimals, epoch seconds,
//! epoch milliseconds (Dub sends the reset moment so, on every answer), negative, or nonsense. Dates are
//! compared with the answer's own `Date`, so a wrong clock on either side changes nothing.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

/// From here on a number is a moment in epoch seconds, not a distance (it would be 31 years).
const EPOCH_SECONDS_FROM: u128 = 1_000_000_000;
/// From here on a number is a moment in epoch milliseconds: as seconds it would lie in the year 5138.
const EPOCH_MILLIS_FROM: u128 = 100_000_000_000;
/// The longest window of a quota is a month; what asks for more than that and a day is a mistake and is ignored.
const LONGEST_SENSIBLE: Duration = Duration::from_secs(32 * 24 * 3600);
/// `X-RateLimit-Reset` speaks of short windows; it may delay us by this at most.
const RESET_MAX: Duration = Duration::from_secs(60);
/// A body that explains a refusal is small; a larger one is not searched.
const BODY_SEARCH_MAX_BYTES: usize = 64 * 1024;

/// The wait that a refusal asks for, or `None` if it asks for none or for an absurd one.
///
/// Asked in this order: `Retry-After` (the first valid line), `Retry-After-Ms`, `retry_after_ms` and
/// `retry_after` in a JSON body, the rate-limit reset headers when nothing remains. A wait of zero, a negative
/// one and a moment that has passed are `None`: the caller backs off, for they must not make a hot loop.
pub(crate) fn asked(headers: &HeaderMap, body: &[u8], local_now: SystemTime) -> Option<Duration> {
    let now = server_now(headers).unwrap_or(local_now);
    let wait = header(headers, now).or_else(|| in_body(body, now)).or_else(|| reset(headers, now))?;
    (!wait.is_zero()).then_some(wait)
}

/// The server's clock, from `Date`.
pub(crate) fn server_now(headers: &HeaderMap) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?.trim()).ok()
}

fn header(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let texts = |name: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let seconds = texts(RETRY_AFTER.as_str());
    let millis = texts("retry-after-ms");
    let waits = seconds.iter().filter_map(|text| parse(text, now));
    waits.chain(millis.iter().filter_map(|text| parse_millis(text))).next()
}

/// One value of `Retry-After`. `Some(0)` is a valid value that asks for no wait.
fn parse(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if let Some(number) = Decimal::parse(text) {
        return number.as_wait(now);
    }
    sensible(until(httpdate::parse_http_date(text).ok()?, now))
}

fn parse_millis(text: &str) -> Option<Duration> {
    sensible(Decimal::parse(text.trim())?.in_units_of(Duration::from_millis(1))?)
}

fn in_body(body: &[u8], now: SystemTime) -> Option<Duration> {
    if body.len() > BODY_SEARCH_MAX_BYTES || !body.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let document: serde_json::Value = serde_json::from_slice(body).ok()?;
    let text = |object: &serde_json::Value, name: &str| match object.get(name)? {
        serde_json::Value::Number(number) => Some(number.to_string()),
        serde_json::Value::String(text) => Some(text.clone()),
        _ => None,
    };
    [Some(&document), document.get("error")].into_iter().flatten().find_map(|object| {
        let millis = text(object, "retry_after_ms").and_then(|text| parse_millis(&text));
        millis.or_else(|| text(object, "retry_after").and_then(|text| parse(&text, now)))
    })
}

fn reset(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let first = |names: [&str; 3]| {
        let value = names.iter().find_map(|name| headers.get(*name))?;
        value.to_str().ok().map(str::trim)
    };
    let remaining = first(["x-ratelimit-remaining", "ratelimit-remaining", "x-rate-limit-remaining"]);
    if remaining.is_some_and(|left| left != "0") {
        return None;
    }
    let reset = first(["x-ratelimit-reset", "ratelimit-reset", "x-rate-limit-reset"])?;
    Some(Decimal::parse(reset)?.as_wait(now)?.min(RESET_MAX))
}

fn until(moment: SystemTime, now: SystemTime) -> Duration {
    moment.duration_since(now).unwrap_or(Duration::ZERO)
}

fn sensible(wait: Duration) -> Option<Duration> {
    (wait <= LONGEST_SENSIBLE).then_some(wait)
}

/// A decimal number as text: no exponent, no locale, no float on the way.
struct Decimal {
    negative: bool,
    whole: u128,
    /// The fraction in billionths, rounded up.
    billionths: u32,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let (kept, dropped) = fraction.split_at(fraction.len().min(9));
        let billionths = format!("{kept:0<9}").parse::<u32>().ok()?;
        let round_up = u32::from(dropped.bytes().any(|byte| byte != b'0'));
        Some(Self { negative, whole: whole.parse().ok()?, billionths: billionths + round_up })
    }

    /// The number as `Retry-After` means it: a distance in seconds, or a moment since the epoch.
    fn as_wait(&self, now: SystemTime) -> Option<Duration> {
        let unit =
            if self.whole >= EPOCH_MILLIS_FROM { Duration::from_millis(1) } else { Duration::from_secs(1) };
        let amount = self.in_units_of(unit)?;
        let wait = if self.whole >= EPOCH_SECONDS_FROM && !self.negative {
            until(UNIX_EPOCH.checked_add(amount)?, now)
        } else {
            amount
        };
        sensible(wait)
    }

    /// Rounded up to the millisecond; a negative number is no wait; `None` if no duration can hold it.
    fn in_units_of(&self, unit: Duration) -> Option<Duration> {
        if self.negative {
            return Some(Duration::ZERO);
        }
        let billionths = self.whole.checked_mul(1_000_000_000)?.checked_add(u128::from(self.billionths))?;
        let nanos = billionths.checked_mul(unit.as_nanos())?.div_ceil(1_000_000_000);
        u64::try_from(nanos.div_ceil(1_000_000)).ok().map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests;
