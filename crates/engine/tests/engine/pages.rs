//! The page transaction and the fetcher's fence, at the store.

use std::time::Duration;

use engine::store::pages::{self, Commit, NewChunk};
use engine::store::partitions::{self, Checkpoint};
use engine::{Cursor, Fingerprint, JobId, PartitionSpec, Place, Position, StagedRecord};

use crate::support::source::{Script, record};
use crate::support::{Bench, sql};

async fn partitioned(bench: &Bench) -> JobId {
    let job = bench.job().await;
    let mut tx = bench.database.begin().await.unwrap();
    let specs = [PartitionSpec { key: "p0".into(), expected: None, left_out: None, closing: false }];
    partitions::insert(tx.conn(), job, &specs).await.unwrap();
    tx.commit().await.unwrap();
    job
}

async fn take(bench: &Bench, job: JobId, holder: &str) -> Option<Checkpoint> {
    let mut tx = bench.database.begin().await.unwrap();
    let taken = partitions::take(tx.conn(), job, holder, 1, true, false, &[]).await.unwrap();
    tx.commit().await.unwrap();
    taken
}

fn at(cursor: &str) -> Position {
    Position::At(Cursor::new(cursor).unwrap())
}

/// The first page of a job: two records, one chunk.
fn first_page(job: JobId, epoch: i64) -> Commit {
    let records = (0..2)
        .map(|ordinal| {
            let raw = record(ordinal as usize);
            StagedRecord {
                place: Place { partition: 0, segment: 0, ordinal },
                fingerprint: Fingerprint::of(&raw),
                raw,
                duplicate_of: None,
            }
        })
        .collect();
    Commit {
        job,
        part: 0,
        epoch,
        segment: 0,
        run: 1,
        anchor: Position::Beginning.to_stored(),
        from: Position::Beginning,
        to: at("c1"),
        pages: vec![(Position::Beginning, 2)],
        first_page: 0,
        records,
        staged_before: 0,
        chunks: vec![NewChunk { first_ordinal: 0, records: 2 }],
        close: false,
        retries: 0,
        total: None,
        fetch_micros: 5,
        lease_seconds: 1,
    }
}

/// Position and staged, and how many records and rows stand in the tables that a page writes.
async fn state(bench: &Bench) -> (String, Vec<i64>) {
    let position = sql::texts(&bench.database, "SELECT position FROM crossdock.partitions").await.remove(0);
    let staged = "SELECT COALESCE(SUM(records), 0) FROM crossdock.staged_pages";
    let mut rows = vec![sql::count(&bench.database, staged).await];
    for table in ["pages", "segments", "chunks"] {
        rows.push(sql::count(&bench.database, &format!("SELECT COUNT(*) FROM crossdock.{table}")).await);
    }
    (position, rows)
}

db::on_both!(a_page_is_there_with_its_cursor_or_not_at_all, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(2, 2)).await;
    let job = partitioned(&bench).await;
    let checkpoint = take(&bench, job, "me").await.unwrap();
    let page = first_page(job, checkpoint.epoch);
    let mut tx = bench.database.begin().await.unwrap();
    assert!(pages::commit(tx.conn(), &page).await.unwrap());
    tx.rollback().await.unwrap();
    assert_eq!(state(&bench).await, ("1:beginning".into(), vec![0, 0, 0, 0]), "before the commit");
    let mut tx = bench.database.begin().await.unwrap();
    assert!(pages::commit(tx.conn(), &page).await.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(state(&bench).await, ("1:at:c1".into(), vec![2, 1, 1, 1]), "after the commit");
});

db::on_both!(a_page_does_not_commit_twice, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(2, 2)).await;
    let job = partitioned(&bench).await;
    let epoch = take(&bench, job, "me").await.unwrap().epoch;
    for wanted in [true, false] {
        let mut tx = bench.database.begin().await.unwrap();
        assert_eq!(pages::commit(tx.conn(), &first_page(job, epoch)).await.unwrap(), wanted);
        tx.commit().await.unwrap();
    }
    assert_eq!(state(&bench).await.1, vec![2, 1, 1, 1]);
});

db::on_both!(a_fetcher_that_was_taken_over_commits_nothing, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(2, 2)).await;
    let job = partitioned(&bench).await;
    let old = take(&bench, job, "old").await.unwrap();
    assert!(take(&bench, job, "new").await.is_none(), "the lease is held");
    sql::execute(&bench.database, "UPDATE crossdock.partitions SET lease_until = NULL").await;
    let new = take(&bench, job, "new").await.unwrap();
    assert!(new.epoch > old.epoch);
    let mut tx = bench.database.begin().await.unwrap();
    assert!(!pages::commit(tx.conn(), &first_page(job, old.epoch)).await.unwrap());
    assert!(!partitions::renew(tx.conn(), job, 0, old.epoch, 60).await.unwrap());
    assert!(!pages::flush_chunk(tx.conn(), job, 0, old.epoch).await.unwrap());
    partitions::release(tx.conn(), job, 0, old.epoch).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(state(&bench).await.1, vec![0, 0, 0, 0]);
    assert!(take(&bench, job, "third").await.is_none(), "the old fetcher gave away what was not its own");
});

// Who takes over waits for the lease to end; a process without a token that looks at that very moment must not take the
// job for abandoned.
db::on_both!(a_lease_that_has_just_ended_is_not_unheld_yet, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(2, 2)).await;
    let job = partitioned(&bench).await;
    let unheld = async |grace: u64| {
        let mut reader = bench.database.read().await.unwrap();
        partitions::any_unheld(reader.conn(), job, Duration::from_secs(grace)).await.unwrap()
    };
    assert!(unheld(60).await, "nobody ever held it");
    take(&bench, job, "me").await.unwrap();
    assert!(!unheld(0).await);
    let past = match bench.database.kind() {
        db::Kind::Sqlite => "UPDATE partitions SET lease_until = lease_until - 10000000",
        db::Kind::Postgres => {
            "UPDATE crossdock.partitions SET lease_until = lease_until - INTERVAL '10 seconds'"
        }
    };
    sql::execute(&bench.database, past).await;
    assert!(!unheld(60).await);
    assert!(unheld(1).await);
});

// A fetcher that froze while it committed a page holds the row until the server ends its transaction; whoever is to take
// over waits for that, too.
#[tokio::test]
async fn a_partition_whose_row_is_locked_is_not_unheld() {
    let test = db::testing::TestDatabase::open(db::Kind::Postgres, &[&engine::ROOM]).await;
    let bench = Bench::serial(test.database.clone(), Script::numbered(2, 2)).await;
    let job = partitioned(&bench).await;
    let unheld = async || {
        let mut reader = bench.database.read().await.unwrap();
        partitions::any_unheld(reader.conn(), job, Duration::from_secs(1)).await.unwrap()
    };
    let mut frozen = bench.database.begin().await.unwrap();
    assert!(partitions::take(frozen.conn(), job, "me", 1, true, false, &[]).await.unwrap().is_some());
    assert!(!unheld().await);
    frozen.rollback().await.unwrap();
    assert!(unheld().await);
    test.close().await;
}

#[tokio::test]
async fn a_partition_that_was_given_back_is_not_unheld_yet() {
    let test = db::testing::TestDatabase::open(db::Kind::Postgres, &[&engine::ROOM]).await;
    let bench = Bench::serial(test.database.clone(), Script::numbered(2, 2)).await;
    let job = partitioned(&bench).await;
    let epoch = take(&bench, job, "me").await.unwrap().epoch;
    let mut tx = bench.database.begin().await.unwrap();
    partitions::release(tx.conn(), job, 0, epoch).await.unwrap();
    tx.commit().await.unwrap();
    let mut reader = bench.database.read().await.unwrap();
    assert!(!partitions::any_unheld(reader.conn(), job, Duration::from_secs(60)).await.unwrap());
    drop(reader);
    assert!(take(&bench, job, "another").await.is_some(), "it is free");
    test.close().await;
}

db::on_both!(the_epoch_rises_with_every_taking, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(2, 2)).await;
    let job = partitioned(&bench).await;
    let mut last = 0;
    for _ in 0..20 {
        let epoch = take(&bench, job, "me").await.unwrap().epoch;
        assert!(epoch > last, "{epoch} after {last}");
        last = epoch;
    }
});

db::on_both!(a_lease_that_ran_out_is_not_renewed, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(2, 2)).await;
    let job = partitioned(&bench).await;
    let epoch = take(&bench, job, "me").await.unwrap().epoch;
    let renew = async || {
        let mut tx = bench.database.begin().await.unwrap();
        let held = partitions::renew(tx.conn(), job, 0, epoch, 1).await.unwrap();
        tx.commit().await.unwrap();
        held
    };
    assert!(renew().await);
    let past = match bench.database.kind() {
        db::Kind::Sqlite => "UPDATE partitions SET lease_until = lease_until - 2000000",
        db::Kind::Postgres => {
            "UPDATE crossdock.partitions SET lease_until = lease_until - INTERVAL '2 seconds'"
        }
    };
    sql::execute(&bench.database, past).await;
    assert!(!renew().await, "somebody else may have begun");
});

db::on_both!(a_cancelled_job_takes_no_more_pages, [&engine::ROOM], |database| async move {
    let bench = Bench::serial(database, Script::numbered(2, 2)).await;
    let job = partitioned(&bench).await;
    let epoch = take(&bench, job, "me").await.unwrap().epoch;
    assert!(bench.store.move_job(job, engine::Status::Cancelled, None, None).await.unwrap());
    let mut tx = bench.database.begin().await.unwrap();
    assert!(!pages::commit(tx.conn(), &first_page(job, epoch)).await.unwrap());
});
