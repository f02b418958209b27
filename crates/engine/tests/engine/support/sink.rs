//! A sink into a table of its own, told what to do by the records and by the test.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use db::{Conn, Database, Reader, Tx};
use engine::{
    Checker, ChunkContext, JobId, Outcome, Prepared, Reason, Sink, SinkError, StagedRecord, Written,
};
use parking_lot::Mutex;
use serde_json::Value;

use super::{Door, sql};

/// `arrived` has two unique keys and a check, so that the database itself can refuse. `seq` tells the order of writing.
pub(crate) async fn create_table(database: &Database) {
    let seq = match database.kind() {
        db::Kind::Sqlite => "seq INTEGER PRIMARY KEY AUTOINCREMENT",
        db::Kind::Postgres => "seq BIGSERIAL PRIMARY KEY",
    };
    sql::execute(
        database,
        &format!(
            "CREATE TABLE arrived ({seq}, reference TEXT NOT NULL UNIQUE, source_id TEXT NOT NULL,
            body TEXT NOT NULL CHECK (body <> 'forbidden'), other TEXT UNIQUE, job_id BIGINT NOT NULL,
            part INTEGER NOT NULL, segment INTEGER NOT NULL, ordinal INTEGER NOT NULL)"
        ),
    )
    .await;
}

/// The whole target in order of reference, without what depends on the run.
pub(crate) async fn arrived(database: &Database) -> Vec<String> {
    sql::texts(
        database,
        "SELECT reference || ' ' || source_id || ' ' || body || ' ' || COALESCE(other, '-') FROM arrived
        ORDER BY reference",
    )
    .await
}

/// What happens to the next chunks, one for each.
#[derive(Clone)]
pub(crate) enum Whim {
    /// Waits at the door before writing.
    Held(Door),
    /// Waits at the door after writing its first record.
    HeldInside(Door),
    Retry,
    Fatal,
    Panic,
}

pub(crate) struct TestSink {
    parallel: bool,
    whims: Mutex<VecDeque<Whim>>,
    /// Records of every call, in order; and which of them wrote backwards.
    pub(crate) calls: Mutex<Vec<Vec<i32>>>,
    pub(crate) undone: AtomicUsize,
    pub(crate) undo_fails: AtomicUsize,
    /// Chunks whose first ordinal is odd in tens write their rows in reverse order: how deadlocks are made.
    pub(crate) opposite: AtomicUsize,
    pub(crate) attempts: AtomicUsize,
}

impl TestSink {
    pub(crate) fn serial() -> Self {
        Self::new(false)
    }

    pub(crate) fn parallel() -> Self {
        Self::new(true)
    }

    fn new(parallel: bool) -> Self {
        Self {
            parallel,
            whims: Mutex::default(),
            calls: Mutex::default(),
            undone: AtomicUsize::new(0),
            undo_fails: AtomicUsize::new(0),
            opposite: AtomicUsize::new(0),
            attempts: AtomicUsize::new(0),
        }
    }

    pub(crate) fn whim(&self, whim: Whim) {
        self.whims.lock().push_back(whim);
    }
}

/// A record as the test wrote it.
struct Parsed {
    id: String,
    body: String,
    other: Option<String>,
    does: String,
    place: (i32, i32, i32),
}

fn parse(record: &StagedRecord) -> Result<Parsed, Reason> {
    let value: Value =
        serde_json::from_slice(&record.raw).map_err(|error| Reason::new("unreadable", format!("{error}")))?;
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    Ok(Parsed {
        id: text("id").ok_or_else(|| Reason::new("missing_id", "no id"))?,
        body: text("body").unwrap_or_default(),
        other: text("other"),
        does: text("do").unwrap_or_default(),
        place: (record.place.partition, record.place.segment, record.place.ordinal),
    })
}

fn written(parsed: &Parsed, outcome: Outcome, reason: Option<Reason>) -> Written {
    Written {
        source_id: Some(parsed.id.clone()),
        label: Some(parsed.id.clone()),
        reference: Some(format!("ref-{}", parsed.id)),
        outcome,
        reason,
        digest: [7; 16],
        targets: 1,
    }
}

/// What a record says about itself; `None`: it is to be written.
fn judged(record: &StagedRecord) -> (Option<Parsed>, Option<Written>) {
    let parsed = match parse(record) {
        Ok(parsed) => parsed,
        Err(reason) => return (None, Some(Written::failed(None, None, reason))),
    };
    let verdict = match parsed.does.as_str() {
        "reject" => {
            Some(Written::failed(Some(parsed.id.clone()), None, Reason::new("bad_record", "it says so\0")))
        }
        "mute" => Some(Written { reason: None, ..written(&parsed, Outcome::Failed, None) }),
        "filter" => Some(written(&parsed, Outcome::Filtered, Some(Reason::new("rule_7", "left out")))),
        "skip" => Some(written(&parsed, Outcome::Skipped, Some(Reason::new("taken", "left alone")))),
        _ => None,
    };
    (Some(parsed), verdict)
}

#[async_trait]
impl Sink for TestSink {
    fn parallel(&self) -> bool {
        self.parallel
    }

    async fn write(
        &self,
        tx: &mut Tx,
        chunk: &ChunkContext,
        records: &[StagedRecord],
        _prepared: Prepared,
    ) -> Result<Vec<Written>, SinkError> {
        self.calls.lock().push(records.iter().map(|record| record.place.ordinal).collect());
        self.attempts.fetch_add(1, Ordering::SeqCst);
        let whim = self.whims.lock().pop_front();
        match &whim {
            Some(Whim::Held(door)) => door.pass().await,
            Some(Whim::Retry) => return Err(SinkError::Retry("somebody took the key".into())),
            Some(Whim::Fatal) => return Err(SinkError::Fatal("the target is gone".into())),
            Some(Whim::Panic) => panic!("the sink broke"),
            Some(Whim::HeldInside(_)) | None => {}
        }
        let judged: Vec<_> = records.iter().map(judged).collect();
        for (parsed, _) in &judged {
            match parsed.as_ref().map(|parsed| parsed.does.as_str()) {
                Some("refuse") => return Err(SinkError::Refused(Reason::new("refused_here", "as asked"))),
                Some("abort") => return Err(SinkError::Abort("slug r1 is taken".into())),
                Some("panic") => panic!("this record kills its worker"),
                Some("hang") => std::future::pending::<()>().await,
                _ => {}
            }
        }
        let mut order: Vec<usize> = (0..records.len()).collect();
        if self.opposite.load(Ordering::SeqCst) > 0 && (records[0].place.ordinal / 10) % 2 == 1 {
            order.reverse();
        }
        let mut answers: Vec<Option<Written>> = judged.iter().map(|(_, verdict)| verdict.clone()).collect();
        let mut first = true;
        for index in order {
            if answers[index].is_some() {
                continue;
            }
            let parsed = judged[index].0.as_ref().expect("what cannot be parsed was judged");
            answers[index] = Some(insert(tx, chunk.job, parsed).await?);
            if let (true, Some(Whim::HeldInside(door))) = (first, &whim) {
                door.pass().await;
            }
            first = false;
        }
        Ok(answers.into_iter().map(|answer| answer.expect("every record was answered for")).collect())
    }

    fn checker(&self) -> Option<Box<dyn Checker>> {
        Some(Box::new(TestChecker { seen: Vec::new(), collides: None }))
    }

    async fn undo(&self, tx: &mut Tx, job: JobId, limit: i64) -> Result<i64, SinkError> {
        if self.undo_fails.load(Ordering::SeqCst) > 0 {
            return Err(SinkError::Fatal("the target cannot be reached".into()));
        }
        let limit = limit.min(7);
        let gone = match tx.conn() {
            Conn::Sqlite(conn) => sqlx::query(
                "DELETE FROM arrived WHERE seq IN (SELECT seq FROM arrived WHERE job_id = ?1 LIMIT ?2)",
            )
            .bind(job.0)
            .bind(limit)
            .execute(conn)
            .await
            .map_err(db::Error::from)?
            .rows_affected(),
            Conn::Postgres(pg) => pg
                .query(
                    "DELETE FROM arrived WHERE seq IN (SELECT seq FROM arrived WHERE job_id = $1 LIMIT $2)",
                )
                .bind(job.0)
                .bind(limit)
                .execute(&mut *pg.conn)
                .await
                .map_err(db::Error::from)?
                .rows_affected(),
        };
        self.undone.fetch_add(gone as usize, Ordering::SeqCst);
        Ok(gone as i64)
    }
}

async fn insert(tx: &mut Tx, job: JobId, parsed: &Parsed) -> Result<Written, SinkError> {
    let reference = format!("ref-{}", parsed.id);
    let done = match tx.conn() {
        Conn::Sqlite(conn) => sqlx::query(
            "INSERT INTO arrived (reference, source_id, body, other, job_id, part, segment, ordinal)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (reference) DO NOTHING",
        )
        .bind(&reference)
        .bind(&parsed.id)
        .bind(&parsed.body)
        .bind(&parsed.other)
        .bind(job.0)
        .bind(parsed.place.0)
        .bind(parsed.place.1)
        .bind(parsed.place.2)
        .execute(conn)
        .await
        .map_err(db::Error::from)?
        .rows_affected(),
        Conn::Postgres(pg) => pg
            .query(
                "INSERT INTO arrived (reference, source_id, body, other, job_id, part, segment, ordinal)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (reference) DO NOTHING",
            )
            .bind(&reference)
            .bind(&parsed.id)
            .bind(&parsed.body)
            .bind(&parsed.other)
            .bind(job.0)
            .bind(parsed.place.0)
            .bind(parsed.place.1)
            .bind(parsed.place.2)
            .execute(&mut *pg.conn)
            .await
            .map_err(db::Error::from)?
            .rows_affected(),
    };
    let outcome = if done == 1 { Outcome::Imported } else { Outcome::Unchanged };
    Ok(written(parsed, outcome, None))
}

/// Foretells imports; a record that says `collide` makes the verdict an error.
struct TestChecker {
    seen: Vec<String>,
    collides: Option<String>,
}

#[async_trait]
impl Checker for TestChecker {
    async fn check(
        &mut self,
        reader: &mut Reader,
        _chunk: &ChunkContext,
        records: &[StagedRecord],
    ) -> Result<Vec<Written>, SinkError> {
        let mut foretold = Vec::with_capacity(records.len());
        for record in records {
            let (parsed, verdict) = judged(record);
            if let Some(verdict) = verdict {
                foretold.push(verdict);
                continue;
            }
            let parsed = parsed.expect("what cannot be parsed was judged");
            let known = exists(reader, &parsed.id).await? || self.seen.contains(&parsed.id);
            if known || parsed.does == "collide" {
                self.collides.get_or_insert(parsed.id.clone());
            }
            self.seen.push(parsed.id.clone());
            foretold.push(written(&parsed, if known { Outcome::Unchanged } else { Outcome::Imported }, None));
        }
        Ok(foretold)
    }

    fn verdict(&self) -> Result<(), String> {
        match &self.collides {
            Some(id) => Err(format!("{id} collides")),
            None => Ok(()),
        }
    }
}

async fn exists(reader: &mut Reader, id: &str) -> Result<bool, SinkError> {
    let found: i64 = match reader.conn() {
        Conn::Sqlite(conn) => sqlx::query_scalar("SELECT COUNT(*) FROM arrived WHERE source_id = ?1")
            .bind(id)
            .fetch_one(conn)
            .await
            .map_err(db::Error::from)?,
        Conn::Postgres(pg) => pg
            .scalar("SELECT COUNT(*) FROM arrived WHERE source_id = $1")
            .bind(id)
            .fetch_one(&mut *pg.conn)
            .await
            .map_err(db::Error::from)?,
    };
    Ok(found > 0)
}
