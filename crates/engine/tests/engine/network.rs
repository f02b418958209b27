//! A connection that breaks around COMMIT: what became of it is looked up, and nothing is lost or doubled.
//!
//! stroppy-io/stroppy#167, fredrik/rekorderlig#111, jruby/activerecord-jdbc-adapter#1216, jepsen's jetcd 0.8.2.

use db::testing::TestDatabase;
use db::{Address, Database};
use engine::Status;

use crate::support::proxy::{Cut, Proxy};
use crate::support::sink::{TestSink, arrived, create_table};
use crate::support::source::Script;
use crate::support::{Bench, sql};

async fn a_job_through_cuts(cut: Cut, every: i64, parallel: bool) {
    let test = TestDatabase::open(db::Kind::Postgres, &[&engine::ROOM]).await;
    create_table(&test.database).await;
    let (proxy, url) = Proxy::before(&test.url).await;
    let address: Address = url.parse().unwrap();
    let database = Database::open(&address).await.unwrap();
    let sink = if parallel { TestSink::parallel() } else { TestSink::serial() };
    let bench = Bench::over(database, Script::numbered(300, 10), sink);
    let id = bench.job().await;
    proxy.cut_every(every, cut);
    let going = bench.start();
    let job = going.rest_of(id).await;
    proxy.leave_alone();
    going.stop().await;
    assert!(proxy.cuts() > 3, "{} cuts", proxy.cuts());
    assert_eq!(job.status, Status::Completed, "{cut:?}: {:?}", job.reason);
    assert_eq!((job.fetched, job.counts.imported), (300, 300), "{cut:?}");
    assert_eq!(arrived(&test.database).await.len(), 300);
    let halved = "SELECT COUNT(*) FROM crossdock.quarantine";
    assert_eq!(sql::count(&test.database, halved).await, 0, "the network is no record's fault");
    bench.assert_accounted(id).await;
    // A page that is durable is not asked for again; a cut costs what was under way.
    let asked = bench.source().asked().len();
    assert!(asked <= 30 + 2 * proxy.cuts(), "{asked} pages for {} cuts", proxy.cuts());
    bench.database.close().await;
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_before_commit() {
    a_job_through_cuts(Cut::Before, 9, false).await;
    a_job_through_cuts(Cut::Before, 7, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_during_commit() {
    a_job_through_cuts(Cut::During, 9, false).await;
    a_job_through_cuts(Cut::During, 7, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_after_commit() {
    a_job_through_cuts(Cut::After, 9, false).await;
    a_job_through_cuts(Cut::After, 7, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_in_the_middle_of_a_statement() {
    a_job_through_cuts(Cut::Anywhere, 150, false).await;
    a_job_through_cuts(Cut::Anywhere, 130, true).await;
}

// The very answer of a page's COMMIT is lost: the page is neither asked for again nor staged twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_costs_no_page() {
    let test = TestDatabase::open(db::Kind::Postgres, &[&engine::ROOM]).await;
    create_table(&test.database).await;
    let (proxy, url) = Proxy::before(&test.url).await;
    let database = Database::open(&url.parse::<Address>().unwrap()).await.unwrap();
    let bench = Bench::over(database, Script::numbered(100, 10), TestSink::serial());
    let id = bench.job().await;
    proxy.cut_every(5, Cut::After);
    let going = bench.start();
    let job = going.rest_of(id).await;
    proxy.leave_alone();
    going.stop().await;
    assert!(proxy.cuts() >= 2);
    assert_eq!(job.fetched, 100);
    bench.assert_accounted(id).await;
    bench.database.close().await;
    test.close().await;
}
