use db::{Id, Pg, Timestamp};

use crate::store::Modes;
use crate::store::rows::{DomainRow, code_number, domain_columns};
use crate::{CaseMode, DomainSettings, Host, Result};

pub(crate) async fn insert_domain(
    pg: &mut Pg<'_>,
    id: Id,
    workspace_id: Id,
    host: &Host,
    settings: &DomainSettings,
    now: Timestamp,
) -> Result<bool> {
    const SQL: &str = "INSERT INTO domains (id, workspace_id, host, case_mode, root_redirect, fallback_url, expired_url, \
                       default_redirect_code, created_at) \
                       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (host) DO NOTHING";
    let done = pg
        .query(SQL)
        .bind(id)
        .bind(workspace_id)
        .bind(host.as_str())
        .bind(settings.case_mode.as_str())
        .bind(settings.root_redirect.as_ref().map(|url| url.as_str()))
        .bind(settings.fallback_url.as_ref().map(|url| url.as_str()))
        .bind(settings.expired_url.as_ref().map(|url| url.as_str()))
        .bind(code_number(settings.default_redirect_code))
        .bind(now)
        .execute(&mut *pg.conn)
        .await?;
    Ok(done.rows_affected() > 0)
}

pub(crate) async fn domain_by_id(pg: &mut Pg<'_>, workspace_id: Id, id: Id) -> Result<Option<DomainRow>> {
    const SQL: &str =
        concat!("SELECT ", domain_columns!(), " FROM domains WHERE id = $1 AND workspace_id = $2");
    Ok(pg.query_as(SQL).bind(id).bind(workspace_id).fetch_optional(&mut *pg.conn).await?)
}

pub(crate) async fn domain_by_host(pg: &mut Pg<'_>, host: &Host) -> Result<Option<DomainRow>> {
    const SQL: &str = concat!("SELECT ", domain_columns!(), " FROM domains WHERE host = $1");
    Ok(pg.query_as(SQL).bind(host.as_str()).fetch_optional(&mut *pg.conn).await?)
}

pub(crate) async fn domains_of_workspace(pg: &mut Pg<'_>, workspace_id: Id) -> Result<Vec<DomainRow>> {
    const SQL: &str =
        concat!("SELECT ", domain_columns!(), " FROM domains WHERE workspace_id = $1 ORDER BY host");
    Ok(pg.query_as(SQL).bind(workspace_id).fetch_all(&mut *pg.conn).await?)
}

pub(crate) async fn all_domains(pg: &mut Pg<'_>) -> Result<Vec<DomainRow>> {
    const SQL: &str = concat!("SELECT ", domain_columns!(), " FROM domains ORDER BY host");
    Ok(pg.query_as(SQL).fetch_all(&mut *pg.conn).await?)
}

/// Waits for transactions that are inserting slugs by the present case mode.
pub(crate) async fn lock_domain(pg: &mut Pg<'_>, workspace_id: Id, id: Id) -> Result<Option<DomainRow>> {
    const SQL: &str = concat!(
        "SELECT ",
        domain_columns!(),
        " FROM domains WHERE id = $1 AND workspace_id = $2 FOR NO KEY UPDATE"
    );
    Ok(pg.query_as(SQL).bind(id).bind(workspace_id).fetch_optional(&mut *pg.conn).await?)
}

pub(crate) async fn write_domain(pg: &mut Pg<'_>, id: Id, settings: &DomainSettings) -> Result<()> {
    const SQL: &str = "UPDATE domains SET case_mode = $1, root_redirect = $2, fallback_url = $3, expired_url = $4, \
                       default_redirect_code = $5, version = version + 1 WHERE id = $6";
    pg.query(SQL)
        .bind(settings.case_mode.as_str())
        .bind(settings.root_redirect.as_ref().map(|url| url.as_str()))
        .bind(settings.fallback_url.as_ref().map(|url| url.as_str()))
        .bind(settings.expired_url.as_ref().map(|url| url.as_str()))
        .bind(code_number(settings.default_redirect_code))
        .bind(id)
        .execute(&mut *pg.conn)
        .await?;
    Ok(())
}

pub(crate) async fn case_modes(pg: &mut Pg<'_>, domain_ids: &[Id]) -> Result<Modes> {
    const SQL: &str = "SELECT id, case_mode FROM domains WHERE id = ANY($1)";
    let rows: Vec<(Id, String)> = pg.query_as(SQL).bind(domain_ids).fetch_all(&mut *pg.conn).await?;
    rows.into_iter().map(|(id, mode)| Ok((id, mode.parse::<CaseMode>()?))).collect()
}

/// `FOR SHARE`, so that the case mode stays as it is until the slugs are committed.
pub(crate) async fn lock_case_modes(pg: &mut Pg<'_>, workspace_id: Id, domain_ids: &[Id]) -> Result<Modes> {
    const SQL: &str =
        "SELECT id, case_mode FROM domains WHERE id = ANY($1) AND workspace_id = $2 ORDER BY id FOR SHARE";
    let rows: Vec<(Id, String)> =
        pg.query_as(SQL).bind(domain_ids).bind(workspace_id).fetch_all(&mut *pg.conn).await?;
    rows.into_iter().map(|(id, mode)| Ok((id, mode.parse::<CaseMode>()?))).collect()
}

pub(crate) async fn unfold_domain(pg: &mut Pg<'_>, id: Id) -> Result<()> {
    const SQL: &str = "UPDATE slugs SET folded = slug WHERE domain_id = $1 AND folded <> slug";
    pg.query(SQL).bind(id).execute(&mut *pg.conn).await?;
    Ok(())
}

pub(crate) async fn slugs_of_domain(
    pg: &mut Pg<'_>,
    id: Id,
    after: Option<&(Id, String)>,
    limit: i64,
) -> Result<Vec<(Id, String, bool)>> {
    const SQL: &str = "SELECT link_id, slug, deleted_at IS NOT NULL FROM slugs \
                       WHERE domain_id = $1 AND (link_id, slug) > ($2, $3) ORDER BY link_id, slug LIMIT $4";
    let (link_id, slug) = after.map_or((i64::MIN, ""), |(link_id, slug)| (link_id.get(), slug.as_str()));
    Ok(pg.query_as(SQL).bind(id).bind(link_id).bind(slug).bind(limit).fetch_all(&mut *pg.conn).await?)
}

pub(crate) async fn rekey(pg: &mut Pg<'_>, id: Id, keys: &[(Id, &str, String)]) -> Result<()> {
    const SQL: &str = "UPDATE slugs SET folded = j.folded \
                       FROM unnest($2::bigint[], $3::text[], $4::text[]) AS j (link_id, slug, folded) \
                       WHERE slugs.link_id = j.link_id AND slugs.domain_id = $1 AND slugs.slug = j.slug";
    let link_ids: Vec<Id> = keys.iter().map(|(link_id, _, _)| *link_id).collect();
    let slugs: Vec<&str> = keys.iter().map(|(_, slug, _)| *slug).collect();
    let folded: Vec<&str> = keys.iter().map(|(_, _, folded)| folded.as_str()).collect();
    pg.query(SQL).bind(id).bind(link_ids).bind(slugs).bind(folded).execute(&mut *pg.conn).await?;
    Ok(())
}
