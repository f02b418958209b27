//! An import as people and programs see it.

use db::{Id, Timestamp};
use engine::store::partitions::State;
use engine::{Job, JobId, Status};
use serde::Serialize;

use crate::rekeys::POSSIBLE_REKEY;
use crate::{Conflict, Filter, Forecast, HostsMet};

/// One import, with its counters: the same shape for the command line, the API and the page.
#[derive(Debug, Clone, Serialize)]
pub struct ImportReport {
    /// Its id.
    pub id: JobId,
    /// The workspace.
    pub workspace_id: Id,
    /// The vendor's word.
    pub vendor: String,
    /// The domain its slugs go to.
    pub domain: String,
    /// The conflict rule.
    pub conflict: Conflict,
    /// What comes over.
    pub filter: Filter,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// Its state.
    pub status: Status,
    /// `clean` or `partial` once it is completed.
    pub outcome: Option<&'static str>,
    /// Why it waits, failed or needs a token.
    pub reason: Option<String>,
    /// Until when it waits.
    pub waiting_until: Option<Timestamp>,
    /// Number of the latest run.
    pub run: i32,
    /// Records the source counts in all parts together, once it has told that of each.
    pub expected: Option<i64>,
    /// Records fetched.
    pub source_links: i64,
    /// Slugs these records stand for here.
    pub slugs: i64,
    /// Outcomes of records.
    pub imported: i64,
    /// Written again because the source changed.
    pub updated: i64,
    /// Here already.
    pub unchanged: i64,
    /// Left out by the conflict rule, or edited here.
    pub skipped: i64,
    /// Left out by the filter, or deleted.
    pub filtered: i64,
    /// Given twice by the source.
    pub duplicates: i64,
    /// In quarantine, with their reasons.
    pub failed: i64,
    /// Pages fetched.
    pub pages: i64,
    /// Requests and chunks that were repeated.
    pub retries: i64,
    /// When it was made, first ran, last moved and ended.
    pub created_at: Timestamp,
    /// When it first ran.
    pub started_at: Option<Timestamp>,
    /// When something of it last committed.
    pub last_progress_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// The parts of the account (groups, workspaces) in order, each with its state; what is left out says why.
    pub partitions: Vec<State>,
    /// What does not come over from this vendor, in sentences.
    pub left_behind: Vec<&'static str>,
    /// The hosts that a check met at the source and where they go. Dry runs and the rule `fail` check; lists of imports
    /// leave this out.
    pub hosts: Option<HostsMet>,
    /// What it was foretold to need of its source, if that could be told before it started.
    pub forecast: Option<Forecast>,
}

impl ImportReport {
    /// Seconds from its first run to its end, or to its latest progress.
    pub fn seconds(&self) -> f64 {
        let end = self.finished_at.or(self.last_progress_at);
        match (self.started_at, end) {
            (Some(start), Some(end)) => end.since(start).as_secs_f64(),
            _ => 0.0,
        }
    }

    /// Records that have an outcome.
    pub fn settled(&self) -> i64 {
        self.imported
            + self.updated
            + self.unchanged
            + self.skipped
            + self.filtered
            + self.duplicates
            + self.failed
    }

    pub(crate) fn new(
        job: Job,
        parameters: crate::Parameters,
        domain: String,
        partitions: Vec<State>,
        left_behind: &[&'static str],
        (hosts, forecast): (Option<HostsMet>, Option<Forecast>),
    ) -> Self {
        let counts = job.counts;
        Self {
            id: job.id,
            workspace_id: parameters.workspace_id,
            vendor: parameters.vendor,
            domain,
            conflict: parameters.conflict,
            filter: parameters.filter,
            dry_run: job.mode == engine::Mode::DryRun,
            status: job.status,
            outcome: job.outcome(),
            reason: job.reason,
            waiting_until: job.waiting_until,
            run: job.run,
            expected: job.expected,
            source_links: job.fetched,
            slugs: counts.targets,
            imported: counts.imported,
            updated: counts.updated,
            unchanged: counts.unchanged,
            skipped: counts.skipped,
            filtered: counts.filtered,
            duplicates: counts.duplicate_in_source,
            failed: counts.failed,
            pages: job.pages,
            retries: job.retries,
            created_at: job.created_at,
            started_at: job.started_at,
            last_progress_at: job.last_progress_at,
            finished_at: job.finished_at,
            partitions,
            left_behind: left_behind.to_vec(),
            hosts,
            forecast,
        }
    }
}

impl LogEntry {
    /// Whether it speaks of a link that looks like an earlier one under another id.
    pub fn is_possible_rekey(&self) -> bool {
        self.reason == POSSIBLE_REKEY
    }
}

/// One entry of an import's error log.
#[derive(Debug, Clone, Serialize)]
pub struct LogEntry {
    /// The vendor's id.
    pub source_id: Option<String>,
    /// The short URL at the source.
    pub source_slug: Option<String>,
    /// What became of the record.
    pub outcome: String,
    /// Stable reason code.
    pub reason: String,
    /// This case, for people.
    pub detail: String,
}
