//! The host of a link domain.

use std::fmt;

use url::Host as UrlHost;

/// The longest host name and the longest label (RFC 1035, section 2.3.4).
const NAME_LENGTH_MAX: usize = 253;
const LABEL_LENGTH_MAX: usize = 63;

/// A host in the form in which requests name it: lower case, punycode, without port and trailing dot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host(String);

/// Text that names no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a host name; write for example go.example.com")]
pub struct HostError(String);

impl Host {
    /// Reads `go.example.com`, `GO.example.com:8080`, `https://go.example.com/` or `tübingen.example`.
    ///
    /// # Errors
    /// [`HostError`] if a path, a user or a wildcard is given, or the name breaks IDNA's rules.
    pub fn new(text: &str) -> Result<Self, HostError> {
        parse(text)
            .map(Self)
            .ok_or_else(|| HostError(text.chars().filter(|c| !c.is_control()).take(80).collect()))
    }

    /// The host as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn stored(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn parse(text: &str) -> Option<String> {
    let text = text.trim();
    let text = strip_scheme(text);
    let text = text.strip_suffix('/').unwrap_or(text);
    let text = strip_port(text)?;
    let text = text.strip_suffix('.').unwrap_or(text);
    if is_plain(text) {
        return Some(text.to_owned());
    }
    if text.contains(['*', '%']) {
        return None;
    }
    let host = UrlHost::parse(text).ok()?;
    if let UrlHost::Domain(name) = &host {
        let sound = name.len() <= NAME_LENGTH_MAX
            && name.split('.').all(|label| !label.is_empty() && label.len() <= LABEL_LENGTH_MAX);
        return sound.then(|| name.clone());
    }
    Some(host.to_string())
}

fn strip_scheme(text: &str) -> &str {
    for scheme in ["https://", "http://"] {
        if text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)) {
            return &text[scheme.len()..];
        }
    }
    text
}

/// `None` if what follows the last colon outside of brackets is not a port.
fn strip_port(text: &str) -> Option<&str> {
    let after = text.rfind(']').map_or(0, |end| end + 1);
    match text[after..].rfind(':') {
        Some(colon) => {
            let port = &text[after + colon + 1..];
            (port.is_empty() || port.parse::<u16>().is_ok()).then_some(&text[..after + colon])
        }
        None => Some(text),
    }
}

/// Names that need neither mapping nor checking beyond this: the usual case on every request.
fn is_plain(text: &str) -> bool {
    let label = |label: &str| {
        (1..=LABEL_LENGTH_MAX).contains(&label.len())
            && !label.starts_with("xn--")
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    // A last label that begins with a digit may be part of an IPv4 address, which has a form of its own.
    let last_is_name =
        text.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_lowercase()));
    text.len() <= NAME_LENGTH_MAX && last_is_name && text.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a4_65_a_domain_may_be_given_in_any_usual_spelling() {
        for (text, host) in [
            ("go.example.com", "go.example.com"),
            ("https://go.example.com/", "go.example.com"),
            ("HTTP://Go.Example.COM", "go.example.com"),
            ("go.example.com:8443", "go.example.com"),
            ("go.example.com.", "go.example.com"),
            (" go.example.com ", "go.example.com"),
            ("tübingen.example", "xn--tbingen-n2a.example"),
            ("XN--TBINGEN-N2A.example", "xn--tbingen-n2a.example"),
            ("localhost:8080", "localhost"),
            ("127.0.0.1:8080", "127.0.0.1"),
            ("[::1]:8080", "[::1]"),
            ("a_b.example.com", "a_b.example.com"),
        ] {
            assert_eq!(Host::new(text).map(|h| h.0).as_deref(), Ok(host), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let long = format!("{}.example", "a".repeat(64));
        for text in [
            "",
            ".",
            "https://",
            "a..b",
            "go.example.com/x",
            "u@go.example.com",
            "*.example.com",
            "a b",
            "a:b:c",
            "x:99999",
            "a%20b",
            &long,
            "a\nb",
        ] {
            assert!(Host::new(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_host_is_its_own_spelling(text in "[a-zA-Z0-9üß.:\\-\\[\\]/]{0,40}|.*") {
            if let Ok(host) = Host::new(&text) {
                prop_assert_eq!(Host::new(host.as_str()), Ok(host));
            }
        }
    }
}
