//! Short URLs as vendors and files write them.

use std::borrow::Cow;

use imports::IncomingAddress;
use percent_encoding::percent_decode_str;
use url::Host;

/// Reads `https://go.example.com/spring?x=1`, with or without scheme: its [`host`], and as slug everything after
/// the host's slash, without query and fragment, percent-decoded once.
///
/// Nothing if there is no host or no slug, or the decoded slug is no text.
pub(crate) fn address(url: &str) -> Option<IncomingAddress> {
    let url = url.trim();
    let rest = match url.split_once("://") {
        Some((scheme, rest))
            if scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http") =>
        {
            rest
        }
        Some((scheme, _)) if !scheme.contains(['/', '?', '#']) => return None,
        _ => url,
    };
    let (authority, path) = rest.split_once('/')?;
    if authority.contains(['?', '#']) {
        return None;
    }
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let slug = decoded(path)?;
    let host = host(authority)?;
    (!slug.is_empty()).then_some(IncomingAddress { host, slug })
}

/// A slug as it is meant: percent-decoded once. Nothing if that is no text.
pub(crate) fn decoded(slug: &str) -> Option<String> {
    percent_decode_str(slug).decode_utf8().ok().map(Cow::into_owned)
}

/// The host without user and port, as domains and the rules for hosts name it; in lower case as it stands if it has
/// no such form.
pub(crate) fn host(authority: &str) -> Option<String> {
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    };
    let is_plain = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control());
    is_plain.then(|| normal(host).unwrap_or_else(|| host.to_lowercase()))
}

/// Lower case, punycode, no trailing dot: what a browser asks for, whichever way the host is written. The link
/// domain's own `Host` cannot be used here, for vendors do not know it; a test compares the two.
fn normal(host: &str) -> Option<String> {
    // A percent sign would be decoded, and what it hides is not what stands there.
    if host.contains(['%', '*']) {
        return None;
    }
    let host = Host::parse(host).ok()?.to_string();
    Some(host.strip_suffix('.').unwrap_or(&host).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slug_is_everything_after_the_host_decoded_once() {
        for (url, host, slug) in [
            ("https://go.example.com/Sale", "go.example.com", "Sale"),
            ("http://GO.Example.com:443/a/b", "go.example.com", "a/b"),
            ("go.example.com/a", "go.example.com", "a"),
            ("https://go.example.com/%C3%BC", "go.example.com", "ü"),
            ("https://go.example.com/ü", "go.example.com", "ü"),
            ("https://go.example.com/a%2525", "go.example.com", "a%25"),
            ("https://go.example.com/a%2Fb+c", "go.example.com", "a/b+c"),
            ("https://go.example.com/a?utm=x#y", "go.example.com", "a"),
            ("https://go.example.com/a%3Fb", "go.example.com", "a?b"),
            ("https://go.example.com/a?to=http://x", "go.example.com", "a"),
            ("https://TÜBINGEN.example.:443/a", "xn--tbingen-n2a.example", "a"),
        ] {
            let expected = IncomingAddress { host: host.to_owned(), slug: slug.to_owned() };
            assert_eq!(address(url), Some(expected), "{url}");
        }
    }

    #[test]
    fn a_host_is_the_one_that_domains_know() {
        for (text, expected) in [
            ("GO.Example.com:443", "go.example.com"),
            ("go.example.com.", "go.example.com"),
            ("go.example.com.:8443", "go.example.com"),
            ("tübingen.example", "xn--tbingen-n2a.example"),
            ("TÜBINGEN.example", "xn--tbingen-n2a.example"),
            ("XN--TBINGEN-N2A.example", "xn--tbingen-n2a.example"),
            ("a_b.example.com", "a_b.example.com"),
            ("127.0.0.1:8080", "127.0.0.1"),
            ("[::1]:8080", "[::1]"),
        ] {
            assert_eq!(host(text).as_deref(), Some(expected), "{text}");
            assert_eq!(links::Host::new(text).unwrap().as_str(), expected, "{text}");
        }
        assert_eq!(host("me@go.example.com").as_deref(), Some("go.example.com"));
        for (odd, kept) in [("GO%2eexample.com", "go%2eexample.com"), ("A:B:c", "a:b:c"), ("A<b", "a<b")] {
            assert_eq!(host(odd).as_deref(), Some(kept));
        }
    }

    proptest::proptest! {
        #[test]
        fn wherever_there_is_a_domain_for_a_host_it_is_found(text in "[a-zA-Z0-9üßÄ。.:\\-\\[\\]_]{1,30}") {
            if let Ok(known) = links::Host::new(&text) {
                proptest::prop_assert_eq!(host(&text), Some(known.as_str().to_owned()));
            }
        }
    }

    #[test]
    fn what_names_no_slug_is_nothing() {
        for url in [
            "",
            "a",
            "https://go.example.com",
            "https://go.example.com/",
            "ftp://h/a",
            "https:///a",
            "https://h/%FF",
            "/a",
            "h?x=/a",
        ] {
            assert_eq!(address(url), None, "{url}");
        }
    }
}
