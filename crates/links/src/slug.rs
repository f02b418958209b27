//! What stands behind the host in a short URL.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::percent_decode_str;
use rand::{Rng, RngCore};
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// The longest slug, in Unicode scalar values after normalisation. Folded it stays below the 2,704 bytes that
/// a Postgres index entry may have.
pub const SLUG_LENGTH_MAX: usize = 255;

/// The length of generated slugs before the first collision.
pub const GENERATED_LENGTH: usize = 7;

/// Without 0, O, 1, l and I, which people mix up, and without vowels, which make words. One case only, so that a
/// generated slug is as unique on a case-insensitive domain.
const ALPHABET: &[u8; 28] = b"23456789bcdfghjkmnpqrstvwxyz";

/// Names that browsers and crawlers ask every host for (RFC 8615, RFC 9309).
const RESERVED: [&str; 3] = [".well-known", "favicon.ico", "robots.txt"];

/// The path of a short URL without its leading slash, as NFC text: `sale`, `docs/setup.sh`, `구글`, `🚀`.
///
/// The case is kept. Any character may stand in it that can travel in a path and is neither white space nor a
/// control character, except `?`, `#`, `%` and `\`. A trailing slash belongs to the slug.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slug(String);

/// Why text is not a slug.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlugError {
    /// Nothing is left: that is the root of the domain.
    #[error("a slug must not be empty")]
    Empty,
    /// A segment is `.` or `..`, which clients resolve before they ask.
    #[error("slug '{0}' has a segment '.' or '..', which browsers resolve away")]
    DotSegment(String),
    /// It begins with a slash.
    #[error("slug '{0}' begins with '/'")]
    LeadingSlash(String),
    /// It has an empty segment in the middle.
    #[error("slug '{0}' contains '//'")]
    DoubleSlash(String),
    /// A character that does not arrive as part of a path.
    #[error("slug '{slug}' contains {character:?}, which cannot be part of a short link's path")]
    Character {
        /// The text as given, shortened.
        slug: String,
        /// The first such character.
        character: char,
    },
    /// Longer than [`SLUG_LENGTH_MAX`].
    #[error("slug '{slug}' has {length} characters, more than {SLUG_LENGTH_MAX}")]
    TooLong {
        /// The beginning of it.
        slug: String,
        /// Its length in Unicode scalar values.
        length: usize,
    },
    /// With the suffix it would be longer than [`SLUG_LENGTH_MAX`].
    #[error("slug '{slug}' with the suffix '-{suffix}' would have more than {SLUG_LENGTH_MAX} characters")]
    SuffixTooLong {
        /// The slug without the suffix.
        slug: String,
        /// The number that did not fit.
        suffix: u32,
    },
    /// The percent-encoded bytes are not UTF-8.
    #[error("the path is not UTF-8 once percent-decoded")]
    Encoding,
}

impl Slug {
    /// Checks and normalises (NFC) text that is not percent-encoded.
    ///
    /// # Errors
    /// [`SlugError`] names the rule that the text breaks.
    pub fn new(text: &str) -> Result<Self, SlugError> {
        let text: Cow<'_, str> =
            if is_nfc(text) { text.into() } else { text.nfc().collect::<String>().into() };
        check(&text)?;
        Ok(Self(text.into_owned()))
    }

    /// What to look up for the path of a request: one leading slash is dropped, the rest percent-decoded exactly
    /// once and normalised. `+` is a plus. Where no slug can be so long, one trailing slash is dropped, too: `/a/` leads to
    /// `a` for the longest slugs as well.
    ///
    /// # Errors
    /// [`SlugError`] if no slug can have that path; then no link has it either.
    pub fn from_path(path: &str) -> Result<Self, SlugError> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let text = percent_decode_str(path).decode_utf8().map_err(|_| SlugError::Encoding)?;
        match (Self::new(&text), text.strip_suffix('/')) {
            (Err(SlugError::TooLong { .. }), Some(bare)) => Self::new(bare),
            (slug, _) => slug,
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form in which case-insensitive domains compare slugs: Unicode default case folding, in NFC.
    pub fn folded(&self) -> String {
        if self.0.is_ascii() {
            return self.0.to_ascii_lowercase();
        }
        // Canonical caseless matching: decompose, fold, compose (The Unicode Standard, section 3.13, D145).
        let decomposed: String = self.0.nfd().collect();
        caseless::default_case_fold_str(&decomposed).nfc().collect()
    }

    /// `sale` and 2 make `sale-2`.
    ///
    /// # Errors
    /// [`SlugError::SuffixTooLong`] past the limit.
    pub fn with_suffix(&self, suffix: u32) -> Result<Self, SlugError> {
        Self::new(&format!("{}-{suffix}", self.0)).map_err(|error| match error {
            SlugError::TooLong { .. } => SlugError::SuffixTooLong { slug: shown(&self.0), suffix },
            other => other,
        })
    }

    /// A random slug of at least [`GENERATED_LENGTH`] characters that are hard to mix up.
    pub fn generate(chance: &mut dyn RngCore, length: usize) -> Self {
        let length = length.clamp(GENERATED_LENGTH, SLUG_LENGTH_MAX);
        Self((0..length).map(|_| char::from(ALPHABET[chance.random_range(0..ALPHABET.len())])).collect())
    }

    /// The name reserved for what browsers ask, if this slug is one or lies below one.
    pub fn reserved(&self) -> Option<&'static str> {
        let folded = self.folded();
        RESERVED.into_iter().find(|name| {
            folded.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// The same link's path when a client adds or leaves out a trailing slash: `a/` for `a`, `a` for `a/`.
    /// `None` if that is no slug.
    pub fn other_slash(&self) -> Option<Self> {
        match self.0.strip_suffix('/') {
            Some(bare) => Self::new(bare).ok(),
            None => Self::new(&format!("{}/", self.0)).ok(),
        }
    }

    pub(crate) fn stored(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for Slug {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

fn check(text: &str) -> Result<(), SlugError> {
    let length = text.chars().count();
    if length == 0 {
        return Err(SlugError::Empty);
    }
    if length > SLUG_LENGTH_MAX {
        return Err(SlugError::TooLong { slug: shown(text), length });
    }
    if let Some(character) = text.chars().find(|&c| !may_stand(c)) {
        return Err(SlugError::Character { slug: shown(text), character });
    }
    if text.starts_with('/') {
        return Err(SlugError::LeadingSlash(shown(text)));
    }
    if text.contains("//") {
        return Err(SlugError::DoubleSlash(shown(text)));
    }
    if text.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(SlugError::DotSegment(shown(text)));
    }
    Ok(())
}

/// `?` and `#` end a path, `\` is a slash to browsers, and a `%` would be decoded again somewhere.
fn may_stand(character: char) -> bool {
    !character.is_control() && !character.is_whitespace() && !matches!(character, '?' | '#' | '%' | '\\')
}

/// Text for messages, without its control characters and not longer than needed to recognise it.
fn shown(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;

    fn slug(text: &str) -> Slug {
        Slug::new(text).unwrap()
    }

    #[test]
    fn a3_42_the_longest_slug_is_found_behind_a_slash_too() {
        let longest = "ö".repeat(SLUG_LENGTH_MAX);
        for path in [longest.clone(), format!("/{longest}"), format!("/{longest}/")] {
            assert_eq!(Slug::from_path(&path), Ok(slug(&longest)), "{path}");
        }
        for path in [format!("/{longest}//"), format!("/{longest}x/"), format!("/{longest}x")] {
            assert!(matches!(Slug::from_path(&path), Err(SlugError::TooLong { .. })), "{path}");
        }
        assert_eq!(Slug::from_path("/a/"), Ok(slug("a/")), "shorter ones keep theirs");
    }

    #[test]
    fn a3_38_44_48_49_what_people_use_is_allowed_and_kept() {
        for text in [
            "Abc",
            "a/b",
            "a/b/",
            "구글",
            "🚀",
            "👩‍🚀",
            "setup.sh",
            "photo.png",
            "v1.2",
            "api",
            "health",
            "rest",
            "a_b-c~d",
            "a!$&'()*+,;=:@b",
            "...",
            ".a",
            "a..b",
            "1&utm=x",
            "ö",
        ] {
            assert_eq!(slug(text).as_str(), text);
        }
    }

    #[test]
    fn a3_46_what_cannot_be_reached_is_refused_with_its_reason() {
        let character = |slug: &str, character| SlugError::Character { slug: slug.into(), character };
        for (text, reason) in [
            ("", SlugError::Empty),
            (".", SlugError::DotSegment(".".into())),
            ("..", SlugError::DotSegment("..".into())),
            ("a/../b", SlugError::DotSegment("a/../b".into())),
            ("a/.", SlugError::DotSegment("a/.".into())),
            ("/a", SlugError::LeadingSlash("/a".into())),
            ("/", SlugError::LeadingSlash("/".into())),
            ("a//b", SlugError::DoubleSlash("a//b".into())),
            ("abc?env=prod", character("abc?env=prod", '?')),
            ("a#b", character("a#b", '#')),
            ("50%", character("50%", '%')),
            ("a\\b", character("a\\b", '\\')),
            ("a b", character("a b", ' ')),
            ("a\u{a0}b", character("a\u{a0}b", '\u{a0}')),
            ("a\nb", character("a\u{fffd}b", '\n')),
            ("a\u{0}b", character("a\u{fffd}b", '\u{0}')),
        ] {
            assert_eq!(Slug::new(text).unwrap_err(), reason, "{text:?}");
        }
        let long = "é".repeat(SLUG_LENGTH_MAX + 1);
        assert!(matches!(Slug::new(&long), Err(SlugError::TooLong { length: 256, .. })));
        assert!(Slug::new(&"é".repeat(SLUG_LENGTH_MAX)).is_ok());
        // Two scalar values that become one: counted after normalisation.
        assert!(Slug::new(&"e\u{301}".repeat(SLUG_LENGTH_MAX)).is_ok());
    }

    #[test]
    fn a3_45_a_path_is_decoded_once_and_normalised() {
        for (path, expected) in [
            ("/%C3%B6", "ö"),
            ("/o%CC%88", "ö"),
            ("/ö", "ö"),
            ("/%EA%B5%AC%EA%B8%80", "구글"),
            ("/%F0%9F%9A%80", "🚀"),
            ("/a%2Fb", "a/b"),
            ("/a+b", "a+b"),
            ("a", "a"),
            ("/a/", "a/"),
        ] {
            assert_eq!(Slug::from_path(path).unwrap(), slug(expected), "{path}");
        }
        assert_eq!(Slug::from_path("/"), Err(SlugError::Empty));
        assert_eq!(Slug::from_path("/%ff"), Err(SlugError::Encoding));
        for path in
            ["/%2541", "/%zz", "/%", "/%4", "/a%00", "/%3f", "/%23", "/..%2f..%2fetc", "//evil.example"]
        {
            assert!(Slug::from_path(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a3_35_39_folding_is_unicodes_and_final() {
        for (a, b) in [
            ("GitHub", "github"),
            ("ABC", "abc"),
            ("STRASSE", "straße"),
            ("ΣΑΣ", "σας"),
            ("É", "e\u{301}"),
            ("K", "k"),
        ] {
            assert_eq!(slug(a).folded(), slug(b).folded(), "{a} {b}");
        }
        assert_ne!(slug("ı").folded(), slug("i").folded());
        assert_ne!(slug("a").folded(), slug("á").folded());
    }

    #[test]
    fn a3_49_names_that_browsers_ask_for_are_reserved() {
        for (text, name) in [
            ("robots.txt", Some("robots.txt")),
            ("Robots.TXT", Some("robots.txt")),
            ("favicon.ico", Some("favicon.ico")),
            (".well-known/acme-challenge/x", Some(".well-known")),
            (".well-known", Some(".well-known")),
            (".well-knownx", None),
            ("robots.txt2", None),
            ("api", None),
            ("health", None),
        ] {
            assert_eq!(slug(text).reserved(), name, "{text}");
        }
    }

    #[test]
    fn a3_50_generated_slugs_have_only_characters_nobody_mixes_up() {
        let mut chance = rand::rngs::StdRng::seed_from_u64(50);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..10_000 {
            let slug = Slug::generate(&mut chance, 0);
            assert!(
                slug.as_str().len() >= 7 && slug.as_str().bytes().all(|b| ALPHABET.contains(&b)),
                "{slug}"
            );
            assert_eq!(slug.folded(), slug.as_str());
            seen.insert(slug);
        }
        assert!(seen.len() > 9_990);
    }

    #[test]
    fn a_suffix_past_the_limit_names_slug_and_suffix() {
        assert_eq!(slug("mylink").with_suffix(2).unwrap(), slug("mylink-2"));
        let long = slug(&"x".repeat(SLUG_LENGTH_MAX - 1));
        assert!(matches!(long.with_suffix(2), Err(SlugError::SuffixTooLong { suffix: 2, .. })));
    }

    #[test]
    fn a3_42_the_other_spelling_of_a_trailing_slash() {
        assert_eq!(slug("a/b").other_slash(), Some(slug("a/b/")));
        assert_eq!(slug("a/b/").other_slash(), Some(slug("a/b")));
        assert_eq!(slug(&"x".repeat(SLUG_LENGTH_MAX)).other_slash(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_slug_or_an_error(text in "\\PC*|.*") {
            if let Ok(slug) = Slug::new(&text) {
                prop_assert_eq!(&Slug::new(slug.as_str()).unwrap(), &slug);
                let folded = Slug::stored(slug.folded());
                prop_assert_eq!(folded.folded(), folded.as_str());
                prop_assert!(slug.folded().len() < 2704);
            }
        }

        #[test]
        fn any_path_can_be_asked(path in "(%[0-9a-fA-F]{0,2}|[a-z/.?#]|.)*") {
            let _ = Slug::from_path(&path);
        }

        #[test]
        fn an_encoded_slug_is_found_again(text in "[\\PC&&[^?#%\\\\/]]{1,40}") {
            if let Ok(slug) = Slug::new(&text) {
                let path = percent_encoding::utf8_percent_encode(slug.as_str(), percent_encoding::NON_ALPHANUMERIC);
                prop_assert_eq!(Slug::from_path(&format!("/{path}")).unwrap(), slug);
            }
        }
    }
}
