//! An answer before it is sent, and the ways of sending it badly.

use std::{io::Write as _, time::Duration};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use super::wire;
use crate::payload::{Cut, Payload, Producer};

const JSON: &str = "application/json";
/// A huge body is sent in pieces of this size.
const HUGE_PIECE: usize = 1 << 16;

/// An answer that could be sent well.
pub(super) struct Reply {
    status: u16,
    content_type: &'static str,
    headers: Vec<(HeaderName, String)>,
    body: Bytes,
    producer: Option<Producer>,
    delivery: Delivery,
}

/// How an answer goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Delivery {
    #[default]
    Whole,
    Gzip,
    TruncatedGzip(usize),
    TruncatedJson,
    Cut,
    CutChunked,
    Drop,
    Stall(Duration),
}

impl Reply {
    /// A JSON document.
    pub(super) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::bytes(status, JSON, body.to_string())
    }

    /// Any document.
    pub(super) fn bytes(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let (headers, delivery) = (Vec::new(), Delivery::default());
        Self { status, content_type, headers, body: body.into(), producer: None, delivery }
    }

    /// A page of the list.
    pub(super) fn page(body: Vec<u8>) -> Self {
        Self::bytes(200, JSON, body)
    }

    /// Lines of JSON as they are made.
    pub(super) fn lines(producer: Producer) -> Self {
        Self { producer: Some(producer), ..Self::bytes(200, "application/x-ndjson", Bytes::new()) }
    }

    /// A body that goes on for `length` bytes, beginning like a page.
    pub(super) fn huge(length: u64) -> Self {
        let mut left = length;
        let mut piece = Bytes::from_static(br#"{"links":["#);
        let filling = Bytes::from(vec![b' '; HUGE_PIECE]);
        let producer = move || {
            let mut current = std::mem::replace(&mut piece, filling.clone());
            current.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            left -= current.len() as u64;
            (!current.is_empty()).then_some(current)
        };
        Self { producer: Some(Box::new(producer)), ..Self::bytes(200, JSON, Bytes::new()) }
    }

    /// An error in the vendor's form.
    pub(super) fn error(status: u16, message: &str, resource: &str) -> Self {
        Self::json(status, &wire::error(message, description(message), resource))
    }

    /// What a proxy or a maintenance page says.
    pub(super) fn html(status: u16) -> Self {
        const PAGE: &str = "<!DOCTYPE html>\n<html><head><title>Please wait</title></head>\n<body><h1>We will be back \
                            soon</h1><p>{\"links\":[]}</p></body></html>\n";
        Self::bytes(status, "text/html; charset=utf-8", PAGE)
    }

    pub(super) fn with_header(mut self, name: HeaderName, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(super) fn delivered(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// Sets how the answer goes out, unless a fault has decided that already.
    pub(super) fn delivered_by_default(self, delivery: Delivery) -> Self {
        if self.delivery == Delivery::Whole { self.delivered(delivery) } else { self }
    }

    /// Puts the answer on the wire, as well or as badly as it is to be delivered.
    ///
    /// `accepts_gzip` is what the client said; without it a compressed delivery becomes a plain one, or a cut.
    pub(super) fn send(self, accepts_gzip: bool) -> Result<Response<Payload>, Cut> {
        let delivery = match self.delivery {
            Delivery::Gzip if !accepts_gzip => Delivery::Whole,
            Delivery::TruncatedGzip(_) if !accepts_gzip => Delivery::Cut,
            delivery => delivery,
        };
        let length = self.body.len();
        let mut encoding = None;
        let payload = match (self.producer, delivery) {
            (_, Delivery::Drop) => return Err(Cut),
            (Some(producer), _) => Payload::produced(producer),
            (None, Delivery::Whole) => Payload::whole(self.body),
            (None, Delivery::Gzip) => {
                encoding = Some("gzip");
                Payload::whole(gzip(&self.body))
            }
            (None, Delivery::TruncatedGzip(missing)) => {
                encoding = Some("gzip");
                let mut body = gzip(&self.body);
                body.truncate(body.len().saturating_sub(missing).max(1));
                Payload::whole(body)
            }
            (None, Delivery::TruncatedJson) => Payload::whole(self.body.slice(..length / 2)),
            (None, Delivery::Cut | Delivery::CutChunked) => Payload::cut(&self.body),
            (None, Delivery::Stall(pause)) => Payload::stalled(self.body, pause),
        };
        let mut response = Response::new(payload);
        *response.status_mut() = StatusCode::from_u16(self.status).expect("plans name statuses that exist");
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        if let Some(encoding) = encoding {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        match delivery {
            Delivery::Cut => drop(headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length))),
            Delivery::TruncatedGzip(_) => {
                drop(headers.insert(header::CONNECTION, HeaderValue::from_static("close")));
            }
            _ => {}
        }
        for (name, value) in self.headers {
            let value = HeaderValue::try_from(value).expect("plans name printable header values");
            headers.insert(name, value);
        }
        Ok(response)
    }
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).expect("a Vec takes every write");
    encoder.finish().expect("a Vec takes every write")
}

/// What the vendor says to people for each code.
fn description(message: &str) -> &'static str {
    match message {
        "UNAUTHORIZED" => "The access token is missing, malformed or no longer valid.",
        "FORBIDDEN" => "You are currently forbidden to access this resource.",
        "NOT_FOUND" => "What you are looking for cannot be found.",
        "GONE" => "This resource has been deleted.",
        "METHOD_NOT_ALLOWED" => "The method is not allowed for this resource.",
        "UPGRADE_REQUIRED" => "You must upgrade your account to access this resource.",
        "UNPROCESSABLE_ENTITY" => "We cannot process the content sent to us.",
        "RATE_LIMIT_EXCEEDED" => "You have exceeded the rate limit for this resource.",
        "MONTHLY_LIMIT_EXCEEDED" | "API_USAGE_LIMIT_EXCEEDED" => {
            "You have used up the API calls of this month. They are reset on the first day of the next month."
        }
        "TEMPORARILY_UNAVAILABLE" => "This service is temporarily unavailable. Please try again later.",
        "BAD_GATEWAY" | "GATEWAY_TIMEOUT" => "The service behind this one did not answer.",
        "INTERNAL_ERROR" => "An internal error has occurred.",
        _ => "The request cannot be understood.",
    }
}
