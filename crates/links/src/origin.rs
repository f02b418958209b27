//! What imports have brought: recognising it, and reading it back to verify it.

use std::collections::HashMap;

use db::{Conn, Id, Tx};

use crate::store::rows::OriginRow;
use crate::store::{postgres, sqlite};
use crate::{Digest, Error, Link, NewOrigin, Result};

/// What an import has brought before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The vendor's id.
    pub source_id: String,
    /// The link it became.
    pub link_id: Id,
    /// The digest of what was written.
    pub imported_digest: Digest,
    /// The link's version as it was written.
    pub imported_version: i64,
    /// The digest of what the source had sent.
    pub source_digest: Vec<u8>,
    /// The job that wrote last.
    pub job_id: Id,
    /// The link now; `None` if somebody has deleted it.
    pub version: Option<i64>,
}

impl Origin {
    /// Whether the link is still as it was written.
    pub fn is_untouched(&self) -> bool {
        self.version == Some(self.imported_version)
    }

    /// Whether somebody has deleted the link here.
    pub fn is_deleted(&self) -> bool {
        self.version.is_none()
    }
}

/// Which of these records have come over to the domain before. Those that have not are missing in the answer.
///
/// # Errors
/// The database's.
pub async fn origins_of(
    conn: Conn<'_>,
    workspace_id: Id,
    vendor: &str,
    domain_id: Id,
    source_ids: &[&str],
) -> Result<Vec<Origin>> {
    db::dispatch!(conn, origins_of(workspace_id, vendor, domain_id, source_ids))?
        .into_iter()
        .map(origin)
        .collect()
}

fn origin(row: OriginRow) -> Result<Origin> {
    Ok(Origin {
        source_id: row.source_id,
        link_id: row.link_id,
        imported_digest: stored_digest(&row.imported_digest)?,
        imported_version: row.imported_version,
        source_digest: row.source_digest,
        job_id: row.job_id,
        version: row.version.filter(|_| row.deleted_at.is_none()),
    })
}

fn stored_digest(bytes: &[u8]) -> Result<Digest> {
    Digest::from_bytes(bytes).ok_or(Error::InvalidState("a stored digest has the wrong length"))
}

/// Notes that these records came again unchanged in meaning although the source's bytes differ, so that the next
/// run need not look closer.
///
/// # Errors
/// The database's.
pub async fn refresh_source_digests(tx: &mut Tx, workspace_id: Id, origins: &[NewOrigin]) -> Result<()> {
    if origins.is_empty() {
        return Ok(());
    }
    db::dispatch!(tx.conn(), refresh_source_digests(workspace_id, origins))
}

/// An imported link as it is now, for verification.
#[derive(Debug, Clone)]
pub struct ReadBack {
    /// The link; `None` if it is gone or deleted.
    pub link: Option<Link>,
    /// What the import noted about it.
    pub origin: Origin,
}

impl ReadBack {
    /// The digest of what is stored now.
    pub fn digest(&self) -> Option<Digest> {
        self.link.as_ref().map(crate::digest_of_read)
    }
}

/// Everything stored of these links, by link id, with the notes of the import that wrote them. Links without
/// such notes are missing in the answer.
///
/// # Errors
/// The database's.
pub async fn read_imported(conn: Conn<'_>, link_ids: &[Id]) -> Result<Vec<ReadBack>> {
    let (parts, origins) = db::dispatch!(conn, read_imported(link_ids))?;
    let mut links: HashMap<Id, Link> = parts.assemble()?.into_iter().map(|link| (link.id, link)).collect();
    origins
        .into_iter()
        .map(|row| {
            let origin = origin(row)?;
            let link = links.remove(&origin.link_id).filter(|link| link.deleted_at.is_none());
            Ok(ReadBack { link, origin })
        })
        .collect()
}
