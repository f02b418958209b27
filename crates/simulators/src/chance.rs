//! Deterministic chance: every value is computed from a seed, a purpose and an index, so that nothing has to
//! be stored and nothing depends on the order of asking.

/// The finishing steps of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators").
pub(crate) const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// One number for one purpose (`stream`) of one thing (`index`) under one seed.
pub(crate) const fn draw(seed: u64, stream: u64, index: u64) -> u64 {
    let keyed = mix(seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    mix(keyed ^ mix(index.wrapping_add(0xD1B5_4A32_D192_ED03)))
}

/// A short sequence of numbers that belongs to one thing.
pub(crate) struct Chance {
    state: u64,
}

impl Chance {
    /// Starts the sequence of `index` for the purpose `stream`.
    pub(crate) const fn new(seed: u64, stream: u64, index: u64) -> Self {
        Self { state: draw(seed, stream, index) }
    }

    /// The next number of the sequence.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// A number from 0 to `limit - 1`; the slight bias of the remainder does not matter here.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// True in `share` of 1,000 cases.
    pub(crate) fn per_mille(&mut self, share: u64) -> bool {
        self.below(1_000) < share
    }

    /// One item of a table.
    pub(crate) fn pick<'a, T>(&mut self, table: &'a [T]) -> &'a T {
        &table[self.below(table.len() as u64) as usize]
    }

    /// Puts a table into another order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, table: &mut [T]) {
        for last in (1..table.len()).rev() {
            table.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_question_gets_the_same_answer() {
        assert_eq!(draw(1, 2, 3), draw(1, 2, 3));
        assert_ne!(draw(1, 2, 3), draw(1, 2, 4));
        assert_ne!(draw(1, 2, 3), draw(1, 3, 3));
        assert_ne!(draw(1, 2, 3), draw(2, 2, 3));
    }

    #[test]
    fn a_share_of_one_thousand_is_about_that_share() {
        let hits = (0..100_000).filter(|index| Chance::new(9, 1, *index).per_mille(50)).count();
        assert!((4_500..5_500).contains(&hits), "{hits} of 100,000 at 50 per mille");
    }
}
