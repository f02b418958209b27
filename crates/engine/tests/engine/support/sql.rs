//! Looking into the tables, and spoiling them.

use db::{Conn, Database};
use sqlx::AssertSqlSafe;

/// On SQLite the engine's tables have no schema.
fn dialect(database: &Database, text: &str) -> String {
    match database.kind() {
        db::Kind::Sqlite => text.replace("crossdock.", ""),
        db::Kind::Postgres => text.to_owned(),
    }
}

/// One number.
pub(crate) async fn count(database: &Database, text: &str) -> i64 {
    let text = format!("SELECT CAST(({}) AS BIGINT)", dialect(database, text));
    let mut reader = database.read().await.unwrap();
    match reader.conn() {
        Conn::Sqlite(conn) => sqlx::query_scalar(AssertSqlSafe(text)).fetch_one(conn).await.unwrap(),
        Conn::Postgres(pg) => {
            sqlx::query_scalar(AssertSqlSafe(text)).persistent(false).fetch_one(pg.conn).await.unwrap()
        }
    }
}

/// Rows of one text each.
pub(crate) async fn texts(database: &Database, text: &str) -> Vec<String> {
    let text = dialect(database, text);
    let mut reader = database.read().await.unwrap();
    match reader.conn() {
        Conn::Sqlite(conn) => sqlx::query_scalar(AssertSqlSafe(text)).fetch_all(conn).await.unwrap(),
        Conn::Postgres(pg) => {
            sqlx::query_scalar(AssertSqlSafe(text)).persistent(false).fetch_all(pg.conn).await.unwrap()
        }
    }
}

/// Runs statements; the rows affected by the last.
pub(crate) async fn execute(database: &Database, text: &str) -> u64 {
    let text = dialect(database, text);
    let mut tx = database.begin().await.unwrap();
    let rows = match tx.conn() {
        Conn::Sqlite(conn) => sqlx::raw_sql(AssertSqlSafe(text)).execute(conn).await.unwrap().rows_affected(),
        Conn::Postgres(pg) => {
            sqlx::raw_sql(AssertSqlSafe(text)).execute(pg.conn).await.unwrap().rows_affected()
        }
    };
    tx.commit().await.unwrap();
    rows
}
