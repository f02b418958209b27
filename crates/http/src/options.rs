//! What a server is made of and told.

use std::sync::Arc;

use db::Database;
use imports::Imports;
use links::Host;
use prometheus_client::registry::Registry;
use url::Url;

use crate::{Clock, Metrics, OtherJobs, PageKey, Redirects, TrustedProxies};

/// How the server presents itself.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The address under which people reach API and pages; errors and signed links name it.
    pub public_url: Url,
    /// If set, the API answers on this host and the public URL's, and on loopback names only for callers on this
    /// machine.
    pub admin_host: Option<Host>,
    /// Whose `X-Forwarded-For` is believed.
    pub trusted_proxies: TrustedProxies,
    /// Signs the links to progress pages.
    pub page_key: PageKey,
    /// The longest destination that the API takes, in characters. Longer ones that are there already redirect.
    pub destination_length_max: usize,
}

impl ServerOptions {
    /// The usual: no admin host of its own, no trusted proxy.
    pub fn new(public_url: Url, page_key: PageKey) -> Self {
        Self {
            public_url,
            admin_host: None,
            trusted_proxies: TrustedProxies::default(),
            page_key,
            destination_length_max: links::DESTINATION_LENGTH_MAX,
        }
    }

    /// Without a slash at its end.
    pub(crate) fn public_base(&self) -> String {
        self.public_url.as_str().trim_end_matches('/').to_owned()
    }

    /// The hosts that the API answers on by configuration.
    pub(crate) fn own_hosts(&self) -> Vec<String> {
        self.admin_host.iter().map(|host| host.as_str().to_owned()).chain(self.public_host()).collect()
    }

    pub(crate) fn public_host(&self) -> Option<String> {
        self.public_url.host_str().map(str::to_owned)
    }
}

/// The parts that a server works with.
#[derive(Clone)]
pub struct Parts {
    /// The database with the links' tables.
    pub database: Database,
    /// The redirects; the same ones that are told of changes by imports.
    pub redirects: Arc<Redirects>,
    /// The imports.
    pub imports: Imports,
    /// What `/metrics` shows.
    pub registry: Arc<Registry>,
    /// This crate's counters, registered in it.
    pub metrics: Metrics,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Kinds of jobs that belong to no workspace.
    pub other_jobs: Vec<Arc<dyn OtherJobs>>,
}
