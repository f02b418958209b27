//! Links that look like earlier ones: a vendor that gives its records new ids makes every link come again.

use db::{Conn, Id};

use crate::Result;
use crate::store::{postgres, sqlite};

/// A link that an import brought, and an earlier one with the same destination, title and time of creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rekey {
    /// The vendor's id of the new link.
    pub source_id: String,
    /// The vendor's id under which the same content came before.
    pub earlier_id: String,
}

/// Links that `job` inserted whose content an earlier job had brought from the same vendor under another source id, in
/// the order of their coming, at most `limit`. Links whose id came over to another domain before are no such links.
///
/// No index knows contents: what the job inserted is put in order first, and the earlier links are read once. Not for
/// hot paths.
///
/// # Errors
/// The database's.
pub async fn possible_rekeys(
    conn: Conn<'_>,
    workspace_id: Id,
    vendor: &str,
    domain_id: Id,
    job: Id,
    limit: i64,
) -> Result<Vec<Rekey>> {
    let pairs: Vec<(String, String)> =
        db::dispatch!(conn, possible_rekeys(workspace_id, vendor, domain_id, job, limit))?;
    Ok(pairs.into_iter().map(|(source_id, earlier_id)| Rekey { source_id, earlier_id }).collect())
}
