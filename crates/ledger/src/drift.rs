//! Drift of the source: a second look at it, compared with what came, by the fingerprints of the received bytes.
//!
//! It is told apart from damage (wrong when a record was settled: that is in quarantine) and from tampering (right then,
//! wrong in the target now: the certificate), and says nothing about either.

use std::collections::HashSet;

use db::{Conn, Id};
use engine::{Fingerprint, JobId, Outcome, Position, Source, SourceError, Status};
use serde::Serialize;
use sqlx::Executor as _;

use crate::certificate::Named;
use crate::copy::CopyRows;
use crate::declaration::Declaration;
use crate::reconcile::{NAMED_MAX, copy_manifest};
use crate::record::RecordReader;
use crate::service::{Error, Ledgers};

/// How the source differs from what came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// Records of the second look.
    pub records: i64,
    /// Records whose bytes are others now.
    pub changed: Named,
    /// Records that came and are not there any more.
    pub gone: Named,
    /// Records that are there and did not come.
    pub new: Named,
}

impl Drift {
    /// Whether the source is as it was.
    pub fn is_none(&self) -> bool {
        self.changed.count == 0 && self.gone.count == 0 && self.new.count == 0
    }
}

impl Ledgers {
    /// Fetches the source of a completed job once more and compares each record's bytes with those that came.
    ///
    /// # Errors
    /// [`Error::State`] if the job has not completed; [`Error::Source`]; those of the database.
    pub async fn drift(&self, id: JobId, source: &dyn Source) -> Result<Drift, Error> {
        let (job, declared) = self.written(id).await?;
        if job.status != Status::Completed {
            return Err(Error::State(format!(
                "job {id} is {}; the source is compared with what came once the job has completed",
                job.status
            )));
        }
        let declaration =
            Declaration::read(&declared.folder, &declared.variables).map_err(Error::Declaration)?;
        let look = Id::new();
        let drift = match self.look(look, id, source, &RecordReader::new(&declaration)).await {
            Ok(records) => self.compare(look, id, records, &declaration).await,
            Err(error) => Err(error),
        };
        self.look_away(look).await?;
        drift
    }

    /// Keeps id and fingerprint of every record, page by page; tells how many there are.
    async fn look(
        &self,
        look: Id,
        id: JobId,
        source: &dyn Source,
        reader: &RecordReader,
    ) -> Result<i64, Error> {
        let mut count = 0;
        for partition in source.partitions().await? {
            if partition.left_out.is_some() {
                continue;
            }
            let mut visited = HashSet::new();
            let mut at = Position::Beginning;
            while at != Position::End {
                if !visited.insert(at.to_stored()) && !source.profile().stateful_cursor {
                    return Err(SourceError::Malformed(format!("{at} was visited before")).into());
                }
                let page = source.page(&partition, &at).await?;
                count += i64::try_from(page.records.len()).unwrap_or(i64::MAX);
                let stalls = page.next == at && page.records.is_empty() && source.profile().stalled_is_end;
                at = if stalls { Position::End } else { page.next };
                let mut rows = CopyRows::new(4, 0);
                for raw in &page.records {
                    rows.row();
                    rows.field(&look.get().to_be_bytes());
                    rows.field(&id.0.get().to_be_bytes());
                    match reader.id_of(raw) {
                        Some(id) => rows.field(id.as_bytes()),
                        None => rows.null(),
                    }
                    rows.field(Fingerprint::of(raw).as_bytes());
                }
                let mut tx = self.database.begin().await?;
                let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
                let mut copy = pg
                    .conn
                    .copy_in_raw("COPY crossdock.ledger_looks (look, job_id, source_id, came) FROM STDIN (FORMAT binary)")
                    .await?;
                copy.send(rows.finish()).await?;
                copy.finish().await?;
                tx.commit().await?;
            }
        }
        Ok(count)
    }

    async fn look_away(&self, look: Id) -> Result<(), Error> {
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        sqlx::query("DELETE FROM crossdock.ledger_looks WHERE look = $1")
            .persistent(false)
            .bind(look)
            .execute(pg.conn)
            .await?;
        Ok(tx.commit().await?)
    }

    /// Records are compared by id, and by their bytes where these do not say one.
    async fn compare(
        &self,
        look: Id,
        id: JobId,
        records: i64,
        declaration: &Declaration,
    ) -> Result<Drift, Error> {
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        let conn = pg.conn;
        conn.execute(
            "SET LOCAL idle_in_transaction_session_timeout = 0;
            CREATE TEMP TABLE came_then (source_id text, came bytea NOT NULL) ON COMMIT DROP",
        )
        .await?;
        let into = ("COPY came_then FROM STDIN (FORMAT binary)", 2);
        copy_manifest(&self.database, &mut *conn, id, into, |rows, entry| {
            // Told by its bytes alone, which are those of another record.
            if entry.source_id.is_none() && entry.outcome == Outcome::DuplicateInSource {
                return;
            }
            rows.row();
            match &entry.source_id {
                Some(id) => rows.field(id.as_bytes()),
                None => rows.null(),
            }
            rows.field(&entry.came);
        })
        .await?;
        // A record that was refused as a whole is known by its bytes; a second look knows its id.
        sqlx::query(
            "UPDATE came_then t SET source_id = l.source_id FROM crossdock.ledger_looks l
            WHERE t.source_id IS NULL AND l.look = $1 AND l.source_id IS NOT NULL AND l.came = t.came",
        )
        .persistent(false)
        .bind(look)
        .execute(&mut *conn)
        .await?;
        sqlx::query(
            "CREATE TEMP TABLE drifted ON COMMIT DROP AS
            WITH first AS (
                SELECT coalesce('i' || source_id, 'f' || encode(came, 'hex')) AS record, array_agg(DISTINCT came) AS came
                FROM came_then GROUP BY 1),
            second AS (
                SELECT coalesce('i' || source_id, 'f' || encode(came, 'hex')) AS record, array_agg(DISTINCT came) AS came
                FROM crossdock.ledger_looks WHERE look = $1 GROUP BY 1)
            SELECT coalesce(a.record, b.record) AS record,
                CASE WHEN b.record IS NULL THEN 'gone' WHEN a.record IS NULL THEN 'new' ELSE 'changed' END AS how
            FROM first a FULL JOIN second b ON b.record = a.record
            WHERE a.came IS DISTINCT FROM b.came",
        )
        .persistent(false)
        .bind(look)
        .execute(&mut *conn)
        .await?;
        let (before, after) = declaration.reference.around();
        let mut drift = Drift { records, ..Drift::default() };
        for (how, named) in
            [("changed", &mut drift.changed), ("gone", &mut drift.gone), ("new", &mut drift.new)]
        {
            named.count = sqlx::query_scalar("SELECT count(*) FROM drifted WHERE how = $1")
                .persistent(false)
                .bind(how)
                .fetch_one(&mut *conn)
                .await?;
            named.references = sqlx::query_scalar(
                "SELECT CASE WHEN starts_with(record, 'i') THEN $2 || substr(record, 2) || $3
                    ELSE 'no id, fingerprint ' || substr(record, 2) END
                FROM drifted WHERE how = $1 ORDER BY 1 LIMIT $4",
            )
            .persistent(false)
            .bind(how)
            .bind(before)
            .bind(after)
            .bind(NAMED_MAX)
            .fetch_all(&mut *conn)
            .await?;
        }
        tx.rollback().await?;
        Ok(drift)
    }
}
