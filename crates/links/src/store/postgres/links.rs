use db::{Id, Pg, Timestamp};

use crate::store::rows::{LinkParts, ResolvedRow, link_columns, resolved_columns};
use crate::{Place, Result};

pub(crate) async fn read_links(pg: &mut Pg<'_>, link_ids: &[Id]) -> Result<LinkParts> {
    const LINKS: &str = concat!(
        "SELECT ",
        link_columns!(),
        " FROM links l LEFT JOIN folders f ON f.id = l.folder_id WHERE l.id = ANY($1)"
    );
    const SLUGS: &str = "SELECT s.link_id, s.domain_id, s.slug, d.host FROM slugs s JOIN domains d ON d.id = s.domain_id \
                         WHERE s.link_id = ANY($1)";
    const TAGS: &str = "SELECT x.link_id, t.name FROM link_tags x JOIN tags t ON t.id = x.tag_id \
                        WHERE x.link_id = ANY($1)";
    Ok(LinkParts {
        links: pg.query_as(LINKS).bind(link_ids).fetch_all(&mut *pg.conn).await?,
        slugs: pg.query_as(SLUGS).bind(link_ids).fetch_all(&mut *pg.conn).await?,
        tags: pg.query_as(TAGS).bind(link_ids).fetch_all(&mut *pg.conn).await?,
    })
}

pub(crate) async fn link_id_of_external(
    pg: &mut Pg<'_>,
    workspace_id: Id,
    external_id: &str,
) -> Result<Option<Id>> {
    const SQL: &str = "SELECT id FROM links WHERE workspace_id = $1 AND external_id = $2";
    Ok(pg.scalar(SQL).bind(workspace_id).bind(external_id).fetch_optional(&mut *pg.conn).await?)
}

pub(crate) async fn lock_link(pg: &mut Pg<'_>, workspace_id: Id, id: Id) -> Result<Option<i64>> {
    const SQL: &str = "SELECT version FROM links WHERE id = $1 AND workspace_id = $2 FOR UPDATE";
    Ok(pg.scalar(SQL).bind(id).bind(workspace_id).fetch_optional(&mut *pg.conn).await?)
}

pub(crate) async fn raise_version(pg: &mut Pg<'_>, id: Id, now: Timestamp) -> Result<()> {
    const SQL: &str = "UPDATE links SET version = version + 1, updated_at = $1 WHERE id = $2";
    pg.query(SQL).bind(now).bind(id).execute(&mut *pg.conn).await?;
    Ok(())
}

pub(crate) async fn set_deleted(
    pg: &mut Pg<'_>,
    id: Id,
    deleted_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<()> {
    const LINK: &str =
        "UPDATE links SET deleted_at = $1, updated_at = $2, version = version + 1 WHERE id = $3";
    const SLUGS: &str = "UPDATE slugs SET deleted_at = $1 WHERE link_id = $2";
    pg.query(LINK).bind(deleted_at).bind(now).bind(id).execute(&mut *pg.conn).await?;
    pg.query(SLUGS).bind(deleted_at).bind(id).execute(&mut *pg.conn).await?;
    Ok(())
}

pub(crate) async fn delete_slug(pg: &mut Pg<'_>, id: Id, place: &Place) -> Result<()> {
    const SQL: &str = "DELETE FROM slugs WHERE link_id = $1 AND domain_id = $2 AND slug = $3";
    pg.query(SQL).bind(id).bind(place.domain_id).bind(place.slug.as_str()).execute(&mut *pg.conn).await?;
    Ok(())
}

/// The exact key first: it is preferred to the other.
pub(crate) async fn resolve(
    pg: &mut Pg<'_>,
    domain_id: Id,
    key: &str,
    other: &str,
) -> Result<Option<ResolvedRow>> {
    const SQL: &str = concat!(
        "SELECT ",
        resolved_columns!(),
        ", s.folded <> $2 AS by_other FROM slugs s JOIN links l ON l.id = s.link_id \
         WHERE s.domain_id = $1 AND s.folded IN ($2, $3) AND s.deleted_at IS NULL ORDER BY by_other LIMIT 1"
    );
    Ok(pg.query_as(SQL).bind(domain_id).bind(key).bind(other).fetch_optional(&mut *pg.conn).await?)
}
