//! The bank of the demo: the worked example's schema with the customers and accounts that the logs speak of, told apart
//! from anybody else's by the comment on its schema.

use ::ledger::Folder;
use anyhow::Context;
use db::{Conn, Database};
use simulators::wallet_logs::Logs;
use sqlx::postgres::PgConnection;

use crate::exit::usage;

macro_rules! example {
    ($file:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../pipelines/wallet-logs/", $file))
    };
}

const SCHEMA: &str = example!("schema.sql");
const FOREIGN_KEYS: &str = example!("foreign_keys.sql");
/// The example's declaration, so that the binary needs no checkout.
const FILES: &[(&str, &str)] = &[
    ("pipeline.toml", example!("pipeline.toml")),
    ("map.sql", example!("map.sql")),
    ("proof.sql", example!("proof.sql")),
    ("checks/accounts.sql", example!("checks/accounts.sql")),
    ("checks/continuity.sql", example!("checks/continuity.sql")),
    ("checks/movements.sql", example!("checks/movements.sql")),
];
/// The lane of jobs that write to the bank.
pub(super) const LANE: &str = "ledger:\"bank\".\"transactions\"";
/// What the comment on the demo's own schema begins with.
const MARK: &str = "made by crossdock demo ledger: ";

/// The example's declaration.
pub(super) fn folder() -> Folder {
    Folder::of(FILES.iter().copied())
}

/// How the bank stands before the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It was made now.
    Nothing,
    /// An earlier demo over the same logs made it.
    Same,
}

/// Whether an earlier demo made the schema of this database.
pub(super) async fn is_the_demos(database: &Database) -> anyhow::Result<bool> {
    let mut reader = database.read().await?;
    let Conn::Postgres(pg) = reader.conn() else { unreachable!("the address was looked at") };
    Ok(comment(pg.conn).await?.is_some_and(|comment| comment.starts_with(MARK)))
}

/// Makes the bank, or finds the one that the same demo made before.
///
/// # Errors
/// A usage error, with what to do, if the schema is somebody else's or of another demo.
pub(super) async fn prepare(
    database: &Database,
    logs: &Logs,
    words: &str,
    fresh: bool,
) -> anyhow::Result<Found> {
    let mut tx = database.begin().await?;
    let Conn::Postgres(pg) = tx.conn() else { unreachable!("the address was looked at") };
    let mark = format!("{MARK}{words}");
    let mut comment = comment(pg.conn).await?;
    if fresh && comment.as_deref().is_some_and(|comment| comment.starts_with(MARK)) {
        sqlx::raw_sql("DROP SCHEMA bank CASCADE").execute(&mut *pg.conn).await?;
        comment = None;
    }
    match comment {
        Some(comment) if comment == mark => {
            tx.rollback().await?;
            return Ok(Found::Same);
        }
        Some(comment) if comment.starts_with(MARK) => {
            return Err(usage(format!(
                "the schema bank of this database is that of a demo with {}; run that one again, or drop it with --fresh",
                &comment[MARK.len()..]
            )));
        }
        Some(_) if has_rows(pg.conn).await? => {
            return Err(usage(
                "this database has a schema bank that is not the demo's; give the demo another database",
            ));
        }
        Some(_) | None => {}
    }
    if !has_tables(pg.conn).await? {
        sqlx::raw_sql(SCHEMA).execute(&mut *pg.conn).await.context("cannot make the schema bank")?;
        sqlx::raw_sql(FOREIGN_KEYS).execute(&mut *pg.conn).await.context("cannot tie the tables")?;
    }
    // A comment takes no parameter; the server quotes the text.
    let comment: String = sqlx::query_scalar("SELECT format('COMMENT ON SCHEMA bank IS %L', $1)")
        .persistent(false)
        .bind(&mark)
        .fetch_one(&mut *pg.conn)
        .await?;
    sqlx::raw_sql(sqlx::AssertSqlSafe(comment)).execute(&mut *pg.conn).await?;
    let mut rows = Vec::new();
    logs.write_customers(&mut rows)?;
    copy(pg.conn, "COPY bank.customers (id, external_id, name) FROM STDIN", rows).await?;
    let mut rows = Vec::new();
    logs.write_accounts(&mut rows)?;
    copy(pg.conn, "COPY bank.accounts (id, wallet_id, customer_id, currency, status) FROM STDIN", rows)
        .await?;
    tx.commit().await?;
    Ok(Found::Nothing)
}

/// The comment on the schema: empty if it has none, nothing if there is no schema.
async fn comment(conn: &mut PgConnection) -> anyhow::Result<Option<String>> {
    let query =
        "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = 'bank'";
    Ok(sqlx::query_scalar(query).persistent(false).fetch_optional(conn).await?)
}

/// Whether anything stands in the schema: a table that is not the example's counts as a row.
async fn has_rows(conn: &mut PgConnection) -> anyhow::Result<bool> {
    let others = "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = 'bank'::regnamespace AND relkind IN ('r', 'p')
        AND relname NOT IN ('customers', 'accounts', 'transactions'))";
    if sqlx::query_scalar(others).persistent(false).fetch_one(&mut *conn).await? {
        return Ok(true);
    }
    if !has_tables(conn).await? {
        return Ok(false);
    }
    let rows = "SELECT EXISTS (SELECT 1 FROM bank.customers) OR EXISTS (SELECT 1 FROM bank.accounts)
        OR EXISTS (SELECT 1 FROM bank.transactions)";
    Ok(sqlx::query_scalar(rows).persistent(false).fetch_one(conn).await?)
}

async fn has_tables(conn: &mut PgConnection) -> anyhow::Result<bool> {
    let query =
        "SELECT to_regclass('bank.customers') IS NOT NULL AND to_regclass('bank.accounts') IS NOT NULL
        AND to_regclass('bank.transactions') IS NOT NULL";
    Ok(sqlx::query_scalar(query).persistent(false).fetch_one(conn).await?)
}

async fn copy(conn: &mut PgConnection, statement: &str, rows: Vec<u8>) -> anyhow::Result<()> {
    let mut copy = conn.copy_in_raw(statement).await?;
    copy.send(rows).await?;
    copy.finish().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ::ledger::{Declaration, Variables, sql};

    use super::*;

    #[test]
    fn jobs_of_the_bank_are_known_by_their_lane() {
        let variables = Variables::of([("CORE_URL", "http://127.0.0.1")]);
        let declaration = Declaration::read(&folder(), &variables).expect("the example is sound");
        assert_eq!(LANE, format!("ledger:{}", sql::target_name(&declaration)));
    }

    #[test]
    fn the_binary_carries_the_whole_example() {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../pipelines/wallet-logs"));
        assert_eq!(folder().hash(), Folder::load(path).expect("the example can be read").hash());
    }
}
