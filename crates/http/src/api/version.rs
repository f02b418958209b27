//! Versions of objects in requests and answers.

use http::header::IF_MATCH;
use http::{HeaderMap, HeaderValue};

use crate::problem::Problem;

/// The entity tag of a version (RFC 9110, section 8.8.3).
pub(crate) fn tag(version: i64) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{version}\"")).expect("digits and quotes are ASCII")
}

/// The version that the caller has read, from `If-Match` or from the body; `None` if the write applies to whatever
/// is current.
///
/// # Errors
/// A problem if the header is no tag of ours, or says something else than the body.
pub(crate) fn expected(headers: &HeaderMap, body: Option<i64>) -> Result<Option<i64>, Problem> {
    let mut lines = headers.get_all(IF_MATCH).iter();
    let header = match (lines.next(), lines.next()) {
        (None, _) => return Ok(body),
        (Some(one), None) => one,
        (Some(_), Some(_)) => return Err(refused("send If-Match once")),
    };
    let text = header.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(body);
    }
    let number = text.strip_prefix("W/").unwrap_or(text).trim_matches('"');
    let version: i64 =
        number.parse().map_err(|_| refused("If-Match must hold the ETag of an earlier answer"))?;
    match body {
        Some(other) if other != version => Err(refused("If-Match and the body's version differ")),
        _ => Ok(Some(version)),
    }
}

fn refused(message: &str) -> Problem {
    Problem::field("If-Match", "invalid_version", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_comes_from_the_header_or_the_body() {
        for (header, body, expected_version) in [
            (None, None, Some(None)),
            (None, Some(2), Some(Some(2))),
            (Some("\"3\""), None, Some(Some(3))),
            (Some("W/\"3\""), Some(3), Some(Some(3))),
            (Some("3"), None, Some(Some(3))),
            (Some("*"), None, Some(None)),
            (Some("\"3\""), Some(2), None),
            (Some("\"abc\""), None, None),
            (Some("\"1\", \"2\""), None, None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(IF_MATCH, HeaderValue::from_static(header));
            }
            assert_eq!(expected(&headers, body).ok(), expected_version, "{header:?} {body:?}");
        }
    }
}
