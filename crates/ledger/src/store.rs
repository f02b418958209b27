//! The ledger's own tables, in the schema `crossdock` beside the engine's.

use db::{Migration, Room};
use engine::{JobId, Place, SinkError};
use sqlx::postgres::PgConnection;

use crate::declaration::{Folder, Variables};
use crate::proof::{Multiset, Sums};

/// The ledger's migrations, for Postgres.
pub const ROOM: Room = db::room!(
    "ledger",
    schema "crossdock",
    &[Migration {
        version: 1,
        name: "declared jobs and what is proved of them",
        sqlite: include_str!("../migrations/0001_ledger.sqlite.sql"),
        postgres: include_str!("../migrations/0001_ledger.postgres.sql"),
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
    let row: Option<(String, String, String, String, String)> = sqlx::query_as(
        "SELECT name, folder::text, folder_hash, variables::text, begun_xid FROM crossdock.ledger_jobs
        WHERE job_id = $1",
    )
    .persistent(false)
    .bind(job.0)
    .fetch_optional(conn)
    .await?;
    let damaged = |error: serde_json::Error| db::Error::Other(sqlx::Error::Decode(Box::new(error)));
    row.map(|(name, folder, folder_hash, variables, begun)| {
        Ok(LedgerJob {
            name,
            folder: serde_json::from_str(&folder).map_err(damaged)?,
            folder_hash,
            variables: serde_json::from_str(&variables).map_err(damaged)?,
            begun,
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
