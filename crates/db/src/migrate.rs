//! Migrations: each room brings its own, in order, and keeps its own table of what was applied.

use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::{Conn, Database, Error, Result, Timestamp};

/// One step of a room's schema, in both dialects. Once released it is never edited.
pub struct Migration {
    /// Rising from 1.
    pub version: i64,
    /// A few words for people.
    pub name: &'static str,
    /// The statements for SQLite.
    pub sqlite: &'static str,
    /// The statements for Postgres.
    pub postgres: &'static str,
}

/// The migrations of one room and the statements about its migration table; made by [`room!`](crate::room).
pub struct Room {
    /// The room's name, which begins its migration table's.
    pub name: &'static str,
    /// In rising order of version.
    pub migrations: &'static [Migration],
    #[doc(hidden)]
    pub create: [&'static str; 2],
    #[doc(hidden)]
    pub lock: &'static str,
    #[doc(hidden)]
    pub list: [&'static str; 2],
    #[doc(hidden)]
    pub insert: [&'static str; 2],
}

/// Declares a [`Room`]: `db::room!("links", &[migration, …])`, or `db::room!("engine", schema "crossdock", &[…])` for
/// a room whose tables live in a schema of their own on Postgres.
#[macro_export]
macro_rules! room {
    ($name:literal, schema $schema:literal, $migrations:expr) => {
        $crate::room!(
            @ $name,
            concat!($schema, ".", $name, "_migrations"),
            concat!("CREATE SCHEMA IF NOT EXISTS ", $schema, ";"),
            $migrations
        )
    };
    ($name:literal, $migrations:expr) => {
        $crate::room!(@ $name, concat!($name, "_migrations"), "", $migrations)
    };
    (@ $name:literal, $pg:expr, $schema:expr, $migrations:expr) => {
        $crate::Room {
            name: $name,
            migrations: $migrations,
            create: [
                concat!(
                    "CREATE TABLE IF NOT EXISTS ", $name, "_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, ",
                    "checksum BLOB NOT NULL, applied_at INTEGER NOT NULL) STRICT"
                ),
                concat!(
                    $schema, "CREATE TABLE IF NOT EXISTS ", $pg, " (version BIGINT PRIMARY KEY, name TEXT NOT NULL, ",
                    "checksum BYTEA NOT NULL, applied_at TIMESTAMPTZ NOT NULL)"
                ),
            ],
            lock: concat!("LOCK TABLE ", $pg, " IN ACCESS EXCLUSIVE MODE"),
            list: [
                concat!("SELECT version, checksum FROM ", $name, "_migrations ORDER BY version"),
                concat!("SELECT version, checksum FROM ", $pg, " ORDER BY version"),
            ],
            insert: [
                concat!("INSERT INTO ", $name, "_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)"),
                concat!("INSERT INTO ", $pg, " (version, name, checksum, applied_at) VALUES ($1, $2, $3, $4)"),
            ],
        }
    };
}

/// Attempts before the error of the last one is given up to the caller.
const TRIES: u32 = 6;

impl Database {
    /// Brings the room's tables up to date: one transaction, one process at a time (the lock is on the
    /// migration table and ends with the transaction). Versions newer than this program knows are left alone,
    /// so that an older and a newer node can run side by side.
    ///
    /// Every step is looked up before it is applied, so all of it is tried again, a few times within two seconds,
    /// when another process creates the same objects at the same instant or the connection breaks.
    ///
    /// # Errors
    /// [`Error::Migration`] if an applied migration differs from the one in this program; the last attempt's error.
    pub async fn migrate(&self, room: &Room) -> Result<()> {
        for attempt in 1..TRIES {
            match self.try_migrate(room).await {
                Err(error) if may_succeed_later(&error) => {
                    tracing::debug!(room = room.name, attempt, %error, "migrating again");
                    tokio::time::sleep(Duration::from_millis(50 << attempt)).await;
                }
                done => return done,
            }
        }
        self.try_migrate(room).await
    }

    async fn try_migrate(&self, room: &Room) -> Result<()> {
        // Who may not make schemas or lock tables can still start on a database that is up to date.
        if self.is_current(room).await {
            return Ok(());
        }
        self.create_table(room).await?;
        let mut tx = self.begin().await?;
        let applied: Vec<(i64, Vec<u8>)> = match tx.conn() {
            Conn::Sqlite(conn) => sqlx::query_as(room.list[0]).fetch_all(conn).await?,
            Conn::Postgres(pg) => {
                sqlx::raw_sql(room.lock).execute(&mut *pg.conn).await?;
                pg.query_as(room.list[1]).fetch_all(&mut *pg.conn).await?
            }
        };
        for migration in room.migrations {
            let checksum = checksum(migration);
            match applied.iter().find(|(version, _)| *version == migration.version) {
                Some((_, known)) if *known == checksum => {}
                Some(_) => {
                    return Err(Error::Migration {
                        room: room.name,
                        version: migration.version,
                        reason: "was edited after it had been applied here".into(),
                    });
                }
                None => apply(tx.conn(), room, migration, &checksum).await?,
            }
        }
        tx.commit().await
    }

    /// Whether the room has ever been migrated here.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn has(&self, room: &Room) -> Result<bool> {
        let mut reader = self.read().await?;
        let listed = match reader.conn() {
            Conn::Sqlite(conn) => {
                sqlx::raw_sql(room.list[0]).fetch_all(conn).await.map(|rows| !rows.is_empty())
            }
            Conn::Postgres(pg) => {
                sqlx::raw_sql(room.list[1]).fetch_all(pg.conn).await.map(|rows| !rows.is_empty())
            }
        };
        match listed {
            Ok(some) => Ok(some),
            // There is no such table, or no such schema.
            Err(sqlx::Error::Database(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether every migration is applied, as far as a look can tell; anything unexpected is left to the migration.
    async fn is_current(&self, room: &Room) -> bool {
        let Ok(mut reader) = self.read().await else { return false };
        let applied: std::result::Result<Vec<(i64, Vec<u8>)>, sqlx::Error> = match reader.conn() {
            Conn::Sqlite(conn) => sqlx::query_as(room.list[0]).fetch_all(conn).await,
            // Unnamed: a statement that failed must not be remembered.
            Conn::Postgres(pg) => sqlx::query_as(room.list[1]).persistent(false).fetch_all(pg.conn).await,
        };
        applied.is_ok_and(|applied| {
            room.migrations.iter().all(|migration| {
                applied
                    .iter()
                    .any(|(version, known)| *version == migration.version && *known == checksum(migration))
            })
        })
    }

    async fn create_table(&self, room: &Room) -> Result<()> {
        let mut tx = self.begin().await?;
        match tx.conn() {
            Conn::Sqlite(conn) => sqlx::raw_sql(room.create[0]).execute(conn).await.map(drop)?,
            Conn::Postgres(pg) => sqlx::raw_sql(room.create[1]).execute(pg.conn).await.map(drop)?,
        }
        tx.commit().await
    }
}

/// `IF NOT EXISTS` does not see what another transaction is creating; Postgres then refuses the second one with
/// whichever of its catalogues notices first: duplicate schema, table or object (42P06, 42P07, 42710), a unique
/// index of the catalogue (23505), or an internal error ("tuple concurrently updated", XX000).
fn may_succeed_later(error: &Error) -> bool {
    match error {
        Error::Retry(_) | Error::Connection(_) | Error::CommitUnknown(_) | Error::Unique { .. } => true,
        Error::Other(sqlx::Error::Database(inner)) => {
            matches!(inner.code().as_deref(), Some("42P06" | "42P07" | "42710" | "XX000"))
        }
        _ => false,
    }
}

impl Room {
    /// Everything that brings an empty Postgres database up to date, for somebody who may run it to run it by hand. What
    /// is noted of it is what [`Database::migrate`] would have noted.
    pub fn postgres_script(&self) -> String {
        let mut script = format!("BEGIN;\n{};\n", self.create[1]);
        for migration in self.migrations {
            let hex: String = checksum(migration).iter().map(|byte| format!("{byte:02x}")).collect();
            let noted = self.insert[1]
                .replace("$1", &migration.version.to_string())
                .replace("$2", &format!("'{}'", migration.name.replace('\'', "''")))
                .replace("$3", &format!("decode('{hex}', 'hex')"))
                .replace("$4", "now()");
            script.push_str(migration.postgres);
            script.push_str(&format!("\n{noted};\n"));
        }
        script.push_str("COMMIT;");
        script
    }
}

/// Over both dialects, so that the twins cannot drift apart after a release.
fn checksum(migration: &Migration) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update(migration.sqlite);
    hash.update([0]);
    hash.update(migration.postgres);
    hash.finalize().to_vec()
}

async fn apply(conn: Conn<'_>, room: &Room, migration: &Migration, checksum: &[u8]) -> Result<()> {
    tracing::info!(room = room.name, version = migration.version, name = migration.name, "migrating");
    match conn {
        Conn::Sqlite(conn) => {
            sqlx::raw_sql(migration.sqlite).execute(&mut *conn).await?;
            sqlx::query(room.insert[0])
                .bind(migration.version)
                .bind(migration.name)
                .bind(checksum)
                .bind(Timestamp::here())
                .execute(conn)
                .await?;
        }
        Conn::Postgres(pg) => {
            sqlx::raw_sql(migration.postgres).execute(&mut *pg.conn).await?;
            pg.query(room.insert[1])
                .bind(migration.version)
                .bind(migration.name)
                .bind(checksum)
                .bind(Timestamp::here())
                .execute(pg.conn)
                .await?;
        }
    }
    Ok(())
}
