//! Dry runs, and jobs that check everything before they write.

use std::sync::atomic::Ordering;

use engine::{Mode, Status};

use crate::support::sink::{TestSink, Whim, arrived};
use crate::support::source::{Fault, Script, record, record_that};
use crate::support::{Bench, sql};

fn odd_records() -> Vec<bytes::Bytes> {
    let mut records: Vec<_> = (0..100).map(record).collect();
    records[5] = record_that(5, "reject");
    records[6] = record_that(6, "filter");
    records[8] = record(7);
    records
}

db::on_both!(
    a_dry_run_foretells_what_the_real_one_does_and_writes_nothing,
    [&engine::ROOM],
    |database| async move {
        let bench = Bench::serial(database, Script::of(odd_records(), 10)).await;
        let dry = bench.job_of("a", "lane", Mode::DryRun).await;
        let dry = bench.rest(dry).await;
        assert!(arrived(&bench.database).await.is_empty());
        assert!(bench.sink().calls.lock().is_empty());
        bench.assert_accounted(dry.id).await;
        let real = bench.run().await;
        assert_eq!(real.counts, dry.counts);
        bench.assert_accounted(real.id).await;
    }
);

db::on_both!(a_dry_run_resumes_after_an_error, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::of(odd_records(), 10).once(6, Fault::Unavailable)).await;
    let id = bench.job_of("a", "lane", Mode::DryRun).await;
    let job = bench.rest(id).await;
    assert_eq!((job.status, job.fetched), (Status::Failed, 60));
    bench.resume(id).await;
    bench.rest(id).await;
    bench.assert_accounted(id).await;
    assert!(arrived(&bench.database).await.is_empty());
});

db::on_both!(a_job_that_checks_first_writes_if_nothing_collides, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::of(odd_records(), 10)).await;
    let id = bench.job_of("a", "lane", Mode::CheckFirst).await;
    let job = bench.rest(id).await;
    assert_eq!((job.counts.imported, job.counts.failed, job.counts.duplicate_in_source), (97, 1, 1));
    bench.assert_accounted(id).await;
});

db::on_both!(
    a_job_that_checks_first_writes_nothing_if_something_collides,
    [&engine::ROOM],
    |database| async move {
        let mut records: Vec<_> = (0..100).map(record).collect();
        records[90] = record_that(90, "collide");
        let bench = Bench::serial(database, Script::of(records, 10)).await;
        let id = bench.job_of("a", "lane", Mode::CheckFirst).await;
        let job = bench.rest(id).await;
        assert_eq!((job.status, job.reason.as_deref()), (Status::Failed, Some("r000090 collides")));
        assert!(arrived(&bench.database).await.is_empty());
        assert!(bench.sink().calls.lock().is_empty());
        assert_eq!(job.counts.records(), 0);
    }
);

fn aborting() -> Script {
    let mut records: Vec<_> = (0..100).map(record).collect();
    records[70] = record_that(70, "abort");
    Script::of(records, 10)
}

async fn as_it_was(bench: &Bench, id: engine::JobId) {
    crate::support::within("the undoing ends", async {
        while sql::count(&bench.database, "SELECT COUNT(*) FROM crossdock.jobs WHERE undoing").await > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(arrived(&bench.database).await.is_empty(), "the target is as it was");
    let job = bench.job_row(id).await;
    assert_eq!((job.status, job.reason.as_deref()), (Status::Failed, Some("slug r1 is taken")));
    assert_eq!(job.counts.records(), 0, "the counters speak of nothing that is not there");
    assert_eq!(
        sql::count(&bench.database, "SELECT COALESCE(SUM(records), 0) FROM crossdock.staged_pages").await,
        0
    );
}

db::on_both!(what_collides_while_writing_undoes_the_job, [&engine::ROOM], |database| async move {
    for (mode, sink) in [(Mode::CheckFirst, TestSink::serial()), (Mode::Stream, TestSink::parallel())] {
        sql::execute(&database, "DROP TABLE IF EXISTS arrived").await;
        let bench = Bench::with(database.clone(), aborting(), sink).await;
        let id = bench.job_of("a", "lane", mode).await;
        let going = bench.start();
        going.rest_of(id).await;
        as_it_was(&bench, id).await;
        going.stop().await;
        sql::execute(&database, "DELETE FROM crossdock.jobs").await;
    }
});

db::on_both!(an_undone_job_begins_anew_when_it_is_resumed, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, aborting()).await;
    let id = bench.job_of("a", "lane", Mode::CheckFirst).await;
    let going = bench.start();
    going.rest_of(id).await;
    as_it_was(&bench, id).await;
    bench.source().change(7, (70..80).map(record).collect());
    bench.resume(id).await;
    going.moved(id, Status::Completed).await;
    going.stop().await;
    assert_eq!(bench.job_row(id).await.counts.imported, 100);
    assert_eq!(arrived(&bench.database).await.len(), 100);
    bench.assert_accounted(id).await;
});

// The process dies between the abort and the end of the undoing.
db::on_both!(an_undoing_that_was_cut_off_goes_on, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(100, 10)).await;
    let id = bench.job().await;
    bench.sink().whim(Whim::Retry);
    let job = bench.rest(id).await;
    assert_eq!(job.status, Status::Completed);
    // As a process leaves it that died right after the job was marked.
    let left = "UPDATE crossdock.jobs SET status = 'failed', reason = 'slug r1 is taken', undoing = TRUE";
    sql::execute(&bench.database, left).await;
    let going = bench.start();
    as_it_was(&bench, id).await;
    assert_eq!(bench.sink().undone.load(Ordering::SeqCst), 100);
    going.stop().await;
});

db::on_both!(an_undoing_that_is_resumed_meanwhile_ends_first, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(100, 10)).await;
    let job = bench.run().await;
    let left = "UPDATE crossdock.jobs SET status = 'queued', undoing = TRUE";
    sql::execute(&bench.database, left).await;
    let going = bench.start();
    going.moved(job.id, Status::Completed).await;
    going.stop().await;
    assert_eq!(bench.sink().undone.load(Ordering::SeqCst), 100);
    assert_eq!(arrived(&bench.database).await.len(), 100);
    assert_eq!(bench.job_row(job.id).await.counts.imported, 100);
    bench.assert_accounted(job.id).await;
});

db::on_both!(what_cannot_be_undone_is_said, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, aborting()).await;
    bench.sink().undo_fails.store(1, Ordering::SeqCst);
    let id = bench.job_of("a", "lane", Mode::CheckFirst).await;
    let going = bench.start();
    going.rest_of(id).await;
    crate::support::within("the undoing is given up", async {
        while sql::count(&bench.database, "SELECT COUNT(*) FROM crossdock.jobs WHERE undoing").await > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    going.stop().await;
    let job = bench.job_row(id).await;
    assert!(job.reason.as_deref().unwrap().contains("could not be undone"), "{:?}", job.reason);
    assert!(job.counts.imported > 0, "the records of what was written stay");
});

async fn rests_for(bench: &Bench, days: i64) {
    let text = match bench.database.kind() {
        db::Kind::Sqlite => format!("UPDATE jobs SET rests_since = rests_since - {days} * 86400000000"),
        db::Kind::Postgres => {
            format!("UPDATE crossdock.jobs SET rests_since = rests_since - INTERVAL '{days} days'")
        }
    };
    sql::execute(&bench.database, &text).await;
}

async fn staged(bench: &Bench) -> i64 {
    sql::count(&bench.database, "SELECT COALESCE(SUM(records), 0) FROM crossdock.staged_pages").await
}

/// Lets a runner sweep, and waits until what is marked is gone.
async fn swept(bench: &Bench) {
    let going = bench.start();
    // The first look of a runner sweeps; a second job tells that it has looked.
    let probe = bench.job_of("probe", "probe", Mode::Stream).await;
    going.moved(probe, Status::Completed).await;
    crate::support::within("what has expired goes", async {
        while sql::count(&bench.database, "SELECT COUNT(*) FROM crossdock.jobs WHERE undoing").await > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    going.stop().await;
}

fn with_probe(bench: Bench) -> Bench {
    bench.kind.sources.lock().insert("probe".into(), std::sync::Arc::new(Script::pages(vec![vec![]])));
    bench
}

db::on_both!(
    what_an_abandoned_job_staged_expires_after_a_week,
    [&engine::ROOM],
    |database: db::Database| async move {
        for (mode, fault, status) in [
            (Mode::DryRun, Fault::Unavailable, Status::Failed),
            (Mode::DryRun, Fault::Unauthorized, Status::AwaitingToken),
            (Mode::CheckFirst, Fault::Unauthorized, Status::AwaitingToken),
            (Mode::CheckFirst, Fault::Malformed, Status::Paused),
        ] {
            sql::execute(&database, "DROP TABLE IF EXISTS arrived").await;
            sql::execute(&database, "DELETE FROM crossdock.jobs").await;
            let bench = Bench::serial(database.clone(), Script::numbered(100, 10).once(6, fault)).await;
            let bench = with_probe(bench);
            let id = bench.job_of("a", "lane", mode).await;
            let job = bench.rest(id).await;
            if status == Status::Paused {
                bench.resume(id).await;
                assert!(bench.store.move_job(id, Status::Paused, None, None).await.unwrap());
            }
            assert_eq!((job.fetched, staged(&bench).await), (60, 60), "{mode:?} {status}");
            rests_for(&bench, 6).await;
            swept(&bench).await;
            assert_eq!(staged(&bench).await, 60, "{mode:?} {status}: not yet");
            rests_for(&bench, 2).await;
            swept(&bench).await;
            assert_eq!(staged(&bench).await, 0, "{mode:?} {status}");
            let job = bench.job_row(id).await;
            let reason = job.reason.as_deref().unwrap();
            assert!(
                reason.ends_with("what it had staged expired after 7 days; resuming it starts over"),
                "{reason}"
            );
            assert_eq!((job.status, job.fetched), (status, 0));
            swept(&bench).await;
            assert_eq!(bench.job_row(id).await.reason, job.reason, "told once");

            bench.source().forget_asked();
            bench.resume(id).await;
            let job = bench.rest(id).await;
            assert_eq!((job.status, job.counts.imported, job.reason), (Status::Completed, 100, None));
            assert_eq!(bench.source().asked(), (0..10).collect::<Vec<_>>(), "it starts over");
            bench.assert_accounted(id).await;
        }
    }
);

db::on_both!(
    what_is_not_abandoned_keeps_what_it_staged,
    [&engine::ROOM],
    |database: db::Database| async move {
        // A stream processes what it has; its tail waits for the rest.
        let script = Script::numbered(100, 10).once(6, Fault::Unauthorized);
        let bench = with_probe(Bench::serial(database.clone(), script).await);
        bench.sink().whim(Whim::Fatal);
        let id = bench.job().await;
        let job = bench.rest(id).await;
        let before = staged(&bench).await;
        assert!(job.status == Status::Failed && before > 0);
        rests_for(&bench, 30).await;
        swept(&bench).await;
        assert_eq!(staged(&bench).await, before, "a stream");
        sql::execute(&database, "DELETE FROM crossdock.staged_pages").await;
        sql::execute(&database, "DELETE FROM crossdock.jobs").await;
        sql::execute(&database, "DROP TABLE arrived").await;

        // Once it has begun to write, the rest is needed to go on.
        let bench = Bench::serial(database, Script::numbered(100, 10)).await;
        let bench = with_probe(bench.limit(|limits| limits.part_records = 100));
        let door = crate::support::Door::default();
        door.open();
        bench.sink().whim(Whim::Held(door));
        bench.sink().whim(Whim::Fatal);
        let id = bench.job_of("a", "lane", Mode::CheckFirst).await;
        let job = bench.rest(id).await;
        assert_eq!((job.status, job.counts.imported), (Status::Failed, 20));
        let before = staged(&bench).await;
        assert!(before > 0);
        rests_for(&bench, 30).await;
        swept(&bench).await;
        assert_eq!(staged(&bench).await, before, "what has begun to write");
        bench.resume(id).await;
        assert_eq!(bench.rest(id).await.counts.imported, 100);
        bench.assert_accounted(id).await;
    }
);
