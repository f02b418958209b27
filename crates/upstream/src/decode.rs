//! Content decoding, done here and not by the HTTP library, so that we decide when a body is whole.
//!
//! A gzip body without its trailer is not data (RFC 1952 §2.3.1 puts checksum and length there); libraries
//! that stop at the last block call it a full answer. Decoding stops at the body limit, whatever the
//! compression claims.

use std::io::{self, Read};

use bytes::Bytes;
use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// More codings than this on one body are an attack or a mistake.
const CODINGS_MAX: usize = 2;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// Decodes to more than the limit.
    TooLarge,
    /// Ends early, is corrupt, or uses a coding nobody asked for.
    Broken(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
}

/// The body as the server meant it, at most `limit` bytes.
pub(crate) fn decode(headers: &HeaderMap, body: Bytes, limit: usize) -> Result<Bytes, DecodeError> {
    codings(headers)?
        .into_iter()
        .rev()
        .try_fold(body, |body, coding| undo(coding, &body, limit).map(Bytes::from))
}

/// The codings in the order the server applied them.
fn codings(headers: &HeaderMap) -> Result<Vec<Coding>, DecodeError> {
    let mut codings = Vec::new();
    for value in headers.get_all(CONTENT_ENCODING) {
        let text =
            value.to_str().map_err(|_| DecodeError::Broken("unreadable Content-Encoding".to_owned()))?;
        for name in text.split(',').map(|name| name.trim().to_ascii_lowercase()) {
            match name.as_str() {
                "" | "identity" => {}
                "gzip" | "x-gzip" => codings.push(Coding::Gzip),
                "deflate" => codings.push(Coding::Deflate),
                _ => return Err(DecodeError::Broken("a Content-Encoding that was not asked for".to_owned())),
            }
        }
    }
    if codings.len() > CODINGS_MAX {
        return Err(DecodeError::Broken("too many Content-Encodings".to_owned()));
    }
    Ok(codings)
}

fn undo(coding: Coding, body: &[u8], limit: usize) -> Result<Vec<u8>, DecodeError> {
    match coding {
        Coding::Gzip if body.is_empty() => Err(DecodeError::Broken("an empty gzip body".to_owned())),
        Coding::Gzip => read_bounded(MultiGzDecoder::new(body), limit),
        // "deflate" means zlib (RFC 9110 §8.4.1.2), and some servers send it bare.
        Coding::Deflate if is_zlib(body) => read_bounded(ZlibDecoder::new(body), limit),
        Coding::Deflate => read_bounded(DeflateDecoder::new(body), limit),
    }
}

/// Method 8 and a header that divides by 31 (RFC 1950 §2.2).
fn is_zlib(body: &[u8]) -> bool {
    let [method, flags, ..] = body else { return false };
    method & 0x0f == 8 && (u16::from(*method) << 8 | u16::from(*flags)).is_multiple_of(31)
}

fn read_bounded(decoder: impl Read, limit: usize) -> Result<Vec<u8>, DecodeError> {
    let mut decoded = Vec::new();
    let one_more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    decoder
        .take(one_more)
        .read_to_end(&mut decoded)
        .map_err(|error| DecodeError::Broken(describe(&error)))?;
    if decoded.len() > limit { Err(DecodeError::TooLarge) } else { Ok(decoded) }
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the compressed body ends early".to_owned(),
        _ => format!("the compressed body is corrupt: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use http::HeaderValue;

    use super::*;

    const TEXT: &[u8] = br#"{"links":[1,2,3,4,5,6,7,8,9,10,11,12]}"#;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn bare(text: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn run(coding: &str, body: Vec<u8>, limit: usize) -> Result<Vec<u8>, DecodeError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_str(coding).unwrap());
        decode(&headers, Bytes::from(body), limit).map(|bytes| bytes.to_vec())
    }

    #[test]
    fn whole_bodies_decode() {
        let two_members = [gzip(&TEXT[..10]), gzip(&TEXT[10..])].concat();
        let cases = [
            ("gzip", gzip(TEXT)),
            ("X-GZIP", gzip(TEXT)),
            ("gzip", two_members),
            ("deflate", zlib(TEXT)),
            ("deflate", bare(TEXT)),
            ("deflate, gzip", gzip(&zlib(TEXT))),
            ("identity", TEXT.to_vec()),
            ("", TEXT.to_vec()),
        ];
        for (coding, body) in cases {
            assert_eq!(run(coding, body, 1_000).as_deref(), Ok(TEXT), "{coding}");
        }
    }

    #[test]
    fn a_body_cut_at_any_byte_is_no_body() {
        for (coding, whole) in [("gzip", gzip(TEXT)), ("deflate", zlib(TEXT)), ("deflate", bare(TEXT))] {
            for end in 0..whole.len() {
                let result = run(coding, whole[..end].to_vec(), 1_000);
                assert!(matches!(result, Err(DecodeError::Broken(_))), "{coding} cut at {end}: {result:?}");
            }
        }
    }

    #[test]
    fn a_changed_byte_or_trailing_rubbish_is_noticed() {
        let mut changed = gzip(TEXT);
        let checksum = changed.len() - 8;
        changed[checksum] ^= 1;
        let with_rubbish = [gzip(TEXT), b"rubbish".to_vec()].concat();
        for body in [changed, with_rubbish, TEXT.to_vec()] {
            assert!(matches!(run("gzip", body, 1_000), Err(DecodeError::Broken(_))));
        }
        assert!(matches!(run("br", TEXT.to_vec(), 1_000), Err(DecodeError::Broken(_))));
        assert!(matches!(run("gzip,gzip,gzip", TEXT.to_vec(), 1_000), Err(DecodeError::Broken(_))));
    }

    #[test]
    fn a_small_body_cannot_grow_past_the_limit() {
        let bomb = gzip(&vec![b' '; 10_000_000]);
        assert!(bomb.len() < 20_000);
        assert_eq!(run("gzip", bomb, 1_000_000), Err(DecodeError::TooLarge));
        assert_eq!(run("gzip", gzip(TEXT), TEXT.len() - 1), Err(DecodeError::TooLarge));
    }

    /// Spaces without end, counted.
    struct Endless(usize);

    impl Read for &mut Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            assert!(self.0 < 10_000_000, "reads on behind the limit");
            buffer.fill(b' ');
            self.0 += buffer.len();
            Ok(buffer.len())
        }
    }

    #[test]
    fn decoding_stops_at_the_limit_and_not_behind_it() {
        let mut endless = Endless(0);
        assert_eq!(read_bounded(&mut endless, 1_000), Err(DecodeError::TooLarge));
        assert_eq!(endless.0, 1_001);
    }
}
