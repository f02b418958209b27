//! Where a link leads.

mod location;
mod scheme;

use std::fmt;

use percent_encoding::percent_decode_str;

use crate::{CaseMode, Host, Slug};

/// The longest destination, in Unicode scalar values (the longest that any of the vendors keeps).
pub const DESTINATION_LENGTH_MAX: usize = 32_000;

/// An absolute URL, kept exactly as given.
///
/// `http` and `https` with a host, and the schemes of other programs and apps (`mailto:…`, `tel:…`, `myapp://…`,
/// `com.example.app:/…`). Schemes that run something or read local files are refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination(String);

/// Why text is not a destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// Nothing was given.
    #[error("a destination must not be empty")]
    Empty,
    /// Longer than allowed.
    #[error("the destination has {length} characters, more than {limit}")]
    TooLong {
        /// Its length in Unicode scalar values.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// It has no scheme.
    #[error("'{0}' is not an absolute URL; begin with https://")]
    Relative(String),
    /// The scheme may run a script or read a file.
    #[error("destinations of the kind '{0}:' are refused")]
    Scheme(String),
    /// White space in front, or control characters anywhere.
    #[error("the destination contains {0:?}, which no URL may contain there")]
    Character(char),
    /// A web address without a usable host.
    #[error("'{0}' has no valid host name")]
    Host(String),
}

impl Destination {
    /// Checks a destination; its bytes are kept.
    ///
    /// # Errors
    /// [`DestinationError`] names the rule that the text breaks.
    pub fn new(text: impl Into<String>) -> Result<Self, DestinationError> {
        Self::with_limit(text, DESTINATION_LENGTH_MAX)
    }

    /// As [`Destination::new`], with another limit of characters.
    ///
    /// # Errors
    /// [`DestinationError`] names the rule that the text breaks.
    pub fn with_limit(text: impl Into<String>, limit: usize) -> Result<Self, DestinationError> {
        let text = text.into();
        check(&text, limit)?;
        Ok(Self(text))
    }

    /// The text as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this destination is the short URL `host/slug` itself, so that a visitor would never arrive.
    pub fn is_self_reference(&self, host: &Host, slug: &Slug, case: CaseMode) -> bool {
        let Some(web) = scheme::web(&self.0) else { return false };
        // Browsers decode a host once before they look it up (WHATWG URL, 3.5).
        let own_host = percent_decode_str(web.host_and_port()).decode_utf8_lossy();
        let Ok(own_host) = Host::new(&own_host) else { return false };
        let Ok(own_slug) = Slug::from_path(web.path()) else { return false };
        let same = |other: &Slug| case.key(other) == case.key(slug);
        own_host == *host && (same(&own_slug) || own_slug.other_slash().is_some_and(|other| same(&other)))
    }

    /// Text that was checked when it was written.
    pub(crate) fn stored(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn check(text: &str, limit: usize) -> Result<(), DestinationError> {
    if text.is_empty() {
        return Err(DestinationError::Empty);
    }
    let length = text.chars().count();
    if length > limit {
        return Err(DestinationError::TooLong { length, limit });
    }
    // Browsers drop tabs, line ends and leading blanks before they look at the scheme (WHATWG URL, 4.4).
    if let Some(character) = text.chars().find(|c| c.is_control()) {
        return Err(DestinationError::Character(character));
    }
    if let Some(character) = text.chars().next().filter(|c| c.is_whitespace()) {
        return Err(DestinationError::Character(character));
    }
    scheme::check(text)
}

/// The beginning of a text, for messages, without its control characters.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN: usize = 80;
    let printable = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let mut shown: String = text.chars().take(SHOWN).map(printable).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(text: &str) -> Result<Destination, DestinationError> {
        Destination::new(text)
    }

    #[test]
    fn a4_what_leads_somewhere_is_accepted_and_kept_byte_for_byte() {
        for text in [
            "https://example.com/?abc#123",
            "https://example.com/ü?q=%25",
            "http://tübingen.example/",
            "https://example.com/产品",
            "HTTPS://Example.COM/TeSt",
            "https://user:pass@example.com:8443/a b?c=d&e#f#g",
            "https://[2001:db8::1]/x",
            "https://my_host.example.com/",
            "https://example.com",
            "com.example.app://open?x=1",
            "com.example.app:/oauth",
            "myapp://",
            "mailto:a@example.com",
            "tel:+100",
            "sms:+100?body=x",
            "market://details?id=x",
            "intent://scan/#Intent;scheme=zxing;end",
            "intent:#Intent;scheme=x;end",
            "mms:+100",
            "mmsto:+100",
            "msteams:/l/x",
            "MSTeams:/l/x",
            "web+x:y",
            "line:ti/p/x",
            "com.example.app:open?x=1",
            "spotify:search:file+data",
            "scriptable:///run/x",
            "feed:https://example.com/rss",
            "sms:12345",
            "geo:52,13",
            "bitcoin:175tWpb8K1S7NmH4Zx6rewF9WQrcZv245W",
            "mailto: a@example.com",
            "unknown:thing",
        ] {
            assert_eq!(new(text).map(|d| d.0).as_deref(), Ok(text), "{text}");
        }
    }

    #[test]
    fn a4_60_what_runs_or_reads_something_is_refused_however_it_is_written() {
        for text in [
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "javascript://%0aalert(1)",
            "data:text/html,<script>1</script>",
            "data://x",
            "file:///etc/passwd",
            "vbscript:x",
            "blob:https://example.com/x",
            "about:blank",
            "view-source:https://example.com/",
            "filesystem:https://example.com/x",
            "jar:https://example.com/x!/y",
            "jscript:x",
            "VbScript:x",
            "chrome://settings",
            "chrome-search:x",
            "moz-icon://x",
            "ms-browser-extension://x/y",
            "ms-msdt:/id PCWDiagnostic",
            "search-ms:query=x",
            "content://com.android.x/1",
            "feed:javascript:alert(1)",
            "feed: JAVASCRIPT:alert(1)",
            "googlechrome:view-source:https://example.com/",
            "pcast:feed:data:text/html,x",
        ] {
            assert!(matches!(new(text), Err(DestinationError::Scheme(_))), "{text}: {:?}", new(text));
        }
        for text in [
            "java\nscript:alert(1)",
            "javascript\t:alert(1)",
            "JAVA\rSCRIPT:alert(1)",
            "da\u{0}ta:text/html,x",
            "\u{85}javascript:alert(1)",
            " javascript:alert(1)",
            "\u{1}javascript:alert(1)",
            "https://example.com/a\tb",
            "https://example.com/\u{7f}",
        ] {
            assert!(matches!(new(text), Err(DestinationError::Character(_))), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_absolute_url_is_refused_with_a_hint() {
        assert_eq!(new(""), Err(DestinationError::Empty));
        for text in [
            "example.com/x",
            "/x",
            "//example.com/x",
            "www.example.com",
            "example.com:8080/x",
            "localhost:8080",
            ":x",
            "?a:b",
            "tel:",
            "example.com:80?x",
            "C:/Windows/x",
            "c:\\Windows\\x",
            "java script:alert(1)",
            "javascript :alert(1)",
            "java\u{200b}script:alert(1)",
            "java%73cript:alert(1)",
            "ｊavascript:alert(1)",
            "\u{feff}javascript:alert(1)",
        ] {
            assert!(matches!(new(text), Err(DestinationError::Relative(_))), "{text}: {:?}", new(text));
        }
        for text in [
            "https://",
            "https:///path",
            "http://?x",
            "https:example.com",
            "https://exa mple.com/",
            "https://:80/",
            "https://x:port/",
            "http://a@/",
        ] {
            assert!(matches!(new(text), Err(DestinationError::Host(_))), "{text}: {:?}", new(text));
        }
    }

    #[test]
    fn a4_57_long_destinations_are_kept_whole_up_to_the_limit() {
        let of = |length: usize| format!("https://example.com/{}", "é".repeat(length - 20));
        for length in [2_049, 8_192, 32_000] {
            assert_eq!(new(&of(length)).unwrap().as_str().chars().count(), length);
        }
        assert_eq!(new(&of(32_001)), Err(DestinationError::TooLong { length: 32_001, limit: 32_000 }));
        assert!(Destination::with_limit(of(32_001), 40_000).is_ok());
    }

    #[test]
    fn a4_61_case_tells_destinations_apart() {
        assert_ne!(new("https://example.com/test"), new("https://example.com/TeSt"));
    }

    #[test]
    fn a_destination_that_is_the_short_url_itself_is_noticed() {
        let host = Host::new("go.example.com").unwrap();
        let slug = |text: &str| Slug::new(text).unwrap();
        for (text, given, case, expected) in [
            ("https://go.example.com/Sale", "Sale", CaseMode::Sensitive, true),
            ("http://GO.example.com:80/Sale/?utm=1#x", "Sale", CaseMode::Sensitive, true),
            ("https://go.example.com/%C3%B6", "ö", CaseMode::Sensitive, true),
            ("https://go%2Eexample.com/Sale", "Sale", CaseMode::Sensitive, true),
            ("https://%67o.%65xample.com:443/Sale", "Sale", CaseMode::Sensitive, true),
            ("https://t%C3%BCbingen.example/Sale", "Sale", CaseMode::Sensitive, false),
            ("https://go.example.com/sale", "Sale", CaseMode::Sensitive, false),
            ("https://go.example.com/sale", "Sale", CaseMode::Insensitive, true),
            ("https://go.example.com/sale2", "sale", CaseMode::Insensitive, false),
            ("https://www.example.com/Sale", "Sale", CaseMode::Sensitive, false),
            ("https://go.example.com@evil.example/Sale", "Sale", CaseMode::Sensitive, false),
            ("mailto:go.example.com/Sale", "Sale", CaseMode::Sensitive, false),
            ("https://go.example.com", "Sale", CaseMode::Sensitive, false),
        ] {
            assert_eq!(new(text).unwrap().is_self_reference(&host, &slug(given), case), expected, "{text}");
        }
    }
}
