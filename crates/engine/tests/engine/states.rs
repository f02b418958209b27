//! Stopping and going on: pauses, waits, missing tokens, errors, cancels.

use engine::store::jobs;
use engine::{JobEvent, JobId, Mode, Status};

use crate::support::sink::{Whim, arrived};
use crate::support::source::{Fault, Script};
use crate::support::{Bench, Door, database_now, sql};

/// As another process does it: plain rows.
async fn set_status(bench: &Bench, id: JobId, status: &str) {
    let text = format!("UPDATE crossdock.jobs SET status = '{status}' WHERE id = {}", id.0.get());
    assert_eq!(sql::execute(&bench.database, &text).await, 1);
}

// dlt-hub/dlt#215, airbytehq/airbyte#17774, PostHog/posthog#64704
db::on_both!(a_job_that_failed_at_page_7_resumes_at_page_7, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(100, 10).once(7, Fault::Unavailable)).await;
    let job = bench.run().await;
    assert_eq!(job.status, Status::Failed);
    assert_eq!((job.fetched, job.counts.imported), (70, 70), "what came before is processed");
    assert!(job.finished_at.is_some());
    assert_eq!(bench.source().asked(), [0, 1, 2, 3, 4, 5, 6, 7]);
    bench.source().forget_asked();
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    assert_eq!(bench.source().asked(), [7, 8, 9]);
    assert_eq!(job.counts.imported, 100);
    bench.assert_accounted(job.id).await;
});

// redpanda-data/connect#415: a permanent error ends; every resume asks once.
db::on_both!(a_permanent_error_is_asked_for_once_a_resume, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(100, 10).always(0, 7, Fault::Malformed)).await;
    let id = bench.job().await;
    for _ in 0..4 {
        let job = bench.rest(id).await;
        assert_eq!((job.status, job.fetched), (Status::Failed, 70));
        bench.resume(id).await;
    }
    assert_eq!(bench.source().asked().len(), 7 + 4);
});

// redpanda-data/connect#415: the others go on.
db::on_both!(independent_partitions_go_on_when_one_fails, [&engine::ROOM], |database| async move {
    let part = |first: usize| {
        (0..10).map(|page| vec![crate::support::source::record(first + page)]).collect::<Vec<_>>()
    };
    let script = Script::partitions(vec![part(0), part(100), part(200)], 3).always(1, 7, Fault::Malformed);
    let bench = Bench::parallel(database, script).await;
    let job = bench.run().await;
    assert_eq!((job.status, job.fetched), (Status::Failed, 27));
    assert_eq!(job.counts.imported, 27);
    bench.source().heal();
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    assert_eq!(job.counts.imported, 30);
    assert_eq!(bench.source().asked_of(0), (0..10).collect::<Vec<_>>(), "each page once");
    assert_eq!(bench.source().asked_of(2), (0..10).collect::<Vec<_>>(), "each page once");
    bench.assert_accounted(job.id).await;
});

// redpanda-data/connect#415, where the sink takes the partitions in order.
db::on_both!(a_serial_sink_goes_on_behind_a_partition_that_fails, [&engine::ROOM], |database| async move {
    let part = |first: usize| {
        (0..10).map(|page| vec![crate::support::source::record(first + page)]).collect::<Vec<_>>()
    };
    let script = Script::partitions(vec![part(0), part(100), part(200)], 3).always(0, 7, Fault::Malformed);
    let bench = Bench::serial(database, script).await;
    let job = bench.run().await;
    assert_eq!((job.status, job.fetched, job.counts.imported), (Status::Failed, 27, 27));
    let reason = job.reason.as_deref().unwrap();
    assert!(reason.starts_with("partition p0: ") && reason.ends_with("; the others came over"), "{reason}");
    let states = |list: Vec<engine::store::partitions::State>| {
        list.into_iter().map(|partition| partition.status).collect::<Vec<_>>()
    };
    assert_eq!(states(bench.partitions(job.id).await), ["broken", "ended", "ended"]);
    // Still broken: it fails again, and nothing is asked for or written twice.
    bench.resume(job.id).await;
    assert_eq!(bench.rest(job.id).await.status, Status::Failed);
    bench.source().heal();
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    assert_eq!((job.status, job.counts.imported), (Status::Completed, 30));
    assert_eq!(states(bench.partitions(job.id).await), ["ended", "ended", "ended"]);
    assert_eq!(bench.source().asked_of(1), (0..10).collect::<Vec<_>>(), "each page once");
    assert_eq!(bench.source().asked_of(2), (0..10).collect::<Vec<_>>(), "each page once");
    bench.assert_accounted(job.id).await;
});

db::on_both!(
    a_job_that_checks_first_writes_nothing_while_a_partition_is_broken,
    [&engine::ROOM],
    |database| async move {
        let part = |first: usize| {
            (0..3).map(|page| vec![crate::support::source::record(first + page)]).collect::<Vec<_>>()
        };
        let script = Script::partitions(vec![part(0), part(100)], 2).always(0, 1, Fault::Malformed);
        let bench = Bench::serial(database, script).await;
        let id = bench.job_of("a", "lane", engine::Mode::CheckFirst).await;
        let job = bench.rest(id).await;
        assert_eq!((job.status, job.counts.records()), (Status::Failed, 0));
        bench.source().heal();
        bench.resume(id).await;
        let job = bench.rest(id).await;
        assert_eq!((job.status, job.counts.imported), (Status::Completed, 6));
    }
);

db::on_both!(
    partitions_are_fetched_side_by_side_where_the_source_allows_it,
    [&engine::ROOM],
    |database| async move {
        let part = |first: usize| {
            (0..6).map(|page| vec![crate::support::source::record(first + page)]).collect::<Vec<_>>()
        };
        let doors = [Door::default(), Door::default()];
        let script = Script::partitions(vec![part(0), part(100), part(200)], 2);
        script.add_once(0, 3, Fault::Held(doors[0].clone()));
        script.add_once(1, 3, Fault::Held(doors[1].clone()));
        let bench = Bench::parallel(database, script).await;
        // Longer than any machine is too busy to renew it: the epochs are counted below.
        let bench = bench.limit(|limits| limits.lease = std::time::Duration::from_secs(60));
        let id = bench.job().await;
        let going = bench.start();
        // Both stand at their door at the same time, and neither takes the partition from the other.
        doors[0].reached().await;
        doors[1].reached().await;
        assert!(bench.source().asked_of(2).is_empty(), "at most two at a time");
        doors.iter().for_each(Door::open);
        going.rest_of(id).await;
        going.stop().await;
        for part in 0..3 {
            assert_eq!(bench.source().asked_of(part), (0..6).collect::<Vec<_>>(), "of partition {part}");
        }
        let epochs = sql::count(&bench.database, "SELECT MAX(epoch) FROM crossdock.partitions").await;
        assert_eq!(epochs, 1);
        bench.assert_accounted(id).await;
    }
);

// airbytehq/airbyte#2627: a small quota, three runs.
db::on_both!(
    a_waiting_job_goes_on_by_itself_when_the_databases_clock_says_so,
    [&engine::ROOM],
    |database| async move {
        let soon = database_now(&database).await.plus(std::time::Duration::from_millis(120));
        let script = Script::numbered(100, 10)
            .once(3, Fault::WaitUntil(soon))
            .once(6, Fault::WaitUntil(soon))
            .once(6, Fault::WaitUntil(soon.plus(std::time::Duration::from_millis(100))));
        let bench = Bench::serial(database, script).await;
        let id = bench.job().await;
        let going = bench.start();
        going.moved(id, Status::Waiting).await;
        let job = going.rest_of(id).await;
        going.stop().await;
        assert_eq!(job.status, Status::Completed);
        assert_eq!(
            bench.source().asked(),
            [0, 1, 2, 3, 3, 4, 5, 6, 6, 6, 7, 8, 9],
            "progress never goes back"
        );
        bench.assert_accounted(id).await;
        let waited = bench.kind.observed.lock().iter().any(
        |(_, event)| matches!(event, JobEvent::Moved { to: Status::Waiting, reason: Some(reason) } if reason.contains("monthly quota")),
    );
        assert!(waited, "the reason is told");
    }
);

db::on_both!(what_is_staged_is_processed_before_a_job_waits, [&engine::ROOM], |database| async move {
    let later = database_now(&database).await.plus(std::time::Duration::from_secs(3600));
    let bench = Bench::serial(database, Script::numbered(100, 10).once(5, Fault::WaitUntil(later))).await;
    let id = bench.job().await;
    let going = bench.start();
    going.moved(id, Status::Waiting).await;
    let job = bench.job_row(id).await;
    assert_eq!((job.counts.imported, job.waiting_until), (50, Some(later)));
    assert!(bench.store.move_job(id, Status::Cancelled, None, None).await.unwrap());
    going.rest_of(id).await;
    going.stop().await;
});

db::on_both!(a_job_that_waits_is_not_swept, [&engine::ROOM], |database| async move {
    let later = database_now(&database).await.plus(std::time::Duration::from_secs(3600));
    let bench = Bench::serial(database, Script::numbered(100, 10).once(5, Fault::WaitUntil(later))).await;
    let id = bench.job().await;
    let going = bench.start();
    going.moved(id, Status::Waiting).await;
    going.stop().await;
    age(&bench, 60).await;
    let mut tx = bench.database.begin().await.unwrap();
    assert!(jobs::sweep_stuck(tx.conn(), 30).await.unwrap().is_empty());
});

async fn age(bench: &Bench, minutes: i64) {
    let text = match bench.database.kind() {
        db::Kind::Sqlite => {
            format!("UPDATE jobs SET last_progress_at = last_progress_at - {minutes} * 60000000")
        }
        db::Kind::Postgres => {
            format!(
                "UPDATE crossdock.jobs SET last_progress_at = last_progress_at - INTERVAL '{minutes} minutes'"
            )
        }
    };
    sql::execute(&bench.database, &text).await;
}

db::on_both!(a_running_job_without_progress_is_swept, [&engine::ROOM], |database| async move {
    let door = Door::default();
    let script = Script::numbered(40, 10).once(2, Fault::Held(door.clone()));
    let bench = Bench::serial(database, script).await.limit(|limits| {
        limits.sweep_every = limits.poll;
    });
    let id = bench.job().await;
    let going = bench.start();
    door.reached().await;
    going.settled(1).await;
    age(&bench, 29).await;
    assert_eq!(bench.job_row(id).await.status, Status::Running);
    age(&bench, 2).await;
    let job = going.rest_of(id).await;
    assert_eq!((job.status, job.reason.as_deref()), (Status::Failed, Some("worker stalled")));
    bench.resume(id).await;
    going.moved(id, Status::Completed).await;
    going.stop().await;
    bench.assert_accounted(id).await;
});

db::on_both!(
    a_job_without_a_source_processes_what_is_staged_and_awaits_a_token,
    [&engine::ROOM],
    |database| async move {
        let bench = Bench::serial(database, Script::numbered(100, 10).once(5, Fault::Unauthorized)).await;
        bench.sink().whim(Whim::Fatal);
        let job = bench.run().await;
        assert_eq!(job.status, Status::Failed, "nothing is processed yet");
        let staged = job.fetched;
        assert!(staged > 0);
        *bench.kind.has_token.lock() = false;
        bench.source().forget_asked();
        bench.resume(job.id).await;
        let job = bench.rest(job.id).await;
        assert_eq!(job.status, Status::AwaitingToken);
        assert!(job.reason.unwrap().contains("token"));
        assert_eq!(job.counts.imported, staged, "what is staged needs no token");
        assert!(bench.source().asked().is_empty());
        bench.source().heal();
        *bench.kind.has_token.lock() = true;
        bench.resume(job.id).await;
        let job = bench.rest(job.id).await;
        assert_eq!(job.counts.imported, 100);
        bench.assert_accounted(job.id).await;
    }
);

db::on_both!(a_refused_token_makes_the_job_await_another_one, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(100, 10).once(5, Fault::Unauthorized)).await;
    let job = bench.run().await;
    assert_eq!((job.status, job.counts.imported), (Status::AwaitingToken, 50));
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    bench.assert_accounted(job.id).await;
    assert_eq!(bench.source().asked(), [0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9]);
});

db::on_both!(a_job_that_needs_no_more_pages_needs_no_token, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(20, 10)).await;
    bench.sink().whim(Whim::Fatal);
    let job = bench.run().await;
    *bench.kind.has_token.lock() = false;
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    if job.status == Status::AwaitingToken {
        // The sink failed before the last page was staged.
        *bench.kind.has_token.lock() = true;
        bench.resume(job.id).await;
        bench.rest(job.id).await;
    }
    bench.assert_accounted(job.id).await;
});

db::on_both!(a_job_paused_by_another_process_stops_and_resumes, [&engine::ROOM], |database| async move {
    for page in [0, 1, 4, 9] {
        sql::execute(&database, "DROP TABLE IF EXISTS arrived").await;
        sql::execute(&database, "DELETE FROM crossdock.jobs").await;
        let door = Door::default();
        let script = Script::numbered(100, 10).once(page, Fault::Held(door.clone()));
        let bench = Bench::serial(database.clone(), script).await;
        let id = bench.job().await;
        let going = bench.start();
        door.reached().await;
        set_status(&bench, id, "paused").await;
        going.moved(id, Status::Paused).await;
        set_status(&bench, id, "queued").await;
        let job = going.rest_of(id).await;
        going.stop().await;
        assert_eq!(job.counts.imported, 100);
        // The page at the door was given up and is asked for once more.
        assert!(bench.source().asked().len() <= 11, "{:?}", bench.source().asked());
        bench.assert_accounted(id).await;
    }
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_paused_in_the_middle_of_a_chunk_finishes_the_chunk_first() {
    let test = db::testing::TestDatabase::open(db::Kind::Postgres, &[&engine::ROOM]).await;
    let bench = Bench::serial(test.database.clone(), Script::numbered(100, 10)).await;
    let door = Door::default();
    bench.sink().whim(Whim::HeldInside(door.clone()));
    let id = bench.job().await;
    let going = bench.start();
    door.reached().await;
    set_status(&bench, id, "paused").await;
    door.open();
    going.moved(id, Status::Paused).await;
    let job = bench.job_row(id).await;
    assert!(job.counts.imported > 0 && job.counts.imported < 100);
    assert_eq!(arrived(&bench.database).await.len() as i64, job.counts.imported, "no half chunk");
    bench.resume(id).await;
    going.moved(id, Status::Completed).await;
    going.stop().await;
    bench.assert_accounted(id).await;
    test.close().await;
}

db::on_both!(a_cancelled_job_leaves_nothing_staged, [&engine::ROOM], |database: db::Database| async move {
    for page in [0usize, 1, 5, 9] {
        let door = Door::default();
        let script = Script::numbered(100, 10).once(page, Fault::Held(door.clone()));
        let bench = Bench::serial(database.clone(), script).await;
        let id = bench.job().await;
        let going = bench.start();
        door.reached().await;
        going.fetched(page).await;
        set_status(&bench, id, "cancelled").await;
        going.moved(id, Status::Cancelled).await;
        door.open();
        nothing_staged(&bench).await;
        going.stop().await;
        assert!(!bench.store.move_job(id, Status::Queued, None, None).await.unwrap(), "it is over");
        let lines = sql::count(&bench.database, "SELECT COUNT(*) FROM crossdock.segments").await;
        assert_eq!(lines, page.div_ceil(4) as i64, "the history stays");
        sql::execute(&database, "DROP TABLE arrived").await;
        sql::execute(&database, "DELETE FROM crossdock.jobs").await;
    }
});

/// Waits until the scheduler has removed what a cancelled job staged.
async fn nothing_staged(bench: &Bench) {
    crate::support::within("staged rows go", async {
        loop {
            let staged = sql::count(&bench.database, "SELECT COUNT(*) FROM crossdock.staged_pages").await;
            let segments = "SELECT COUNT(*) FROM crossdock.segments WHERE status <> 'cleaned'";
            if staged == 0 && sql::count(&bench.database, segments).await == 0 {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

db::on_both!(
    a_job_cancelled_while_nobody_runs_it_leaves_nothing_staged,
    [&engine::ROOM],
    |database| async move {
        let bench = Bench::serial(database, Script::numbered(40, 10).once(3, Fault::Unavailable)).await;
        bench.sink().whim(Whim::Fatal);
        let job = bench.run().await;
        assert_eq!(job.status, Status::Failed);
        assert!(sql::count(&bench.database, "SELECT COUNT(*) FROM crossdock.staged_pages").await > 0);
        assert!(bench.store.move_job(job.id, Status::Cancelled, None, None).await.unwrap());
        let going = bench.start();
        nothing_staged(&bench).await;
        going.stop().await;
        assert_eq!(sql::count(&bench.database, "SELECT COUNT(*) FROM crossdock.pages").await, 0);
    }
);

db::on_both!(
    a_runner_that_stops_leaves_the_job_running_for_the_next,
    [&engine::ROOM],
    |database| async move {
        for page in [0usize, 1, 5, 9] {
            sql::execute(&database, "DROP TABLE IF EXISTS arrived").await;
            sql::execute(&database, "DELETE FROM crossdock.jobs").await;
            let door = Door::default();
            let script = Script::numbered(100, 10).once(page, Fault::Held(door.clone()));
            let bench = Bench::serial(database.clone(), script).await;
            let id = bench.job().await;
            let going = bench.start();
            door.reached().await;
            going.stop().await;
            assert_eq!(bench.job_row(id).await.status, Status::Running);
            bench.rest(id).await;
            assert!(bench.source().asked().len() <= 11, "{:?}", bench.source().asked());
            bench.assert_accounted(id).await;
        }
    }
);

// NikolayS/PgQue#80
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d58_a_snapshot_that_somebody_holds_is_seen() {
    let test = db::testing::TestDatabase::open(db::Kind::Postgres, &[&engine::ROOM]).await;
    let mut reader = test.database.read().await.unwrap();
    let mut held = test.database.begin().await.unwrap();
    let db::Conn::Postgres(pg) = held.conn() else { panic!("Postgres") };
    sqlx::query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").execute(&mut *pg.conn).await.unwrap();
    sqlx::query("SELECT COUNT(*) FROM crossdock.jobs").execute(pg.conn).await.unwrap();
    let first = jobs::oldest_snapshot(reader.conn()).await.unwrap();
    let then = jobs::oldest_snapshot(reader.conn()).await.unwrap();
    assert!(!first.is_zero() && then > first, "{first:?}, then {then:?}");
    held.rollback().await.unwrap();
    drop(reader);
    test.close().await;
}

// dlt-hub/dlt#215: a kill costs one request at most where the source counts them.
db::on_both!(
    a1_without_prefetch_a_page_is_durable_before_the_next_is_asked_for,
    [&engine::ROOM],
    |database| async move {
        let script = Script::numbered(200, 10).profile_with(|profile| profile.prefetch = false);
        let doors: Vec<Door> = (1..20)
            .map(|page| {
                let door = Door::default();
                script.add_once(0, page, Fault::Held(door.clone()));
                door
            })
            .collect();
        let bench = Bench::serial(database, script).await;
        let id = bench.job().await;
        let going = bench.start();
        for (door, asked) in doors.iter().zip(1_i64..) {
            door.reached().await;
            let durable = sql::count(&bench.database, "SELECT SUM(pages) FROM crossdock.partitions").await;
            assert_eq!(durable, asked, "page {asked} is asked for");
            door.open();
        }
        assert_eq!(going.rest_of(id).await.counts.imported, 200);
        going.stop().await;
    }
);

// A process that has no token yet begins to fetch as soon as it is given one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f84_a_token_given_while_the_job_runs_without_one_is_taken_up() {
    let test = db::testing::TestDatabase::open(db::Kind::Postgres, &[&engine::ROOM]).await;
    let bench = Bench::serial(test.database.clone(), Script::numbered(40, 10)).await;
    let bench = bench.limit(|limits| limits.token_grace = std::time::Duration::from_secs(3_600));
    *bench.kind.has_token.lock() = false;
    let id = bench.job().await;
    let going = bench.start();
    going.moved(id, Status::Running).await;
    *bench.kind.has_token.lock() = true;
    let job = going.rest_of(id).await;
    going.stop().await;
    assert_eq!((job.status, job.counts.imported), (Status::Completed, 40));
    test.close().await;
}

// A stop of the process must not wait for a drain that cannot end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_stops_while_a_job_drains() {
    let test = db::testing::TestDatabase::open(db::Kind::Postgres, &[&engine::ROOM]).await;
    let script = Script::numbered(100, 10).once(5, Fault::Unauthorized);
    let bench = Bench::serial(test.database.clone(), script).await;
    let door = Door::default();
    bench.sink().whim(Whim::Held(door.clone()));
    let id = bench.job().await;
    let going = bench.start();
    door.reached().await;
    going.fetched(5).await;
    let stopping = tokio::spawn(going.stop());
    door.open();
    stopping.await.unwrap();
    assert_eq!(bench.job_row(id).await.status, Status::Running);
    let job = bench.rest(id).await;
    bench.assert_accounted(job.id).await;
    test.close().await;
}

// A failure of the sink while the job drains for another reason still stops it.
db::on_both!(a_sink_that_fails_while_the_job_drains_fails_the_job, [&engine::ROOM], |database| async move {
    let script = Script::numbered(100, 10).once(5, Fault::Unauthorized);
    let bench = Bench::serial(database, script).await;
    let door = Door::default();
    bench.sink().whim(Whim::Held(door.clone()));
    bench.sink().whim(Whim::Fatal);
    let id = bench.job().await;
    let going = bench.start();
    door.reached().await;
    door.open();
    let job = going.rest_of(id).await;
    going.stop().await;
    assert_eq!((job.status, job.reason.as_deref()), (Status::Failed, Some("the target is gone")));
    bench.resume(id).await;
    let job = bench.rest(id).await;
    assert!(matches!(job.status, Status::Completed | Status::AwaitingToken));
});

db::on_both!(a_kind_this_process_does_not_know_is_left_alone, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(20, 10)).await;
    let strange = {
        let id = JobId(db::Id::new());
        let new = engine::NewJob {
            kind: "strange".into(),
            lane: "other".into(),
            mode: Mode::Stream,
            params: "{}".into(),
            request_id: None,
        };
        let mut tx = bench.database.begin().await.unwrap();
        jobs::insert(tx.conn(), id, &new).await.unwrap();
        tx.commit().await.unwrap();
        id
    };
    let job = bench.run().await;
    bench.assert_accounted(job.id).await;
    assert_eq!(bench.job_row(strange).await.status, Status::Running);
});

db::on_both!(two_partitions_of_one_name_are_an_error, [&engine::ROOM], |database| async move {
    let script = Script::numbered(20, 10).named_alike();
    let bench = Bench::serial(database, script).await;
    let job = bench.run().await;
    assert_eq!(job.status, Status::Failed);
    assert!(job.reason.unwrap().contains("alike"));
});

// Two processes move a job in the same moment: the second waits for the first and is judged by what that one left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_move_that_waited_for_another_is_not_refused_for_it() {
    let test = db::testing::TestDatabase::open(db::Kind::Postgres, &[&engine::ROOM]).await;
    let database = test.database.clone();
    let bench = Bench::serial(database.clone(), Script::numbered(1, 1)).await;
    let id = bench.job().await;
    let mut first = database.begin().await.unwrap();
    assert!(jobs::move_to(first.conn(), id, Status::Running, None, None).await.unwrap());
    let second = tokio::spawn({
        let store = bench.store.clone();
        async move { store.move_job(id, Status::Cancelled, None, None).await }
    });
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    crate::support::within("the second move waits", async {
        while sql::count(&database, waiting).await == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    first.commit().await.unwrap();
    let moved = second.await.unwrap().unwrap();
    test.close().await;
    assert!(moved, "a running job can be cancelled as well as a queued one");
}
