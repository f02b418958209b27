//! A small bank: its tables, a migration into them, and a runner.

use std::sync::Arc;
use std::time::Duration;

use crossdock_ledger::{Folder, LedgerKind, Ledgers, Variables};
use db::testing::TestDatabase;
use db::{Conn, Database};
use engine::metrics::Metrics;
use engine::store::history::{self, Note};
use engine::{Job, JobId, Limits, Mode, Runner, Status, Store};
use sqlx::AssertSqlSafe;
use tokio_util::sync::CancellationToken;

pub(crate) const SCHEMA: &str = "
    CREATE SCHEMA bank;
    CREATE TABLE bank.accounts (id BIGINT PRIMARY KEY, wallet_id TEXT NOT NULL UNIQUE, currency TEXT NOT NULL);
    CREATE TABLE bank.transactions (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        reference TEXT NOT NULL UNIQUE,
        external_no TEXT UNIQUE,
        account_id BIGINT NOT NULL REFERENCES bank.accounts,
        kind TEXT NOT NULL CHECK (kind IN ('credit', 'debit')),
        amount NUMERIC(20,4) NOT NULL,
        memo TEXT,
        metadata JSONB NOT NULL DEFAULT '{}',
        booked_at TIMESTAMPTZ NOT NULL,
        migrated_at TIMESTAMPTZ NOT NULL DEFAULT now());
    INSERT INTO bank.accounts VALUES (1, 'w1', 'NGN'), (2, 'w2', 'USD');
";

pub(crate) const PIPELINE: &str = r#"
name = "wallet-logs"

[source]
file = "${FILE}"

[record]
id = "id"
reference = "WL-{id}"

[fields.id]
pointer = "/id"
type = "bigint"

[fields.wallet]
pointer = "/wallet"
type = "text"

[fields.kind]
pointer = "/type"
type = "text"
values = ["credit", "debit", "fee"]

[fields.amount]
pointer = "/amount"
type = "numeric(20,4)"

[fields.memo]
pointer = "/memo"
type = "text"
nullable = true
optional = true
presence = "memo_is"

[fields.metadata]
pointer = "/metadata"
type = "json"
default = {}

[fields.external_no]
pointer = "/metadata/no"
type = "text"
optional = true

[fields.at]
pointer = "/at"
type = "timestamptz"

[target]
table = "bank.transactions"
key = ["reference"]

[certificate]
sums = [{ field = "amount", by = ["kind"] }]
"#;

pub(crate) const MAP: &str =
    "SELECT s._record, s._reference AS reference, s.external_no, a.id AS account_id, s.kind, s.amount,
    s.memo, s.metadata, s.at AS booked_at,
    CASE WHEN a.id IS NULL THEN 'unknown_wallet: ' || s.wallet END AS _reject,
    CASE WHEN s.kind = 'fee' THEN 'fees: booked elsewhere' END AS _filter
FROM staged s LEFT JOIN bank.accounts a ON a.wallet_id = s.wallet;
";

pub(crate) const PROOF: &str = "-- From rows back to what came.
SELECT t.reference AS _reference, substr(t.reference, 4)::bigint AS id, a.wallet_id AS wallet, t.kind, t.amount, t.memo,
    t.metadata, t.booked_at AS at
FROM target t JOIN bank.accounts a ON a.id = t.account_id
";

/// The folder of that migration.
pub(crate) fn folder() -> Folder {
    Folder::of([("pipeline.toml", PIPELINE), ("map.sql", MAP), ("proof.sql", PROOF)])
}

/// A bank in a database of its own, and a runner over it.
pub(crate) struct Bank {
    test: TestDatabase,
    pub(crate) ledgers: Ledgers,
    runner: Runner,
    stop: CancellationToken,
    files: tempfile::TempDir,
}

impl Bank {
    pub(crate) async fn open() -> Self {
        let bank = Self::empty().await;
        bank.execute(SCHEMA).await;
        bank
    }

    /// Without tables of its own.
    pub(crate) async fn empty() -> Self {
        Self::over(TestDatabase::open(db::Kind::Postgres, &[&engine::ROOM, &crossdock_ledger::ROOM]).await)
    }

    /// Over a migrated database, without tables of its own.
    pub(crate) fn over(test: TestDatabase) -> Self {
        let database = test.database.clone();
        let stop = CancellationToken::new();
        let runner = work_on(&database, &stop);
        Self { ledgers: Ledgers::new(database), test, runner, stop, files: tempfile::tempdir().unwrap() }
    }

    /// A further process at work until the bank is closed; its connections are its own.
    pub(crate) fn join(&self, database: &Database) {
        work_on(database, &self.stop);
    }

    pub(crate) fn database(&self) -> &Database {
        &self.test.database
    }

    pub(crate) fn files(&self) -> &std::path::Path {
        self.files.path()
    }

    /// Fills a table from COPY text.
    pub(crate) async fn copy(&self, table: &str, text: Vec<u8>) {
        let mut tx = self.database().begin().await.unwrap();
        let Conn::Postgres(pg) = tx.conn() else { unreachable!() };
        let mut copy = pg.conn.copy_in_raw(&format!("COPY {table} FROM STDIN")).await.unwrap();
        copy.send(text).await.unwrap();
        copy.finish().await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Asks a resting job to go on, and waits for its next rest.
    pub(crate) async fn resume(&self, id: JobId) -> Job {
        assert!(Store::new(self.database().clone()).move_job(id, Status::Queued, None, None).await.unwrap());
        self.runner.nudge();
        self.rest(id).await
    }

    pub(crate) async fn execute(&self, text: &str) {
        let mut tx = self.database().begin().await.unwrap();
        let Conn::Postgres(pg) = tx.conn() else { unreachable!() };
        sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(&mut *pg.conn).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Rows of one text each.
    pub(crate) async fn texts(&self, query: &str) -> Vec<String> {
        let mut reader = self.database().read().await.unwrap();
        let Conn::Postgres(pg) = reader.conn() else { unreachable!() };
        let query = AssertSqlSafe(query.to_owned());
        sqlx::query_scalar(query).persistent(false).fetch_all(&mut *pg.conn).await.unwrap()
    }

    /// A file of these lines.
    pub(crate) fn file(&self, lines: &[impl AsRef<[u8]>]) -> String {
        let path = self.files.path().join(format!("{}.ndjson", db::Id::new()));
        let lines: Vec<&[u8]> = lines.iter().map(AsRef::as_ref).collect();
        std::fs::write(&path, lines.join(&b'\n')).unwrap();
        path.display().to_string()
    }

    /// Runs a job over a file of these lines to its rest.
    pub(crate) async fn run(&self, folder: Folder, lines: &[impl AsRef<[u8]>]) -> Job {
        let file = self.file(lines);
        self.run_file(folder, &file).await
    }

    pub(crate) async fn run_file(&self, folder: Folder, file: &str) -> Job {
        let variables = Variables::of([("FILE", file)]);
        let id = self.ledgers.start(folder, variables, Mode::Stream).await.unwrap();
        self.runner.nudge();
        self.rest(id).await
    }

    pub(crate) async fn rest(&self, id: JobId) -> Job {
        self.rest_within(id, Duration::from_secs(60)).await
    }

    /// For jobs of a size of their own.
    pub(crate) async fn rest_within(&self, id: JobId, longest: Duration) -> Job {
        let resting = tokio::time::timeout(longest, self.runner.rest_of(id));
        let job = resting.await.expect("the job comes to a rest").unwrap().expect("it is there");
        if job.status == Status::Completed {
            assert_eq!(job.fetched, job.counts.records(), "conservation");
        }
        job
    }

    /// Reference, outcome and reason of what did not simply arrive.
    pub(crate) async fn notes(&self, id: JobId) -> Vec<(String, String, String)> {
        let mut reader = self.database().read().await.unwrap();
        let notes: Vec<Note> = history::notes(reader.conn(), id, 1_000).await.unwrap();
        notes.into_iter().map(|note| (note.label.unwrap_or_default(), note.code, note.detail)).collect()
    }

    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.test.close().await;
    }
}

/// A runner at work until `stop`.
fn work_on(database: &Database, stop: &CancellationToken) -> Runner {
    let limits = Limits { poll: Duration::from_millis(10), ..Limits::default() };
    let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
    let clock = crate::export::hurried();
    let around = Arc::new(move |builder: upstream::Builder| builder.clock(clock.clone()));
    let kind = Arc::new(LedgerKind::new(database.clone()).around(around));
    let runner = Runner::new(Store::new(database.clone()), vec![kind], limits, metrics);
    tokio::spawn({
        let (runner, stop) = (runner.clone(), stop.clone());
        async move { runner.run(stop).await }
    });
    runner
}

/// A record of the bank's source.
pub(crate) fn record(id: i64, wallet: &str, kind: &str, amount: &str) -> String {
    format!(
        r#"{{"id":{id},"wallet":"{wallet}","type":"{kind}","amount":{amount},"memo":null,"at":"2024-03-31T02:30:00+01:00"}}"#
    )
}
