//! The contract of a sink.
//!
//! A sink writes one chunk of staged records inside the engine's transaction. What it must promise:
//!
//! - **All effects go through the given transaction.** What it writes, the quarantine, the manifest and the
//!   chunk's settling commit together or not at all; a chunk may therefore run any number of times.
//! - **One [`Written`] for each record, in the same order**, with a reason wherever the record did not arrive.
//! - **References depend on the source's immutable id alone**, never on ordinal, page, time or attempt.
//! - **Bad records are told one by one.** What can be checked without the database is checked first and answered
//!   with `Outcome::Failed`. If the database still refuses the data, [`SinkError::Refused`]: the engine undoes
//!   the part and splits it until the bad record stands alone.
//! - **Rows are written in key order, parents first**, so that two chunks cannot wait for each other; a deadlock
//!   that happens all the same is [`SinkError::Retry`].
//!
//! - **What needs no database is done in [`Sink::prepare`]**, before the transaction begins: locks are held, and on SQLite
//!   everybody else's writes wait, for as long as the transaction takes.
//!
//! What it gets: records of one chunk in order of ordinal, without those the engine knows to be byte-equal to an
//! earlier one of the segment. If [`Sink::parallel`] is false, chunks come one at a time in order of
//! (partition, segment, ordinal) over all processes; otherwise in any order and side by side.

use std::any::Any;

use async_trait::async_trait;
use db::{Reader, Timestamp, Tx};

use crate::{JobId, Reason, StagedRecord, Written};

/// Which chunk is being written.
#[derive(Debug, Clone, Copy)]
pub struct ChunkContext {
    /// The job it belongs to.
    pub job: JobId,
    /// The process's time at the start of the transaction, for columns such as `created_at`.
    pub now: Timestamp,
    /// True when the chunk was refused as a whole before and is now tried in parts.
    pub isolating: bool,
}

/// What went wrong in a sink, by what the engine does about it.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The data was refused: undo, split, and quarantine the record that stands alone with this reason.
    #[error("{}: {}", .0.code, .0.detail)]
    Refused(Reason),
    /// Nothing is wrong with the data (a deadlock, somebody took a key meanwhile): run the chunk again.
    #[error("another try is needed: {0}")]
    Retry(String),
    /// The database failed; the engine tries again if the failure is a passing one and splits if it is a refusal.
    #[error(transparent)]
    Db(#[from] db::Error),
    /// The job's rule forbids to go on (conflict rule `fail`): what the job wrote is undone and the job fails.
    #[error("{0}")]
    Abort(String),
    /// Nothing will cure this; the job fails and keeps its checkpoint.
    #[error("{0}")]
    Fatal(String),
}

/// What a sink made of a chunk's records before the transaction.
#[derive(Default)]
pub struct Prepared(Option<Box<dyn Any + Send>>);

impl Prepared {
    /// Hands a value to [`Sink::write`].
    pub fn new(value: impl Any + Send) -> Self {
        Self(Some(Box::new(value)))
    }

    /// The value, if it is of this type.
    pub fn take<T: Any>(self) -> Option<T> {
        self.0?.downcast().ok().map(|value| *value)
    }
}

/// Tells what a job would do, without writing; keeps what it needs to see collisions between chunks.
#[async_trait]
pub trait Checker: Send {
    /// Foretells the outcome of each record; records of all chunks come in order.
    async fn check(
        &mut self,
        reader: &mut Reader,
        chunk: &ChunkContext,
        records: &[StagedRecord],
    ) -> Result<Vec<Written>, SinkError>;

    /// Asked after all chunks by jobs that check first: may they be written now?
    ///
    /// # Errors
    /// The sentence with which the job fails, naming what collides.
    fn verdict(&self) -> Result<(), String> {
        Ok(())
    }

    /// Called once after all chunks, to take away what the checker kept. May be missed in a crash.
    async fn done(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

/// See the [module documentation](self).
#[async_trait]
pub trait Sink: Send + Sync {
    /// Whether chunks of this sink may run side by side and in any order.
    fn parallel(&self) -> bool;

    /// Reads the records of a chunk, or of a part of one: everything that needs no database. Pure; called again for
    /// every try.
    fn prepare(&self, _chunk: &ChunkContext, _records: &[StagedRecord]) -> Prepared {
        Prepared::default()
    }

    /// Writes one chunk, with what [`Sink::prepare`] made of the same records.
    async fn write(
        &self,
        tx: &mut Tx,
        chunk: &ChunkContext,
        records: &[StagedRecord],
        prepared: Prepared,
    ) -> Result<Vec<Written>, SinkError>;

    /// Whether the bytes of a record say which record it is. Where they do not, two records of equal bytes are two
    /// records, and the sink is given both; otherwise the second is `duplicate_in_source` without asking. Asked for
    /// repeated bytes only.
    fn has_identity(&self, _raw: &[u8]) -> bool {
        true
    }

    /// The source's id and the label of a record, as far as its bytes tell them. Asked for records that the database refuses
    /// alone, so that people find them.
    fn identity(&self, _raw: &[u8]) -> Option<(String, String)> {
        None
    }

    /// Called after the chunk's commit, in the process that wrote it, for caches. May be missed in a crash.
    fn committed(&self, _written: &[Written]) {}

    /// A checker for dry runs and for jobs that check everything before they write; `None` if not offered.
    fn checker(&self) -> Option<Box<dyn Checker>> {
        None
    }

    /// Removes up to `limit` of the things that this job wrote and nobody changed since, and tells how many.
    /// Called until it returns 0.
    async fn undo(&self, _tx: &mut Tx, _job: JobId, _limit: i64) -> Result<i64, SinkError> {
        Err(SinkError::Fatal("this sink cannot undo".into()))
    }
}
