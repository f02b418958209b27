//! Which kinds of URL may be a destination.

use url::Host as UrlHost;

use super::{DestinationError, shown};

/// Schemes that run a script, show a page's inside or read what lies on the visitor's machine.
const REFUSED: [&str; 20] = [
    "about",
    "blob",
    "chrome",
    "chrome-extension",
    "data",
    "edge",
    "file",
    "filesystem",
    "jar",
    "javascript",
    "livescript",
    "mhtml",
    "mocha",
    "moz-extension",
    "ms-its",
    "res",
    "resource",
    "vbscript",
    "view-source",
    "wyciwyg",
];

/// Registered or widely used schemes that need no `//`.
const OPAQUE: [&str; 28] = [
    "bitcoin",
    "callto",
    "ethereum",
    "facetime",
    "facetime-audio",
    "geo",
    "imessage",
    "lightning",
    "magnet",
    "mailto",
    "maps",
    "matrix",
    "news",
    "openpgp4fpr",
    "signal",
    "sip",
    "sips",
    "skype",
    "sms",
    "smsto",
    "spotify",
    "tel",
    "tg",
    "upi",
    "urn",
    "webcal",
    "whatsapp",
    "xmpp",
];

/// Two web schemes; otherwise an allow-list of well-known ones, and for the endless number of apps' own schemes the
/// forms in which they are written: `name://…`, or a reversed host name (`com.example.app:/…`, RFC 8252, 7.1).
pub(super) fn check(text: &str) -> Result<(), DestinationError> {
    let Some((scheme, rest)) = split(text) else { return Err(DestinationError::Relative(shown(text))) };
    let scheme = scheme.to_ascii_lowercase();
    if REFUSED.contains(&scheme.as_str()) {
        return Err(DestinationError::Scheme(scheme));
    }
    if matches!(scheme.as_str(), "http" | "https") {
        let host = web(text).and_then(|web| UrlHost::parse(web.host()?).ok());
        return host.map(drop).ok_or_else(|| DestinationError::Host(shown(text)));
    }
    if rest.starts_with("//") || OPAQUE.contains(&scheme.as_str()) && !rest.is_empty() {
        return Ok(());
    }
    if scheme.contains('.') {
        return if rest.starts_with('/') { Ok(()) } else { Err(DestinationError::Relative(shown(text))) };
    }
    // `localhost:8080` reads like a scheme.
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(DestinationError::Relative(shown(text)));
    }
    Err(DestinationError::Scheme(scheme))
}

/// Scheme and what follows its colon (RFC 3986, section 3.1).
fn split(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let sound = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    sound.then_some((scheme, rest))
}

/// Whether a query can be added: anything with `//`, but not `tel:+100` or `mailto:`.
pub(super) fn is_hierarchical(text: &str) -> bool {
    split(text).is_some_and(|(_, rest)| rest.starts_with("//"))
}

/// The parts of an `http` or `https` URL, as ranges of its text.
pub(super) struct Web<'t> {
    text: &'t str,
    host_start: usize,
    authority_end: usize,
}

/// Finds the parts of an `http://` or `https://` URL.
pub(super) fn web(text: &str) -> Option<Web<'_>> {
    let (scheme, rest) = split(text)?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let after = rest.strip_prefix("//")?;
    let start = text.len() - after.len();
    // A backslash ends the authority for browsers (WHATWG URL, special schemes).
    let authority_end = after.find(['/', '?', '#', '\\']).map_or(text.len(), |end| start + end);
    let host_start = text[start..authority_end].rfind('@').map_or(start, |at| start + at + 1);
    Some(Web { text, host_start, authority_end })
}

impl<'t> Web<'t> {
    /// Everything before the host.
    pub(super) fn before_host(&self) -> &'t str {
        &self.text[..self.host_start]
    }

    /// Host and port as written.
    pub(super) fn host_and_port(&self) -> &'t str {
        &self.text[self.host_start..self.authority_end]
    }

    /// The host as written; `None` if it is empty or what follows it is not a port.
    pub(super) fn host(&self) -> Option<&'t str> {
        let text = self.host_and_port();
        let after = text.rfind(']').map_or(0, |end| end + 1);
        let host = match text[after..].find(':') {
            Some(colon) => {
                let port = &text[after + colon + 1..];
                (port.is_empty() || port.parse::<u16>().is_ok()).then_some(&text[..after + colon])?
            }
            None => text,
        };
        (!host.is_empty()).then_some(host)
    }

    /// Everything after host and port.
    pub(super) fn after_authority(&self) -> &'t str {
        &self.text[self.authority_end..]
    }

    /// The path, without query and fragment.
    pub(super) fn path(&self) -> &'t str {
        let rest = self.after_authority();
        &rest[..rest.find(['?', '#']).unwrap_or(rest.len())]
    }
}
