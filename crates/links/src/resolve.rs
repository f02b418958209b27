//! From a slug to its link: what a redirect asks.

use db::{Conn, Id, Timestamp};

use crate::store::rows::code;
use crate::store::{postgres, sqlite};
use crate::{Destination, RedirectCode, Result, SourceKey};

/// Everything of a link that its redirect depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The link.
    pub link_id: Id,
    /// Where it leads.
    pub destination: Destination,
    /// The status; `None` for the domain's.
    pub redirect_code: Option<RedirectCode>,
    /// Whether the visitor's query is merged in.
    pub query_passthrough: bool,
    /// Whether it is switched on.
    pub enabled: bool,
    /// Whether it is put away; it redirects all the same.
    pub archived: bool,
    /// From then on it is expired.
    pub expires_at: Option<Timestamp>,
    /// Where it leads then.
    pub expired_url: Option<Destination>,
    /// Whether it stays closed because its password is not here.
    pub password_protected: bool,
    /// The link's version.
    pub version: i64,
    /// What it was imported from.
    pub source: Option<SourceKey>,
}

/// The live link at a key of a domain, by one look-up in one index.
///
/// `key` is [`CaseMode::key`](crate::CaseMode::key) of the slug that was asked for. Whether `a/` and `a` are the same
/// is the caller's to decide, by [`resolve_either`].
///
/// A stored destination that today's rules refuse is treated as if the link did not exist, and logged.
///
/// # Errors
/// The database's.
pub async fn resolve(conn: Conn<'_>, domain_id: Id, key: &str) -> Result<Option<Resolved>> {
    Ok(resolve_either(conn, domain_id, key, key).await?.map(|(resolved, _)| resolved))
}

/// As [`resolve`], but where no live link is at the key, the one at `other`
/// ([`Slug::other_slash`](crate::Slug::other_slash)), and whether it was found there. Still one look-up.
///
/// # Errors
/// The database's.
pub async fn resolve_either(
    conn: Conn<'_>,
    domain_id: Id,
    key: &str,
    other: &str,
) -> Result<Option<(Resolved, bool)>> {
    let Some(row) = db::dispatch!(conn, resolve(domain_id, key, other))? else { return Ok(None) };
    let (destination, expired_url) = match (
        Destination::with_limit(row.destination, usize::MAX),
        row.expired_url.map(|url| Destination::with_limit(url, usize::MAX)).transpose(),
    ) {
        (Ok(destination), Ok(expired_url)) => (destination, expired_url),
        (Err(error), _) | (_, Err(error)) => {
            tracing::error!(link.id = %row.link_id, %error, "a stored destination is not allowed; the link stays closed");
            return Ok(None);
        }
    };
    let resolved = Resolved {
        link_id: row.link_id,
        destination,
        redirect_code: code(row.redirect_code)?,
        query_passthrough: row.query_passthrough,
        enabled: row.enabled,
        archived: row.archived,
        expires_at: row.expires_at,
        expired_url,
        password_protected: row.password_protected,
        version: row.version,
        source: row.vendor.zip(row.source_id).map(|(vendor, id)| SourceKey::stored(vendor, id)),
    };
    Ok(Some((resolved, row.by_other)))
}
