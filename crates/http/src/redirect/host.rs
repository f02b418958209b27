//! Which host a request is meant for.

use http::Request;
use http::header::HOST;

/// What a request says about its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named<'r> {
    /// The host as written, without its port.
    Host(&'r str),
    /// None, several, or one that is not text: RFC 9112, section 3.2 asks for 400.
    Invalid,
}

/// The authority of an absolute request target wins over the `Host` header (RFC 9112, section 3.2.2).
pub(crate) fn named<B>(request: &Request<B>) -> Named<'_> {
    if let Some(authority) = request.uri().authority() {
        return Named::Host(authority.host());
    }
    let mut lines = request.headers().get_all(HOST).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return Named::Invalid };
    match line.to_str() {
        Ok(text) if !text.is_empty() => Named::Host(without_port(text)),
        _ => Named::Invalid,
    }
}

fn without_port(text: &str) -> &str {
    // Inside brackets colons are part of an IPv6 address.
    let after = text.rfind(']').map_or(0, |end| end + 1);
    match text[after..].find(':') {
        Some(colon) => &text[..after + colon],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_from_the_target_or_the_header() {
        let request = |uri: &str, hosts: &[&str]| {
            let mut request = Request::builder().uri(uri);
            for host in hosts {
                request = request.header(HOST, *host);
            }
            request.body(()).unwrap()
        };
        for (uri, hosts, expected) in [
            ("/a", &["go.example.com"][..], Named::Host("go.example.com")),
            ("/a", &["GO.example.com:8080"], Named::Host("GO.example.com")),
            ("/a", &["[::1]:8080"], Named::Host("[::1]")),
            ("/a", &["[::1]"], Named::Host("[::1]")),
            ("http://go.example.com:80/a", &["other.example.com"], Named::Host("go.example.com")),
            ("/a", &[], Named::Invalid),
            ("/a", &[""], Named::Invalid),
            ("/a", &["a.example.com", "b.example.com"], Named::Invalid),
        ] {
            assert_eq!(named(&request(uri, hosts)), expected, "{uri} {hosts:?}");
        }
    }
}
