//! Where a page says the next one begins: the end is a value, everything odd is an error.

use engine::{Job, Status};

use crate::support::sink::arrived;
use crate::support::source::{Fault, Next, Script, record};
use crate::support::{Bench, sql};

async fn fails(database: &db::Database, script: Script, words: &str) -> (Bench, Job) {
    sql::execute(database, "DROP TABLE IF EXISTS arrived").await;
    sql::execute(database, "DELETE FROM crossdock.jobs").await;
    let bench = Bench::serial(database.clone(), script).await;
    let job = bench.run().await;
    assert_eq!(job.status, Status::Failed, "{words}");
    let reason = job.reason.clone().unwrap();
    assert!(reason.contains(words), "'{words}' in '{reason}'");
    (bench, job)
}

// apache/seatunnel#10929, modelcontextprotocol/typescript-sdk#2735
db::on_both!(a_cursor_that_stands_still_is_an_error, [&engine::ROOM], |database| async move {
    let script = Script::numbered(40, 10).next(2, Next::To(2));
    let (bench, job) = fails(&database, script, "leads to itself").await;
    assert_eq!(job.fetched, 20, "the page that does not move is not taken");
    assert_eq!(arrived(&bench.database).await.len(), 20, "what came before is processed");
});

db::on_both!(a_ring_of_cursors_is_an_error, [&engine::ROOM], |database| async move {
    // Within a segment (4 pages), over segments, and back to the first page.
    for (from, to) in [(3, 1), (7, 2), (2, 0), (9, 0), (9, 8)] {
        let script = Script::numbered(100, 10).next(from, Next::To(to));
        let (bench, _) = fails(&database, script, if from == to { "itself" } else { "ring" }).await;
        let asked = bench.source().asked().len();
        assert!(asked < 60, "{from} -> {to}: {asked} pages were asked for");
    }
});

db::on_both!(a_ring_is_found_after_a_resume_too, [&engine::ROOM], |database| async move {
    let script = Script::numbered(100, 10).next(3, Next::To(1)).once(3, Fault::Unavailable);
    let (bench, job) = fails(&database, script, "does not answer").await;
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    assert_eq!(job.status, Status::Failed);
    assert!(job.reason.unwrap().contains("ring"));
    assert_eq!(bench.source().asked(), [0, 1, 2, 3, 3]);
});

// mvanhorn/cli-printing-press#3617
db::on_both!(an_empty_page_with_a_cursor_is_not_the_end, [&engine::ROOM], |database| async move {
    let pages = vec![vec![record(0)], vec![], vec![], (1..6).map(record).collect()];
    let bench = Bench::serial(database, Script::pages(pages)).await;
    let job = bench.run().await;
    assert_eq!((job.counts.imported, job.pages), (6, 4));
    bench.assert_accounted(job.id).await;
});

db::on_both!(segments_of_nothing_but_empty_pages_are_cleaned, [&engine::ROOM], |database| async move {
    let mut pages = vec![vec![]; 30];
    pages.push(vec![record(0)]);
    let bench = Bench::serial(database, Script::pages(pages)).await;
    let job = bench.run().await;
    assert_eq!(job.counts.imported, 1);
    bench.assert_accounted(job.id).await;
});

// MCPJam/inspector#4462
db::on_both!(the_empty_string_is_a_cursor, [&engine::ROOM], |database| async move {
    let script = Script::numbered(40, 10).next(1, Next::Named("", 2));
    let bench = Bench::serial(database, script).await;
    let job = bench.run().await;
    assert_eq!(job.counts.imported, 40);
    bench.assert_accounted(job.id).await;
});

db::on_both!(
    a_stalled_empty_page_is_the_end_only_where_the_profile_says_so,
    [&engine::ROOM],
    |database| async move {
        let stalled = |end| {
            let mut pages: Vec<Vec<_>> = vec![(0..10).map(record).collect(), vec![], vec![]];
            pages.truncate(2);
            Script::pages(pages).next(1, Next::To(1)).profile_with(|profile| profile.stalled_is_end = end)
        };
        fails(&database, stalled(false), "leads to itself").await;
        sql::execute(&database, "DROP TABLE IF EXISTS arrived").await;
        let bench = Bench::serial(database.clone(), stalled(true)).await;
        let job = bench.run().await;
        bench.assert_accounted(job.id).await;
        // With records on it, it is an error all the same.
        let script = Script::numbered(20, 10)
            .next(1, Next::To(1))
            .profile_with(|profile| profile.stalled_is_end = true);
        fails(&database, script, "leads to itself").await;
    }
);

// dlt-hub/dlt#2834, meltano/sdk#1165, airbytehq/airbyte#15427: equal keys at a cut are no concern of a cursor.
db::on_both!(records_of_equal_time_at_a_cut_arrive_once, [&engine::ROOM], |database| async move {
    let script = Script::numbered(3, 2).once(1, Fault::Unavailable);
    let bench = Bench::serial(database, script).await;
    let job = bench.run().await;
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    assert_eq!(job.counts.imported, 3);
    bench.assert_accounted(job.id).await;
});

// PostHog/posthog#64704: the cursor lives five minutes.
db::on_both!(a_dead_cursor_is_replaced_from_the_segments_start, [&engine::ROOM], |database| async move {
    // Pages of four to a segment: 6 is in the middle of the second one, 4 at its start.
    let script = Script::numbered(100, 10).once(6, Fault::Expired);
    let bench = Bench::serial(database, script).await;
    let job = bench.run().await;
    assert_eq!((job.counts.imported, job.fetched), (100, 100));
    assert_eq!(bench.source().asked(), [0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 7, 8, 9]);
    bench.assert_accounted(job.id).await;
});

db::on_both!(a_dead_cursor_after_a_resume_is_replaced_too, [&engine::ROOM], |database| async move {
    let script = Script::numbered(40, 10).once(2, Fault::Unavailable).once(2, Fault::Expired);
    let bench = Bench::serial(database, script).await;
    let job = bench.run().await;
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    assert_eq!(job.counts.imported, 40);
    bench.assert_accounted(job.id).await;
});

db::on_both!(
    a_page_cut_differently_after_a_dead_cursor_overlaps_without_duplicates,
    [&engine::ROOM],
    |database| async move {
        let script = Script::numbered(100, 10).once(2, Fault::Expired);
        let bench = Bench::serial(database, script).await;
        // The source gives 15 a page when asked again: page 0 holds 0..15, page 1 holds 15..30, page 2 the rest.
        let again = bench.source();
        again.change(2, (20..30).map(record).collect());
        let job = {
            let id = bench.job().await;
            let source = bench.source();
            source.add_once(0, 2, Fault::Unavailable);
            let job = bench.rest(id).await;
            assert_eq!(job.status, Status::Failed);
            source.change(0, (0..15).map(record).collect());
            source.change(1, (15..30).map(record).collect());
            source.change(2, vec![]);
            source.add_once(0, 2, Fault::Expired);
            bench.resume(id).await;
            bench.rest(id).await
        };
        assert_eq!((job.counts.imported, job.counts.duplicate_in_source, job.fetched), (100, 0, 100));
        bench.assert_accounted(job.id).await;
    }
);

db::on_both!(
    changed_pages_after_a_dead_cursor_fail_the_job_and_name_the_record,
    [&engine::ROOM],
    |database| async move {
        let script = Script::numbered(40, 10).once(2, Fault::Unavailable);
        let (bench, job) = fails(&database, script, "does not answer").await;
        let mut changed: Vec<_> = (10..20).map(record).collect();
        changed[3] = record(777);
        bench.source().change(1, changed);
        bench.source().add_once(0, 2, Fault::Expired);
        bench.resume(job.id).await;
        let job = bench.rest(job.id).await;
        assert_eq!(job.status, Status::Failed);
        let reason = job.reason.unwrap();
        assert!(reason.contains("another record 13 of segment 0"), "{reason}");
    }
);

db::on_both!(
    a_source_that_shrank_under_a_dead_cursor_fails_the_job,
    [&engine::ROOM],
    |database| async move {
        let script = Script::numbered(40, 10).once(3, Fault::Unavailable);
        let (bench, job) = fails(&database, script, "does not answer").await;
        bench.source().end_with(1);
        bench.source().add_once(0, 3, Fault::Expired);
        bench.resume(job.id).await;
        let job = bench.rest(job.id).await;
        assert_eq!(job.status, Status::Failed);
        let reason = job.reason.unwrap();
        assert!(reason.contains("ends after record 20"), "{reason}");
    }
);

db::on_both!(a_dead_anchor_fails_the_job_without_endless_tries, [&engine::ROOM], |database| async move {
    let script = Script::numbered(100, 10).once(6, Fault::Unavailable);
    let (bench, job) = fails(&database, script, "does not answer").await;
    bench.source().expire_all();
    bench.source().forget_asked();
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    assert_eq!(job.status, Status::Failed);
    let reason = job.reason.unwrap();
    assert!(reason.contains("no longer accepts") && reason.contains("c4"), "{reason}");
    assert!(bench.source().asked().is_empty(), "both cursors were refused before a page was given");
});

db::on_both!(
    a_ring_of_empty_pages_met_while_seeking_a_fresh_cursor_ends,
    [&engine::ROOM],
    |database| async move {
        let script = Script::numbered(40, 10).once(3, Fault::Unavailable);
        let (bench, job) = fails(&database, script, "does not answer").await;
        for page in 0..3 {
            bench.source().change(page, vec![]);
        }
        bench.source().point(2, Next::To(1));
        bench.source().add_once(0, 3, Fault::Expired);
        bench.resume(job.id).await;
        let job = bench.rest(job.id).await;
        assert_eq!(job.status, Status::Failed);
        assert!(job.reason.unwrap().contains("ring"));
    }
);

// github/gh-ost#437: an error is never the end.
db::on_both!(no_error_looks_like_the_end, [&engine::ROOM], |database| async move {
    for fault in [Fault::Unavailable, Fault::Malformed, Fault::Panic] {
        for page in [0, 1, 3, 9] {
            sql::execute(&database, "DROP TABLE IF EXISTS arrived").await;
            sql::execute(&database, "DELETE FROM crossdock.jobs").await;
            let script = Script::numbered(100, 10).once(page, fault.clone());
            let bench = Bench::serial(database.clone(), script).await;
            let job = bench.run().await;
            assert_eq!(job.status, Status::Failed);
            assert!(job.fetched < 100);
            bench.resume(job.id).await;
            let job = bench.rest(job.id).await;
            assert_eq!(job.fetched, 100);
            bench.assert_accounted(job.id).await;
        }
    }
});
