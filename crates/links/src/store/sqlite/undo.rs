use db::Id;
use sqlx::{SqliteConnection, query, query_as};

use crate::Result;
use crate::store::json::ids;
use crate::store::rows::MadeRow;

/// The transaction is the only writer; nothing to lock.
pub(crate) async fn lock_made_by(
    conn: &mut SqliteConnection,
    job_id: Id,
    after: Id,
    limit: i64,
) -> Result<Vec<MadeRow>> {
    const SQL: &str = "SELECT l.id, l.version, l.deleted_at, o.imported_version, o.job_id FROM links l \
                       LEFT JOIN link_origins o ON o.workspace_id = l.workspace_id AND o.vendor = l.vendor \
                       AND o.source_id = l.source_id AND o.link_id = l.id \
                       WHERE l.import_job = ? AND l.id > ? ORDER BY l.id LIMIT ?";
    Ok(query_as(SQL).bind(job_id).bind(after).bind(limit).fetch_all(conn).await?)
}

pub(crate) async fn delete_origins(conn: &mut SqliteConnection, link_ids: &[Id]) -> Result<()> {
    const SQL: &str = "DELETE FROM link_origins WHERE rowid IN (SELECT o.rowid FROM links l JOIN link_origins o \
                       ON o.workspace_id = l.workspace_id AND o.vendor = l.vendor AND o.source_id = l.source_id \
                       AND o.link_id = l.id WHERE l.id IN (SELECT value FROM json_each(?)))";
    query(SQL).bind(ids(link_ids)).execute(conn).await?;
    Ok(())
}

/// Slugs, tags and clicks go with their link.
pub(crate) async fn delete_links(conn: &mut SqliteConnection, link_ids: &[Id]) -> Result<u64> {
    const LINKS: &str = "DELETE FROM links WHERE id IN (SELECT value FROM json_each(?))";
    Ok(query(LINKS).bind(ids(link_ids)).execute(conn).await?.rows_affected())
}

pub(crate) async fn delete_unused_names(conn: &mut SqliteConnection, job_id: Id) -> Result<()> {
    const TAGS: &str = "DELETE FROM tags WHERE import_job = ? AND NOT EXISTS (SELECT 1 FROM link_tags x WHERE x.tag_id = tags.id)";
    const FOLDERS: &str = "DELETE FROM folders WHERE import_job = ? AND NOT EXISTS (SELECT 1 FROM links l WHERE l.folder_id = folders.id)";
    query(TAGS).bind(job_id).execute(&mut *conn).await?;
    query(FOLDERS).bind(job_id).execute(conn).await?;
    Ok(())
}
