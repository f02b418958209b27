//! What the command line and the API do with imports.

use std::sync::Arc;

use db::{Conn, Database, Id};
use engine::store::{history, jobs, partitions};
use engine::{JobId, Mode, NewJob, Status, Store};
use links::{Domain, Host};

use crate::decide::LEFT_BEHIND;
use crate::kind::{KIND, Words};
use crate::store::{postgres, sqlite};
use crate::{
    Conflict, ERROR_LOG_CAP, Error, Filter, Forecast, ImportReport, LogEntry, Parameters, Result, Token,
    Vault, Vendor,
};

/// What is asked for when an import is started.
#[derive(Debug, Clone)]
pub struct NewImport {
    /// The workspace.
    pub workspace_id: Id,
    /// The vendor's word.
    pub vendor: String,
    /// The domain every slug goes to; `None` for the workspace's default.
    pub domain: Option<Host>,
    /// The conflict rule.
    pub conflict: Conflict,
    /// What comes over.
    pub filter: Filter,
    /// Say what would happen and write nothing.
    pub dry_run: bool,
    /// The id of the request that asks.
    pub request_id: Option<String>,
}

impl NewImport {
    fn mode(&self) -> Mode {
        match (self.dry_run, self.conflict) {
            (true, _) => Mode::DryRun,
            (false, Conflict::Fail) => Mode::CheckFirst,
            (false, _) => Mode::Stream,
        }
    }
}

/// The imports of an installation. Cheap to clone.
#[derive(Clone)]
pub struct Imports {
    store: Store,
    vendors: Vec<Arc<dyn Vendor>>,
    vault: Arc<Vault>,
    nudge: Arc<dyn Fn() + Send + Sync>,
}

impl Imports {
    /// Over a migrated database. `nudge` is called when there is new work for the runner of this process.
    pub fn new(
        store: Store,
        vendors: Vec<Arc<dyn Vendor>>,
        vault: Arc<Vault>,
        nudge: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        Self { store, vendors, vault, nudge }
    }

    /// The vendors' words.
    pub fn vendors(&self) -> Vec<&'static str> {
        self.vendors.iter().map(|vendor| vendor.mapper().vendor()).collect()
    }

    /// What does not come over from a vendor, in sentences.
    pub fn left_behind(&self, vendor: &str) -> Result<&'static [&'static str]> {
        Ok(self.vendor(vendor)?.mapper().left_behind())
    }

    fn vendor(&self, word: &str) -> Result<&Arc<dyn Vendor>> {
        self.vendors
            .iter()
            .find(|vendor| vendor.mapper().vendor() == word)
            .ok_or_else(|| Error::UnknownVendor(word.to_owned(), self.vendors().join(", ")))
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    fn database(&self) -> &Database {
        self.store.database()
    }

    /// What an import would need of its source. Starts nothing, and asks the source a few calls.
    ///
    /// # Errors
    /// As [`Imports::start`]; [`Error::Source`] for what would stop the import.
    pub async fn forecast(&self, new: &NewImport, token: &Token) -> Result<Option<Forecast>> {
        let vendor = self.vendor(&new.vendor)?;
        let mut tx = self.database().begin().await?;
        self.checked(&mut tx, new).await?;
        tx.rollback().await?;
        Ok(vendor.forecast(&new.filter, token.clone()).await?)
    }

    /// The parameters and the target domain, if the import may be started.
    async fn checked(&self, tx: &mut db::Tx, new: &NewImport) -> Result<(Parameters, Domain)> {
        let vendor_hosts = self.vendor(&new.vendor)?.mapper().vendor_hosts();
        let (parameters, domain) = parameters(tx, new).await?;
        let targets = std::iter::once(domain.host.as_str())
            .chain(parameters.filter.map_domain.values().map(String::as_str));
        for host in targets {
            if vendor_hosts.contains(&host) {
                return Err(Error::VendorsDomain(host.to_owned()));
            }
        }
        Ok((parameters, domain))
    }

    /// Makes a queued import and keeps its token in memory.
    ///
    /// # Errors
    /// [`Error::UnknownVendor`], [`Error::UnknownDomain`], [`Error::VendorsDomain`].
    pub async fn start(&self, new: &NewImport, token: Token) -> Result<JobId> {
        self.start_with(new, token, None).await
    }

    /// As [`Imports::start`]; keeps with the import what it was foretold to need.
    ///
    /// # Errors
    /// As [`Imports::start`].
    pub async fn start_with(
        &self,
        new: &NewImport,
        token: Token,
        forecast: Option<&Forecast>,
    ) -> Result<JobId> {
        let mut tx = self.database().begin().await?;
        let (parameters, domain) = self.checked(&mut tx, new).await?;
        let forecast =
            forecast.map(|forecast| serde_json::to_string(forecast).expect("texts and numbers are JSON"));
        let workspace = links::workspace(tx.conn(), new.workspace_id).await?;
        let id = JobId(Id::new());
        let filter = filter_text(&parameters.filter);
        let words = Words {
            vendor: new.vendor.clone(),
            workspace: workspace.name.to_string(),
            target_domain: domain.host.to_string(),
            conflict_strategy: new.conflict.to_string(),
            filter: filter.clone(),
        };
        let job = NewJob {
            kind: KIND.into(),
            lane: format!("domain:{}", domain.id),
            mode: new.mode(),
            params: serde_json::to_string(&words).expect("texts are JSON"),
            request_id: new.request_id.clone(),
        };
        jobs::insert(tx.conn(), id, &job).await?;
        db::dispatch!(tx.conn(), insert(id.0, &parameters, &filter, forecast.as_deref()))?;
        // Before the commit: a runner must not find the job without its token.
        self.vault.put(id, token);
        if let Err(error) = tx.commit().await {
            self.vault.forget(id);
            return Err(error.into());
        }
        (self.nudge)();
        Ok(id)
    }

    /// The latest import with the same parameters that is not over, so that starting again goes on instead.
    pub async fn unfinished(&self, new: &NewImport) -> Result<Option<JobId>> {
        let mut tx = self.database().begin().await?;
        let (parameters, _) = parameters(&mut tx, new).await?;
        let filter = filter_text(&parameters.filter);
        let mode = new.mode();
        let id: Option<Id> = db::dispatch!(tx.conn(), unfinished(&parameters, &filter, mode.as_str()))?;
        Ok(id.map(JobId))
    }

    /// One import; with a workspace, only if it is that workspace's.
    pub async fn get(&self, workspace: Option<Id>, id: JobId) -> Result<ImportReport> {
        let mut reader = self.database().read().await?;
        let parameters = load_parameters(reader.conn(), id).await?.ok_or(Error::NotFound)?;
        if workspace.is_some_and(|workspace| workspace != parameters.workspace_id) {
            return Err(Error::NotFound);
        }
        let job = jobs::get(reader.conn(), id).await?.ok_or(Error::NotFound)?;
        let domain =
            links::domain(reader.conn(), parameters.workspace_id, parameters.target_domain_id).await?;
        let partitions = partitions::list(reader.conn(), id).await?;
        let left_behind = self.left_behind(&parameters.vendor).unwrap_or_default();
        let (hosts, forecast): (Option<String>, Option<String>) = db::dispatch!(reader.conn(), beside(id.0))?;
        // What a newer version has written and this one cannot read is not shown.
        let beside = (
            hosts.and_then(|text| serde_json::from_str(&text).ok()),
            forecast.and_then(|text| serde_json::from_str(&text).ok()),
        );
        Ok(ImportReport::new(job, parameters, domain.host.to_string(), partitions, left_behind, beside))
    }

    /// Whether what the import wrote is being taken back (rule `fail`). It rests only when that is over.
    pub async fn is_undoing(&self, id: JobId) -> Result<bool> {
        let mut reader = self.database().read().await?;
        Ok(jobs::phase(reader.conn(), id).await?.undoing)
    }

    /// A workspace's imports, newest first, below `before`.
    pub async fn list(&self, workspace: Id, before: Option<JobId>, limit: i64) -> Result<Vec<ImportReport>> {
        let mut reader = self.database().read().await?;
        let ids: Vec<Id> = db::dispatch!(reader.conn(), list(workspace, before.map(|id| id.0), limit))?;
        drop(reader);
        let mut reports = Vec::with_capacity(ids.len());
        for id in ids {
            let report = self.get(Some(workspace), JobId(id)).await?;
            reports.push(ImportReport { hosts: None, ..report });
        }
        Ok(reports)
    }

    /// The import's history, a line for each segment.
    pub async fn history(&self, id: JobId) -> Result<Vec<history::SegmentLine>> {
        let mut reader = self.database().read().await?;
        Ok(history::segments(reader.conn(), id).await?)
    }

    /// The import's error log, at most [`ERROR_LOG_CAP`] entries: records that did not come over, and slugs that came
    /// over under another name.
    pub async fn error_log(&self, id: JobId) -> Result<Vec<LogEntry>> {
        self.log(id, |entry| entry.reason != LEFT_BEHIND).await
    }

    /// What is worth knowing of links that came over: those without some of what they had at the source, as many as
    /// the error log has room for, and then those that look like earlier ones under another id, as many again.
    pub async fn remarks(&self, id: JobId) -> Result<Vec<LogEntry>> {
        let mut remarks = self.log(id, |entry| entry.reason == LEFT_BEHIND).await?;
        remarks.extend(self.possible_rekeys(id).await?);
        Ok(remarks)
    }

    async fn log(&self, id: JobId, wanted: impl Fn(&LogEntry) -> bool) -> Result<Vec<LogEntry>> {
        let mut reader = self.database().read().await?;
        let notes = history::notes(reader.conn(), id, ERROR_LOG_CAP).await?;
        Ok(notes
            .into_iter()
            .map(|note| LogEntry {
                source_id: note.source_id,
                source_slug: note.label,
                outcome: note.outcome,
                reason: note.code,
                detail: note.detail,
            })
            .filter(wanted)
            .collect())
    }

    /// Stops the import at the next safe point.
    pub async fn pause(&self, workspace: Option<Id>, id: JobId) -> Result<ImportReport> {
        self.move_to(workspace, id, Status::Paused, "paused").await
    }

    /// Ends the import for good; what it wrote stays.
    pub async fn cancel(&self, workspace: Option<Id>, id: JobId) -> Result<ImportReport> {
        self.move_to(workspace, id, Status::Cancelled, "cancelled").await
    }

    /// Lets the import go on from its checkpoint, with a new token if one is given. A running import takes it at once:
    /// one without a token begins to fetch, one with a token makes its next request with the new one.
    pub async fn resume(
        &self,
        workspace: Option<Id>,
        id: JobId,
        token: Option<Token>,
    ) -> Result<ImportReport> {
        let report = self.get(workspace, id).await?;
        if report.status.is_final() {
            return Err(Error::State { from: report.status, wanted: "resumed" });
        }
        if let Some(token) = token {
            self.vault.put(id, token);
        }
        if matches!(report.status, Status::Queued | Status::Running) {
            (self.nudge)();
            return Ok(report);
        }
        self.move_to(workspace, id, Status::Queued, "resumed").await
    }

    async fn move_to(
        &self,
        workspace: Option<Id>,
        id: JobId,
        to: Status,
        wanted: &'static str,
    ) -> Result<ImportReport> {
        let before = self.get(workspace, id).await?;
        if before.status == to {
            return Ok(before);
        }
        if !self.store.move_job(id, to, None, None).await? {
            let now = self.get(workspace, id).await?;
            return Err(Error::State { from: now.status, wanted });
        }
        if to == Status::Queued || before.status != Status::Running {
            self.tell(id, &before.vendor, wanted).await?;
        }
        (self.nudge)();
        self.get(workspace, id).await
    }

    /// The log line of a move that no host will tell: nobody runs the job, or it is only asked to go on.
    async fn tell(&self, id: JobId, vendor: &str, wanted: &str) -> Result<()> {
        let mut reader = self.database().read().await?;
        let job = jobs::get(reader.conn(), id).await?;
        let request = job.as_ref().and_then(|job| job.request_id.as_deref());
        tracing::info!(job = %id, request, "import: {vendor} {wanted}");
        Ok(())
    }
}

async fn parameters(tx: &mut db::Tx, new: &NewImport) -> Result<(Parameters, Domain)> {
    let domain = match &new.domain {
        Some(host) => links::domain_by_host(tx.conn(), host)
            .await?
            .filter(|domain| domain.workspace_id == new.workspace_id)
            .ok_or_else(|| Error::UnknownDomain(host.to_string()))?,
        None => {
            let workspace = links::workspace(tx.conn(), new.workspace_id).await?;
            let id = workspace
                .default_domain_id
                .ok_or_else(|| Error::UnknownDomain("default of the workspace (none is set)".into()))?;
            links::domain(tx.conn(), new.workspace_id, id).await?
        }
    };
    for host in new.filter.map_domain.values() {
        let mapped = Host::new(host).map_err(links::Error::from)?;
        links::domain_by_host(tx.conn(), &mapped)
            .await?
            .filter(|domain| domain.workspace_id == new.workspace_id)
            .ok_or_else(|| Error::UnknownDomain(host.clone()))?;
    }
    let parameters = Parameters {
        workspace_id: new.workspace_id,
        vendor: new.vendor.clone(),
        target_domain_id: domain.id,
        conflict: new.conflict,
        filter: new.filter.clone(),
    };
    Ok((parameters, domain))
}

fn filter_text(filter: &Filter) -> String {
    serde_json::to_string(filter).expect("texts are JSON")
}

pub(crate) async fn load_parameters(conn: Conn<'_>, id: JobId) -> Result<Option<Parameters>> {
    let Some(row) = db::dispatch!(conn, get(id.0))? else { return Ok(None) };
    let unreadable = |reason: String| Error::Parameters(id, reason);
    Ok(Some(Parameters {
        workspace_id: row.workspace_id,
        vendor: row.source_vendor,
        target_domain_id: row.target_domain_id,
        conflict: row.conflict_strategy.parse().map_err(unreadable)?,
        filter: serde_json::from_str(&row.source_filter).map_err(|error| unreadable(error.to_string()))?,
    }))
}
