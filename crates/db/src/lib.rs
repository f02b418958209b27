//! Opening, migrating and talking to the two databases Crossdock knows: SQLite, the embedded default,
//! and Postgres, for several processes or machines.
//!
//! This crate owns no table. It gives the rooms above it
//!
//! - [`Database`]: an open database, from a URL;
//! - [`Tx`] and [`Reader`]: a write transaction and a read-only connection, each of which lends a [`Conn`];
//! - [`dispatch!`]: the one way in which a room chooses between its twin files `store/sqlite.rs` and
//!   `store/postgres.rs`;
//! - [`Room`]: the migrations of one room, with their own migration table;
//! - [`Error`]: what the caller can do about a failure (retry, fix the data, look the commit up, give up);
//! - [`Id`] and [`Timestamp`]: column types whose encoding differs between the two.
//!
//! It refuses to know what the tables mean. On Postgres it keeps no session state: no advisory locks, no
//! `LISTEN`, and with `?pgbouncer=true` in the URL every statement is unnamed and inside `BEGIN`, so that
//! PgBouncer's transaction mode works.
//!
//! ```no_run
//! # use crossdock_db as db;
//! # async fn example() -> Result<(), db::Error> {
//! let database = db::Database::open(&"sqlite://crossdock.db".parse()?).await?;
//! let mut tx = database.begin().await?;
//! let now = db::now(tx.conn()).await?;
//! tx.commit().await?;
//! # let _ = now; Ok(()) }
//! ```

mod address;
mod conn;
mod database;
mod error;
mod id;
mod migrate;
#[cfg(feature = "testing")]
pub mod testing;
mod timestamp;

pub use address::{Address, Kind};
pub use conn::{Conn, Pg, Reader, Tx, now};
pub use database::Database;
pub use error::Error;
pub use id::{Id, IdError};
pub use migrate::{Migration, Room};
pub use timestamp::Timestamp;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Runs `sqlite::NAME(conn, args…)` or `postgres::NAME(pg, args…)`, whichever the [`Conn`] is.
///
/// The twin modules must be in scope under these two names; the functions have the same name, arguments and
/// result.
///
/// ```text
/// db::dispatch!(tx.conn(), insert_page(&page))
/// ```
#[macro_export]
macro_rules! dispatch {
    ($conn:expr, $name:ident($($arg:expr),* $(,)?)) => {
        match $conn {
            $crate::Conn::Sqlite(conn) => sqlite::$name(conn, $($arg),*).await,
            $crate::Conn::Postgres(mut pg) => postgres::$name(&mut pg, $($arg),*).await,
        }
    };
}
