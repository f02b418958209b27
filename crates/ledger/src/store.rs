//! The ledger's own tables, in the schema `crossdock` beside the engine's.

use db::{Migration, Room, Timestamp};
use engine::{JobId, Place, SinkError};
use sqlx::postgres::PgConnection;

use crate::certificate::RetryLine;
use crate::declaration::{Folder, Variables};
use crate::proof::{Multiset, Sums};
use crate::service::Error;

/// The ledger's migrations, for Postgres.
pub const ROOM: Room = db::room!(
    "ledger",
    schema "crossdock",
    &[Migration {
        version: 1,
        name: "declared jobs and what is proved of them",
        sqlite: include_str!("../migrations/0001_ledger.sqlite.sql"),
        postgres: include_str!("../migrations/0001_ledger.postgres.sql"),
    },
    Migration {
        version: 2,
        name: "accepted changes, and what a dry run would have written",
        sqlite: include_str!("../migrations/0002_runs.sqlite.sql"),
        postgres: include_str!("../migrations/0002_runs.postgres.sql"),
    }]
);

/// A job as declared.
#[derive(Debug, Clone)]
pub struct LedgerJob {
    /// The declaration's name.
    pub name: String,
    /// The folder's texts.
    pub folder: Folder,
    /// Their hash.
    pub folder_hash: String,
    /// Values of `${NAME}`.
    pub variables: Variables,
    /// The transaction id from which on rows of the target may be the job's.
    pub begun: String,
    /// When its manifest, kept bytes and proofs were dropped.
    pub forgotten: Option<Timestamp>,
}

/// Keeps a job's declaration, in the transaction that makes the job.
///
/// # Errors
/// Those of the database.
pub async fn insert_job(conn: &mut PgConnection, job: JobId, declared: &LedgerJob) -> db::Result<()> {
    sqlx::query(
        "INSERT INTO crossdock.ledger_jobs (job_id, name, folder, folder_hash, variables, begun_xid)
        VALUES ($1, $2, $3::jsonb, $4, $5::jsonb, $6)",
    )
    .persistent(false)
    .bind(job.0)
    .bind(&declared.name)
    .bind(serde_json::to_string(&declared.folder).expect("texts are JSON"))
    .bind(&declared.folder_hash)
    .bind(serde_json::to_string(&declared.variables).expect("texts are JSON"))
    .bind(&declared.begun)
    .execute(conn)
    .await?;
    Ok(())
}

/// A job's declaration, or `None` if it is no ledger's.
///
/// # Errors
/// Those of the database.
pub async fn job(conn: &mut PgConnection, job: JobId) -> db::Result<Option<LedgerJob>> {
    let row: Option<(String, String, String, String, String, Option<Timestamp>)> = sqlx::query_as(
        "SELECT name, folder::text, folder_hash, variables::text, begun_xid, forgotten_at
        FROM crossdock.ledger_jobs WHERE job_id = $1",
    )
    .persistent(false)
    .bind(job.0)
    .fetch_optional(conn)
    .await?;
    let damaged = |error: serde_json::Error| db::Error::Other(sqlx::Error::Decode(Box::new(error)));
    row.map(|(name, folder, folder_hash, variables, begun, forgotten)| {
        Ok(LedgerJob {
            name,
            folder: serde_json::from_str(&folder).map_err(damaged)?,
            folder_hash,
            variables: serde_json::from_str(&variables).map_err(damaged)?,
            begun,
            forgotten,
        })
    })
    .transpose()
}

/// Keeps what is proved of a part of a chunk, in the transaction that writes its rows.
pub(crate) async fn keep_proof(
    conn: &mut PgConnection,
    job: JobId,
    first: Place,
    records: i64,
    hash: Multiset,
    sums: &Sums,
) -> Result<(), SinkError> {
    let sums: Vec<(usize, &Vec<String>, String)> =
        sums.iter().map(|((number, by), total)| (*number, by, total.canonical())).collect();
    sqlx::query(
        "INSERT INTO crossdock.ledger_proofs (job_id, part, segment, ordinal, records, hash, sums)
        VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb)",
    )
    .persistent(false)
    .bind(job.0)
    .bind(first.partition)
    .bind(first.segment)
    .bind(first.ordinal)
    .bind(records)
    .bind(&hash.to_bytes()[..])
    .bind(serde_json::to_string(&sums).expect("texts and numbers are JSON"))
    .execute(conn)
    .await
    .map(drop)
    .map_err(|error| SinkError::Db(error.into()))
}

/// The retries of a job's quarantined records, in order.
///
/// # Errors
/// Those of the database.
pub async fn retries(conn: &mut PgConnection, job: JobId) -> db::Result<Vec<RetryLine>> {
    Ok(sqlx::query_as(
        "SELECT segment + 1 AS number, part, segment, code, folder_hash, folder_hash_before, taken, moved,
            began_at, finished_at IS NOT NULL AS finished
        FROM crossdock.ledger_retries WHERE job_id = $1 ORDER BY part, segment",
    )
    .persistent(false)
    .bind(job.0)
    .fetch_all(conn)
    .await?)
}

/// Records of the job whose rows a rollback removed.
pub(crate) async fn rolled_back(conn: &mut PgConnection, job: JobId) -> db::Result<i64> {
    let removed = sqlx::query_scalar(
        "SELECT coalesce(sum(removed), 0)::bigint FROM crossdock.ledger_rollbacks WHERE job_id = $1",
    );
    Ok(removed.persistent(false).bind(job.0).fetch_one(conn).await?)
}

/// Whether a rollback of the job began.
pub(crate) async fn is_rolled_back(conn: &mut PgConnection, job: JobId) -> db::Result<bool> {
    let known =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM crossdock.ledger_rollbacks WHERE job_id = $1)");
    Ok(known.persistent(false).bind(job.0).fetch_one(conn).await?)
}

/// Makes another folder and its values the job's, unless they are already, and keeps the former ones in the log of changes.
pub(crate) async fn change_folder(
    conn: &mut PgConnection,
    job: JobId,
    was: &LedgerJob,
    (folder, variables): (&Folder, &Variables),
    told: &str,
) -> db::Result<()> {
    let json = |value: &Variables| serde_json::to_string(value).expect("texts are JSON");
    let changed = sqlx::query(
        "UPDATE crossdock.ledger_jobs SET folder = $2::jsonb, folder_hash = $3, variables = $4::jsonb
        WHERE job_id = $1 AND (folder_hash <> $3 OR variables <> $4::jsonb)",
    )
    .persistent(false)
    .bind(job.0)
    .bind(serde_json::to_string(folder).expect("texts are JSON"))
    .bind(folder.hash())
    .bind(json(variables))
    .execute(&mut *conn)
    .await?;
    if changed.rows_affected() == 0 {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO crossdock.ledger_changes (job_id, folder, folder_hash, variables, new_folder_hash, told, settled, failed)
        SELECT $1, $2::jsonb, $3, $4::jsonb, $5, $6::jsonb,
            coalesce(sum(imported + updated + unchanged + skipped + filtered + duplicate_in_source + failed), 0),
            coalesce(sum(failed), 0)
        FROM crossdock.chunks WHERE job_id = $1",
    )
    .persistent(false)
    .bind(job.0)
    .bind(serde_json::to_string(&was.folder).expect("texts are JSON"))
    .bind(&was.folder_hash)
    .bind(json(&was.variables))
    .bind(folder.hash())
    .bind(told)
    .execute(conn)
    .await?;
    Ok(())
}

/// Keeps the job at rest until the end of the transaction.
///
/// # Errors
/// [`Error::State`] if it does not rest; those of the database.
pub(crate) async fn hold_at_rest(conn: &mut PgConnection, job: JobId) -> Result<(), Error> {
    let status: String = sqlx::query_scalar("SELECT status FROM crossdock.jobs WHERE id = $1 FOR SHARE")
        .persistent(false)
        .bind(job.0)
        .fetch_one(conn)
        .await?;
    if matches!(status.as_str(), "queued" | "running" | "waiting") {
        return Err(Error::State(format!("job {job} is {status} now; try again when it rests")));
    }
    Ok(())
}

/// Whether a rollback of the job began and did not end.
pub(crate) async fn is_rolling_back(conn: &mut PgConnection, job: JobId) -> db::Result<bool> {
    let known = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM crossdock.ledger_rollbacks WHERE job_id = $1 AND finished_at IS NULL)",
    );
    Ok(known.persistent(false).bind(job.0).fetch_one(conn).await?)
}

/// Says why a job that is over stands where it does.
pub(crate) async fn set_reason(conn: &mut PgConnection, job: JobId, reason: &str) -> db::Result<()> {
    sqlx::query(
        "UPDATE crossdock.jobs SET reason = $2 WHERE id = $1 AND status IN ('completed', 'cancelled')",
    )
    .persistent(false)
    .bind(job.0)
    .bind(reason)
    .execute(conn)
    .await?;
    Ok(())
}

/// Says that what was kept of a job's records goes.
pub(crate) async fn mark_forgotten(conn: &mut PgConnection, job: JobId) -> db::Result<()> {
    sqlx::query(
        "UPDATE crossdock.ledger_jobs SET forgotten_at = coalesce(forgotten_at, clock_timestamp())
        WHERE job_id = $1",
    )
    .persistent(false)
    .bind(job.0)
    .execute(conn)
    .await?;
    Ok(())
}
