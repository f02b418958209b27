//! Ids: UUIDs made from a seed, from which the place of a record can be read again.

use std::fmt;

use crate::chance::draw;

const HEX: [[u8; 2]; 256] = hex_pairs();
/// Places are scrambled within this many bits.
const CODE_BITS: u32 = 48;
const CODE_MASK: u64 = (1 << CODE_BITS) - 1;
/// The bits of a place that are its index; the others tell records at the same index apart.
const INDEX_BITS: u32 = 36;
const FIRST_ODD: u64 = 0x9E37_79B9_7F4B;
const SECOND_ODD: u64 = 0xC2B2_AE3D_27D5;

/// A universally unique identifier (RFC 9562), version 4 in form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(u128);

impl Uuid {
    /// The identifier of one thing (`index`) of one kind (`stream`).
    pub(super) const fn of(seed: u64, stream: u64, index: u64) -> Self {
        Self::formed(draw(seed, stream, index), draw(seed, stream + 1, index))
    }

    /// Puts version and variant into 128 bits of chance.
    const fn formed(high: u64, low: u64) -> Self {
        let high = (high & !0xF000) | 0x4000;
        let low = (low & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000;
        Self((high as u128) << 64 | low as u128)
    }

    /// All of its bits.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0
    }

    /// Reads the usual form with hyphens.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|sign| *sign != '-').collect();
        let value = u128::from_str_radix(&digits, 16).ok()?;
        let uuid = Self(value);
        uuid.to_string().eq_ignore_ascii_case(text).then_some(uuid)
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        let mut text = [b'-'; 36];
        let mut at = 0;
        for (place, byte) in self.0.to_be_bytes().into_iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                at += 1;
            }
            text[at..at + 2].copy_from_slice(&HEX[byte as usize]);
            at += 2;
        }
        out.extend_from_slice(&text);
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(36);
        self.write(&mut text);
        formatter.write_str(std::str::from_utf8(&text).expect("hexadecimal digits"))
    }
}

/// Where a record stands: the index of a log, and 0 for that log or more for what stands behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) index: u64,
    pub(super) sub: u16,
}

impl Place {
    pub(super) const fn at(index: u64) -> Self {
        Self { index, sub: 0 }
    }

    const fn code(self) -> u64 {
        (self.sub as u64) << INDEX_BITS | self.index
    }
}

const STREAM: u64 = 0x1D;
const KEY: u64 = 0x1E;
const REFERENCE: u64 = 0x1F;

/// The keys that make the ids and references of one seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ids {
    seed: u64,
    key: u64,
    reference_key: u64,
}

impl Ids {
    pub(super) const fn new(seed: u64) -> Self {
        Self { seed, key: draw(seed, KEY, 0), reference_key: draw(seed, REFERENCE, 0) }
    }

    /// The id of the record at a place. Records of one instant are ordered by id, so `order` decides the first bits
    /// of the id where an instant has several.
    pub(super) const fn id(&self, place: Place, order: Order) -> Uuid {
        let chance = draw(self.seed, STREAM, place.index);
        let first = match order {
            Order::Any => chance >> 32,
            Order::OfFour(rank) => (chance >> 34) & 0x3FFF_FFFF | (rank as u64) << 30,
            Order::OfMany(rank) => rank as u64,
        };
        let middle = if place.sub == 0 { chance >> 16 & 0x7FFF } else { 0x8000 | place.sub as u64 };
        let high = first << 32 | middle << 16 | chance & 0x0FFF;
        Uuid::formed(high, (chance >> 4) << CODE_BITS | scramble(self.key, place.code()))
    }

    /// The place in an id, if it is one of ours; whether it is, the caller finds out by making the id again.
    pub(super) const fn place(&self, id: Uuid) -> Place {
        let code = unscramble(self.key, id.0 as u64 & CODE_MASK);
        Place { index: code & ((1 << INDEX_BITS) - 1), sub: (code >> INDEX_BITS) as u16 }
    }

    /// A number for the reference of the record at a place; no two are equal.
    pub(super) const fn reference(&self, place: Place) -> Reference {
        Reference(scramble(self.reference_key, place.code()))
    }
}

/// Where a record stands among those of its instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// It is alone.
    Any,
    /// Among at most four.
    OfFour(u8),
    /// Among very many.
    OfMany(u32),
}

/// The text by which people know a movement, such as `WL0K3F9Z81QA`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reference(u64);

impl Reference {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let mut text = *b"WL0000000000";
        let mut rest = self.0;
        for digit in text[2..].iter_mut().rev() {
            *digit = DIGITS[(rest % 36) as usize];
            rest /= 36;
        }
        out.extend_from_slice(&text);
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(12);
        self.write(&mut text);
        formatter.write_str(std::str::from_utf8(&text).expect("letters and digits"))
    }
}

/// A permutation of the numbers of [`CODE_BITS`] bits.
const fn scramble(key: u64, code: u64) -> u64 {
    let value = ((code ^ key) & CODE_MASK).wrapping_mul(FIRST_ODD) & CODE_MASK;
    let value = (value ^ value >> 24).wrapping_mul(SECOND_ODD) & CODE_MASK;
    value ^ value >> 24
}

const fn unscramble(key: u64, value: u64) -> u64 {
    let value = (value ^ value >> 24).wrapping_mul(inverse(SECOND_ODD)) & CODE_MASK;
    let value = (value ^ value >> 24).wrapping_mul(inverse(FIRST_ODD)) & CODE_MASK;
    (value ^ key) & CODE_MASK
}

/// The inverse of an odd number modulo 2^64 (Newton's method; every step doubles the right bits).
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut step = 0;
    while step < 6 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

const fn hex_pairs() -> [[u8; 2]; 256] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut table = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = [DIGITS[byte >> 4], DIGITS[byte & 15]];
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_from_its_id() {
        let ids = Ids::new(7);
        for index in [0, 1, 2, 65_535, 2_999_999, (1 << INDEX_BITS) - 1] {
            for sub in [0, 1, 4_095] {
                let place = Place { index, sub };
                for order in [Order::Any, Order::OfFour(3), Order::OfMany(299_999)] {
                    let id = ids.id(place, order);
                    assert_eq!(ids.place(id), place);
                    assert_eq!(Uuid::read(&id.to_string()), Some(id));
                    assert_eq!((id.as_u128() >> 76 & 15, id.as_u128() >> 62 & 3), (4, 2));
                }
            }
        }
    }

    #[test]
    fn references_are_unlike_each_other() {
        let ids = Ids::new(7);
        let references: std::collections::HashSet<String> =
            (0..10_000).map(|index| ids.reference(Place::at(index)).to_string()).collect();
        assert_eq!(references.len(), 10_000);
    }

    #[test]
    fn what_is_no_uuid_is_not_read() {
        for text in [
            "",
            "x",
            "9007199254740993",
            "123e4567e89b42d3a456426614174000",
            "123e4567-e89b-42d3-a456-42661417400",
        ] {
            assert_eq!(Uuid::read(text), None, "{text}");
        }
    }
}
