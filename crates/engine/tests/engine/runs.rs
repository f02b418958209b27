//! A run ends in a checkpoint, and the next begins there by itself.

use std::time::Duration;

use engine::Status;

use crate::support::source::{Fault, Script};
use crate::support::{Bench, sql};

db::on_both!(a_run_ends_at_the_last_page_not_above_its_records, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(3500, 150)).await.limit(|limits| {
        limits.run_records = 1000;
        limits.chunk_records = 100;
    });
    let job = bench.run().await;
    assert_eq!(job.counts.imported, 3500);
    bench.assert_accounted(job.id).await;
    // Six pages of 150 are 900 records; a seventh would be above 1,000.
    let runs = sql::texts(
        &bench.database,
        "SELECT run || ':' || SUM(records) FROM crossdock.segments GROUP BY run ORDER BY run",
    )
    .await;
    assert_eq!(runs, ["1:900", "2:900", "3:900", "4:800"]);
    assert_eq!(bench.runs(), (vec![1, 2, 3, 4], vec![1, 2, 3, 4]));
    assert_eq!(job.run, 4);
    assert_eq!(bench.source().asked().len(), 24, "each page once");
});

db::on_both!(a_page_larger_than_a_run_is_a_run, [&engine::ROOM], |database| async move {
    let bench =
        Bench::serial(database, Script::numbered(100, 50)).await.limit(|limits| limits.run_records = 10);
    let job = bench.run().await;
    assert_eq!((job.counts.imported, job.run), (100, 2));
    bench.assert_accounted(job.id).await;
});

db::on_both!(a_run_ends_when_its_time_is_over, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(50, 10)).await;
    let bench = bench.limit(|limits| limits.run_budget = Duration::ZERO);
    let job = bench.run().await;
    assert_eq!((job.counts.imported, job.run), (50, 5), "a page each");
    bench.assert_accounted(job.id).await;
});

db::on_both!(a_resume_is_a_run_of_its_own, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(50, 10).once(2, Fault::Unavailable)).await;
    let job = bench.run().await;
    assert_eq!((job.status, job.run), (Status::Failed, 1));
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    assert_eq!(job.run, 2);
    assert_eq!(bench.runs(), (vec![1, 2], vec![1, 2]));
    bench.assert_accounted(job.id).await;
});

db::on_both!(
    runs_of_partitions_fetched_side_by_side_have_numbers_of_their_own,
    [&engine::ROOM],
    |database| async move {
        let part = |first: usize| {
            (0..10).map(|page| vec![crate::support::source::record(first + page)]).collect::<Vec<_>>()
        };
        let script = Script::partitions(vec![part(0), part(100)], 2);
        let bench = Bench::parallel(database, script).await.limit(|limits| limits.run_records = 3);
        let job = bench.run().await;
        assert_eq!(job.counts.imported, 20);
        let (mut started, _) = bench.runs();
        let all = started.len();
        started.sort_unstable();
        started.dedup();
        assert_eq!((started.len(), all), (8, 8), "{started:?}");
        bench.assert_accounted(job.id).await;
    }
);
