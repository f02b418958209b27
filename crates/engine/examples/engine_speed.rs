//! How fast the engine is on its own: a source that makes its pages in memory, and a sink that writes each chunk with
//! one statement.
//!
//! ```text
//! scripts/pg run cargo run --release -p crossdock-engine --example engine_speed -- [RECORDS [PAGE [BYTES]]]
//! ```
//!
//! Prints, for each database, records a second for a sink that writes nothing and for one that writes a row a record.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use crossdock_engine::metrics::Metrics;
use crossdock_engine::store::jobs;
use crossdock_engine::{
    ChunkContext, Cursor, Job, JobId, Kind, Limits, Mode, NewJob, Outcome, Page, PartitionSpec, Position,
    Prepared, Profile, ROOM, Runner, Sink, SinkError, Source, SourceError, StagedRecord, Status, Store,
    Written,
};
use db::testing::TestDatabase;
use db::{Conn, Tx};
use tokio_util::sync::CancellationToken;

#[derive(Clone, Copy)]
struct Shape {
    records: usize,
    page: usize,
    bytes: usize,
}

/// Makes its pages when asked.
struct Maker {
    profile: Profile,
    shape: Shape,
}

#[async_trait]
impl Source for Maker {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    async fn partitions(&self) -> Result<Vec<PartitionSpec>, SourceError> {
        Ok(vec![PartitionSpec { key: "all".into(), expected: None, left_out: None, closing: false }])
    }

    async fn page(&self, _partition: &PartitionSpec, at: &Position) -> Result<Page, SourceError> {
        let first = match at {
            Position::At(cursor) => cursor.as_str().parse().unwrap(),
            _ => 0,
        };
        let last = (first + self.shape.page).min(self.shape.records);
        let records = (first..last)
            .map(|id| {
                let mut text = format!("{{\"id\":\"{id:012}\",\"memo\":\"");
                while text.len() < self.shape.bytes - 2 {
                    text.push('x');
                }
                text += "\"}";
                Bytes::from(text)
            })
            .collect();
        let next = if last == self.shape.records {
            Position::End
        } else {
            Position::At(Cursor::new(last.to_string()).unwrap())
        };
        Ok(Page { records, next, total: None, retries: 0 })
    }
}

/// Writes a row a record, or nothing.
struct Writer {
    writes: bool,
    parallel: bool,
}

#[async_trait]
impl Sink for Writer {
    fn parallel(&self) -> bool {
        self.parallel
    }

    async fn write(
        &self,
        tx: &mut Tx,
        _chunk: &ChunkContext,
        records: &[StagedRecord],
        _prepared: Prepared,
    ) -> Result<Vec<Written>, SinkError> {
        let ids: Vec<&str> =
            records.iter().map(|record| std::str::from_utf8(&record.raw[7..19]).unwrap()).collect();
        if self.writes {
            write(tx, &ids).await?;
        }
        Ok(ids
            .into_iter()
            .map(|id| Written {
                source_id: Some(id.to_owned()),
                label: None,
                reference: Some(id.to_owned()),
                outcome: Outcome::Imported,
                reason: None,
                digest: [1; 16],
                targets: 1,
            })
            .collect())
    }
}

async fn write(tx: &mut Tx, ids: &[&str]) -> Result<(), db::Error> {
    match tx.conn() {
        Conn::Sqlite(conn) => {
            let rows = serde_json::to_string(ids).unwrap();
            sqlx::query("INSERT INTO arrived SELECT value, value FROM json_each(?1)")
                .bind(rows)
                .execute(conn)
                .await?;
        }
        Conn::Postgres(pg) => {
            pg.query("INSERT INTO arrived SELECT id, id FROM unnest($1::TEXT[]) AS id")
                .bind(ids)
                .execute(&mut *pg.conn)
                .await?;
        }
    }
    Ok(())
}

struct Bench {
    shape: Shape,
    writes: bool,
    parallel: bool,
}

#[async_trait]
impl Kind for Bench {
    fn name(&self) -> &'static str {
        "speed"
    }

    async fn source(&self, _job: &Job) -> Result<Option<Arc<dyn Source>>, SourceError> {
        let profile = Profile {
            name: "maker",
            parallel_partitions: 1,
            stalled_is_end: false,
            prefetch: true,
            stateful_cursor: false,
        };
        Ok(Some(Arc::new(Maker { profile, shape: self.shape })))
    }

    async fn sink(&self, _job: &Job) -> Result<Arc<dyn Sink>, SinkError> {
        Ok(Arc::new(Writer { writes: self.writes, parallel: self.parallel }))
    }
}

async fn measure(kind: db::Kind, bench: Bench) {
    let (shape, writes, parallel) = (bench.shape, bench.writes, bench.parallel);
    let test = TestDatabase::open(kind, &[&ROOM]).await;
    let mut tx = test.database.begin().await.unwrap();
    let table = "CREATE TABLE arrived (reference TEXT PRIMARY KEY, body TEXT NOT NULL)";
    match tx.conn() {
        Conn::Sqlite(conn) => drop(sqlx::raw_sql(table).execute(conn).await.unwrap()),
        Conn::Postgres(pg) => drop(sqlx::raw_sql(table).execute(pg.conn).await.unwrap()),
    }
    let id = JobId(db::Id::new());
    let new = NewJob {
        kind: "speed".into(),
        lane: "lane".into(),
        mode: Mode::Stream,
        params: "{}".into(),
        request_id: None,
    };
    jobs::insert(tx.conn(), id, &new).await.unwrap();
    tx.commit().await.unwrap();
    let limits = Limits { run_records: i64::MAX, ..Limits::default() };
    let runner =
        Runner::new(Store::new(test.database.clone()), vec![Arc::new(bench)], limits, Metrics::default());
    let stop = CancellationToken::new();
    let began = Instant::now();
    let task = tokio::spawn({
        let (runner, stop) = (runner.clone(), stop.clone());
        async move { runner.run(stop).await }
    });
    let job = runner.rest_of(id).await.unwrap().unwrap();
    let took = began.elapsed();
    assert_eq!(job.status, Status::Completed, "{:?}", job.reason);
    assert_eq!(job.counts.imported as usize, shape.records);
    stop.cancel();
    task.await.unwrap();
    println!(
        "{kind:?} {} {}: {} records of {} bytes, pages of {}, in {:.2} s: {:.0} records/s",
        if parallel { "parallel" } else { "serial" },
        if writes { "rows" } else { "nothing written" },
        shape.records,
        shape.bytes,
        shape.page,
        took.as_secs_f64(),
        shape.records as f64 / took.as_secs_f64()
    );
    test.close().await;
}

#[tokio::main]
async fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>().unwrap());
    let shape = Shape {
        records: numbers.next().unwrap_or(200_000),
        page: numbers.next().unwrap_or(100),
        bytes: numbers.next().unwrap_or(400),
    };
    for kind in [db::Kind::Sqlite, db::Kind::Postgres] {
        for (parallel, writes) in [(false, false), (false, true), (true, true)] {
            measure(kind, Bench { shape, writes, parallel }).await;
        }
    }
}
