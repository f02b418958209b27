use db::{Id, Pg, Timestamp};

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

/// Keeps what links are before the job writes them again.
pub(crate) async fn keep_befores(pg: &mut Pg<'_>, job_id: Id, link_ids: &[Id]) -> Result<()> {
    const SQL: &str = "INSERT INTO link_befores (job_id, link_id, destination, title, notes, \
                       folder_id, redirect_code, query_passthrough, enabled, archived, expires_at, expired_url, \
                       password_protected, ios_url, android_url, geo, utm, imported_clicks, external_id, \
                       created_at, tags, slugs, imported_digest, source_digest, source_json, origin_job) SELECT $1, \
                       l.id,  l.destination, l.title, l.notes, l.folder_id, l.redirect_code, \
                       l.query_passthrough, l.enabled, l.archived, l.expires_at, l.expired_url, \
                       l.password_protected, l.ios_url, l.android_url, l.geo, l.utm, l.imported_clicks, \
                       l.external_id, l.created_at, (SELECT COALESCE(jsonb_agg(t.tag_id), '[]') FROM link_tags t \
                       WHERE t.link_id = l.id), (SELECT COALESCE(jsonb_agg(jsonb_build_array(s.domain_id, s.slug)), \
                       '[]') FROM slugs s WHERE s.link_id = l.id), o.imported_digest, o.source_digest, \
                       o.source_json, o.job_id FROM links l JOIN link_origins o ON o.workspace_id = l.workspace_id \
                       AND o.vendor = l.vendor AND o.source_id = l.source_id AND o.link_id = l.id WHERE l.id = \
                       ANY($2)";
    pg.query(SQL).bind(job_id).bind(link_ids).execute(&mut *pg.conn).await?;
    Ok(())
}

/// Links that the job wrote again.
pub(crate) async fn lock_rewritten_by(pg: &mut Pg<'_>, job_id: Id, limit: i64) -> Result<Vec<MadeRow>> {
    const SQL: &str = "SELECT l.id, l.version, l.deleted_at, o.imported_version, o.job_id FROM \
                       link_befores b JOIN links l ON l.id = b.link_id LEFT JOIN link_origins o ON o.workspace_id = \
                       l.workspace_id AND o.vendor = l.vendor AND o.source_id = l.source_id AND o.link_id = l.id \
                       WHERE b.job_id = $1 ORDER BY b.link_id LIMIT $2 FOR UPDATE OF l";
    Ok(pg.query_as(SQL).bind(job_id).bind(limit).fetch_all(&mut *pg.conn).await?)
}

/// Puts links back to what they were before the job, with a version of their own.
pub(crate) async fn put_back(pg: &mut Pg<'_>, job_id: Id, link_ids: &[Id], now: Timestamp) -> Result<()> {
    const LINKS: &str = "UPDATE links SET version = links.version + 1, updated_at = $3, destination = b.destination, \
                       title = b.title, notes = b.notes, folder_id = (SELECT f.id FROM folders f WHERE f.id = \
                       b.folder_id), redirect_code = b.redirect_code, query_passthrough = b.query_passthrough, \
                       enabled = b.enabled, archived = b.archived, expires_at = b.expires_at, expired_url = \
                       b.expired_url, password_protected = b.password_protected, ios_url = b.ios_url, android_url = \
                       b.android_url, geo = b.geo, utm = b.utm, imported_clicks = b.imported_clicks, external_id = \
                       b.external_id, created_at = b.created_at FROM link_befores b WHERE b.job_id = $1 AND \
                       b.link_id = links.id AND links.id = ANY($2)";
    const UNTAG: &str = "DELETE FROM link_tags WHERE link_id = ANY($1)";
    const TAG: &str = "INSERT INTO link_tags (link_id, tag_id) SELECT b.link_id, t.id FROM link_befores b, \
                       jsonb_array_elements(b.tags) j (value) JOIN tags t ON t.id = j.value::bigint WHERE b.job_id \
                       = $1 AND b.link_id = ANY($2)";
    const SLUGS: &str = "DELETE FROM slugs WHERE link_id = ANY($2) AND NOT EXISTS (SELECT 1 FROM link_befores b, \
                       jsonb_array_elements(b.slugs) j (value) WHERE b.job_id = $1 AND b.link_id = slugs.link_id \
                       AND (j.value ->> 0)::bigint = slugs.domain_id AND j.value ->> 1 = slugs.slug)";
    const ORIGINS: &str = "UPDATE link_origins o SET imported_digest = b.imported_digest, imported_version = l.version, \
                       source_digest = b.source_digest, source_json = b.source_json, job_id = b.origin_job FROM \
                       link_befores b JOIN links l ON l.id = b.link_id WHERE b.job_id = $1 AND b.link_id = ANY($2) \
                       AND o.workspace_id = l.workspace_id AND o.vendor = l.vendor AND o.source_id = l.source_id \
                       AND o.link_id = l.id";
    pg.query(LINKS).bind(job_id).bind(link_ids).bind(now).execute(&mut *pg.conn).await?;
    pg.query(UNTAG).bind(link_ids).execute(&mut *pg.conn).await?;
    pg.query(TAG).bind(job_id).bind(link_ids).execute(&mut *pg.conn).await?;
    pg.query(SLUGS).bind(job_id).bind(link_ids).execute(&mut *pg.conn).await?;
    pg.query(ORIGINS).bind(job_id).bind(link_ids).execute(&mut *pg.conn).await?;
    Ok(())
}

pub(crate) async fn delete_befores(pg: &mut Pg<'_>, job_id: Id, link_ids: &[Id]) -> Result<()> {
    const SQL: &str = "DELETE FROM link_befores WHERE job_id = $1 AND link_id = ANY($2)";
    pg.query(SQL).bind(job_id).bind(link_ids).execute(&mut *pg.conn).await?;
    Ok(())
}
