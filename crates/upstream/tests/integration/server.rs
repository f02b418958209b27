//! A TCP server that reads one request per connection and writes the bytes of a script.

use std::future::Future;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// One request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Counted from 0 over all connections.
    pub(crate) number: usize,
    pub(crate) head: String,
}

impl Seen {
    pub(crate) fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find_map(|(header, value)| header.eq_ignore_ascii_case(name).then_some(value))
    }
}

/// What to write, and what to do then.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    bytes: Vec<u8>,
    end: End,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Close,
    Reset,
    StayOpen,
}

impl Script {
    /// A whole answer with its `Content-Length`.
    pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let length = body.as_ref().len().to_string();
        let mut all = vec![("Content-Length", length.as_str())];
        all.extend_from_slice(headers);
        Self::raw(status, &all, body)
    }

    pub(crate) fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::answer("200 OK", &[], body)
    }

    /// Only the headers given; the connection is closed behind the body.
    pub(crate) fn raw(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let mut bytes = format!("HTTP/1.1 {status}\r\n").into_bytes();
        for (name, value) in headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        if !headers.iter().any(|(name, _)| *name == "Connection") {
            bytes.extend_from_slice(b"Connection: close\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body.as_ref());
        Self { bytes, end: End::Close }
    }

    pub(crate) fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), end: End::Close }
    }

    pub(crate) fn then_reset(self) -> Self {
        Self { end: End::Reset, ..self }
    }

    pub(crate) fn then_silence(self) -> Self {
        Self { end: End::StayOpen, ..self }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

pub(crate) fn gzip(body: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body.as_ref()).unwrap();
    encoder.finish().unwrap()
}

/// Chunks of 7 bytes, without the last chunk.
pub(crate) fn chunks(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in body.chunks(7) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

type Handler = dyn Fn(Seen) -> Pin<Box<dyn Future<Output = Script> + Send>> + Send + Sync;

pub(crate) struct Server {
    pub(crate) base: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Plays the scripts one after the other and repeats the last one.
    pub(crate) async fn playing(scripts: Vec<Script>) -> Self {
        Self::answering(move |seen| scripts[seen.number.min(scripts.len() - 1)].clone()).await
    }

    pub(crate) async fn answering(answer: impl Fn(Seen) -> Script + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        Self::start(move |seen| {
            let answer = Arc::clone(&answer);
            async move { answer(seen) }
        })
        .await
    }

    pub(crate) async fn start<F, A>(handler: F) -> Self
    where
        F: Fn(Seen) -> A + Send + Sync + 'static,
        A: Future<Output = Script> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v4", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let handler: Arc<Handler> = Arc::new(move |seen| Box::pin(handler(seen)));
        let task = tokio::spawn(accept(listener, Arc::clone(&seen), handler));
        Self { base, seen, task }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen.lock().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, seen: Arc<Mutex<Vec<Seen>>>, handler: Arc<Handler>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(serve(stream, Arc::clone(&seen), Arc::clone(&handler)));
    }
}

async fn serve(mut stream: TcpStream, seen: Arc<Mutex<Vec<Seen>>>, handler: Arc<Handler>) {
    let Some(head) = read_head(&mut stream).await else { return };
    let request = {
        let mut seen = seen.lock();
        let request = Seen { number: seen.len(), head };
        seen.push(request.clone());
        request
    };
    let script = handler(request).await;
    // The client may hang up before it has read everything; that is its right.
    let _ = stream.write_all(&script.bytes).await;
    match script.end {
        End::Close => {
            let _ = stream.shutdown().await;
        }
        End::Reset => {
            stream.set_zero_linger().unwrap();
        }
        End::StayOpen => {
            // Until the client hangs up.
            let mut rest = [0; 64];
            while stream.read(&mut rest).await.is_ok_and(|bytes| bytes > 0) {}
        }
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).unwrap())
}
