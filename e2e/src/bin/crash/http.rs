//! The one kind of request the harness makes: GET from the simulator, read to the end of the connection.

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Gets `path` from `address` (`HOST:PORT`). HTTP/1.0, so that the body ends with the connection.
pub(crate) async fn get(address: &str, path: &str, token: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address).await.context("cannot reach the simulator")?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8(answer).context("the simulator did not answer in UTF-8")?;
    let (head, body) =
        answer.split_once("\r\n\r\n").context("the simulator's answer has no end of headers")?;
    let status = head.split_whitespace().nth(1).unwrap_or_default();
    if status != "200" {
        bail!("the simulator answered {status} to {path}");
    }
    Ok(body.to_owned())
}
