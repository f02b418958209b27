//! The one place where concrete parts meet.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use db::{Address, Database};
use engine::metrics::Metrics;
use engine::{Limits, Runner, Source, SourceError, Store};
use imports::{AfterCommit, Filter, Forecast, ImportKind, Imports, Mapper, Token, Vault, Vendor};
use prometheus_client::registry::Registry;
use vendors::Surroundings;
use vendors::bitly::{Bitly, BitlyMapper, BitlyOptions};

use crate::args::{Pace, SourceArgs};

/// Opens and migrates a database.
pub(crate) async fn open(address: &Address) -> anyhow::Result<Database> {
    let database = Database::open(address).await.with_context(|| format!("cannot open {address}"))?;
    for room in [&engine::ROOM, &links::ROOM, &imports::ROOM, &ledger::ROOM] {
        database.migrate(room).await.with_context(|| format!("cannot migrate {address}"))?;
    }
    Ok(database)
}

/// Opens a database to work on its jobs. One in which only migrations of ledger records are at home stays that: it is a
/// bank's, and has no use for tables of links.
pub(crate) async fn open_to_work(address: &Address) -> anyhow::Result<(Database, bool)> {
    let database = Database::open(address).await.with_context(|| format!("cannot open {address}"))?;
    let ledger_alone = database.has(&ledger::ROOM).await? && !database.has(&links::ROOM).await?;
    if !ledger_alone {
        drop(database);
        return Ok((open(address).await?, false));
    }
    for room in [&engine::ROOM, &ledger::ROOM] {
        database.migrate(room).await.with_context(|| format!("cannot migrate {address}"))?;
    }
    Ok((database, true))
}

/// The runner of a database in which only migrations of ledger records are at home.
pub(crate) fn ledger_runner(database: &Database, limits: Limits, registry: &mut Registry) -> Runner {
    let kind = Arc::new(ledger::LedgerKind::new(database.clone()));
    Runner::new(Store::new(database.clone()), vec![kind], limits, Metrics::register(registry))
}

/// Bitly, reached as the command line says.
pub(crate) struct BitlyVendor {
    source: SourceArgs,
}

impl BitlyVendor {
    pub(crate) fn new(source: SourceArgs) -> Self {
        Self { source }
    }

    /// The account that a token opens.
    pub(crate) fn account(&self, filter: &Filter, token: &Token) -> Result<Bitly, SourceError> {
        let mut options = BitlyOptions::new(token.clone());
        if let Some(url) = &self.source.base_url {
            options.base_url.clone_from(url);
        }
        if self.source.pace == Some(Pace::None) {
            options.pace = None;
        }
        options.group.clone_from(&filter.group_guid);
        Bitly::new(options, Surroundings::default())
    }
}

#[async_trait]
impl Vendor for BitlyVendor {
    fn mapper(&self) -> Arc<dyn Mapper> {
        Arc::new(BitlyMapper)
    }

    async fn source(&self, filter: &Filter, token: Token) -> Result<Arc<dyn Source>, SourceError> {
        Ok(Arc::new(self.account(filter, &token)?))
    }

    async fn forecast(&self, filter: &Filter, token: Token) -> Result<Option<Forecast>, SourceError> {
        Ok(Some(self.account(filter, &token)?.survey().await?.into()))
    }
}

/// The parts that run and steer imports.
pub(crate) struct Parts {
    pub(crate) database: Database,
    pub(crate) runner: Runner,
    pub(crate) imports: Imports,
}

/// Builds them over a migrated database. `after_commit` tells caches of new slugs.
pub(crate) fn parts(
    database: &Database,
    source: &SourceArgs,
    limits: Limits,
    destination_length_max: usize,
    registry: &mut Registry,
    after_commit: AfterCommit,
) -> Parts {
    let store = Store::new(database.clone());
    let vault = Arc::new(Vault::default());
    let vendors: Vec<Arc<dyn Vendor>> = vec![Arc::new(BitlyVendor::new(source.clone()))];
    let kind = ImportKind::new(database.clone(), vendors.clone(), vault.clone(), after_commit)
        .destination_length_max(destination_length_max);
    let mut kinds: Vec<Arc<dyn engine::Kind>> = vec![Arc::new(kind)];
    if database.kind() == db::Kind::Postgres {
        kinds.push(Arc::new(ledger::LedgerKind::new(database.clone())));
    }
    let runner = Runner::new(store.clone(), kinds, limits, Metrics::register(registry));
    let nudge = {
        let runner = runner.clone();
        Arc::new(move || runner.nudge())
    };
    let imports = Imports::new(store, vendors, vault, nudge);
    Parts { database: database.clone(), runner, imports }
}

/// How much longer than a lease nobody may fetch before a job without a token is given up: whoever takes over begins with
/// the end of the lease, and on a busy machine needs a while.
const TOKEN_GRACE: Duration = Duration::from_secs(5);

/// The engine's limits as the import's contract sets them.
pub(crate) fn limits(database: &Database, lease: Option<Duration>, workers: Option<usize>) -> Limits {
    let defaults = Limits::suited_to(database.kind());
    Limits {
        run_records: imports::MAX_LINKS_PER_RUN,
        run_budget: imports::RUN_BUDGET,
        notes_max: imports::ERROR_LOG_CAP,
        lease: lease.unwrap_or(defaults.lease),
        token_grace: lease.map_or(defaults.token_grace, |lease| lease + TOKEN_GRACE),
        workers: workers.unwrap_or(defaults.workers),
        ..defaults
    }
}

/// The parts of a process that serves HTTP as well.
pub(crate) struct ServerParts {
    pub(crate) jobs: Parts,
    pub(crate) http: http_room::Parts,
}

/// Builds everything that a server needs.
pub(crate) fn server(
    database: &Database,
    source: &SourceArgs,
    limits: Limits,
    destination_length_max: usize,
) -> ServerParts {
    let mut registry = Registry::default();
    let metrics = http_room::Metrics::register(&mut registry);
    let clock: Arc<dyn http_room::Clock> = Arc::new(http_room::SystemClock);
    let redirects =
        http_room::Redirects::new(database.clone(), http_room::CACHE_BYTES, clock.clone(), metrics.clone());
    let after_commit: AfterCommit = {
        let redirects = redirects.clone();
        Arc::new(move |written| redirects.imported(written))
    };
    let jobs = parts(database, source, limits, destination_length_max, &mut registry, after_commit);
    let http = http_room::Parts {
        database: database.clone(),
        redirects,
        registry: Arc::new(registry),
        metrics,
        clock,
        imports: jobs.imports.clone(),
        other_jobs: vec![Arc::new(LedgerJobs(ledger::Ledgers::new(database.clone())))],
    };
    ServerParts { jobs, http }
}

/// Migrations of ledger records, which belong to no workspace, for who watches the installation.
struct LedgerJobs(ledger::Ledgers);

#[async_trait]
impl http_room::OtherJobs for LedgerJobs {
    fn kind(&self) -> &'static str {
        ledger::kind::KIND
    }

    fn title(&self, job: &engine::Job) -> String {
        let words: serde_json::Value = serde_json::from_str(&job.params).unwrap_or_default();
        let word = |name: &str| words[name].as_str().unwrap_or("?").to_owned();
        format!("{} into {}", word("name"), word("target"))
    }

    async fn certificate(&self, job: engine::JobId) -> db::Result<Option<serde_json::Value>> {
        match self.0.certificate(job).await {
            Ok(certificate) => Ok(certificate.and_then(|found| serde_json::to_value(found).ok())),
            Err(ledger::service::Error::Db(error)) => Err(error),
            // A ledger lives on Postgres: elsewhere there is none.
            Err(_) => Ok(None),
        }
    }
}
