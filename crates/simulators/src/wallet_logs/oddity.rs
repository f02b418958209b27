//! What can be odd about one record.

use time::{OffsetDateTime, PrimitiveDateTime, format_description::well_known::Rfc3339};

use super::amount::Amount;

/// What is odd about one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Oddity {
    MissingId,
    NullId,
    NumericId,
    BigSeq,
    /// Its own amount as a JSON number.
    AmountNumber,
    /// This text as a JSON number in the amount's place.
    Amount(String),
    Text(TextOddity),
    Time(TimeOddity),
    UnknownType(String),
    UnknownWallet,
    OtherCurrency,
    /// The balances are right in themselves and do not begin where the movement before ended.
    BrokenBalance,
    /// The balance after is not the balance before and the amount.
    WrongBalance,
    /// The reference of its neighbour.
    SameReference,
    BrokenJson,
}

/// What is odd about a narration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextOddity {
    Missing,
    Null,
    Nul,
    LoneSurrogate,
    InvalidUtf8,
}

/// What is odd about a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TimeOddity {
    Missing,
    Null,
    Local,
    OtherOffset,
    /// This text.
    Text(String),
}

/// What a right migration does with one record that was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It is in the target, with exactly these values.
    Lands,
    /// It can be stored; whether it may stay is for the checks of the migration to say.
    Flagged,
    /// It is set aside and counted, for this reason. A migration may have another word for it.
    Fails(&'static str),
    /// It was served before, byte for byte, and is counted as a duplicate.
    Repeats,
}

impl Oddity {
    /// What a right migration does with such a record.
    pub(super) fn verdict(&self) -> Verdict {
        match self {
            Self::MissingId | Self::NullId => Verdict::Fails("missing_id"),
            Self::NumericId => Verdict::Fails("invalid_id"),
            Self::Amount(text) => amount_verdict(text),
            Self::Text(TextOddity::Nul) => Verdict::Fails("nul_in_text"),
            Self::Text(TextOddity::LoneSurrogate) => Verdict::Fails("lone_surrogate"),
            Self::Text(TextOddity::InvalidUtf8) => Verdict::Fails("invalid_utf8"),
            Self::Time(TimeOddity::Missing | TimeOddity::Null) => Verdict::Fails("missing_cursor_field"),
            Self::Time(TimeOddity::Local) => Verdict::Fails("ambiguous_time"),
            Self::Time(TimeOddity::Text(text)) => time_verdict(text),
            Self::UnknownType(_) => Verdict::Fails("unknown_type"),
            Self::UnknownWallet => Verdict::Fails("unknown_wallet"),
            Self::OtherCurrency => Verdict::Fails("currency_mismatch"),
            Self::BrokenJson => Verdict::Fails("broken_json"),
            Self::BrokenBalance | Self::WrongBalance | Self::SameReference => Verdict::Flagged,
            Self::BigSeq
            | Self::AmountNumber
            | Self::Text(TextOddity::Missing | TextOddity::Null)
            | Self::Time(TimeOddity::OtherOffset) => Verdict::Lands,
        }
    }

    /// The amount that stands in the record instead of its own and can be stored exactly.
    pub(super) fn sound_amount(&self) -> Option<Amount> {
        let Self::Amount(text) = self else { return None };
        Amount::read(text).filter(|amount| *amount >= Amount::default())
    }
}

/// The milliseconds since 1970 of a time with an offset, if it is exact to the millisecond.
pub(super) fn read_millis(text: &str) -> Option<i64> {
    let nanos = OffsetDateTime::parse(text, &Rfc3339).ok()?.unix_timestamp_nanos();
    (nanos % 1_000_000 == 0).then_some((nanos / 1_000_000) as i64)
}

fn time_verdict(text: &str) -> Verdict {
    if read_millis(text).is_some() {
        Verdict::Lands
    } else if OffsetDateTime::parse(text, &Rfc3339).is_ok() {
        // Finer than the typed values of this crate, and nothing that a target need refuse.
        Verdict::Flagged
    } else if PrimitiveDateTime::parse(&format!("{text}Z"), &Rfc3339).is_ok() {
        Verdict::Fails("ambiguous_time")
    } else {
        Verdict::Fails("invalid_time")
    }
}

fn amount_verdict(text: &str) -> Verdict {
    match (Amount::read(text), text.parse::<f64>()) {
        (Some(amount), _) if amount >= Amount::default() => Verdict::Lands,
        (Some(_), _) => Verdict::Fails("negative_amount"),
        // Only its size is asked for here, and nothing is near the limit.
        (None, Ok(size)) if size.abs() >= 1e16 => Verdict::Fails("numeric_overflow"),
        (None, _) => Verdict::Fails("inexact_amount"),
    }
}
