use db::{Id, Timestamp};
use sqlx::{SqliteConnection, query, query_as, query_scalar};

use crate::store::rows::TokenRow;
use crate::{Result, TokenInfo};

pub(crate) async fn insert_token(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    token: &TokenInfo,
    hash: &[u8],
    scopes: &str,
) -> Result<()> {
    const SQL: &str = "INSERT INTO api_tokens (id, workspace_id, name, hash, prefix, scopes, created_at, expires_at) \
                       VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    query(SQL)
        .bind(token.id)
        .bind(workspace_id)
        .bind(token.name.as_str())
        .bind(hash)
        .bind(&token.prefix)
        .bind(scopes)
        .bind(token.created_at)
        .bind(token.expires_at)
        .execute(conn)
        .await?;
    Ok(())
}

pub(crate) async fn tokens_of(conn: &mut SqliteConnection, workspace_id: Id) -> Result<Vec<TokenRow>> {
    const SQL: &str = "SELECT t.id, t.workspace_id, t.name, t.hash, t.prefix, t.scopes, t.created_at, t.expires_at, \
                       t.revoked_at, t.last_used_at, w.plan FROM api_tokens t JOIN workspaces w ON w.id = t.workspace_id \
                       WHERE t.workspace_id = ? ORDER BY t.id DESC";
    Ok(query_as(SQL).bind(workspace_id).fetch_all(conn).await?)
}

pub(crate) async fn any_token(conn: &mut SqliteConnection) -> Result<bool> {
    Ok(query_scalar("SELECT EXISTS (SELECT 1 FROM api_tokens)").fetch_one(conn).await?)
}

pub(crate) async fn revoke_token(
    conn: &mut SqliteConnection,
    workspace_id: Id,
    id: Id,
    now: Timestamp,
) -> Result<u64> {
    const SQL: &str =
        "UPDATE api_tokens SET revoked_at = coalesce(revoked_at, ?) WHERE id = ? AND workspace_id = ?";
    Ok(query(SQL).bind(now).bind(id).bind(workspace_id).execute(conn).await?.rows_affected())
}

pub(crate) async fn token_by_hash(conn: &mut SqliteConnection, hash: &[u8]) -> Result<Option<TokenRow>> {
    const SQL: &str = "SELECT t.id, t.workspace_id, t.name, t.hash, t.prefix, t.scopes, t.created_at, t.expires_at, \
                       t.revoked_at, t.last_used_at, w.plan FROM api_tokens t JOIN workspaces w ON w.id = t.workspace_id \
                       WHERE t.hash = ?";
    Ok(query_as(SQL).bind(hash).fetch_optional(conn).await?)
}

pub(crate) async fn touch_token(conn: &mut SqliteConnection, id: Id, now: Timestamp) -> Result<()> {
    query("UPDATE api_tokens SET last_used_at = ? WHERE id = ?").bind(now).bind(id).execute(conn).await?;
    Ok(())
}
