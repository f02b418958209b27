//! Short URLs as vendors and files write them.

use imports::IncomingAddress;
use percent_encoding::percent_decode_str;

/// Reads `https://go.example.com/spring?x=1`, with or without scheme: the host in lower case, and as slug
/// everything after its slash, without query and fragment, percent-decoded once.
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
    let slug = percent_decode_str(path).decode_utf8().ok()?.into_owned();
    let host = host(authority)?;
    (!slug.is_empty()).then_some(IncomingAddress { host, slug })
}

/// The host in lower case, without user and port.
fn host(authority: &str) -> Option<String> {
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    };
    let is_plain = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c.is_control());
    is_plain.then(|| host.to_lowercase())
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
        ] {
            let expected = IncomingAddress { host: host.to_owned(), slug: slug.to_owned() };
            assert_eq!(address(url), Some(expected), "{url}");
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
