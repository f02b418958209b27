//! Behind PgBouncer in transaction mode.

use db::testing::{Pooler, TestDatabase};
use engine::Status;

use crate::world::{World, counters, limits, record};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d56_an_import_passes_behind_pgbouncer() {
    let test = TestDatabase::open(db::Kind::Postgres, &[]).await;
    let pooler = Pooler::before(&test.url);
    let database = pooler.open().await;
    for room in [&engine::ROOM, &links::ROOM, &crossdock_imports::ROOM] {
        database.migrate(room).await.unwrap();
    }
    let world = World::new(database.clone(), limits()).await;
    world.make("s7", "https://example.com/mine").await;
    let account: Vec<_> = (0..300)
        .map(|n| record(&format!("r{n}"), &format!("old.example.com/s{n}"), "https://example.com/"))
        .collect();
    world.account.set(&account);
    world.account.page_size(20);

    let report = world.import().await;
    assert_eq!((report.status, counters(&report)), (Status::Completed, [300, 0, 0, 0, 0, 0, 0]));
    assert_eq!(world.leads("s7-2").await.as_deref(), Some("https://example.com/"));
    assert!(world.verify(&report).await.holds);
    let again = world.import().await;
    assert_eq!((again.status, counters(&again)), (Status::Completed, [0, 0, 300, 0, 0, 0, 0]));
    world.stop().await;
    database.close().await;
    drop(pooler);
    test.close().await;
}
