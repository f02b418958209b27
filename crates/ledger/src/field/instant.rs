//! Points in time, read from text without guessing.

use time::{Date, Month};

/// Microseconds since 1970-01-01T00:00:00Z.
pub type Micros = i64;

/// Why a text is no point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InstantError {
    /// Not of the form `2024-03-31T02:30:00[.123456][Z|+01:00]` (RFC 3339, with a blank for the `T` and a missing offset
    /// allowed).
    #[error("it is not a time such as 2024-03-31T02:30:00Z")]
    Form,
    /// No such day or hour.
    #[error("there is no such day or time of day")]
    NoSuchTime,
    /// No offset, and the field has no rule for that.
    #[error("it has no offset from UTC, and the field declares none (`offset`)")]
    NoOffset,
    /// Finer than a microsecond, which is what Postgres keeps.
    #[error("it is finer than a microsecond")]
    TooFine,
}

const MICROS_PER_SECOND: i64 = 1_000_000;

/// Reads a time. `offset` is the rule for times without one: seconds east of UTC.
///
/// # Errors
/// [`InstantError`].
pub fn parse(text: &str, offset: Option<i32>) -> Result<Micros, InstantError> {
    let form = InstantError::Form;
    let bytes = text.as_bytes();
    let (date, rest) = (text.get(..10).ok_or(form)?, text.get(10..).ok_or(form)?);
    let day = day(date)?;
    if !matches!(bytes.get(10), Some(b'T' | b't' | b' ')) {
        return Err(form);
    }
    let clock = &rest[1..];
    let end = clock.find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.')).unwrap_or(clock.len());
    let (clock, zone) = clock.split_at(end);
    let of_day = time_of_day(clock)?;
    let east = match zone {
        "" => offset.ok_or(InstantError::NoOffset)?,
        "Z" | "z" => 0,
        zone => offset_of(zone)?,
    };
    Ok((day * 86_400 - i64::from(east)) * MICROS_PER_SECOND + of_day)
}

/// An offset from UTC such as `+01:00`, `-0330` or `Z`, in seconds east of UTC.
///
/// # Errors
/// [`InstantError::Form`].
pub fn offset_of(text: &str) -> Result<i32, InstantError> {
    if text == "Z" {
        return Ok(0);
    }
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'+') => (1, &text[1..]),
        Some(b'-') => (-1, &text[1..]),
        _ => return Err(InstantError::Form),
    };
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at(2),
        5 => digits.split_once(':').ok_or(InstantError::Form)?,
        _ => return Err(InstantError::Form),
    };
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    if hours > 23 || minutes > 59 {
        return Err(InstantError::Form);
    }
    Ok(sign * i32::try_from(hours * 3_600 + minutes * 60).map_err(|_| InstantError::Form)?)
}

/// Days since 1970-01-01.
fn day(text: &str) -> Result<i64, InstantError> {
    let form = InstantError::Form;
    let bytes = text.as_bytes();
    if bytes[4] != b'-' || bytes[7] != b'-' || !text.is_ascii() {
        return Err(form);
    }
    let (year, month, day) = (number(&text[..4], 4)?, number(&text[5..7], 2)?, number(&text[8..], 2)?);
    let none = InstantError::NoSuchTime;
    let month = u8::try_from(month).ok().and_then(|month| Month::try_from(month).ok()).ok_or(none)?;
    let date = i32::try_from(year)
        .ok()
        .filter(|year| *year > 0)
        .and_then(|year| Date::from_calendar_date(year, month, u8::try_from(day).ok()?).ok())
        .ok_or(none)?;
    Ok(i64::from(date.to_julian_day()) - 2_440_588)
}

/// Microseconds since midnight.
fn time_of_day(text: &str) -> Result<i64, InstantError> {
    let (clock, fraction) = match text.split_once('.') {
        Some((_, "")) => return Err(InstantError::Form),
        Some((clock, fraction)) => (clock, fraction),
        None => (text, ""),
    };
    let mut parts = clock.split(':');
    let mut next = || parts.next().map(|part| number(part, 2)).transpose();
    let hours = next()?.ok_or(InstantError::Form)?;
    let minutes = next()?.ok_or(InstantError::Form)?;
    let seconds = next()?;
    if parts.next().is_some() || (seconds.is_none() && !fraction.is_empty()) {
        return Err(InstantError::Form);
    }
    let seconds = seconds.unwrap_or(0);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return Err(InstantError::NoSuchTime);
    }
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(InstantError::Form);
    }
    let (kept, fine) = fraction.split_at(fraction.len().min(6));
    if fine.bytes().any(|byte| byte != b'0') {
        return Err(InstantError::TooFine);
    }
    let micros = kept.bytes().fold(0_i64, |sum, digit| sum * 10 + i64::from(digit - b'0'))
        * 10_i64.pow(6 - u32::try_from(kept.len()).unwrap_or(6));
    Ok((hours * 3_600 + minutes * 60 + seconds) * MICROS_PER_SECOND + micros)
}

fn number(text: &str, digits: usize) -> Result<i64, InstantError> {
    if text.len() != digits || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(InstantError::Form);
    }
    text.parse().map_err(|_| InstantError::Form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_an_offset_are_points_in_time() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01 00:00:00.000001Z", 1),
            ("1969-12-31T23:59:59Z", -1_000_000),
            ("2024-03-31T02:30:00+01:00", 1_711_848_600_000_000),
            ("2024-03-31T02:30:00+0100", 1_711_848_600_000_000),
            ("2024-03-31T02:30:00+01", 1_711_848_600_000_000),
            ("2024-03-31T01:30Z", 1_711_848_600_000_000),
            ("2024-02-29t12:00:00.5z", 1_709_208_000_500_000),
            ("2024-03-01T00:00:00.1230000000Z", 1_709_251_200_123_000),
            ("9999-12-31T23:59:59.999999-23:59", 253_402_387_139_999_999),
        ] {
            assert_eq!(parse(text, None), Ok(micros), "{text}");
        }
    }

    #[test]
    fn a_time_without_an_offset_needs_a_rule() {
        let text = "2024-03-31T02:30:00";
        assert_eq!(parse(text, None), Err(InstantError::NoOffset));
        assert_eq!(parse(text, Some(0)), Ok(1_711_852_200_000_000));
        assert_eq!(parse(text, Some(3_600)), Ok(1_711_848_600_000_000));
        assert_eq!(parse("2024-03-31T02:30:00Z", Some(3_600)), Ok(1_711_852_200_000_000));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2024",
            "2024-03-31",
            "31.03.2024 10:00",
            "2024-03-31T",
            "2024-03-31T10",
            "2024-03-31T10:00:00+1",
            "2024-03-31T10:00:00.Z",
            "2024-03-31T10:00.5Z",
            "2024-03-31T10:00:00 UTC",
            "2024-3-31T10:00:00Z",
            "２024-03-31T10:00:00Z",
            "2024-03-31X10:00:00Z",
            "+2024-03-31T10:00:00Z",
        ] {
            assert_eq!(parse(text, Some(0)), Err(InstantError::Form), "{text}");
        }
        for text in [
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T23:59:60Z",
            "0000-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text, None), Err(InstantError::NoSuchTime), "{text}");
        }
        assert_eq!(parse("2024-01-01T00:00:00.1234567Z", None), Err(InstantError::TooFine));
    }
}
