//! Cursors: a place in the list, and proof that we gave it.

use super::id::Place;
use crate::{chance::draw, encoding};

const CHECK: u64 = 0x80;

/// What a cursor of the `stateful-cursor` switch always is.
pub(super) const SESSION: &str = "c2Vzc2lvbg";

/// What is in a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The record that comes next.
    pub(super) place: Place,
    /// How often all cursors had expired when it was given.
    pub(super) generation: u8,
    /// Tells cursors of the same place apart.
    pub(super) turn: u8,
}

impl Cursor {
    pub(super) fn write(self, seed: u64) -> String {
        let mut bytes = self.payload().to_vec();
        bytes.extend_from_slice(&self.check(seed));
        encoding::base64(&bytes)
    }

    /// Reads a cursor that [`Cursor::write`] gave under the same seed; nothing else.
    pub(super) fn read(seed: u64, text: &str) -> Option<Self> {
        let bytes = encoding::from_base64(text)?;
        let (payload, check) = bytes.split_at_checked(12)?;
        let index = u64::from_be_bytes(payload[..8].try_into().ok()?);
        let sub = u16::from_be_bytes(payload[8..10].try_into().ok()?);
        let cursor = Self { place: Place { index, sub }, generation: payload[10], turn: payload[11] };
        (check == cursor.check(seed)).then_some(cursor)
    }

    fn payload(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.place.index.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.place.sub.to_be_bytes());
        bytes[10] = self.generation;
        bytes[11] = self.turn;
        bytes
    }

    fn check(self, seed: u64) -> [u8; 6] {
        let rest = u64::from(self.place.sub) << 16 | u64::from(self.generation) << 8 | u64::from(self.turn);
        let check = draw(draw(seed, CHECK, self.place.index), CHECK, rest).to_be_bytes();
        [check[0], check[1], check[2], check[3], check[4], check[5]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_by_the_seed_that_gave_it_and_no_other() {
        let cursor = Cursor { place: Place { index: 2_999_999, sub: 3 }, generation: 1, turn: 2 };
        let text = cursor.write(7);
        assert_eq!(Cursor::read(7, &text), Some(cursor));
        assert_eq!(Cursor::read(8, &text), None);
        for forged in ["", "x", "AAAA", SESSION, &text[1..], &text.to_lowercase(), &format!("{text}A")] {
            assert_eq!(Cursor::read(7, forged), None, "{forged}");
        }
    }
}
