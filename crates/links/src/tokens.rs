//! Tokens in the database: made, listed, revoked, recognised.

use db::{Conn, Id, Timestamp, Tx};
use rand::RngCore;

use crate::store::rows::TokenRow;
use crate::store::{postgres, sqlite};
use crate::token::{ApiToken, Scope};
use crate::values::{Name, Plan};
use crate::{Error, Result};

/// A token as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenInfo {
    /// Its id.
    pub id: Id,
    /// What it is for.
    pub name: Name,
    /// Its first characters.
    pub prefix: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ceases to be valid.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// Who a valid token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The token's id.
    pub token_id: Id,
    /// Its workspace.
    pub workspace_id: Id,
    /// The workspace's plan.
    pub plan: Plan,
    /// What the token may do.
    pub scopes: Vec<Scope>,
    /// Whether [`touch_token`] is due.
    pub touch: bool,
}

/// How exact `last_used_at` is: not every request writes.
const TOUCH_MICROS: i64 = 60_000_000;

/// Makes a token. Its text is in the answer and nowhere else.
///
/// # Errors
/// The database's.
pub async fn create_token(
    tx: &mut Tx,
    workspace_id: Id,
    name: &Name,
    scopes: &[Scope],
    expires_at: Option<Timestamp>,
    now: Timestamp,
    chance: &mut (dyn RngCore + Send),
) -> Result<(TokenInfo, ApiToken)> {
    let token = ApiToken::generate(chance);
    let mut scopes = scopes.to_vec();
    scopes.sort_unstable();
    scopes.dedup();
    let words = scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ");
    let info = TokenInfo {
        id: Id::new(),
        name: name.clone(),
        prefix: token.shown().to_owned(),
        scopes,
        created_at: now,
        expires_at,
        revoked_at: None,
        last_used_at: None,
    };
    db::dispatch!(tx.conn(), insert_token(workspace_id, &info, &token.hash(), &words))?;
    Ok((info, token))
}

/// A workspace's tokens, newest first, revoked ones too.
///
/// # Errors
/// The database's.
pub async fn tokens(conn: Conn<'_>, workspace_id: Id) -> Result<Vec<TokenInfo>> {
    db::dispatch!(conn, tokens_of(workspace_id))?.into_iter().map(info).collect()
}

/// Whether there is any token at all.
///
/// # Errors
/// The database's.
pub async fn any_token(conn: Conn<'_>) -> Result<bool> {
    db::dispatch!(conn, any_token())
}

/// Revokes a token; harmless if it was.
///
/// # Errors
/// [`Error::NotFound`], also for another workspace's token.
pub async fn revoke_token(tx: &mut Tx, workspace_id: Id, id: Id, now: Timestamp) -> Result<()> {
    match db::dispatch!(tx.conn(), revoke_token(workspace_id, id, now))? {
        0 => Err(Error::NotFound("token")),
        _ => Ok(()),
    }
}

/// Who the token stands for; `None` if it is unknown, revoked or expired.
///
/// # Errors
/// The database's.
pub async fn authenticate(conn: Conn<'_>, token: &ApiToken, now: Timestamp) -> Result<Option<Caller>> {
    let Some(row) = db::dispatch!(conn, token_by_hash(&token.hash()))? else { return Ok(None) };
    // The index found it by its hash; comparing again costs nothing and does not depend on the index.
    let valid = token.matches(&row.hash)
        && row.revoked_at.is_none()
        && row.expires_at.is_none_or(|expires_at| expires_at > now);
    if !valid {
        return Ok(None);
    }
    let touch = row.last_used_at.is_none_or(|used| now.micros() - used.micros() >= TOUCH_MICROS);
    Ok(Some(Caller {
        token_id: row.id,
        workspace_id: row.workspace_id,
        plan: row.plan.parse()?,
        scopes: scopes(&row.scopes),
        touch,
    }))
}

/// Notes that a token was used.
///
/// # Errors
/// The database's.
pub async fn touch_token(tx: &mut Tx, token_id: Id, now: Timestamp) -> Result<()> {
    db::dispatch!(tx.conn(), touch_token(token_id, now))
}

fn info(row: TokenRow) -> Result<TokenInfo> {
    Ok(TokenInfo {
        id: row.id,
        name: Name::stored(row.name),
        prefix: row.prefix,
        scopes: scopes(&row.scopes),
        created_at: row.created_at,
        expires_at: row.expires_at,
        revoked_at: row.revoked_at,
        last_used_at: row.last_used_at,
    })
}

/// A word that only a newer version knows grants nothing here.
fn scopes(words: &str) -> Vec<Scope> {
    words.split(' ').filter_map(|word| word.parse().ok()).collect()
}
