//! Undo: takes back what an import wrote and nobody changed since.

use db::Id;
use engine::{JobId, Status};
use serde::Serialize;

use crate::{Error, Imports, Result};

/// What an undo did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct UndoReport {
    /// Links removed, with their slugs; they come again with the next import.
    pub removed: u64,
    /// Links that the import had updated, and that are what they were before it.
    pub restored: u64,
    /// Links left because somebody edited them here.
    pub edited: u64,
    /// Links left because a later import wrote them.
    pub written_by_another_job: u64,
    /// Links that somebody had deleted already.
    pub deleted: u64,
}

/// Links taken back in one transaction.
const AT_ONCE: u32 = 500;

impl Imports {
    /// Takes back an import that is not running any more. May be run again at any time.
    ///
    /// A failed import is cancelled by it: going on at its checkpoint would leave out what was taken back.
    ///
    /// # Errors
    /// [`Error::State`] while the import is still going on.
    pub async fn undo(&self, workspace: Option<Id>, id: JobId) -> Result<UndoReport> {
        let report = self.get(workspace, id).await?;
        if !matches!(report.status, Status::Completed | Status::Cancelled | Status::Failed) {
            return Err(Error::State { from: report.status, wanted: "undone" });
        }
        if report.status == Status::Failed {
            self.cancel(workspace, id).await?;
        }
        let mut done = UndoReport::default();
        let mut after = None;
        loop {
            let mut tx = self.store().database().begin_bulk().await?;
            let step = links::undo_job(&mut tx, id.0, after, AT_ONCE).await?;
            tx.commit().await?;
            done.removed += step.removed;
            done.restored += step.restored;
            for (_, kept) in &step.kept {
                *match kept {
                    links::Kept::Edited => &mut done.edited,
                    links::Kept::WrittenByAnotherJob => &mut done.written_by_another_job,
                    links::Kept::Deleted => &mut done.deleted,
                } += 1;
            }
            match step.next {
                Some(next) => after = Some(next),
                None => return Ok(done),
            }
        }
    }
}
