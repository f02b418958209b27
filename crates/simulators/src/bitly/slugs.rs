//! Slugs computed from a link's index, all different from each other, and the way back.
//!
//! Four families that cannot meet: generated slugs have seven letters and digits and begin with `3` or `4`;
//! pairs that differ only by case begin with `2`; links added later begin with `5`; custom back-halves begin
//! with none of these and end in a number of their own behind the last `-` or `_`, or are a bare word.

use super::words::BACK_HALVES;
use crate::chance::draw;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BODY_LENGTH: usize = 6;
const BODIES: u64 = 62_u64.pow(BODY_LENGTH as u32);
const PAIR_BODIES: u64 = 26_u64.pow(BODY_LENGTH as u32);
/// Steps that share no factor with the number of bodies, so that a walk meets each body once.
const STEP: u64 = 31_415_926_537;
const PAIR_STEP: u64 = 141_421_357;
/// Two neighbours of this many links differ only by case.
const PAIR_EVERY: u64 = 97;
const PAIR_AT: u64 = 40;
const STREAM: u64 = 0x51;
const CUSTOM_STREAM: u64 = 0x52;
const CUSTOM_MAX: u64 = 4;

/// The slugs of one account.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slugs {
    seed: u64,
    offset: u64,
    pair_offset: u64,
}

impl Slugs {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            offset: draw(seed, STREAM, 0) % BODIES,
            pair_offset: draw(seed, STREAM, 1) % PAIR_BODIES,
        }
    }

    /// The slug Bitly made for the link at `index`.
    pub(super) fn generated(&self, index: u64) -> String {
        match index % PAIR_EVERY {
            PAIR_AT => self.pair(index / PAIR_EVERY, false),
            rest if rest == PAIR_AT + 1 => self.pair(index / PAIR_EVERY, true),
            _ => {
                let first = if draw(self.seed, STREAM, index + 2).is_multiple_of(3) { b'4' } else { b'3' };
                encode(first, step(index, STEP, self.offset, BODIES))
            }
        }
    }

    /// The slug of the link that was added as the `number`-th.
    pub(super) fn added(&self, number: u64) -> String {
        encode(b'5', step(number, STEP, self.offset, BODIES))
    }

    /// The index of the link that has this generated slug, if an account of `count` links has it.
    pub(super) fn index_of(&self, slug: &str, count: u64) -> Option<u64> {
        let (first, body) = slug.as_bytes().split_first()?;
        let candidates = match first {
            b'2' => self.pair_candidates(body)?,
            b'3' | b'4' => [unstep(decode(body)?, STEP, self.offset, BODIES); 2],
            _ => return None,
        };
        candidates.into_iter().find(|index| *index < count && self.generated(*index) == slug)
    }

    fn pair(&self, pair: u64, other_case: bool) -> String {
        let mut body = step(pair, PAIR_STEP, self.pair_offset, PAIR_BODIES);
        let cases = draw(self.seed, STREAM, pair ^ u64::MAX);
        let mut slug = String::from("2");
        for place in 0..BODY_LENGTH {
            let letter = b'a' + (body % 26) as u8;
            let upper = (cases >> place & 1 == 1) != other_case;
            slug.push(char::from(if upper { letter.to_ascii_uppercase() } else { letter }));
            body /= 26;
        }
        slug
    }

    fn pair_candidates(&self, body: &[u8]) -> Option<[u64; 2]> {
        if body.len() != BODY_LENGTH || !body.iter().all(u8::is_ascii_alphabetic) {
            return None;
        }
        let letters = body.iter().rev();
        let value =
            letters.fold(0, |value, letter| value * 26 + u64::from(letter.to_ascii_lowercase() - b'a'));
        let index =
            unstep(value, PAIR_STEP, self.pair_offset, PAIR_BODIES).checked_mul(PAIR_EVERY)? + PAIR_AT;
        Some([index, index + 1])
    }

    /// The index of the link that has this custom back-half, if an account of `count` links may have it.
    pub(super) fn index_of_custom(&self, slug: &str, count: u64) -> Option<u64> {
        if let Some(place) = BACK_HALVES.iter().position(|word| *word == slug) {
            return Some(place as u64).filter(|index| *index < count);
        }
        let (_, own) = slug.rsplit_once(['-', '_'])?;
        let own = u64::from_str_radix(own, 36).ok()?;
        let (index, number) = (own / CUSTOM_MAX, own % CUSTOM_MAX);
        (index < count && self.custom(index, number) == slug).then_some(index)
    }

    /// The `number`-th custom back-half (from 0) of the link at `index`.
    pub(super) fn custom(&self, index: u64, number: u64) -> String {
        let own = index * CUSTOM_MAX + number;
        if number == 0 && index < BACK_HALVES.len() as u64 {
            return BACK_HALVES[index as usize].to_owned();
        }
        let chance = draw(self.seed, CUSTOM_STREAM, own);
        let word = BACK_HALVES[(chance % BACK_HALVES.len() as u64) as usize];
        let sign = if chance >> 32 & 3 == 0 { '_' } else { '-' };
        format!("{word}{sign}{}", base36(own))
    }
}

fn step(index: u64, step: u64, offset: u64, bodies: u64) -> u64 {
    ((u128::from(index) * u128::from(step) + u128::from(offset)) % u128::from(bodies)) as u64
}

fn unstep(body: u64, step: u64, offset: u64, bodies: u64) -> u64 {
    let moved = (body + bodies - offset) % bodies;
    (u128::from(moved) * u128::from(inverse(step, bodies)) % u128::from(bodies)) as u64
}

/// The number whose product with `value` leaves 1 when divided by `modulus` (extended Euclid).
fn inverse(value: u64, modulus: u64) -> u64 {
    let (mut remainders, mut factors) = ((i128::from(modulus), i128::from(value)), (0_i128, 1_i128));
    while remainders.1 != 0 {
        let quotient = remainders.0 / remainders.1;
        remainders = (remainders.1, remainders.0 - quotient * remainders.1);
        factors = (factors.1, factors.0 - quotient * factors.1);
    }
    factors.0.rem_euclid(i128::from(modulus)) as u64
}

fn encode(first: u8, mut body: u64) -> String {
    let mut slug = [first; BODY_LENGTH + 1];
    for place in (1..slug.len()).rev() {
        slug[place] = BASE62[(body % 62) as usize];
        body /= 62;
    }
    String::from_utf8_lossy(&slug).into_owned()
}

fn decode(body: &[u8]) -> Option<u64> {
    if body.len() != BODY_LENGTH {
        return None;
    }
    body.iter().try_fold(0, |value, byte| {
        let digit = BASE62.iter().position(|known| known == byte)?;
        Some(value * 62 + digit as u64)
    })
}

fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((number % 36) as u32, 36).expect("below 36"));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_slugs_are_equal() {
        let slugs = Slugs::new(11);
        let mut seen = HashSet::new();
        for index in 0..20_000 {
            assert!(seen.insert(slugs.generated(index)), "{index}");
            for number in 0..3 {
                assert!(seen.insert(slugs.custom(index, number)), "{index} {number}");
            }
        }
        for number in 0..1_000 {
            assert!(seen.insert(slugs.added(number)), "added {number}");
        }
    }

    #[test]
    fn some_neighbours_differ_only_by_case() {
        let slugs = Slugs::new(3);
        let (one, other) = (slugs.generated(PAIR_AT), slugs.generated(PAIR_AT + 1));
        assert_ne!(one, other);
        assert_eq!(one.to_lowercase(), other.to_lowercase());
    }

    #[test]
    fn a_generated_slug_leads_back_to_its_link() {
        let slugs = Slugs::new(4);
        for index in (0..500_000).step_by(487).chain([PAIR_AT, PAIR_AT + 1, 137, 138]) {
            assert_eq!(slugs.index_of(&slugs.generated(index), 500_000), Some(index));
        }
        for index in (0..1_000).step_by(7) {
            assert_eq!(slugs.index_of_custom(&slugs.custom(index, index % 3), 1_000), Some(index));
        }
        assert_eq!(slugs.index_of(&slugs.generated(500), 500), None);
        for wrong in ["", "3", "3abcde", "3abcdefg", "3abcde!", "2abcde1", "9abcdef", "ü"] {
            assert_eq!(slugs.index_of(wrong, 500_000), None, "{wrong}");
        }
    }

    #[test]
    fn the_steps_meet_every_body() {
        for (step, bodies) in [(STEP, BODIES), (PAIR_STEP, PAIR_BODIES)] {
            assert_eq!(u128::from(step) * u128::from(inverse(step, bodies)) % u128::from(bodies), 1);
        }
    }
}
