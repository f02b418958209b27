//! Every record has exactly one outcome, and a job whose numbers do not add up does not complete.

use engine::{Counts, Status};

use crate::support::sink::{Whim, arrived};
use crate::support::source::{Fault, Script, record, record_that};
use crate::support::{Bench, Door, sql};

db::on_both!(a_job_arrives_whole, [&engine::ROOM], |database| async move {
    for size in [1, 7, 20, 100] {
        sql::execute(&database, "DROP TABLE IF EXISTS arrived").await;
        let bench = Bench::serial(database.clone(), Script::numbered(203, size)).await;
        let job = bench.run().await;
        assert_eq!(
            job.counts,
            Counts { imported: 203, targets: 203, ..Counts::default() },
            "pages of {size}"
        );
        assert_eq!(job.outcome(), Some("clean"));
        assert_eq!(job.pages, 203usize.div_ceil(size) as i64);
        assert_eq!(job.expected, Some(203));
        let wanted: Vec<usize> = (0..203usize.div_ceil(size)).collect();
        assert_eq!(bench.source().asked(), wanted, "each page is asked for once");
        assert_eq!(arrived(&bench.database).await.len(), 203);
        bench.assert_accounted(job.id).await;
        sql::execute(&bench.database, "DELETE FROM crossdock.jobs").await;
    }
});

// The bound on a chunk's records holds for a source with large pages too.
db::on_both!(a_page_larger_than_a_chunk_becomes_several, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(250, 110)).await;
    let job = bench.run().await;
    bench.assert_accounted(job.id).await;
    let largest = sql::count(&bench.database, "SELECT MAX(records) FROM crossdock.chunks").await;
    assert_eq!(largest, 30, "110 records are five chunks of 22, the last 30 one");
});

db::on_both!(a_source_without_records_completes, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::pages(vec![vec![]])).await;
    let job = bench.run().await;
    assert_eq!((job.fetched, job.pages), (0, 1));
    bench.assert_accounted(job.id).await;
});

db::on_both!(a_source_without_partitions_completes, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::partitions(vec![], 1)).await;
    let job = bench.run().await;
    assert_eq!(job.fetched, 0);
    bench.assert_accounted(job.id).await;
});

// dagster-io/dagster#21393, airbytehq/airbyte#19990, nightscout/nocturne#1378: what was left out must show.
db::on_both!(
    each_outcome_is_counted_and_a_job_with_failures_is_partial,
    [&engine::ROOM],
    |database| async move {
        let mut records: Vec<_> = (0..100).map(record).collect();
        for (id, does) in
            [(3, "reject"), (4, "filter"), (5, "skip"), (50, "mute"), (51, "reject"), (52, "filter")]
        {
            records[id] = record_that(id, does);
        }
        records[60] = record(1);
        records[61] = bytes::Bytes::from_static(b"{\"body\":\"no id\"}");
        records[62] = bytes::Bytes::from_static(b"\xff\xfe not JSON");
        let bench = Bench::serial(database, Script::of(records, 10)).await;
        let job = bench.run().await;
        let wanted = Counts {
            imported: 91,
            filtered: 2,
            skipped: 1,
            failed: 5,
            unchanged: 1,
            targets: job.counts.targets,
            ..Counts::default()
        };
        assert_eq!(job.counts, wanted, "a duplicate in another segment is the sink's to see");
        assert_eq!(job.outcome(), Some("partial"));
        bench.assert_accounted(job.id).await;
        let codes =
            sql::texts(&bench.database, "SELECT code FROM crossdock.quarantine ORDER BY ordinal, segment")
                .await;
        for code in ["bad_record", "unexplained", "missing_id", "unreadable"] {
            assert!(codes.iter().any(|found| found == code), "{code} in {codes:?}");
        }
        let raw =
            sql::count(&bench.database, "SELECT COUNT(*) FROM crossdock.quarantine WHERE LENGTH(raw) > 0")
                .await;
        assert_eq!(raw, 5, "failed records are kept whole");
        let filtered = "SELECT COUNT(*) FROM crossdock.notes WHERE code = 'rule_7' AND outcome = 'filtered'";
        assert_eq!(sql::count(&bench.database, filtered).await, 2);
    }
);

// ponder-sh/ponder#1918, actualbudget/actual#4280: the same record twice in a page, and once more in another chunk.
db::on_both!(
    byte_equal_records_of_a_segment_are_duplicates_in_the_source,
    [&engine::ROOM],
    |database| async move {
        let mut records: Vec<_> = (0..40).map(record).collect();
        records[1] = record(0);
        records[2] = record(0);
        records[39] = record(0);
        let bench =
            Bench::serial(database, Script::of(records, 10)).await.limit(|limits| limits.chunk_records = 10);
        let job = bench.run().await;
        assert_eq!((job.counts.imported, job.counts.duplicate_in_source), (37, 3));
        let seen: usize = bench.sink().calls.lock().iter().map(Vec::len).sum();
        assert_eq!(seen, 37, "sinks never see them");
        bench.assert_accounted(job.id).await;
    }
);

// A duplicate is found after a resume too, because the fingerprints come back from staging.
db::on_both!(a_duplicate_is_found_across_a_resume, [&engine::ROOM], |database| async move {
    let mut records: Vec<_> = (0..40).map(record).collect();
    records[35] = record(0);
    let script = Script::of(records, 10).once(3, Fault::Unavailable);
    let bench = Bench::serial(database, script).await;
    let job = bench.run().await;
    assert_eq!(job.status, Status::Failed);
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    assert_eq!(job.counts.duplicate_in_source, 1);
    bench.assert_accounted(job.id).await;
});

db::on_both!(a_second_job_over_the_same_source_changes_nothing, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(50, 10)).await;
    bench.run().await;
    let before = arrived(&bench.database).await;
    let job = bench.run().await;
    assert_eq!(
        job.counts.unchanged, 50,
        "MaterializeInc/materialize#14211: state lives in the target database"
    );
    assert_eq!(arrived(&bench.database).await, before);
});

/// Holds the job before its last chunk, spoils a row, and lets it go on.
async fn spoiled(bench: &Bench, statement: &str) -> engine::Job {
    let door = Door::default();
    bench.sink().whim(Whim::Held(door.clone()));
    let id = bench.job().await;
    let going = bench.start();
    door.reached().await;
    going.fetched(2).await;
    // SQLite has one writer, which the held sink is.
    if bench.database.kind() == db::Kind::Postgres {
        sql::execute(&bench.database, statement).await;
        door.open();
        let job = going.rest_of(id).await;
        going.stop().await;
        return job;
    }
    door.open();
    unreachable!("SQLite is spoiled while the job rests");
}

db::on_both!(
    numbers_that_do_not_add_up_fail_the_job_and_it_says_so,
    [&engine::ROOM],
    |database| async move {
        for statement in [
            "UPDATE crossdock.partitions SET records = records + 1",
            "UPDATE crossdock.segments SET records = records - 1",
            "DELETE FROM crossdock.chunks WHERE first_ordinal = 0",
        ] {
            sql::execute(&database, "DROP TABLE IF EXISTS arrived").await;
            sql::execute(&database, "DELETE FROM crossdock.jobs").await;
            let script = Script::numbered(40, 10).once(3, Fault::Unavailable);
            let bench = Bench::serial(database.clone(), script).await;
            let job = bench.run().await;
            assert_eq!(job.status, Status::Failed);
            sql::execute(&bench.database, statement).await;
            bench.resume(job.id).await;
            let job = bench.rest(job.id).await;
            assert_eq!(job.status, Status::Failed, "after {statement}");
            let reason = job.reason.unwrap();
            assert!(reason.contains("do not add up"), "{reason}");
        }
    }
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_spoiled_while_the_job_runs_are_seen() {
    let test = db::testing::TestDatabase::open(db::Kind::Postgres, &[&engine::ROOM]).await;
    let bench = Bench::serial(test.database.clone(), Script::numbered(20, 10)).await;
    let job = spoiled(&bench, "UPDATE crossdock.partitions SET records = records - 1").await;
    assert_eq!(job.status, Status::Failed);
    assert!(job.reason.unwrap().contains("do not add up"));
    test.close().await;
}

// The schema itself refuses a settled chunk whose outcomes are not its records.
db::on_both!(a_settled_chunk_cannot_lose_an_outcome, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(20, 10)).await;
    bench.run().await;
    let mut tx = bench.database.begin().await.unwrap();
    let refused = match tx.conn() {
        db::Conn::Sqlite(conn) => {
            sqlx::raw_sql("UPDATE chunks SET imported = imported - 1").execute(conn).await.map(drop)
        }
        db::Conn::Postgres(pg) => sqlx::raw_sql("UPDATE crossdock.chunks SET imported = imported - 1")
            .execute(pg.conn)
            .await
            .map(drop),
    };
    assert!(db::Error::from(refused.unwrap_err()).is_refusal());
});

// A panic is an error of the job, never its end (dagster-io/dagster#21393).
db::on_both!(a_loop_that_breaks_fails_the_job, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(40, 10).once(2, Fault::Panic)).await;
    let job = bench.run().await;
    assert_eq!(job.status, Status::Failed);
    assert!(job.reason.as_deref().unwrap().contains("broke"), "{:?}", job.reason);
    bench.sink().whim(Whim::Panic);
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    assert_eq!(job.status, Status::Failed);
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    assert_eq!(job.counts.imported, 40);
    bench.assert_accounted(job.id).await;
});
