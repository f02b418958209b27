//! `crossdock serve`: redirects, API, pages, and the jobs.

use std::net::SocketAddr;

use anyhow::Context;
use db::{Address, Database, Timestamp};
use http_room::{PageKey, ServerOptions, TrustedProxies};
use links::{Host, Name, Scope};
use tokio::net::TcpListener;
use url::Url;

use super::{chance, default_workspace, open, print, say, stop_on_signal};
use crate::args::Serve;
use crate::exit::{Exit, usage};
use crate::lock::{self, Taken};
use crate::settings::File;
use crate::wire;

/// The variable with the key that signs links to progress pages: 64 hexadecimal digits, the same on all nodes.
const PAGE_KEY_VARIABLE: &str = "CROSSDOCK_PAGE_KEY";

pub(super) async fn run(args: &Serve, address: &Address, file: &File) -> anyhow::Result<Exit> {
    let listen = args.listen.context("the settings give an address to listen on")?;
    let database = open(address).await?;
    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    let bound = listener.local_addr()?;
    let options =
        ServerOptions { destination_length_max: file.destination_length_max()?, ..options(args, bound)? };
    let _lock = match lock::take(&database, "serve", Some(options.public_url.as_str().trim_end_matches('/')))?
    {
        Taken::Ours(lock) => lock,
        Taken::Theirs(holder) => {
            let holder = holder.map_or_else(|| "another process".to_owned(), |holder| holder.describe());
            return Err(usage(format!("{holder} runs the jobs of this database; stop it first")));
        }
    };
    first_token(&database).await?;
    let limits = wire::limits(&database, file.lease()?, args.workers);
    let parts = wire::server(&database, &args.source, limits, options.destination_length_max);
    let stop = stop_on_signal()?;
    let runner = {
        let (runner, stop) = (parts.jobs.runner.clone(), stop.clone());
        tokio::spawn(async move { runner.run(stop).await })
    };
    say(format!("serving on http://{bound}"));
    let served = http_room::serve(listener, options, parts.http, stop.clone().cancelled_owned()).await;
    stop.cancel();
    runner.await?;
    served?;
    Ok(Exit::Clean)
}

fn options(args: &Serve, bound: SocketAddr) -> anyhow::Result<ServerOptions> {
    let public_url = match &args.public_url {
        Some(text) => {
            text.parse::<Url>().map_err(|error| usage(format!("--public-url '{text}': {error}")))?
        }
        None => format!("http://{bound}").parse::<Url>()?,
    };
    let admin_host = args
        .admin_host
        .as_deref()
        .map(|text| Host::new(text).map_err(|error| usage(format!("--admin-host '{text}': {error}"))))
        .transpose()?;
    let proxies = args
        .trusted_proxy
        .iter()
        .map(|text| {
            text.parse()
                .map_err(|_| usage(format!("--trusted-proxy '{text}' is not a network like 10.0.0.0/8")))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    Ok(ServerOptions {
        admin_host,
        trusted_proxies: TrustedProxies::new(proxies),
        ..ServerOptions::new(public_url, page_key()?)
    })
}

/// The key from the environment, or one of this process alone.
pub(super) fn page_key() -> anyhow::Result<PageKey> {
    let mut bytes = [0u8; 32];
    match std::env::var(PAGE_KEY_VARIABLE) {
        Ok(text) => {
            let wrong = || usage(format!("{PAGE_KEY_VARIABLE} must be 64 hexadecimal digits"));
            if text.len() != 64 || !text.is_ascii() {
                return Err(wrong());
            }
            for (index, byte) in bytes.iter_mut().enumerate() {
                *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).map_err(|_| wrong())?;
            }
        }
        Err(_) => rand::RngCore::fill_bytes(&mut rand::rng(), &mut bytes),
    }
    Ok(PageKey::new(bytes))
}

/// On a new database: makes an administrator's token and prints it, once.
async fn first_token(database: &Database) -> anyhow::Result<()> {
    let workspace = default_workspace(database).await?;
    let mut tx = database.begin().await?;
    if links::any_token(tx.conn()).await? {
        return Ok(());
    }
    let name = Name::new("admin").context("the name is short and plain")?;
    let (_, token) = links::create_token(
        &mut tx,
        workspace.id,
        &name,
        &Scope::ALL,
        None,
        Timestamp::here(),
        &mut chance(),
    )
    .await?;
    tx.commit().await?;
    say("a new database; this API token may do everything and is shown once:");
    print(token.reveal())
}
