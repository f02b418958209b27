//! Forgetting a job that is over: what was kept of its records goes, what tells of it stays.

use db::Conn;
use engine::store::{chunks, jobs};
use engine::{JobId, Status};
use serde::Serialize;

use crate::quarantine;
use crate::service::{Error, Ledgers};
use crate::store;

/// Rows of a transaction.
const AT_ONCE: i64 = 5_000;

/// What is dropped, in this order. The line of a job, its history, certificate, changes of folder, retries and who
/// discarded what stay.
const DROPPED: [&str; 6] = [
    "DELETE FROM crossdock.quarantine WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM crossdock.quarantine WHERE job_id = $1 LIMIT $2)) AND job_id = $1",
    "DELETE FROM crossdock.notes WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM crossdock.notes WHERE job_id = $1 LIMIT $2)) AND job_id = $1",
    "DELETE FROM crossdock.manifest_blocks WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM crossdock.manifest_blocks WHERE job_id = $1 LIMIT $2)) AND job_id = $1",
    "DELETE FROM crossdock.ledger_proofs WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM crossdock.ledger_proofs WHERE job_id = $1 LIMIT $2)) AND job_id = $1",
    "DELETE FROM crossdock.ledger_rollback_left WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM crossdock.ledger_rollback_left WHERE job_id = $1 LIMIT $2)) AND job_id = $1",
    "DELETE FROM crossdock.ledger_looks WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM crossdock.ledger_looks WHERE job_id = $1 LIMIT $2)) AND job_id = $1",
];

/// What was dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Forgotten {
    /// Records of the quarantine.
    pub quarantined: i64,
    /// Lines of the error log.
    pub notes: i64,
    /// Blocks of the manifest.
    pub blocks: i64,
    /// Proofs.
    pub proofs: i64,
    /// Records that a cancelled job had staged.
    pub staged: i64,
}

impl Ledgers {
    /// Drops the manifest, the kept bytes and the proofs of a job that is over, in bounded transactions. Asked again, it
    /// goes on. A job that is forgotten cannot be verified, rolled back or tried again.
    ///
    /// # Errors
    /// [`Error::State`] if the job is not over, or is being rolled back; those of the database.
    pub async fn forget(&self, id: JobId) -> Result<Forgotten, Error> {
        let job = crate::certificate::job(&self.database, id).await?.ok_or(Error::NoSuchJob(id))?;
        self.declared(id).await?.ok_or(Error::NoSuchJob(id))?;
        if !job.status.is_final() {
            return Err(Error::State(format!(
                "job {id} is {}, and only a completed or cancelled one is forgotten; `crossdock ledger cancel {id}` ends it",
                job.status
            )));
        }
        let mut tx = self.database.begin().await?;
        // A chunk that was begun before the job was cancelled.
        chunks::hold_all(tx.conn(), id).await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        quarantine::lock(pg.conn, id).await?;
        if store::is_rolling_back(pg.conn, id).await? {
            return Err(Error::State(format!(
                "job {id} is being rolled back; `crossdock ledger rollback {id}` goes on with it, and then it can be forgotten"
            )));
        }
        store::mark_forgotten(pg.conn, id).await?;
        tx.commit().await?;
        let mut dropped = [0_i64; DROPPED.len()];
        for (statement, count) in DROPPED.iter().zip(&mut dropped) {
            *count = self.drop_all(statement, id).await?;
        }
        let staged = if job.status == Status::Cancelled { self.drop_staged(id).await? } else { 0 };
        let [quarantined, notes, blocks, proofs, ..] = dropped;
        Ok(Forgotten { quarantined, notes, blocks, proofs, staged })
    }

    async fn drop_all(&self, statement: &'static str, id: JobId) -> Result<i64, Error> {
        let mut gone = 0;
        loop {
            let mut tx = self.database.begin().await?;
            let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
            let done = sqlx::query(statement)
                .persistent(false)
                .bind(id.0)
                .bind(AT_ONCE)
                .execute(&mut *pg.conn)
                .await?;
            tx.commit().await?;
            if done.rows_affected() == 0 {
                return Ok(gone);
            }
            gone += i64::try_from(done.rows_affected()).unwrap_or(i64::MAX);
        }
    }

    async fn drop_staged(&self, id: JobId) -> Result<i64, Error> {
        let mut gone = 0;
        loop {
            let mut tx = self.database.begin().await?;
            let some = jobs::discard_staged(tx.conn(), id, AT_ONCE).await?;
            if some == 0 {
                jobs::discarded(tx.conn(), id).await?;
                tx.commit().await?;
                return Ok(gone);
            }
            tx.commit().await?;
            gone += some;
        }
    }
}
