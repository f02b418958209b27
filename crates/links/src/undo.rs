//! Taking back what an import has brought.

use db::{Id, Timestamp, Tx};

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
    /// Links that the job had written again, and that are what they were before it.
    pub restored: u64,
    /// Links left, and why.
    pub kept: Vec<(Id, Kept)>,
    /// Where the next step begins; `None` when all is done.
    pub next: Option<Id>,
}

/// Removes up to `limit` links that the job has made and that are still as it wrote them, in the order of their ids
/// from `after` on; then puts back, as many at a time, those that it has written again. The last step also removes tags
/// and folders that the job made and nobody uses.
///
/// # Errors
/// The database's.
pub async fn undo_job(tx: &mut Tx, job_id: Id, after: Option<Id>, limit: u32) -> Result<Undone> {
    let after = after.unwrap_or(Id::from_stored(i64::MIN));
    let rows = db::dispatch!(tx.conn(), lock_made_by(job_id, after, i64::from(limit.max(1))))?;
    let Some(last) = rows.last().map(|row| row.id) else {
        let undone = restore(tx, job_id, i64::from(limit.max(1))).await?;
        if undone.restored > 0 || !undone.kept.is_empty() {
            return Ok(Undone { next: Some(after), ..undone });
        }
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

/// Puts links back that the job has written again.
async fn restore(tx: &mut Tx, job_id: Id, limit: i64) -> Result<Undone> {
    let rows = db::dispatch!(tx.conn(), lock_rewritten_by(job_id, limit))?;
    let ids: Vec<Id> = rows.iter().map(|row| row.id).collect();
    let mut undone = Undone::default();
    let mut put_back = Vec::new();
    for row in rows {
        match verdict(&row, job_id) {
            None => put_back.push(row.id),
            Some(kept) => undone.kept.push((row.id, kept)),
        }
    }
    if !put_back.is_empty() {
        // Before and after: of the slugs that go, and of those that stay.
        crate::changes::announce_links(tx, &put_back).await?;
        db::dispatch!(tx.conn(), put_back(job_id, &put_back, Timestamp::here()))?;
        undone.restored = put_back.len() as u64;
    }
    if !ids.is_empty() {
        db::dispatch!(tx.conn(), delete_befores(job_id, &ids))?;
    }
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
