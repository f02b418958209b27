//! Behind PgBouncer in transaction mode there is no session: a whole job passes all the same.
//!
//! goauthentik/authentik#23876: a session lock stranded behind a transaction pooler.

use db::testing::{Pooler, TestDatabase};
use engine::Status;

use crate::support::Bench;
use crate::support::sink::{TestSink, create_table};
use crate::support::source::{Script, record, record_that};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_job_passes_behind_pgbouncer() {
    let test = TestDatabase::open(db::Kind::Postgres, &[]).await;
    let pooler = Pooler::before(&test.url);
    let database = pooler.open().await;
    database.migrate(&engine::ROOM).await.unwrap();
    create_table(&database).await;
    for sink in [TestSink::serial(), TestSink::parallel()] {
        let mut records: Vec<_> = (0..600).map(record).collect();
        records[77] = record_that(77, "reject");
        records[400] = record_that(400, "refuse");
        let bench = Bench::over(database.clone(), Script::of(records, 10), sink);
        let other = bench.another_process().await;
        let id = bench.job().await;
        let (one, two) = (bench.start(), other.start());
        let job = one.rest_of(id).await;
        one.stop().await;
        two.stop().await;
        assert_eq!(job.status, Status::Completed, "{:?}", job.reason);
        assert_eq!((job.counts.imported + job.counts.unchanged, job.counts.failed), (598, 2));
        bench.assert_accounted(id).await;
        other.database.close().await;
    }
    database.close().await;
    drop(pooler);
    test.close().await;
}
