//! Taking back what an import has brought.

use db::{Id, Tx};

use crate::Result;
use crate::store::rows::MadeRow;
use crate::store::{postgres, sqlite};

/// Why an undo leaves a link where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Somebody has edited it here.
    Edited,
    /// A later import has written it.
    WrittenByAnotherJob,
    /// Somebody has deleted it; the import's note about it is gone now, so that it comes again.
    Deleted,
}

/// What one step of an undo did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Undone {
    /// Links removed, with slugs, tags, clicks and origins.
    pub removed: u64,
    /// Links left, and why.
    pub kept: Vec<(Id, Kept)>,
    /// Where the next step begins; `None` when all is done.
    pub next: Option<Id>,
}

/// Removes up to `limit` links that the job has made and that are still as it wrote them, in the order of their ids
/// from `after` on. The last step also removes tags and folders that the job made and nobody uses.
///
/// # Errors
/// The database's.
pub async fn undo_job(tx: &mut Tx, job_id: Id, after: Option<Id>, limit: u32) -> Result<Undone> {
    let after = after.unwrap_or(Id::from_stored(i64::MIN));
    let rows = db::dispatch!(tx.conn(), lock_made_by(job_id, after, i64::from(limit.max(1))))?;
    let Some(last) = rows.last().map(|row| row.id) else {
        db::dispatch!(tx.conn(), delete_unused_names(job_id))?;
        return Ok(Undone::default());
    };
    let mut undone = Undone { next: Some(last), ..Undone::default() };
    let (mut remove, mut forget) = (Vec::new(), Vec::new());
    for row in rows {
        match verdict(&row, job_id) {
            None => remove.push(row.id),
            Some(kept) => {
                undone.kept.push((row.id, kept));
                if kept == Kept::Deleted {
                    forget.push(row.id);
                }
            }
        }
    }
    crate::changes::announce_links(tx, &remove).await?;
    forget.extend(&remove);
    db::dispatch!(tx.conn(), delete_origins(&forget))?;
    undone.removed = db::dispatch!(tx.conn(), delete_links(&remove))?;
    Ok(undone)
}

fn verdict(row: &MadeRow, job_id: Id) -> Option<Kept> {
    if row.deleted_at.is_some() {
        return Some(Kept::Deleted);
    }
    match (row.job_id, row.imported_version) {
        (Some(job), _) if job != job_id => Some(Kept::WrittenByAnotherJob),
        (Some(_), Some(version)) if version == row.version => None,
        _ => Some(Kept::Edited),
    }
}
