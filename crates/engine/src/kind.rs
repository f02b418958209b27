//! A kind of job: the place where a source and a sink meet.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Counts, Job, Limits, Sink, SinkError, Source, SourceError, Status};

/// Something of the life of a job that people want to read in the log.
#[derive(Debug, Clone)]
pub enum JobEvent {
    /// A run began: the first, after a resume, or after a run boundary.
    RunStarted {
        /// Number of the run, from 1.
        run: i32,
    },
    /// A run ended in a checkpoint.
    RunCompleted {
        /// Number of the run, from 1.
        run: i32,
        /// The job's counters so far.
        counts: Counts,
        /// Records fetched so far.
        fetched: i64,
    },
    /// The job moved to another state.
    Moved {
        /// The new state.
        to: Status,
        /// Why, where there is more to say.
        reason: Option<String>,
    },
}

/// What a kind says of a job whose every record has an outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certified {
    /// It may complete.
    Holds,
    /// It may not: the job fails with this reason, and is certified anew when it is resumed.
    Fails(String),
    /// Another process is looking; ask again.
    NotNow,
}

/// A kind of job, registered with the [`Runner`](crate::Runner) under its name.
#[async_trait]
pub trait Kind: Send + Sync {
    /// The name stored with the job, for example `import`.
    fn name(&self) -> &'static str;

    /// The job's source, or `None` if this process has no credentials for it; it then processes what is staged
    /// and fetches nothing.
    async fn source(&self, job: &Job) -> Result<Option<Arc<dyn Source>>, SourceError>;

    /// The job's sink.
    async fn sink(&self, job: &Job) -> Result<Arc<dyn Sink>, SinkError>;

    /// Asked once every record has its outcome, before the job completes: does the target hold what was settled?
    ///
    /// # Errors
    /// Those of the database; the host tries again if they are passing ones.
    async fn certify(&self, _job: &Job) -> db::Result<Certified> {
        Ok(Certified::Holds)
    }

    /// The bounds of a job, where they are not those of every job of the process.
    fn limits(&self, _job: &Job, limits: &Limits) -> Limits {
        limits.clone()
    }

    /// Called for each event, to log it in the words of the kind.
    fn observe(&self, _job: &Job, _event: &JobEvent) {}
}
