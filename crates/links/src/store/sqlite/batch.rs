use std::collections::HashMap;

use db::{Id, Timestamp};
use sqlx::{SqliteConnection, query, query_as, query_scalar};

use super::{case_modes, read_links};
use crate::batch::{LinkValues, Lost, OriginValues, SlugValues};
use crate::store;
use crate::store::json::{Rows, ids, texts};
use crate::store::rows::{LinkParts, OriginRow, TakenRow, code_number};
use crate::taken::{Taken, match_taken};
use crate::{NewOrigin, Place, Result};

pub(crate) async fn origins_of(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    vendor: &str,
    domain_id: Id,
    source_ids: &[&str],
) -> Result<Vec<OriginRow>> {
    const SQL: &str = "SELECT o.source_id, o.link_id, o.imported_digest, o.imported_version, o.source_digest, o.job_id, \
                       l.version, l.deleted_at \
                       FROM json_each(?4) j CROSS JOIN link_origins o ON o.workspace_id = ?1 AND o.vendor = ?2 \
                       AND o.source_id = j.value AND o.domain_id = ?3 LEFT JOIN links l ON l.id = o.link_id";
    Ok(query_as(SQL)
        .bind(workspace_id)
        .bind(vendor)
        .bind(domain_id)
        .bind(texts(source_ids))
        .fetch_all(conn)
        .await?)
}

pub(crate) async fn possible_rekeys(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    vendor: &str,
    domain_id: Id,
    job: Id,
    limit: i64,
) -> Result<Vec<(String, String)>> {
    // Each content once in e: a thousand links alike would otherwise meet a thousand others. CROSS JOIN keeps the order:
    // SQLite then makes an index of n for this query, where the other way round it would walk over e for each of n.
    const SQL: &str = "WITH n AS MATERIALIZED ( \
                           SELECT id, source_id, destination, title, created_at FROM links WHERE import_job = ?4), \
                       e AS MATERIALIZED ( \
                           SELECT destination, created_at, title, MIN(source_id) AS source_id FROM links \
                           WHERE workspace_id = ?1 AND vendor = ?2 AND import_job < ?4 \
                               AND (destination, created_at) IN (SELECT destination, created_at FROM n) \
                           GROUP BY destination, created_at, title) \
                       SELECT n.source_id, e.source_id FROM e CROSS JOIN n ON e.destination = n.destination \
                           AND e.created_at = n.created_at AND e.title IS n.title \
                       WHERE NOT EXISTS (SELECT 1 FROM link_origins o WHERE o.workspace_id = ?1 AND o.vendor = ?2 \
                           AND o.source_id = n.source_id AND o.domain_id <> ?3) \
                       ORDER BY n.id LIMIT ?5";
    Ok(query_as(SQL)
        .bind(workspace_id)
        .bind(vendor)
        .bind(domain_id)
        .bind(job)
        .bind(limit)
        .fetch_all(conn)
        .await?)
}

pub(crate) async fn taken_places(conn: &mut SqliteConnection, places: &[Place]) -> Result<Vec<Taken>> {
    let modes = case_modes(conn, &store::domains_of(places)).await?;
    let keys = places.iter().map(|place| store::key(&modes, place)).collect::<Result<Vec<_>>>()?;
    let asked: Vec<(Id, &str)> =
        places.iter().map(|place| place.domain_id).zip(keys.iter().map(String::as_str)).collect();
    let rows = taken(conn, &asked).await?;
    match_taken(&modes, places, rows)
}

pub(crate) async fn taken(conn: &mut SqliteConnection, keys: &[(Id, &str)]) -> Result<Vec<TakenRow>> {
    const SQL: &str = "SELECT s.domain_id, s.folded, s.slug, s.link_id FROM jsonb_each(?) j CROSS JOIN slugs s \
                       ON s.domain_id = j.value ->> 0 AND s.folded = j.value ->> 1 AND s.deleted_at IS NULL";
    let mut rows = Rows::new();
    for (domain_id, key) in keys {
        rows.row().id(*domain_id).text(Some(key));
    }
    Ok(query_as(SQL).bind(rows.finish()).fetch_all(conn).await?)
}

pub(crate) async fn folder_ids(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    names: &[&str],
) -> Result<HashMap<String, Id>> {
    const SQL: &str =
        "SELECT name, id FROM folders WHERE workspace_id = ? AND name IN (SELECT value FROM json_each(?))";
    let rows: Vec<(String, Id)> = query_as(SQL).bind(workspace_id).bind(texts(names)).fetch_all(conn).await?;
    Ok(rows.into_iter().collect())
}

pub(crate) async fn insert_folders(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    names: &[(Id, &str)],
    job: Option<Id>,
) -> Result<()> {
    const SQL: &str = "INSERT INTO folders (id, workspace_id, name, import_job) \
                       SELECT value ->> 0, ?1, value ->> 1, ?2 FROM jsonb_each(?3) WHERE true ON CONFLICT DO NOTHING";
    query(SQL).bind(workspace_id).bind(job).bind(named(names)).execute(conn).await?;
    Ok(())
}

pub(crate) async fn tag_ids(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    names: &[&str],
) -> Result<HashMap<String, Id>> {
    const SQL: &str =
        "SELECT name, id FROM tags WHERE workspace_id = ? AND name IN (SELECT value FROM json_each(?))";
    let rows: Vec<(String, Id)> = query_as(SQL).bind(workspace_id).bind(texts(names)).fetch_all(conn).await?;
    Ok(rows.into_iter().collect())
}

pub(crate) async fn insert_tags(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    names: &[(Id, &str)],
    job: Option<Id>,
) -> Result<()> {
    const SQL: &str = "INSERT INTO tags (id, workspace_id, name, import_job) \
                       SELECT value ->> 0, ?1, value ->> 1, ?2 FROM jsonb_each(?3) WHERE true ON CONFLICT DO NOTHING";
    query(SQL).bind(workspace_id).bind(job).bind(named(names)).execute(conn).await?;
    Ok(())
}

fn named(names: &[(Id, &str)]) -> String {
    let mut rows = Rows::new();
    for (id, name) in names {
        rows.row().id(*id).text(Some(name));
    }
    rows.finish()
}

pub(crate) async fn insert_links(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    links: &[LinkValues<'_>],
    now: Timestamp,
) -> Result<()> {
    const SQL: &str = "INSERT INTO links (id, workspace_id, version, destination, title, notes, folder_id, redirect_code, \
                       query_passthrough, enabled, archived, expires_at, expired_url, password_protected, ios_url, \
                       android_url, geo, utm, imported_clicks, external_id, created_at, vendor, source_id, import_job, \
                       updated_at) \
                       SELECT value ->> 0, ?1, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, \
                       value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, \
                       value ->> 14, value ->> 15, value ->> 16, value ->> 17, value ->> 18, value ->> 19, value ->> 20, \
                       value ->> 21, value ->> 22, ?2 FROM jsonb_each(?3)";
    query(SQL).bind(workspace_id).bind(now).bind(link_rows(links)).execute(conn).await?;
    Ok(())
}

pub(crate) async fn rewrite_links(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    links: &[LinkValues<'_>],
    now: Timestamp,
) -> Result<Vec<Id>> {
    const SQL: &str = "UPDATE links SET version = version + 1, updated_at = ?2, \
                       destination = j.value ->> 2, title = j.value ->> 3, notes = j.value ->> 4, folder_id = j.value ->> 5, \
                       redirect_code = j.value ->> 6, query_passthrough = j.value ->> 7, enabled = j.value ->> 8, \
                       archived = j.value ->> 9, expires_at = j.value ->> 10, expired_url = j.value ->> 11, \
                       password_protected = j.value ->> 12, ios_url = j.value ->> 13, android_url = j.value ->> 14, \
                       geo = j.value ->> 15, utm = j.value ->> 16, imported_clicks = j.value ->> 17, \
                       external_id = j.value ->> 18, created_at = j.value ->> 19 FROM jsonb_each(?3) j \
                       WHERE links.id = j.value ->> 0 AND links.version = j.value ->> 1 AND links.workspace_id = ?1 \
                       AND links.deleted_at IS NULL RETURNING id";
    Ok(query_scalar(SQL).bind(workspace_id).bind(now).bind(link_rows(links)).fetch_all(conn).await?)
}

/// The numbers in the statements above are the places in this row.
fn link_rows(links: &[LinkValues<'_>]) -> String {
    let mut rows = Rows::new();
    for link in links {
        let content = link.content;
        let origin = link.origin;
        rows.row()
            .id(link.id)
            .number(Some(link.version))
            .text(Some(content.destination.as_str()))
            .text(content.title.as_ref().map(|text| text.as_str()))
            .text(content.notes.as_ref().map(|text| text.as_str()))
            .number(link.folder_id.map(Id::get))
            .number(content.redirect_code.map(|code| i64::from(code_number(code))))
            .flag(content.query_passthrough)
            .flag(content.enabled)
            .flag(content.archived)
            .time(content.expires_at)
            .text(content.expired_url.as_ref().map(|url| url.as_str()))
            .flag(content.password_protected)
            .text(content.ios_url.as_ref().map(|url| url.as_str()))
            .text(content.android_url.as_ref().map(|url| url.as_str()))
            .text(content.geo.as_ref().map(|json| json.as_str()))
            .text(content.utm.as_ref().map(|json| json.as_str()))
            .number(content.imported_clicks)
            .text(content.external_id.as_ref().map(|name| name.as_str()))
            .time(Some(content.created_at))
            .text(origin.map(|origin| origin.source.vendor()))
            .text(origin.map(|origin| origin.source.id()))
            .number(origin.map(|origin| origin.job_id.get()));
    }
    rows.finish()
}

pub(crate) async fn insert_slugs(conn: &mut SqliteConnection, slugs: &[SlugValues]) -> Result<u64> {
    const SQL: &str = "INSERT INTO slugs (link_id, domain_id, slug, folded) \
                       SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM jsonb_each(?) WHERE true \
                       ON CONFLICT DO NOTHING";
    Ok(query(SQL).bind(slug_rows(slugs)).execute(conn).await?.rows_affected())
}

pub(crate) async fn lost_slugs(conn: &mut SqliteConnection, slugs: &[SlugValues]) -> Result<Vec<Lost>> {
    const SQL: &str = "SELECT j.key FROM jsonb_each(?) j WHERE NOT EXISTS (SELECT 1 FROM slugs s \
                       WHERE s.link_id = j.value ->> 0 AND s.domain_id = j.value ->> 1 AND s.slug = j.value ->> 2)";
    let places: Vec<i64> = query_scalar(SQL).bind(slug_rows(slugs)).fetch_all(conn).await?;
    Ok(places
        .into_iter()
        .filter_map(|place| slugs.get(usize::try_from(place).ok()?))
        .map(|row| Lost { link_id: row.link_id, place: row.place.clone() })
        .collect())
}

fn slug_rows(slugs: &[SlugValues]) -> String {
    let mut rows = Rows::new();
    for slug in slugs {
        rows.row()
            .id(slug.link_id)
            .id(slug.place.domain_id)
            .text(Some(slug.place.slug.as_str()))
            .text(Some(&slug.key));
    }
    rows.finish()
}

pub(crate) async fn slugs_of_links(
    conn: &mut SqliteConnection,
    link_ids: &[Id],
) -> Result<Vec<(Id, Id, String)>> {
    const SQL: &str =
        "SELECT link_id, domain_id, slug FROM slugs WHERE link_id IN (SELECT value FROM json_each(?))";
    Ok(query_as(SQL).bind(ids(link_ids)).fetch_all(conn).await?)
}

pub(crate) async fn insert_link_tags(conn: &mut SqliteConnection, pairs: &[(Id, Id)]) -> Result<()> {
    const SQL: &str =
        "INSERT INTO link_tags (link_id, tag_id) SELECT value ->> 0, value ->> 1 FROM jsonb_each(?)";
    let mut rows = Rows::new();
    for (link_id, tag_id) in pairs {
        rows.row().id(*link_id).id(*tag_id);
    }
    query(SQL).bind(rows.finish()).execute(conn).await?;
    Ok(())
}

pub(crate) async fn delete_link_tags(conn: &mut SqliteConnection, link_ids: &[Id]) -> Result<()> {
    const SQL: &str = "DELETE FROM link_tags WHERE link_id IN (SELECT value FROM json_each(?))";
    query(SQL).bind(ids(link_ids)).execute(conn).await?;
    Ok(())
}

/// The bytes of all rows travel as one value, from which SQLite cuts those of each row: digests and whole records would
/// be written as JSON here only to be read from it there.
pub(crate) async fn insert_origins(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    origins: &[OriginValues<'_>],
) -> Result<()> {
    const SQL: &str = "INSERT INTO link_origins (workspace_id, vendor, source_id, domain_id, link_id, imported_digest, \
                       imported_version, source_digest, source_json, job_id) \
                       SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, \
                       substr(?3, value ->> 4, value ->> 5), value ->> 6, substr(?3, value ->> 7, value ->> 8), \
                       CAST(substr(?3, value ->> 9, value ->> 10) AS TEXT), value ->> 11 FROM jsonb_each(?2)";
    let mut bytes: Vec<u8> = Vec::new();
    // SQLite counts bytes from 1; where there is none, the length is NULL, and so is what is cut.
    let mut place = |part: Option<&[u8]>| {
        let first = bytes.len() + 1;
        bytes.extend_from_slice(part.unwrap_or_default());
        (number(first), part.map(<[u8]>::len).and_then(number))
    };
    let mut rows = Rows::new();
    for values in origins {
        let origin = values.origin;
        let digest = place(Some(values.digest.as_bytes()));
        let source_digest = place(Some(&origin.source_digest));
        let source_json = place(origin.source_json.as_ref().map(|text| text.as_str().as_bytes()));
        rows.row()
            .text(Some(origin.source.vendor()))
            .text(Some(origin.source.id()))
            .id(origin.domain_id)
            .id(values.link_id)
            .number(digest.0)
            .number(digest.1)
            .number(Some(values.version))
            .number(source_digest.0)
            .number(source_digest.1)
            .number(source_json.0)
            .number(source_json.1)
            .id(origin.job_id);
    }
    query(SQL).bind(workspace_id).bind(rows.finish()).bind(bytes).execute(conn).await?;
    Ok(())
}

fn number(size: usize) -> Option<i64> {
    i64::try_from(size).ok()
}

pub(crate) async fn update_origins(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    origins: &[OriginValues<'_>],
) -> Result<()> {
    const SQL: &str = "UPDATE link_origins SET imported_digest = unhex(j.value ->> 4), imported_version = j.value ->> 5, \
                       source_digest = unhex(j.value ->> 6), source_json = j.value ->> 7, job_id = j.value ->> 8 \
                       FROM jsonb_each(?2) j WHERE link_origins.workspace_id = ?1 AND link_origins.vendor = j.value ->> 0 \
                       AND link_origins.source_id = j.value ->> 1 AND link_origins.domain_id = j.value ->> 2 \
                       AND link_origins.link_id = j.value ->> 3";
    query(SQL).bind(workspace_id).bind(origin_rows(origins)).execute(conn).await?;
    Ok(())
}

fn origin_rows(origins: &[OriginValues<'_>]) -> String {
    let mut rows = Rows::new();
    for row in origins {
        let origin = row.origin;
        rows.row()
            .text(Some(origin.source.vendor()))
            .text(Some(origin.source.id()))
            .id(origin.domain_id)
            .id(row.link_id)
            .bytes(row.digest.as_bytes())
            .number(Some(row.version))
            .bytes(&origin.source_digest)
            .text(origin.source_json.as_ref().map(|text| text.as_str()))
            .id(origin.job_id);
    }
    rows.finish()
}

pub(crate) async fn refresh_source_digests(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    origins: &[NewOrigin],
) -> Result<()> {
    const SQL: &str = "UPDATE link_origins SET source_digest = unhex(j.value ->> 3), source_json = j.value ->> 4 \
                       FROM jsonb_each(?2) j WHERE link_origins.workspace_id = ?1 AND link_origins.vendor = j.value ->> 0 \
                       AND link_origins.source_id = j.value ->> 1 AND link_origins.domain_id = j.value ->> 2";
    let mut rows = Rows::new();
    for origin in origins {
        rows.row()
            .text(Some(origin.source.vendor()))
            .text(Some(origin.source.id()))
            .id(origin.domain_id)
            .bytes(&origin.source_digest)
            .text(origin.source_json.as_ref().map(|text| text.as_str()));
    }
    query(SQL).bind(workspace_id).bind(rows.finish()).execute(conn).await?;
    Ok(())
}

pub(crate) async fn read_imported(
    conn: &mut SqliteConnection,
    link_ids: &[Id],
) -> Result<(LinkParts, Vec<OriginRow>)> {
    const SQL: &str = "SELECT o.source_id, o.link_id, o.imported_digest, o.imported_version, o.source_digest, o.job_id, \
                       l.version, l.deleted_at FROM links l JOIN link_origins o ON o.workspace_id = l.workspace_id \
                       AND o.vendor = l.vendor AND o.source_id = l.source_id AND o.link_id = l.id \
                       WHERE l.id IN (SELECT value FROM json_each(?)) ORDER BY l.id";
    let origins = query_as(SQL).bind(ids(link_ids)).fetch_all(&mut *conn).await?;
    Ok((read_links(conn, link_ids).await?, origins))
}
