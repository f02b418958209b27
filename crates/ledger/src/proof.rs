//! What is proved of a record: one digest over its proved fields, and sums. This is the code that starts from the received
//! bytes; its counterpart in SQL, which starts from the target, is in [`crate::sql`].

use std::collections::BTreeMap;

use num_bigint::BigInt;
use sha2::{Digest as _, Sha256};

use crate::field::Value;
use crate::field::decimal::Decimal;

/// The digest of a record's proved fields: the first half of a SHA-256.
pub type Digest = [u8; 16];

/// The digest over values in the order of their fields' names.
///
/// Each value is its canonical text and a semicolon, `-` for NULL; texts and JSON, which may hold semicolons, have their
/// length in bytes and a colon before them.
pub fn digest<'v, 'a: 'v>(values: impl IntoIterator<Item = &'v Value<'a>>) -> Digest {
    let mut hash = Sha256::new();
    for value in values {
        match value.canonical() {
            None => hash.update("-"),
            Some(text) => {
                if matches!(value, Value::Text(_) | Value::Json(_)) {
                    hash.update(text.len().to_string());
                    hash.update(":");
                }
                hash.update(&*text);
            }
        }
        hash.update(";");
    }
    let mut digest = Digest::default();
    digest.copy_from_slice(&hash.finalize()[..16]);
    digest
}

/// An order-free hash of many digests: their sum modulo 2^128. One that is missing, doubled or altered changes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Multiset(u128);

impl Multiset {
    /// Adds a digest.
    pub fn add(&mut self, digest: &Digest) {
        self.0 = self.0.wrapping_add(u128::from_be_bytes(*digest));
    }

    /// Adds what another one holds.
    pub fn join(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }

    /// From its 16 bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Its 16 bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl std::fmt::Display for Multiset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// An exact sum of decimals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Total {
    value: BigInt,
    scale: u32,
}

impl Total {
    /// Adds a number.
    pub fn add(&mut self, number: &Decimal) {
        let (value, scale) = (number.to_bigint(), number.scale());
        if scale > self.scale {
            self.value *= BigInt::from(10).pow(scale - self.scale);
            self.scale = scale;
        }
        self.value += value * BigInt::from(10).pow(self.scale - scale);
    }

    /// Its canonical decimal text.
    pub fn canonical(&self) -> String {
        Decimal::of(&self.value, self.scale).canonical()
    }
}

/// Sums by their group: the values of the grouping fields, `-` for NULL.
pub type Sums = BTreeMap<(usize, Vec<String>), Total>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_exact() {
        let mut total = Total::default();
        for text in ["0.1", "0.2", "-0.0003", "9999999999999999.01", "1e3"] {
            total.add(&Decimal::parse(text).unwrap());
        }
        assert_eq!(total.canonical(), "10000000000000999.3097");
        let mut nothing = Total::default();
        nothing.add(&Decimal::parse("12.50").unwrap());
        nothing.add(&Decimal::parse("-12.5").unwrap());
        assert_eq!(nothing.canonical(), "0");
    }

    #[test]
    fn values_cannot_change_places_in_a_digest() {
        let text = |text: &'static str| Value::Text(text.into());
        let digests = [
            digest(&[text("a;1:b"), text("c")]),
            digest(&[text("a"), text("b;1:c")]),
            digest(&[text("a"), Value::Null]),
            digest(&[text("a"), text("-")]),
            digest(&[text("a"), text("")]),
            digest(&[text("c"), text("a;1:b")]),
        ];
        for (index, one) in digests.iter().enumerate() {
            assert!(digests[index + 1..].iter().all(|other| other != one), "{index}");
        }
    }

    #[test]
    fn a_multiset_knows_no_order_and_counts() {
        let (a, b) = ([1; 16], [0xff; 16]);
        let sum = |digests: &[Digest]| {
            let mut set = Multiset::default();
            digests.iter().for_each(|digest| set.add(digest));
            set
        };
        assert_eq!(sum(&[a, b]), sum(&[b, a]));
        assert_ne!(sum(&[a, b]), sum(&[a, b, b]));
        assert_ne!(sum(&[a, a]), sum(&[b, b]));
        assert_eq!(Multiset::from_bytes(sum(&[a, b]).to_bytes()), sum(&[a, b]));
    }
}
