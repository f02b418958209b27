//! The engine's kind of job that an import is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use db::Database;
use engine::{Job, JobEvent, JobId, Kind, Sink, SinkError, Source, SourceError, Status, Written};
use links::{Domain, Host};

use crate::decide::Rules;
use crate::prepare::Preparer;
use crate::routes::Routes;
use crate::service::load_parameters;
use crate::sink::LinkSink;
use crate::{Error, Parameters, Vault, Vendor};

/// The word of this kind in the engine's tables.
pub const KIND: &str = "import";

/// Called after each chunk's commit in this process, so that caches learn of new slugs.
pub type AfterCommit = Arc<dyn Fn(&[Written]) + Send + Sync>;

/// Imports as the engine runs them.
pub struct ImportKind {
    database: Database,
    vendors: Vec<Arc<dyn Vendor>>,
    vault: Arc<Vault>,
    after_commit: AfterCommit,
    destination_length_max: usize,
}

impl ImportKind {
    /// For these vendors; tokens come from the vault.
    pub fn new(
        database: Database,
        vendors: Vec<Arc<dyn Vendor>>,
        vault: Arc<Vault>,
        after_commit: AfterCommit,
    ) -> Self {
        let destination_length_max = links::DESTINATION_LENGTH_MAX;
        Self { database, vendors, vault, after_commit, destination_length_max }
    }

    /// Takes destinations of up to so many characters, instead of [`links::DESTINATION_LENGTH_MAX`].
    #[must_use]
    pub fn destination_length_max(self, characters: usize) -> Self {
        Self { destination_length_max: characters, ..self }
    }

    fn vendor(&self, word: &str) -> Option<&Arc<dyn Vendor>> {
        self.vendors.iter().find(|vendor| vendor.mapper().vendor() == word)
    }

    async fn parameters(&self, job: JobId) -> Result<Parameters, Error> {
        let mut reader = self.database.read().await?;
        load_parameters(reader.conn(), job).await?.ok_or(Error::NotFound)
    }

    async fn routes(&self, parameters: &Parameters, vendor: &dyn Vendor) -> Result<Routes, Error> {
        let mut reader = self.database.read().await?;
        let target =
            links::domain(reader.conn(), parameters.workspace_id, parameters.target_domain_id).await?;
        let mut mapped: BTreeMap<String, Domain> = BTreeMap::new();
        for (from, to) in &parameters.filter.map_domain {
            let host = Host::new(to).map_err(links::Error::from)?;
            let domain = links::domain_by_host(reader.conn(), &host)
                .await?
                .filter(|domain| domain.workspace_id == parameters.workspace_id)
                .ok_or_else(|| Error::UnknownDomain(to.clone()))?;
            mapped.insert(from.clone(), domain);
        }
        let only: BTreeSet<String> = parameters.filter.only_domain.iter().cloned().collect();
        Ok(Routes { target, mapped, only, vendor_hosts: vendor.mapper().vendor_hosts() })
    }
}

fn sink_error(error: Error) -> SinkError {
    match error {
        Error::Db(error) | Error::Links(links::Error::Db(error)) => SinkError::Db(error),
        other => SinkError::Fatal(other.to_string()),
    }
}

#[async_trait]
impl Kind for ImportKind {
    fn name(&self) -> &'static str {
        KIND
    }

    async fn source(&self, job: &Job) -> Result<Option<Arc<dyn Source>>, SourceError> {
        let Some(token) = self.vault.get(job.id) else { return Ok(None) };
        let parameters = self.parameters(job.id).await.map_err(|error| match error {
            Error::Db(error) => SourceError::Unavailable(error.to_string()),
            other => SourceError::Refused(other.to_string()),
        })?;
        let vendor = self.vendor(&parameters.vendor).ok_or_else(|| {
            SourceError::Refused(format!("this version cannot import from '{}'", parameters.vendor))
        })?;
        vendor.source(&parameters.filter, token).await.map(Some)
    }

    async fn sink(&self, job: &Job) -> Result<Arc<dyn Sink>, SinkError> {
        let parameters = self.parameters(job.id).await.map_err(sink_error)?;
        let vendor = self.vendor(&parameters.vendor).ok_or_else(|| {
            SinkError::Fatal(format!("this version cannot import from '{}'", parameters.vendor))
        })?;
        let routes = Arc::new(self.routes(&parameters, &**vendor).await.map_err(sink_error)?);
        let rules = Rules {
            workspace_id: parameters.workspace_id,
            job_id: job.id.0,
            conflict: parameters.conflict,
            routes: routes.clone(),
            left_behind: Arc::default(),
        };
        let preparer = Preparer::new(vendor.mapper(), routes, self.destination_length_max);
        Ok(Arc::new(LinkSink::new(preparer, rules, self.after_commit.clone(), self.database.clone())))
    }

    fn observe(&self, job: &Job, event: &JobEvent) {
        let words: Words = serde_json::from_str(&job.params).unwrap_or_default();
        let request = job.request_id.as_deref();
        match event {
            JobEvent::RunStarted { run } => tracing::info!(
                job = %job.id, run, workspace = words.workspace, target_domain = words.target_domain,
                conflict_strategy = words.conflict_strategy, filter = words.filter, request,
                "import: starting {} run", words.vendor
            ),
            JobEvent::RunCompleted { run, counts, fetched } => tracing::info!(
                job = %job.id, run, imported = counts.imported, skipped = counts.skipped, failed = counts.failed,
                total = fetched, request, "import: {} run complete", words.vendor
            ),
            JobEvent::Moved { to, reason } => {
                self.tell(job.id, *to, reason.as_deref(), &words.vendor, request);
            }
        }
    }
}

impl ImportKind {
    fn tell(&self, job: JobId, to: Status, reason: Option<&str>, vendor: &str, request: Option<&str>) {
        if to == Status::AwaitingToken || to.is_final() {
            self.vault.forget(job);
        }
        match to {
            Status::Failed => tracing::warn!(job = %job, reason, request, "import: {vendor} {to}"),
            // Who resumed it has said so.
            Status::Running | Status::Queued => {}
            _ => tracing::info!(job = %job, reason, request, "import: {vendor} {to}"),
        }
    }
}

/// What log lines say of an import, kept with the job so that logging asks no database.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Words {
    pub(crate) vendor: String,
    pub(crate) workspace: String,
    pub(crate) target_domain: String,
    pub(crate) conflict_strategy: String,
    pub(crate) filter: String,
}
