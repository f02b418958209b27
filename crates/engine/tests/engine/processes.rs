//! Several processes on one Postgres: several runners with pools of their own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use db::testing::TestDatabase;
use engine::{Mode, Status};

use crate::support::sink::{Whim, arrived};
use crate::support::source::{Fault, Script, record, record_that};
use crate::support::{Bench, Door, sql};

async fn postgres() -> TestDatabase {
    TestDatabase::open(db::Kind::Postgres, &[&engine::ROOM]).await
}

fn short_lease(limits: &mut engine::Limits) {
    limits.lease = std::time::Duration::from_secs(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_serial_sink_over_two_processes_keeps_the_order() {
    let test = postgres().await;
    let bench = Bench::serial(test.database.clone(), Script::numbered(2000, 10)).await;
    let other = bench.another_process().await;
    let id = bench.job().await;
    let (one, two) = (bench.start(), other.start());
    let job = one.rest_of(id).await;
    one.stop().await;
    two.stop().await;
    assert_eq!(job.counts.imported, 2000, "{:?}", job.reason);
    let out_of_order = "SELECT COUNT(*) FROM (SELECT segment, ordinal,
        LAG(segment * 1000000 + ordinal) OVER (ORDER BY seq) AS before FROM arrived) x
        WHERE before > segment * 1000000 + ordinal";
    assert_eq!(sql::count(&bench.database, out_of_order).await, 0);
    bench.assert_accounted(id).await;
    assert_eq!(bench.source().asked().len(), 200, "one of them fetches");
    other.database.close().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parallel_sink_over_two_processes_settles_each_chunk_once() {
    let test = postgres().await;
    let bench = Bench::parallel(test.database.clone(), Script::numbered(2000, 10)).await;
    let other = bench.another_process().await;
    let id = bench.job().await;
    let (one, two) = (bench.start(), other.start());
    let job = one.rest_of(id).await;
    one.stop().await;
    two.stop().await;
    assert_eq!(job.counts.imported, 2000, "{:?}", job.reason);
    bench.assert_accounted(id).await;
    other.database.close().await;
    test.close().await;
}

// Bisonai/orakl#2503, basicmachines-co/basic-memory#1208
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_of_two_workers_is_run_again_and_the_result_is_right() {
    let test = postgres().await;
    // Two chunks with the same references: the first in one order, the second in the other.
    let raw = |id: usize, copy: usize| {
        bytes::Bytes::from(format!("{{\"id\":\"r{id}\",\"body\":\"b\",\"copy\":{copy}}}"))
    };
    let records = (0..20).map(|place| raw(place % 10, place / 10)).collect();
    // A page is a chunk: both are there at once, because a worker holds the first one open.
    let bench = Bench::parallel(test.database.clone(), Script::of(records, 10)).await;
    let bench = bench.limit(|limits| limits.chunk_records = 10);
    bench.sink().opposite.store(1, Ordering::SeqCst);
    let doors = [Door::default(), Door::default()];
    for door in &doors {
        bench.sink().whim(Whim::HeldInside(door.clone()));
    }
    let id = bench.job_of("a", "lane", Mode::Stream).await;
    let going = bench.start();
    doors[0].reached().await;
    doors[1].reached().await;
    doors.iter().for_each(Door::open_for_good);
    let job = going.rest_of(id).await;
    going.stop().await;
    assert_eq!(job.status, Status::Completed, "{:?}", job.reason);
    assert_eq!((job.counts.imported, job.counts.unchanged), (10, 10));
    assert!(job.retries >= 1, "there was a deadlock");
    assert!(bench.sink().attempts.load(Ordering::SeqCst) >= 3, "one of the two ran again");
    bench.assert_accounted(id).await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fetcher_that_was_taken_over_doubles_nothing() {
    let test = postgres().await;
    let door = Door::default();
    let script = Script::numbered(100, 10).once(4, Fault::Held(door.clone()));
    let bench =
        Bench::serial(test.database.clone(), script).await.limit(|limits| limits.pages_per_segment = 50);
    let id = bench.job().await;
    let one = bench.start();
    door.reached().await;
    let before = sql::count(&bench.database, "SELECT epoch FROM crossdock.partitions").await;
    // The first process is frozen: its lease runs out without a heartbeat, and another one takes over.
    let other = bench.another_process().await;
    let frozen = "UPDATE crossdock.partitions SET lease_until = clock_timestamp() - INTERVAL '1 second'";
    sql::execute(&bench.database, frozen).await;
    let two = other.start();
    two.fetched(1).await;
    door.open();
    let job = two.rest_of(id).await;
    one.stop().await;
    two.stop().await;
    let after = sql::count(&bench.database, "SELECT epoch FROM crossdock.partitions").await;
    assert!(after > before);
    assert_eq!((job.fetched, job.counts.imported), (100, 100));
    // Page 4 by both; and the next one, beside the commit that is refused.
    assert!(bench.source().asked().len() <= 12, "{:?}", bench.source().asked());
    bench.assert_accounted(id).await;
    other.database.close().await;
    test.close().await;
}

// rails/solid_queue#778: only the heartbeat is cut off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fetcher_whose_heartbeat_fails_stops_itself() {
    let test = postgres().await;
    let door = Door::default();
    let script = Script::numbered(100, 10).once(4, Fault::Held(door.clone()));
    let bench = Bench::serial(test.database.clone(), script).await.limit(short_lease);
    let id = bench.job().await;
    let going = bench.start();
    door.reached().await;
    let mut block = bench.database.begin().await.unwrap();
    let db::Conn::Postgres(pg) = block.conn() else { unreachable!() };
    pg.query("SELECT 1 FROM crossdock.partitions FOR UPDATE").execute(&mut *pg.conn).await.unwrap();
    // The page at the door is given up and asked for again by the next fetcher, once the row can be had.
    crate::support::within("the fetcher gives up", async {
        while door.waiting() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    block.rollback().await.unwrap();
    let job = going.rest_of(id).await;
    going.stop().await;
    assert_eq!(job.counts.imported, 100);
    assert_eq!(bench.source().asked().len(), 11);
    bench.assert_accounted(id).await;
    test.close().await;
}

// graphile/worker#169, OpenFn/lightning#4708
#[test]
fn a_killed_worker_is_followed_by_another_and_its_attempt_is_counted() {
    let test_runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    test_runtime.block_on(async {
        let test = postgres().await;
        let bench = Bench::serial(test.database.clone(), Script::numbered(100, 10)).await.limit(short_lease);
        let door = Door::default();
        bench.sink().whim(Whim::HeldInside(door.clone()));
        let id = bench.job().await;
        let victim =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let process = bench.clone();
        victim.spawn(async move {
            let process = process.another_process().await;
            process.runner().run(tokio_util::sync::CancellationToken::new()).await;
        });
        door.reached().await;
        victim.shutdown_background();
        let job = bench.rest(id).await;
        assert_eq!((job.status, job.counts.imported), (Status::Completed, 100), "{:?}", job.reason);
        assert_eq!(arrived(&bench.database).await.len(), 100);
        let attempts = "SELECT attempts FROM crossdock.chunks WHERE segment = 0 AND first_ordinal = 0";
        assert_eq!(sql::count(&bench.database, attempts).await, 2);
        bench.assert_accounted(id).await;
        test.close().await;
    });
}

// The pause of one process must not wait for the chunk of another, and the job ends in one state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_reaches_every_process() {
    let test = postgres().await;
    let door = Door::default();
    let script = Script::numbered(300, 10).once(20, Fault::Held(door.clone()));
    let bench = Bench::parallel(test.database.clone(), script).await;
    let other = bench.another_process().await;
    let id = bench.job().await;
    let (one, two) = (bench.start(), other.start());
    door.reached().await;
    assert!(bench.store.move_job(id, Status::Paused, None, None).await.unwrap());
    one.moved(id, Status::Paused).await;
    two.moved(id, Status::Paused).await;
    bench.resume(id).await;
    door.open_for_good();
    let job = one.rest_of(id).await;
    one.stop().await;
    two.stop().await;
    assert_eq!(job.counts.imported, 300, "{:?}", job.reason);
    bench.assert_accounted(id).await;
    other.database.close().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_check_first_and_write_once() {
    let test = postgres().await;
    for round in 0..5 {
        sql::execute(&test.database, "DROP TABLE IF EXISTS arrived").await;
        sql::execute(&test.database, "DELETE FROM crossdock.jobs").await;
        let bench = Bench::serial(test.database.clone(), Script::numbered(300, 10)).await;
        let other = bench.another_process().await;
        let id = bench.job_of("a", "lane", Mode::CheckFirst).await;
        let (one, two) = (bench.start(), other.start());
        let job = one.rest_of(id).await;
        one.stop().await;
        two.stop().await;
        assert_eq!(job.status, Status::Completed, "round {round}: {:?}", job.reason);
        assert_eq!(job.counts.imported, 300);
        bench.assert_accounted(id).await;
        other.database.close().await;
    }
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_undo_together_and_nothing_is_left() {
    let test = postgres().await;
    for _ in 0..3 {
        sql::execute(&test.database, "DROP TABLE IF EXISTS arrived").await;
        sql::execute(&test.database, "DELETE FROM crossdock.jobs").await;
        let mut records: Vec<_> = (0..400).map(record).collect();
        records[300] = record_that(300, "abort");
        let bench = Bench::parallel(test.database.clone(), Script::of(records, 10)).await;
        let other = bench.another_process().await;
        let id = bench.job().await;
        let (one, two) = (bench.start(), other.start());
        let job = one.rest_of(id).await;
        assert_eq!(job.status, Status::Failed);
        crate::support::within("the undoing ends", async {
            while sql::count(&bench.database, "SELECT COUNT(*) FROM crossdock.jobs WHERE undoing").await > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        one.stop().await;
        two.stop().await;
        assert!(arrived(&bench.database).await.is_empty());
        other.database.close().await;
    }
    test.close().await;
}

// riverqueue/river#1302, rails/solid_queue#589: finishing and taking over at once end in one state. Many small jobs,
// three processes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_processes_complete_many_small_jobs() {
    let test = postgres().await;
    let bench = Bench::parallel(test.database.clone(), Script::numbered(1, 1)).await;
    let (second, third) = (bench.another_process().await, bench.another_process().await);
    let mut ids = Vec::new();
    for job in 0..30 {
        let params = format!("s{job}");
        let records = (job * 100..job * 100 + 50).map(record).collect();
        bench.kind.sources.lock().insert(params.clone(), Arc::new(Script::of(records, 10)));
        ids.push(bench.job_of(&params, &format!("lane {}", job % 5), Mode::Stream).await);
    }
    let processes = [bench.start(), second.start(), third.start()];
    for id in &ids {
        let job = processes[0].rest_of(*id).await;
        assert_eq!((job.status, job.counts.imported), (Status::Completed, 50), "{:?}", job.reason);
    }
    for process in processes {
        process.stop().await;
    }
    for id in ids {
        bench.assert_accounted(id).await;
    }
    second.database.close().await;
    third.database.close().await;
    test.close().await;
}
