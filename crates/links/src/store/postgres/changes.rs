use db::{Id, Pg};

use crate::Result;
use crate::store::rows::ChangeRow;

/// The oldest transaction that is still under way: whatever it and later ones write comes at or after it.
pub(crate) async fn changes_mark(pg: &mut Pg<'_>) -> Result<i64> {
    Ok(pg
        .scalar("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
        .fetch_one(&mut *pg.conn)
        .await?)
}

/// One statement, so that mark and rows come from one snapshot.
pub(crate) async fn changes_since(pg: &mut Pg<'_>, mark: i64, limit: i64) -> Result<Vec<ChangeRow>> {
    const SQL: &str = "SELECT c.id, c.domain_id, c.folded, c.link_id, m.mark \
                       FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS mark) m \
                       LEFT JOIN slug_changes c ON c.xact >= $1::bigint::text::xid8 ORDER BY c.id LIMIT $2";
    Ok(pg.query_as(SQL).bind(mark).bind(limit).fetch_all(&mut *pg.conn).await?)
}

pub(crate) async fn purge_changes(pg: &mut Pg<'_>, seconds: i64) -> Result<u64> {
    const SQL: &str =
        "DELETE FROM slug_changes WHERE made_at < clock_timestamp() - $1::bigint * interval '1 second'";
    Ok(pg.query(SQL).bind(seconds).execute(&mut *pg.conn).await?.rows_affected())
}

pub(crate) async fn announce_domain(pg: &mut Pg<'_>, domain_id: Id) -> Result<()> {
    pg.query("INSERT INTO slug_changes (domain_id) VALUES ($1)")
        .bind(domain_id)
        .execute(&mut *pg.conn)
        .await?;
    Ok(())
}

pub(crate) async fn announce_links(pg: &mut Pg<'_>, link_ids: &[Id]) -> Result<()> {
    const SQL: &str = "INSERT INTO slug_changes (domain_id, folded, link_id) SELECT domain_id, folded, link_id \
                       FROM slugs WHERE link_id = ANY($1)";
    pg.query(SQL).bind(link_ids).execute(&mut *pg.conn).await?;
    Ok(())
}
