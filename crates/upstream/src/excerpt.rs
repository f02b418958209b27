//! What of a foreign text may appear in an error or a log line.

use std::fmt::Write as _;

use http::HeaderValue;
use url::Url;

/// Most characters of a foreign text that are shown.
const EXCERPT_MAX_CHARS: usize = 200;
/// An excerpt is looked for in this many bytes at the beginning.
const SEARCHED_MAX_BYTES: usize = 4 * 1024;
/// Stands where a secret stood.
const REDACTED: &str = "[redacted]";
/// Parts of a credential shorter than this are schemes and words, not secrets.
const SECRET_MIN_CHARS: usize = 4;
/// Words in the name of a query parameter that make its value a secret.
const SECRET_NAMES: [&str; 8] =
    ["token", "secret", "password", "passwd", "apikey", "api_key", "auth", "signature"];

/// The secrets of one attempt; takes them out of what servers send back.
#[derive(Default)]
pub(crate) struct Scrubber {
    secrets: Vec<String>,
}

impl Scrubber {
    /// Knows the header value, its parts (`Bearer`, the token), and each as it would look in a URL.
    pub(crate) fn for_value(value: &HeaderValue) -> Self {
        let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
        let parts = text.split_ascii_whitespace().skip(1).chain([text.as_str()]);
        let mut secrets: Vec<String> = Vec::new();
        for part in parts.filter(|part| part.chars().count() >= SECRET_MIN_CHARS) {
            secrets.push(part.to_owned());
            secrets.push(url::form_urlencoded::byte_serialize(part.as_bytes()).collect());
        }
        // Longest first, or a part would be replaced inside the whole and leave the rest standing.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// At most 200 characters on one line, without the secrets.
    pub(crate) fn excerpt(&self, body: &[u8]) -> String {
        let searched = &body[..body.len().min(SEARCHED_MAX_BYTES)];
        one_line(&self.without_secrets(&String::from_utf8_lossy(searched)))
    }

    /// As [`shown`], without the secrets, should a redirect have put one there.
    pub(crate) fn shown(&self, url: &Url) -> String {
        self.without_secrets(&shown(url))
    }

    fn without_secrets(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), REDACTED))
    }
}

fn one_line(text: &str) -> String {
    let text = text.trim();
    let mut line = String::new();
    for (position, character) in text.chars().enumerate() {
        if position == EXCERPT_MAX_CHARS {
            line.push('…');
            break;
        }
        if is_plain(character) {
            line.push(character);
        } else {
            write!(line, "{}", character.escape_default()).expect("a String takes every write");
        }
    }
    line
}

/// Controls could forge log lines, and marks of direction could turn the text around.
fn is_plain(character: char) -> bool {
    let turns_text =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks_line = matches!(character, '\u{2028}' | '\u{2029}');
    !(character.is_control() || turns_text || breaks_line)
}

/// A URL for people: without user, fragment, and the values of parameters that sound secret.
pub(crate) fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    // Only URLs without a host refuse these two, and they have no user either.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_fragment(None);
    if url.query_pairs().any(|(name, _)| is_secret_name(&name)) {
        let mut pairs = shown.query_pairs_mut();
        pairs.clear();
        for (name, value) in url.query_pairs() {
            let value = if is_secret_name(&name) { "***" } else { &*value };
            pairs.append_pair(&name, value);
        }
        drop(pairs);
    }
    one_line(shown.as_str())
}

/// A text that should be a URL and is none: without query and user, for it cannot be taken apart.
pub(crate) fn shown_text(text: &str) -> String {
    let before_query = text.split(['?', '#']).next().unwrap_or_default();
    one_line(before_query.rsplit('@').next().unwrap_or_default())
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // A page token is a position and needed to understand an error; it opens nothing.
    let is_cursor = name.contains("page") || name.contains("next") || name.contains("continuation");
    !is_cursor && (name == "key" || SECRET_NAMES.iter().any(|word| name.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubber(value: &str) -> Scrubber {
        Scrubber::for_value(&HeaderValue::from_str(value).unwrap())
    }

    #[test]
    fn excerpts_are_one_short_line() {
        let long = "é".repeat(300);
        let cut = format!("{}…", "é".repeat(200));
        let cases: [(&[u8], &str); 6] = [
            (b" plain ", "plain"),
            (b"a\nb\x00c\x1b[31m", "a\\nb\\u{0}c\\u{1b}[31m"),
            (b"", ""),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
            ("left\u{202e}right".as_bytes(), "left\\u{202e}right"),
            (long.as_bytes(), &cut),
        ];
        for (body, expected) in cases {
            assert_eq!(Scrubber::default().excerpt(body), expected);
        }
    }

    #[test]
    fn a_credential_that_comes_back_is_taken_out() {
        let cases = [
            ("Bearer s3cr3t/tok+n", "no such key: s3cr3t/tok+n!"),
            ("Bearer s3cr3t/tok+n", "Authorization: Bearer s3cr3t/tok+n"),
            ("Bearer s3cr3t/tok+n", "/v4?access=s3cr3t%2Ftok%2Bn"),
            ("s3cr3t/tok+n", "s3cr3t/tok+n"),
        ];
        for (credential, body) in cases {
            let shown = scrubber(credential).excerpt(body.as_bytes());
            assert!(!shown.contains("s3cr3t"), "{shown}");
            assert!(shown.contains(REDACTED), "{shown}");
        }
    }

    #[test]
    fn a_secret_across_the_cut_leaves_no_part_behind() {
        let body = format!("{}verysecrettoken", "x".repeat(195));
        let shown = scrubber("Bearer verysecrettoken").excerpt(body.as_bytes());
        assert!(!shown.contains("very"), "{shown}");
    }

    #[test]
    fn urls_are_shown_without_their_secrets() {
        let cases = [
            ("https://u:p@h.example/a?b=1#f", "https://h.example/a?b=1"),
            ("https://h.example/?api_token=abc&page=2", "https://h.example/?api_token=***&page=2"),
            ("https://h.example/?next_page_token=abc", "https://h.example/?next_page_token=abc"),
            ("https://h.example/?key=abc", "https://h.example/?key=***"),
        ];
        for (url, expected) in cases {
            assert_eq!(shown(&Url::parse(url).unwrap()), expected);
        }
    }
}
