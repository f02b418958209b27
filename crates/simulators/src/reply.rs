//! An answer before it is sent, and the ways of sending it badly.

use std::{io::Write as _, time::Duration};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use crate::payload::{Cut, Payload, Producer};

const JSON: &str = "application/json";
/// A huge body is sent in pieces of this size.
const HUGE_PIECE: usize = 1 << 16;

/// An answer that could be sent well.
pub(crate) struct Reply {
    status: u16,
    content_type: &'static str,
    headers: Vec<(HeaderName, String)>,
    body: Bytes,
    producer: Option<Producer>,
    delivery: Delivery,
}

/// How an answer goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Delivery {
    #[default]
    Whole,
    Gzip,
    GzipChunked,
    TruncatedGzip(usize),
    TruncatedJson,
    Cut,
    CutChunked,
    Drop,
    Stall(Duration),
}

impl Reply {
    /// A JSON document.
    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::bytes(status, JSON, body.to_string())
    }

    /// Any document.
    pub(crate) fn bytes(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let (headers, delivery) = (Vec::new(), Delivery::default());
        Self { status, content_type, headers, body: body.into(), producer: None, delivery }
    }

    /// Lines of JSON as they are made.
    pub(crate) fn lines(producer: Producer) -> Self {
        Self { producer: Some(producer), ..Self::bytes(200, "application/x-ndjson", Bytes::new()) }
    }

    /// A body that goes on for `length` bytes after `beginning`, which is part of them.
    pub(crate) fn huge(beginning: &'static [u8], length: u64) -> Self {
        let mut left = length;
        let mut piece = Bytes::from_static(beginning);
        let filling = Bytes::from(vec![b' '; HUGE_PIECE]);
        let producer = move || {
            let mut current = std::mem::replace(&mut piece, filling.clone());
            current.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            left -= current.len() as u64;
            (!current.is_empty()).then_some(current)
        };
        Self { producer: Some(Box::new(producer)), ..Self::bytes(200, JSON, Bytes::new()) }
    }

    /// What a proxy or a maintenance page says.
    pub(crate) fn html(status: u16) -> Self {
        const PAGE: &str = "<!DOCTYPE html>\n<html><head><title>Please wait</title></head>\n<body><h1>We will be back \
                            soon</h1><p>{\"links\":[],\"data\":[]}</p></body></html>\n";
        Self::bytes(status, "text/html; charset=utf-8", PAGE)
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn delivered(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// Sets how the answer goes out, unless a fault has decided that already.
    pub(crate) fn delivered_by_default(self, delivery: Delivery) -> Self {
        if self.delivery == Delivery::Whole { self.delivered(delivery) } else { self }
    }

    /// Puts the answer on the wire, as well or as badly as it is to be delivered.
    ///
    /// `accepts_gzip` is what the client said; without it a compressed delivery becomes a plain one, or a cut.
    pub(crate) fn send(self, accepts_gzip: bool) -> Result<Response<Payload>, Cut> {
        let delivery = match self.delivery {
            Delivery::Gzip | Delivery::GzipChunked if !accepts_gzip => Delivery::Whole,
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
            (None, Delivery::GzipChunked) => {
                encoding = Some("gzip");
                let body = Bytes::from(gzip(&self.body));
                let middle = body.len() / 2;
                let mut halves = [body.slice(..middle), body.slice(middle..)].into_iter();
                Payload::produced(Box::new(move || halves.next()))
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
