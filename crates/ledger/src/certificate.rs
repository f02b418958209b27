//! The closing proof of a job: what came against what stands in the target.
//!
//! This code shares nothing with the sink but the digest's definition. It starts from the manifest, which was committed with
//! the rows, and from the target through the declaration's proof; one full join of the two names every record that is lost,
//! altered or doubled, and every row that is foreign.

use std::collections::BTreeMap;

use db::{Conn, Database, Timestamp};
use engine::store::jobs;
use engine::{Counts, Job, JobId};
use serde::{Deserialize, Serialize};
use sqlx::Executor as _;

use crate::declaration::Declaration;
use crate::reconcile;
use crate::service::Error;
use crate::sql::Shape;
use crate::store::{self, LedgerJob};

/// Whether a job's records are all accounted for and none is altered, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// Everything below is as it should be.
    pub holds: bool,
    /// What is not, in words.
    pub failings: Vec<String>,
    /// The job.
    pub job: String,
    /// The migration's name, and SHA-256 of its folder.
    pub migration: String,
    /// See `migration`.
    pub folder_sha256: String,
    /// Pages fetched.
    pub pages: i64,
    /// Records fetched.
    pub records: i64,
    /// What became of them.
    pub outcomes: Counts,
    /// Records that stand in the target: imported, updated or unchanged.
    pub standing: i64,
    /// The lowest and the highest reference among them, by bytes.
    pub min_reference: Option<String>,
    /// See `min_reference`.
    pub max_reference: Option<String>,
    /// The order-free hash of the proved fields, from the received bytes.
    pub source_hash: String,
    /// The same, from the target.
    pub target_hash: String,
    /// The fields that are proved.
    pub proved: Vec<String>,
    /// Sums from both sides.
    pub sums: Vec<SumLine>,
    /// Records in the manifest that the target has no row for.
    pub lost: Named,
    /// Records whose proved fields were right when they were settled, and are others now.
    pub altered: Named,
    /// Records for which the proof gives back more than one row, or that stand under a second reference.
    pub doubled: Named,
    /// Records that were wrong when they were settled. They are in quarantine, and nothing of them is in the target.
    pub damaged: i64,
    /// Rows of others that were there before the job began.
    pub foreign_before: i64,
    /// Rows of others that came since.
    pub foreign_since: Named,
    /// The declaration's checks.
    pub checks: Vec<CheckLine>,
    /// What is in quarantine and open, by reason.
    pub quarantined: BTreeMap<String, i64>,
    /// What is in quarantine and was discarded by somebody, by reason.
    #[serde(default)]
    pub discarded: BTreeMap<String, i64>,
    /// The retries of quarantined records; the outcomes are those after them.
    #[serde(default)]
    pub retries: Vec<RetryLine>,
    /// Records whose rows a rollback removed.
    #[serde(default)]
    pub rolled_back: i64,
}

/// How many there are, and the first of them by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// How many.
    pub count: i64,
    /// The references of the first thousand.
    pub references: Vec<String>,
}

/// One sum from both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SumLine {
    /// The field.
    pub field: String,
    /// The values of the grouping fields.
    pub by: Vec<String>,
    /// From the received bytes.
    pub source: Option<String>,
    /// From the target; none if the proof does not give the fields back.
    pub target: Option<String>,
}

/// One retry of quarantined records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, sqlx::FromRow)]
pub struct RetryLine {
    /// Its number, from 1.
    pub number: i32,
    /// The partition and the segment of its line in the job's history.
    pub part: i32,
    /// See `part`.
    pub segment: i32,
    /// Only records with this reason were tried; all, if there is none.
    pub code: Option<String>,
    /// The hash of the folder that was tried.
    pub folder_hash: String,
    /// The hash of the job's folder before.
    pub folder_hash_before: String,
    /// Records that were tried, and those that left the quarantine.
    pub taken: i64,
    /// See `taken`.
    pub moved: i64,
    /// When it began.
    #[serde(deserialize_with = "time")]
    pub began_at: Timestamp,
    /// Whether it came to its end; what one that was broken off moved has moved.
    pub finished: bool,
}

fn time<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    Timestamp::parse_rfc3339(&text).ok_or_else(|| serde::de::Error::custom(format!("'{text}' is no time")))
}

/// How a check went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckLine {
    /// Its file.
    pub check: String,
    /// Whether rows keep the certificate from holding.
    pub blocks: bool,
    /// How many rows it gives; there should be none.
    pub rows: i64,
    /// The first of them, as JSON.
    pub examples: Vec<String>,
}

/// Computes the certificate of a job from what is stored and what stands in the target now.
pub(crate) async fn certify(
    database: &Database,
    job: &Job,
    declared: &LedgerJob,
    declaration: &Declaration,
    shape: &Shape,
) -> Result<Certificate, Error> {
    let mut tx = database.begin().await?;
    let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
    let conn = pg.conn;
    conn.execute(
        "SET LOCAL idle_in_transaction_session_timeout = 0; \
         CREATE TEMP TABLE expected (reference text NOT NULL, digest bytea NOT NULL) ON COMMIT DROP",
    )
    .await?;
    let manifest = reconcile::expect(database, conn, job.id).await?;
    let source = reconcile::from_source(conn, job.id, declaration).await?;
    let mut certificate = Certificate {
        holds: false,
        failings: Vec::new(),
        job: job.id.to_string(),
        migration: declared.name.clone(),
        folder_sha256: declared.folder_hash.clone(),
        pages: job.pages,
        records: job.fetched,
        outcomes: job.counts,
        standing: manifest.standing,
        min_reference: manifest.min.clone(),
        max_reference: manifest.max.clone(),
        source_hash: source.hash.to_string(),
        target_hash: String::new(),
        proved: shape.proved.iter().map(|(name, _)| name.clone()).collect(),
        sums: Vec::new(),
        lost: Named::default(),
        altered: Named::default(),
        doubled: Named::default(),
        damaged: 0,
        foreign_before: 0,
        foreign_since: Named::default(),
        checks: Vec::new(),
        quarantined: BTreeMap::new(),
        discarded: BTreeMap::new(),
        retries: store::retries(conn, job.id).await?,
        rolled_back: store::rolled_back(conn, job.id).await?,
    };
    (certificate.quarantined, certificate.discarded) = reconcile::quarantined(conn, job.id).await?;
    certificate.damaged = ["differs_from_source", "not_proved"]
        .iter()
        .flat_map(|code| [certificate.quarantined.get(*code), certificate.discarded.get(*code)])
        .flatten()
        .sum();
    let target = reconcile::from_target(conn, declared, declaration, shape, manifest.standing).await?;
    certificate.target_hash = target.hash.to_string();
    (certificate.lost, certificate.altered, certificate.doubled) =
        (target.lost, target.altered, target.doubled);
    (certificate.foreign_before, certificate.foreign_since) = (target.foreign_before, target.foreign_since);
    certificate.sums = reconcile::sum_lines(&declaration.sums, source.sums, target.sums);
    certificate.checks = reconcile::checks(conn, job.id, declaration).await?;
    tx.rollback().await?;
    certificate.failings = certificate.find_failings(source.records);
    certificate.holds = certificate.failings.is_empty();
    Ok(certificate)
}

impl Certificate {
    /// What keeps it from holding: `proved` records were proved when they were settled.
    fn find_failings(&self, proved: i64) -> Vec<String> {
        let mut found = Vec::new();
        let mut fail = |is_wrong: bool, text: String| {
            if is_wrong {
                found.push(text);
            }
        };
        let told = self.outcomes.records();
        fail(self.records != told, format!("{} records were fetched, {told} have an outcome", self.records));
        let standing = self.outcomes.imported + self.outcomes.updated + self.outcomes.unchanged;
        fail(
            self.standing != standing,
            format!("the manifest has {} standing records, the counters {standing}", self.standing),
        );
        fail(
            proved != standing,
            format!("{proved} records were proved when they were settled, of {standing}"),
        );
        let kept: i64 = self.quarantined.values().chain(self.discarded.values()).sum();
        fail(
            kept != self.outcomes.failed,
            format!("{kept} records are in quarantine, {} failed", self.outcomes.failed),
        );
        fail(self.rolled_back > 0, format!("the rows of {} records were rolled back", self.rolled_back));
        for (what, named) in [("lost", &self.lost), ("altered", &self.altered), ("doubled", &self.doubled)] {
            let first: Vec<&str> = named.references.iter().take(3).map(String::as_str).collect();
            fail(named.count > 0, format!("{} {what} ({})", named.count, first.join(", ")));
        }
        fail(self.source_hash != self.target_hash, "the hashes of source and target differ".to_owned());
        for sum in self.sums.iter().filter(|sum| sum.target.is_some() && sum.source != sum.target) {
            let (source, target) = (shown(&sum.source), shown(&sum.target));
            let by = sum.by.join("/");
            fail(
                true,
                format!(
                    "the sum of {} for {by} is {source} at the source and {target} in the target",
                    sum.field
                ),
            );
        }
        for check in self.checks.iter().filter(|check| check.blocks && check.rows > 0) {
            fail(true, format!("{} gives {} rows", check.check, check.rows));
        }
        found
    }

    /// For people.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        let verdict = if self.holds { "**holds**" } else { "**does not hold**" };
        let counts = &self.outcomes;
        let mut line = |content: String| {
            text.push_str(&content);
            text.push('\n');
        };
        line(format!("# Certificate of {} (job {}): {verdict}\n", self.migration, self.job));
        for failing in &self.failings {
            line(format!("- {failing}\n"));
        }
        line(format!(
            "{} records in {} pages; {} of them stand in the target.\n",
            self.records, self.pages, self.standing
        ));
        line("| outcome | records |\n| --- | ---: |".to_owned());
        for (name, count) in [
            ("imported", counts.imported),
            ("updated", counts.updated),
            ("unchanged", counts.unchanged),
            ("filtered", counts.filtered),
            ("duplicate in source", counts.duplicate_in_source),
            ("failed", counts.failed),
        ] {
            line(format!("| {name} | {count} |"));
        }
        for (code, count) in &self.quarantined {
            line(format!("| … in quarantine: `{code}` | {count} |"));
        }
        for (code, count) in &self.discarded {
            line(format!("| … discarded: `{code}` | {count} |"));
        }
        line(format!(
            "\n| what | source | target |\n| --- | --- | --- |\n| hash of {} | `{}` | `{}` |",
            self.proved.join(", "),
            self.source_hash,
            self.target_hash
        ));
        for sum in &self.sums {
            line(format!(
                "| sum of {} {} | {} | {} |",
                sum.field,
                sum.by.join("/"),
                shown(&sum.source),
                shown(&sum.target)
            ));
        }
        for retry in &self.retries {
            let of = retry.code.as_deref().map_or_else(String::new, |code| format!(" of `{code}`"));
            line(format!(
                "\nRetry {} at {}: {} records{of} were tried with folder `{}`, {} left the quarantine.",
                retry.number, retry.began_at, retry.taken, retry.folder_hash, retry.moved
            ));
        }
        if let (Some(min), Some(max)) = (&self.min_reference, &self.max_reference) {
            line(format!("\nReferences from `{min}` to `{max}`."));
        }
        line(String::new());
        for (what, named) in [
            ("lost", &self.lost),
            ("altered since they were settled", &self.altered),
            ("doubled", &self.doubled),
            ("rows of others that came since the job began", &self.foreign_since),
        ] {
            let first: Vec<String> =
                named.references.iter().take(10).map(|reference| format!("`{reference}`")).collect();
            let names = if first.is_empty() { String::new() } else { format!(": {}", first.join(", ")) };
            line(format!("- {what}: {}{names}", named.count));
        }
        line(format!("- wrong when they were settled, and therefore in quarantine: {}", self.damaged));
        line(format!("- rows of others that were there before: {}", self.foreign_before));
        for check in &self.checks {
            let rule = if check.blocks { "" } else { " (a warning)" };
            line(format!("- {}{rule}: {} rows", check.check, check.rows));
            for example in &check.examples {
                line(format!("  - `{example}`"));
            }
        }
        text.trim_end().to_owned()
    }
}

fn shown(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("–")
}

/// Reads a job as it stands.
pub(crate) async fn job(database: &Database, id: JobId) -> Result<Option<Job>, Error> {
    let mut reader = database.read().await?;
    Ok(jobs::get(reader.conn(), id).await?)
}

impl std::fmt::Display for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.markdown())
    }
}
