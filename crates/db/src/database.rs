//! An open database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use crate::address::Target;
use crate::{Address, Error, Kind, Reader, Result, Tx};

/// How long a caller waits for a connection before [`Error::Connection`].
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long SQLite waits for another process's write transaction before [`Error::Retry`].
const SQLITE_BUSY_TIMEOUT: Duration = Duration::from_secs(20);
/// Between two attempts to open a SQLite file that another process is creating.
const SQLITE_OPEN_PAUSE: Duration = Duration::from_millis(20);
/// Pages that the writer keeps, in KiB: most of the indexes that an import of some hundred thousand links touches.
const SQLITE_WRITER_CACHE: &str = "-65536";
/// Pages that each reader keeps, in KiB; the operating system keeps the rest of the file.
const SQLITE_READER_CACHE: &str = "-8192";
/// Pages in the write-ahead log (4 KiB each) after which a commit copies them into the file.
const SQLITE_LOG_PAGES: u32 = 4_000;
/// The same while much is written: a page that is written again and again is copied once. About 260 MB on disk.
const SQLITE_BULK_LOG_PAGES: u32 = 64_000;
/// How long after the last bulk transaction the log may stay that long.
const SQLITE_BULK_LASTS: Duration = Duration::from_secs(10);
/// What the log is cut to once it was copied, in bytes; not while much is written, because a file that grows takes longer
/// to sync than one that is written over.
const SQLITE_LOG_KEPT: i64 = 64 * 1024 * 1024;
/// Readers of one SQLite file; they never wait for the writer (WAL).
const SQLITE_READERS: u32 = 4;
/// Connections of one process to Postgres.
const POSTGRES_CONNECTIONS: u32 = 16;

/// An open database. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    pools: Pools,
    address: Address,
}

#[derive(Clone)]
enum Pools {
    Sqlite { writer: SqlitePool, readers: SqlitePool, last_bulk: Arc<Mutex<Option<Instant>>> },
    Postgres { pool: PgPool, pooled: bool, idle_seconds: u16 },
}

impl Database {
    /// Opens the database, creating a missing SQLite file. Migrates nothing.
    ///
    /// # Errors
    /// [`Error::Connection`] or [`Error::Other`] with the address (without its password) in the log.
    pub async fn open(address: &Address) -> Result<Self> {
        let give_up = Instant::now() + SQLITE_BUSY_TIMEOUT;
        loop {
            match Self::try_open(address).await {
                // Turning a new file's journal into a WAL does not wait for another process that does the same:
                // SQLite answers SQLITE_BUSY at once, without its busy handler.
                Err(Error::Retry(_)) if Instant::now() < give_up => {
                    tokio::time::sleep(SQLITE_OPEN_PAUSE).await;
                }
                done => return done,
            }
        }
    }

    async fn try_open(address: &Address) -> Result<Self> {
        let pools = match &address.0 {
            Target::Sqlite(path) => {
                let options = SqliteConnectOptions::new()
                    .filename(path)
                    .create_if_missing(true)
                    .journal_mode(SqliteJournalMode::Wal)
                    // FULL: a commit that was answered survives a power cut.
                    .synchronous(SqliteSynchronous::Full)
                    .foreign_keys(true)
                    .busy_timeout(SQLITE_BUSY_TIMEOUT)
                    .pragma("temp_store", "memory")
                    .pragma("journal_size_limit", SQLITE_LOG_KEPT.to_string())
                    .pragma("wal_autocheckpoint", SQLITE_LOG_PAGES.to_string());
                let writer = SqlitePoolOptions::new()
                    .max_connections(1)
                    .acquire_timeout(ACQUIRE_TIMEOUT)
                    .idle_timeout(None)
                    .max_lifetime(None)
                    .connect_with(options.clone().pragma("cache_size", SQLITE_WRITER_CACHE))
                    .await?;
                let readers = SqlitePoolOptions::new()
                    .max_connections(SQLITE_READERS)
                    .acquire_timeout(ACQUIRE_TIMEOUT)
                    .connect_with(
                        options.pragma("cache_size", SQLITE_READER_CACHE).pragma("query_only", "on"),
                    )
                    .await?;
                Pools::Sqlite { writer, readers, last_bulk: Arc::default() }
            }
            Target::Postgres { options, pooled, idle_seconds, .. } => {
                let pool = PgPoolOptions::new()
                    .max_connections(POSTGRES_CONNECTIONS)
                    .acquire_timeout(ACQUIRE_TIMEOUT)
                    .connect_with((**options).clone())
                    .await?;
                Pools::Postgres { pool, pooled: *pooled, idle_seconds: *idle_seconds }
            }
        };
        Ok(Self { pools, address: address.clone() })
    }

    /// Which database this is.
    pub fn kind(&self) -> Kind {
        self.address.kind()
    }

    /// Where it is; its `Display` leaves the password out.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Begins a write transaction.
    ///
    /// On Postgres the server ends it when this process is silent in it for as long as the address says: one that is
    /// frozen or cut off must not hold its locks for ever.
    pub async fn begin(&self) -> Result<Tx> {
        Ok(match &self.pools {
            Pools::Sqlite { writer, last_bulk, .. } => {
                let over = last_bulk.lock().take_if(|last| last.elapsed() > SQLITE_BULK_LASTS).is_some();
                if over {
                    keep_log(writer, SQLITE_LOG_PAGES, SQLITE_LOG_KEPT).await?;
                }
                Tx::sqlite(writer.begin_with("BEGIN IMMEDIATE").await?)
            }
            Pools::Postgres { pool, pooled, idle_seconds } => {
                Tx::postgres(pool.begin_with(begin(*idle_seconds, "")).await?, !pooled)
            }
        })
    }

    /// Begins a write transaction for statements over many rows at once.
    ///
    /// On Postgres such a statement is planned anew each time: a plan kept from when a table was empty reads the whole
    /// table for every chunk once it has grown. On SQLite the write-ahead log may grow longer before it is copied into
    /// the file.
    pub async fn begin_bulk(&self) -> Result<Tx> {
        const PLANS: &str = "; SET LOCAL plan_cache_mode = force_custom_plan";
        match &self.pools {
            Pools::Sqlite { writer, last_bulk, .. } => {
                let first = last_bulk.lock().replace(Instant::now()).is_none();
                if first {
                    keep_log(writer, SQLITE_BULK_LOG_PAGES, -1).await?;
                }
                Ok(Tx::sqlite(writer.begin_with("BEGIN IMMEDIATE").await?))
            }
            Pools::Postgres { pool, pooled, idle_seconds } => {
                Ok(Tx::postgres(pool.begin_with(begin(*idle_seconds, PLANS)).await?, !pooled))
            }
        }
    }

    /// A connection for reading.
    pub async fn read(&self) -> Result<Reader> {
        Ok(match &self.pools {
            Pools::Sqlite { readers, .. } => Reader::sqlite(readers.acquire().await?),
            Pools::Postgres { pool, pooled: false, .. } => Reader::postgres(pool.acquire().await?),
            Pools::Postgres { pool, pooled: true, .. } => Reader::pooled(pool.begin().await?),
        })
    }

    /// Copies a SQLite database, as it is now, into a new file, while others go on writing.
    ///
    /// # Errors
    /// [`Error::Address`] on Postgres (use `pg_dump`), or if the file exists.
    pub async fn backup(&self, file: &std::path::Path) -> Result<()> {
        let Pools::Sqlite { writer, .. } = &self.pools else {
            return Err(Error::Address(
                "a Postgres database is backed up with pg_dump; see docs/operating.md".into(),
            ));
        };
        if file.exists() {
            return Err(Error::Address(format!("{} exists already; name a new file", file.display())));
        }
        let path = file.to_str().ok_or_else(|| {
            Error::Address(format!("{} is not valid UTF-8, which SQLite needs", file.display()))
        })?;
        let mut conn = writer.acquire().await?;
        sqlx::query("VACUUM INTO ?").bind(path).execute(&mut *conn).await?;
        Ok(())
    }

    /// Makes a database on the same Postgres server. Names are ASCII letters, digits and `_` only, because they cannot be
    /// bound.
    ///
    /// # Errors
    /// [`Error::Address`] on SQLite or for another name.
    pub async fn create_database(&self, name: &str) -> Result<()> {
        self.on_server(format!("CREATE DATABASE {}", plain(name)?)).await
    }

    /// Drops a database of the same Postgres server, ending its connections.
    ///
    /// # Errors
    /// As [`Database::create_database`].
    pub async fn drop_database(&self, name: &str) -> Result<()> {
        self.on_server(format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", plain(name)?)).await
    }

    async fn on_server(&self, statement: String) -> Result<()> {
        let Pools::Postgres { pool, .. } = &self.pools else {
            return Err(Error::Address("a SQLite database is a file; there is no server to ask".into()));
        };
        let mut conn = pool.acquire().await?;
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *conn).await?;
        Ok(())
    }

    /// Closes all connections, after those in use were given back.
    pub async fn close(&self) {
        match &self.pools {
            Pools::Sqlite { writer, readers, .. } => {
                readers.close().await;
                writer.close().await;
            }
            Pools::Postgres { pool, .. } => pool.close().await,
        }
    }
}

/// What begins a transaction on Postgres, in one message. It holds for the transaction alone, so a pooler need not know.
fn begin(idle_seconds: u16, more: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("BEGIN; SET LOCAL idle_in_transaction_session_timeout = '{idle_seconds}s'{more}"))
}

/// Sets after how many pages a commit of the writer copies the log into the file, and to how many bytes it is cut then
/// (-1: not at all).
async fn keep_log(writer: &SqlitePool, pages: u32, bytes: i64) -> Result<()> {
    let mut conn = writer.acquire().await?;
    let pragmas = format!("PRAGMA wal_autocheckpoint = {pages}; PRAGMA journal_size_limit = {bytes}");
    sqlx::raw_sql(AssertSqlSafe(pragmas)).execute(&mut *conn).await?;
    Ok(())
}

fn plain(name: &str) -> Result<&str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !name.is_empty() && name.bytes().all(allowed) {
        Ok(name)
    } else {
        Err(Error::Address(format!("'{name}' is not a plain database name")))
    }
}
