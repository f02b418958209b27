//! What a source says of the number of its records is compared with what came.

use engine::store::history;
use engine::{Job, Mode, Status};

use crate::support::Bench;
use crate::support::source::{Fault, Script, record, record_that};

const CODE: &str = "fewer_than_the_source_counts";

/// The details of the notes with that code.
async fn told(bench: &Bench, job: &Job) -> Vec<String> {
    let mut reader = bench.database.read().await.unwrap();
    let notes = history::notes(reader.conn(), job.id, 1_000).await.unwrap();
    notes.into_iter().filter(|note| note.code == CODE).map(|note| note.detail).collect()
}

fn thirty() -> Script {
    Script::numbered(30, 10).beforehand(None)
}

// mphacker/TeslaUSB#147, dlt-hub/dlt#2269: what a walk has missed shows in the count.
db::on_both!(c26_c27_fewer_records_than_counted_are_no_clean_job, [&engine::ROOM], |database| async move {
    for (name, script, expected, outcome) in [
        ("nothing is said", thirty(), None, "clean"),
        ("as many", thirty().total(0, 2, 30), Some(30), "clean"),
        ("one more, on the last page", thirty().total(0, 2, 31), Some(31), "partial"),
        ("one more, on the first page", thirty().total(0, 0, 31), Some(31), "partial"),
        ("the last word counts", thirty().total(0, 0, 50).total(0, 1, 40).total(0, 2, 30), Some(30), "clean"),
        ("fewer: made meanwhile", thirty().total(0, 0, 12), Some(12), "clean"),
        ("beforehand", Script::numbered(30, 10).beforehand(Some(31)), Some(31), "partial"),
        (
            "a page's word is newer",
            Script::numbered(30, 10).beforehand(Some(31)).total(0, 0, 30),
            Some(30),
            "clean",
        ),
        ("negative", thirty().total(0, 1, -1), None, "clean"),
        ("negative beforehand", Script::numbered(30, 10).beforehand(Some(-30)), None, "clean"),
        ("beyond belief", thirty().total(0, 1, i64::MAX), None, "clean"),
        ("less than the page holds", thirty().total(0, 1, 9), None, "clean"),
        ("nothing, where there was something", thirty().total(0, 0, 40).total(0, 2, 0), Some(40), "partial"),
        (
            "nothing, at an empty end",
            Script::pages(vec![vec![record(1)], vec![]]).beforehand(None).total(0, 0, 2).total(0, 1, 0),
            Some(2),
            "partial",
        ),
        ("an empty part", Script::pages(vec![vec![]]).beforehand(None).total(0, 0, 0), Some(0), "clean"),
        (
            "an empty part that is not",
            Script::pages(vec![vec![]]).beforehand(None).total(0, 0, 3),
            Some(3),
            "partial",
        ),
        (
            "the same record twice, counted twice",
            Script::pages(vec![vec![record(1), record(1)]]).beforehand(None).total(0, 0, 2),
            Some(2),
            "clean",
        ),
    ] {
        crate::support::sql::execute(&database, "DROP TABLE IF EXISTS arrived").await;
        let bench = Bench::serial(database.clone(), script).await;
        let job = bench.run().await;
        assert_eq!((job.expected, job.outcome()), (expected, Some(outcome)), "{name}");
        assert_eq!(job.counts.failed, 0, "{name}");
        let told = told(&bench, &job).await;
        assert_eq!(told.len(), usize::from(outcome == "partial"), "{name}: {told:?}");
        bench.assert_accounted(job.id).await;
    }
});

db::on_both!(the_note_names_partition_counted_and_arrived, [&engine::ROOM], |database| async move {
    let parts = vec![vec![vec![record(1), record(2)]], vec![vec![record(3)], vec![record(4)]]];
    let script = Script::partitions(parts, 1).beforehand(None).total(0, 0, 2).total(1, 1, 5);
    let bench = Bench::serial(database, script).await;
    let job = bench.run().await;
    assert_eq!(told(&bench, &job).await, ["p1: the source counts 5 records, of which 2 arrived"]);
    assert_eq!((job.short_partitions, job.expected), (1, Some(7)));
    let counted: Vec<_> =
        bench.partitions(job.id).await.into_iter().map(|part| (part.records, part.expected)).collect();
    assert_eq!(counted, [(2, Some(2)), (2, Some(5))]);
});

// A sum over some of the parts would look like the whole.
db::on_both!(the_whole_is_not_known_before_each_part_is, [&engine::ROOM], |database| async move {
    let parts = vec![vec![vec![record(1)]], vec![vec![record(2)]]];
    let script = Script::partitions(parts, 1).beforehand(None).total(0, 0, 1);
    let bench = Bench::serial(database, script).await;
    let job = bench.run().await;
    assert_eq!((job.expected, job.outcome()), (None, Some("clean")));
});

db::on_both!(a_count_outlives_a_resume, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, thirty().total(0, 0, 31).once(2, Fault::Unavailable)).await;
    let job = bench.run().await;
    assert_eq!((job.status, job.expected), (Status::Failed, Some(31)));
    assert_eq!(told(&bench, &job).await, [""; 0], "it has not ended");
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    assert_eq!(job.outcome(), Some("partial"));
    assert_eq!(told(&bench, &job).await.len(), 1);
});

db::on_both!(a_count_is_heard_after_a_dead_cursor, [&engine::ROOM], |database| async move {
    for (page, total, outcome) in [(2, 31, "partial"), (2, 30, "clean"), (1, 31, "partial")] {
        crate::support::sql::execute(&database, "DROP TABLE IF EXISTS arrived").await;
        let script = thirty().total(0, page, total).once(2, Fault::Expired);
        let bench = Bench::serial(database.clone(), script).await;
        let job = bench.run().await;
        assert_eq!((job.outcome(), job.expected), (Some(outcome), Some(total)), "page {page} says {total}");
        bench.assert_accounted(job.id).await;
    }
});

db::on_both!(a_full_log_hides_no_shortfall, [&engine::ROOM], |database| async move {
    let records = (0..30).map(|id| record_that(id, "filter")).collect();
    let script = Script::of(records, 10).beforehand(Some(31));
    let bench = Bench::serial(database, script).await.limit(|limits| limits.notes_max = 5);
    let job = bench.run().await;
    let mut reader = bench.database.read().await.unwrap();
    let first = history::notes(reader.conn(), job.id, 5).await.unwrap().remove(0);
    assert_eq!((first.code.as_str(), first.label.as_deref()), (CODE, Some("p0")));
});

db::on_both!(a_dry_run_tells_a_shortfall_too, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, thirty().total(0, 2, 31)).await;
    let id = bench.job_of("a", "lane", Mode::DryRun).await;
    let job = bench.rest(id).await;
    assert_eq!((job.outcome(), told(&bench, &job).await.len()), (Some("partial"), 1));
});
