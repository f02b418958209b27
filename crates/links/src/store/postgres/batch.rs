use std::collections::HashMap;

use db::{Id, Pg, Timestamp};
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{Postgres, Row};

use super::{case_modes, read_links};
use crate::batch::{LinkValues, Lost, OriginValues, SlugValues};
use crate::store;
use crate::store::rows::{LinkParts, OriginRow, TakenRow, code_number};
use crate::taken::{Taken, match_taken};
use crate::{NewOrigin, Place, Result};

pub(crate) async fn origins_of(
    pg: &mut Pg<'_>,
    workspace_id: Id,
    vendor: &str,
    domain_id: Id,
    source_ids: &[&str],
) -> Result<Vec<OriginRow>> {
    // LIMIT in LATERAL: one descent of the unique index for each id. A plain join reads the whole table for a few
    // hundred ids, because the planner takes a page read at random for four read in a row.
    const SQL: &str = "SELECT o.source_id, o.link_id, o.imported_digest, o.imported_version, o.source_digest, o.job_id, \
                       l.version, l.deleted_at \
                       FROM unnest($4::text[]) AS j (source_id) CROSS JOIN LATERAL (SELECT * FROM link_origins o \
                       WHERE o.workspace_id = $1 AND o.vendor = $2 AND o.source_id = j.source_id AND o.domain_id = $3 \
                       LIMIT 1) o LEFT JOIN LATERAL (SELECT l.version, l.deleted_at FROM links l WHERE l.id = o.link_id \
                       LIMIT 1) l ON true";
    Ok(pg
        .query_as(SQL)
        .bind(workspace_id)
        .bind(vendor)
        .bind(domain_id)
        .bind(source_ids)
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(crate) async fn possible_rekeys(
    pg: &mut Pg<'_>,
    workspace_id: Id,
    vendor: &str,
    domain_id: Id,
    job: Id,
    limit: i64,
) -> Result<Vec<(String, String)>> {
    // Each content once in e: a thousand links alike would otherwise meet a thousand others.
    const SQL: &str = "WITH n AS MATERIALIZED ( \
                           SELECT id, source_id, destination, title, created_at FROM links WHERE import_job = $4), \
                       e AS MATERIALIZED ( \
                           SELECT destination, created_at, title, MIN(source_id) AS source_id FROM links \
                           WHERE workspace_id = $1 AND vendor = $2 AND import_job < $4 \
                               AND (destination, created_at) IN (SELECT destination, created_at FROM n) \
                           GROUP BY destination, created_at, title) \
                       SELECT n.source_id, e.source_id FROM n JOIN e ON e.destination = n.destination \
                           AND e.created_at = n.created_at AND e.title IS NOT DISTINCT FROM n.title \
                       WHERE NOT EXISTS (SELECT 1 FROM link_origins o WHERE o.workspace_id = $1 AND o.vendor = $2 \
                           AND o.source_id = n.source_id AND o.domain_id <> $3) \
                       ORDER BY n.id LIMIT $5";
    Ok(pg
        .query_as(SQL)
        .bind(workspace_id)
        .bind(vendor)
        .bind(domain_id)
        .bind(job)
        .bind(limit)
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(crate) async fn taken_places(pg: &mut Pg<'_>, places: &[Place]) -> Result<Vec<Taken>> {
    let modes = case_modes(pg, &store::domains_of(places)).await?;
    let keys = places.iter().map(|place| store::key(&modes, place)).collect::<Result<Vec<_>>>()?;
    let asked: Vec<(Id, &str)> =
        places.iter().map(|place| place.domain_id).zip(keys.iter().map(String::as_str)).collect();
    let rows = taken(pg, &asked).await?;
    match_taken(&modes, places, rows)
}

pub(crate) async fn taken(pg: &mut Pg<'_>, keys: &[(Id, &str)]) -> Result<Vec<TakenRow>> {
    const SQL: &str = "SELECT s.domain_id, s.folded, s.slug, s.link_id \
                       FROM unnest($1::bigint[], $2::text[]) AS j (domain_id, folded) CROSS JOIN LATERAL \
                       (SELECT * FROM slugs s WHERE s.domain_id = j.domain_id AND s.folded = j.folded \
                       AND s.deleted_at IS NULL LIMIT 1) s";
    let (domain_ids, keys): (Vec<Id>, Vec<&str>) = keys.iter().copied().unzip();
    Ok(pg.query_as(SQL).bind(domain_ids).bind(keys).fetch_all(&mut *pg.conn).await?)
}

pub(crate) async fn folder_ids(
    pg: &mut Pg<'_>,
    workspace_id: Id,
    names: &[&str],
) -> Result<HashMap<String, Id>> {
    const SQL: &str = "SELECT name, id FROM folders WHERE workspace_id = $1 AND name = ANY($2)";
    let rows: Vec<(String, Id)> =
        pg.query_as(SQL).bind(workspace_id).bind(names).fetch_all(&mut *pg.conn).await?;
    Ok(rows.into_iter().collect())
}

pub(crate) async fn insert_folders(
    pg: &mut Pg<'_>,
    workspace_id: Id,
    names: &[(Id, &str)],
    job: Option<Id>,
) -> Result<()> {
    const SQL: &str = "INSERT INTO folders (id, workspace_id, name, import_job) \
                       SELECT id, $1, name, $2 FROM unnest($3::bigint[], $4::text[]) AS j (id, name) ON CONFLICT DO NOTHING";
    let (ids, names): (Vec<Id>, Vec<&str>) = names.iter().copied().unzip();
    pg.query(SQL).bind(workspace_id).bind(job).bind(ids).bind(names).execute(&mut *pg.conn).await?;
    Ok(())
}

pub(crate) async fn tag_ids(
    pg: &mut Pg<'_>,
    workspace_id: Id,
    names: &[&str],
) -> Result<HashMap<String, Id>> {
    const SQL: &str = "SELECT name, id FROM tags WHERE workspace_id = $1 AND name = ANY($2)";
    let rows: Vec<(String, Id)> =
        pg.query_as(SQL).bind(workspace_id).bind(names).fetch_all(&mut *pg.conn).await?;
    Ok(rows.into_iter().collect())
}

pub(crate) async fn insert_tags(
    pg: &mut Pg<'_>,
    workspace_id: Id,
    names: &[(Id, &str)],
    job: Option<Id>,
) -> Result<()> {
    const SQL: &str = "INSERT INTO tags (id, workspace_id, name, import_job) \
                       SELECT id, $1, name, $2 FROM unnest($3::bigint[], $4::text[]) AS j (id, name) ON CONFLICT DO NOTHING";
    let (ids, names): (Vec<Id>, Vec<&str>) = names.iter().copied().unzip();
    pg.query(SQL).bind(workspace_id).bind(job).bind(ids).bind(names).execute(&mut *pg.conn).await?;
    Ok(())
}

pub(crate) async fn insert_links(
    pg: &mut Pg<'_>,
    workspace_id: Id,
    links: &[LinkValues<'_>],
    now: Timestamp,
) -> Result<()> {
    const SQL: &str = "INSERT INTO links (workspace_id, updated_at, id, version, destination, title, notes, folder_id, \
                       redirect_code, query_passthrough, enabled, archived, expires_at, expired_url, password_protected, \
                       ios_url, android_url, geo, utm, imported_clicks, external_id, created_at, vendor, source_id, \
                       import_job) \
                       SELECT $1, $2, j.* FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], \
                       $8::bigint[], $9::smallint[], $10::boolean[], $11::boolean[], $12::boolean[], $13::timestamptz[], \
                       $14::text[], $15::boolean[], $16::text[], $17::text[], $18::text[], $19::text[], $20::bigint[], \
                       $21::text[], $22::timestamptz[], $23::text[], $24::text[], $25::bigint[]) AS j";
    let vendors: Vec<_> = links.iter().map(|link| link.origin.map(|origin| origin.source.vendor())).collect();
    let source_ids: Vec<_> = links.iter().map(|link| link.origin.map(|origin| origin.source.id())).collect();
    let jobs: Vec<_> = links.iter().map(|link| link.origin.map(|origin| origin.job_id)).collect();
    bind_links(pg.query(SQL).bind(workspace_id).bind(now), links)
        .bind(vendors)
        .bind(source_ids)
        .bind(jobs)
        .execute(&mut *pg.conn)
        .await?;
    Ok(())
}

pub(crate) async fn rewrite_links(
    pg: &mut Pg<'_>,
    workspace_id: Id,
    links: &[LinkValues<'_>],
    now: Timestamp,
) -> Result<Vec<Id>> {
    const SQL: &str = "UPDATE links SET version = links.version + 1, updated_at = $2, \
                       destination = j.destination, title = j.title, notes = j.notes, folder_id = j.folder_id, \
                       redirect_code = j.redirect_code, query_passthrough = j.query_passthrough, enabled = j.enabled, \
                       archived = j.archived, expires_at = j.expires_at, expired_url = j.expired_url, \
                       password_protected = j.password_protected, ios_url = j.ios_url, android_url = j.android_url, \
                       geo = j.geo, utm = j.utm, imported_clicks = j.imported_clicks, external_id = j.external_id, \
                       created_at = j.created_at \
                       FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], \
                       $8::bigint[], $9::smallint[], $10::boolean[], $11::boolean[], $12::boolean[], $13::timestamptz[], \
                       $14::text[], $15::boolean[], $16::text[], $17::text[], $18::text[], $19::text[], $20::bigint[], \
                       $21::text[], $22::timestamptz[]) AS j (id, version, destination, title, notes, folder_id, \
                       redirect_code, query_passthrough, enabled, archived, expires_at, expired_url, password_protected, \
                       ios_url, android_url, geo, utm, imported_clicks, external_id, created_at) \
                       WHERE links.id = j.id AND links.version = j.version AND links.workspace_id = $1 \
                       AND links.deleted_at IS NULL RETURNING links.id";
    let rows = bind_links(pg.query(SQL).bind(workspace_id).bind(now), links).fetch_all(&mut *pg.conn).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, sqlx::Error>>()?)
}

/// One array per column, in the order in which the statements above unnest them.
fn bind_links<'q>(
    query: Query<'q, Postgres, PgArguments>,
    links: &[LinkValues<'_>],
) -> Query<'q, Postgres, PgArguments> {
    macro_rules! column {
        ($link:ident => $value:expr) => {
            links.iter().map(|$link| $value).collect::<Vec<_>>()
        };
    }
    query
        .bind(column!(l => l.id))
        .bind(column!(l => l.version))
        .bind(column!(l => l.content.destination.as_str()))
        .bind(column!(l => l.content.title.as_ref().map(|text| text.as_str())))
        .bind(column!(l => l.content.notes.as_ref().map(|text| text.as_str())))
        .bind(column!(l => l.folder_id))
        .bind(column!(l => l.content.redirect_code.map(code_number)))
        .bind(column!(l => l.content.query_passthrough))
        .bind(column!(l => l.content.enabled))
        .bind(column!(l => l.content.archived))
        .bind(column!(l => l.content.expires_at))
        .bind(column!(l => l.content.expired_url.as_ref().map(|url| url.as_str())))
        .bind(column!(l => l.content.password_protected))
        .bind(column!(l => l.content.ios_url.as_ref().map(|url| url.as_str())))
        .bind(column!(l => l.content.android_url.as_ref().map(|url| url.as_str())))
        .bind(column!(l => l.content.geo.as_ref().map(|json| json.as_str())))
        .bind(column!(l => l.content.utm.as_ref().map(|json| json.as_str())))
        .bind(column!(l => l.content.imported_clicks))
        .bind(column!(l => l.content.external_id.as_ref().map(|name| name.as_str())))
        .bind(column!(l => l.content.created_at))
}

pub(crate) async fn insert_slugs(pg: &mut Pg<'_>, slugs: &[SlugValues]) -> Result<u64> {
    const SQL: &str = "INSERT INTO slugs (link_id, domain_id, slug, folded) \
                       SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) ON CONFLICT DO NOTHING";
    let link_ids: Vec<Id> = slugs.iter().map(|slug| slug.link_id).collect();
    let domain_ids: Vec<Id> = slugs.iter().map(|slug| slug.place.domain_id).collect();
    let texts: Vec<&str> = slugs.iter().map(|slug| slug.place.slug.as_str()).collect();
    let keys: Vec<&str> = slugs.iter().map(|slug| slug.key.as_str()).collect();
    let done =
        pg.query(SQL).bind(link_ids).bind(domain_ids).bind(texts).bind(keys).execute(&mut *pg.conn).await?;
    Ok(done.rows_affected())
}

pub(crate) async fn lost_slugs(pg: &mut Pg<'_>, slugs: &[SlugValues]) -> Result<Vec<Lost>> {
    const SQL: &str = "SELECT j.place FROM unnest($1::bigint[], $2::bigint[], $3::text[]) \
                       WITH ORDINALITY AS j (link_id, domain_id, slug, place) \
                       LEFT JOIN LATERAL (SELECT true AS kept FROM slugs s WHERE s.link_id = j.link_id \
                       AND s.domain_id = j.domain_id AND s.slug = j.slug LIMIT 1) s ON true \
                       WHERE s.kept IS NULL ORDER BY j.place";
    let link_ids: Vec<Id> = slugs.iter().map(|slug| slug.link_id).collect();
    let domain_ids: Vec<Id> = slugs.iter().map(|slug| slug.place.domain_id).collect();
    let texts: Vec<&str> = slugs.iter().map(|slug| slug.place.slug.as_str()).collect();
    let places: Vec<i64> =
        pg.scalar(SQL).bind(link_ids).bind(domain_ids).bind(texts).fetch_all(&mut *pg.conn).await?;
    Ok(places
        .into_iter()
        .filter_map(|place| slugs.get(usize::try_from(place).ok()?.checked_sub(1)?))
        .map(|row| Lost { link_id: row.link_id, place: row.place.clone() })
        .collect())
}

pub(crate) async fn slugs_of_links(pg: &mut Pg<'_>, link_ids: &[Id]) -> Result<Vec<(Id, Id, String)>> {
    const SQL: &str = "SELECT link_id, domain_id, slug FROM slugs WHERE link_id = ANY($1)";
    Ok(pg.query_as(SQL).bind(link_ids).fetch_all(&mut *pg.conn).await?)
}

pub(crate) async fn insert_link_tags(pg: &mut Pg<'_>, pairs: &[(Id, Id)]) -> Result<()> {
    const SQL: &str =
        "INSERT INTO link_tags (link_id, tag_id) SELECT * FROM unnest($1::bigint[], $2::bigint[])";
    let (link_ids, tag_ids): (Vec<Id>, Vec<Id>) = pairs.iter().copied().unzip();
    pg.query(SQL).bind(link_ids).bind(tag_ids).execute(&mut *pg.conn).await?;
    Ok(())
}

pub(crate) async fn delete_link_tags(pg: &mut Pg<'_>, link_ids: &[Id]) -> Result<()> {
    const SQL: &str = "DELETE FROM link_tags WHERE link_id = ANY($1)";
    pg.query(SQL).bind(link_ids).execute(&mut *pg.conn).await?;
    Ok(())
}

pub(crate) async fn insert_origins(
    pg: &mut Pg<'_>,
    workspace_id: Id,
    origins: &[OriginValues<'_>],
) -> Result<()> {
    const SQL: &str = "INSERT INTO link_origins (workspace_id, vendor, source_id, domain_id, link_id, imported_digest, \
                       imported_version, source_digest, source_json, job_id) \
                       SELECT $1, j.* FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bytea[], \
                       $7::bigint[], $8::bytea[], $9::text[], $10::bigint[]) AS j";
    bind_origins(pg.query(SQL).bind(workspace_id), origins).execute(&mut *pg.conn).await?;
    Ok(())
}

pub(crate) async fn update_origins(
    pg: &mut Pg<'_>,
    workspace_id: Id,
    origins: &[OriginValues<'_>],
) -> Result<()> {
    const SQL: &str = "UPDATE link_origins o SET imported_digest = j.imported_digest, \
                       imported_version = j.imported_version, source_digest = j.source_digest, \
                       source_json = j.source_json, job_id = j.job_id \
                       FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bigint[], \
                       $8::bytea[], $9::text[], $10::bigint[]) AS j (vendor, source_id, domain_id, link_id, \
                       imported_digest, imported_version, source_digest, source_json, job_id) \
                       WHERE o.workspace_id = $1 AND o.vendor = j.vendor AND o.source_id = j.source_id \
                       AND o.domain_id = j.domain_id AND o.link_id = j.link_id";
    bind_origins(pg.query(SQL).bind(workspace_id), origins).execute(&mut *pg.conn).await?;
    Ok(())
}

/// One array per column, in the order in which the statements above unnest them.
fn bind_origins<'q>(
    query: Query<'q, Postgres, PgArguments>,
    origins: &[OriginValues<'_>],
) -> Query<'q, Postgres, PgArguments> {
    macro_rules! column {
        ($row:ident => $value:expr) => {
            origins.iter().map(|$row| $value).collect::<Vec<_>>()
        };
    }
    query
        .bind(column!(o => o.origin.source.vendor()))
        .bind(column!(o => o.origin.source.id()))
        .bind(column!(o => o.origin.domain_id))
        .bind(column!(o => o.link_id))
        .bind(column!(o => o.digest.as_bytes().as_slice()))
        .bind(column!(o => o.version))
        .bind(column!(o => o.origin.source_digest.as_slice()))
        .bind(column!(o => o.origin.source_json.as_ref().map(|text| text.as_str())))
        .bind(column!(o => o.origin.job_id))
}

pub(crate) async fn refresh_source_digests(
    pg: &mut Pg<'_>,
    workspace_id: Id,
    origins: &[NewOrigin],
) -> Result<()> {
    const SQL: &str = "UPDATE link_origins o SET source_digest = j.source_digest, source_json = j.source_json \
                       FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::text[]) \
                       AS j (vendor, source_id, domain_id, source_digest, source_json) \
                       WHERE o.workspace_id = $1 AND o.vendor = j.vendor AND o.source_id = j.source_id \
                       AND o.domain_id = j.domain_id";
    let vendors: Vec<&str> = origins.iter().map(|origin| origin.source.vendor()).collect();
    let source_ids: Vec<&str> = origins.iter().map(|origin| origin.source.id()).collect();
    let domain_ids: Vec<Id> = origins.iter().map(|origin| origin.domain_id).collect();
    let digests: Vec<&[u8]> = origins.iter().map(|origin| origin.source_digest.as_slice()).collect();
    let documents: Vec<Option<&str>> =
        origins.iter().map(|origin| origin.source_json.as_ref().map(|text| text.as_str())).collect();
    pg.query(SQL)
        .bind(workspace_id)
        .bind(vendors)
        .bind(source_ids)
        .bind(domain_ids)
        .bind(digests)
        .bind(documents)
        .execute(&mut *pg.conn)
        .await?;
    Ok(())
}

pub(crate) async fn read_imported(pg: &mut Pg<'_>, link_ids: &[Id]) -> Result<(LinkParts, Vec<OriginRow>)> {
    const SQL: &str = "SELECT o.source_id, o.link_id, o.imported_digest, o.imported_version, o.source_digest, o.job_id, \
                       l.version, l.deleted_at FROM links l JOIN link_origins o ON o.workspace_id = l.workspace_id \
                       AND o.vendor = l.vendor AND o.source_id = l.source_id AND o.link_id = l.id \
                       WHERE l.id = ANY($1) ORDER BY l.id";
    let origins = pg.query_as(SQL).bind(link_ids).fetch_all(&mut *pg.conn).await?;
    Ok((read_links(pg, link_ids).await?, origins))
}
