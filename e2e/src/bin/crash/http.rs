//! The one kind of request the harness makes: GET from the simulator, read to the end of the connection.

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Gets `path` from `address` (`HOST:PORT`).
pub(crate) async fn get(address: &str, path: &str, token: &str) -> anyhow::Result<String> {
    let mut body = String::new();
    let mut answer = ask(address, path, token).await?;
    answer.read_to_string(&mut body).await.context("the simulator did not answer in UTF-8")?;
    Ok(body)
}

/// Gets `path`, line by line.
pub(crate) async fn lines(
    address: &str,
    path: &str,
    token: &str,
    mut each: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut lines = ask(address, path, token).await?.lines();
    while let Some(line) = lines.next_line().await? {
        each(&line)?;
    }
    Ok(())
}

/// Sends the request and reads the head of the answer. HTTP/1.0, so that the body ends with the connection.
async fn ask(address: &str, path: &str, token: &str) -> anyhow::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(address).await.context("cannot reach the simulator")?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = BufReader::new(stream);
    let mut line = String::new();
    answer.read_line(&mut line).await?;
    let status = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    if status != "200" {
        bail!("the simulator answered {status} to {path}");
    }
    while line != "\r\n" {
        line.clear();
        if answer.read_line(&mut line).await? == 0 {
            bail!("the simulator's answer has no end of headers");
        }
    }
    Ok(answer)
}
