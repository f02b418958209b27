//! A client that sees the bytes as they are: what was announced, what came, and whether it ended well.

use std::{collections::BTreeMap, net::SocketAddr};

use crossdock_simulators::bitly::{Account, FaultPlan, Options, Running, Server};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// One answer, or what came of it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// Whether all that was announced came.
    pub(crate) complete: bool,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn cursor(&self) -> String {
        self.json()["pagination"]["search_after"].as_str().expect("a cursor").to_owned()
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        let body = self.json();
        let links = body["links"].as_array().expect("links").clone();
        links.iter().map(|link| link["id"].as_str().expect("an id").to_owned()).collect()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
        let headers: BTreeMap<String, String> = lines
            .map(|line| line.split_once(':').unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let rest = &bytes[end + 4..];
        let (body, complete) = match headers.get("content-length") {
            Some(length) => (rest.to_vec(), rest.len() == length.parse::<usize>().unwrap()),
            None => unchunk(rest),
        };
        Some(Self { status, headers, body, complete })
    }
}

fn unchunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        rest = &rest[end + 2..];
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        rest = rest.get(size + 2..).unwrap_or_default();
    }
    (body, false)
}

/// Sends a request on a connection of its own; nothing if that was closed without an answer.
pub(crate) async fn exchange(addr: SocketAddr, request: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // A reset is an end too; what came before it counts.
    let _ = stream.read_to_end(&mut bytes).await;
    Answer::read(&bytes)
}

/// A simulator and how to ask it.
pub(crate) struct Simulator {
    pub(crate) running: Running,
    pub(crate) token: String,
    pub(crate) group: String,
}

impl Simulator {
    pub(crate) async fn start(account: Account, faults: &str, options: Options) -> Self {
        let faults: FaultPlan = faults.parse().unwrap();
        let running = Server::start("127.0.0.1:0".parse().unwrap(), account, faults, options).await.unwrap();
        let ready = running.ready();
        Self { running, token: ready.token, group: ready.group }
    }

    pub(crate) async fn with_faults(count: u64, faults: &str) -> Self {
        Self::start(Account::generate(count, 1), faults, Options::default()).await
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.running.addr()
    }

    pub(crate) fn head(&self, path: &str) -> String {
        format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n",
            self.addr(),
            self.token
        )
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.try_get(path).await.expect("an answer")
    }

    /// Nothing if the connection was closed without an answer.
    pub(crate) async fn try_get(&self, path: &str) -> Option<Answer> {
        self.send(&format!("{}\r\n", self.head(path))).await
    }

    pub(crate) async fn send(&self, request: &str) -> Option<Answer> {
        exchange(self.addr(), request).await
    }

    pub(crate) fn list_path(&self, cursor: &str) -> String {
        let cursor = encoded(cursor);
        format!("/v4/groups/{}/bitlinks?size=100&archived=both&search_after={cursor}", self.group)
    }

    pub(crate) async fn list(&self, cursor: &str) -> Answer {
        self.get(&self.list_path(cursor)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        );
        self.send(&request).await.expect("an answer")
    }

    /// All ids of a walk that nothing disturbs.
    pub(crate) async fn walk(&self) -> Vec<String> {
        let (mut ids, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.list(&cursor).await;
            assert_eq!(page.status, 200, "{}", page.text());
            ids.extend(page.ids());
            cursor = page.cursor();
            if cursor.is_empty() {
                return ids;
            }
        }
    }
}

pub(crate) fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
