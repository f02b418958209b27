//! One bad record costs one record.

use std::sync::atomic::Ordering;

use engine::{Counts, Status};

use crate::support::sink::Whim;
use crate::support::source::{Script, record, record_that, record_with_other};
use crate::support::{Bench, sql};

async fn order_is_kept(bench: &Bench) {
    let sorted = "SELECT COUNT(*) FROM (SELECT part, segment, ordinal,
        LAG(segment * 1000000 + ordinal) OVER (ORDER BY seq) AS before FROM arrived) x
        WHERE before > segment * 1000000 + ordinal";
    assert_eq!(sql::count(&bench.database, sorted).await, 0, "rows out of order");
}

// garrytan/gbrain#2031, redpanda-data/connect#2346: the 500th of 1,000 is refused.
db::on_both!(the_500th_of_1000_is_refused_and_999_arrive, [&engine::ROOM], |database| async move {
    for (does, code) in [("reject", "bad_record"), ("refuse", "refused_here")] {
        sql::execute(&database, "DROP TABLE IF EXISTS arrived").await;
        sql::execute(&database, "DELETE FROM crossdock.jobs").await;
        let mut records: Vec<_> = (0..1000).map(record).collect();
        records[499] = record_that(499, does);
        let bench = Bench::serial(database.clone(), Script::of(records, 100)).await.limit(|limits| {
            limits.chunk_records = 1000;
            limits.pages_per_segment = 50;
        });
        let job = bench.run().await;
        assert_eq!(job.counts, Counts { imported: 999, failed: 1, targets: 999, ..Counts::default() });
        bench.assert_accounted(job.id).await;
        order_is_kept(&bench).await;
        let found =
            sql::texts(&bench.database, "SELECT code FROM crossdock.quarantine WHERE ordinal = 499").await;
        assert_eq!(found, [code]);
    }
});

// brianc/node-postgres has the limit of parameters; here it is the constraint's own words that are kept.
db::on_both!(what_the_database_refuses_stands_alone_in_quarantine, [&engine::ROOM], |database| async move {
    let mut records: Vec<_> = (0..60).map(record).collect();
    records[7] = record_with_other(7, "same");
    records[8] = record_with_other(8, "same");
    records[30] = bytes::Bytes::from_static(b"{\"id\":\"r30\",\"body\":\"forbidden\"}");
    let bench = Bench::serial(database, Script::of(records, 10)).await;
    let job = bench.run().await;
    assert_eq!((job.counts.imported, job.counts.failed), (58, 2));
    bench.assert_accounted(job.id).await;
    order_is_kept(&bench).await;
    let codes =
        sql::texts(&bench.database, "SELECT code FROM crossdock.quarantine ORDER BY segment, ordinal").await;
    assert_eq!(codes, ["unique_violation", "refused_by_database"]);
    let kept = "SELECT COUNT(*) FROM arrived WHERE other = 'same' AND source_id = 'r000007'";
    assert_eq!(sql::count(&bench.database, kept).await, 1, "the first one is untouched (github/gh-ost#1636)");
    let detail =
        sql::texts(&bench.database, "SELECT detail FROM crossdock.quarantine WHERE ordinal = 8").await;
    assert!(detail[0].contains("other"), "names the constraint: {detail:?}");
});

db::on_both!(
    a_chunk_of_nothing_but_bad_records_is_quarantined_whole,
    [&engine::ROOM],
    |database| async move {
        let records = (0..40).map(|id| record_that(id, "refuse")).collect();
        let bench = Bench::serial(database, Script::of(records, 10)).await;
        let job = bench.run().await;
        assert_eq!(job.counts.failed, 40);
        assert_eq!(job.outcome(), Some("partial"));
        bench.assert_accounted(job.id).await;
    }
);

db::on_both!(a_passing_trouble_is_tried_again, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(20, 10)).await;
    for _ in 0..3 {
        bench.sink().whim(Whim::Retry);
    }
    let job = bench.run().await;
    assert_eq!(job.counts.imported, 20);
    assert!(job.retries >= 3, "{} retries", job.retries);
    bench.assert_accounted(job.id).await;
});

db::on_both!(
    a_trouble_that_does_not_pass_fails_the_job_and_costs_no_record,
    [&engine::ROOM],
    |database| async move {
        let bench = Bench::serial(database, Script::numbered(20, 10))
            .await
            .limit(|limits| limits.chunk_retries_max = 2);
        for _ in 0..3 {
            bench.sink().whim(Whim::Retry);
        }
        let job = bench.run().await;
        assert_eq!(job.status, Status::Failed);
        assert!(job.reason.unwrap().contains("did not go through"));
        let attempts = sql::count(&bench.database, "SELECT MAX(attempts) FROM crossdock.chunks").await;
        assert_eq!(attempts, 0, "the chunk is not suspected of anything");
        bench.resume(job.id).await;
        bench.rest(job.id).await;
        bench.assert_accounted(job.id).await;
    }
);

db::on_both!(what_nothing_will_cure_fails_the_job, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(20, 10)).await;
    bench.sink().whim(Whim::Fatal);
    let job = bench.run().await;
    assert_eq!((job.status, job.reason.as_deref()), (Status::Failed, Some("the target is gone")));
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    bench.assert_accounted(job.id).await;
});

// A worker that dies in a chunk leaves its attempt behind.
db::on_both!(
    a_chunk_begun_too_often_is_halved_until_the_killer_stands_alone,
    [&engine::ROOM],
    |database| async move {
        let mut records: Vec<_> = (0..40).map(record).collect();
        records[13] = record_that(13, "panic");
        let bench = Bench::serial(database, Script::of(records, 20)).await;
        let id = bench.job().await;
        let mut deaths = 0;
        let job = loop {
            let job = bench.rest(id).await;
            if job.status != Status::Failed {
                break job;
            }
            deaths += 1;
            assert!(deaths < 60, "the killer is never cornered");
            bench.resume(id).await;
        };
        assert_eq!((job.counts.imported, job.counts.failed), (39, 1));
        bench.assert_accounted(id).await;
        let found = "SELECT code FROM crossdock.quarantine WHERE ordinal = 13";
        assert_eq!(sql::texts(&bench.database, found).await, ["kills_worker"]);
        assert!(deaths > bench.limits.attempts_max, "{deaths} deaths");
        order_is_kept(&bench).await;
    }
);

db::on_both!(an_attempt_is_counted_before_the_chunk_is_begun, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::of(vec![record_that(0, "panic")], 1)).await;
    let id = bench.job().await;
    for wanted in 1..=3 {
        bench.rest(id).await;
        let attempts = sql::count(&bench.database, "SELECT MAX(attempts) FROM crossdock.chunks").await;
        assert_eq!(attempts, wanted);
        bench.resume(id).await;
    }
    assert_eq!(bench.sink().attempts.load(Ordering::SeqCst), 3);
});

db::on_both!(a_graceful_stop_counts_no_attempt, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(20, 10)).await;
    bench.sink().whim(Whim::Fatal);
    let job = bench.run().await;
    assert_eq!(job.status, Status::Failed);
    assert_eq!(sql::count(&bench.database, "SELECT MAX(attempts) FROM crossdock.chunks").await, 0);
});
