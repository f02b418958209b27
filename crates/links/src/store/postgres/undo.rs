use db::{Id, Pg};

use crate::Result;
use crate::store::rows::MadeRow;

pub(crate) async fn lock_made_by(pg: &mut Pg<'_>, job_id: Id, after: Id, limit: i64) -> Result<Vec<MadeRow>> {
    const SQL: &str = "SELECT l.id, l.version, l.deleted_at, o.imported_version, o.job_id FROM links l \
                       LEFT JOIN link_origins o ON o.workspace_id = l.workspace_id AND o.vendor = l.vendor \
                       AND o.source_id = l.source_id AND o.link_id = l.id \
                       WHERE l.import_job = $1 AND l.id > $2 ORDER BY l.id LIMIT $3 FOR UPDATE OF l";
    Ok(pg.query_as(SQL).bind(job_id).bind(after).bind(limit).fetch_all(&mut *pg.conn).await?)
}

pub(crate) async fn delete_origins(pg: &mut Pg<'_>, link_ids: &[Id]) -> Result<()> {
    const SQL: &str = "DELETE FROM link_origins o USING links l WHERE o.workspace_id = l.workspace_id AND o.vendor = l.vendor \
                       AND o.source_id = l.source_id AND o.link_id = l.id AND l.id = ANY($1)";
    pg.query(SQL).bind(link_ids).execute(&mut *pg.conn).await?;
    Ok(())
}

/// Slugs, tags and clicks go with their link.
pub(crate) async fn delete_links(pg: &mut Pg<'_>, link_ids: &[Id]) -> Result<u64> {
    const LINKS: &str = "DELETE FROM links WHERE id = ANY($1)";
    Ok(pg.query(LINKS).bind(link_ids).execute(&mut *pg.conn).await?.rows_affected())
}

pub(crate) async fn delete_unused_names(pg: &mut Pg<'_>, job_id: Id) -> Result<()> {
    const TAGS: &str = "DELETE FROM tags WHERE import_job = $1 AND NOT EXISTS (SELECT 1 FROM link_tags x WHERE x.tag_id = tags.id)";
    const FOLDERS: &str = "DELETE FROM folders WHERE import_job = $1 AND NOT EXISTS (SELECT 1 FROM links l WHERE l.folder_id = folders.id)";
    pg.query(TAGS).bind(job_id).execute(&mut *pg.conn).await?;
    pg.query(FOLDERS).bind(job_id).execute(&mut *pg.conn).await?;
    Ok(())
}
