//! The engine's kind of job that a declared migration is.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use db::{Conn, Database};
use engine::{
    Certified, Job, JobEvent, Kind, Limits, Mode, RejectLimit, RejectRule, Sink, SinkError, Source,
    SourceError, Status,
};
use serde::{Deserialize, Serialize};

use crate::declaration::{self, Declaration};
use crate::dry_run::DrySink;
use crate::plan;
use crate::rules::{REJECTS, RowRate};
use crate::service::{Error, Ledgers};
use crate::sink::LedgerSink;
use crate::source::{Around, FileSource, HttpPages};
use crate::store;

/// The word of this kind in the engine's tables.
pub const KIND: &str = "ledger";

/// Records of a run: a ledger has no reason to end one but the chance to end in order.
const RUN_RECORDS: i64 = 1_000_000;
/// Records of a chunk where the declaration says nothing.
const CHUNK_RECORDS: i32 = 5_000;
/// With a rate, a chunk is no more than a second's rows, but no less than this.
const CHUNK_RECORDS_LEAST: i32 = 100;
/// Pages of a segment where the declaration says nothing.
const SEGMENT_PAGES: i32 = 50;
/// Bytes staged ahead of processing.
const STAGED_BYTES: i64 = 128 * 1024 * 1024;
/// Bytes of staged chunks kept in memory on their way to a worker.
const HANDOFF_BYTES: usize = 32 * 1024 * 1024;

/// What is kept with the job for logging and for its bounds, so that neither asks the ledger's own tables.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Words {
    pub(crate) name: String,
    pub(crate) target: String,
    pub(crate) segment_pages: Option<i32>,
    pub(crate) chunk_records: Option<i32>,
    pub(crate) stop_on_rejects: Option<RejectLimit>,
    pub(crate) rows_per_second: Option<RowRate>,
    /// Records that had an outcome, and those of them that had failed, when a changed folder was accepted.
    #[serde(default)]
    pub(crate) forgiven: (i64, i64),
}

impl Words {
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are JSON")
    }
}

/// Jobs into one table run one after another.
pub(crate) fn lane(target: &str) -> String {
    format!("ledger:{target}")
}

/// Declared migrations as the engine runs them.
pub struct LedgerKind {
    database: Database,
    around: Arc<Around>,
}

impl LedgerKind {
    /// Over the target's database.
    pub fn new(database: Database) -> Self {
        Self { database, around: Arc::new(|builder| builder) }
    }

    /// With surroundings of the source's client.
    #[must_use]
    pub fn around(mut self, around: Arc<Around>) -> Self {
        self.around = around;
        self
    }

    async fn declared(&self, job: &Job) -> Result<(store::LedgerJob, Declaration), SinkError> {
        let mut reader = self.database.read().await?;
        let Conn::Postgres(pg) = reader.conn() else {
            return Err(SinkError::Fatal("a ledger lives on Postgres; this database is SQLite".into()));
        };
        let declared = store::job(pg.conn, job.id)
            .await?
            .ok_or_else(|| SinkError::Fatal(format!("job {} has no declaration", job.id)))?;
        let declaration = Declaration::read(&declared.folder, &declared.variables)
            .map_err(|problems| SinkError::Fatal(told(&problems)))?;
        Ok((declared, declaration))
    }
}

/// Problems in one sentence.
pub(crate) fn told(problems: &[crate::Problem]) -> String {
    const SHOWN: usize = 5;
    let mut text: Vec<String> = problems.iter().take(SHOWN).map(ToString::to_string).collect();
    if problems.len() > SHOWN {
        text.push(format!("{} more", problems.len() - SHOWN));
    }
    text.join("; ")
}

#[async_trait]
impl Kind for LedgerKind {
    fn name(&self) -> &'static str {
        KIND
    }

    async fn source(&self, job: &Job) -> Result<Option<Arc<dyn Source>>, SourceError> {
        let (_, declaration) = self.declared(job).await.map_err(|error| match error {
            SinkError::Db(error) => SourceError::Unavailable(error.to_string()),
            other => SourceError::Refused(other.to_string()),
        })?;
        match declaration.source {
            declaration::Source::Http(http) if HttpPages::is_reachable(&http) => {
                Ok(Some(Arc::new(HttpPages::new(*http, &*self.around)?)))
            }
            declaration::Source::File { path } if FileSource::is_here(&path) => {
                Ok(Some(Arc::new(FileSource::new(path))))
            }
            _ => Ok(None),
        }
    }

    async fn sink(&self, job: &Job) -> Result<Arc<dyn Sink>, SinkError> {
        let (declared, declaration) = self.declared(job).await?;
        // The target is described in a transaction that is rolled back.
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else {
            return Err(SinkError::Fatal("a ledger lives on Postgres; this database is SQLite".into()));
        };
        let shape = plan::shape(pg.conn, &declaration, &declared.folder).await?;
        tx.rollback().await?;
        let shape = shape.map_err(|problems| SinkError::Fatal(told(&problems)))?;
        let sink = LedgerSink::new(declaration, &shape, declared.begun);
        Ok(match job.mode {
            Mode::DryRun => Arc::new(DrySink::new(sink, self.database.clone())),
            Mode::Stream | Mode::CheckFirst => Arc::new(sink),
        })
    }

    async fn certify(&self, job: &Job) -> db::Result<Certified> {
        match Ledgers::new(self.database.clone()).settle(job.id).await {
            Ok(certified) => Ok(certified),
            Err(Error::Db(error)) => Err(error),
            Err(error) => Ok(Certified::Fails(error.to_string())),
        }
    }

    fn limits(&self, job: &Job, limits: &Limits) -> Limits {
        let words: Words = serde_json::from_str(&job.params).unwrap_or_default();
        let rate = words.rows_per_second.and_then(|rate| rate.0);
        let mut chunk_records = words.chunk_records.unwrap_or(CHUNK_RECORDS);
        if let Some(rate) = rate {
            let second = i32::try_from(rate.get()).unwrap_or(i32::MAX).max(CHUNK_RECORDS_LEAST);
            chunk_records = chunk_records.min(second);
        }
        let limit = words.stop_on_rejects.unwrap_or(REJECTS);
        Limits {
            rejects: RejectRule { limit, forgiven: words.forgiven, ..RejectRule::default() },
            rows_per_second: rate,
            pages_per_segment: words.segment_pages.unwrap_or(SEGMENT_PAGES),
            chunk_records,
            part_records: usize::try_from(chunk_records).unwrap_or(usize::MAX).saturating_mul(2),
            staged_bytes: limits.staged_bytes.max(STAGED_BYTES),
            handoff_bytes: limits.handoff_bytes.max(HANDOFF_BYTES),
            run_records: RUN_RECORDS,
            run_budget: Duration::from_secs(24 * 60 * 60),
            ..limits.clone()
        }
    }

    fn observe(&self, job: &Job, event: &JobEvent) {
        let words: Words = serde_json::from_str(&job.params).unwrap_or_default();
        let (name, target) = (words.name, words.target);
        match event {
            JobEvent::RunStarted { run } => {
                tracing::info!(job = %job.id, run, name, target, "ledger: starting a run");
            }
            JobEvent::RunCompleted { run, counts, fetched } => tracing::info!(
                job = %job.id, run, name, imported = counts.imported, unchanged = counts.unchanged,
                failed = counts.failed, fetched, "ledger: a run is complete"
            ),
            JobEvent::Moved { to: Status::Running | Status::Queued, .. } => {}
            JobEvent::Moved { to: Status::Failed, reason } => {
                tracing::warn!(job = %job.id, name, reason = reason.as_deref(), "ledger: failed");
            }
            JobEvent::Moved { to, reason } => {
                tracing::info!(job = %job.id, name, reason = reason.as_deref(), "ledger: {to}");
            }
        }
    }
}
