//! The sink: a chunk of records becomes rows of the target, set-wise, in the engine's transaction.
//!
//! Before the transaction each record is read by type and packed for COPY. In it: a temporary table `staged` is filled, and
//! one statement maps it, inserts what is new and proves what it inserted, that is, compares the fields that the
//! declaration's proof gives back from the rows with those that came. Only where a row was there already does a second
//! statement look at the rows and tell `unchanged` from a conflict.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use db::{Conn, Tx};
use engine::{ChunkContext, JobId, Outcome, Prepared, Reason, Sink, SinkError, StagedRecord, Written};
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use crate::copy::CopyRows;
use crate::declaration::{Declaration, OnConflict};
use crate::field::Value;
use crate::field::decimal::Decimal;
use crate::proof::{self, Digest, Multiset, Sums};
use crate::record::{RecordReader, Row};
use crate::sql::{Shape, Statements, staged_columns};
use crate::store;

/// Tries to write a chunk into which other workers' rows keep getting.
const RACES_MAX: usize = 5;

/// Writes records into the target.
pub struct LedgerSink {
    declaration: Declaration,
    reader: Arc<RecordReader>,
    statements: Statements,
    /// Indexes of the proved fields among the reader's.
    proved: Vec<usize>,
    sums: Vec<SumPlace>,
    /// The transaction id that was current when the job was made: rows of a later one may be its own.
    begun: String,
    /// Whether rows of the last chunk were there already: the next one then looks before it writes.
    looks_first: AtomicBool,
}

/// Indexes of a sum's fields among the reader's.
struct SumPlace {
    field: usize,
    by: Vec<usize>,
}

/// A chunk as the transaction needs it.
struct Staged {
    /// One for each record that was given.
    records: Vec<Read>,
    copy: Vec<u8>,
    /// Indexes of the records in the COPY.
    rows: Vec<i32>,
}

enum Read {
    /// It needs no database.
    Settled(Box<Written>),
    /// It is in the COPY, under its index.
    Row(Box<ReadRow>),
}

struct ReadRow {
    id: String,
    reference: String,
    came: Digest,
    sums: Vec<(usize, Vec<String>, Decimal)>,
}

/// What is proved of the records that stand in the target.
#[derive(Default)]
struct Proof {
    records: i64,
    hash: Multiset,
    sums: Sums,
}

/// What is to become of a record.
#[derive(Debug, Clone)]
enum Fate {
    Done(Outcome, Option<Reason>, u32),
    Insert,
    Update,
}

impl LedgerSink {
    /// For a declaration whose queries have this shape; `begun` is the transaction id from which on rows may be the job's.
    pub fn new(declaration: Declaration, shape: &Shape, begun: String) -> Self {
        let reader = RecordReader::new(&declaration);
        let index = |name: &String| reader.fields().iter().position(|(known, _)| known == name);
        let proved = shape.proved.iter().filter_map(|(name, _)| index(name)).collect();
        let sums = declaration
            .sums
            .iter()
            .filter_map(|sum| {
                Some(SumPlace { field: index(&sum.field)?, by: sum.by.iter().filter_map(&index).collect() })
            })
            .collect();
        let statements = Statements::new(&declaration, shape);
        Self {
            reader: Arc::new(reader),
            statements,
            proved,
            sums,
            begun,
            looks_first: AtomicBool::new(false),
            declaration,
        }
    }

    /// Writes the records and tells what became of them; the proof of those that stand is the caller's to keep.
    async fn write_rows(
        &self,
        tx: &mut Tx,
        records: &[StagedRecord],
        prepared: Prepared,
    ) -> Result<(Vec<Written>, Proof), SinkError> {
        let mut staged = prepared.take::<Staged>().unwrap_or_else(|| self.stage(records));
        let Conn::Postgres(pg) = tx.conn() else { return Err(not_postgres()) };
        let conn = pg.conn;
        let mut fates = HashMap::new();
        if !staged.rows.is_empty() {
            fates = self.settle(conn, &mut staged).await?;
            // Parts of a chunk share one transaction, and each makes its own table.
            simple(conn, "DROP TABLE staged").await?;
        }
        let mut proof = Proof::default();
        let mut written = Vec::with_capacity(records.len());
        for (index, read) in staged.records.into_iter().enumerate() {
            let row = match read {
                Read::Settled(settled) => {
                    written.push(*settled);
                    continue;
                }
                Read::Row(row) => row,
            };
            let fate = i32::try_from(index).ok().and_then(|index| fates.remove(&index));
            let Some(Fate::Done(outcome, reason, targets)) = fate else {
                return Err(SinkError::Fatal(format!("nothing was told of record {index} of a chunk")));
            };
            let stands = matches!(outcome, Outcome::Imported | Outcome::Updated | Outcome::Unchanged);
            if stands {
                proof.records += 1;
                proof.hash.add(&row.came);
                for (number, by, value) in row.sums {
                    proof.sums.entry((number, by)).or_default().add(&value);
                }
            }
            written.push(Written {
                source_id: Some(row.id),
                label: Some(row.reference.clone()),
                reference: Some(row.reference),
                outcome,
                reason,
                digest: if stands { row.came } else { [0; 16] },
                targets,
            });
        }
        Ok((written, proof))
    }

    /// Writes the records for a look at the rows, in a transaction that the caller rolls back.
    pub(crate) async fn preview(
        &self,
        tx: &mut Tx,
        records: &[StagedRecord],
        prepared: Prepared,
    ) -> Result<Vec<Written>, SinkError> {
        Ok(self.write_rows(tx, records, prepared).await?.0)
    }

    fn stage(&self, records: &[StagedRecord]) -> Staged {
        let columns = staged_columns(&self.declaration).len();
        let bytes = records.iter().map(|record| record.raw.len()).sum::<usize>();
        let mut copy = CopyRows::new(columns, bytes + records.len() * 64);
        let mut read = Vec::with_capacity(records.len());
        let mut first: HashMap<String, usize> = HashMap::with_capacity(records.len());
        let mut rows: Vec<Option<Row<'_>>> = Vec::with_capacity(records.len());
        for (index, record) in records.iter().enumerate() {
            let row = match self.reader.read(&record.raw) {
                Ok(row) => row,
                Err(unreadable) => {
                    let label = unreadable.id.as_ref().map(|id| self.declaration.reference.of(id));
                    read.push(Some(Written::failed(unreadable.id, label, unreadable.reason)));
                    rows.push(None);
                    continue;
                }
            };
            let place = first.get(&row.id).copied();
            match place {
                None => {
                    first.insert(row.id.clone(), index);
                    read.push(None);
                }
                // Not of one that conflicts: what is equal to it conflicts as well.
                Some(earlier)
                    if read[earlier].is_none()
                        && rows[earlier].as_ref().is_some_and(|known| same(known, &row)) =>
                {
                    let detail = format!(
                        "the record {} of the same segment, in other bytes",
                        records[earlier].place.ordinal
                    );
                    read.push(Some(self.told(&row.id, Outcome::DuplicateInSource, "same_content", detail)));
                }
                Some(earlier) => {
                    for (one, other) in [(earlier, index), (index, earlier)] {
                        let detail = format!(
                            "the record {} of the same segment has the same id and other content",
                            records[other].place.ordinal
                        );
                        let told = self.told(&row.id, Outcome::Failed, "conflicting_duplicate", detail);
                        if one < read.len() { read[one] = Some(told) } else { read.push(Some(told)) }
                    }
                }
            }
            rows.push(Some(row));
        }
        let mut indexes = Vec::with_capacity(read.len());
        let records = read
            .into_iter()
            .zip(rows)
            .enumerate()
            .map(|(index, (settled, row))| match (settled, row) {
                (None, Some(row)) => {
                    let index = i32::try_from(index).expect("a chunk has fewer records");
                    indexes.push(index);
                    Read::Row(Box::new(self.pack(&mut copy, index, row)))
                }
                (Some(written), _) => Read::Settled(Box::new(written)),
                (None, None) => unreachable!("a record that is not read is settled"),
            })
            .collect();
        Staged { records, copy: copy.finish(), rows: indexes }
    }

    fn pack(&self, copy: &mut CopyRows, index: i32, row: Row<'_>) -> ReadRow {
        let reference = self.declaration.reference.of(&row.id);
        let came = proof::digest(self.proved.iter().map(|index| &row.values[*index]));
        copy.row();
        copy.int(index);
        copy.field(reference.as_bytes());
        for value in &row.values {
            copy.value(value);
        }
        for ((_, field), presence) in self.reader.fields().iter().zip(&row.presences) {
            if field.presence.is_some() {
                copy.field(presence.as_str().as_bytes());
            }
        }
        let sums = self
            .sums
            .iter()
            .enumerate()
            .filter_map(|(number, sum)| {
                let value = match &row.values[sum.field] {
                    Value::Numeric(value) => value.clone(),
                    Value::Bigint(value) => Decimal::parse(&value.to_string()).ok()?,
                    _ => return None,
                };
                let by = sum.by.iter().map(|index| match row.values[*index].canonical() {
                    Some(text) => text.into_owned(),
                    None => "-".to_owned(),
                });
                Some((number, by.collect(), value))
            })
            .collect();
        ReadRow { id: row.id, reference, came, sums }
    }

    fn told(&self, id: &str, outcome: Outcome, code: &'static str, detail: String) -> Written {
        let reference = self.declaration.reference.of(id);
        let reason = Some(Reason::new(code, detail));
        Written {
            source_id: Some(id.to_owned()),
            label: Some(reference.clone()),
            reference: Some(reference),
            outcome,
            reason,
            digest: [0; 16],
            targets: 0,
        }
    }

    /// Decides about every row of the COPY and writes what is to be written. Fates are by index of the record.
    async fn settle(
        &self,
        conn: &mut PgConnection,
        staged: &mut Staged,
    ) -> Result<HashMap<i32, Fate>, SinkError> {
        sqlx::raw_sql(AssertSqlSafe(self.statements.create_staged.clone()))
            .execute(&mut *conn)
            .await
            .map_err(refused)?;
        let mut copy = conn.copy_in_raw(&self.statements.copy_staged).await.map_err(refused)?;
        copy.send(std::mem::take(&mut staged.copy)).await.map_err(refused)?;
        copy.finish().await.map_err(refused)?;
        let mut look = self.looks_first.load(Ordering::Relaxed);
        let mut bad: HashMap<i32, Fate> = HashMap::new();
        // The error with which a unique constraint refused the rows, when so many records were thought new.
        let mut taken: Option<(SinkError, usize)> = None;
        for _ in 0..RACES_MAX {
            let mut fates = if look { self.classify(conn, &staged.rows).await? } else { HashMap::new() };
            // Before a look, every record may be new.
            let mut new = usize::MAX;
            if look {
                new = fates.values().filter(|fate| matches!(fate, Fate::Insert)).count();
                self.looks_first.store(new * 2 < fates.len(), Ordering::Relaxed);
            }
            if let Some((error, known)) = taken.take()
                && new >= known
            {
                // No key was taken meanwhile: it is another constraint.
                return Err(error);
            }
            fates.extend(bad.iter().map(|(record, fate)| (*record, fate.clone())));
            simple(conn, "SAVEPOINT ledger").await?;
            match self.write_fates(conn, &mut fates, look, &staged.rows).await {
                Err(SinkError::Db(error @ db::Error::Unique { .. })) => {
                    taken = Some((error.into(), new));
                    look = true;
                }
                Err(error) => return Err(error),
                Ok(Wrote::All) => {
                    simple(conn, "RELEASE SAVEPOINT ledger").await?;
                    return Ok(fates);
                }
                // Some rows were there already, or came in between: look.
                Ok(Wrote::Less) => look = true,
                Ok(Wrote::Unlike(unlike)) => bad.extend(unlike),
            }
            simple(conn, "ROLLBACK TO SAVEPOINT ledger; RELEASE SAVEPOINT ledger").await?;
        }
        Err(SinkError::Retry("other transactions keep writing the same rows".into()))
    }

    /// Writes what `fates` says, or everything if nobody has looked yet.
    async fn write_fates(
        &self,
        conn: &mut PgConnection,
        fates: &mut HashMap<i32, Fate>,
        looked: bool,
        rows: &[i32],
    ) -> Result<Wrote, SinkError> {
        let chosen = |wanted: fn(&Fate) -> bool, fates: &HashMap<i32, Fate>| -> Vec<i32> {
            fates.iter().filter(|(_, fate)| wanted(fate)).map(|(record, _)| *record).collect()
        };
        let inserts: Vec<i32> = if looked {
            chosen(|fate| matches!(fate, Fate::Insert), fates)
        } else {
            rows.iter().copied().filter(|record| !fates.contains_key(record)).collect()
        };
        let updates = chosen(|fate| matches!(fate, Fate::Update), fates);
        let mut unlike = HashMap::new();
        for (statement, records, named, outcome) in [
            (&self.statements.insert, inserts, looked, Outcome::Imported),
            (&self.statements.update, updates, true, Outcome::Updated),
        ] {
            if records.is_empty() {
                continue;
            }
            let done = chosen(|fate| matches!(fate, Fate::Done(..)), fates);
            let told = Told::of(conn, statement, named.then_some(&records), &done).await?;
            if !self.judge(conn, told, &records, outcome, fates, &mut unlike).await? {
                return Ok(Wrote::Less);
            }
        }
        if !unlike.is_empty() {
            return Ok(Wrote::Unlike(unlike));
        }
        if fates.len() < rows.len() {
            let text = format!("the statements told of {} of {} records", fates.len(), rows.len());
            return Err(SinkError::Fatal(text));
        }
        Ok(Wrote::All)
    }

    /// Turns what a writing statement told into fates of the records that it was to write. `false`: it did not write all of
    /// them. What was written and is not what came goes into `unlike`.
    async fn judge(
        &self,
        conn: &mut PgConnection,
        told: Told,
        records: &[i32],
        outcome: Outcome,
        fates: &mut HashMap<i32, Fate>,
        unlike: &mut HashMap<i32, Fate>,
    ) -> Result<bool, SinkError> {
        let chosen: HashSet<i32> = records.iter().copied().collect();
        // One row that is refused refuses its record, whatever its other rows say.
        let mut refused = HashSet::new();
        for row in told.rows.iter().filter(|row| chosen.contains(&row.record)) {
            if let Some(fate) = refusal(row.mapped, row.reject.as_deref(), row.filter.as_deref()) {
                refused.insert(row.record);
                fates.insert(row.record, fate);
            }
        }
        let aside = |record: &i32| !chosen.contains(record) || refused.contains(record);
        let left = told.rows.iter().filter(|row| row.mapped && aside(&row.record)).count();
        if told.written != told.mapped - i64::try_from(left).unwrap_or(i64::MAX) {
            return Ok(false);
        }
        let differ: BTreeSet<i32> =
            told.rows.iter().map(|row| row.record).filter(|record| !aside(record)).collect();
        if !differ.is_empty() {
            let differ: Vec<i32> = differ.into_iter().collect();
            for (record, reason) in self.differences(conn, &differ).await? {
                unlike.insert(record, Fate::Done(Outcome::Failed, Some(reason), 0));
            }
            return Ok(true);
        }
        let whole: Vec<i32> = records.iter().copied().filter(|record| !refused.contains(record)).collect();
        let counts = if told.written == i64::try_from(whole.len()).unwrap_or(i64::MAX) {
            HashMap::new()
        } else {
            self.row_counts(conn).await?
        };
        for record in whole {
            fates.insert(record, Fate::Done(outcome, None, counts.get(&record).copied().unwrap_or(1)));
        }
        Ok(true)
    }

    /// How many rows the map makes of each record.
    async fn row_counts(&self, conn: &mut PgConnection) -> Result<HashMap<i32, u32>, SinkError> {
        let rows: Vec<(i32, i64)> = sqlx::query_as(AssertSqlSafe(self.statements.row_counts.clone()))
            .persistent(false)
            .fetch_all(conn)
            .await
            .map_err(refused)?;
        Ok(rows
            .into_iter()
            .map(|(record, count)| (record, u32::try_from(count).unwrap_or(u32::MAX)))
            .collect())
    }

    /// Why rows do not prove what came, by record.
    async fn differences(
        &self,
        conn: &mut PgConnection,
        records: &[i32],
    ) -> Result<Vec<(i32, Reason)>, SinkError> {
        let rows: Vec<(i32, i64, Option<String>)> =
            sqlx::query_as(AssertSqlSafe(self.statements.proof_of.clone()))
                .persistent(false)
                .bind(records)
                .fetch_all(conn)
                .await
                .map_err(refused)?;
        Ok(rows
            .into_iter()
            .map(|(record, count, fields)| {
                let reason = match (count, fields) {
                    (0, _) => {
                        Reason::new("not_proved", "the proof gives nothing back for what the map wrote")
                    }
                    (1, Some(fields)) => {
                        Reason::new("differs_from_source", format!("the proof gives back {fields}"))
                    }
                    _ => Reason::new(
                        "not_proved",
                        format!("the proof gives back {count} rows for one reference"),
                    ),
                };
                (record, reason)
            })
            .collect())
    }

    /// What is to become of the records in the COPY, by what stands in the target.
    async fn classify(
        &self,
        conn: &mut PgConnection,
        records: &[i32],
    ) -> Result<HashMap<i32, Fate>, SinkError> {
        let told: Vec<Classified> = sqlx::query_as(AssertSqlSafe(self.statements.classify.clone()))
            .persistent(false)
            .bind(&self.begun)
            .fetch_all(&mut *conn)
            .await
            .map_err(refused)?;
        let mut by_record: HashMap<i32, Vec<Classified>> = HashMap::new();
        let mut rows = 0;
        for row in told {
            match row.record {
                Some(record) => by_record.entry(record).or_default().push(row),
                None => rows = row.rows.unwrap_or(0),
            }
        }
        let mut fates: HashMap<i32, Fate> = HashMap::with_capacity(records.len());
        fates.extend(by_record.into_iter().map(|(record, rows)| (record, self.fate(&rows))));
        // Of the others every row stands there.
        let single = usize::try_from(rows).is_ok_and(|rows| rows == records.len());
        let counts = if single { HashMap::new() } else { self.row_counts(conn).await? };
        for record in records {
            fates.entry(*record).or_insert_with(|| {
                Fate::Done(Outcome::Unchanged, None, counts.get(record).copied().unwrap_or(1))
            });
        }
        Ok(fates)
    }

    fn fate(&self, rows: &[Classified]) -> Fate {
        if let Some(refusal) = rows
            .iter()
            .find_map(|row| refusal(row.mapped == Some(true), row.reject.as_deref(), row.filter.as_deref()))
        {
            return refusal;
        }
        let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let found = rows.iter().filter(|row| row.found == Some(true)).count();
        let differences: Vec<&str> = rows.iter().filter_map(|row| row.differences.as_deref()).collect();
        if found == 0 {
            return Fate::Insert;
        }
        let is_whole = found == rows.len() && differences.is_empty();
        let ours = rows.iter().any(|row| row.found == Some(true) && row.ours == Some(true));
        if is_whole && rows.iter().all(|row| row.proved == Some(true)) {
            if ours {
                let reason =
                    Reason::new("came_before", "this job has written the same content under this id already");
                return Fate::Done(Outcome::DuplicateInSource, Some(reason), 0);
            }
            return Fate::Done(Outcome::Unchanged, None, count);
        }
        if self.declaration.target.on_conflict == OnConflict::Update && !ours {
            return Fate::Update;
        }
        let code = if ours { "conflicting_duplicate" } else { "conflict" };
        let detail = if found < rows.len() {
            format!("{found} of the {} rows of this record are in the target already", rows.len())
        } else if differences.is_empty() {
            "the row in the target is equal where the map writes, but the proof gives something else back"
                .to_owned()
        } else {
            format!("the target has another content, as [there, from the source]: {}", differences.join(" "))
        };
        Fate::Done(Outcome::Failed, Some(Reason::new(code, detail)), 0)
    }
}

/// How a writing statement went.
enum Wrote {
    All,
    Less,
    /// These were written and do not prove what came.
    Unlike(HashMap<i32, Fate>),
}

/// What a writing statement tells: the rows of records that it did not write or that are not proved, how many rows it
/// wrote, and how many the map gave.
struct Told {
    rows: Vec<ToldRow>,
    written: i64,
    mapped: i64,
}

struct ToldRow {
    record: i32,
    mapped: bool,
    reject: Option<String>,
    filter: Option<String>,
}

type ToldColumns = (Option<i32>, Option<bool>, Option<String>, Option<String>, Option<i64>, Option<i64>);

impl Told {
    async fn of(
        conn: &mut PgConnection,
        statement: &str,
        only: Option<&Vec<i32>>,
        without: &[i32],
    ) -> Result<Self, SinkError> {
        let columns: Vec<ToldColumns> = sqlx::query_as(AssertSqlSafe(statement.to_owned()))
            .persistent(false)
            .bind(only)
            .bind((!without.is_empty()).then_some(without))
            .fetch_all(conn)
            .await
            .map_err(refused)?;
        let mut told = Self { rows: Vec::new(), written: 0, mapped: 0 };
        for (record, mapped, reject, filter, written, rows) in columns {
            match record {
                Some(record) => {
                    told.rows.push(ToldRow { record, mapped: mapped.unwrap_or(false), reject, filter });
                }
                None => (told.written, told.mapped) = (written.unwrap_or(0), rows.unwrap_or(0)),
            }
        }
        Ok(told)
    }
}

/// A row of a record that is not simply there; or, without a record, how many rows there are.
#[derive(sqlx::FromRow)]
struct Classified {
    #[sqlx(rename = "_record")]
    record: Option<i32>,
    mapped: Option<bool>,
    reject: Option<String>,
    filter: Option<String>,
    found: Option<bool>,
    ours: Option<bool>,
    differences: Option<String>,
    proved: Option<bool>,
    rows: Option<i64>,
}

/// The fate of a record that the map does not want.
fn refusal(mapped: bool, reject: Option<&str>, filter: Option<&str>) -> Option<Fate> {
    let coded = |text: &str, otherwise: &'static str| {
        let (code, detail) = text.split_once(':').unwrap_or((text, ""));
        let code = code.trim();
        let is_code = !code.is_empty()
            && code.len() <= 60
            && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if is_code {
            Reason { code: code.to_owned().into(), detail: detail.trim().to_owned() }
        } else {
            Reason::new(otherwise, text)
        }
    };
    match (mapped, reject, filter) {
        (false, ..) => Some(Fate::Done(
            Outcome::Failed,
            Some(Reason::new(
                "unmapped",
                "the map gives no row for it; let it say why in _reject or _filter",
            )),
            0,
        )),
        (true, Some(text), _) => Some(Fate::Done(Outcome::Failed, Some(coded(text, "rejected")), 0)),
        (true, None, Some(text)) => Some(Fate::Done(Outcome::Filtered, Some(coded(text, "filtered")), 0)),
        (true, None, None) => None,
    }
}

/// Whether two records say the same in their fields.
fn same(one: &Row<'_>, other: &Row<'_>) -> bool {
    one.presences == other.presences
        && one.values.iter().zip(&other.values).all(|(a, b)| a.canonical() == b.canonical())
}

fn not_postgres() -> SinkError {
    SinkError::Fatal("a ledger lives on Postgres; this database is SQLite".into())
}

fn refused(error: sqlx::Error) -> SinkError {
    SinkError::Db(error.into())
}

async fn simple(conn: &mut PgConnection, sql: &'static str) -> Result<(), SinkError> {
    sqlx::raw_sql(sql).execute(conn).await.map(drop).map_err(refused)
}

#[async_trait]
impl Sink for LedgerSink {
    fn parallel(&self) -> bool {
        true
    }

    fn prepare(&self, _chunk: &ChunkContext, records: &[StagedRecord]) -> Prepared {
        Prepared::new(self.stage(records))
    }

    async fn write(
        &self,
        tx: &mut Tx,
        chunk: &ChunkContext,
        records: &[StagedRecord],
        prepared: Prepared,
    ) -> Result<Vec<Written>, SinkError> {
        let (written, proof) = self.write_rows(tx, records, prepared).await?;
        if let Some(first) = records.first() {
            let Conn::Postgres(pg) = tx.conn() else { return Err(not_postgres()) };
            store::keep_proof(pg.conn, chunk.job, first.place, proof.records, proof.hash, &proof.sums)
                .await?;
        }
        Ok(written)
    }

    fn has_identity(&self, raw: &[u8]) -> bool {
        self.reader.id_of(raw).is_some()
    }

    fn identity(&self, raw: &[u8]) -> Option<(String, String)> {
        let id = self.reader.id_of(raw)?;
        let reference = self.declaration.reference.of(&id);
        Some((id, reference))
    }

    async fn undo(&self, _tx: &mut Tx, job: JobId, _limit: i64) -> Result<i64, SinkError> {
        Err(SinkError::Fatal(format!("job {job}: what a ledger's job wrote is not taken back")))
    }
}
