//! A client that shows exactly what came over the wire.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer as received.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    /// The header's value, if it came exactly once.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let first = values.next();
        assert!(values.next().is_none(), "{name} came twice: {:?}", self.headers);
        first.map(|(_, value)| value.as_str())
    }

    pub(crate) fn location(&self) -> Option<&str> {
        self.header("location")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Status and location: what a redirect is about.
    pub(crate) fn redirect(&self) -> (u16, Option<&str>) {
        (self.status, self.location())
    }
}

/// Sends these bytes and reads until the server closes.
pub(crate) async fn raw(address: SocketAddr, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(bytes).await.unwrap();
    let mut received = Vec::new();
    // A server that refuses early may close before it has read everything.
    let _ = socket.read_to_end(&mut received).await;
    String::from_utf8_lossy(&received).into_owned()
}

/// One request on a connection of its own.
pub(crate) async fn send(
    address: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut request = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        request.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    request.push_str("\r\n");
    request.push_str(body);
    parse(&raw(address, request.as_bytes()).await)
}

fn parse(text: &str) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {text:?}"));
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").unwrap_or((line, "")))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let chunked = headers
        .iter()
        .any(|(name, value)| name.eq_ignore_ascii_case("transfer-encoding") && value == "chunked");
    let body = if chunked { unchunked(body) } else { body.to_owned() };
    Answer { status, headers, body }
}

fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        body.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    body
}
