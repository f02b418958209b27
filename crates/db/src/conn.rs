//! Transactions and read-only connections, and the [`Conn`] that both lend.

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::sqlite::SqliteConnection;
use sqlx::{Postgres, Sqlite, Transaction};

use crate::{Error, Result, Timestamp};

/// A borrowed connection to either database; see [`dispatch!`](crate::dispatch).
pub enum Conn<'c> {
    /// SQLite; use sqlx's own `query` functions on it.
    Sqlite(&'c mut SqliteConnection),
    /// Postgres; use the functions of [`Pg`], which keep the rule about unnamed statements.
    Postgres(Pg<'c>),
}

/// A borrowed Postgres connection that knows whether its statements may be named.
pub struct Pg<'c> {
    /// The connection to execute on.
    pub conn: &'c mut PgConnection,
    named: bool,
}

impl Pg<'_> {
    /// A query without a row type. Behind PgBouncer it stays unnamed.
    pub fn query<'q>(&self, sql: &'static str) -> sqlx::query::Query<'q, Postgres, PgArguments> {
        sqlx::query(sql).persistent(self.named)
    }

    /// A query whose rows become `O`. Behind PgBouncer it stays unnamed.
    pub fn query_as<'q, O>(&self, sql: &'static str) -> sqlx::query::QueryAs<'q, Postgres, O, PgArguments>
    where
        O: for<'r> sqlx::FromRow<'r, sqlx::postgres::PgRow>,
    {
        sqlx::query_as(sql).persistent(self.named)
    }

    /// A query for one value. Behind PgBouncer it stays unnamed.
    pub fn scalar<'q, O>(&self, sql: &'static str) -> sqlx::query::QueryScalar<'q, Postgres, O, PgArguments>
    where
        (O,): for<'r> sqlx::FromRow<'r, sqlx::postgres::PgRow>,
    {
        sqlx::query_scalar(sql).persistent(self.named)
    }
}

/// A write transaction. Dropping it rolls back.
///
/// On SQLite it began with `BEGIN IMMEDIATE` and is the only writer of this process.
pub struct Tx(TxKind);

enum TxKind {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres { tx: Transaction<'static, Postgres>, named: bool },
}

impl Tx {
    pub(crate) fn sqlite(tx: Transaction<'static, Sqlite>) -> Self {
        Self(TxKind::Sqlite(tx))
    }

    pub(crate) fn postgres(tx: Transaction<'static, Postgres>, named: bool) -> Self {
        Self(TxKind::Postgres { tx, named })
    }

    /// The connection inside the transaction.
    pub fn conn(&mut self) -> Conn<'_> {
        match &mut self.0 {
            TxKind::Sqlite(tx) => Conn::Sqlite(&mut *tx),
            TxKind::Postgres { tx, named } => Conn::Postgres(Pg { conn: &mut *tx, named: *named }),
        }
    }

    /// Commits.
    ///
    /// # Errors
    /// [`Error::CommitUnknown`] if the connection broke meanwhile: look the outcome up, never send it again.
    pub async fn commit(self) -> Result<()> {
        let result = match self.0 {
            TxKind::Sqlite(tx) => tx.commit().await,
            TxKind::Postgres { tx, .. } => tx.commit().await,
        };
        result.map_err(|error| Error::from(error).at_commit())
    }

    /// Rolls back and waits for it.
    pub async fn rollback(self) -> Result<()> {
        match self.0 {
            TxKind::Sqlite(tx) => tx.rollback().await?,
            TxKind::Postgres { tx, .. } => tx.rollback().await?,
        }
        Ok(())
    }

    /// Begins a savepoint. At most one is open at a time: savepoints here do not nest.
    pub async fn savepoint(&mut self) -> Result<()> {
        self.simple("SAVEPOINT part").await
    }

    /// Keeps what was done since [`Tx::savepoint`].
    pub async fn release(&mut self) -> Result<()> {
        self.simple("RELEASE SAVEPOINT part").await
    }

    /// Undoes what was done since [`Tx::savepoint`] and ends it.
    pub async fn undo(&mut self) -> Result<()> {
        self.simple("ROLLBACK TO SAVEPOINT part").await?;
        self.release().await
    }

    async fn simple(&mut self, sql: &'static str) -> Result<()> {
        match self.conn() {
            Conn::Sqlite(conn) => sqlx::raw_sql(sql).execute(conn).await.map(drop)?,
            Conn::Postgres(pg) => sqlx::raw_sql(sql).execute(pg.conn).await.map(drop)?,
        }
        Ok(())
    }
}

/// A connection for reading: a pooled one, or behind PgBouncer a transaction that is never committed.
pub struct Reader(ReaderKind);

enum ReaderKind {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>),
    Pooled(Transaction<'static, Postgres>),
}

impl Reader {
    pub(crate) fn sqlite(conn: PoolConnection<Sqlite>) -> Self {
        Self(ReaderKind::Sqlite(conn))
    }

    pub(crate) fn postgres(conn: PoolConnection<Postgres>) -> Self {
        Self(ReaderKind::Postgres(conn))
    }

    pub(crate) fn pooled(tx: Transaction<'static, Postgres>) -> Self {
        Self(ReaderKind::Pooled(tx))
    }

    /// The connection to read from.
    pub fn conn(&mut self) -> Conn<'_> {
        match &mut self.0 {
            ReaderKind::Sqlite(conn) => Conn::Sqlite(&mut *conn),
            ReaderKind::Postgres(conn) => Conn::Postgres(Pg { conn: &mut *conn, named: true }),
            ReaderKind::Pooled(tx) => Conn::Postgres(Pg { conn: &mut *tx, named: false }),
        }
    }
}

/// The database's own clock, which leases and deadlines are judged by.
pub async fn now(conn: Conn<'_>) -> Result<Timestamp> {
    Ok(match conn {
        Conn::Sqlite(conn) => {
            let micros: i64 = sqlx::query_scalar("SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)")
                .fetch_one(conn)
                .await?;
            Timestamp::from_micros(micros)
        }
        Conn::Postgres(pg) => pg.scalar("SELECT clock_timestamp()").fetch_one(&mut *pg.conn).await?,
    })
}
