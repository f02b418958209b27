use db::{Id, Pg, Timestamp};

use crate::store::rows::TokenRow;
use crate::{Result, TokenInfo};

pub(crate) async fn insert_token(
    pg: &mut Pg<'_>,
    workspace_id: Id,
    token: &TokenInfo,
    hash: &[u8],
    scopes: &str,
) -> Result<()> {
    const SQL: &str = "INSERT INTO api_tokens (id, workspace_id, name, hash, prefix, scopes, created_at, expires_at) \
                       VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    pg.query(SQL)
        .bind(token.id)
        .bind(workspace_id)
        .bind(token.name.as_str())
        .bind(hash)
        .bind(&token.prefix)
        .bind(scopes)
        .bind(token.created_at)
        .bind(token.expires_at)
        .execute(&mut *pg.conn)
        .await?;
    Ok(())
}

pub(crate) async fn tokens_of(pg: &mut Pg<'_>, workspace_id: Id) -> Result<Vec<TokenRow>> {
    const SQL: &str = "SELECT t.id, t.workspace_id, t.name, t.hash, t.prefix, t.scopes, t.created_at, t.expires_at, \
                       t.revoked_at, t.last_used_at, w.plan FROM api_tokens t JOIN workspaces w ON w.id = t.workspace_id \
                       WHERE t.workspace_id = $1 ORDER BY t.id DESC";
    Ok(pg.query_as(SQL).bind(workspace_id).fetch_all(&mut *pg.conn).await?)
}

pub(crate) async fn any_token(pg: &mut Pg<'_>) -> Result<bool> {
    Ok(pg.scalar("SELECT EXISTS (SELECT 1 FROM api_tokens)").fetch_one(&mut *pg.conn).await?)
}

pub(crate) async fn revoke_token(pg: &mut Pg<'_>, workspace_id: Id, id: Id, now: Timestamp) -> Result<u64> {
    const SQL: &str =
        "UPDATE api_tokens SET revoked_at = coalesce(revoked_at, $1) WHERE id = $2 AND workspace_id = $3";
    Ok(pg.query(SQL).bind(now).bind(id).bind(workspace_id).execute(&mut *pg.conn).await?.rows_affected())
}

pub(crate) async fn token_by_hash(pg: &mut Pg<'_>, hash: &[u8]) -> Result<Option<TokenRow>> {
    const SQL: &str = "SELECT t.id, t.workspace_id, t.name, t.hash, t.prefix, t.scopes, t.created_at, t.expires_at, \
                       t.revoked_at, t.last_used_at, w.plan FROM api_tokens t JOIN workspaces w ON w.id = t.workspace_id \
                       WHERE t.hash = $1";
    Ok(pg.query_as(SQL).bind(hash).fetch_optional(&mut *pg.conn).await?)
}

pub(crate) async fn touch_token(pg: &mut Pg<'_>, id: Id, now: Timestamp) -> Result<()> {
    pg.query("UPDATE api_tokens SET last_used_at = $1 WHERE id = $2")
        .bind(now)
        .bind(id)
        .execute(&mut *pg.conn)
        .await?;
    Ok(())
}
