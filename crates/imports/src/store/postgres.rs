//! The statements for Postgres.

use db::{Id, Pg, Result};

use super::ParametersRow;
use crate::Parameters;

pub(crate) async fn insert(
    pg: &mut Pg<'_>,
    job: Id,
    parameters: &Parameters,
    filter: &str,
    forecast: Option<&str>,
) -> Result<()> {
    pg.query(
        "INSERT INTO import_parameters
            (job_id, workspace_id, source_vendor, target_domain_id, conflict_strategy, source_filter, forecast)
        VALUES ($1, $2, $3, $4, $5, $6::TEXT::JSONB, $7)",
    )
    .bind(job)
    .bind(parameters.workspace_id)
    .bind(&parameters.vendor)
    .bind(parameters.target_domain_id)
    .bind(parameters.conflict.as_str())
    .bind(filter)
    .bind(forecast)
    .execute(&mut *pg.conn)
    .await?;
    Ok(())
}

pub(crate) async fn get(pg: &mut Pg<'_>, job: Id) -> Result<Option<ParametersRow>> {
    Ok(pg
        .query_as(
            "SELECT workspace_id, source_vendor, target_domain_id, conflict_strategy, source_filter::TEXT
            FROM import_parameters WHERE job_id = $1",
        )
        .bind(job)
        .fetch_optional(&mut *pg.conn)
        .await?)
}

pub(crate) async fn list(pg: &mut Pg<'_>, workspace: Id, before: Option<Id>, limit: i64) -> Result<Vec<Id>> {
    Ok(pg
        .scalar(
            "SELECT job_id FROM import_parameters
            WHERE workspace_id = $1 AND ($2::BIGINT IS NULL OR job_id < $2) ORDER BY job_id DESC LIMIT $3",
        )
        .bind(workspace)
        .bind(before)
        .bind(limit)
        .fetch_all(&mut *pg.conn)
        .await?)
}

pub(crate) async fn unfinished(
    pg: &mut Pg<'_>,
    parameters: &Parameters,
    filter: &str,
    mode: &str,
) -> Result<Option<Id>> {
    Ok(pg
        .scalar(
            "SELECT p.job_id FROM import_parameters p JOIN crossdock.jobs j ON j.id = p.job_id
            WHERE p.workspace_id = $1 AND p.source_vendor = $2 AND p.target_domain_id = $3
                AND p.conflict_strategy = $4 AND p.source_filter = $5::TEXT::JSONB AND j.mode = $6
                AND j.status NOT IN ('completed', 'cancelled')
            ORDER BY p.job_id DESC LIMIT 1",
        )
        .bind(parameters.workspace_id)
        .bind(&parameters.vendor)
        .bind(parameters.target_domain_id)
        .bind(parameters.conflict.as_str())
        .bind(filter)
        .bind(mode)
        .fetch_optional(&mut *pg.conn)
        .await?)
}

pub(crate) async fn keep_hosts(
    pg: &mut Pg<'_>,
    job: Id,
    records: i64,
    hosts: &str,
    is_first: bool,
) -> Result<()> {
    pg.query(
        "INSERT INTO import_hosts (job_id, records, hosts)
        SELECT id, $2, $3 FROM crossdock.jobs WHERE id = $1 AND status = 'running' AND NOT checked
        ON CONFLICT (job_id) DO UPDATE SET records = excluded.records, hosts = excluded.hosts
            WHERE $4 OR excluded.records >= import_hosts.records",
    )
    .bind(job)
    .bind(records)
    .bind(hosts)
    .bind(is_first)
    .execute(&mut *pg.conn)
    .await?;
    Ok(())
}

/// Hosts and forecast of an import.
pub(crate) async fn beside(pg: &mut Pg<'_>, job: Id) -> Result<(Option<String>, Option<String>)> {
    Ok(pg
        .query_as(
            "SELECT h.hosts, p.forecast FROM import_parameters p LEFT JOIN import_hosts h ON h.job_id = p.job_id
            WHERE p.job_id = $1",
        )
        .bind(job)
        .fetch_one(&mut *pg.conn)
        .await?)
}

pub(crate) async fn rekeys(pg: &mut Pg<'_>, job: Id) -> Result<Option<String>> {
    let kept: Option<Option<String>> = pg
        .scalar("SELECT rekeys FROM import_parameters WHERE job_id = $1")
        .bind(job)
        .fetch_optional(&mut *pg.conn)
        .await?;
    Ok(kept.flatten())
}

/// Whether an earlier import of the vendor may have written links.
pub(crate) async fn any_earlier(pg: &mut Pg<'_>, workspace: Id, vendor: &str, job: Id) -> Result<bool> {
    Ok(pg
        .scalar(
            "SELECT EXISTS (SELECT 1 FROM import_parameters p JOIN crossdock.jobs j ON j.id = p.job_id
                WHERE p.workspace_id = $1 AND p.source_vendor = $2 AND p.job_id < $3 AND j.mode <> 'dry_run')",
        )
        .bind(workspace)
        .bind(vendor)
        .bind(job)
        .fetch_one(&mut *pg.conn)
        .await?)
}

pub(crate) async fn keep_rekeys(pg: &mut Pg<'_>, job: Id, rekeys: &str) -> Result<()> {
    pg.query("UPDATE import_parameters SET rekeys = $2 WHERE job_id = $1 AND rekeys IS NULL")
        .bind(job)
        .bind(rekeys)
        .execute(&mut *pg.conn)
        .await?;
    Ok(())
}
