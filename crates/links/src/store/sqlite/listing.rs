use db::{Id, Timestamp};
use sqlx::{SqliteConnection, query_as, query_scalar};

use super::read_links;
use crate::listing::Walk;
use crate::store::rows::LinkParts;
use crate::{Filter, Result};

/// ?1 workspace, ?2 before, ?3 limit, ?4 state, ?5 now, ?6 domain, ?7 tag, ?8 folder, ?9 job, ?10 and ?11 created.
macro_rules! rest {
    () => {
        " AND l.workspace_id = ?1 AND l.id < ?2 \
         AND CASE ?4 WHEN '' THEN l.deleted_at IS NULL \
                     WHEN 'deleted' THEN l.deleted_at IS NOT NULL \
                     WHEN 'archived' THEN l.deleted_at IS NULL AND l.archived = 1 \
                     WHEN 'disabled' THEN l.deleted_at IS NULL AND l.enabled = 0 \
                     WHEN 'expired' THEN l.deleted_at IS NULL AND l.expires_at <= ?5 \
                     ELSE l.deleted_at IS NULL AND l.archived = 0 AND l.enabled = 1 \
                          AND (l.expires_at IS NULL OR l.expires_at > ?5) END \
         AND (?6 IS NULL OR EXISTS (SELECT 1 FROM slugs e WHERE e.link_id = l.id AND e.domain_id = ?6)) \
         AND (?7 IS NULL OR EXISTS (SELECT 1 FROM link_tags x JOIN tags t ON t.id = x.tag_id \
                                    WHERE x.link_id = l.id AND t.name = ?7)) \
         AND (?8 IS NULL OR EXISTS (SELECT 1 FROM folders f WHERE f.id = l.folder_id AND f.name = ?8)) \
         AND (?9 IS NULL OR l.import_job = ?9) \
         AND (?10 IS NULL OR l.created_at >= ?10) AND (?11 IS NULL OR l.created_at < ?11) "
    };
}

const WORKSPACE: &str =
    concat!("SELECT l.id FROM links l WHERE l.deleted_at IS NULL", rest!(), "ORDER BY l.id DESC LIMIT ?3");
const ARCHIVED: &str = concat!(
    "SELECT l.id FROM links l WHERE l.deleted_at IS NULL AND l.archived = 1",
    rest!(),
    "ORDER BY l.id DESC LIMIT ?3"
);
const DISABLED: &str = concat!(
    "SELECT l.id FROM links l WHERE l.deleted_at IS NULL AND l.enabled = 0",
    rest!(),
    "ORDER BY l.id DESC LIMIT ?3"
);
const EXPIRED: &str = concat!(
    "SELECT l.id FROM links l WHERE l.deleted_at IS NULL AND l.expires_at IS NOT NULL",
    rest!(),
    "ORDER BY l.id DESC LIMIT ?3"
);
const DELETED: &str = concat!(
    "SELECT l.id FROM links l WHERE l.deleted_at IS NOT NULL",
    rest!(),
    "ORDER BY l.id DESC LIMIT ?3"
);
const FOLDER: &str = concat!(
    "SELECT l.id FROM links l WHERE l.folder_id = (SELECT id FROM folders WHERE workspace_id = ?1 AND name = ?8)",
    rest!(),
    "ORDER BY l.id DESC LIMIT ?3"
);
const IMPORT: &str =
    concat!("SELECT l.id FROM links l WHERE l.import_job = ?9", rest!(), "ORDER BY l.id DESC LIMIT ?3");
const TAG: &str = concat!(
    "SELECT l.id FROM link_tags w JOIN links l ON l.id = w.link_id \
     WHERE w.tag_id = (SELECT id FROM tags WHERE workspace_id = ?1 AND name = ?7) AND w.link_id < ?2",
    rest!(),
    "ORDER BY w.link_id DESC LIMIT ?3"
);
/// A link with several slugs on the domain counts at the last of them.
const DOMAIN: &str = concat!(
    "SELECT l.id FROM slugs w JOIN links l ON l.id = w.link_id \
     WHERE w.domain_id = ?6 AND w.link_id < ?2 \
     AND NOT EXISTS (SELECT 1 FROM slugs o WHERE o.link_id = w.link_id AND o.domain_id = ?6 AND o.slug > w.slug)",
    rest!(),
    "ORDER BY w.link_id DESC LIMIT ?3"
);

pub(crate) async fn list_links(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    filter: &Filter,
    before: Id,
    limit: i64,
    now: Timestamp,
) -> Result<LinkParts> {
    let sql = match filter.walk() {
        Walk::Workspace => WORKSPACE,
        Walk::Domain => DOMAIN,
        Walk::Tag => TAG,
        Walk::Folder => FOLDER,
        Walk::Import => IMPORT,
        Walk::Archived => ARCHIVED,
        Walk::Disabled => DISABLED,
        Walk::Expired => EXPIRED,
        Walk::Deleted => DELETED,
    };
    let ids: Vec<Id> = query_scalar(sql)
        .bind(workspace_id)
        .bind(before)
        .bind(limit)
        .bind(filter.state_word())
        .bind(now)
        .bind(filter.domain_id)
        .bind(filter.tag.as_ref().map(|name| name.as_str()))
        .bind(filter.folder.as_ref().map(|name| name.as_str()))
        .bind(filter.import_job)
        .bind(filter.created_from)
        .bind(filter.created_before)
        .fetch_all(&mut *conn)
        .await?;
    read_links(conn, &ids).await
}

pub(crate) async fn tag_counts(conn: &mut SqliteConnection, workspace_id: Id) -> Result<Vec<(String, i64)>> {
    const SQL: &str = "SELECT t.name, count(l.id) FROM tags t LEFT JOIN link_tags x ON x.tag_id = t.id \
                       LEFT JOIN links l ON l.id = x.link_id AND l.deleted_at IS NULL \
                       WHERE t.workspace_id = ? GROUP BY t.id ORDER BY t.name";
    Ok(query_as(SQL).bind(workspace_id).fetch_all(conn).await?)
}

pub(crate) async fn folder_counts(
    conn: &mut SqliteConnection,
    workspace_id: Id,
) -> Result<Vec<(String, i64)>> {
    const SQL: &str = "SELECT f.name, count(l.id) FROM folders f \
                       LEFT JOIN links l ON l.folder_id = f.id AND l.deleted_at IS NULL \
                       WHERE f.workspace_id = ? GROUP BY f.id ORDER BY f.name";
    Ok(query_as(SQL).bind(workspace_id).fetch_all(conn).await?)
}
