//! A dry run: every chunk goes through the real statements, in a transaction that is rolled back.
//!
//! A chunk that is rolled back is not there when a later one gives the same reference again. What would have been written is
//! therefore noted in a table of its own, so that memory stays flat; it is emptied at the end. Foretold is what becomes of
//! each record by itself, and a reference that comes in several chunks: `duplicate_in_source` if the proved fields are equal,
//! `conflicting_duplicate` if not. Not foretold: rows of different references that collide in another unique index across
//! chunks, constraints that are checked at commit, and what others write meanwhile.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use db::{Conn, Database, Id, Reader};
use engine::{Checker, ChunkContext, Outcome, Prepared, Reason, Sink, SinkError, StagedRecord, Written};

use crate::sink::LedgerSink;

/// Tries of a chunk while others hold or take its keys.
const TRIES_MAX: u32 = 20;
/// The pause before another try, longer with each.
const PAUSE: Duration = Duration::from_millis(20);

/// The sink of a dry run.
pub(crate) struct DrySink {
    sink: Arc<LedgerSink>,
    database: Database,
}

impl DrySink {
    pub(crate) fn new(sink: LedgerSink, database: Database) -> Self {
        Self { sink: Arc::new(sink), database }
    }
}

#[async_trait]
impl Sink for DrySink {
    fn parallel(&self) -> bool {
        true
    }

    async fn write(
        &self,
        _tx: &mut db::Tx,
        _chunk: &ChunkContext,
        _records: &[StagedRecord],
        _prepared: Prepared,
    ) -> Result<Vec<Written>, SinkError> {
        Err(SinkError::Fatal("a dry run writes nothing".into()))
    }

    fn has_identity(&self, raw: &[u8]) -> bool {
        self.sink.has_identity(raw)
    }

    fn identity(&self, raw: &[u8]) -> Option<(String, String)> {
        self.sink.identity(raw)
    }

    fn checker(&self) -> Option<Box<dyn Checker>> {
        let (sink, database) = (self.sink.clone(), self.database.clone());
        Some(Box::new(Rehearsal { id: Id::new(), sink, database }))
    }
}

/// One check of all chunks, in order.
struct Rehearsal {
    id: Id,
    sink: Arc<LedgerSink>,
    database: Database,
}

impl Rehearsal {
    /// Runs the chunk's statements, and rolls them back.
    async fn rehearse(
        &self,
        chunk: &ChunkContext,
        records: &[StagedRecord],
    ) -> Result<Vec<Written>, SinkError> {
        let mut tries = 0;
        loop {
            let mut tx = self.database.begin_bulk().await?;
            let written = self.write(&mut tx, chunk, records).await;
            // On a broken connection there is nothing to roll back; the reason is the first error.
            let undone = tx.rollback().await;
            match written {
                Err(SinkError::Retry(_) | SinkError::Db(db::Error::Retry(_))) if tries < TRIES_MAX => {
                    tries += 1;
                    tokio::time::sleep(PAUSE * tries).await;
                }
                Err(error) => return Err(error),
                Ok(written) => {
                    undone?;
                    return Ok(written);
                }
            }
        }
    }

    /// Writes the records in ever smaller parts, as the engine does, so that what the database refuses ends up alone.
    async fn write(
        &self,
        tx: &mut db::Tx,
        chunk: &ChunkContext,
        records: &[StagedRecord],
    ) -> Result<Vec<Written>, SinkError> {
        let mut done = Vec::with_capacity(records.len());
        let mut parts = vec![records];
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            tx.savepoint().await?;
            let refused = match self.sink.preview(tx, part, self.sink.prepare(chunk, part)).await {
                Ok(written) => {
                    tx.release().await?;
                    done.extend(written);
                    continue;
                }
                Err(SinkError::Refused(reason)) => reason,
                Err(SinkError::Db(error)) if error.is_refusal() => refusal(&error),
                Err(error) => return Err(error),
            };
            tx.undo().await?;
            if part.len() == 1 {
                done.push(Written::failed(None, None, refused));
            } else {
                let (left, right) = part.split_at(part.len() / 2);
                parts.push(right);
                parts.push(left);
            }
        }
        Ok(done)
    }

    /// Corrects what was foretold of references that an earlier chunk would have written, and notes those of this one.
    async fn remember(&self, chunk: &ChunkContext, written: &mut [Written]) -> Result<(), SinkError> {
        let stands = |record: &Written| {
            matches!(record.outcome, Outcome::Imported | Outcome::Updated | Outcome::Unchanged)
        };
        let references: Vec<&str> = written
            .iter()
            .filter(|record| stands(record))
            .filter_map(|record| record.reference.as_deref())
            .collect();
        let mut tx = self.database.begin_bulk().await?;
        let Conn::Postgres(pg) = tx.conn() else {
            return Err(SinkError::Fatal("a ledger lives on Postgres; this database is SQLite".into()));
        };
        let earlier: Vec<(String, Vec<u8>)> = pg
            .query_as(
                "SELECT reference, came FROM crossdock.ledger_rehearsed
                WHERE rehearsal = $1 AND reference = ANY($2)",
            )
            .bind(self.id)
            .bind(&references)
            .fetch_all(&mut *pg.conn)
            .await
            .map_err(db::Error::from)?;
        let earlier: HashMap<String, Vec<u8>> = earlier.into_iter().collect();
        for record in written.iter_mut().filter(|record| stands(record)) {
            let known = record.reference.as_ref().and_then(|reference| earlier.get(reference));
            if let Some(came) = known {
                again(record, *came == record.digest);
            }
        }
        let is_written = |record: &&Written| matches!(record.outcome, Outcome::Imported | Outcome::Updated);
        let new: Vec<&Written> = written.iter().filter(is_written).collect();
        pg.query(
            "INSERT INTO crossdock.ledger_rehearsed (rehearsal, reference, job_id, came)
            SELECT $1, r.reference, $2, r.came FROM unnest($3::TEXT[], $4::BYTEA[]) AS r (reference, came)
            ON CONFLICT DO NOTHING",
        )
        .bind(self.id)
        .bind(chunk.job.0)
        .bind(new.iter().map(|record| record.reference.as_deref().unwrap_or_default()).collect::<Vec<&str>>())
        .bind(new.iter().map(|record| &record.digest[..]).collect::<Vec<&[u8]>>())
        .execute(&mut *pg.conn)
        .await
        .map_err(db::Error::from)?;
        tx.commit().await?;
        Ok(())
    }
}

/// What becomes of a record whose reference an earlier chunk would have written.
fn again(record: &mut Written, equal: bool) {
    let (outcome, reason) = if equal {
        let reason =
            Reason::new("came_before", "an earlier record of this job has the same content under this id");
        (Outcome::DuplicateInSource, reason)
    } else {
        let reason = Reason::new(
            "conflicting_duplicate",
            "an earlier record of this job has the same id and other content in the proved fields",
        );
        (Outcome::Failed, reason)
    };
    (record.outcome, record.reason) = (outcome, Some(reason));
    (record.digest, record.targets) = ([0; 16], 0);
}

/// The reason for a record that the database refused alone; the words are the engine's.
fn refusal(error: &db::Error) -> Reason {
    match error {
        db::Error::Unique { constraint, .. } => Reason::new("unique_violation", constraint.clone()),
        other => Reason::new("refused_by_database", other.to_string()),
    }
}

#[async_trait]
impl Checker for Rehearsal {
    async fn check(
        &mut self,
        _reader: &mut Reader,
        chunk: &ChunkContext,
        records: &[StagedRecord],
    ) -> Result<Vec<Written>, SinkError> {
        let mut written = self.rehearse(chunk, records).await?;
        self.remember(chunk, &mut written).await?;
        Ok(written)
    }

    /// Also takes away what dry runs left that were cancelled or broken off.
    async fn done(&mut self) -> Result<(), SinkError> {
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Ok(()) };
        pg.query(
            "DELETE FROM crossdock.ledger_rehearsed r WHERE r.rehearsal = $1 OR NOT EXISTS (
                SELECT 1 FROM crossdock.jobs j WHERE j.id = r.job_id AND j.status = 'running')",
        )
        .bind(self.id)
        .execute(&mut *pg.conn)
        .await
        .map_err(db::Error::from)?;
        tx.commit().await?;
        Ok(())
    }
}
