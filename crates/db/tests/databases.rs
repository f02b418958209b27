//! What an open database promises, on both.

#![allow(clippy::unwrap_used, missing_docs)] // Tests fail by panicking.

use crossdock_db as db;
use db::testing::TestDatabase;
use db::{Conn, Kind, Migration, Room};

const NOTES: Room = db::room!(
    "notes",
    &[Migration {
        version: 1,
        name: "notes",
        sqlite: "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT",
        postgres: "CREATE TABLE notes (id BIGINT PRIMARY KEY, text TEXT NOT NULL CONSTRAINT notes_text UNIQUE)",
    }]
);

mod sqlite {
    pub(crate) async fn insert(
        conn: &mut sqlx::SqliteConnection,
        id: i64,
        text: &str,
    ) -> super::db::Result<()> {
        sqlx::query("INSERT INTO notes (id, text) VALUES (?, ?)").bind(id).bind(text).execute(conn).await?;
        Ok(())
    }
    pub(crate) async fn count(conn: &mut sqlx::SqliteConnection) -> super::db::Result<i64> {
        Ok(sqlx::query_scalar("SELECT count(*) FROM notes").fetch_one(conn).await?)
    }
}

mod postgres {
    pub(crate) async fn insert(pg: &mut super::db::Pg<'_>, id: i64, text: &str) -> super::db::Result<()> {
        pg.query("INSERT INTO notes (id, text) VALUES ($1, $2)")
            .bind(id)
            .bind(text)
            .execute(&mut *pg.conn)
            .await?;
        Ok(())
    }
    pub(crate) async fn count(pg: &mut super::db::Pg<'_>) -> super::db::Result<i64> {
        Ok(pg.scalar("SELECT count(*) FROM notes").fetch_one(&mut *pg.conn).await?)
    }
}

db::on_both!(a_savepoint_undoes_only_its_part, [&NOTES], |database: db::Database| async move {
    let mut tx = database.begin().await.unwrap();
    db::dispatch!(tx.conn(), insert(1, "kept")).unwrap();
    tx.savepoint().await.unwrap();
    db::dispatch!(tx.conn(), insert(2, "undone")).unwrap();
    let clash = db::dispatch!(tx.conn(), insert(3, "kept")).unwrap_err();
    assert!(
        matches!(&clash, db::Error::Unique { constraint, .. } if constraint.contains("notes") && constraint.contains("text")),
        "{clash:?}"
    );
    tx.undo().await.unwrap();
    tx.commit().await.unwrap();
    let mut reader = database.read().await.unwrap();
    assert_eq!(db::dispatch!(reader.conn(), count()).unwrap(), 1);
});

db::on_both!(a_dropped_transaction_leaves_nothing, [&NOTES], |database: db::Database| async move {
    let mut tx = database.begin().await.unwrap();
    db::dispatch!(tx.conn(), insert(1, "gone")).unwrap();
    drop(tx);
    let mut tx = database.begin().await.unwrap();
    assert_eq!(db::dispatch!(tx.conn(), count()).unwrap(), 0);
});

db::on_both!(migrating_many_times_at_once_applies_each_step_once, [], |database: db::Database| async move {
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let database = database.clone();
            tokio::spawn(async move { database.migrate(&NOTES).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let edited = Room {
        migrations: &[Migration { version: 1, name: "notes", sqlite: "SELECT 1", postgres: "SELECT 1" }],
        ..NOTES
    };
    let refused = database.migrate(&edited).await.unwrap_err();
    assert!(refused.to_string().contains("was edited"), "{refused}");
});

const SHELVED: Room = db::room!(
    "shelved",
    schema "shelf",
    &[Migration {
        version: 1,
        name: "shelves",
        sqlite: "CREATE TABLE shelves (id INTEGER PRIMARY KEY) STRICT",
        postgres: "CREATE TABLE shelf.shelves (id BIGINT PRIMARY KEY)",
    }]
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_meet_a_new_database_at_once_all_migrate_it() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        for _ in 0..5 {
            let test = TestDatabase::empty(kind).await;
            // A SQLite file that nobody has opened yet, in the same folder.
            let url = test.url.replace("/test.db", "/new.db");
            let processes: Vec<_> = (0..6)
                .map(|_| {
                    let address: db::Address = url.parse().unwrap();
                    tokio::spawn(async move {
                        let database = db::Database::open(&address).await?;
                        database.migrate(&SHELVED).await?;
                        database.migrate(&NOTES).await?;
                        database.close().await;
                        Ok::<(), db::Error>(())
                    })
                })
                .collect();
            for process in processes {
                process.await.unwrap().unwrap();
            }
            test.close().await;
        }
    }
}

db::on_both!(the_database_tells_the_time, [], |database: db::Database| async move {
    let mut reader = database.read().await.unwrap();
    let now = db::now(reader.conn()).await.unwrap();
    let apart = now.micros().abs_diff(db::Timestamp::here().micros());
    assert!(apart < 60_000_000, "{now}");
});

db::on_both!(a_timestamp_comes_back_to_the_microsecond, [], |database: db::Database| async move {
    let stamp = db::Timestamp::from_micros(1_769_847_300_123_456);
    let mut reader = database.read().await.unwrap();
    let back: db::Timestamp = match reader.conn() {
        Conn::Sqlite(conn) => sqlx::query_scalar("SELECT ?").bind(stamp).fetch_one(conn).await.unwrap(),
        Conn::Postgres(pg) => {
            pg.scalar("SELECT $1::timestamptz").bind(stamp).fetch_one(&mut *pg.conn).await.unwrap()
        }
    };
    assert_eq!(back, stamp);
});

#[tokio::test]
async fn a_backup_opens_as_a_database_and_never_overwrites() {
    let test = TestDatabase::open(Kind::Sqlite, &[&NOTES]).await;
    let mut tx = test.database.begin().await.unwrap();
    db::dispatch!(tx.conn(), insert(7, "saved")).unwrap();
    tx.commit().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("copy.db");
    test.database.backup(&file).await.unwrap();
    assert!(test.database.backup(&file).await.unwrap_err().to_string().contains("exists already"));
    let copy = db::Database::open(&db::Address::sqlite(&file)).await.unwrap();
    let mut reader = copy.read().await.unwrap();
    assert_eq!(db::dispatch!(reader.conn(), count()).unwrap(), 1);
}

#[tokio::test]
async fn the_log_of_a_sqlite_file_may_grow_while_much_is_written() {
    let test = TestDatabase::empty(Kind::Sqlite).await;
    for (bulk, pages) in [(false, 4_000_i64), (true, 64_000), (true, 64_000)] {
        let mut tx = if bulk {
            test.database.begin_bulk().await.unwrap()
        } else {
            test.database.begin().await.unwrap()
        };
        let db::Conn::Sqlite(conn) = tx.conn() else { panic!("SQLite") };
        let set: i64 = sqlx::query_scalar("PRAGMA wal_autocheckpoint").fetch_one(conn).await.unwrap();
        assert_eq!(set, pages, "bulk: {bulk}");
        tx.rollback().await.unwrap();
    }
    test.close().await;
}

// A process that is frozen inside a transaction holds its locks, and others wait for them; the server ends it.
#[tokio::test]
async fn the_server_ends_a_transaction_in_which_nobody_speaks() {
    let test = TestDatabase::open(Kind::Postgres, &[]).await;
    for bulk in [false, true] {
        let mut tx =
            if bulk { test.database.begin_bulk().await } else { test.database.begin().await }.unwrap();
        let Conn::Postgres(pg) = tx.conn() else { unreachable!() };
        let limit: String =
            pg.scalar("SHOW idle_in_transaction_session_timeout").fetch_one(&mut *pg.conn).await.unwrap();
        assert_eq!(limit, "1min");
        tx.rollback().await.unwrap();
    }
    test.close().await;
}
