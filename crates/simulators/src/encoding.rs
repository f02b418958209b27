//! Text forms shared by the simulators: JSON strings by hand, base64, query strings.

use std::io::Write as _;

use percent_encoding::percent_decode_str;

/// How a JSON string is written; a reader must not care.
#[derive(Clone, Copy, Default)]
pub(crate) struct Escapes {
    /// Everything outside ASCII as `\uXXXX`, with surrogate pairs.
    pub(crate) ascii: bool,
    /// `/` as `\/`, as PHP does.
    pub(crate) slashes: bool,
}

/// Writes `text` as a JSON string with its quotes (RFC 8259, section 7).
pub(crate) fn write_json_string(out: &mut Vec<u8>, text: &str, escapes: Escapes) {
    let plain = |byte: &u8| match byte {
        b'"' | b'\\' | 0..=0x1f => false,
        b'/' => !escapes.slashes,
        _ => !escapes.ascii || byte.is_ascii(),
    };
    out.push(b'"');
    if text.as_bytes().iter().all(plain) {
        out.extend_from_slice(text.as_bytes());
    } else {
        text.chars().for_each(|character| write_character(out, character, escapes));
    }
    out.push(b'"');
}

fn write_character(out: &mut Vec<u8>, character: char, escapes: Escapes) {
    match character {
        '"' => out.extend_from_slice(br#"\""#),
        '\\' => out.extend_from_slice(br"\\"),
        '\n' => out.extend_from_slice(br"\n"),
        '\r' => out.extend_from_slice(br"\r"),
        '\t' => out.extend_from_slice(br"\t"),
        '/' if escapes.slashes => out.extend_from_slice(br"\/"),
        '\0'..='\x1f' => write_unit(out, character as u16),
        ' '..='\x7f' => out.push(character as u8),
        _ if escapes.ascii => {
            character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| write_unit(out, *unit));
        }
        _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn write_unit(out: &mut Vec<u8>, unit: u16) {
    write!(out, "\\u{unit:04x}").expect("a Vec takes every write");
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 with the standard alphabet and no padding (RFC 4648, section 4).
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let value =
            group.iter().fold(0_u32, |value, byte| value << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..=group.len() {
            out.push(BASE64[(value >> (18 - 6 * place) & 63) as usize] as char);
        }
    }
    out
}

/// Reads what [`base64`] wrote; nothing else.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    for group in text.as_bytes().chunks(4) {
        let mut value = 0_u32;
        for byte in group {
            value = value << 6 | BASE64.iter().position(|known| known == byte)? as u32;
        }
        value <<= 6 * (4 - group.len());
        out.extend_from_slice(&value.to_be_bytes()[1..group.len().max(1)]);
    }
    (base64(&out) == text).then_some(out)
}

/// The pairs of a query string, decoded as a web form is: `+` is a space.
pub(crate) fn query_pairs(query: &str) -> Vec<(String, String)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(query_pair).collect()
}

fn query_pair(pair: &str) -> (String, String) {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    (form_decode(name), form_decode(value))
}

fn form_decode(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// Percent-encodes one part of a path or a query (everything but RFC 3986's unreserved characters).
pub(crate) fn component(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(text: &str, escapes: Escapes) -> String {
        let mut out = Vec::new();
        write_json_string(&mut out, text, escapes);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_way_of_escaping_reads_back_as_the_same_text() {
        let text = "a\"b\\c/\u{1}\n\t é 日本 🚀\u{2028}\u{7f}";
        assert_eq!(write("plain/é", Escapes::default()), "\"plain/é\"");
        assert_eq!(write("/", Escapes { ascii: false, slashes: true }), r#""\/""#);
        for (ascii, slashes) in [(false, false), (true, false), (false, true), (true, true)] {
            let out = write(text, Escapes { ascii, slashes });
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
            assert!(!ascii || out.is_ascii());
        }
    }

    #[test]
    fn base64_of_any_length_reads_back() {
        for length in 0..20_u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(37)).collect();
            assert_eq!(from_base64(&base64(&bytes)).unwrap(), bytes);
        }
        assert_eq!(base64(b"fake"), "ZmFrZQ");
        for wrong in ["Zm9v=", "Zm v", "Z", "ZmFrZR"] {
            assert_eq!(from_base64(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_plus_in_a_query_is_a_space() {
        assert_eq!(
            query_pairs("a=1+2&b=%2B&&c"),
            [("a", "1 2"), ("b", "+"), ("c", "")].map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }
}
