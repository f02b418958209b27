//! The feed by which caches, also those of other processes, learn what to forget.

use db::{Conn, Id, Tx};

use crate::Result;
use crate::store::{postgres, sqlite};

/// How many changes are handed out one by one; if there are more, the answer is to forget everything.
pub const CHANGES_MAX: i64 = 10_000;

/// How long changes are kept, in seconds. A cache that could not read the feed for that long forgets everything.
pub const CHANGES_KEPT_SECONDS: i64 = 3_600;

/// Up to where the feed was read: on SQLite a row's number, on Postgres a transaction's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(pub(crate) i64);

/// One thing to forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The domain; `None` for all of them.
    pub domain_id: Option<Id>,
    /// The key ([`CaseMode::key`](crate::CaseMode::key)) within the domain; `None` for the whole domain and its settings.
    pub key: Option<String>,
    /// The link, if it is about one.
    pub link_id: Option<Id>,
}

/// What was read from the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    /// What to forget. On Postgres a change may come more than once.
    pub changes: Vec<Change>,
    /// More than [`CHANGES_MAX`] changes: forget everything.
    pub everything: bool,
    /// Where to go on.
    pub mark: Mark,
}

/// Where the feed stands now: read it before a cache begins to fill.
///
/// # Errors
/// The database's.
pub async fn changes_mark(conn: Conn<'_>) -> Result<Mark> {
    db::dispatch!(conn, changes_mark()).map(Mark)
}

/// What has changed since `mark`.
///
/// On Postgres transactions commit in another order than they began. The mark is therefore the oldest transaction
/// that was under way, and rows from it on are read again: a late commit is never missed.
///
/// # Errors
/// The database's.
pub async fn changes_since(conn: Conn<'_>, mark: Mark) -> Result<Changes> {
    let rows = db::dispatch!(conn, changes_since(mark.0, CHANGES_MAX + 1))?;
    let mark = rows.first().map_or(mark, |row| Mark(row.mark));
    let everything = i64::try_from(rows.len()).unwrap_or(i64::MAX) > CHANGES_MAX;
    let changes = if everything {
        Vec::new()
    } else {
        rows.into_iter()
            .filter(|row| row.id.is_some())
            .map(|row| Change { domain_id: row.domain_id, key: row.folded, link_id: row.link_id })
            .collect()
    };
    Ok(Changes { changes, everything, mark })
}

/// Drops changes older than [`CHANGES_KEPT_SECONDS`] by the database's clock; how many there were.
///
/// # Errors
/// The database's.
pub async fn purge_changes(tx: &mut Tx) -> Result<u64> {
    db::dispatch!(tx.conn(), purge_changes(CHANGES_KEPT_SECONDS))
}

/// Announces a domain's settings and all its slugs.
pub(crate) async fn announce_domain(tx: &mut Tx, domain_id: Id) -> Result<()> {
    db::dispatch!(tx.conn(), announce_domain(domain_id))
}

/// Announces every slug, live or deleted, of these links.
pub(crate) async fn announce_links(tx: &mut Tx, link_ids: &[Id]) -> Result<()> {
    db::dispatch!(tx.conn(), announce_links(link_ids))
}
