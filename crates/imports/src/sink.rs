//! The link sink: writes a chunk of records into the link domain, set-wise, in the engine's transaction.
//!
//! Chunks of this sink run one at a time and in order, because the slug a record gets under the rule `suffix` depends
//! on the records before it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use db::{Database, Id, Tx};
use engine::{Checker, ChunkContext, JobId, Sink, SinkError, StagedRecord, Written};

use crate::checker::LinkChecker;
use crate::decide::{Action, Claimed, Decider, Knowledge, Rules, Update};
use crate::kind::AfterCommit;
use crate::prepare::{Candidate, Prepared, Preparer};

/// Writes imported links.
pub struct LinkSink {
    pub(crate) preparer: Preparer,
    pub(crate) rules: Rules,
    after_commit: AfterCommit,
    /// For what a check has to keep beside its job.
    database: Database,
    /// Where the next step of an undo begins.
    undone: Mutex<Option<Id>>,
}

impl LinkSink {
    pub(crate) fn new(
        preparer: Preparer,
        rules: Rules,
        after_commit: AfterCommit,
        database: Database,
    ) -> Self {
        Self { preparer, rules, after_commit, database, undone: Mutex::new(None) }
    }

    fn read(&self, context: &ChunkContext, records: &[StagedRecord]) -> Vec<Prepared> {
        records.iter().map(|record| self.preparer.prepare(record, context.now)).collect()
    }

    async fn decide(&self, tx: &mut Tx, prepared: Vec<Prepared>) -> Result<Vec<Action>, SinkError> {
        let candidates = candidates(&prepared);
        let mut claimed = Claimed::default();
        let knowledge = Knowledge::learn(tx, &self.rules, &claimed, &candidates).await.map_err(sink_error)?;
        let mut decider = Decider { rules: &self.rules, knowledge: &knowledge, claimed: &mut claimed };
        let (actions, collisions) = decider.decide(prepared);
        match collisions.first() {
            Some(first) => Err(SinkError::Abort(format!(
                "{} was taken while this import was writing; everything it wrote is undone",
                first.0
            ))),
            None => Ok(actions),
        }
    }
}

pub(crate) fn candidates(prepared: &[Prepared]) -> Vec<&Candidate> {
    prepared
        .iter()
        .filter_map(|prepared| match prepared {
            Prepared::Candidate(candidate) => Some(&**candidate),
            Prepared::Settled(_) => None,
        })
        .collect()
}

pub(crate) fn sink_error(error: links::Error) -> SinkError {
    match error {
        links::Error::Db(error) => SinkError::Db(error),
        other => SinkError::Fatal(other.to_string()),
    }
}

#[async_trait]
impl Sink for LinkSink {
    fn parallel(&self) -> bool {
        false
    }

    fn prepare(&self, context: &ChunkContext, records: &[StagedRecord]) -> engine::Prepared {
        engine::Prepared::new(self.read(context, records))
    }

    async fn write(
        &self,
        tx: &mut Tx,
        context: &ChunkContext,
        records: &[StagedRecord],
        prepared: engine::Prepared,
    ) -> Result<Vec<Written>, SinkError> {
        let prepared = prepared.take().unwrap_or_else(|| self.read(context, records));
        let actions = self.decide(tx, prepared).await?;
        let mut inserts = Vec::new();
        let mut digests = Vec::new();
        let mut updates = Vec::new();
        let mut written = Vec::with_capacity(actions.len());
        for action in actions {
            match action {
                Action::Nothing(outcome) => written.push(outcome),
                Action::Insert(link, digest, outcome) => {
                    inserts.push(*link);
                    digests.push(digest);
                    written.push(outcome);
                }
                Action::Update(update, outcome) => {
                    updates.push((written.len(), *update));
                    written.push(outcome);
                }
            }
        }
        let workspace = self.rules.workspace_id;
        let lost = links::insert_digested(tx, workspace, &inserts, &digests, context.now)
            .await
            .map_err(sink_error)?;
        if let Some(lost) = lost.first() {
            return Err(SinkError::Retry(format!("the slug {} was taken meanwhile", lost.place.slug)));
        }
        self.update(tx, context, updates, &mut written).await?;
        Ok(written)
    }

    fn has_identity(&self, raw: &[u8]) -> bool {
        self.preparer.has_identity(raw)
    }

    fn committed(&self, written: &[Written]) {
        (self.after_commit)(written);
    }

    fn checker(&self) -> Option<Box<dyn Checker>> {
        Some(Box::new(LinkChecker::new(self.preparer.clone(), self.rules.clone(), self.database.clone())))
    }

    async fn undo(&self, tx: &mut Tx, job: JobId, limit: i64) -> Result<i64, SinkError> {
        loop {
            let after = *self.undone.lock().unwrap_or_else(PoisonError::into_inner);
            let limit = u32::try_from(limit).unwrap_or(u32::MAX);
            let step = links::undo_job(tx, job.0, after, limit).await.map_err(sink_error)?;
            *self.undone.lock().unwrap_or_else(PoisonError::into_inner) = step.next;
            for (link, kept) in &step.kept {
                tracing::info!(job = %job, link.id = %link, reason = ?kept, "import: undo left a link where it is");
            }
            let done = step.removed + step.restored;
            if done > 0 || step.next.is_none() {
                return Ok(i64::try_from(done).unwrap_or(i64::MAX));
            }
        }
    }
}

impl LinkSink {
    /// Writes links that changed at the source, and notes what stands there now.
    async fn update(
        &self,
        tx: &mut Tx,
        context: &ChunkContext,
        updates: Vec<(usize, Update)>,
        written: &mut [Written],
    ) -> Result<(), SinkError> {
        if updates.is_empty() {
            return Ok(());
        }
        let undated: HashSet<Id> = updates
            .iter()
            .filter(|(_, update)| update.undated)
            .map(|(_, update)| update.link.link_id)
            .collect();
        let (places, mut rows): (Vec<usize>, Vec<links::ImportedUpdate>) =
            updates.into_iter().map(|(index, update)| (index, update.link)).unzip();
        if !undated.is_empty() {
            let ids: Vec<Id> = undated.into_iter().collect();
            for read in links::read_imported(tx.conn(), &ids).await.map_err(sink_error)? {
                let row = rows.iter_mut().find(|row| row.link_id == read.origin.link_id);
                if let (Some(row), Some(link)) = (row, read.link) {
                    row.content.created_at = link.content.created_at;
                }
            }
        }
        let done = links::update_imported(tx, self.rules.workspace_id, &rows, context.now)
            .await
            .map_err(sink_error)?;
        if !done.stale.is_empty() || !done.lost.is_empty() {
            return Err(SinkError::Retry("a link was edited or a slug was taken meanwhile".into()));
        }
        let ids: Vec<Id> = rows.iter().map(|update| update.link_id).collect();
        let now = links::read_imported(tx.conn(), &ids).await.map_err(sink_error)?;
        for (index, update) in places.into_iter().zip(&rows) {
            if let Some(read) = now.iter().find(|read| read.origin.link_id == update.link_id) {
                written[index].digest = *read.origin.imported_digest.as_bytes();
            }
        }
        Ok(())
    }
}

/// A hook that does nothing, for processes without caches.
pub fn no_caches() -> AfterCommit {
    Arc::new(|_| {})
}
