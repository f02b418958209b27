//! How many of a job's records may fail before the job stops.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Records that must have their outcome before a share of them is judged: one bad page says little of the rest.
pub const JUDGED_AFTER: i64 = 10_000;
/// A share is kept in millionths, so that it is compared without a float.
const WHOLE: u32 = 1_000_000;
/// Digits behind the point of a percentage that are left in millionths.
const PERCENT_PLACES: usize = 4;
const PER_PERCENT: u32 = 10_000;

/// How many records may fail; written `5%`, `0.25%`, `100` or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum RejectLimit {
    /// Any number.
    Off,
    /// This share of those that have an outcome, in millionths.
    Share(u32),
    /// This many.
    Count(i64),
}

/// A text that is no [`RejectLimit`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no limit on rejects; write a share (5%), a number of records (100) or off")]
pub struct RejectLimitError(String);

impl FromStr for RejectLimit {
    type Err = RejectLimitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            if text == "off" {
                return Some(Self::Off);
            }
            let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let Some(percent) = text.strip_suffix('%') else {
                return (plain(text)).then(|| text.parse().ok()).flatten().map(Self::Count);
            };
            let (whole, places) = percent.trim_end().split_once('.').unwrap_or((percent.trim_end(), "0"));
            if whole.is_empty() || !plain(whole) || !plain(places) || places.is_empty() {
                return None;
            }
            if places.len() > PERCENT_PLACES {
                return None;
            }
            let places = format!("{places:0<PERCENT_PLACES$}").parse::<u32>().ok()?;
            let millionths = whole.parse::<u32>().ok()?.checked_mul(PER_PERCENT)?.checked_add(places)?;
            (millionths <= WHOLE).then_some(Self::Share(millionths))
        };
        read().ok_or_else(|| RejectLimitError(text.to_owned()))
    }
}

impl fmt::Display for RejectLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Share(millionths) => {
                let places = format!("{:04}", millionths % PER_PERCENT);
                match places.trim_end_matches('0') {
                    "" => write!(f, "{}%", millionths / PER_PERCENT),
                    places => write!(f, "{}.{places}%", millionths / PER_PERCENT),
                }
            }
        }
    }
}

impl TryFrom<String> for RejectLimit {
    type Error = RejectLimitError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<RejectLimit> for String {
    fn from(limit: RejectLimit) -> Self {
        limit.to_string()
    }
}

/// The rule by which a job is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RejectRule {
    /// How many may fail.
    pub limit: RejectLimit,
    /// A share is judged once this many records have an outcome.
    pub judged_after: i64,
    /// Records that had an outcome, and those of them that had failed, when the count began anew.
    pub forgiven: (i64, i64),
}

impl Default for RejectRule {
    fn default() -> Self {
        Self { limit: RejectLimit::Off, judged_after: JUDGED_AFTER, forgiven: (0, 0) }
    }
}

/// What the rule says of a job as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// It goes on, and stays so until more records have failed.
    Fine,
    /// Too few records have an outcome; ask again.
    TooEarly,
    /// It stops.
    TooMany,
}

impl RejectRule {
    /// Judges a job of which `settled` records have an outcome and `failed` of them failed.
    pub fn judge(&self, settled: i64, failed: i64) -> Judgement {
        let (settled, failed) = self.counted(settled, failed);
        let too_many = match self.limit {
            RejectLimit::Off => false,
            RejectLimit::Count(count) => failed > count,
            RejectLimit::Share(_) if settled < self.judged_after => {
                return if failed == 0 { Judgement::Fine } else { Judgement::TooEarly };
            }
            RejectLimit::Share(share) => {
                i128::from(failed) * i128::from(WHOLE) > i128::from(settled) * i128::from(share)
            }
        };
        if too_many { Judgement::TooMany } else { Judgement::Fine }
    }

    /// The sentence with which a job stops that has too many, with the commonest reason codes and how many have each.
    pub fn sentence(&self, settled: i64, failed: i64, codes: &[(String, i64)]) -> String {
        let (settled, failed) = self.counted(settled, failed);
        let permille = if settled > 0 { i128::from(failed) * 1000 / i128::from(settled) } else { 0 };
        let codes: Vec<String> = codes.iter().map(|(code, count)| format!("{code} ({count})")).collect();
        let since = if self.forgiven == (0, 0) { "" } else { " since the declaration was changed" };
        format!(
            "{failed} of {settled} records failed{since} ({}.{} %), and the limit on rejects is {}; the commonest reasons: {}. Look \
             at the quarantine, correct what refuses them, and resume the job; or resume it with a higher limit",
            permille / 10,
            permille % 10,
            self.limit,
            if codes.is_empty() { "none is known".to_owned() } else { codes.join(", ") },
        )
    }

    fn counted(&self, settled: i64, failed: i64) -> (i64, i64) {
        ((settled - self.forgiven.0).max(0), (failed - self.forgiven.1).max(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_written_back() {
        for (text, limit, written) in [
            ("off", RejectLimit::Off, "off"),
            ("0", RejectLimit::Count(0), "0"),
            ("100", RejectLimit::Count(100), "100"),
            ("5%", RejectLimit::Share(50_000), "5%"),
            ("5 %", RejectLimit::Share(50_000), "5%"),
            ("0.25%", RejectLimit::Share(2_500), "0.25%"),
            ("0.0001%", RejectLimit::Share(1), "0.0001%"),
            ("12.50%", RejectLimit::Share(125_000), "12.5%"),
            ("100%", RejectLimit::Share(1_000_000), "100%"),
        ] {
            assert_eq!(text.parse(), Ok(limit), "{text}");
            assert_eq!(limit.to_string(), written);
            let json = serde_json::to_string(&limit).unwrap();
            assert_eq!(serde_json::from_str::<RejectLimit>(&json).unwrap(), limit);
        }
        for text in [
            "",
            "%",
            "-1",
            "+5",
            "5,0%",
            ".5%",
            "5.%",
            "101%",
            "100.0001%",
            "0.00001%",
            "Off",
            "1e3",
            "99999999999999999999",
        ] {
            assert!(text.parse::<RejectLimit>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_is_judged_exactly_and_not_before_ten_thousand_records() {
        let rule = RejectRule { limit: "5%".parse().unwrap(), ..RejectRule::default() };
        for (settled, failed, judgement) in [
            (0, 0, Judgement::Fine),
            (9_999, 0, Judgement::Fine),
            (9_999, 9_999, Judgement::TooEarly),
            (10_000, 500, Judgement::Fine),
            (10_000, 501, Judgement::TooMany),
            (i64::MAX, i64::MAX, Judgement::TooMany),
        ] {
            assert_eq!(rule.judge(settled, failed), judgement, "{failed} of {settled}");
        }
        let none = RejectRule { limit: RejectLimit::Share(0), ..rule };
        assert_eq!((none.judge(10_000, 0), none.judge(10_000, 1)), (Judgement::Fine, Judgement::TooMany));
    }

    #[test]
    fn a_number_is_judged_at_once_and_off_never() {
        let rule = RejectRule { limit: RejectLimit::Count(2), ..RejectRule::default() };
        assert_eq!((rule.judge(2, 2), rule.judge(3, 3)), (Judgement::Fine, Judgement::TooMany));
        assert_eq!(RejectRule::default().judge(1_000_000, 1_000_000), Judgement::Fine);
    }

    #[test]
    fn what_was_forgiven_does_not_count() {
        let limit = "5%".parse().unwrap();
        let rule = RejectRule { limit, forgiven: (12_000, 6_000), ..RejectRule::default() };
        assert_eq!(rule.judge(12_000, 6_000), Judgement::Fine);
        assert_eq!(rule.judge(22_000, 6_500), Judgement::Fine);
        assert_eq!(rule.judge(22_000, 6_501), Judgement::TooMany);
        // Records of the quarantine may have been cured meanwhile.
        assert_eq!(rule.judge(22_000, 10), Judgement::Fine);
    }

    #[test]
    fn the_sentence_names_the_commonest_reasons_and_what_to_do() {
        let rule = RejectRule { limit: "5%".parse().unwrap(), ..RejectRule::default() };
        let codes = [("unknown_wallet".to_owned(), 1_100), ("bad_time".to_owned(), 110)];
        assert_eq!(
            rule.sentence(10_400, 1_210, &codes),
            "1210 of 10400 records failed (11.6 %), and the limit on rejects is 5%; the commonest reasons: unknown_wallet (1100), \
             bad_time (110). Look at the quarantine, correct what refuses them, and resume the job; or resume it with a higher \
             limit"
        );
    }
}
