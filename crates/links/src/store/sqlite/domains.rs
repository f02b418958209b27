use db::{Id, Timestamp};
use sqlx::{SqliteConnection, query, query_as};

use crate::store::Modes;
use crate::store::json::{Rows, ids};
use crate::store::rows::{DomainRow, code_number, domain_columns};
use crate::{CaseMode, DomainSettings, Host, Result};

pub(crate) async fn insert_domain(
    conn: &mut SqliteConnection,
    id: Id,
    workspace_id: Id,
    host: &Host,
    settings: &DomainSettings,
    now: Timestamp,
) -> Result<bool> {
    const SQL: &str = "INSERT INTO domains (id, workspace_id, host, case_mode, root_redirect, fallback_url, expired_url, \
                       default_redirect_code, created_at) \
                       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (host) DO NOTHING";
    let done = query(SQL)
        .bind(id)
        .bind(workspace_id)
        .bind(host.as_str())
        .bind(settings.case_mode.as_str())
        .bind(settings.root_redirect.as_ref().map(|url| url.as_str()))
        .bind(settings.fallback_url.as_ref().map(|url| url.as_str()))
        .bind(settings.expired_url.as_ref().map(|url| url.as_str()))
        .bind(code_number(settings.default_redirect_code))
        .bind(now)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() > 0)
}

pub(crate) async fn domain_by_id(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    id: Id,
) -> Result<Option<DomainRow>> {
    const SQL: &str =
        concat!("SELECT ", domain_columns!(), " FROM domains WHERE id = ? AND workspace_id = ?");
    Ok(query_as(SQL).bind(id).bind(workspace_id).fetch_optional(conn).await?)
}

pub(crate) async fn domain_by_host(conn: &mut SqliteConnection, host: &Host) -> Result<Option<DomainRow>> {
    const SQL: &str = concat!("SELECT ", domain_columns!(), " FROM domains WHERE host = ?");
    Ok(query_as(SQL).bind(host.as_str()).fetch_optional(conn).await?)
}

pub(crate) async fn domains_of_workspace(
    conn: &mut SqliteConnection,
    workspace_id: Id,
) -> Result<Vec<DomainRow>> {
    const SQL: &str =
        concat!("SELECT ", domain_columns!(), " FROM domains WHERE workspace_id = ? ORDER BY host");
    Ok(query_as(SQL).bind(workspace_id).fetch_all(conn).await?)
}

pub(crate) async fn all_domains(conn: &mut SqliteConnection) -> Result<Vec<DomainRow>> {
    const SQL: &str = concat!("SELECT ", domain_columns!(), " FROM domains ORDER BY host");
    Ok(query_as(SQL).fetch_all(conn).await?)
}

/// The transaction is the only writer; nothing to lock.
pub(crate) async fn lock_domain(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    id: Id,
) -> Result<Option<DomainRow>> {
    domain_by_id(conn, workspace_id, id).await
}

pub(crate) async fn write_domain(
    conn: &mut SqliteConnection,
    id: Id,
    settings: &DomainSettings,
) -> Result<()> {
    const SQL: &str = "UPDATE domains SET case_mode = ?, root_redirect = ?, fallback_url = ?, expired_url = ?, \
                       default_redirect_code = ?, version = version + 1 WHERE id = ?";
    query(SQL)
        .bind(settings.case_mode.as_str())
        .bind(settings.root_redirect.as_ref().map(|url| url.as_str()))
        .bind(settings.fallback_url.as_ref().map(|url| url.as_str()))
        .bind(settings.expired_url.as_ref().map(|url| url.as_str()))
        .bind(code_number(settings.default_redirect_code))
        .bind(id)
        .execute(conn)
        .await?;
    Ok(())
}

pub(crate) async fn case_modes(conn: &mut SqliteConnection, domain_ids: &[Id]) -> Result<Modes> {
    const SQL: &str = "SELECT id, case_mode FROM domains WHERE id IN (SELECT value FROM json_each(?))";
    let rows: Vec<(Id, String)> = query_as(SQL).bind(ids(domain_ids)).fetch_all(conn).await?;
    rows.into_iter().map(|(id, mode)| Ok((id, mode.parse::<CaseMode>()?))).collect()
}

/// The transaction is the only writer; nothing to lock.
pub(crate) async fn lock_case_modes(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    domain_ids: &[Id],
) -> Result<Modes> {
    const SQL: &str =
        "SELECT id, case_mode FROM domains WHERE id IN (SELECT value FROM json_each(?)) AND workspace_id = ?";
    let rows: Vec<(Id, String)> =
        query_as(SQL).bind(ids(domain_ids)).bind(workspace_id).fetch_all(conn).await?;
    rows.into_iter().map(|(id, mode)| Ok((id, mode.parse::<CaseMode>()?))).collect()
}

pub(crate) async fn unfold_domain(conn: &mut SqliteConnection, id: Id) -> Result<()> {
    const SQL: &str = "UPDATE slugs SET folded = slug WHERE domain_id = ? AND folded <> slug";
    query(SQL).bind(id).execute(conn).await?;
    Ok(())
}

pub(crate) async fn slugs_of_domain(
    conn: &mut SqliteConnection,
    id: Id,
    after: Option<&(Id, String)>,
    limit: i64,
) -> Result<Vec<(Id, String, bool)>> {
    const SQL: &str = "SELECT link_id, slug, deleted_at IS NOT NULL FROM slugs \
                       WHERE domain_id = ?1 AND (link_id, slug) > (?2, ?3) ORDER BY link_id, slug LIMIT ?4";
    let (link_id, slug) = after.map_or((i64::MIN, ""), |(link_id, slug)| (link_id.get(), slug.as_str()));
    Ok(query_as(SQL).bind(id).bind(link_id).bind(slug).bind(limit).fetch_all(conn).await?)
}

pub(crate) async fn rekey(conn: &mut SqliteConnection, id: Id, keys: &[(Id, &str, String)]) -> Result<()> {
    const SQL: &str = "UPDATE slugs SET folded = j.value ->> 2 FROM jsonb_each(?2) j \
                       WHERE slugs.link_id = j.value ->> 0 AND slugs.domain_id = ?1 AND slugs.slug = j.value ->> 1";
    let mut rows = Rows::new();
    for (link_id, slug, folded) in keys {
        rows.row().id(*link_id).text(Some(slug)).text(Some(folded));
    }
    query(SQL).bind(id).bind(rows.finish()).execute(conn).await?;
    Ok(())
}
