//! The bank's database: made once and copied for every case, and read with SQL of its own.

use std::path::Path;

use anyhow::{Context, bail};
use futures_util::TryStreamExt;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Row as _};

use super::core::{self, EXAMPLE, Export};
use super::truth::{Row, Truth, Values};
use crate::differences::Differences;
use crate::process;
use crate::server::Server;

async fn connect(url: &str) -> anyhow::Result<PgConnection> {
    let options: PgConnectOptions = url.parse()?;
    options.connect().await.context("cannot open the bank's database")
}

/// Makes a database with the worked example's tables, the accounts that an export speaks of, and Crossdock's schema.
pub(super) async fn make_template(
    binary: &Path,
    server: &Server,
    name: &str,
    export: Export,
    folder: &Path,
) -> anyhow::Result<()> {
    server.create(name, "template0").await?;
    let url = server.database_url(name, None)?;
    let mut conn = connect(&url).await?;
    for file in ["schema.sql", "foreign_keys.sql"] {
        let text = std::fs::read_to_string(Path::new(EXAMPLE).join(file))?;
        sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(&mut conn).await?;
    }
    // COPY commands as psql takes them: the statement, the rows, and a line of `\.`.
    let script = core::accounts(binary, export).await?;
    for part in script.split("\\.\n").filter(|part| !part.trim().is_empty()) {
        let (statement, rows) = part.split_once('\n').context("a COPY command has a line of its own")?;
        let mut copy = conn.copy_in_raw(statement.trim_end_matches(';')).await?;
        copy.send(rows.as_bytes()).await?;
        copy.finish().await?;
    }
    conn.close().await?;
    let done = process::command(binary, folder, &url, "init")?.args(["ledger", "init"]).status().await?;
    if !done.success() {
        bail!("`crossdock ledger init` failed: {}", folder.join("init.err").display());
    }
    Ok(())
}

/// Compares what stands in the bank with what must.
pub(super) async fn compare(url: &str, truth: &Truth) -> anyhow::Result<Differences> {
    let mut conn = connect(url).await?;
    let mut comparison = truth.comparison();
    let mut rows = sqlx::query(
        "SELECT reference, source_id::text, account_id, customer_id, type, amount::text, balance_before::text,
            balance_after::text, currency, status, (metadata - 'narration')::text, metadata ->> 'narration',
            (extract(epoch FROM created_at) * 1000000)::bigint
        FROM bank.transactions",
    )
    .fetch(&mut conn);
    while let Some(row) = rows.try_next().await? {
        let metadata: serde_json::Value = serde_json::from_str(row.get(10))?;
        let line = Values {
            reference: row.get(0),
            account_id: row.get(2),
            customer_id: row.get(3),
            kind: row.get(4),
            amount: row.get(5),
            balance_before: row.get(6),
            balance_after: row.get(7),
            currency: row.get(8),
            status: row.get(9),
            narration: row.get(11),
            metadata: &metadata,
            created_at_micros: row.get(12),
        }
        .line();
        comparison.take(&Row { id: row.get(1), line });
    }
    drop(rows);
    conn.close().await?;
    Ok(comparison.end())
}

/// A job's books: what was fetched against what its chunks say became of it.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(super) struct JobRow {
    pub(super) status: String,
    /// Stretches of fetching: one for each partition, and one more for each time that fetching began again.
    pub(super) run: i64,
    pub(super) partitions: i64,
    pub(super) fetched: i64,
    pub(super) imported: i64,
    pub(super) unchanged: i64,
    pub(super) duplicate_in_source: i64,
    pub(super) failed: i64,
    /// Every other outcome.
    pub(super) others: i64,
    /// Chunks that are not settled.
    pub(super) ready: i64,
    /// Segments that are not cleaned.
    pub(super) unclean: i64,
    pub(super) staged: i64,
    pub(super) quarantined: i64,
    /// Of the certificate with which it completed: the job's id as the product writes it, whether it holds, and the
    /// two hashes.
    pub(super) id: Option<String>,
    pub(super) holds: Option<bool>,
    pub(super) source_hash: Option<String>,
    pub(super) target_hash: Option<String>,
}

/// The jobs of the database, in the order in which they were made.
pub(super) async fn jobs(url: &str) -> anyhow::Result<Vec<JobRow>> {
    let mut conn = connect(url).await?;
    let jobs = sqlx::query_as(
        "SELECT j.status, j.run::bigint AS run,
            (SELECT count(*) FROM crossdock.partitions p WHERE p.job_id = j.id) AS partitions,
            (SELECT coalesce(sum(s.records), 0)::bigint FROM crossdock.segments s WHERE s.job_id = j.id) AS fetched,
            coalesce(sum(c.imported), 0)::bigint AS imported,
            coalesce(sum(c.unchanged), 0)::bigint AS unchanged,
            coalesce(sum(c.duplicate_in_source), 0)::bigint AS duplicate_in_source,
            coalesce(sum(c.failed), 0)::bigint AS failed,
            coalesce(sum(c.updated + c.skipped + c.filtered), 0)::bigint AS others,
            count(*) FILTER (WHERE c.status = 'ready') AS ready,
            (SELECT count(*) FROM crossdock.segments s WHERE s.job_id = j.id AND s.status <> 'cleaned') AS unclean,
            (SELECT count(*) FROM crossdock.staged_pages s WHERE s.job_id = j.id) AS staged,
            (SELECT count(*) FROM crossdock.quarantine q WHERE q.job_id = j.id) AS quarantined,
            l.certificate ->> 'job' AS id, (l.certificate ->> 'holds')::boolean AS holds,
            l.certificate ->> 'source_hash' AS source_hash, l.certificate ->> 'target_hash' AS target_hash
        FROM crossdock.jobs j
        JOIN crossdock.ledger_jobs l ON l.job_id = j.id
        LEFT JOIN crossdock.chunks c ON c.job_id = j.id
        GROUP BY j.id, l.job_id ORDER BY j.id",
    )
    .fetch_all(&mut conn)
    .await?;
    conn.close().await?;
    Ok(jobs)
}

/// Everything that a process which wakes too late could write to, as one text.
pub(super) async fn snapshot(url: &str) -> anyhow::Result<String> {
    let mut conn = connect(url).await?;
    let text = sqlx::query_scalar(
        "SELECT concat_ws(' / ',
            (SELECT concat(count(*), ' rows, the last by ', max(xmin::text::bigint)) FROM bank.transactions),
            (SELECT string_agg(concat_ws(' ', id, status, run, finished_at), ', ' ORDER BY id) FROM crossdock.jobs),
            (SELECT string_agg(concat_ws(' ', job_id, part, status, epoch, pages, records, position), ', '
                ORDER BY job_id, part) FROM crossdock.partitions),
            (SELECT string_agg(concat_ws(' ', job_id, part, segment, first_ordinal, records, status, settled_at), ', '
                ORDER BY job_id, part, segment, first_ordinal) FROM crossdock.chunks),
            (SELECT concat(count(*), ' segments, ', count(cleaned_at)) FROM crossdock.segments),
            (SELECT concat(count(*), ' staged') FROM crossdock.staged_pages),
            (SELECT concat(count(*), ' in quarantine') FROM crossdock.quarantine),
            (SELECT concat(count(*), ' blocks, ', sum(length(block))) FROM crossdock.manifest_blocks),
            (SELECT concat(count(*), ' proofs') FROM crossdock.ledger_proofs))",
    )
    .fetch_one(&mut conn)
    .await?;
    conn.close().await?;
    Ok(text)
}

/// The database's clock, in microseconds since 1970.
pub(super) async fn clock(url: &str) -> anyhow::Result<i64> {
    let mut conn = connect(url).await?;
    let query = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let now = sqlx::query_scalar(query).fetch_one(&mut conn).await?;
    conn.close().await?;
    Ok(now)
}

/// When, by that clock, the last chunk was settled that had been begun before, and when a partition was last taken after
/// `moment`.
pub(super) async fn taken_over(url: &str, moment: i64) -> anyhow::Result<(Option<i64>, Option<i64>)> {
    let mut conn = connect(url).await?;
    let times = sqlx::query_as(
        "SELECT (SELECT (extract(epoch FROM max(settled_at)) * 1000000)::bigint FROM crossdock.chunks
                WHERE attempts > 1 AND settled_at > to_timestamp($1::double precision / 1000000)),
            (SELECT (extract(epoch FROM min(run_started_at)) * 1000000)::bigint FROM crossdock.partitions
                WHERE run_started_at > to_timestamp($1::double precision / 1000000))",
    )
    .bind(moment)
    .fetch_one(&mut conn)
    .await?;
    conn.close().await?;
    Ok(times)
}
