//! Identifiers that sort by the time of their making.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// A 63-bit identifier made by the process that inserts the row: 42 bits of Unix milliseconds, then 21 bits
/// that begin at random in each process and count on.
///
/// Both databases keep it as a plain `BIGINT`, so rows are inserted set-wise without a round trip for keys, and
/// index pages fill in order. As text it is 13 digits of Crockford's base 32 in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, sqlx::Type)]
#[sqlx(transparent)]
pub struct Id(i64);

/// Text that is not an [`Id`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("'{0}' is not an id")]
pub struct IdError(String);

const LOW_BITS: u32 = 21;
const TEXT_LENGTH: usize = 13;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The counter behind the low bits. Process-wide on purpose: two generators in one process could collide.
static COUNTER: AtomicU64 = AtomicU64::new(0);

impl Id {
    /// A new id. Unique within the process for two million ids a millisecond; between processes a collision
    /// needs the same millisecond and the same 21 bits, and then meets the primary key.
    pub fn new() -> Self {
        if COUNTER.load(Ordering::Relaxed) == 0 {
            let start = u64::from(rand::random::<u32>()) + 1;
            let _ = COUNTER.compare_exchange(0, start, Ordering::Relaxed, Ordering::Relaxed);
        }
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        Self::from_parts(Timestamp::here().micros() / 1000, count)
    }

    fn from_parts(millis: i64, count: u64) -> Self {
        let low = count & ((1 << LOW_BITS) - 1);
        Self(((millis & ((1 << 42) - 1)) << LOW_BITS) | i64::try_from(low).expect("21 bits fit"))
    }

    /// The number as stored.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// From a stored number.
    pub const fn from_stored(number: i64) -> Self {
        Self(number)
    }
}

impl Default for Id {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; TEXT_LENGTH];
        let mut rest = self.0.cast_unsigned();
        for place in text.iter_mut().rev() {
            *place = ALPHABET[usize::try_from(rest & 31).expect("five bits fit")];
            rest >>= 5;
        }
        f.write_str(std::str::from_utf8(&text).expect("the alphabet is ASCII"))
    }
}

impl FromStr for Id {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let error = || IdError(text.chars().take(40).collect());
        if text.len() != TEXT_LENGTH {
            return Err(error());
        }
        let mut number: u64 = 0;
        for byte in text.bytes() {
            let digit = ALPHABET.iter().position(|&letter| letter == byte).ok_or_else(error)?;
            number = (number << 5) | digit as u64;
        }
        i64::try_from(number).map(Self).map_err(|_| error())
    }
}

impl Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_of_one_process_differ() {
        let mut ids: Vec<Id> = (0..10_000).map(|_| Id::new()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 10_000);
    }

    #[test]
    fn text_that_is_no_id_is_refused() {
        for text in ["", "0", "zzzzzzzzzzzzz", "0000000000000 ", "u000000000000"] {
            assert!(text.parse::<Id>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_and_number_are_the_same_id(number in 0..i64::MAX) {
            let id = Id::from_stored(number);
            prop_assert_eq!(id.to_string().parse::<Id>().unwrap(), id);
        }

        #[test]
        fn text_sorts_as_the_number(a in 0..i64::MAX, b in 0..i64::MAX) {
            let (a, b) = (Id::from_stored(a), Id::from_stored(b));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
        }
    }
}
