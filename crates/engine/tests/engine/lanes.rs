//! Jobs of one lane run one after another, those of different lanes side by side.

use std::sync::Arc;

use engine::{Mode, Status};

use crate::support::source::{Fault, Script};
use crate::support::{Bench, Door};

db::on_both!(the_second_job_of_a_lane_queues_until_the_first_ends, [&engine::ROOM], |database| async move {
    let door = Door::default();
    let bench = Bench::serial(database, Script::numbered(40, 10).once(2, Fault::Held(door.clone()))).await;
    bench.kind.sources.lock().insert("b".into(), Arc::new(Script::numbered(40, 10)));
    bench.kind.sources.lock().insert("c".into(), Arc::new(Script::numbered(40, 10)));
    let first = bench.job_of("a", "lane", Mode::Stream).await;
    let second = bench.job_of("b", "lane", Mode::Stream).await;
    let beside = bench.job_of("c", "another lane", Mode::Stream).await;
    let going = bench.start();
    door.reached().await;
    going.moved(beside, Status::Completed).await;
    assert_eq!(bench.job_row(second).await.status, Status::Queued);
    assert!(bench.kind.sources.lock()["b"].asked().is_empty());
    door.open();
    going.moved(first, Status::Completed).await;
    going.moved(second, Status::Completed).await;
    going.stop().await;
    for id in [first, second, beside] {
        bench.assert_accounted(id).await;
    }
});

db::on_both!(a_paused_job_leaves_its_lane_to_the_next, [&engine::ROOM], |database| async move {
    let door = Door::default();
    let bench = Bench::serial(database, Script::numbered(40, 10).once(2, Fault::Held(door.clone()))).await;
    bench.kind.sources.lock().insert("b".into(), Arc::new(Script::numbered(40, 10)));
    let first = bench.job_of("a", "lane", Mode::Stream).await;
    let second = bench.job_of("b", "lane", Mode::Stream).await;
    let going = bench.start();
    door.reached().await;
    assert!(bench.store.move_job(first, Status::Paused, None, None).await.unwrap());
    going.moved(second, Status::Completed).await;
    bench.resume(first).await;
    going.moved(first, Status::Completed).await;
    going.stop().await;
    bench.assert_accounted(first).await;
});

db::on_both!(many_jobs_of_many_lanes_all_end, [&engine::ROOM], |database| async move {
    let bench = Bench::parallel(database, Script::numbered(1, 1)).await;
    let mut ids = Vec::new();
    for job in 0..12 {
        let params = format!("s{job}");
        let script = Script::of((job * 100..job * 100 + 30).map(crate::support::source::record).collect(), 7);
        bench.kind.sources.lock().insert(params.clone(), Arc::new(script));
        ids.push(bench.job_of(&params, &format!("lane {}", job % 4), Mode::Stream).await);
    }
    let going = bench.start();
    for id in &ids {
        going.moved(*id, Status::Completed).await;
    }
    going.stop().await;
    for id in ids {
        assert_eq!(bench.job_row(id).await.counts.imported, 30);
        bench.assert_accounted(id).await;
    }
});
