//! Origin pinning: a client asks one scheme, host and port, whatever an answer says.

use url::{Host, Url};

use crate::error::Error;
use crate::excerpt::{shown, shown_text};

/// The base URL of an API and the only origin that is ever asked.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    base: Url,
}

impl Origin {
    /// `base` must be http or https with a host and without user. Its path is a folder, with or without a
    /// slash at its end.
    pub(crate) fn new(mut base: Url) -> Result<Self, Error> {
        let refuse = |reason: &str| Err(Error::BadUrl { url: shown(&base), reason: reason.to_owned() });
        if !matches!(base.scheme(), "http" | "https") {
            return refuse("only http and https are asked");
        }
        if base.host().is_none() {
            return refuse("it has no host");
        }
        if !base.username().is_empty() || base.password().is_some() {
            return refuse("a credential does not belong into a URL");
        }
        base.set_query(None);
        base.set_fragment(None);
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        Ok(Self { base })
    }

    pub(crate) fn base(&self) -> &Url {
        &self.base
    }

    pub(crate) fn is_loopback(&self) -> bool {
        match self.base.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        }
    }

    /// Reads `reference` against `against` (RFC 3986 §5) and keeps the result on this origin.
    ///
    /// Behind a proxy that ends TLS, servers name themselves `http://` or forget their port
    /// (paperless-ngx#3130, api-pagination#49). Such a URL means this origin, and is put back on it: an https
    /// API is never asked in clear. Any other difference of scheme, host or port is refused.
    pub(crate) fn resolve(&self, against: &Url, reference: &str) -> Result<Url, Error> {
        let bad = |reason: String| Error::BadUrl { url: shown_text(reference), reason };
        let mut url = against.join(reference).map_err(|error| bad(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host() != self.base.host() {
            return Err(self.foreign(&url));
        }
        if url.origin() != self.base.origin() {
            if !self.means_this_origin(&url) {
                return Err(self.foreign(&url));
            }
            let refused = "an http URL takes the scheme and port of another one";
            url.set_scheme(self.base.scheme()).expect(refused);
            url.set_port(self.base.port()).expect(refused);
        }
        // The same origin with a user in front would put that user into a header of its own.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_fragment(None);
        Ok(url)
    }

    fn means_this_origin(&self, url: &Url) -> bool {
        let made_clear = self.base.scheme() == "https" && url.scheme() == "http";
        let same_port = url.port() == self.base.port_or_known_default();
        (made_clear || url.scheme() == self.base.scheme()) && (url.port().is_none() || same_port)
    }

    /// Names the place without its query, which may repeat what we sent.
    fn foreign(&self, url: &Url) -> Error {
        let mut place = url.clone();
        place.set_query(None);
        Error::ForeignOrigin { url: shown(&place), origin: self.base.origin().ascii_serialization() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(base: &str) -> Origin {
        Origin::new(Url::parse(base).unwrap()).unwrap()
    }

    #[test]
    fn references_are_read_against_the_base_folder() {
        let cases = [
            ("https://api.example/v4", "groups", "https://api.example/v4/groups"),
            ("https://api.example/v4/", "groups/a?b=1", "https://api.example/v4/groups/a?b=1"),
            ("https://api.example/v4", "/v5/x", "https://api.example/v5/x"),
            ("https://api.example/v4", "https://api.example/z?c=%2F#frag", "https://api.example/z?c=%2F"),
            ("https://api.example", "https://API.example:443/z", "https://api.example/z"),
            ("https://api.example", "https://bob:pw@api.example/z", "https://api.example/z"),
            // A server behind a TLS proxy.
            ("https://api.example", "http://api.example/z", "https://api.example/z"),
            ("https://api.example", "http://api.example:80/z", "https://api.example/z"),
            ("https://api.example", "http://api.example:443/z", "https://api.example/z"),
            ("https://api.example:8443", "http://api.example/z", "https://api.example:8443/z"),
            ("https://api.example:8443", "http://api.example:8443/z", "https://api.example:8443/z"),
            ("https://api.example:8443", "https://api.example/z", "https://api.example:8443/z"),
            ("https://api.example:80", "http://api.example/z", "https://api.example:80/z"),
            ("http://127.0.0.1:8080/v4", "http://127.0.0.1/v4/z", "http://127.0.0.1:8080/v4/z"),
            ("http://[::1]:8080", "/z", "http://[::1]:8080/z"),
        ];
        for (base, reference, expected) in cases {
            let origin = origin(base);
            let url = origin.resolve(origin.base(), reference);
            assert_eq!(url.as_ref().map(Url::as_str), Ok(expected), "{base} + {reference}");
        }
    }

    #[test]
    fn nothing_leads_away_from_the_origin() {
        let cases = [
            ("https://api.example", "https://evil.example/z"),
            ("https://api.example", "//evil.example/z"),
            ("https://api.example", "\\\\evil.example/z"),
            ("https://api.example", "https://api.example@evil.example/z"),
            ("https://api.example", "https://api.example.evil.example/z"),
            ("https://api.example", "https://sub.api.example/z"),
            ("https://api.example", "https://api.example./z"),
            ("https://api.example", "https://api.example:8443/z"),
            ("https://api.example:8443", "https://api.example:9000/z"),
            ("https://api.example", "http://api.example:8080/z"),
            ("http://api.example", "https://api.example/z"),
            ("http://127.0.0.1:8080", "http://127.0.0.2:8080/z"),
            ("http://127.0.0.1:8080", "http://localhost:8080/z"),
            ("https://api.example", "ftp://api.example/z"),
            ("https://api.example", "javascript:alert(1)"),
            ("https://api.example", "file:///etc/passwd"),
        ];
        for (base, reference) in cases {
            let origin = origin(base);
            let error = origin.resolve(origin.base(), reference).expect_err(reference);
            assert!(matches!(error, Error::ForeignOrigin { .. }), "{base} + {reference}: {error}");
        }
    }

    #[test]
    fn a_reference_that_is_no_url_is_named_without_its_secrets() {
        let origin = origin("https://api.example");
        let error = origin.resolve(origin.base(), "https://bob:pw1@[nonsense/links?token=pw2").unwrap_err();
        assert!(matches!(error, Error::BadUrl { .. }), "{error}");
        assert!(error.to_string().contains("[nonsense/links"), "{error}");
        assert!(!error.to_string().contains("pw"), "{error}");
    }

    #[test]
    fn a_base_must_be_a_plain_web_address() {
        for base in [
            "ftp://api.example/",
            "https://user@api.example/",
            "https://u:p@api.example/",
            "data:text/plain,x",
        ] {
            let error = Origin::new(Url::parse(base).unwrap()).expect_err(base);
            assert!(matches!(error, Error::BadUrl { .. }), "{base}");
            assert!(!error.to_string().contains("u:p"), "{error}");
        }
    }
}
