//! Amounts of money: whole numbers of ten-thousandths.

use std::{fmt, iter::Sum, ops::Add};

/// Ten-thousandths in one.
const UNIT: i128 = 10_000;
const SCALE: i32 = 4;

/// An amount in ten-thousandths of its currency; exact, and without a currency of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i128);

impl Amount {
    /// The largest that `numeric(20,4)` holds.
    pub const MAX: Self = Self(10_i128.pow(20) - 1);

    /// This many ten-thousandths.
    #[must_use]
    pub const fn of_units(units: i128) -> Self {
        Self(units)
    }

    /// Its ten-thousandths.
    #[must_use]
    pub const fn units(self) -> i128 {
        self.0
    }

    /// Reads a JSON number as it is written, exponent and all; nothing if it is finer than ten-thousandths or
    /// larger than [`Amount::MAX`].
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || digits.len() > 30 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let mut units: i128 = digits.parse().ok()?;
        let shift = SCALE.checked_add(exponent)?.checked_sub(fraction.len() as i32)?;
        for _ in 0..shift.clamp(-60, 60).unsigned_abs() {
            if units == 0 {
                break;
            }
            if shift > 0 {
                units = units.checked_mul(10)?;
            } else if units % 10 == 0 {
                units /= 10;
            } else {
                return None;
            }
        }
        (units <= Self::MAX.0).then_some(Self(if negative { -units } else { units }))
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        let mut text = [0_u8; 48];
        let mut at = text.len();
        let mut digit = |value: u8| {
            at -= 1;
            text[at] = value;
        };
        let absolute = self.0.unsigned_abs();
        // Almost all of them fit, and 128 bits are slow to divide.
        if let Ok(mut rest) = u64::try_from(absolute) {
            let mut places = 0;
            while places <= SCALE || rest > 0 {
                digit(b'0' + (rest % 10) as u8);
                rest /= 10;
                places += 1;
                if places == SCALE {
                    digit(b'.');
                }
            }
        } else {
            let (whole, fraction) = (absolute / UNIT as u128, absolute % UNIT as u128);
            format!("{whole}.{fraction:04}").bytes().rev().for_each(&mut digit);
        }
        if self.0 < 0 {
            digit(b'-');
        }
        out.extend_from_slice(&text[at..]);
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(24);
        self.write(&mut text);
        formatter.write_str(std::str::from_utf8(&text).expect("digits, a sign and a point"))
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Self::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_with_four_places() {
        for (units, expected) in [
            (0, "0.0000"),
            (1, "0.0001"),
            (-1, "-0.0001"),
            (10_000, "1.0000"),
            (1_234_500, "123.4500"),
            (-98_765_432_101, "-9876543.2101"),
            (u64::MAX.into(), "1844674407370955.1615"),
            (Amount::MAX.units(), "9999999999999999.9999"),
        ] {
            assert_eq!(Amount::of_units(units).to_string(), expected);
        }
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for (text, expected) in [
            ("0.1", Some("0.1000")),
            ("9999999999999999.01", Some("9999999999999999.0100")),
            ("-0", Some("0.0000")),
            ("1.0E+2", Some("100.0000")),
            ("2.50e-2", Some("0.0250")),
            ("12.34500000", Some("12.3450")),
            ("0e999999999", Some("0.0000")),
            ("1e-7", None),
            ("36583610105684000000", None),
            ("1e999999999", None),
            ("", None),
            ("1x", None),
        ] {
            assert_eq!(Amount::read(text).map(|amount| amount.to_string()).as_deref(), expected, "{text}");
        }
    }
}
