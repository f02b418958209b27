//! One HTTP exchange: a request out, an answer in, both within limits. Knows nothing of retries.

use std::error::Error as _;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use url::Url;

use crate::decode::{self, DecodeError};
use crate::error::Broken;

/// A refusal is read this far: enough to tell which one it is.
const REFUSAL_MAX_BYTES: usize = 64 * 1024;

/// Room made for an announced body before any of it is there.
const READ_AHEAD_MAX_BYTES: usize = 1024 * 1024;

/// An answer, decoded.
pub(crate) struct Received {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) wire_bytes: u64,
    /// False if this is only the beginning of a refusal.
    pub(crate) is_whole: bool,
}

/// Why there is none.
pub(crate) enum Failure {
    Broken { kind: Broken, detail: String },
    TooLarge,
}

/// Sends one GET and reads the whole answer.
///
/// A success must arrive whole: a body shorter than its `Content-Length`, chunks without the last one, and
/// compression without its trailer are failures (tap-github#136, nab#467). A refusal's body serves only to
/// explain it, so there a broken one is an empty one: it must not hide the status. Redirects are not followed
/// and their bodies not read.
pub(crate) async fn get(
    http: &reqwest::Client,
    url: &Url,
    headers: HeaderMap,
    body_max_bytes: usize,
) -> Result<Received, Failure> {
    let response =
        http.get(url.clone()).headers(headers).send().await.map_err(|error| broken(error, Stage::Head))?;
    let (status, headers) = (response.status(), response.headers().clone());
    if status.is_success() {
        let wire = read(response, body_max_bytes).await?;
        let wire_bytes = wire.len() as u64;
        let body = decode::decode(&headers, wire, body_max_bytes).map_err(|error| match error {
            DecodeError::TooLarge => Failure::TooLarge,
            DecodeError::Broken(detail) => Failure::Broken { kind: Broken::Encoding, detail },
        })?;
        return Ok(Received { status, headers, body, wire_bytes, is_whole: true });
    }
    let (wire, arrived) =
        if status.is_redirection() { (Bytes::new(), true) } else { read_refusal(response).await };
    let wire_bytes = wire.len() as u64;
    let decoded = if wire.is_empty() { Ok(wire) } else { decode::decode(&headers, wire, REFUSAL_MAX_BYTES) };
    let is_whole = arrived && decoded.is_ok();
    Ok(Received { status, headers, body: decoded.unwrap_or_default(), wire_bytes, is_whole })
}

async fn read(mut response: reqwest::Response, limit: usize) -> Result<Bytes, Failure> {
    let announced = usize::try_from(response.content_length().unwrap_or(0)).unwrap_or(usize::MAX);
    if announced > limit {
        return Err(Failure::TooLarge);
    }
    let mut body = BytesMut::with_capacity(announced.min(READ_AHEAD_MAX_BYTES));
    while let Some(chunk) = response.chunk().await.map_err(|error| broken(error, Stage::Body))? {
        if body.len() + chunk.len() > limit {
            return Err(Failure::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// As much of the body as comes, up to a limit, and whether that is all of it.
async fn read_refusal(mut response: reqwest::Response) -> (Bytes, bool) {
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                let room = REFUSAL_MAX_BYTES - body.len();
                body.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if chunk.len() > room {
                    return (body.freeze(), false);
                }
            }
            Ok(None) => return (body.freeze(), true),
            Err(_) => return (body.freeze(), false),
        }
    }
}

#[derive(Clone, Copy)]
enum Stage {
    Head,
    Body,
}

fn broken(error: reqwest::Error, stage: Stage) -> Failure {
    let kind = if is_about_certificate(&error) {
        Broken::Certificate
    } else if error.is_timeout() {
        Broken::Timeout
    } else if error.is_connect() {
        Broken::Connect
    } else {
        match stage {
            Stage::Head => Broken::Connection,
            Stage::Body => Broken::Body,
        }
    };
    Failure::Broken { kind, detail: causes(error) }
}

/// Looks into I/O errors as well: they hide what they carry from `source`.
fn is_about_certificate(error: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
        return true;
    }
    let carried = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    carried.is_some_and(|carried| is_about_certificate(carried))
        || error.source().is_some_and(is_about_certificate)
}

/// The causes in one line, without the URL, which may hold a secret.
fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut texts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        // Many wrappers repeat their cause.
        if texts.last().is_none_or(|last| !last.contains(&text)) {
            texts.push(text);
        }
        source = cause.source();
    }
    texts.join(": ")
}
