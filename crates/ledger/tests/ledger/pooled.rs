//! Behind PgBouncer in transaction mode, where no statement finds the session of the one before.
//!
//! goauthentik/authentik#23876: a session lock stranded behind a transaction pooler, all processes waited.

use crossdock_ledger::Variables;
use db::testing::{Pooler, TestDatabase};
use engine::Status;

use crate::bank::Bank;
use crate::export::Export;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d56_a_ledger_passes_behind_pgbouncer_with_two_processes_at_work() {
    let mut test = TestDatabase::open(db::Kind::Postgres, &[]).await;
    let pooler = Pooler::before(&test.url);
    test.database.close().await;
    test.database = pooler.open().await;
    test.database.migrate(&engine::ROOM).await.unwrap();
    test.database.migrate(&crossdock_ledger::ROOM).await.unwrap();
    let bank = Bank::over(test);
    let other = pooler.open().await;
    bank.join(&other);
    let export = Export::into(bank, 3_000, "rough", 1).await;
    let folder = export.folder("");

    let variables = Variables::of([("CORE_URL", export.core.url().as_str())]);
    let plan = export.bank.ledgers.plan(&folder, &variables).await.unwrap();
    assert_eq!(plan.rows.len(), 10);
    let job = export.run(folder.clone()).await;
    let summary = export.core.logs().summary();
    assert_eq!((job.status, job.outcome()), (Status::Completed, Some("partial")), "{:?}", job.reason);
    assert_eq!(u64::try_from(job.counts.imported).unwrap(), summary.good);
    export.compare().await;

    // Rows that are there already take the other way through the sink.
    let again = export.run(folder).await;
    assert_eq!((again.status, again.counts.imported), (Status::Completed, 0), "{:?}", again.reason);
    assert_eq!((again.counts.failed, again.counts.records()), (job.counts.failed, job.counts.records()));
    assert!(export.bank.ledgers.verify(job.id).await.unwrap().holds);
    // What was temporary went with its transaction.
    let left = "SELECT relname::text FROM pg_class WHERE relnamespace::regnamespace::text LIKE 'pg_temp%'";
    assert_eq!(export.bank.texts(left).await, Vec::<String>::new());
    other.close().await;
    export.close().await;
}
