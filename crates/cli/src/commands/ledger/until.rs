//! Until when a run may go on.

use std::str::FromStr;

use db::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;

/// A time of day on this machine's wall, or an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Until {
    Wall(Time),
    At(Timestamp),
}

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wall = ["%H:%M", "%H:%M:%S"].iter().find_map(|form| Time::strptime(form, text).ok());
        wall.map(Self::Wall).or_else(|| Timestamp::parse_rfc3339(text).map(Self::At)).ok_or_else(|| {
            format!("'{text}' is no time; write 06:00, or an instant such as 2026-03-01T06:00:00+01:00")
        })
    }
}

impl Until {
    /// When that is next, seen from `now` on a wall of this zone. An hour that the wall leaves out is the hour behind it.
    pub(super) fn next(&self, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, String> {
        let time = match self {
            Self::At(instant) if *instant > now => return Ok(*instant),
            Self::At(instant) => return Err(format!("{instant} is over; it is {now}")),
            Self::Wall(time) => *time,
        };
        let broken = |error: jiff::Error| error.to_string();
        let today = jiff::Timestamp::from_microsecond(now.micros())
            .map_err(broken)?
            .to_zoned_datetime(zone.clone())
            .date();
        // A third day: a wall may leave out a whole one.
        let mut day = today;
        for _ in 0..3 {
            let instant = zone.to_zoned_datetime(day.to_datetime(time)).map_err(broken)?.timestamp();
            let instant = Timestamp::from_micros(instant.as_microsecond());
            if instant > now {
                return Ok(instant);
            }
            day = day.tomorrow().map_err(broken)?;
        }
        Err(format!("{time} does not come in the next days"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_time_on_the_wall_is_meant() {
        for (now, wall, zone, next) in [
            ("2026-01-15T22:00:00Z", "06:00", "UTC", "2026-01-16T06:00:00Z"),
            ("2026-01-15T02:00:00Z", "06:00", "UTC", "2026-01-15T06:00:00Z"),
            ("2026-01-15T06:00:00Z", "06:00", "UTC", "2026-01-16T06:00:00Z"),
            ("2026-01-15T22:30:00Z", "06:00", "Europe/Berlin", "2026-01-16T05:00:00Z"),
            ("2026-01-15T23:30:00Z", "00:15:30", "Africa/Lagos", "2026-01-16T23:15:30Z"),
            // The clocks go forward in that night, and back in the other.
            ("2026-03-28T22:00:00Z", "06:00", "Europe/Berlin", "2026-03-29T04:00:00Z"),
            ("2026-10-24T20:00:00Z", "06:00", "Europe/Berlin", "2026-10-25T05:00:00Z"),
            ("2026-03-28T22:00:00Z", "02:30", "Europe/Berlin", "2026-03-29T01:30:00Z"),
            // There was no 30 December here.
            ("2011-12-30T09:00:00Z", "06:00", "Pacific/Apia", "2011-12-30T16:00:00Z"),
        ] {
            let now = Timestamp::parse_rfc3339(now).unwrap();
            let zone = TimeZone::get(zone).unwrap();
            let until: Until = wall.parse().unwrap();
            assert_eq!(until.next(now, &zone).unwrap().rfc3339(), next, "{wall} at {now}");
        }
    }

    #[test]
    fn an_instant_is_taken_as_it_is_unless_it_is_over() {
        let now = Timestamp::parse_rfc3339("2026-01-15T22:00:00Z").unwrap();
        let next = |text: &str| text.parse::<Until>().unwrap().next(now, &TimeZone::UTC);
        assert_eq!(next("2026-01-16T06:00:00+01:00").unwrap().rfc3339(), "2026-01-16T05:00:00Z");
        assert!(next("2026-01-15T06:00:00+01:00").unwrap_err().contains("is over"));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "6", "24:00", "06:60", "six", "2026-01-16", "2026-01-16T06:00:00"] {
            assert!(text.parse::<Until>().is_err(), "{text}");
        }
    }
}
