//! A job that is stopped and killed at random and resumed until it is done equals one that was left alone.

use std::time::Duration;

use db::testing::TestDatabase;
use engine::{Counts, Status};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_util::sync::CancellationToken;

use crate::support::sink::{TestSink, Whim, arrived};
use crate::support::source::{Fault, Script, record, record_that, record_with_other};
use crate::support::{Bench, sql, within};

/// The same seed gives the same source.
fn script(seed: u64) -> Script {
    let mut chance = StdRng::seed_from_u64(seed);
    let records = (0..400)
        .map(|id| match chance.random_range(0..40) {
            0 => record_that(id, "reject"),
            1 => record_that(id, "refuse"),
            2 => record_that(id, "filter"),
            3 => record(id / 2),
            4 => record_with_other(id, "taken"),
            _ => record(id),
        })
        .collect();
    Script::of(records, chance.random_range(3..25))
}

/// Runs the job in a runtime of its own and, after some commits, ends it: gracefully, or as `kill -9` does.
async fn a_stretch(bench: &Bench, chance: &mut StdRng) {
    let after = chance.random_range(1..25);
    let kill = chance.random_bool(0.6);
    if chance.random_bool(0.2) {
        bench.sink().whim(Whim::Retry);
    }
    if chance.random_bool(0.2) {
        let page = chance.random_range(0..20);
        bench.source().add_once(
            0,
            page,
            if chance.random_bool(0.5) { Fault::Unavailable } else { Fault::Expired },
        );
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let stop = CancellationToken::new();
    let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
    let process = bench.clone();
    let ended = runtime.spawn({
        let stop = stop.clone();
        async move {
            let process = process.another_process().await;
            let runner = process.runner();
            let mut events = runner.events();
            tokio::spawn(async move {
                while let Ok(event) = events.recv().await {
                    if send.send(event).is_err() {
                        return;
                    }
                }
            });
            runner.run(stop).await;
            process.database.close().await;
        }
    });
    let mut seen = 0;
    while seen < after {
        match tokio::time::timeout(Duration::from_secs(20), receive.recv()).await {
            Ok(Some(engine::runner::Event::Moved { to, .. })) if to != Status::Running => break,
            Ok(Some(_)) => seen += 1,
            Ok(None) | Err(_) => break,
        }
    }
    if kill {
        runtime.shutdown_background();
    } else {
        stop.cancel();
        within("the runner stops", ended).await.unwrap();
        runtime.shutdown_background();
    }
}

async fn resumed(kind: db::Kind, seed: u64, parallel: bool) -> (Vec<String>, Counts, usize, usize) {
    let test = TestDatabase::open(kind, &[&engine::ROOM]).await;
    let sink = if parallel { TestSink::parallel() } else { TestSink::serial() };
    let bench = Bench::with(test.database.clone(), script(seed), sink).await;
    // What a killed process held is free soon.
    let bench = bench.limit(|limits| limits.lease = Duration::from_secs(1));
    let mut chance = StdRng::seed_from_u64(seed.wrapping_mul(31));
    let id = bench.job().await;
    let mut stretches = 0;
    loop {
        stretches += 1;
        assert!(stretches < 200, "seed {seed}: no end");
        a_stretch(&bench, &mut chance).await;
        match bench.job_row(id).await.status {
            Status::Completed => break,
            Status::Failed => bench.resume(id).await,
            _ => {}
        }
        if stretches == 12 {
            bench.source().heal();
            let job = bench.rest(id).await;
            assert_eq!(job.status, Status::Completed, "seed {seed}: {:?}", job.reason);
            break;
        }
    }
    bench.assert_accounted(id).await;
    let innocent =
        sql::count(&bench.database, "SELECT COUNT(*) FROM crossdock.quarantine WHERE code = 'kills_worker'");
    assert_eq!(innocent.await, 0, "seed {seed}");
    let found = (
        arrived(&bench.database).await,
        bench.job_row(id).await.counts,
        stretches,
        bench.source().asked().len(),
    );
    test.close().await;
    found
}

async fn uninterrupted(kind: db::Kind, seed: u64) -> (Vec<String>, Counts) {
    let test = TestDatabase::open(kind, &[&engine::ROOM]).await;
    let bench = Bench::serial(test.database.clone(), script(seed)).await;
    let job = bench.run().await;
    bench.assert_accounted(job.id).await;
    let found = (arrived(&bench.database).await, job.counts);
    test.close().await;
    found
}

async fn resume_equals_uninterrupted(kind: db::Kind, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let (wanted, counts) = uninterrupted(kind, seed).await;
        let (found, resumed_counts, stretches, _) = resumed(kind, seed, false).await;
        assert_eq!(found, wanted, "seed {seed}, after {stretches} stretches");
        assert_eq!(resumed_counts, counts, "seed {seed}, after {stretches} stretches");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_a_resumed_job_equals_one_that_was_left_alone() {
    resume_equals_uninterrupted(db::Kind::Sqlite, 0..6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_resumed_job_equals_one_that_was_left_alone() {
    resume_equals_uninterrupted(db::Kind::Postgres, 100..106).await;
}

// Chunks of a parallel sink run in any order, so which of two records of one unique value wins is not told; the
// numbers are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parallel_job_resumed_loses_and_doubles_nothing() {
    for seed in 200..203 {
        let (wanted, counts) = uninterrupted(db::Kind::Postgres, seed).await;
        let (found, resumed_counts, ..) = resumed(db::Kind::Postgres, seed, true).await;
        assert_eq!(found.len(), wanted.len(), "seed {seed}");
        assert_eq!(resumed_counts.records(), counts.records(), "seed {seed}");
        assert_eq!(resumed_counts.failed, counts.failed, "seed {seed}");
    }
}
