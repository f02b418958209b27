//! Trying quarantined records again: their kept bytes go through the map and the sink once more, the source is not asked.
//!
//! **Accounts.** A retry is a segment of its own in a partition of retries. It holds no records, because nothing was
//! fetched; its chunks are corrections, as in a ledger: a record that is now imported counts `imported + 1` and
//! `failed - 1` there. So the lines of history before it stay as they were written, fetched = sum of outcomes holds in
//! each segment and for the job, and the job's counters tell what stands now. The manifest block of such a chunk holds the
//! records that left the quarantine; the entry with which they came says `failed`, and only standing entries are compared
//! with the target.
//!
//! **Transactions.** Rows of the target, the correction, the block, the proof and the end of the quarantine of a batch
//! commit together. A retry that breaks off keeps what it moved; the next one begins with what is still there.
//!
//! **Another folder** may map and prove otherwise, but into the same target under the same references, and prove the same
//! fields: what was written before is verified with it too, and the certificate afterwards says whether it holds.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use db::{Conn, Timestamp, Tx};
use engine::manifest::{self, Entry};
use engine::store::corrections;
use engine::{
    Certified, ChunkContext, Counts, Fingerprint, JobId, Mode, Outcome, Place, Reason, Sink as _, SinkError,
    StagedRecord, Status, Written,
};
use serde::Serialize;
use sqlx::postgres::PgConnection;

use crate::changes::{Change, changes};
use crate::declaration::{Declaration, Folder, Variables};
use crate::quarantine::{self, Held, Look};
use crate::service::{Error, Ledgers};
use crate::sink::LedgerSink;
use crate::sql::Shape;
use crate::store::{self, LedgerJob};

/// The key of the partition that holds a line of history for each retry.
pub const RETRIES: &str = "retries of quarantined records";
/// Records of a batch.
const BATCH: i64 = 1_000;
/// Tries of a batch that loses to other transactions.
const TRIES_MAX: u32 = 20;
const RETRY_FIRST: Duration = Duration::from_millis(20);

/// What is tried.
#[derive(Debug, Clone, Default)]
pub struct Retry {
    /// With this folder; the job's own if there is none.
    pub folder: Option<Folder>,
    /// With these values; the job's own if there are none.
    pub variables: Option<Variables>,
    /// Only records with this reason.
    pub code: Option<String>,
}

/// What came of a retry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Retried {
    /// Its number, from 1; 0 if nothing was open.
    pub number: i32,
    /// Records tried.
    pub taken: i64,
    /// What became of those that left the quarantine.
    pub moved: Counts,
    /// Those that stay, by reason.
    pub failing: BTreeMap<String, i64>,
    /// Whether the job's certificate holds now; none for a job that has not completed.
    pub holds: Option<bool>,
    /// Why not, in words.
    pub failings: Option<String>,
}

/// A retry under way.
struct Line<'a> {
    job: JobId,
    part: i32,
    segment: i32,
    sink: LedgerSink,
    folder: Folder,
    variables: Variables,
    declared: &'a LedgerJob,
    code: Option<String>,
}

/// What came of one batch.
struct Batch {
    last: Place,
    counts: Counts,
    taken: i64,
    failing: Vec<String>,
}

impl Ledgers {
    /// Tries the open records of a job's quarantine again.
    ///
    /// # Errors
    /// [`Error::Declaration`] for a folder that does not fit; [`Error::State`] for a job that is under way or a folder
    /// that is another migration; those of the database.
    pub async fn retry(&self, id: JobId, retry: Retry) -> Result<Retried, Error> {
        let (job, declared) = self.written(id).await?;
        self.may_retry(id, job.status, job.mode).await?;
        let folder = retry.folder.unwrap_or_else(|| declared.folder.clone());
        let variables = retry.variables.unwrap_or_else(|| declared.variables.clone());
        let (declaration, shape) = self.shape(&folder, &variables).await?;
        if folder != declared.folder || variables != declared.variables {
            let (before, shape_before) = self.shape(&declared.folder, &declared.variables).await?;
            same_migration((&before, &shape_before), (&declaration, &shape))?;
        }
        let look = Look { code: retry.code.as_deref(), limit: 1, ..Look::default() };
        if self.quarantined(id, look).await?.is_empty() {
            return Ok(Retried::default());
        }
        let (part, segment) = self.begin_retry(id, &declared, &folder, retry.code.as_deref()).await?;
        let sink = LedgerSink::new(declaration, &shape, declared.begun.clone());
        let line =
            Line { job: id, part, segment, sink, folder, variables, declared: &declared, code: retry.code };
        let mut done = Retried { number: segment + 1, ..Retried::default() };
        let (mut after, mut first) = (None, 0);
        while let Some(batch) = self.batch(&line, after, first).await? {
            after = Some(batch.last);
            first += i32::try_from(batch.taken).unwrap_or(i32::MAX);
            done.taken += batch.taken;
            done.moved += batch.counts;
            for code in batch.failing {
                *done.failing.entry(code).or_default() += 1;
            }
        }
        // In the corrections what left the quarantine is taken from the failed ones; told, it is not.
        done.moved.failed = 0;
        self.end_retry(&line).await?;
        if job.status == Status::Completed {
            (done.holds, done.failings) = match self.settle(id).await? {
                Certified::Holds => (Some(true), None),
                Certified::Fails(why) => (Some(false), Some(why)),
                Certified::NotNow => (None, None),
            };
        }
        Ok(done)
    }

    async fn may_retry(&self, id: JobId, status: Status, mode: Mode) -> Result<(), Error> {
        if mode == Mode::DryRun {
            return Err(Error::State(format!(
                "job {id} is a dry run, which writes nothing; start a run instead"
            )));
        }
        if status == Status::Cancelled {
            return Err(Error::State(format!(
                "job {id} is cancelled; `crossdock ledger quarantine export {id}` gives out what it kept"
            )));
        }
        if !matches!(status, Status::Completed | Status::Failed | Status::Paused | Status::AwaitingToken) {
            return Err(Error::State(format!(
                "job {id} is {status}; try again when it is over, or after `crossdock ledger pause {id}`"
            )));
        }
        let mut reader = self.database.read().await?;
        let Conn::Postgres(pg) = reader.conn() else { return Err(Error::NotPostgres) };
        if store::is_rolled_back(pg.conn, id).await? {
            return Err(Error::State(format!("job {id} was rolled back; start a new run instead")));
        }
        Ok(())
    }

    /// Makes the line of history. Its place is the retry's.
    async fn begin_retry(
        &self,
        id: JobId,
        declared: &LedgerJob,
        folder: &Folder,
        code: Option<&str>,
    ) -> Result<(i32, i32), Error> {
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        quarantine::lock(pg.conn, id).await?;
        let (part, segment) = corrections::begin(tx.conn(), id, RETRIES).await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        sqlx::query(
            "INSERT INTO crossdock.ledger_retries (job_id, part, segment, code, folder_hash, folder_hash_before)
            VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .persistent(false)
        .bind(id.0)
        .bind(part)
        .bind(segment)
        .bind(code)
        .bind(folder.hash())
        .bind(&declared.folder_hash)
        .execute(&mut *pg.conn)
        .await?;
        tx.commit().await?;
        Ok((part, segment))
    }

    async fn end_retry(&self, line: &Line<'_>) -> Result<(), Error> {
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        sqlx::query(
            "UPDATE crossdock.ledger_retries SET finished_at = clock_timestamp()
            WHERE job_id = $1 AND part = $2 AND segment = $3",
        )
        .persistent(false)
        .bind(line.job.0)
        .bind(line.part)
        .bind(line.segment)
        .execute(pg.conn)
        .await?;
        Ok(tx.commit().await?)
    }

    /// The next batch, in a transaction that is run again while others are in its way. `None`: nothing is left.
    async fn batch(&self, line: &Line<'_>, after: Option<Place>, first: i32) -> Result<Option<Batch>, Error> {
        let mut tries = 0;
        loop {
            let lost = match self.try_batch(line, after, first).await {
                Ok(done) => return Ok(done),
                Err(Lost::For(error)) => return Err(error),
                Err(Lost::ToOthers(error)) => error,
                Err(Lost::InDoubt(batch)) => {
                    if self.is_corrected(line, first).await? {
                        return Ok(Some(batch));
                    }
                    Error::State("the connection broke at COMMIT, and nothing was written".to_owned())
                }
            };
            tries += 1;
            if tries > TRIES_MAX {
                return Err(lost);
            }
            tokio::time::sleep(RETRY_FIRST.saturating_mul(tries)).await;
        }
    }

    async fn try_batch(
        &self,
        line: &Line<'_>,
        after: Option<Place>,
        first: i32,
    ) -> Result<Option<Batch>, Lost> {
        let mut tx = self.database.begin_bulk().await?;
        match line.inside(&mut tx, after, first).await {
            Ok(Some(batch)) => match tx.commit().await {
                Ok(()) => Ok(Some(batch)),
                Err(db::Error::CommitUnknown(_)) => Err(Lost::InDoubt(batch)),
                Err(error) => Err(error.into()),
            },
            Ok(None) => {
                tx.rollback().await?;
                Ok(None)
            }
            Err(error) => {
                // On a broken connection there is nothing to roll back; the reason is the first error.
                let _ = tx.rollback().await;
                Err(error)
            }
        }
    }

    /// Whether a batch whose commit is in doubt was written: every batch has a correction.
    async fn is_corrected(&self, line: &Line<'_>, first: i32) -> Result<bool, Error> {
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        // Waits for a commit that is still in flight.
        quarantine::lock(pg.conn, line.job).await?;
        let known = corrections::has(tx.conn(), line.job, (line.part, line.segment, first)).await?;
        tx.rollback().await?;
        Ok(known)
    }
}

/// Why a batch did not get through.
enum Lost {
    ToOthers(Error),
    InDoubt(Batch),
    For(Error),
}

impl From<db::Error> for Lost {
    fn from(error: db::Error) -> Self {
        if error.is_transient() { Self::ToOthers(error.into()) } else { Self::For(error.into()) }
    }
}

impl From<SinkError> for Lost {
    fn from(error: SinkError) -> Self {
        match error {
            SinkError::Db(error) => error.into(),
            SinkError::Retry(_) => Self::ToOthers(Error::Sink(error.to_string())),
            other => Self::For(Error::Sink(other.to_string())),
        }
    }
}

impl Line<'_> {
    async fn inside(&self, tx: &mut Tx, after: Option<Place>, first: i32) -> Result<Option<Batch>, Lost> {
        let began = Instant::now();
        let Conn::Postgres(pg) = tx.conn() else { return Err(Lost::For(Error::NotPostgres)) };
        quarantine::lock(pg.conn, self.job).await?;
        store::hold_at_rest(pg.conn, self.job).await.map_err(Lost::For)?;
        let look = Look { code: self.code.as_deref(), after, limit: BATCH, bytes: true };
        let held = quarantine::open(pg.conn, self.job, look).await?;
        let Some(last) = held.last().map(|record| record.place) else { return Ok(None) };
        let contradicted = contradicted(pg.conn, self.job, &held).await?;
        let taken = i64::try_from(held.len()).unwrap_or(i64::MAX);
        let records: Vec<StagedRecord> = held
            .iter()
            .zip(first..)
            .filter(|(record, _)| !contradicted.contains(&record.place))
            .map(|(record, ordinal)| StagedRecord {
                place: Place { partition: self.part, segment: self.segment, ordinal },
                fingerprint: Fingerprint::of(&record.raw),
                raw: record.raw.clone().into(),
                duplicate_of: None,
            })
            .collect();
        let written = self.write(tx, &records).await?;
        let tried = held.iter().filter(|record| !contradicted.contains(&record.place));
        let mut counts = Counts::default();
        let mut entries = Vec::new();
        let (mut moved, mut failing) = (Vec::new(), Vec::new());
        for ((held, record), written) in tried.zip(&records).zip(written) {
            if written.outcome == Outcome::Failed {
                failing.push((held, written));
                continue;
            }
            counts.add(written.outcome, written.targets);
            entries.push(Entry {
                ordinal: record.place.ordinal,
                source_id: written.source_id.clone(),
                reference: written.reference.clone(),
                outcome: written.outcome,
                reason: written.reason.as_ref().map(|reason| reason.code.to_string()),
                came: *record.fingerprint.as_bytes(),
                written: written.digest,
            });
            moved.push((held, written));
        }
        counts.failed = -i64::try_from(moved.len()).unwrap_or(i64::MAX);
        let micros = i64::try_from(began.elapsed().as_micros()).unwrap_or(i64::MAX);
        let block = (!entries.is_empty()).then(|| manifest::pack(&entries));
        let place = (self.part, self.segment, first);
        corrections::add(tx.conn(), self.job, place, &counts, micros, block.as_deref()).await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Lost::For(Error::NotPostgres)) };
        leave(pg.conn, self.job, &moved).await?;
        stay(pg.conn, self.job, &failing).await?;
        self.account(pg.conn, taken, -counts.failed).await?;
        let mut codes: Vec<String> = failing.iter().map(|(_, written)| code_of(written)).collect();
        codes.extend(held.iter().filter(|r| contradicted.contains(&r.place)).map(|r| r.code.clone()));
        Ok(Some(Batch { last, counts, taken, failing: codes }))
    }

    /// Writes the records; those that the database refuses end up alone, as in a run.
    async fn write(&self, tx: &mut Tx, records: &[StagedRecord]) -> Result<Vec<Written>, Lost> {
        let mut done = Vec::with_capacity(records.len());
        let mut parts = vec![records];
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            let chunk =
                ChunkContext { job: self.job, now: Timestamp::here(), isolating: part.len() < records.len() };
            tx.savepoint().await?;
            let reason = match self.sink.write(tx, &chunk, part, self.sink.prepare(&chunk, part)).await {
                Ok(written) => {
                    tx.release().await?;
                    done.extend(written);
                    continue;
                }
                Err(SinkError::Refused(reason)) => reason,
                Err(SinkError::Db(db::Error::Unique { constraint, .. })) => {
                    Reason { code: "unique_violation".into(), detail: constraint }
                }
                Err(SinkError::Db(error)) if error.is_refusal() => {
                    Reason::new("refused_by_database", error.message())
                }
                Err(other) => return Err(other.into()),
            };
            tx.undo().await?;
            if let [record] = part {
                let (id, label) = self.sink.identity(&record.raw).unzip();
                done.push(Written::failed(id, label, reason));
            } else {
                let (left, right) = part.split_at(part.len() / 2);
                parts.push(right);
                parts.push(left);
            }
        }
        Ok(done)
    }

    /// What the batch did, on the retry's line; the first record that moves with another folder makes it the job's.
    async fn account(&self, conn: &mut PgConnection, taken: i64, moved: i64) -> db::Result<()> {
        sqlx::query(
            "UPDATE crossdock.ledger_retries SET taken = taken + $4, moved = moved + $5
            WHERE job_id = $1 AND part = $2 AND segment = $3",
        )
        .persistent(false)
        .bind(self.job.0)
        .bind(self.part)
        .bind(self.segment)
        .bind(taken)
        .bind(moved)
        .execute(&mut *conn)
        .await?;
        if moved > 0 {
            let was = self.declared;
            let mut told = changes(&was.folder, &self.folder);
            if was.variables != self.variables {
                told.push(Change::Value("--set".to_owned()));
            }
            if !told.is_empty() {
                let told = serde_json::to_string(&told).expect("texts and numbers are JSON");
                store::change_folder(conn, self.job, was, (&self.folder, &self.variables), &told).await?;
            }
        }
        Ok(())
    }
}

/// The places of records that an open one of the same segment contradicts: the same id and other content. Neither is
/// tried while both are open, whatever batch they are in; discarding one frees the other.
async fn contradicted(conn: &mut PgConnection, job: JobId, held: &[Held]) -> db::Result<Vec<Place>> {
    const CODE: &str = "conflicting_duplicate";
    let suspects: Vec<&Held> = held.iter().filter(|record| record.code == CODE).collect();
    if suspects.is_empty() {
        return Ok(Vec::new());
    }
    let (parts, segments, ordinals) = columns(suspects.iter().map(|record| record.place));
    let places: Vec<(i32, i32, i32)> = sqlx::query_as(
        "SELECT q.part, q.segment, q.ordinal FROM unnest($2::int[], $3::int[], $4::int[]) AS s (part, segment, ordinal)
        JOIN crossdock.quarantine q USING (part, segment, ordinal)
        WHERE q.job_id = $1 AND EXISTS (
            SELECT 1 FROM crossdock.quarantine o
            WHERE o.job_id = $1 AND o.part = q.part AND o.segment = q.segment AND o.label = q.label AND o.code = $5
                AND o.raw <> q.raw AND NOT EXISTS (SELECT 1 FROM crossdock.ledger_discarded d
                    WHERE (d.job_id, d.part, d.segment, d.ordinal) = (o.job_id, o.part, o.segment, o.ordinal)))",
    )
    .persistent(false)
    .bind(job.0)
    .bind(parts)
    .bind(segments)
    .bind(ordinals)
    .bind(CODE)
    .fetch_all(conn)
    .await?;
    Ok(places
        .into_iter()
        .map(|(partition, segment, ordinal)| Place { partition, segment, ordinal })
        .collect())
}

fn columns(places: impl Iterator<Item = Place>) -> (Vec<i32>, Vec<i32>, Vec<i32>) {
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for place in places {
        columns.0.push(place.partition);
        columns.1.push(place.segment);
        columns.2.push(place.ordinal);
    }
    columns
}

/// Ends the quarantine of records. In the error log, those that simply arrived are no more.
async fn leave(conn: &mut PgConnection, job: JobId, moved: &[(&Held, Written)]) -> db::Result<()> {
    const QUARANTINE: &str = "DELETE FROM crossdock.quarantine q
        USING unnest($2::int[], $3::int[], $4::int[]) AS m (part, segment, ordinal)
        WHERE q.job_id = $1 AND (q.part, q.segment, q.ordinal) = (m.part, m.segment, m.ordinal)";
    const NOTES: &str = "DELETE FROM crossdock.notes n
        USING unnest($2::int[], $3::int[], $4::int[]) AS m (part, segment, ordinal)
        WHERE n.job_id = $1 AND (n.part, n.segment, n.ordinal) = (m.part, m.segment, m.ordinal)";
    if moved.is_empty() {
        return Ok(());
    }
    let (explained, arrived): (Vec<_>, Vec<_>) =
        moved.iter().partition(|(_, written)| written.reason.is_some());
    for (statement, (parts, segments, ordinals)) in [
        (QUARANTINE, columns(moved.iter().map(|(held, _)| held.place))),
        (NOTES, columns(arrived.iter().map(|(held, _)| held.place))),
    ] {
        sqlx::query(statement)
            .persistent(false)
            .bind(job.0)
            .bind(parts)
            .bind(segments)
            .bind(ordinals)
            .execute(&mut *conn)
            .await?;
    }
    let explained: Vec<(&Held, &Written)> =
        explained.into_iter().map(|(held, written)| (*held, written)).collect();
    note(conn, job, &explained).await
}

/// Tells the new reasons of records that stay.
async fn stay(conn: &mut PgConnection, job: JobId, failing: &[(&Held, Written)]) -> db::Result<()> {
    if failing.is_empty() {
        return Ok(());
    }
    let failing: Vec<(&Held, &Written)> = failing.iter().map(|(held, written)| (*held, written)).collect();
    let rows = reasons(&failing);
    sqlx::query(
        "UPDATE crossdock.quarantine q SET code = m.code, detail = m.detail,
            source_id = coalesce(m.source_id, q.source_id), label = coalesce(m.label, q.label)
        FROM jsonb_to_recordset($2::text::jsonb)
            AS m (part int, segment int, ordinal int, source_id text, label text, outcome text, code text, detail text)
        WHERE q.job_id = $1 AND (q.part, q.segment, q.ordinal) = (m.part, m.segment, m.ordinal)",
    )
    .persistent(false)
    .bind(job.0)
    .bind(rows)
    .execute(&mut *conn)
    .await?;
    note(conn, job, &failing).await
}

async fn note(conn: &mut PgConnection, job: JobId, records: &[(&Held, &Written)]) -> db::Result<()> {
    sqlx::query(
        "UPDATE crossdock.notes n SET outcome = m.outcome, code = m.code, detail = m.detail,
            source_id = coalesce(m.source_id, n.source_id), label = coalesce(m.label, n.label)
        FROM jsonb_to_recordset($2::text::jsonb)
            AS m (part int, segment int, ordinal int, source_id text, label text, outcome text, code text, detail text)
        WHERE n.job_id = $1 AND (n.part, n.segment, n.ordinal) = (m.part, m.segment, m.ordinal)",
    )
    .persistent(false)
    .bind(job.0)
    .bind(reasons(records))
    .execute(conn)
    .await?;
    Ok(())
}

fn reasons(records: &[(&Held, &Written)]) -> String {
    // Postgres keeps no U+0000 in a text; a message about it shows it as the symbol for it.
    let storable = |text: &str| text.replace('\0', "\u{2400}");
    let rows: Vec<serde_json::Value> = records
        .iter()
        .map(|(held, written)| {
            serde_json::json!({
                "part": held.place.partition, "segment": held.place.segment, "ordinal": held.place.ordinal,
                "source_id": written.source_id.as_deref().map(storable),
                "label": written.label.as_deref().map(storable),
                "outcome": written.outcome.as_str(), "code": code_of(written),
                "detail": written.reason.as_ref().map(|reason| storable(&reason.detail)).unwrap_or_default(),
            })
        })
        .collect();
    serde_json::to_string(&rows).expect("texts and numbers are JSON")
}

fn code_of(written: &Written) -> String {
    written.reason.as_ref().map_or_else(|| "unexplained".to_owned(), |reason| reason.code.to_string())
}

/// A folder may map and prove otherwise, but not into another target, under other references, or prove other fields:
/// what was written before must still be comparable.
fn same_migration(before: (&Declaration, &Shape), now: (&Declaration, &Shape)) -> Result<(), Error> {
    let target =
        |of: &Declaration| (of.target.schema.clone(), of.target.table.clone(), of.target.key.clone());
    let proved = |of: &Shape| -> Vec<(String, &'static str)> {
        of.proved.iter().map(|(name, kind)| (name.clone(), kind.sql())).collect()
    };
    let differs = if target(before.0) != target(now.0) {
        "the target's table or key"
    } else if before.0.id != now.0.id || before.0.reference != now.0.reference {
        "how references are made"
    } else if proved(before.1) != proved(now.1) {
        "the fields that the proof gives back"
    } else if before.0.sums != now.0.sums {
        "the certificate's sums"
    } else {
        return Ok(());
    };
    Err(Error::State(format!(
        "the folder changes {differs}, so it is another migration; give the job's own folder with its map mended"
    )))
}
