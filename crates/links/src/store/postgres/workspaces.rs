use db::{Id, Pg, Timestamp};

use crate::store::rows::WorkspaceRow;
use crate::{Name, Plan, Result};

pub(crate) async fn insert_workspace(
    pg: &mut Pg<'_>,
    id: Id,
    name: &Name,
    plan: Plan,
    now: Timestamp,
) -> Result<bool> {
    const SQL: &str = "INSERT INTO workspaces (id, name, plan, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING";
    let done = pg
        .query(SQL)
        .bind(id)
        .bind(name.as_str())
        .bind(plan.as_str())
        .bind(now)
        .execute(&mut *pg.conn)
        .await?;
    Ok(done.rows_affected() > 0)
}

pub(crate) async fn workspace_by_id(pg: &mut Pg<'_>, id: Id) -> Result<Option<WorkspaceRow>> {
    const SQL: &str = "SELECT id, name, plan, default_domain_id, created_at FROM workspaces WHERE id = $1";
    Ok(pg.query_as(SQL).bind(id).fetch_optional(&mut *pg.conn).await?)
}

pub(crate) async fn workspace_by_name(pg: &mut Pg<'_>, name: &Name) -> Result<Option<WorkspaceRow>> {
    const SQL: &str = "SELECT id, name, plan, default_domain_id, created_at FROM workspaces WHERE name = $1";
    Ok(pg.query_as(SQL).bind(name.as_str()).fetch_optional(&mut *pg.conn).await?)
}

pub(crate) async fn all_workspaces(pg: &mut Pg<'_>) -> Result<Vec<WorkspaceRow>> {
    const SQL: &str = "SELECT id, name, plan, default_domain_id, created_at FROM workspaces ORDER BY name";
    Ok(pg.query_as(SQL).fetch_all(&mut *pg.conn).await?)
}

pub(crate) async fn set_plan(pg: &mut Pg<'_>, id: Id, plan: Plan) -> Result<u64> {
    const SQL: &str = "UPDATE workspaces SET plan = $1 WHERE id = $2";
    Ok(pg.query(SQL).bind(plan.as_str()).bind(id).execute(&mut *pg.conn).await?.rows_affected())
}

pub(crate) async fn set_default_domain(pg: &mut Pg<'_>, id: Id, domain_id: Option<Id>) -> Result<u64> {
    const SQL: &str = "UPDATE workspaces SET default_domain_id = $1 WHERE id = $2";
    Ok(pg.query(SQL).bind(domain_id).bind(id).execute(&mut *pg.conn).await?.rows_affected())
}
