//! Taking back what a job wrote: rows that are still as it wrote them go, everything else stays and is named.
//!
//! A job keeps the digest of each record's proved fields, not its rows. So a record's rows are found by the declaration's
//! own queries: the proof gives the fields back from the target, the map makes keys of these fields, and the proof over the
//! rows with these keys alone must give the same digest again. A record for which it does not is left alone. What the proof
//! does not give back is not compared.
//!
//! It goes through the manifest backwards, the newest rows first, in transactions of bounded size, each of which moves the
//! kept position: one that is broken off goes on where it was. Rows that others refer to are not removed, whatever their
//! foreign keys would do.

use std::collections::BTreeMap;
use std::time::Duration;

use db::{Conn, Tx};
use engine::store::{chunks, jobs};
use engine::{Job, JobId, Mode, Outcome, Status, manifest};
use serde::Serialize;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::certificate::Named;
use crate::copy::CopyRows;
use crate::declaration::Declaration;
use crate::quarantine;
use crate::reconcile::NAMED_MAX;
use crate::service::{Error, Ledgers};
use crate::sql::{self, Shape, quoted};
use crate::store;

/// Records of a transaction; the last block may exceed it.
const RECORDS: usize = 50_000;
/// Refusals of single records after which the rest of a transaction's records is left without a try: a table whose
/// triggers let nothing go would be asked for each.
const REFUSALS_MAX: usize = 200;
/// Tries of a transaction that loses to others, or whose connection breaks.
const TRIES_MAX: u32 = 20;
const RETRY_FIRST: Duration = Duration::from_millis(20);

/// What was removed and what was left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RolledBack {
    /// Nothing was written; this is what would be.
    pub dry_run: bool,
    /// Records whose rows were removed, and how many rows.
    pub records: i64,
    /// See `records`.
    pub rows: i64,
    /// Records that were there with the same content before the job; their rows are not its own.
    pub unchanged: i64,
    /// What was left, by name, for each reason:
    /// `gone` (nothing of it is there), `altered` (its proved fields are others now), `doubled` (the proof gives it back more
    /// than once), `updated` (it was there before the job changed it, and the former content is not known), `referenced`
    /// (other rows refer to it), `refused` (the database does not let it go), `unrecognised` (map and proof do not lead to its
    /// rows).
    pub left: BTreeMap<String, Named>,
}

impl RolledBack {
    fn leave(&mut self, reference: String, why: &str) {
        let named = self.left.entry(why.to_owned()).or_default();
        named.count += 1;
        if i64::try_from(named.references.len()).is_ok_and(|known| known < NAMED_MAX) {
            named.references.push(reference);
        }
    }

    /// In one sentence.
    pub fn sentence(&self) -> String {
        let left: Vec<String> =
            self.left.iter().map(|(why, named)| format!("{} {why}", named.count)).collect();
        let left = if left.is_empty() { "nothing".to_owned() } else { left.join(", ") };
        let (rows, records) = (self.rows, self.records);
        if self.dry_run {
            format!("a rollback would remove the {rows} rows of {records} records; left would be: {left}")
        } else {
            format!("rolled back: the {rows} rows of {records} records are removed; left: {left}")
        }
    }
}

/// What one transaction did.
#[derive(Default)]
struct Step {
    last: chunks::Key,
    records: i64,
    rows: i64,
    unchanged: i64,
    left: Vec<(String, String)>,
}

const END: chunks::Key = (i32::MAX, i32::MAX, i32::MAX);

impl Ledgers {
    /// Removes the rows that a resting job wrote and that are still as it wrote them, and names the others. A job that was
    /// not over is cancelled. Asked again, it goes on, or tells what it did.
    ///
    /// # Errors
    /// [`Error::State`] for a job that is under way, or whose map cannot be run over what its proof gives back; those of
    /// the database.
    pub async fn rollback(&self, id: JobId, dry_run: bool) -> Result<RolledBack, Error> {
        let (job, declared) = self.written(id).await?;
        may_roll_back(&job)?;
        let (declaration, shape) = self.shape(&declared.folder, &declared.variables).await?;
        let taking = Taking { job: id, queries: Queries::new(&declaration, &shape), begun: declared.begun };
        if dry_run {
            return self.rehearse(&taking).await;
        }
        self.begin_rollback(&job).await?;
        let mut tries = 0;
        loop {
            match self.step(&taking).await {
                Ok(true) => tries = 0,
                Ok(false) => break,
                // What is in doubt is found out by the position.
                Err(Error::Db(error))
                    if tries < TRIES_MAX
                        && (error.is_transient() || matches!(error, db::Error::CommitUnknown(_))) =>
                {
                    tries += 1;
                    tokio::time::sleep(RETRY_FIRST.saturating_mul(tries)).await;
                }
                Err(error) => return Err(error),
            }
        }
        self.end_rollback(id).await
    }

    async fn rehearse(&self, taking: &Taking) -> Result<RolledBack, Error> {
        let mut told = RolledBack { dry_run: true, ..RolledBack::default() };
        let mut before = END;
        loop {
            let mut tx = self.database.begin_bulk().await?;
            let step = taking.step(&mut tx, before).await?;
            tx.rollback().await?;
            let Some(step) = step else { return Ok(told) };
            before = step.last;
            told.records += step.records;
            told.rows += step.rows;
            told.unchanged += step.unchanged;
            for (reference, why) in step.left {
                told.leave(reference, &why);
            }
        }
    }

    /// From here on the job goes on no more, and nothing of it is being written.
    async fn begin_rollback(&self, job: &Job) -> Result<(), Error> {
        let mut tx = self.database.begin().await?;
        if !job.status.is_final()
            && !jobs::move_to(tx.conn(), job.id, Status::Cancelled, Some("it is being rolled back"), None)
                .await?
        {
            tx.rollback().await?;
            return Err(Error::State(format!(
                "job {} has just moved; look at its state, and ask again",
                job.id
            )));
        }
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        sqlx::query("INSERT INTO crossdock.ledger_rollbacks (job_id) VALUES ($1) ON CONFLICT DO NOTHING")
            .persistent(false)
            .bind(job.id.0)
            .execute(&mut *pg.conn)
            .await?;
        tx.commit().await?;
        let mut tx = self.database.begin().await?;
        chunks::hold_all(tx.conn(), job.id).await?;
        Ok(tx.rollback().await?)
    }

    /// One transaction. `false`: nothing was left.
    async fn step(&self, taking: &Taking) -> Result<bool, Error> {
        let mut tx = self.database.begin_bulk().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        quarantine::lock(pg.conn, taking.job).await?;
        let before: chunks::Key = sqlx::query_as(
            "SELECT part, segment, first_ordinal FROM crossdock.ledger_rollbacks WHERE job_id = $1 FOR UPDATE",
        )
        .persistent(false)
        .bind(taking.job.0)
        .fetch_one(&mut *pg.conn)
        .await?;
        let Some(step) = taking.step(&mut tx, before).await? else {
            tx.rollback().await?;
            return Ok(false);
        };
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        sqlx::query(
            "UPDATE crossdock.ledger_rollbacks SET part = $2, segment = $3, first_ordinal = $4, removed = removed + $5,
                rows = rows + $6, unchanged = unchanged + $7
            WHERE job_id = $1",
        )
        .persistent(false)
        .bind(taking.job.0)
        .bind(step.last.0)
        .bind(step.last.1)
        .bind(step.last.2)
        .bind(step.records)
        .bind(step.rows)
        .bind(step.unchanged)
        .execute(&mut *pg.conn)
        .await?;
        let (references, whys): (Vec<String>, Vec<String>) = step.left.into_iter().unzip();
        sqlx::query(
            "INSERT INTO crossdock.ledger_rollback_left (job_id, reference, why)
            SELECT $1, l.reference, l.why FROM unnest($2::text[], $3::text[]) AS l (reference, why)",
        )
        .persistent(false)
        .bind(taking.job.0)
        .bind(references)
        .bind(whys)
        .execute(&mut *pg.conn)
        .await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Tells what all the transactions did; the job's reason says it, too.
    async fn end_rollback(&self, id: JobId) -> Result<RolledBack, Error> {
        let mut tx = self.database.begin().await?;
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        let (records, rows, unchanged): (i64, i64, i64) = sqlx::query_as(
            "UPDATE crossdock.ledger_rollbacks SET finished_at = coalesce(finished_at, clock_timestamp())
            WHERE job_id = $1 RETURNING removed, rows, unchanged",
        )
        .persistent(false)
        .bind(id.0)
        .fetch_one(&mut *pg.conn)
        .await?;
        let mut told = RolledBack { records, rows, unchanged, ..RolledBack::default() };
        let counts: Vec<(String, i64)> = sqlx::query_as(
            "SELECT why, count(*) FROM crossdock.ledger_rollback_left WHERE job_id = $1 GROUP BY 1",
        )
        .persistent(false)
        .bind(id.0)
        .fetch_all(&mut *pg.conn)
        .await?;
        for (why, count) in counts {
            let references = sqlx::query_scalar(
                "SELECT reference FROM crossdock.ledger_rollback_left WHERE job_id = $1 AND why = $2 ORDER BY 1 LIMIT $3",
            )
            .persistent(false)
            .bind(id.0)
            .bind(&why)
            .bind(NAMED_MAX)
            .fetch_all(&mut *pg.conn)
            .await?;
            told.left.insert(why, Named { count, references });
        }
        store::set_reason(pg.conn, id, &told.sentence()).await?;
        tx.commit().await?;
        Ok(told)
    }
}

fn may_roll_back(job: &Job) -> Result<(), Error> {
    let id = job.id;
    if job.mode == Mode::DryRun {
        return Err(Error::State(format!(
            "job {id} is a dry run; it wrote nothing that could be rolled back"
        )));
    }
    if matches!(job.status, Status::Queued | Status::Running | Status::Waiting) {
        return Err(Error::State(format!(
            "job {id} is {}; `crossdock ledger cancel {id}` first, and then roll it back",
            job.status
        )));
    }
    Ok(())
}

/// A rollback under way.
struct Taking {
    job: JobId,
    queries: Queries,
    begun: String,
}

impl Taking {
    /// Deals with the blocks before a place. `None`: there are none.
    async fn step(&self, tx: &mut Tx, before: chunks::Key) -> Result<Option<Step>, Error> {
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        let conn = pg.conn;
        let mut step = Step { last: before, ..Step::default() };
        let mut wanted = CopyRows::new(3, 0);
        let mut count = 0_usize;
        while count < RECORDS {
            let Some((part, segment, first, block)) = previous(conn, self.job, step.last).await? else {
                break;
            };
            step.last = (part, segment, first);
            let entries = manifest::unpack(&block)
                .map_err(|error| db::Error::Other(sqlx::Error::Decode(Box::new(error))))?;
            for entry in entries {
                let Some(reference) = entry.reference else { continue };
                match entry.outcome {
                    Outcome::Imported => {
                        wanted.row();
                        wanted.int(i32::try_from(count).expect("a block is bounded"));
                        wanted.field(reference.as_bytes());
                        wanted.field(&entry.written);
                        count += 1;
                    }
                    Outcome::Updated => step.left.push((reference, "updated".to_owned())),
                    Outcome::Unchanged => step.unchanged += 1,
                    _ => {}
                }
            }
        }
        if step.last == before {
            return Ok(None);
        }
        if count > 0 {
            self.find(conn, wanted).await?;
            self.remove(tx, &mut step).await?;
        }
        Ok(Some(step))
    }

    /// Makes `fate` and `keyed`: what of the wanted records is still as it was written, and the keys of its rows, which
    /// are locked.
    async fn find(&self, conn: &mut PgConnection, wanted: CopyRows) -> Result<(), Error> {
        let queries = &self.queries;
        conn.execute(
            "SET LOCAL idle_in_transaction_session_timeout = 0; SET CONSTRAINTS ALL IMMEDIATE;
            CREATE TEMP TABLE wanted (_record int, reference text, digest bytea) ON COMMIT DROP",
        )
        .await?;
        let mut copy = conn.copy_in_raw("COPY wanted FROM STDIN (FORMAT binary)").await?;
        copy.send(wanted.finish()).await?;
        copy.finish().await?;
        for statement in
            ["ANALYZE wanted", &queries.given, "ANALYZE given", &queries.fate, &queries.staged, &queries.fill]
        {
            run(conn, statement).await?;
        }
        run(conn, &queries.keyed).await.map_err(|error| match error {
            db::Error::Data(_) | db::Error::Other(sqlx::Error::Database(_)) => Error::State(format!(
                "the map cannot be run over what the proof gives back, so rows are not found by their keys: {error}"
            )),
            other => other.into(),
        })?;
        for statement in
            ["ANALYZE keyed", &queries.lock, &queries.again, &queries.unrecognised, &queries.shared]
        {
            run(conn, statement).await?;
        }
        sqlx::query(AssertSqlSafe(queries.older.clone()))
            .persistent(false)
            .bind(&self.begun)
            .execute(&mut *conn)
            .await?;
        for statement in self.queries.referenced(conn).await? {
            run(conn, &statement).await?;
        }
        Ok(())
    }

    /// Removes the rows of the records that `fate` leaves open. What the database refuses ends up alone.
    async fn remove(&self, tx: &mut Tx, step: &mut Step) -> Result<(), Error> {
        let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
        let left: Vec<(String, String)> =
            sqlx::query_as("SELECT reference, why FROM fate WHERE why IS NOT NULL ORDER BY _record")
                .persistent(false)
                .fetch_all(&mut *pg.conn)
                .await?;
        step.left.extend(left);
        let open: Vec<(i32, String)> =
            sqlx::query_as("SELECT _record, reference FROM fate WHERE why IS NULL ORDER BY _record")
                .persistent(false)
                .fetch_all(&mut *pg.conn)
                .await?;
        let (records, references): (Vec<i32>, Vec<String>) = open.into_iter().unzip();
        let mut parts: Vec<_> = std::iter::once(0..records.len()).collect();
        let mut refusals = 0;
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            let refuse = |part: &std::ops::Range<usize>, step: &mut Step| {
                step.left
                    .extend(references[part.clone()].iter().map(|one| (one.clone(), "refused".to_owned())));
            };
            if refusals >= REFUSALS_MAX {
                refuse(&part, step);
                continue;
            }
            tx.savepoint().await?;
            let Conn::Postgres(pg) = tx.conn() else { return Err(Error::NotPostgres) };
            let done = sqlx::query(AssertSqlSafe(self.queries.delete.clone()))
                .persistent(false)
                .bind(&records[part.clone()])
                .execute(&mut *pg.conn)
                .await
                .map_err(db::Error::from);
            match done {
                Ok(done) => {
                    tx.release().await?;
                    step.rows += i64::try_from(done.rows_affected()).unwrap_or(i64::MAX);
                    step.records += i64::try_from(part.len()).unwrap_or(i64::MAX);
                }
                // A trigger that forbids it is an error of its own making.
                Err(error)
                    if error.is_refusal() || matches!(error, db::Error::Other(sqlx::Error::Database(_))) =>
                {
                    tx.undo().await?;
                    if part.len() == 1 {
                        refusals += 1;
                        refuse(&part, step);
                        continue;
                    }
                    let middle = part.start + part.len() / 2;
                    parts.push(part.start..middle);
                    parts.push(middle..part.end);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

async fn run(conn: &mut PgConnection, statement: &str) -> db::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(conn).await?;
    Ok(())
}

type BlockRow = (i32, i32, i32, Vec<u8>);

/// The block before a place.
async fn previous(conn: &mut PgConnection, job: JobId, before: chunks::Key) -> db::Result<Option<BlockRow>> {
    Ok(sqlx::query_as(
        "SELECT part, segment, first_ordinal, block FROM crossdock.manifest_blocks
        WHERE job_id = $1 AND (part, segment, first_ordinal) < ($2, $3, $4)
        ORDER BY part DESC, segment DESC, first_ordinal DESC LIMIT 1",
    )
    .persistent(false)
    .bind(job.0)
    .bind(before.0)
    .bind(before.1)
    .bind(before.2)
    .fetch_optional(conn)
    .await?)
}

/// The statements, made of the declaration's queries.
struct Queries {
    target: String,
    /// `t` and `k` have the same key.
    keys: String,
    given: String,
    fate: String,
    staged: String,
    fill: String,
    keyed: String,
    lock: String,
    again: String,
    unrecognised: String,
    shared: String,
    older: String,
    delete: String,
}

impl Queries {
    fn new(declaration: &Declaration, shape: &Shape) -> Self {
        let (target, proof) = (sql::target_name(declaration), &declaration.proof);
        let key: Vec<String> = declaration.target.key.iter().map(|name| quoted(name)).collect();
        let equal: Vec<String> = key.iter().map(|name| format!("t.{name} = k.{name}")).collect();
        let (keys, key) = (equal.join(" AND "), key.join(", "));
        let of_keyed =
            |rest: &str| format!("{target} t JOIN (SELECT DISTINCT {key} FROM keyed) k ON {keys}{rest}");
        let mut names = vec!["_record".to_owned(), "_reference".to_owned()];
        let mut values = vec!["g._record".to_owned(), "f.reference".to_owned()];
        for (name, kind) in &shape.proved {
            let column = quoted(name);
            if let Some(presence) = declaration.fields.get(name).and_then(|field| field.presence.as_ref()) {
                names.push(quoted(presence));
                values.push(format!("CASE WHEN g.{column} IS NULL THEN 'missing' ELSE 'present' END"));
            }
            values.push(format!("g.{column}::{}", kind.sql()));
            names.push(column);
        }
        Self {
            given: format!(
                "CREATE TEMP TABLE given ON COMMIT DROP AS WITH target AS (SELECT * FROM {target}), proof AS (\n{proof}\n) \
                 SELECT w._record, p.* FROM wanted w JOIN proof p ON p._reference::text = w.reference"
            ),
            fate: format!(
                "CREATE TEMP TABLE fate ON COMMIT DROP AS SELECT w._record, w.reference, w.digest, \
                 CASE WHEN count(g._record) = 0 THEN 'gone' WHEN count(g._record) > 1 THEN 'doubled' \
                 WHEN NOT bool_and({} = w.digest) THEN 'altered' END AS why \
                 FROM wanted w LEFT JOIN given g ON g._record = w._record GROUP BY 1, 2, 3",
                sql::digest(&shape.proved, "g")
            ),
            staged: sql::create_staged(declaration),
            fill: format!(
                "INSERT INTO staged ({}) SELECT {} FROM given g JOIN fate f ON f._record = g._record WHERE f.why IS NULL",
                names.join(", "),
                values.join(", ")
            ),
            keyed: format!(
                "CREATE TEMP TABLE keyed ON COMMIT DROP AS SELECT DISTINCT m._record, {} FROM (\n{}\n) AS m",
                declaration.target.key.iter().map(|name| format!("m.{}", quoted(name))).collect::<Vec<_>>().join(", "),
                declaration.map
            ),
            lock: format!(
                "SELECT count(*) FROM (SELECT 1 FROM {} ORDER BY {} FOR UPDATE OF t) AS locked",
                of_keyed(""),
                declaration.target.key.iter().map(|name| format!("t.{}", quoted(name))).collect::<Vec<_>>().join(", "),
            ),
            again: format!(
                "CREATE TEMP TABLE again ON COMMIT DROP AS WITH target AS (SELECT t.* FROM {}), proof AS (\n{proof}\n) \
                 SELECT p._reference::text AS reference, {} AS digest FROM proof p",
                of_keyed(""),
                sql::digest(&shape.proved, "p")
            ),
            unrecognised: "UPDATE fate f SET why = 'unrecognised' FROM (
                    SELECT f._record FROM fate f LEFT JOIN again a ON a.reference = f.reference WHERE f.why IS NULL
                    GROUP BY f._record, f.digest
                    HAVING count(a.reference) <> 1 OR NOT bool_and(a.digest = f.digest)) u
                WHERE f._record = u._record"
                .to_owned(),
            // A row that two records lead to is neither's.
            shared: format!(
                "UPDATE fate SET why = 'unrecognised' WHERE why IS NULL AND _record IN (
                    SELECT unnest(array_agg(_record)) FROM keyed GROUP BY {key} HAVING count(*) > 1)"
            ),
            // A row that is older than the job is not its own.
            older: format!(
                "UPDATE fate SET why = 'unrecognised' WHERE why IS NULL AND _record IN (
                    SELECT k._record FROM keyed k JOIN {target} t ON {keys}
                    WHERE age(t.xmin) > age($1::text::xid8::xid))"
            ),
            delete: format!("DELETE FROM {target} t USING keyed k WHERE k._record = ANY($1) AND {keys}"),
            target,
            keys,
        }
    }

    /// A statement for each foreign key that leads to the target. Rows of the target that refer to each other without
    /// taking each other along are left to the database, which knows what is removed together.
    async fn referenced(&self, conn: &mut PgConnection) -> db::Result<Vec<String>> {
        let keys: Vec<(String, Vec<String>, Vec<String>)> = sqlx::query_as(
            "SELECT c.conrelid::regclass::text,
                (SELECT array_agg(quote_ident(a.attname) ORDER BY k.n) FROM unnest(c.conkey) WITH ORDINALITY AS k (att, n)
                    JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.att),
                (SELECT array_agg(quote_ident(a.attname) ORDER BY k.n) FROM unnest(c.confkey) WITH ORDINALITY AS k (att, n)
                    JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.att)
            FROM pg_constraint c
            WHERE c.contype = 'f' AND c.confrelid = $1::text::regclass AND c.conparentid = 0
                AND NOT (c.conrelid = c.confrelid AND c.confdeltype IN ('a', 'r'))",
        )
        .persistent(false)
        .bind(&self.target)
        .fetch_all(conn)
        .await?;
        Ok(keys
            .into_iter()
            .map(|(table, theirs, ours)| {
                let refers: Vec<String> =
                    theirs.iter().zip(&ours).map(|(their, our)| format!("r.{their} = t.{our}")).collect();
                format!(
                    "UPDATE fate SET why = 'referenced' WHERE why IS NULL AND _record IN (
                        SELECT k._record FROM keyed k JOIN {} t ON {}
                        WHERE EXISTS (SELECT 1 FROM {table} r WHERE {}))",
                    self.target,
                    self.keys,
                    refers.join(" AND ")
                )
            })
            .collect())
    }
}
