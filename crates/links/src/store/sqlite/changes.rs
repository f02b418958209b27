use db::Id;
use sqlx::{SqliteConnection, query, query_as, query_scalar};

use crate::Result;
use crate::store::json::ids;
use crate::store::rows::ChangeRow;

/// `sqlite_sequence` remembers the last number after a purge.
pub(crate) async fn changes_mark(conn: &mut SqliteConnection) -> Result<i64> {
    const SQL: &str = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'slug_changes'), 0)";
    Ok(query_scalar(SQL).fetch_one(conn).await?)
}

/// One writer at a time: numbers rise in the order of the commits.
pub(crate) async fn changes_since(
    conn: &mut SqliteConnection,
    mark: i64,
    limit: i64,
) -> Result<Vec<ChangeRow>> {
    const SQL: &str = "SELECT c.id, c.domain_id, c.folded, c.link_id, m.mark \
                       FROM (SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'slug_changes'), 0) AS mark) m \
                       LEFT JOIN slug_changes c ON c.id > ? ORDER BY c.id LIMIT ?";
    Ok(query_as(SQL).bind(mark).bind(limit).fetch_all(conn).await?)
}

pub(crate) async fn purge_changes(conn: &mut SqliteConnection, seconds: i64) -> Result<u64> {
    const SQL: &str =
        "DELETE FROM slug_changes WHERE made_at < CAST((unixepoch('subsec') - ?) * 1000000 AS INTEGER)";
    Ok(query(SQL).bind(seconds).execute(conn).await?.rows_affected())
}

pub(crate) async fn announce_domain(conn: &mut SqliteConnection, domain_id: Id) -> Result<()> {
    query("INSERT INTO slug_changes (domain_id) VALUES (?)").bind(domain_id).execute(conn).await?;
    Ok(())
}

pub(crate) async fn announce_links(conn: &mut SqliteConnection, link_ids: &[Id]) -> Result<()> {
    const SQL: &str = "INSERT INTO slug_changes (domain_id, folded, link_id) SELECT domain_id, folded, link_id \
                       FROM slugs WHERE link_id IN (SELECT value FROM json_each(?))";
    query(SQL).bind(ids(link_ids)).execute(conn).await?;
    Ok(())
}
