//! Bodies and queries, read strictly.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::IntoResponse;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use crate::problem::{Code, FieldError, Problem};

/// A JSON body. What `T` does not know is refused with a pointer to it.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !is_json(&request) {
            return Err(Problem::new(
                Code::UnsupportedMediaType,
                "the body must be sent with Content-Type: application/json",
            ));
        }
        let bytes = read(request, state).await?;
        parse(&bytes).map(Self)
    }
}

/// A JSON body that may be missing altogether.
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let json = is_json(&request);
        let bytes = read(request, state).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        if !json {
            return Err(Problem::new(
                Code::UnsupportedMediaType,
                "the body must be sent with Content-Type: application/json",
            ));
        }
        parse(&bytes).map(Self)
    }
}

/// The parameters behind the `?`.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|query| Self(query.0))
            .map_err(|error| Problem::field("", "invalid_parameter", cause(&error)))
    }
}

/// The innermost reason, without the framework's own words around it.
fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn is_json(request: &Request) -> bool {
    let Some(media) = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let essence = media.split(';').next().unwrap_or("").trim();
    essence.eq_ignore_ascii_case("application/json")
}

async fn read<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    Bytes::from_request(request, state).await.map_err(|rejection| {
        let cause = rejection.to_string();
        match rejection.into_response().status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                Problem::new(Code::BodyTooLarge, "the body is larger than the 1 MiB that this address takes")
            }
            _ => Problem::new(Code::InvalidJson, "the body could not be read to its end").caused_by(cause),
        }
    })
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // A list would be taken for the object's fields in the order of their declaration.
    let object = bytes.trim_ascii_start().starts_with(b"{");
    if !object && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
        return Err(Problem::field("", "invalid_type", "the body must be one JSON object"));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let pointer = pointer(error.path());
        refused(error.inner(), pointer)
    })?;
    deserializer.end().map_err(|error| refused(&error, String::new()))?;
    Ok(value)
}

fn refused(error: &serde_json::Error, pointer: String) -> Problem {
    let message = error.to_string();
    if !error.is_data() {
        return Problem::new(Code::InvalidJson, message);
    }
    // What is in the line and column of the body helps nobody who built it with a library.
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
    let code = if message.starts_with("unknown field") {
        "unknown_field"
    } else if message.starts_with("missing field") {
        "missing_field"
    } else {
        "invalid_type"
    };
    let pointer = match (code, message.split('`').nth(1)) {
        ("missing_field", Some(name)) => format!("{pointer}/{name}"),
        _ => pointer,
    };
    Problem::validation(vec![FieldError::new(pointer, code, message)])
}

/// As a JSON pointer (RFC 6901).
fn pointer(path: &serde_path_to_error::Path) -> String {
    let mut pointer = String::new();
    for segment in path.iter() {
        pointer.push('/');
        match segment {
            Segment::Seq { index } => pointer.push_str(&index.to_string()),
            Segment::Map { key } => pointer.push_str(&key.replace('~', "~0").replace('/', "~1")),
            Segment::Enum { variant } => pointer.push_str(variant),
            Segment::Unknown => pointer.push('?'),
        }
    }
    pointer
}

/// For fields in which absent, null and a value are three cases:
/// `#[serde(default, deserialize_with = "present")] field: Option<Option<T>>`.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)] // Only read by Debug.
    struct Sample {
        name: String,
        #[serde(default)]
        tags: Vec<String>,
        #[serde(default, deserialize_with = "present")]
        title: Option<Option<String>>,
    }

    #[test]
    fn an_unreadable_body_is_told_with_the_place() {
        for (body, code, pointer) in [
            (r#"{"name":"a","nmae":1}"#, "unknown_field", "/nmae"),
            (r#"{"name":"a","tags":["x",2]}"#, "invalid_type", "/tags/1"),
            (r#"{}"#, "missing_field", "/name"),
            (r#"{"name":1}"#, "invalid_type", "/name"),
            (r#"["a"]"#, "invalid_type", ""),
            (r#""a""#, "invalid_type", ""),
        ] {
            let problem = parse::<Sample>(body.as_bytes()).unwrap_err();
            let error = &problem.errors()[0];
            assert_eq!((error.code, error.pointer.as_str()), (code, pointer), "{body}: {error:?}");
        }
        let deep = format!(r#"{{"tags":{}"#, "[".repeat(100_000));
        assert_eq!(parse::<serde_json::Value>(deep.as_bytes()).unwrap_err().code(), Code::InvalidJson);
        for body in ["", "{", r#"{"name":"a"} x"#, "nonsense"] {
            assert_eq!(
                parse::<Sample>(body.as_bytes()).unwrap_err().code(),
                Code::InvalidJson,
                "{:.40}",
                body
            );
        }
    }

    #[test]
    fn absent_null_and_a_value_are_three_cases() {
        let title = |body: &str| parse::<Sample>(body.as_bytes()).unwrap().title;
        assert_eq!(title(r#"{"name":"a"}"#), None);
        assert_eq!(title(r#"{"name":"a","title":null}"#), Some(None));
        assert_eq!(title(r#"{"name":"a","title":"x"}"#), Some(Some("x".into())));
    }
}
