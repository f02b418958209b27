//! Where a domain sends those who ask for a slug that does not exist.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{Destination, DestinationError};

const PLACEHOLDER: &str = "{slug}";

/// What stays as it is in a path segment (RFC 3986, section 2.3), and the slash between segments.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// A destination in which `{slug}` stands for the slug that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback(String);

impl Fallback {
    /// Checks the URL. The placeholder may stand in the path, the query and the fragment: in front of them a visitor
    /// could choose the host he is sent to.
    ///
    /// # Errors
    /// [`DestinationError`] if it is no destination once a slug stands in it.
    pub fn new(text: impl Into<String>) -> Result<Self, DestinationError> {
        let text = text.into();
        Destination::new(text.replace(PLACEHOLDER, "slug"))?;
        if !text.split_once(PLACEHOLDER).is_none_or(|(before, _)| names_a_host(before)) {
            return Err(DestinationError::Host(text));
        }
        Ok(Self(text))
    }

    /// The text with its placeholder.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The destination for what was asked: the decoded path without its leading slash, whatever it is.
    ///
    /// # Errors
    /// [`DestinationError::TooLong`] for absurdly long paths.
    pub fn destination(&self, asked: &str) -> Result<Destination, DestinationError> {
        let encoded = utf8_percent_encode(asked, KEPT).to_string();
        Destination::new(self.0.replace(PLACEHOLDER, &encoded))
    }

    pub(crate) fn stored(text: String) -> Self {
        Self(text)
    }
}

/// Whether scheme, host and the beginning of what follows them stand in the text.
fn names_a_host(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.contains('/') && rest.find(['/', '?', '#']) > Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slug_is_encoded_into_the_fallback() {
        let fallback = Fallback::new("https://old.example.com/{slug}?from={slug}").unwrap();
        assert_eq!(
            fallback.destination("ö/b&c?d#e").unwrap().as_str(),
            "https://old.example.com/%C3%B6/b%26c%3Fd%23e?from=%C3%B6/b%26c%3Fd%23e"
        );
        assert_eq!(
            Fallback::new("https://example.com/404").unwrap().destination("x").unwrap().as_str(),
            "https://example.com/404"
        );
    }

    #[test]
    fn a_slug_cannot_choose_the_host_or_the_scheme() {
        for text in [
            "{slug}",
            "javascript:{slug}",
            "{slug}://example.com",
            "https://{slug}",
            "https://{slug}.example.com/",
            "https://example.com{slug}",
            "https://example.com:{slug}/",
            "tel:{slug}",
        ] {
            assert!(Fallback::new(text).is_err(), "{text}");
        }
        let fallback = Fallback::new("https://example.com/{slug}").unwrap();
        assert_eq!(
            fallback.destination("/evil.example").unwrap().as_str(),
            "https://example.com//evil.example"
        );
    }
}
