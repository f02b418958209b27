//! The statements for SQLite.

use db::{Id, Result};
use sqlx::SqliteConnection;

use super::ParametersRow;
use crate::Parameters;

pub(crate) async fn insert(
    conn: &mut SqliteConnection,
    job: Id,
    parameters: &Parameters,
    filter: &str,
    forecast: Option<&str>,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO import_parameters
            (job_id, workspace_id, source_vendor, target_domain_id, conflict_strategy, source_filter, forecast)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .bind(job)
    .bind(parameters.workspace_id)
    .bind(&parameters.vendor)
    .bind(parameters.target_domain_id)
    .bind(parameters.conflict.as_str())
    .bind(filter)
    .bind(forecast)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

pub(crate) async fn get(conn: &mut SqliteConnection, job: Id) -> Result<Option<ParametersRow>> {
    Ok(sqlx::query_as(
        "SELECT workspace_id, source_vendor, target_domain_id, conflict_strategy, source_filter
        FROM import_parameters WHERE job_id = ?1",
    )
    .bind(job)
    .fetch_optional(&mut *conn)
    .await?)
}

pub(crate) async fn list(
    conn: &mut SqliteConnection,
    workspace: Id,
    before: Option<Id>,
    limit: i64,
) -> Result<Vec<Id>> {
    Ok(sqlx::query_scalar(
        "SELECT job_id FROM import_parameters
        WHERE workspace_id = ?1 AND (?2 IS NULL OR job_id < ?2) ORDER BY job_id DESC LIMIT ?3",
    )
    .bind(workspace)
    .bind(before)
    .bind(limit)
    .fetch_all(&mut *conn)
    .await?)
}

pub(crate) async fn unfinished(
    conn: &mut SqliteConnection,
    parameters: &Parameters,
    filter: &str,
    mode: &str,
) -> Result<Option<Id>> {
    // The filter is compared as text: it is always written by the same code from sorted maps.
    Ok(sqlx::query_scalar(
        "SELECT p.job_id FROM import_parameters p JOIN jobs j ON j.id = p.job_id
        WHERE p.workspace_id = ?1 AND p.source_vendor = ?2 AND p.target_domain_id = ?3
            AND p.conflict_strategy = ?4 AND p.source_filter = ?5 AND j.mode = ?6
            AND j.status NOT IN ('completed', 'cancelled')
        ORDER BY p.job_id DESC LIMIT 1",
    )
    .bind(parameters.workspace_id)
    .bind(&parameters.vendor)
    .bind(parameters.target_domain_id)
    .bind(parameters.conflict.as_str())
    .bind(filter)
    .bind(mode)
    .fetch_optional(&mut *conn)
    .await?)
}

pub(crate) async fn keep_hosts(
    conn: &mut SqliteConnection,
    job: Id,
    records: i64,
    hosts: &str,
    is_first: bool,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO import_hosts (job_id, records, hosts)
        SELECT id, ?2, ?3 FROM jobs WHERE id = ?1 AND status = 'running' AND NOT checked
        ON CONFLICT (job_id) DO UPDATE SET records = excluded.records, hosts = excluded.hosts
            WHERE ?4 OR excluded.records >= import_hosts.records",
    )
    .bind(job)
    .bind(records)
    .bind(hosts)
    .bind(is_first)
    .execute(&mut *conn)
    .await?;
    Ok(())
}

/// Hosts and forecast of an import.
pub(crate) async fn beside(conn: &mut SqliteConnection, job: Id) -> Result<(Option<String>, Option<String>)> {
    Ok(sqlx::query_as(
        "SELECT h.hosts, p.forecast FROM import_parameters p LEFT JOIN import_hosts h ON h.job_id = p.job_id
        WHERE p.job_id = ?1",
    )
    .bind(job)
    .fetch_one(&mut *conn)
    .await?)
}

pub(crate) async fn rekeys(conn: &mut SqliteConnection, job: Id) -> Result<Option<String>> {
    let kept: Option<Option<String>> =
        sqlx::query_scalar("SELECT rekeys FROM import_parameters WHERE job_id = ?1")
            .bind(job)
            .fetch_optional(&mut *conn)
            .await?;
    Ok(kept.flatten())
}

/// Whether an earlier import of the vendor may have written links.
pub(crate) async fn any_earlier(
    conn: &mut SqliteConnection,
    workspace: Id,
    vendor: &str,
    job: Id,
) -> Result<bool> {
    Ok(sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM import_parameters p JOIN jobs j ON j.id = p.job_id
            WHERE p.workspace_id = ?1 AND p.source_vendor = ?2 AND p.job_id < ?3 AND j.mode <> 'dry_run')",
    )
    .bind(workspace)
    .bind(vendor)
    .bind(job)
    .fetch_one(&mut *conn)
    .await?)
}

pub(crate) async fn keep_rekeys(conn: &mut SqliteConnection, job: Id, rekeys: &str) -> Result<()> {
    sqlx::query("UPDATE import_parameters SET rekeys = ?2 WHERE job_id = ?1 AND rekeys IS NULL")
        .bind(job)
        .bind(rekeys)
        .execute(&mut *conn)
        .await?;
    Ok(())
}
