//! What a destination looks like in a `Location` header.

use std::borrow::Cow;
use std::collections::HashSet;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use url::Host as UrlHost;

use super::{Destination, scheme};

/// What a header value cannot carry (RFC 9110, section 5.5): control characters, and everything beyond ASCII, which
/// `utf8_percent_encode` always encodes. A space is legal there, but many clients end the URL at it.
const UNCARRIABLE: &AsciiSet = &CONTROLS.add(b' ');

impl Destination {
    /// The value of a `Location` header: the destination's bytes, except that what a header cannot carry is
    /// percent-encoded as UTF-8 and the international host of a web address becomes punycode, also one that was
    /// given percent-encoded, as other services keep it: not every client decodes a host before it asks for it.
    pub fn location(&self) -> Cow<'_, str> {
        let text = self.as_str();
        let carriable = text.bytes().all(|byte| byte.is_ascii_graphic());
        if carriable && !text.contains('%') {
            return Cow::Borrowed(text);
        }
        if let Some(web) = scheme::web(text)
            && let Some(host) = web.host()
            && is_international(host)
            && let Ok(ascii) = UrlHost::parse(host)
        {
            let port = &web.host_and_port()[host.len()..];
            return Cow::Owned(format!(
                "{}{ascii}{port}{}",
                encode(web.before_host()),
                encode(web.after_authority())
            ));
        }
        if carriable { Cow::Borrowed(text) } else { Cow::Owned(encode(text)) }
    }

    /// As [`Destination::location`], with the visitor's query merged in: what the visitor sends replaces the
    /// destination's parameters of the same name, everything else stays as it is, the fragment stays at the end.
    /// URLs without `//`, such as `tel:+100`, take no query.
    ///
    /// `query` is what stood behind the `?` of the request, still percent-encoded.
    pub fn location_with_query(&self, query: &str) -> Cow<'_, str> {
        let location = self.location();
        if query.is_empty() || !scheme::is_hierarchical(&location) {
            return location;
        }
        let (base, fragment) = location.split_at(location.find('#').unwrap_or(location.len()));
        let (path, own) = match base.split_once('?') {
            Some((path, own)) => (path, own),
            None => (base, ""),
        };
        // A `#` cannot arrive in a query; if it did, it would cut the rest off.
        let query = encode(query).replace('#', "%23");
        let merged = merge(own, &query);
        Cow::Owned(format!("{path}?{merged}{fragment}"))
    }
}

/// Whether the host has characters beyond ASCII, written as they are or percent-encoded.
fn is_international(host: &str) -> bool {
    !percent_decode_str(host).decode_utf8_lossy().is_ascii()
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, UNCARRIABLE).to_string()
}

/// The destination's parameters that the visitor does not name, byte for byte, then the visitor's.
fn merge(own: &str, visitor: &str) -> String {
    let named: HashSet<Cow<'_, str>> = visitor.split('&').filter(|part| !part.is_empty()).map(name).collect();
    if named.is_empty() {
        return own.to_owned();
    }
    let mut parts: Vec<&str> =
        own.split('&').filter(|part| part.is_empty() || !named.contains(&name(part))).collect();
    // An empty last part would double the `&` in front of the visitor's parameters.
    if parts.last().is_some_and(|last| last.is_empty()) {
        parts.pop();
    }
    parts.push(visitor);
    parts.join("&")
}

/// The decoded name of `name=value`, in which `+` is a space (WHATWG URL, `application/x-www-form-urlencoded`).
fn name(part: &str) -> Cow<'_, str> {
    let name = part.split_once('=').map_or(part, |(name, _)| name);
    if !name.contains(['%', '+']) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(percent_decode_str(&name.replace('+', " ")).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn destination(text: &str) -> Destination {
        Destination::new(text).unwrap()
    }

    #[test]
    fn a4_51_55_56_59_the_location_is_the_destination_as_far_as_a_header_can_carry_it() {
        for (text, location) in [
            ("https://example.com/?abc#123", "https://example.com/?abc#123"),
            ("https://example.com/%C3%BC?q=%25&r=%2", "https://example.com/%C3%BC?q=%25&r=%2"),
            ("https://Example.com/a|b{c}^\"<>`\\", "https://Example.com/a|b{c}^\"<>`\\"),
            ("http://tübingen.example/", "http://xn--tbingen-n2a.example/"),
            (
                "http://u@tübingen.example:81/ü?ö#ä",
                "http://u@xn--tbingen-n2a.example:81/%C3%BC?%C3%B6#%C3%A4",
            ),
            ("http://t%C3%BCbingen.example/", "http://xn--tbingen-n2a.example/"),
            (
                "https://T%c3%bcbingen.example:81/%C3%BC?q=%2",
                "https://xn--tbingen-n2a.example:81/%C3%BC?q=%2",
            ),
            ("http://u%40x@t%C3%BCbingen.example/a b", "http://u%40x@xn--tbingen-n2a.example/a%20b"),
            ("http://xn--tbingen-n2a.example/%C3%BC", "http://xn--tbingen-n2a.example/%C3%BC"),
            ("http://Ex%61mple.com/%C3%BC", "http://Ex%61mple.com/%C3%BC"),
            ("myapp://t%C3%BCbingen/x", "myapp://t%C3%BCbingen/x"),
            ("https://example.com/产品", "https://example.com/%E4%BA%A7%E5%93%81"),
            ("https://example.com/a b", "https://example.com/a%20b"),
            ("mailto:ü@example.com", "mailto:%C3%BC@example.com"),
            ("tel:+100", "tel:+100"),
            ("com.example.app://open?x=1", "com.example.app://open?x=1"),
        ] {
            assert_eq!(destination(text).location(), location, "{text}");
        }
    }

    #[test]
    fn a5_66_the_visitors_query_is_merged_and_wins() {
        for (text, query, location) in [
            ("https://example.com/?a=1", "utm=x", "https://example.com/?a=1&utm=x"),
            ("https://example.com/?a=1&b=2", "a=9", "https://example.com/?b=2&a=9"),
            ("https://example.com/?a=1", "a=9", "https://example.com/?a=9"),
            ("https://example.com/", "utm=x", "https://example.com/?utm=x"),
            ("https://example.com", "utm=x", "https://example.com?utm=x"),
            ("https://example.com/?abc#123", "", "https://example.com/?abc#123"),
            ("https://example.com/?abc#123", "x=1", "https://example.com/?abc&x=1#123"),
            ("https://example.com/#/r?a=1", "x=1", "https://example.com/?x=1#/r?a=1"),
            ("https://example.com/?", "x", "https://example.com/?x"),
            ("https://example.com/?a&", "x", "https://example.com/?a&x"),
            ("https://example.com/?a=1&&b=%zz", "&&", "https://example.com/?a=1&&b=%zz"),
            ("https://example.com/?%61=1&a+b=2", "a=9&a%20b=3", "https://example.com/?a=9&a%20b=3"),
            ("https://example.com/?i[]=1&i[]=2", "i[]=3", "https://example.com/?i[]=3"),
            ("https://example.com/?A=1", "a=2", "https://example.com/?A=1&a=2"),
            ("https://example.com/", "q=ü #x", "https://example.com/?q=%C3%BC%20%23x"),
            ("com.example.app://open?x=1", "y=2", "com.example.app://open?x=1&y=2"),
            ("tel:+100", "utm=x", "tel:+100"),
            ("mailto:a@example.com?subject=x", "utm=x", "mailto:a@example.com?subject=x"),
        ] {
            assert_eq!(destination(text).location_with_query(query), location, "{text} ? {query}");
        }
    }

    proptest! {
        #[test]
        fn any_location_is_a_header_value_and_final(
            text in "(https?://|mailto:|app://)?[\\PC]{0,60}|https://([a-zü]|%C3%BC|%61){1,8}\\.example/.*",
            query in ".*",
        ) {
            if let Ok(destination) = Destination::new(text.as_str()) {
                prop_assert_eq!(destination.as_str(), &text);
                for location in [destination.location(), destination.location_with_query(&query)] {
                    prop_assert!(http::HeaderValue::from_str(&location).is_ok(), "{}", location);
                    prop_assert!(location.is_ascii());
                    let again = Destination::with_limit(location.clone(), usize::MAX).unwrap();
                    prop_assert_eq!(again.location(), location);
                }
            }
        }
    }
}
