//! Instants as vendors write them.

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};

/// Why a text is no instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DateError {
    /// Local time of nobody knows where; guessing would move links by hours.
    #[error("it has no offset from UTC")]
    NoOffset,
    #[error("it is no date and time")]
    Unreadable,
}

/// Reads a date and a time with its offset: RFC 3339, and the forms beside it that are met.
///
/// Bitly writes `+0000` without a colon, which RFC 3339 does not allow; others leave out the offset's minutes, put
/// a blank for the `T`, or give fractions of a second.
///
/// # Errors
/// [`DateError`]; a missing offset is an error of its own.
pub(crate) fn instant(text: &str) -> Result<OffsetDateTime, DateError> {
    let text = text.trim();
    let (date, rest) = text.split_at_checked(10).ok_or(DateError::Unreadable)?;
    let rest = rest.strip_prefix(['T', 't', ' ']).ok_or(DateError::Unreadable)?;
    let (time, offset) = rest.split_at(rest.find(['Z', 'z', '+', '-', ' ']).unwrap_or(rest.len()));
    let local = PrimitiveDateTime::new(self::date(date)?, self::time(time)?);
    let offset = self::offset(offset.trim_start())?;
    // The first and last hours of the calendar have no equal in UTC.
    local.assume_offset(offset).checked_to_offset(UtcOffset::UTC).ok_or(DateError::Unreadable)
}

fn date(text: &str) -> Result<Date, DateError> {
    let [year, month, day] = numbers(text, '-', [4, 2, 2])?;
    let month = Month::try_from(month as u8).map_err(|_| DateError::Unreadable)?;
    Date::from_calendar_date(i32::from(year), month, day as u8).map_err(|_| DateError::Unreadable)
}

fn time(text: &str) -> Result<Time, DateError> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(DateError::Unreadable);
    }
    let micros = format!("{fraction:0<6}")[..6].parse().map_err(|_| DateError::Unreadable)?;
    Time::from_hms_micro(hour as u8, minute as u8, second as u8, micros).map_err(|_| DateError::Unreadable)
}

fn offset(text: &str) -> Result<UtcOffset, DateError> {
    let (sign, digits) = match text.split_at_checked(1) {
        None => return Err(DateError::NoOffset),
        Some(("Z" | "z", "")) => return Ok(UtcOffset::UTC),
        Some(("+", digits)) => (1, digits),
        Some(("-", digits)) => (-1, digits),
        Some(_) => return Err(DateError::Unreadable),
    };
    let digits = digits.replacen(':', "", 1);
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits)?, 0),
        4 => (number(&digits[..2])?, number(&digits[2..])?),
        _ => return Err(DateError::Unreadable),
    };
    if minutes > 59 {
        return Err(DateError::Unreadable);
    }
    UtcOffset::from_hms(sign * hours as i8, sign * minutes as i8, 0).map_err(|_| DateError::Unreadable)
}

/// Three numbers of these many digits each.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Result<[u16; 3], DateError> {
    let mut parts = text.split(separator);
    let mut numbers = [0; 3];
    for (slot, length) in numbers.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == length).ok_or(DateError::Unreadable)?;
        *slot = number(part)?;
    }
    if parts.next().is_some() { Err(DateError::Unreadable) } else { Ok(numbers) }
}

fn number(text: &str) -> Result<u16, DateError> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(DateError::Unreadable);
    }
    text.parse().map_err(|_| DateError::Unreadable)
}

#[cfg(test)]
mod tests {
    use time::format_description::well_known::Rfc3339;

    use super::*;

    #[test]
    fn every_form_with_an_offset_is_the_instant_it_means() {
        for (text, expected) in [
            ("2026-01-31T08:15:00+0000", "2026-01-31T08:15:00Z"),
            ("2026-01-31T08:15:00Z", "2026-01-31T08:15:00Z"),
            ("2026-01-31t08:15:00z", "2026-01-31T08:15:00Z"),
            ("2026-01-31T08:15:00+00:00", "2026-01-31T08:15:00Z"),
            ("2026-03-01T10:00:00+03:00", "2026-03-01T07:00:00Z"),
            ("2026-03-01T10:00:00+0530", "2026-03-01T04:30:00Z"),
            ("2026-03-01T10:00:00-0330", "2026-03-01T13:30:00Z"),
            ("2026-03-01T10:00:00+03", "2026-03-01T07:00:00Z"),
            ("2026-03-01 10:00:00 +0000", "2026-03-01T10:00:00Z"),
            ("2026-03-01T00:30:00+0100", "2026-02-28T23:30:00Z"),
            ("2026-01-31T08:15:00.123Z", "2026-01-31T08:15:00.123Z"),
            ("2026-01-31T08:15:00.123456789+0000", "2026-01-31T08:15:00.123456Z"),
            ("2024-02-29T23:59:59+0000", "2024-02-29T23:59:59Z"),
        ] {
            assert_eq!(instant(text).unwrap().format(&Rfc3339).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for (text, expected) in [
            ("2026-01-31T08:15:00", DateError::NoOffset),
            ("2026-01-31T08:15:00.5", DateError::NoOffset),
            ("", DateError::Unreadable),
            ("2026-01-31", DateError::Unreadable),
            ("2026-02-30T08:15:00+0000", DateError::Unreadable),
            ("2026-13-01T08:15:00+0000", DateError::Unreadable),
            ("2026-01-31T25:15:00+0000", DateError::Unreadable),
            ("2026-01-31T08:15+0000", DateError::Unreadable),
            ("2026-01-31T08:15:00+00000", DateError::Unreadable),
            ("2026-01-31T08:15:00+0099", DateError::Unreadable),
            ("2026-01-31T08:15:00 CET", DateError::Unreadable),
            ("2 days", DateError::Unreadable),
            ("1769847300", DateError::Unreadable),
            ("+026-01-31T08:15:00+0000", DateError::Unreadable),
            ("9999-12-31T23:59:59-2300", DateError::Unreadable),
            ("２０２６-01-31T08:15:00+0000", DateError::Unreadable),
        ] {
            assert_eq!(instant(text), Err(expected), "{text}");
        }
    }
}
