//! Typed fields: from the token of a JSON value to a value that a database keeps exactly.

pub mod decimal;
pub mod instant;
pub(crate) mod json;

use std::borrow::Cow;

use engine::Reason;

use decimal::{Decimal, DecimalError};
use instant::{Local, Micros};
use json::Unstorable;

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// Text. A JSON number is taken as it is written.
    Text,
    /// A whole number of 64 bits, from a JSON number or a text.
    Bigint,
    /// An exact decimal, from a JSON number or a text; with the digits of `numeric(precision, scale)` if they are
    /// declared.
    Numeric {
        /// All digits and those after the point.
        digits: Option<(u32, u32)>,
    },
    /// `true` or `false`, also as texts.
    Boolean,
    /// A point in time; see [`TimeForm`].
    Timestamptz {
        /// How it is written.
        form: TimeForm,
    },
    /// A UUID with or without its hyphens.
    Uuid,
    /// Any JSON value, kept as `jsonb`.
    Json,
}

/// How a time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeForm {
    /// As in RFC 3339, with a rule for times without an offset.
    Rfc3339 {
        /// The rule.
        local: Local,
    },
    /// Seconds since 1970, decimals allowed.
    EpochSeconds,
    /// Milliseconds since 1970, decimals allowed.
    EpochMillis,
}

impl FieldType {
    /// The type's name in Postgres.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Bigint => "bigint",
            Self::Numeric { .. } => "numeric",
            Self::Boolean => "boolean",
            Self::Timestamptz { .. } => "timestamptz",
            Self::Uuid => "uuid",
            Self::Json => "jsonb",
        }
    }

    /// Reads a value from its token, which is valid JSON and not `null`.
    ///
    /// # Errors
    /// A reason with a stable code; its detail names the value, cut, and not the field.
    pub fn read(self, token: &str) -> Result<Value<'_>, Reason> {
        if let Some(found) = json::unstorable(token) {
            return Err(match found {
                Unstorable::Nul => Reason::new(
                    "nul_in_text",
                    format!("{} holds \\u0000, which no text of a database holds", cut(token)),
                ),
                Unstorable::LoneSurrogate => Reason::new(
                    "lone_surrogate",
                    format!("{} holds half of a surrogate pair, which is no character", cut(token)),
                ),
            });
        }
        match self {
            Self::Json => Ok(Value::Json(token)),
            Self::Text => Ok(Value::Text(scalar(token, self)?)),
            Self::Bigint => bigint(&scalar(token, self)?).map(Value::Bigint),
            Self::Numeric { digits } => numeric(&scalar(token, self)?, digits).map(Value::Numeric),
            Self::Boolean => match token {
                "true" | "\"true\"" => Ok(Value::Boolean(true)),
                "false" | "\"false\"" => Ok(Value::Boolean(false)),
                _ => Err(wrong_type(token, self)),
            },
            Self::Timestamptz { form } => time(&scalar(token, self)?, form).map(Value::Timestamptz),
            Self::Uuid => {
                let text = scalar(token, self)?;
                uuid(&text)
                    .map(Value::Uuid)
                    .ok_or_else(|| Reason::new("bad_uuid", format!("{} is not a UUID", cut(&text))))
            }
        }
    }
}

/// A value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // Each is the value of the field type of the same name.
pub enum Value<'a> {
    Null,
    Text(Cow<'a, str>),
    Bigint(i64),
    Numeric(Decimal),
    Boolean(bool),
    Timestamptz(Micros),
    Uuid([u8; 16]),
    /// The token as received.
    Json(&'a str),
}

impl Value<'_> {
    /// Appends the canonical text of a value: what proofs compare. `None` for NULL, and for JSON that no `jsonb` holds.
    pub fn canonical(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Null => return None,
            Self::Text(text) => Cow::Borrowed(text),
            Self::Bigint(number) => Cow::Owned(number.to_string()),
            Self::Numeric(number) => Cow::Owned(number.canonical()),
            Self::Boolean(true) => Cow::Borrowed("true"),
            Self::Boolean(false) => Cow::Borrowed("false"),
            Self::Timestamptz(micros) => Cow::Owned(micros.to_string()),
            Self::Uuid(bytes) => Cow::Owned(uuid_text(bytes)),
            Self::Json(token) => Cow::Owned(json::canonical(token)?),
        })
    }
}

/// The text of a token that is a string or a number.
fn scalar(token: &str, kind: FieldType) -> Result<Cow<'_, str>, Reason> {
    match token.as_bytes().first() {
        Some(b'"') => json::text_of(token).ok_or_else(|| wrong_type(token, kind)),
        Some(b'-' | b'0'..=b'9') => Ok(Cow::Borrowed(token)),
        _ => Err(wrong_type(token, kind)),
    }
}

fn wrong_type(token: &str, kind: FieldType) -> Reason {
    Reason::new("wrong_type", format!("{} is not of the type {}", cut(token), kind.sql()))
}

fn bigint(text: &str) -> Result<i64, Reason> {
    let number = decimal(text)?;
    if number.significant_scale() > 0 {
        return Err(Reason::new("not_an_integer", format!("{} is not a whole number", cut(text))));
    }
    number
        .to_i64()
        .ok_or_else(|| Reason::new("numeric_overflow", format!("{} does not fit into a bigint", cut(text))))
}

fn numeric(text: &str, digits: Option<(u32, u32)>) -> Result<Decimal, Reason> {
    let number = decimal(text)?;
    if let Some((precision, scale)) = digits {
        if number.whole_digits() > precision.saturating_sub(scale) {
            let detail = format!("{} does not fit into numeric({precision},{scale})", cut(text));
            return Err(Reason::new("numeric_overflow", detail));
        }
        if number.significant_scale() > scale {
            let detail = format!("{} has more decimals than numeric({precision},{scale}) keeps", cut(text));
            return Err(Reason::new("numeric_inexact", detail));
        }
    }
    Ok(number)
}

fn decimal(text: &str) -> Result<Decimal, Reason> {
    Decimal::parse(text).map_err(|error| match error {
        DecimalError::NotANumber => Reason::new("not_a_number", format!("{} is not a number", cut(text))),
        DecimalError::TooLarge => Reason::new("numeric_overflow", format!("{}: {error}", cut(text))),
    })
}

fn time(text: &str, form: TimeForm) -> Result<Micros, Reason> {
    let bad = |error: &dyn std::fmt::Display| Reason::new("bad_time", format!("{}: {error}", cut(text)));
    let shift = match form {
        TimeForm::Rfc3339 { local } => {
            return instant::parse(text, local).map_err(|error| {
                if error.is_ambiguous() {
                    Reason::new("ambiguous_time", format!("{}: {error}", cut(text)))
                } else {
                    bad(&error)
                }
            });
        }
        TimeForm::EpochSeconds => 6,
        TimeForm::EpochMillis => 3,
    };
    let number = decimal(text)?;
    let micros =
        Decimal::parse(&format!("{}e{shift}", number.canonical())).ok().and_then(|micros| micros.to_i64());
    // Years 1 to 9999.
    micros
        .filter(|micros| (-62_135_596_800_000_000..253_402_300_800_000_000).contains(micros))
        .ok_or_else(|| bad(&"it is no point in time of the years 1 to 9999 in whole microseconds"))
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let hex: Cow<'_, str> = match text.len() {
        32 => Cow::Borrowed(text),
        36 => {
            let hyphens = [8, 13, 18, 23];
            if hyphens.iter().any(|at| text.as_bytes()[*at] != b'-') {
                return None;
            }
            Cow::Owned(text.replace('-', ""))
        }
        _ => return None,
    };
    if hex.len() != 32 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(&hex, 16).ok().map(u128::to_be_bytes)
}

fn uuid_text(bytes: &[u8; 16]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
    text
}

/// A value for a message.
pub(crate) fn cut(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut shown: String =
        text.chars().take(CHARS_MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(CHARS_MAX).is_some() {
        shown.push('…');
    }
    if shown.starts_with('"') { shown } else { format!("\"{shown}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(kind: FieldType, token: &str) -> String {
        match kind.read(token) {
            Ok(value) => format!("{:?}", value.canonical()),
            Err(reason) => reason.code.into_owned(),
        }
    }

    #[test]
    fn every_type_reads_its_tokens_and_names_what_it_refuses() {
        let numeric = FieldType::Numeric { digits: None };
        let money = FieldType::Numeric { digits: Some((20, 4)) };
        let strict = FieldType::Timestamptz { form: TimeForm::Rfc3339 { local: Local::Unknown } };
        let some = |text: &str| format!("{:?}", Some(Cow::<str>::Owned(text.to_owned())));
        for (kind, token, expected) in [
            (FieldType::Text, r#""a\u00e9""#, some("aé")),
            (FieldType::Text, "1.0E+2", some("1.0E+2")),
            (FieldType::Text, "true", "wrong_type".into()),
            (FieldType::Text, "{}", "wrong_type".into()),
            (FieldType::Text, r#""a\u0000b""#, "nul_in_text".into()),
            (FieldType::Text, r#""\ud835""#, "lone_surrogate".into()),
            (FieldType::Bigint, "9007199254740993", some("9007199254740993")),
            (FieldType::Bigint, r#""9007199254740993""#, some("9007199254740993")),
            (FieldType::Bigint, "36583610105684000000", "numeric_overflow".into()),
            (FieldType::Bigint, "1.5", "not_an_integer".into()),
            (FieldType::Bigint, "[]", "wrong_type".into()),
            (numeric, "36583610105684000000", some("36583610105684000000")),
            (numeric, "9999999999999999.01", some("9999999999999999.01")),
            (numeric, r#""1e-7""#, some("0.0000001")),
            (numeric, r#""12,50""#, "not_a_number".into()),
            (numeric, "1e999999", "numeric_overflow".into()),
            (money, "36583610105684000000", "numeric_overflow".into()),
            (money, "0.12345", "numeric_inexact".into()),
            (money, "0.123400", some("0.1234")),
            (money, "9999999999999999.9999", some("9999999999999999.9999")),
            (FieldType::Boolean, "true", some("true")),
            (FieldType::Boolean, "1", "wrong_type".into()),
            (strict, r#""2024-03-31T02:30:00""#, "ambiguous_time".into()),
            (strict, r#""2024-03-31T02:30:00+01:00""#, some("1711848600000000")),
            (strict, r#""yesterday""#, "bad_time".into()),
            (
                FieldType::Timestamptz { form: TimeForm::EpochSeconds },
                "1711848600.25",
                some("1711848600250000"),
            ),
            (
                FieldType::Timestamptz { form: TimeForm::EpochMillis },
                "1711848600250",
                some("1711848600250000"),
            ),
            (FieldType::Timestamptz { form: TimeForm::EpochMillis }, "1e300", "bad_time".into()),
            (
                FieldType::Uuid,
                r#""0D3BD4B4-9D28-4A4B-8C3F-1B2A3C4D5E6F""#,
                some("0d3bd4b4-9d28-4a4b-8c3f-1b2a3c4d5e6f"),
            ),
            (
                FieldType::Uuid,
                r#""0d3bd4b49d284a4b8c3f1b2a3c4d5e6f""#,
                some("0d3bd4b4-9d28-4a4b-8c3f-1b2a3c4d5e6f"),
            ),
            (FieldType::Uuid, r#""0d3bd4b49d284a4b8c3f1b2a3c4d5e6g""#, "bad_uuid".into()),
            (FieldType::Uuid, r#""0d3bd4b-49d28-4a4b-8c3f-1b2a3c4d5e6f""#, "bad_uuid".into()),
            (FieldType::Json, r#"{"b":1.50,"a":"\u0001"}"#, some(r#"{"a": "\u0001", "b": 1.50}"#)),
            (FieldType::Json, r#"{"b":"\u0000"}"#, "nul_in_text".into()),
        ] {
            assert_eq!(code(kind, token), expected, "{kind:?} {token}");
        }
    }
}
