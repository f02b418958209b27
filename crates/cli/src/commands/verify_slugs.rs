//! Asks every slug of an account over real HTTP and compares the answer with what the source's link says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use futures_util::StreamExt;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use simulators::bitly::{Account, Truth};

/// Requests under way at once.
const AT_ONCE: usize = 64;
/// Mismatches that are listed; the count goes on.
const LISTED: usize = 20;

/// What a client leaves alone in a path (RFC 3986, section 3.3), apart from `%`.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// What asking every slug gave.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Slugs that answered as they must.
    pub(super) verified: u64,
    /// Slugs that did not.
    pub(super) mismatched: u64,
    /// The first of these, for people.
    pub(super) examples: Vec<String>,
}

/// Asks the server at `address` for every slug of the account. Records broken on purpose are no part of it.
pub(super) async fn ask_all(account: &Arc<Account>, address: SocketAddr) -> anyhow::Result<Answers> {
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .pool_max_idle_per_host(AT_ONCE)
        .no_proxy()
        .use_preconfigured_tls(no_tls())
        .build()
        .context("cannot build the verifying client")?;
    let verified = AtomicU64::new(0);
    let wrong: Vec<String> = futures_util::stream::iter(account.truth().filter(|row| !row.planted))
        .map(|row| {
            let (client, verified) = (client.clone(), &verified);
            async move {
                match ask(&client, address, &row).await {
                    Ok(()) => {
                        verified.fetch_add(1, Ordering::Relaxed);
                        None
                    }
                    Err(error) => Some(format!("{}/{}: {error:#}", row.host, row.slug)),
                }
            }
        })
        .buffer_unordered(AT_ONCE)
        .filter_map(std::future::ready)
        .collect()
        .await;
    Ok(Answers {
        verified: verified.into_inner(),
        mismatched: wrong.len() as u64,
        examples: wrong.into_iter().take(LISTED).collect(),
    })
}

async fn ask(client: &reqwest::Client, address: SocketAddr, row: &Truth) -> anyhow::Result<()> {
    let path = utf8_percent_encode(&row.slug, PATH);
    let answer =
        client.get(format!("http://{address}/{path}")).header(http::header::HOST, &row.host).send().await?;
    let status = answer.status().as_u16();
    let location = answer.headers().get(http::header::LOCATION);
    let location = location.map(|value| value.to_str()).transpose().context("the Location is not ASCII")?;
    if row.holds(status, location) {
        return Ok(());
    }
    anyhow::bail!(
        "answered {status} {}, expected {:?} {}",
        location.unwrap_or("-"),
        row.expect,
        row.location.as_deref().unwrap_or("-")
    )
}

/// The verifying client speaks plain HTTP to this machine only; it needs a TLS configuration merely to be built.
pub(super) fn no_tls() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}
