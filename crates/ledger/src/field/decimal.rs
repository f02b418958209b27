//! Exact decimals, read from their tokens.

use std::fmt;

/// A decimal number as its digits. Never a float.
///
/// Minus zero is zero. The scale, the count of decimals, is kept as written: `1.50` and `1.5` are equal numbers of
/// different scale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    /// Digits without a sign or a point, without leading zeros; empty for zero.
    digits: Vec<u8>,
    /// How many of the digits are decimals. More than there are digits for numbers such as 0.001.
    scale: u32,
}

/// Why a text is no decimal that a database can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// Not a number: JSON's grammar of numbers is asked for (RFC 8259, section 6).
    #[error("it is not a decimal number")]
    NotANumber,
    /// More digits than Postgres keeps: 131,072 before the point, 16,383 after it.
    #[error("it has more digits than a numeric holds")]
    TooLarge,
}

/// Digits before and after the point that a numeric holds (Postgres manual, table 8.2).
const WHOLE_DIGITS_MAX: i64 = 131_072;
const SCALE_MAX: i64 = 16_383;

impl Decimal {
    /// Reads a number as JSON writes them: `-?digits[.digits][e[+-]digits]`.
    ///
    /// # Errors
    /// [`DecimalError`].
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        let not = DecimalError::NotANumber;
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (rest, None),
        };
        let (whole, decimals) = match mantissa.split_once('.') {
            Some((_, "")) => return Err(not),
            Some((whole, decimals)) => (whole, decimals),
            None => (mantissa, ""),
        };
        let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(decimals) {
            return Err(not);
        }
        if whole.len() > 1 && whole.starts_with('0') {
            return Err(not);
        }
        let exponent = exponent.map_or(Ok(0), exponent_of)?;
        let mut digits = Vec::with_capacity(whole.len() + decimals.len());
        digits.extend_from_slice(whole.as_bytes());
        digits.extend_from_slice(decimals.as_bytes());
        let leading = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..leading);
        let mut scale = i64::try_from(decimals.len()).unwrap_or(i64::MAX).saturating_sub(exponent);
        if digits.is_empty() {
            // Zero: its decimals may be kept, its exponent means nothing.
            return Ok(Self { negative: false, digits, scale: bounded(scale.clamp(0, SCALE_MAX)) });
        }
        let whole_digits = i64::try_from(digits.len()).unwrap_or(i64::MAX).saturating_sub(scale);
        if whole_digits > WHOLE_DIGITS_MAX {
            return Err(DecimalError::TooLarge);
        }
        if scale < 0 {
            digits.resize(digits.len() + usize::try_from(-scale).unwrap_or_default(), b'0');
            scale = 0;
        }
        // Zeros at the end are worth nothing; where there are too many decimals they may go.
        while scale > SCALE_MAX && digits.last() == Some(&b'0') {
            digits.pop();
            scale -= 1;
        }
        if scale > SCALE_MAX {
            return Err(DecimalError::TooLarge);
        }
        Ok(Self { negative, digits, scale: bounded(scale) })
    }

    /// Digits before the point, 0 for numbers below one.
    pub fn whole_digits(&self) -> u32 {
        bounded(i64::try_from(self.digits.len()).unwrap_or(i64::MAX).saturating_sub(self.scale.into()).max(0))
    }

    /// Decimals that are not zeros at the end.
    pub fn significant_scale(&self) -> u32 {
        let zeros = self.digits.iter().rev().take_while(|digit| **digit == b'0').count();
        if self.digits.is_empty() { 0 } else { self.scale.saturating_sub(bounded_usize(zeros)) }
    }

    /// The canonical text: no exponent, no zeros at the end, no sign before zero.
    pub fn canonical(&self) -> String {
        let mut text = String::with_capacity(self.digits.len() + 3);
        self.write_canonical(&mut text);
        text
    }

    /// The number with its decimals as written and without an exponent, as Postgres prints it.
    pub fn plain(&self) -> String {
        let mut text = self.canonical();
        let decimals = self.scale.saturating_sub(self.significant_scale()) as usize;
        if decimals > 0 {
            if self.significant_scale() == 0 {
                text.push('.');
            }
            text.extend(std::iter::repeat_n('0', decimals));
        }
        text
    }

    /// Appends the canonical text.
    pub fn write_canonical(&self, text: &mut String) {
        let drop = self.scale.saturating_sub(self.significant_scale());
        let kept = self.digits.len() - (drop as usize).min(self.digits.len());
        let digits = &self.digits[..kept];
        if digits.is_empty() {
            text.push('0');
            return;
        }
        if self.negative {
            text.push('-');
        }
        let scale = (self.scale - drop) as usize;
        let whole = digits.len().saturating_sub(scale);
        if whole == 0 {
            text.push('0');
        }
        text.extend(digits[..whole].iter().map(|digit| char::from(*digit)));
        if scale > 0 {
            text.push('.');
            text.extend(std::iter::repeat_n('0', scale.saturating_sub(digits.len())));
            text.extend(digits[whole..].iter().map(|digit| char::from(*digit)));
        }
    }

    /// All digits as one whole number: the number times ten to the power of [`Decimal::scale`].
    pub fn to_bigint(&self) -> num_bigint::BigInt {
        let digits = num_bigint::BigUint::parse_bytes(&self.digits, 10).unwrap_or_default();
        let sign = if self.negative { num_bigint::Sign::Minus } else { num_bigint::Sign::Plus };
        num_bigint::BigInt::from_biguint(sign, digits)
    }

    /// The count of decimals as written.
    pub fn scale(&self) -> u32 {
        self.scale
    }

    /// A whole number divided by ten to the power of `scale`.
    pub fn of(value: &num_bigint::BigInt, scale: u32) -> Self {
        let text = value.magnitude().to_str_radix(10);
        let digits = if text == "0" { Vec::new() } else { text.into_bytes() };
        let negative = value.sign() == num_bigint::Sign::Minus;
        Self { negative, digits, scale }
    }

    /// The whole number, if it is one that 64 bits hold.
    pub fn to_i64(&self) -> Option<i64> {
        (self.significant_scale() == 0).then(|| self.canonical().parse().ok()).flatten()
    }

    /// Appends the number in Postgres' binary form: groups of four digits to the base of 10,000
    /// (`numeric_recv` in `src/backend/utils/adt/numeric.c`).
    pub fn write_binary(&self, out: &mut Vec<u8>) {
        let scale = self.scale as usize;
        let whole = self.digits.len().saturating_sub(scale);
        // Digits of the first group, so that the point falls between groups.
        let head = whole % 4;
        let lead = if whole > 0 { 0 } else { scale - self.digits.len() };
        let mut padded = Vec::with_capacity(self.digits.len() + lead + 8);
        if whole > 0 {
            padded.extend(std::iter::repeat_n(b'0', (4 - head) % 4));
        } else {
            padded.extend(std::iter::repeat_n(b'0', lead));
        }
        padded.extend_from_slice(&self.digits);
        while padded.len() % 4 != 0 {
            padded.push(b'0');
        }
        let mut weight = if whole > 0 { whole.div_ceil(4) as i64 - 1 } else { -1 };
        let mut groups: Vec<i16> = padded
            .chunks_exact(4)
            .map(|four| four.iter().fold(0_i16, |sum, digit| sum * 10 + i16::from(digit - b'0')))
            .collect();
        let zeros = groups.iter().take_while(|group| **group == 0).count();
        groups.drain(..zeros);
        weight -= zeros as i64;
        while groups.last() == Some(&0) {
            groups.pop();
        }
        if groups.is_empty() {
            weight = 0;
        }
        let sign: u16 = if self.negative && !groups.is_empty() { 0x4000 } else { 0 };
        let put = |out: &mut Vec<u8>, number: i16| out.extend_from_slice(&number.to_be_bytes());
        put(out, i16::try_from(groups.len()).expect("a numeric has fewer than 32,768 groups of digits"));
        put(out, i16::try_from(weight).expect("a numeric's weight is bounded by its digits"));
        out.extend_from_slice(&sign.to_be_bytes());
        put(out, i16::try_from(self.scale).expect("the scale is at most 16,383"));
        for group in groups {
            put(out, group);
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical())
    }
}

fn bounded(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn bounded_usize(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn exponent_of(text: &str) -> Result<i64, DecimalError> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(DecimalError::NotANumber);
    }
    // What does not fit in a million decides by its sign alone.
    let size = digits
        .trim_start_matches('0')
        .parse::<i64>()
        .unwrap_or(if digits.trim_start_matches('0').is_empty() { 0 } else { 1_000_000 });
    let size = size.min(1_000_000);
    Ok(if negative { -size } else { size })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(text: &str) -> String {
        Decimal::parse(text).unwrap().canonical()
    }

    #[test]
    fn numbers_keep_every_digit() {
        for (text, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.000", "0"),
            ("0.1", "0.1"),
            ("9999999999999999.01", "9999999999999999.01"),
            ("9007199254740993", "9007199254740993"),
            ("36583610105684000000", "36583610105684000000"),
            ("1e-7", "0.0000001"),
            ("1.0E+2", "100"),
            ("1.50", "1.5"),
            ("-12.3400", "-12.34"),
            ("100", "100"),
            ("120e-1", "12"),
            ("0e999999999999999999999", "0"),
            ("1e20", "100000000000000000000"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    #[test]
    fn what_json_would_not_write_is_no_number() {
        for text in [
            "", "-", "+1", "01", "1.", ".5", "1e", "1e+", "0x10", "NaN", "Infinity", "1,5", " 1", "1 ",
            "--1", "1e5.0",
        ] {
            assert_eq!(Decimal::parse(text), Err(DecimalError::NotANumber), "{text:?}");
        }
    }

    #[test]
    fn a_huge_exponent_is_refused_and_makes_no_huge_text() {
        for text in ["1e131073", "1e999999999999999999999", "1e-16384", "1e-99999999999999"] {
            assert_eq!(Decimal::parse(text), Err(DecimalError::TooLarge), "{text}");
        }
        assert_eq!(Decimal::parse("1e131071").unwrap().whole_digits(), 131_072);
    }

    #[test]
    fn digits_before_and_after_the_point_are_counted() {
        for (text, whole, scale) in
            [("0", 0, 0), ("0.05", 0, 2), ("12.50", 2, 1), ("1200", 4, 0), ("1e3", 4, 0), ("0.000", 0, 0)]
        {
            let number = Decimal::parse(text).unwrap();
            assert_eq!((number.whole_digits(), number.significant_scale()), (whole, scale), "{text}");
        }
        assert_eq!(Decimal::parse("9223372036854775807").unwrap().to_i64(), Some(i64::MAX));
        assert_eq!(Decimal::parse("-9223372036854775808").unwrap().to_i64(), Some(i64::MIN));
        assert_eq!(Decimal::parse("9223372036854775808").unwrap().to_i64(), None);
        assert_eq!(Decimal::parse("1.0").unwrap().to_i64(), Some(1));
        assert_eq!(Decimal::parse("1.5").unwrap().to_i64(), None);
    }

    proptest! {
        #[test]
        fn canonical_is_canonical(whole in "0|[1-9][0-9]{0,24}", decimals in "[0-9]{0,12}", negative: bool) {
            let mut text = format!("{}{whole}", if negative { "-" } else { "" });
            if !decimals.is_empty() {
                text = format!("{text}.{decimals}");
            }
            let once = canonical(&text);
            prop_assert_eq!(canonical(&once), once.clone());
            prop_assert!(!once.contains('.') || !once.ends_with('0'));
            prop_assert_ne!(once, "-0");
        }
    }
}
