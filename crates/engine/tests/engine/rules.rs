//! The rules that bound a job while it runs: rejects and rate.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use engine::{Mode, RejectLimit, RejectRule, Status};

use crate::support::sink::arrived;
use crate::support::source::{Script, record, record_that};
use crate::support::{Bench, sql};

/// `bad` of every ten records are refused.
fn some_bad(count: usize, bad: usize) -> Script {
    let records = (0..count).map(|id| if id % 10 < bad { record_that(id, "reject") } else { record(id) });
    Script::of(records.collect::<Vec<_>>(), 10)
}

fn share(percent: &str, judged_after: i64) -> RejectRule {
    RejectRule { limit: percent.parse().unwrap(), judged_after, ..RejectRule::default() }
}

db::on_both!(a_job_with_too_many_rejects_stops_early_and_says_why, [&engine::ROOM], |database| async move {
    let bench = Bench::parallel(database, some_bad(4_000, 10)).await;
    let bench = bench.limit(|limits| limits.rejects = share("5%", 100));
    let id = bench.job().await;
    let job = bench.rest(id).await;
    assert_eq!(job.status, Status::Failed);
    let reason = job.reason.unwrap();
    assert!(reason.contains("the limit on rejects is 5%") && reason.contains("bad_record ("), "{reason}");
    assert!(reason.contains("(100.0 %)"), "{reason}");
    assert!((100..4_000).contains(&job.counts.failed), "it stops early: {:?}", job.counts);

    // The same limit stops it again at once; a higher one lets it end.
    bench.resume(id).await;
    assert_eq!(bench.rest(id).await.status, Status::Failed);
    let bench = bench.limit(|limits| limits.rejects.limit = RejectLimit::Off);
    bench.resume(id).await;
    assert_eq!(bench.rest(id).await.counts.failed, 4_000);
    bench.assert_accounted(id).await;
});

db::on_both!(a_job_with_few_rejects_goes_on, [&engine::ROOM], |database| async move {
    let bench = Bench::parallel(database, some_bad(400, 1)).await;
    let bench = bench.limit(|limits| limits.rejects = share("10%", 100));
    let job = bench.run().await;
    assert_eq!((job.status, job.counts.failed), (Status::Completed, 40), "{:?}", job.reason);
    bench.assert_accounted(job.id).await;
});

db::on_both!(a_share_is_not_judged_before_there_are_enough_records, [&engine::ROOM], |database| async move {
    let bench = Bench::parallel(database, some_bad(100, 10)).await;
    let bench = bench.limit(|limits| limits.rejects = share("5%", 101));
    let job = bench.run().await;
    assert_eq!((job.status, job.counts.failed), (Status::Completed, 100), "{:?}", job.reason);
});

// Nothing fails any more once there are enough records to judge by.
db::on_both!(
    early_failures_are_judged_once_there_are_enough_records,
    [&engine::ROOM],
    |database| async move {
        let records = (0..3_000).map(|id| if id < 100 { record_that(id, "reject") } else { record(id) });
        let bench = Bench::parallel(database, Script::of(records.collect::<Vec<_>>(), 10)).await;
        let bench = bench.limit(|limits| limits.rejects = share("3%", 200));
        let job = bench.run().await;
        assert_eq!(job.status, Status::Failed);
        assert!(job.counts.records() < 3_000, "it stops early: {:?}", job.counts);
    }
);

// The last look was before the last records failed, and the next one would come too late.
db::on_both!(a_job_is_judged_before_it_completes, [&engine::ROOM], |database| async move {
    let bench = Bench::parallel(database, some_bad(30, 10)).await;
    let bench = bench.limit(|limits| {
        limits.poll = Duration::from_secs(5);
        limits.rejects.limit = RejectLimit::Count(29);
    });
    let id = bench.job().await;
    let going = bench.start();
    going.moved(id, Status::Failed).await;
    going.stop().await;
    let job = bench.job_row(id).await;
    assert_eq!((job.status, job.counts.failed), (Status::Failed, 30));
    assert!(job.reason.unwrap().starts_with("30 of 30 records failed"));
});

db::on_both!(what_was_forgiven_does_not_stop_a_job, [&engine::ROOM], |database| async move {
    let bench = Bench::parallel(database, some_bad(100, 10)).await;
    let bench = bench.limit(|limits| {
        limits.rejects =
            RejectRule { limit: RejectLimit::Count(20), forgiven: (80, 80), ..RejectRule::default() };
    });
    let job = bench.run().await;
    assert_eq!((job.status, job.counts.failed), (Status::Completed, 100), "{:?}", job.reason);
});

db::on_both!(a_dry_run_obeys_the_rule_as_well, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, some_bad(400, 5)).await;
    let bench = bench.limit(|limits| limits.rejects = share("5%", 100));
    let id = bench.job_of("a", "lane", Mode::DryRun).await;
    let job = bench.rest(id).await;
    assert_eq!(job.status, Status::Failed, "{:?}", job.reason);
    assert!(job.reason.unwrap().contains("bad_record"));
    assert!(arrived(&bench.database).await.is_empty());
});

db::on_both!(no_more_rows_are_written_in_a_second_than_allowed, [&engine::ROOM], |database| async move {
    let bench = Bench::parallel(database, Script::numbered(100, 10)).await;
    let bench = bench.limit(|limits| limits.rows_per_second = NonZeroU32::new(100));
    let began = Instant::now();
    let job = bench.run().await;
    assert_eq!(job.counts.imported, 100);
    // All but the chunks that began last, one for each worker, are paid for.
    assert!(began.elapsed() >= Duration::from_millis(600), "{:?}", began.elapsed());
    bench.assert_accounted(job.id).await;
});

db::on_both!(
    a_process_that_waits_for_its_rate_holds_nothing_and_can_be_stopped,
    [&engine::ROOM],
    |database| async move {
        let bench = Bench::parallel(database, Script::numbered(200, 10)).await;
        let bench = bench.limit(|limits| limits.rows_per_second = NonZeroU32::new(1));
        let id = bench.job().await;
        let going = bench.start();
        going.settled(1).await;
        // Another process writes meanwhile, at its own rate: nothing is locked.
        let other = bench.another_process().await.limit(|limits| limits.rows_per_second = None);
        if bench.database.kind() == db::Kind::Postgres {
            let helping = other.start();
            helping.moved(id, Status::Completed).await;
            helping.stop().await;
        }
        let began = Instant::now();
        going.stop().await;
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        if bench.database.kind() == db::Kind::Sqlite {
            let counted = "SELECT COUNT(*) FROM crossdock.chunks WHERE status = 'ready' AND attempts > 0";
            assert_eq!(sql::count(&bench.database, counted).await, 0, "what was picked is given back");
        }
    }
);
