//! TLS: who is trusted, and an end without goodbye.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use crossdock_upstream::{Broken, Client, Error, Options, Url};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::server::{LAST_CHUNK, Script, chunks, gzip};
use crate::{builder, clock};

const PAGE: &str = r#"{"links":[{"id":"bit.ly/a"}],"next":""}"#;

/// Serves each script on a connection of its own and drops it without TLS's `close_notify`.
struct TlsServer {
    base: Url,
    root_pem: String,
}

impl TlsServer {
    fn playing(scripts: Vec<Script>) -> Self {
        let key = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let root_pem = pem(key.cert.der());
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![key.cert.der().clone()], private)
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = Url::parse(&format!("https://{}", listener.local_addr().unwrap())).unwrap();
        std::thread::spawn(move || {
            for script in scripts {
                let (stream, _) = listener.accept().unwrap();
                let mut stream =
                    StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
                let mut head = Vec::new();
                let mut buffer = [0; 1_024];
                while !head.windows(4).any(|window| window == b"\r\n\r\n") {
                    match stream.read(&mut buffer) {
                        Ok(read) if read > 0 => head.extend_from_slice(&buffer[..read]),
                        _ => break,
                    }
                }
                let _ = stream.write_all(&script.into_bytes()).and_then(|()| stream.flush());
            }
        });
        Self { base, root_pem }
    }

    fn client(&self) -> Client {
        let options = Options { extra_roots_pem: Some(self.root_pem.clone()), ..Options::default() };
        builder(self.base.as_str(), &clock()).options(options).build().unwrap()
    }
}

fn pem(der: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in der.chunks(3) {
        let bits =
            three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * place)) as usize & 63] as char;
            text.push(if place > three.len() { '=' } else { letter });
        }
    }
    let lines: Vec<String> =
        text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

fn chunked_gzip(body: Vec<u8>) -> Script {
    Script::raw("200 OK", &[("Transfer-Encoding", "chunked"), ("Content-Encoding", "gzip")], body)
}

/// reqwest#2802: with its own gzip the library reads on behind the last chunk and takes the missing
/// `close_notify` for a broken body.
#[tokio::test]
async fn row_75_a_whole_chunked_gzip_page_counts_without_close_notify_and_a_cut_one_does_not() {
    let whole = [chunks(&gzip(PAGE)), LAST_CHUNK.to_vec()].concat();
    let server = TlsServer::playing(vec![chunked_gzip(whole.clone())]);
    let answer = server.client().get_json("links", &[]).await.unwrap();
    assert_eq!((answer.body.as_ref(), answer.attempts), (PAGE.as_bytes(), 1));

    let cut = chunks(&gzip(PAGE));
    let server = TlsServer::playing(vec![chunked_gzip(cut), chunked_gzip(whole)]);
    let answer = server.client().get_json("links", &[]).await.unwrap();
    assert_eq!((answer.body.as_ref(), answer.attempts), (PAGE.as_bytes(), 2));
}

#[tokio::test]
async fn a_body_that_only_the_end_of_the_connection_ends_needs_close_notify() {
    let endless = Script::raw("200 OK", &[], PAGE);
    let server = TlsServer::playing(vec![endless, Script::ok(PAGE)]);
    let answer = server.client().get_json("links", &[]).await.unwrap();
    assert_eq!(answer.attempts, 2, "without it nobody knows whether this was all");
}

#[tokio::test]
async fn row_48_an_http_next_of_an_https_api_stays_on_https() {
    let server = TlsServer::playing(vec![Script::ok(PAGE)]);
    let next = server.base.as_str().replace("https://", "http://") + "links?page=2";
    let answer = server.client().get_json(&next, &[]).await.unwrap();
    assert_eq!(answer.url.scheme(), "https");
}

#[tokio::test]
async fn a_stranger_is_not_trusted_and_not_asked_again() {
    let server = TlsServer::playing(vec![Script::ok(PAGE)]);
    let error = builder(server.base.as_str(), &clock()).build().unwrap().get("links", &[]).await.unwrap_err();
    assert!(matches!(error, Error::Transport { kind: Broken::Certificate, attempts: 1, .. }), "{error}");
    assert!(!error.is_temporary());
}

#[test]
fn roots_that_are_none_are_refused() {
    let bad = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let options = Options { extra_roots_pem: Some(bad.to_owned()), ..Options::default() };
    let built = builder("https://api.example", &clock()).options(options).build();
    assert!(matches!(built, Err(Error::Options { .. })));
}
