//! Which kinds of URL may be a destination.

use url::Host as UrlHost;

use super::{DestinationError, shown};

/// Schemes that show a page's inside, read what lies on the visitor's machine, or hand a command to a program that
/// runs it. Further ones are known by their form: [`is_refused`].
const REFUSED: [&str; 31] = [
    "about",
    "blob",
    "brave",
    "chrome",
    "content",
    "data",
    "devtools",
    "edge",
    "file",
    "filesystem",
    "hcp",
    "its",
    "jar",
    "mhtml",
    "mk",
    "mocha",
    "ms-appinstaller",
    "ms-cxh",
    "ms-cxh-full",
    "ms-its",
    "ms-itss",
    "ms-msdt",
    "ms-officecmd",
    "opera",
    "res",
    "resource",
    "search-ms",
    "shell",
    "view-source",
    "vivaldi",
    "wyciwyg",
];

/// What stays refused behind another scheme's colon: some programs pass on what follows theirs (`feed:javascript:…`).
const REFUSED_INSIDE: [&str; 7] = ["about", "blob", "data", "file", "filesystem", "jar", "view-source"];

/// Schemes after which a plain number may stand, so that they are never taken for a host with its port.
const NUMBERED: [&str; 19] = [
    "callto",
    "facetime",
    "facetime-audio",
    "fax",
    "geo",
    "imessage",
    "mms",
    "mmsto",
    "news",
    "sip",
    "sips",
    "skype",
    "sms",
    "smsto",
    "tel",
    "telprompt",
    "upi",
    "whatsapp",
    "xmpp",
];

/// `http` and `https` need a host. Of the others what is dangerous is refused by name; the rest belongs to an endless
/// number of programs and apps, in any form: `name://…`, `name:/…`, `name:…`, reversed host names included
/// (`com.example.app:/…`, RFC 8252, 7.1).
pub(super) fn check(text: &str) -> Result<(), DestinationError> {
    let relative = || DestinationError::Relative(shown(text));
    let Some((scheme, rest)) = split(text) else { return Err(relative()) };
    let scheme = scheme.to_ascii_lowercase();
    if is_refused(&scheme) {
        return Err(DestinationError::Scheme(scheme));
    }
    if matches!(scheme.as_str(), "http" | "https") {
        let host = web(text).and_then(|web| UrlHost::parse(web.host()?).ok());
        return host.map(drop).ok_or_else(|| DestinationError::Host(shown(text)));
    }
    if rest.starts_with("//") {
        return Ok(());
    }
    // `localhost:8080` and `C:/file` read like schemes.
    if rest.is_empty() || scheme.len() == 1 || is_port(rest) && !NUMBERED.contains(&scheme.as_str()) {
        return Err(relative());
    }
    match refused_inside(rest) {
        Some(inner) => Err(DestinationError::Scheme(inner)),
        None => Ok(()),
    }
}

/// `scheme` is in lower case. Whatever ends in `script` is run by somebody, and browsers keep `chrome-…`, `moz-…` and
/// `…-extension` for their own pages.
fn is_refused(scheme: &str) -> bool {
    REFUSED.contains(&scheme)
        || scheme.ends_with("script")
        || scheme.ends_with("-extension")
        || scheme.starts_with("chrome-")
        || scheme.starts_with("moz-")
}

fn refused_inside(mut rest: &str) -> Option<String> {
    while let Some((inner, after)) = split(rest.trim_start()) {
        let inner = inner.to_ascii_lowercase();
        if inner.ends_with("script") || REFUSED_INSIDE.contains(&inner.as_str()) {
            return Some(inner);
        }
        rest = after;
    }
    None
}

/// Whether this is what follows a host's colon: a port, and a path or nothing.
fn is_port(rest: &str) -> bool {
    const DIGITS_MAX: usize = 5;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    (1..=DIGITS_MAX).contains(&digits)
        && (digits == rest.len() || rest[digits..].starts_with(['/', '?', '#']))
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
