//! Fetching runs ahead of processing, but not far.

use engine::Status;

use crate::support::sink::Whim;
use crate::support::source::{Fault, Script};
use crate::support::{Bench, Door, sql};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn staged_segments_ahead_of_processing_are_bounded() {
    let test = db::testing::TestDatabase::open(db::Kind::Postgres, &[&engine::ROOM]).await;
    let bench = Bench::serial(test.database.clone(), Script::numbered(400, 10)).await.limit(|limits| {
        limits.pages_per_segment = 2;
        limits.segments_ahead = 3;
    });
    let door = Door::default();
    bench.sink().whim(Whim::Held(door.clone()));
    let id = bench.job().await;
    let going = bench.start();
    door.reached().await;
    going.fetched(6).await;
    // Three segments of two pages are staged, and nothing more is asked for while the worker stands.
    let held = Door::default();
    bench.source().add_once(0, 6, Fault::Held(held.clone()));
    let staged =
        sql::count(&bench.database, "SELECT COUNT(*) FROM crossdock.segments WHERE status <> 'cleaned'");
    assert_eq!(staged.await, 3);
    assert_eq!(bench.source().asked(), [0, 1, 2, 3, 4, 5]);
    door.open();
    held.reached().await;
    let staged =
        sql::count(&bench.database, "SELECT COUNT(*) FROM crossdock.segments WHERE status <> 'cleaned'");
    assert!(staged.await < 3, "it goes on when there is room");
    held.open();
    let job = going.rest_of(id).await;
    assert_eq!(job.status, Status::Completed);
    going.stop().await;
    bench.assert_accounted(id).await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn staged_bytes_ahead_of_processing_are_bounded() {
    let test = db::testing::TestDatabase::open(db::Kind::Postgres, &[&engine::ROOM]).await;
    let bench = Bench::serial(test.database.clone(), Script::numbered(400, 10)).await.limit(|limits| {
        limits.pages_per_segment = 1;
        limits.segments_ahead = 100;
        limits.staged_bytes = 1000;
    });
    let door = Door::default();
    bench.sink().whim(Whim::Held(door.clone()));
    let id = bench.job().await;
    let going = bench.start();
    door.reached().await;
    going.fetched(3).await;
    assert_eq!(bench.source().asked(), [0, 1, 2], "three pages of some 400 bytes");
    door.open();
    going.rest_of(id).await;
    going.stop().await;
    bench.assert_accounted(id).await;
    test.close().await;
}

// Page n+1 is on its way while chunk n is being processed.
db::on_both!(the_next_page_is_fetched_while_a_chunk_is_processed, [&engine::ROOM], |database| async move {
    let (page, chunk) = (Door::default(), Door::default());
    let script = Script::numbered(40, 10).once(2, Fault::Held(page.clone()));
    let bench = Bench::serial(database, script).await;
    bench.sink().whim(Whim::Held(chunk.clone()));
    let id = bench.job().await;
    let going = bench.start();
    chunk.reached().await;
    // On SQLite the held chunk is the writer: the fetcher waits to commit page 1 while page 2 is asked for.
    page.reached().await;
    chunk.open();
    page.open();
    going.rest_of(id).await;
    going.stop().await;
    bench.assert_accounted(id).await;
});

// Open segments do not wait to be full: what is staged is processed while the source is slow.
db::on_both!(what_is_staged_is_processed_while_the_source_is_slow, [&engine::ROOM], |database| async move {
    let door = Door::default();
    let script = Script::numbered(40, 10).once(2, Fault::Held(door.clone()));
    let bench = Bench::serial(database, script).await.limit(|limits| limits.chunk_records = 1000);
    let id = bench.job().await;
    let going = bench.start();
    door.reached().await;
    going.settled(1).await;
    door.open();
    going.rest_of(id).await;
    going.stop().await;
    bench.assert_accounted(id).await;
});
