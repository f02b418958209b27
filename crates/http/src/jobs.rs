//! Jobs of every kind as one list, for API and pages: the imports of a workspace, and the jobs that belong to none.
//!
//! Who may see them: a token with the scope `jobs:read`. It shows the imports of the token's own workspace and every job
//! that belongs to no workspace, such as a migration of ledger records; never an import of another workspace. Such a token
//! is for those who run the installation.

use async_trait::async_trait;
use db::{Id, Timestamp};
use engine::store::history::{self, Note, SegmentLine};
use engine::store::jobs;
use engine::store::partitions::{self, State};
use engine::{Job, JobId, Mode, Status};
use imports::ImportReport;
use serde::Serialize;
use serde_json::Value;

use crate::api::Api;
use crate::problem::Problem;

/// Notes of a job that are shown; the job keeps about as many.
const NOTES_MAX: i64 = 1_000;
/// Reasons of failed records that are counted, the commonest.
const REASONS_MAX: i64 = 50;

/// Jobs of a kind that belong to no workspace. The binary hands them over, for this crate does not know the kind.
#[async_trait]
pub trait OtherJobs: Send + Sync {
    /// The kind's word in the engine's tables.
    fn kind(&self) -> &'static str;

    /// What a job does, in a few words.
    fn title(&self, job: &Job) -> String;

    /// The job's closing proof, once there is one. Of its members pages know `holds` and `failings`.
    ///
    /// # Errors
    /// Those of the database.
    async fn certificate(&self, job: JobId) -> db::Result<Option<Value>>;
}

/// A job as answers and pages show it, whatever its kind.
#[derive(Debug, Serialize)]
pub(crate) struct JobView {
    pub(crate) id: JobId,
    pub(crate) kind: String,
    /// What it does.
    pub(crate) title: String,
    pub(crate) dry_run: bool,
    pub(crate) status: Status,
    /// `clean` or `partial` once it is completed.
    pub(crate) outcome: Option<&'static str>,
    pub(crate) reason: Option<String>,
    pub(crate) waiting_until: Option<Timestamp>,
    pub(crate) run: i32,
    pub(crate) pages: i64,
    pub(crate) fetched: i64,
    pub(crate) expected: Option<i64>,
    pub(crate) retries: i64,
    pub(crate) imported: i64,
    pub(crate) updated: i64,
    pub(crate) unchanged: i64,
    pub(crate) skipped: i64,
    pub(crate) filtered: i64,
    pub(crate) duplicate_in_source: i64,
    pub(crate) failed: i64,
    pub(crate) created_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) last_progress_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
}

/// All of a job.
#[derive(Debug, Serialize)]
pub(crate) struct WholeJob {
    #[serde(flatten)]
    pub(crate) job: JobView,
    pub(crate) partitions: Vec<State>,
    pub(crate) history: Vec<SegmentLine>,
    pub(crate) notes: Vec<Note>,
    /// Reasons of failed records with their numbers, the commonest first.
    pub(crate) failures: Vec<(String, i64)>,
    pub(crate) certificate: Option<Value>,
}

impl JobView {
    fn of_import(report: ImportReport) -> Self {
        Self {
            id: report.id,
            kind: imports::KIND.to_owned(),
            title: format!("{} to {}", report.vendor, report.domain),
            dry_run: report.dry_run,
            status: report.status,
            outcome: report.outcome,
            reason: report.reason,
            waiting_until: report.waiting_until,
            run: report.run,
            pages: report.pages,
            fetched: report.source_links,
            expected: report.expected,
            retries: report.retries,
            imported: report.imported,
            updated: report.updated,
            unchanged: report.unchanged,
            skipped: report.skipped,
            filtered: report.filtered,
            duplicate_in_source: report.duplicates,
            failed: report.failed,
            created_at: report.created_at,
            started_at: report.started_at,
            last_progress_at: report.last_progress_at,
            finished_at: report.finished_at,
        }
    }

    fn of_other(others: &dyn OtherJobs, job: Job) -> Self {
        Self {
            title: others.title(&job),
            outcome: job.outcome(),
            dry_run: job.mode == Mode::DryRun,
            id: job.id,
            kind: job.kind,
            status: job.status,
            reason: job.reason,
            waiting_until: job.waiting_until,
            run: job.run,
            pages: job.pages,
            fetched: job.fetched,
            expected: job.expected,
            retries: job.retries,
            imported: job.counts.imported,
            updated: job.counts.updated,
            unchanged: job.counts.unchanged,
            skipped: job.counts.skipped,
            filtered: job.counts.filtered,
            duplicate_in_source: job.counts.duplicate_in_source,
            failed: job.counts.failed,
            created_at: job.created_at,
            started_at: job.started_at,
            last_progress_at: job.last_progress_at,
            finished_at: job.finished_at,
        }
    }
}

/// The jobs that a workspace's token with the scope shows, newest first, below `before`.
pub(crate) async fn list(
    api: &Api,
    workspace: Id,
    before: Option<JobId>,
    limit: i64,
) -> Result<Vec<JobView>, Problem> {
    let reports = api.imports.list(workspace, before, limit).await?;
    let mut views: Vec<JobView> = reports.into_iter().map(JobView::of_import).collect();
    for others in &api.other_jobs {
        let mut reader = api.database.read().await?;
        let found = jobs::list(reader.conn(), others.kind(), before, limit).await?;
        views.extend(found.into_iter().map(|job| JobView::of_other(&**others, job)));
    }
    views.sort_unstable_by_key(|view| std::cmp::Reverse(view.id));
    views.truncate(usize::try_from(limit).unwrap_or_default());
    Ok(views)
}

/// All of a job; with a workspace, only if it is that workspace's or nobody's.
pub(crate) async fn whole(api: &Api, workspace: Option<Id>, id: JobId) -> Result<WholeJob, Problem> {
    let mut reader = api.database.read().await?;
    let job = jobs::get(reader.conn(), id).await?.ok_or_else(Problem::not_found)?;
    drop(reader);
    let (job, certificate) = if job.kind == imports::KIND {
        (JobView::of_import(api.imports.get(workspace, id).await?), None)
    } else {
        let others = api.other_jobs.iter().find(|others| others.kind() == job.kind);
        let others = others.ok_or_else(Problem::not_found)?;
        (JobView::of_other(&**others, job), others.certificate(id).await?)
    };
    let mut reader = api.database.read().await?;
    Ok(WholeJob {
        job,
        partitions: partitions::list(reader.conn(), id).await?,
        history: history::segments(reader.conn(), id).await?,
        notes: history::notes(reader.conn(), id, NOTES_MAX).await?,
        failures: history::reason_codes(reader.conn(), id, REASONS_MAX).await?,
        certificate,
    })
}
