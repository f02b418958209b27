//! Where visitors of single countries go.

use std::collections::BTreeMap;
use std::fmt;

use crate::destination::shown;
use crate::{DESTINATION_LENGTH_MAX, Destination, DestinationError};

/// A country's code of two letters, in upper case (ISO 3166-1 alpha-2). Whether the country exists is not known here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Country([u8; 2]);

impl Country {
    /// Reads two letters of either case.
    pub fn new(text: &str) -> Option<Self> {
        let letters: [u8; 2] = text.as_bytes().try_into().ok()?;
        letters
            .iter()
            .all(u8::is_ascii_alphabetic)
            .then(|| Self(letters.map(|byte| byte.to_ascii_uppercase())))
    }

    /// The two letters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("the letters are ASCII")
    }
}

impl fmt::Display for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why something is not the destination of a country.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeoError {
    /// The key is not two letters.
    #[error("geo.{0}: '{0}' is no country; write two letters, for example DE")]
    Country(String),
    /// The country came before, perhaps in the other case.
    #[error("geo.{0} is given twice")]
    Twice(Country),
    /// What applies to every destination applies to these.
    #[error("geo.{country}: '{given}' is refused: {reason}")]
    Destination {
        /// The country.
        country: Country,
        /// The beginning of what was given for it.
        given: String,
        /// The rule it breaks.
        reason: DestinationError,
    },
}

/// Destinations by country, each under the rules of any [`Destination`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Geo(BTreeMap<Country, Destination>);

impl Geo {
    /// Adds a country's destination.
    ///
    /// # Errors
    /// [`GeoError`] names the country and what was given; then nothing is added.
    pub fn insert(&mut self, country: &str, url: &str) -> Result<(), GeoError> {
        self.insert_with_limit(country, url, DESTINATION_LENGTH_MAX)
    }

    /// As [`Geo::insert`], with another limit of characters.
    ///
    /// # Errors
    /// As [`Geo::insert`].
    pub fn insert_with_limit(&mut self, country: &str, url: &str, limit: usize) -> Result<(), GeoError> {
        let country = Country::new(country).ok_or_else(|| GeoError::Country(shown(country)))?;
        if self.0.contains_key(&country) {
            return Err(GeoError::Twice(country));
        }
        let destination = Destination::with_limit(url, limit).map_err(|reason| GeoError::Destination {
            country,
            given: shown(url),
            reason,
        })?;
        self.0.insert(country, destination);
        Ok(())
    }

    /// Whether no country has a destination of its own.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Countries and their destinations, in the order of the codes.
    pub fn iter(&self) -> impl Iterator<Item = (Country, &Destination)> {
        self.0.iter().map(|(country, destination)| (*country, destination))
    }
}

/// Destinations by country in the form in which they are stored, `{"DE":"https://…"}`. It is made of a [`Geo`] alone, so
/// that nothing unchecked gets into a link; what was stored before is kept byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GeoJson(String);

impl GeoJson {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn stored(text: String) -> Self {
        Self(text)
    }
}

impl From<Geo> for GeoJson {
    fn from(geo: Geo) -> Self {
        let texts: BTreeMap<&str, &str> =
            geo.0.iter().map(|(country, url)| (country.as_str(), url.as_str())).collect();
        Self(serde_json::to_string(&texts).expect("a map of texts is JSON"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn countries_come_in_either_case_and_are_kept_in_one_form() {
        let mut geo = Geo::default();
        geo.insert("de", "https://example.de/ü").unwrap();
        geo.insert("AT", "market://details?id=x").unwrap();
        assert_eq!(geo.insert("DE", "https://x.example/"), Err(GeoError::Twice(Country(*b"DE"))));
        assert_eq!(
            geo.iter().map(|(country, _)| country).collect::<Vec<_>>(),
            [Country(*b"AT"), Country(*b"DE")]
        );
        let stored = r#"{"AT":"market://details?id=x","DE":"https://example.de/ü"}"#;
        assert_eq!(GeoJson::from(geo).as_str(), stored);
    }

    #[test]
    fn a4_60_what_no_destination_may_be_no_countrys_may_be_and_the_error_names_it() {
        let mut geo = Geo::default();
        let told = geo.insert("DE", "javascript:alert(1)").unwrap_err().to_string();
        assert_eq!(
            told,
            "geo.DE: 'javascript:alert(1)' is refused: destinations of the kind 'javascript:' are refused"
        );
        for url in ["", "data:text/html,x", "java\nscript:alert(1)", "example.com/x", "https://"] {
            let refused = geo.insert("DE", url);
            assert!(matches!(refused, Err(GeoError::Destination { .. })), "{url:?}: {refused:?}");
        }
        for country in ["", "D", "DEU", "D1", "ü", "d\n", "de-AT", "*"] {
            let refused = geo.insert(country, "https://example.com/");
            assert!(matches!(refused, Err(GeoError::Country(_))), "{country:?}: {refused:?}");
        }
        assert!(geo.is_empty());
        let told = geo.insert("a\u{1}b", "https://example.com/").unwrap_err().to_string();
        assert!(told.starts_with("geo.a\u{fffd}b: "), "{told:?}");
    }
}
