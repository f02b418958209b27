use db::{Id, Timestamp};
use sqlx::{SqliteConnection, query, query_as, query_scalar};

use crate::store::json::ids;
use crate::store::rows::{LinkParts, ResolvedRow, link_columns, resolved_columns};
use crate::{Place, Result};

pub(crate) async fn read_links(conn: &mut SqliteConnection, link_ids: &[Id]) -> Result<LinkParts> {
    const LINKS: &str = concat!(
        "SELECT ",
        link_columns!(),
        " FROM links l LEFT JOIN folders f ON f.id = l.folder_id WHERE l.id IN (SELECT value FROM json_each(?))"
    );
    const SLUGS: &str = "SELECT s.link_id, s.domain_id, s.slug, d.host FROM slugs s JOIN domains d ON d.id = s.domain_id \
                         WHERE s.link_id IN (SELECT value FROM json_each(?))";
    const TAGS: &str = "SELECT x.link_id, t.name FROM link_tags x JOIN tags t ON t.id = x.tag_id \
                        WHERE x.link_id IN (SELECT value FROM json_each(?))";
    let wanted = ids(link_ids);
    Ok(LinkParts {
        links: query_as(LINKS).bind(&wanted).fetch_all(&mut *conn).await?,
        slugs: query_as(SLUGS).bind(&wanted).fetch_all(&mut *conn).await?,
        tags: query_as(TAGS).bind(&wanted).fetch_all(&mut *conn).await?,
    })
}

pub(crate) async fn link_id_of_external(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    external_id: &str,
) -> Result<Option<Id>> {
    const SQL: &str = "SELECT id FROM links WHERE workspace_id = ? AND external_id = ?";
    Ok(query_scalar(SQL).bind(workspace_id).bind(external_id).fetch_optional(conn).await?)
}

/// The transaction is the only writer; nothing to lock.
pub(crate) async fn lock_link(conn: &mut SqliteConnection, workspace_id: Id, id: Id) -> Result<Option<i64>> {
    const SQL: &str = "SELECT version FROM links WHERE id = ? AND workspace_id = ?";
    Ok(query_scalar(SQL).bind(id).bind(workspace_id).fetch_optional(conn).await?)
}

pub(crate) async fn raise_version(conn: &mut SqliteConnection, id: Id, now: Timestamp) -> Result<()> {
    const SQL: &str = "UPDATE links SET version = version + 1, updated_at = ? WHERE id = ?";
    query(SQL).bind(now).bind(id).execute(conn).await?;
    Ok(())
}

pub(crate) async fn set_deleted(
    conn: &mut SqliteConnection,
    id: Id,
    deleted_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<()> {
    const LINK: &str = "UPDATE links SET deleted_at = ?, updated_at = ?, version = version + 1 WHERE id = ?";
    const SLUGS: &str = "UPDATE slugs SET deleted_at = ? WHERE link_id = ?";
    query(LINK).bind(deleted_at).bind(now).bind(id).execute(&mut *conn).await?;
    query(SLUGS).bind(deleted_at).bind(id).execute(conn).await?;
    Ok(())
}

pub(crate) async fn delete_slug(conn: &mut SqliteConnection, id: Id, place: &Place) -> Result<()> {
    const SQL: &str = "DELETE FROM slugs WHERE link_id = ? AND domain_id = ? AND slug = ?";
    query(SQL).bind(id).bind(place.domain_id).bind(place.slug.as_str()).execute(conn).await?;
    Ok(())
}

/// The exact key first: it is preferred to the other.
pub(crate) async fn resolve(
    conn: &mut SqliteConnection,
    domain_id: Id,
    key: &str,
    other: &str,
) -> Result<Option<ResolvedRow>> {
    const SQL: &str = concat!(
        "SELECT ",
        resolved_columns!(),
        ", s.folded <> ?2 AS by_other FROM slugs s JOIN links l ON l.id = s.link_id \
         WHERE s.domain_id = ?1 AND s.folded IN (?2, ?3) AND s.deleted_at IS NULL ORDER BY by_other LIMIT 1"
    );
    Ok(query_as(SQL).bind(domain_id).bind(key).bind(other).fetch_optional(conn).await?)
}
