//! A partition that looks once more, when all the others have ended, for what came late.
//!
//! dlt-hub/dlt#2269: a row with an earlier time commits late and is never seen.

use engine::{Mode, Status};

use crate::support::source::{Fault, Script, record};
use crate::support::{Bench, Door};

fn part(first: usize) -> Vec<Vec<bytes::Bytes>> {
    (0..6).map(|page| vec![record(first + page)]).collect()
}

/// Two partitions of six records, of which the source counts seven in the first one, and a last look at it.
fn script(last_look: &[usize]) -> Script {
    let last_look = vec![last_look.iter().map(|id| record(*id)).collect()];
    let script = Script::partitions(vec![part(0), part(100), last_look], 3).closing();
    script.beforehand(None).total(0, 5, 7).total(1, 5, 6)
}

db::on_both!(b27_the_last_look_comes_when_all_else_is_processed, [&engine::ROOM], |database| async move {
    let doors = [Door::default(), Door::default()];
    let script = script(&[4, 50]);
    for (part, door) in doors.iter().enumerate() {
        script.add_once(part, 5, Fault::Held(door.clone()));
    }
    let bench = Bench::parallel(database, script).await;
    let bench = bench.limit(|limits| limits.lease = std::time::Duration::from_secs(60));
    let id = bench.job().await;
    let going = bench.start();
    for door in &doors {
        door.reached().await;
    }
    doors.iter().for_each(Door::open);
    let job = going.rest_of(id).await;
    going.stop().await;
    let asked = bench.source().asked_parts();
    assert_eq!(asked.iter().position(|part| *part == 2), Some(12), "{asked:?}");
    // What it imported is what the first partition lacked.
    assert_eq!((job.status, job.outcome(), job.expected), (Status::Completed, Some("clean"), Some(13)));
    assert_eq!((job.counts.imported, job.counts.records()), (13, 14));
    bench.assert_accounted(id).await;
});

db::on_both!(b27_what_the_last_look_does_not_bring_is_missing, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, script(&[4, 5])).await;
    let job = bench.run().await;
    assert_eq!((job.outcome(), job.counts.imported), (Some("partial"), 12));
    bench.assert_accounted(job.id).await;
});

db::on_both!(the_last_look_waits_for_a_partition_that_is_broken, [&engine::ROOM], |database| async move {
    let script = script(&[4, 50]);
    let script = script.always(0, 3, Fault::Malformed);
    let bench = Bench::parallel(database, script).await;
    let job = bench.run().await;
    assert_eq!(job.status, Status::Failed);
    let states: Vec<String> =
        bench.partitions(job.id).await.into_iter().map(|partition| partition.status).collect();
    assert_eq!(states, ["broken", "ended", "broken"]);
    assert!(bench.source().asked_of(2).is_empty());
    bench.source().heal();
    bench.resume(job.id).await;
    let job = bench.rest(job.id).await;
    assert_eq!((job.status, job.outcome(), job.counts.imported), (Status::Completed, Some("clean"), 13));
    assert_eq!(bench.source().asked_parts().last(), Some(&2));
    bench.assert_accounted(job.id).await;
});

db::on_both!(a_job_that_checks_first_looks_once_more_too, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, script(&[50])).await;
    let id = bench.job_of("a", "lane", Mode::CheckFirst).await;
    let job = bench.rest(id).await;
    assert_eq!((job.status, job.counts.imported), (Status::Completed, 13), "{:?}", job.reason);
    bench.assert_accounted(id).await;
});
