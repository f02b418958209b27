//! What is meant: flags over environment over file over defaults.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use db::Address;
use serde::Deserialize;

use crate::args::{Cli, Serve};
use crate::exit::usage;

/// The file's keys. Unknown ones are refused: a misspelt setting must not be ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    database: Option<String>,
    listen: Option<String>,
    public_url: Option<String>,
    admin_host: Option<String>,
    trusted_proxy: Vec<String>,
    workers: Option<usize>,
    lease_seconds: Option<u64>,
    destination_length_max: Option<usize>,
}

/// The settings file that is read when none is named, if it is there.
const DEFAULT_FILE: &str = "crossdock.toml";
const DEFAULT_DATABASE: &str = "sqlite://crossdock.db";
const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

/// Reads the settings file.
pub(crate) fn file(cli: &Cli) -> anyhow::Result<File> {
    let path = match &cli.config {
        Some(path) => path.as_path(),
        None if Path::new(DEFAULT_FILE).exists() => Path::new(DEFAULT_FILE),
        None => return Ok(File::default()),
    };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    // The parser's message quotes the line, which may hold a password: only the place is told.
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        usage(format!("{} line {line}: {}", path.display(), error.message()))
    })
}

impl File {
    /// The database's address.
    pub(crate) fn database(&self, cli: &Cli) -> anyhow::Result<Address> {
        let url = cli.database.as_deref().or(self.database.as_deref()).unwrap_or(DEFAULT_DATABASE);
        url.parse().map_err(|error: db::Error| usage(error.to_string()))
    }

    /// How long a fetcher's lease lasts; `CROSSDOCK_LEASE_SECONDS` over the file.
    pub(crate) fn lease(&self) -> anyhow::Result<Option<Duration>> {
        let seconds = match std::env::var("CROSSDOCK_LEASE_SECONDS") {
            Ok(text) => {
                Some(text.parse::<u64>().map_err(|_| usage("CROSSDOCK_LEASE_SECONDS is not a number"))?)
            }
            Err(_) => self.lease_seconds,
        };
        match seconds {
            Some(0) => Err(usage("a lease lasts at least one second")),
            seconds => Ok(seconds.map(Duration::from_secs)),
        }
    }

    /// The longest destination, in characters; `CROSSDOCK_DESTINATION_LENGTH_MAX` over the file.
    pub(crate) fn destination_length_max(&self) -> anyhow::Result<usize> {
        let characters = match std::env::var("CROSSDOCK_DESTINATION_LENGTH_MAX") {
            Ok(text) => {
                Some(text.parse().map_err(|_| usage("CROSSDOCK_DESTINATION_LENGTH_MAX is not a number"))?)
            }
            Err(_) => self.destination_length_max,
        };
        match characters {
            Some(0) => Err(usage("a destination has at least one character")),
            characters => Ok(characters.unwrap_or(links::DESTINATION_LENGTH_MAX)),
        }
    }

    /// Fills what `serve` was not told on the command line.
    pub(crate) fn serve(&self, args: &mut Serve) -> anyhow::Result<()> {
        if args.listen.is_none() {
            let text = self.listen.as_deref().unwrap_or(DEFAULT_LISTEN);
            args.listen =
                Some(text.parse().map_err(|_| usage(format!("'{text}' is not an address to listen on")))?);
        }
        args.public_url = args.public_url.take().or_else(|| self.public_url.clone());
        args.admin_host = args.admin_host.take().or_else(|| self.admin_host.clone());
        args.workers = args.workers.or(self.workers);
        if args.trusted_proxy.is_empty() {
            args.trusted_proxy.clone_from(&self.trusted_proxy);
        }
        Ok(())
    }

    /// Workers for each parallel job.
    pub(crate) fn workers(&self) -> Option<usize> {
        self.workers
    }
}
