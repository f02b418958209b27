use db::{Id, Timestamp};
use sqlx::{SqliteConnection, query, query_as};

use crate::store::json::{Rows, ids};
use crate::{Count, Result};

pub(crate) async fn insert_click_batch(
    conn: &mut SqliteConnection,
    id: Id,
    taken_at: Timestamp,
    clicks: &[u8],
) -> Result<()> {
    const SQL: &str = "INSERT INTO click_batches (id, taken_at, clicks) VALUES (?, ?, ?)";
    query(SQL).bind(id).bind(taken_at).bind(clicks).execute(conn).await?;
    Ok(())
}

/// The transaction is the only writer; nothing to lock.
pub(crate) async fn lock_click_batches(
    conn: &mut SqliteConnection,
    form: i64,
    limit: i64,
) -> Result<Vec<(Id, Vec<u8>)>> {
    const SQL: &str = "SELECT id, clicks FROM click_batches WHERE unreadable_by IS NULL OR unreadable_by < ? \
                       ORDER BY id LIMIT ?";
    Ok(query_as(SQL).bind(form).bind(limit).fetch_all(conn).await?)
}

pub(crate) async fn set_click_batches_aside(
    conn: &mut SqliteConnection,
    batch_ids: &[Id],
    form: i64,
) -> Result<()> {
    const SQL: &str =
        "UPDATE click_batches SET unreadable_by = ? WHERE id IN (SELECT value FROM json_each(?))";
    query(SQL).bind(form).bind(ids(batch_ids)).execute(conn).await?;
    Ok(())
}

pub(crate) async fn add_clicks(conn: &mut SqliteConnection, sums: &[(Id, Timestamp, Count)]) -> Result<()> {
    const SQL: &str = "INSERT INTO link_clicks (link_id, hour, humans, bots) \
                       SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM jsonb_each(?) WHERE true \
                       ON CONFLICT (link_id, hour) DO UPDATE \
                       SET humans = humans + excluded.humans, bots = bots + excluded.bots";
    let mut rows = Rows::new();
    for (link_id, hour, count) in sums {
        rows.row().id(*link_id).time(Some(*hour)).number(Some(count.humans)).number(Some(count.bots));
    }
    query(SQL).bind(rows.finish()).execute(conn).await?;
    Ok(())
}

pub(crate) async fn delete_click_batches(conn: &mut SqliteConnection, batch_ids: &[Id]) -> Result<u64> {
    const SQL: &str = "DELETE FROM click_batches WHERE id IN (SELECT value FROM json_each(?))";
    Ok(query(SQL).bind(ids(batch_ids)).execute(conn).await?.rows_affected())
}

pub(crate) async fn click_totals(
    conn: &mut SqliteConnection,
    link_ids: &[Id],
) -> Result<Vec<(Id, i64, i64)>> {
    const SQL: &str = "SELECT link_id, sum(humans), sum(bots) FROM link_clicks \
                       WHERE link_id IN (SELECT value FROM json_each(?)) GROUP BY link_id ORDER BY link_id";
    Ok(query_as(SQL).bind(ids(link_ids)).fetch_all(conn).await?)
}

pub(crate) async fn clicks_by_hour(
    conn: &mut SqliteConnection,
    link_id: Id,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<(Timestamp, i64, i64)>> {
    const SQL: &str = "SELECT hour, humans, bots FROM link_clicks WHERE link_id = ? AND hour >= ? AND hour < ? ORDER BY hour";
    Ok(query_as(SQL).bind(link_id).bind(from).bind(to).fetch_all(conn).await?)
}
