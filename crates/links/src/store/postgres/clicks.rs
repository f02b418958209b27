use db::{Id, Pg, Timestamp};

use crate::{Count, Result};

pub(crate) async fn insert_click_batch(
    pg: &mut Pg<'_>,
    id: Id,
    taken_at: Timestamp,
    clicks: &[u8],
) -> Result<()> {
    const SQL: &str = "INSERT INTO click_batches (id, taken_at, clicks) VALUES ($1, $2, $3)";
    pg.query(SQL).bind(id).bind(taken_at).bind(clicks).execute(&mut *pg.conn).await?;
    Ok(())
}

/// Blocks that another process is folding are left to it.
pub(crate) async fn lock_click_batches(pg: &mut Pg<'_>, form: i64, limit: i64) -> Result<Vec<(Id, Vec<u8>)>> {
    const SQL: &str = "SELECT id, clicks FROM click_batches WHERE unreadable_by IS NULL OR unreadable_by < $1 \
                       ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED";
    Ok(pg.query_as(SQL).bind(form).bind(limit).fetch_all(&mut *pg.conn).await?)
}

pub(crate) async fn set_click_batches_aside(pg: &mut Pg<'_>, batch_ids: &[Id], form: i64) -> Result<()> {
    const SQL: &str = "UPDATE click_batches SET unreadable_by = $1 WHERE id = ANY($2)";
    pg.query(SQL).bind(form).bind(batch_ids).execute(&mut *pg.conn).await?;
    Ok(())
}

pub(crate) async fn add_clicks(pg: &mut Pg<'_>, sums: &[(Id, Timestamp, Count)]) -> Result<()> {
    const SQL: &str = "INSERT INTO link_clicks (link_id, hour, humans, bots) \
                       SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::bigint[]) \
                       ON CONFLICT (link_id, hour) DO UPDATE \
                       SET humans = link_clicks.humans + excluded.humans, bots = link_clicks.bots + excluded.bots";
    let link_ids: Vec<Id> = sums.iter().map(|(link_id, _, _)| *link_id).collect();
    let hours: Vec<Timestamp> = sums.iter().map(|(_, hour, _)| *hour).collect();
    let humans: Vec<i64> = sums.iter().map(|(_, _, count)| count.humans).collect();
    let bots: Vec<i64> = sums.iter().map(|(_, _, count)| count.bots).collect();
    pg.query(SQL).bind(link_ids).bind(hours).bind(humans).bind(bots).execute(&mut *pg.conn).await?;
    Ok(())
}

pub(crate) async fn delete_click_batches(pg: &mut Pg<'_>, batch_ids: &[Id]) -> Result<u64> {
    const SQL: &str = "DELETE FROM click_batches WHERE id = ANY($1)";
    Ok(pg.query(SQL).bind(batch_ids).execute(&mut *pg.conn).await?.rows_affected())
}

pub(crate) async fn click_totals(pg: &mut Pg<'_>, link_ids: &[Id]) -> Result<Vec<(Id, i64, i64)>> {
    const SQL: &str = "SELECT link_id, sum(humans)::bigint, sum(bots)::bigint FROM link_clicks \
                       WHERE link_id = ANY($1) GROUP BY link_id ORDER BY link_id";
    Ok(pg.query_as(SQL).bind(link_ids).fetch_all(&mut *pg.conn).await?)
}

pub(crate) async fn clicks_by_hour(
    pg: &mut Pg<'_>,
    link_id: Id,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<(Timestamp, i64, i64)>> {
    const SQL: &str = "SELECT hour, humans, bots FROM link_clicks WHERE link_id = $1 AND hour >= $2 AND hour < $3 ORDER BY hour";
    Ok(pg.query_as(SQL).bind(link_id).bind(from).bind(to).fetch_all(&mut *pg.conn).await?)
}
