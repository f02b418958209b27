//! Small values: redirect codes, case modes, plans, texts.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::Slug;

/// Text that is none of the words or numbers that are known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is no {what}; known are {known}")]
pub struct ValueError {
    what: &'static str,
    given: String,
    known: &'static str,
}

impl ValueError {
    pub(crate) fn new(what: &'static str, given: &str, known: &'static str) -> Self {
        Self { what, given: given.chars().filter(|c| !c.is_control()).take(60).collect(), known }
    }
}

/// The status of a redirect (RFC 9110, section 15.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RedirectCode {
    /// 301, permanent; browsers may keep it for ever.
    MovedPermanently,
    /// 302, the default.
    #[default]
    Found,
    /// 307, keeps the method.
    TemporaryRedirect,
    /// 308, permanent, keeps the method.
    PermanentRedirect,
}

impl RedirectCode {
    /// The number.
    pub const fn number(self) -> u16 {
        match self {
            Self::MovedPermanently => 301,
            Self::Found => 302,
            Self::TemporaryRedirect => 307,
            Self::PermanentRedirect => 308,
        }
    }
}

impl TryFrom<i64> for RedirectCode {
    type Error = ValueError;

    fn try_from(number: i64) -> Result<Self, ValueError> {
        Ok(match number {
            301 => Self::MovedPermanently,
            302 => Self::Found,
            307 => Self::TemporaryRedirect,
            308 => Self::PermanentRedirect,
            other => return Err(ValueError::new("redirect code", &other.to_string(), "301, 302, 307, 308")),
        })
    }
}

/// How a domain compares slugs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CaseMode {
    /// `Sale` and `sale` are two slugs.
    #[default]
    Sensitive,
    /// `Sale` and `sale` are one slug.
    Insensitive,
}

impl CaseMode {
    /// What the domain compares: two slugs are the same exactly if their keys are.
    pub fn key(self, slug: &Slug) -> Cow<'_, str> {
        match self {
            Self::Sensitive => Cow::Borrowed(slug.as_str()),
            Self::Insensitive => Cow::Owned(slug.folded()),
        }
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sensitive => "sensitive",
            Self::Insensitive => "insensitive",
        }
    }
}

impl FromStr for CaseMode {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text {
            "sensitive" => Ok(Self::Sensitive),
            "insensitive" => Ok(Self::Insensitive),
            other => Err(ValueError::new("case mode", other, "sensitive, insensitive")),
        }
    }
}

/// What a workspace has subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Plan {
    /// The default.
    #[default]
    Free,
    /// For one team.
    Pro,
    /// For several.
    Business,
    /// By contract.
    Enterprise,
}

impl Plan {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Pro => "pro",
            Self::Business => "business",
            Self::Enterprise => "enterprise",
        }
    }
}

impl FromStr for Plan {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        [Self::Free, Self::Pro, Self::Business, Self::Enterprise]
            .into_iter()
            .find(|plan| plan.as_str() == text)
            .ok_or_else(|| ValueError::new("plan", text, "free, pro, business, enterprise"))
    }
}

/// The longest [`Name`], in Unicode scalar values.
pub const NAME_LENGTH_MAX: usize = 500;

/// The name of a tag, a folder, a workspace or a token: not blank, without blanks around it, case kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// Why text is not a [`Name`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing but blanks.
    #[error("a name must not be blank")]
    Blank,
    /// Longer than [`NAME_LENGTH_MAX`].
    #[error("a name has {0} characters, more than {NAME_LENGTH_MAX}")]
    TooLong(usize),
}

impl Name {
    /// Trims the text and checks it.
    ///
    /// # Errors
    /// [`NameError`] if it is blank or too long.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let text = text.trim();
        let length = text.chars().count();
        if length == 0 {
            return Err(NameError::Blank);
        }
        if length > NAME_LENGTH_MAX {
            return Err(NameError::TooLong(length));
        }
        Ok(Self(without_nul(text.to_owned())))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn stored(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Free text such as a title: any characters, except that U+0000, which Postgres cannot keep, becomes U+FFFD.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Text(String);

impl Text {
    /// Takes any text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(without_nul(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn stored(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn without_nul(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// A JSON document, kept as its text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Json(String);

/// Text that is not JSON.
#[derive(Debug, thiserror::Error)]
#[error("not a JSON document: {0}")]
pub struct JsonError(#[from] serde_json::Error);

impl Json {
    /// Checks the text; it is kept as it is.
    ///
    /// # Errors
    /// [`JsonError`] with the place at which it ceases to be JSON.
    pub fn new(text: impl Into<String>) -> Result<Self, JsonError> {
        let text = text.into();
        serde_json::from_str::<serde::de::IgnoredAny>(&text)?;
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn stored(text: String) -> Self {
        Self(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_come_back() {
        for plan in ["free", "pro", "business", "enterprise"] {
            assert_eq!(plan.parse::<Plan>().unwrap().as_str(), plan);
        }
        for mode in ["sensitive", "insensitive"] {
            assert_eq!(mode.parse::<CaseMode>().unwrap().as_str(), mode);
        }
        for code in [301, 302, 307, 308] {
            assert_eq!(i64::from(RedirectCode::try_from(code).unwrap().number()), code);
        }
        let error = RedirectCode::try_from(303).unwrap_err();
        assert_eq!(error.to_string(), "'303' is no redirect code; known are 301, 302, 307, 308");
    }

    #[test]
    fn texts_keep_everything_but_nul() {
        assert_eq!(Text::new("a\0b\n\u{1}").as_str(), "a\u{fffd}b\n\u{1}");
        assert_eq!(Name::new(" A-b ").unwrap().as_str(), "A-b");
        assert_eq!(Name::new(" \t"), Err(NameError::Blank));
        assert!(Json::new("{\"a\":1e400}").is_ok());
        assert!(Json::new("{\"a\":}").is_err());
    }
}
