use db::{Id, Timestamp};
use sqlx::{SqliteConnection, query, query_as};

use crate::store::rows::WorkspaceRow;
use crate::{Name, Plan, Result};

pub(crate) async fn insert_workspace(
    conn: &mut SqliteConnection,
    id: Id,
    name: &Name,
    plan: Plan,
    now: Timestamp,
) -> Result<bool> {
    const SQL: &str = "INSERT INTO workspaces (id, name, plan, created_at) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO NOTHING";
    let done = query(SQL).bind(id).bind(name.as_str()).bind(plan.as_str()).bind(now).execute(conn).await?;
    Ok(done.rows_affected() > 0)
}

pub(crate) async fn workspace_by_id(conn: &mut SqliteConnection, id: Id) -> Result<Option<WorkspaceRow>> {
    const SQL: &str = "SELECT id, name, plan, default_domain_id, created_at FROM workspaces WHERE id = ?";
    Ok(query_as(SQL).bind(id).fetch_optional(conn).await?)
}

pub(crate) async fn workspace_by_name(
    conn: &mut SqliteConnection,
    name: &Name,
) -> Result<Option<WorkspaceRow>> {
    const SQL: &str = "SELECT id, name, plan, default_domain_id, created_at FROM workspaces WHERE name = ?";
    Ok(query_as(SQL).bind(name.as_str()).fetch_optional(conn).await?)
}

pub(crate) async fn all_workspaces(conn: &mut SqliteConnection) -> Result<Vec<WorkspaceRow>> {
    const SQL: &str = "SELECT id, name, plan, default_domain_id, created_at FROM workspaces ORDER BY name";
    Ok(query_as(SQL).fetch_all(conn).await?)
}

pub(crate) async fn set_plan(conn: &mut SqliteConnection, id: Id, plan: Plan) -> Result<u64> {
    const SQL: &str = "UPDATE workspaces SET plan = ? WHERE id = ?";
    Ok(query(SQL).bind(plan.as_str()).bind(id).execute(conn).await?.rows_affected())
}

pub(crate) async fn set_default_domain(
    conn: &mut SqliteConnection,
    id: Id,
    domain_id: Option<Id>,
) -> Result<u64> {
    const SQL: &str = "UPDATE workspaces SET default_domain_id = ? WHERE id = ?";
    Ok(query(SQL).bind(domain_id).bind(id).execute(conn).await?.rows_affected())
}
