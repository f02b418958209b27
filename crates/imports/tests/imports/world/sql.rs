//! Looking into the tables, and spoiling them.

use db::Conn;
use sqlx::AssertSqlSafe;

use super::World;

impl World {
    /// The engine's tables have no schema on SQLite.
    fn dialect(&self, text: &str) -> String {
        match self.database.kind() {
            db::Kind::Sqlite => text.replace("crossdock.", ""),
            db::Kind::Postgres => text.to_owned(),
        }
    }

    /// One number.
    pub(crate) async fn count(&self, text: &str) -> i64 {
        let text = format!("SELECT CAST(({}) AS BIGINT)", self.dialect(text));
        let mut reader = self.database.read().await.unwrap();
        match reader.conn() {
            Conn::Sqlite(conn) => sqlx::query_scalar(AssertSqlSafe(text)).fetch_one(conn).await.unwrap(),
            Conn::Postgres(pg) => sqlx::query_scalar(AssertSqlSafe(text)).fetch_one(pg.conn).await.unwrap(),
        }
    }

    /// Rows of one text each.
    pub(crate) async fn texts(&self, text: &str) -> Vec<String> {
        let text = self.dialect(text);
        let mut reader = self.database.read().await.unwrap();
        match reader.conn() {
            Conn::Sqlite(conn) => sqlx::query_scalar(AssertSqlSafe(text)).fetch_all(conn).await.unwrap(),
            Conn::Postgres(pg) => sqlx::query_scalar(AssertSqlSafe(text)).fetch_all(pg.conn).await.unwrap(),
        }
    }

    /// Runs a statement behind the product's back; the rows affected.
    pub(crate) async fn execute(&self, text: &str) -> u64 {
        let text = self.dialect(text);
        let mut tx = self.database.begin().await.unwrap();
        let rows = match tx.conn() {
            Conn::Sqlite(conn) => {
                sqlx::raw_sql(AssertSqlSafe(text)).execute(conn).await.unwrap().rows_affected()
            }
            Conn::Postgres(pg) => {
                sqlx::raw_sql(AssertSqlSafe(text)).execute(pg.conn).await.unwrap().rows_affected()
            }
        };
        tx.commit().await.unwrap();
        rows
    }
}
