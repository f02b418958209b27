//! Dates as text, from seconds since 1970 in UTC.

/// Year, month, day, hour, minute and second of an instant.
fn civil(seconds: i64) -> (i64, i64, i64, i64, i64, i64) {
    let days = seconds.div_euclid(86_400);
    let rest = seconds.rem_euclid(86_400);
    // Days to a date of the proleptic Gregorian calendar, counted in eras of 400 years that begin in March.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day, rest / 3_600, rest % 3_600 / 60, rest % 60)
}

/// Digits by hand: a page has hundreds of dates, and formatting them otherwise takes a tenth of its time.
fn write(out: &mut Vec<u8>, seconds: i64, zone: &[u8]) {
    let (year, month, day, hour, minute, second) = civil(seconds);
    let parts =
        [(year / 100, None), (year % 100, None), (month, Some(b'-')), (day, Some(b'-')), (hour, Some(b'T'))];
    for (number, sign) in parts.into_iter().chain([(minute, Some(b':')), (second, Some(b':'))]) {
        out.extend(sign);
        out.extend([b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]);
    }
    out.extend_from_slice(zone);
}

/// `2026-01-31T08:15:00+0000`: the form of Bitly, whose offset has no colon.
pub(crate) fn write_bitly(out: &mut Vec<u8>, seconds: i64) {
    write(out, seconds, b"+0000");
}

/// `2026-01-31T08:15:00.123` and the sign or signs of the zone (RFC 3339), from milliseconds.
pub(crate) fn write_millis(out: &mut Vec<u8>, millis: i64, zone: &[u8]) {
    let fraction = millis.rem_euclid(1_000);
    let digits = [fraction / 100, fraction / 10 % 10, fraction % 10].map(|digit| b'0' + digit as u8);
    write(out, millis.div_euclid(1_000), b".");
    out.extend_from_slice(&digits);
    out.extend_from_slice(zone);
}

/// `2026-01-31T08:15:00Z` (RFC 3339).
pub(crate) fn rfc3339(seconds: i64) -> String {
    let mut out = Vec::with_capacity(20);
    write(&mut out, seconds, b"Z");
    String::from_utf8(out).expect("digits and ASCII signs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants_have_their_known_dates() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_769_847_300, "2026-01-31T08:15:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(rfc3339(seconds), expected);
        }
    }

    #[test]
    fn milliseconds_stand_before_the_zone() {
        for (millis, zone, expected) in [
            (1_769_847_300_123, "Z", "2026-01-31T08:15:00.123Z"),
            (1_769_847_300_007, "+01:00", "2026-01-31T08:15:00.007+01:00"),
            (-1, "", "1969-12-31T23:59:59.999"),
        ] {
            let mut out = Vec::new();
            write_millis(&mut out, millis, zone.as_bytes());
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn bitly_writes_its_offset_without_a_colon() {
        let mut out = Vec::new();
        write_bitly(&mut out, 1_769_847_300);
        assert_eq!(out, b"2026-01-31T08:15:00+0000");
    }
}
