//! Workspaces: who owns links.

use db::{Conn, Id, Timestamp, Tx};

use crate::store::{postgres, sqlite};
use crate::values::{Name, Plan};
use crate::{Error, Result};

/// The name of the workspace that exists without anybody making it.
pub const DEFAULT_WORKSPACE: &str = "default";

/// The owner of domains, links, tags, folders and tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Its id.
    pub id: Id,
    /// Unique.
    pub name: Name,
    /// What it has subscribed to.
    pub plan: Plan,
    /// Where imports and new links go unless told otherwise.
    pub default_domain_id: Option<Id>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The workspace of that name, made if it is missing; `true` if it was.
///
/// # Errors
/// The database's.
pub async fn ensure_workspace(tx: &mut Tx, name: &Name, now: Timestamp) -> Result<(Workspace, bool)> {
    let made = db::dispatch!(tx.conn(), insert_workspace(Id::new(), name, Plan::default(), now))?;
    let row = db::dispatch!(tx.conn(), workspace_by_name(name))?;
    Ok((row.ok_or(Error::NotFound("workspace"))?.workspace()?, made))
}

/// The default workspace, made if it is missing; `true` if it was.
///
/// # Errors
/// The database's.
pub async fn ensure_default_workspace(tx: &mut Tx, now: Timestamp) -> Result<(Workspace, bool)> {
    ensure_workspace(tx, &Name::stored(DEFAULT_WORKSPACE.into()), now).await
}

/// A workspace by id.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn workspace(conn: Conn<'_>, id: Id) -> Result<Workspace> {
    db::dispatch!(conn, workspace_by_id(id))?.ok_or(Error::NotFound("workspace"))?.workspace()
}

/// A workspace by name.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn workspace_by_name(conn: Conn<'_>, name: &Name) -> Result<Workspace> {
    db::dispatch!(conn, workspace_by_name(name))?.ok_or(Error::NotFound("workspace"))?.workspace()
}

/// All workspaces, by name.
///
/// # Errors
/// The database's.
pub async fn workspaces(conn: Conn<'_>) -> Result<Vec<Workspace>> {
    db::dispatch!(conn, all_workspaces())?.into_iter().map(|row| row.workspace()).collect()
}

/// Changes the plan.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn set_plan(tx: &mut Tx, workspace_id: Id, plan: Plan) -> Result<()> {
    found(db::dispatch!(tx.conn(), set_plan(workspace_id, plan))?, "workspace")
}

/// Makes one of the workspace's own domains its default, or none.
///
/// # Errors
/// [`Error::NotFound`] if the workspace or, in it, the domain does not exist.
pub async fn set_default_domain(tx: &mut Tx, workspace_id: Id, domain_id: Option<Id>) -> Result<()> {
    if let Some(domain_id) = domain_id {
        crate::domain(tx.conn(), workspace_id, domain_id).await?;
    }
    found(db::dispatch!(tx.conn(), set_default_domain(workspace_id, domain_id))?, "workspace")
}

fn found(rows: u64, what: &'static str) -> Result<()> {
    if rows == 0 { Err(Error::NotFound(what)) } else { Ok(()) }
}
