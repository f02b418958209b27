//! The two-stage engine: stage one fetches pages of a [`Source`] and stages the raw records durably; stage two
//! takes what is staged, chunk by chunk, hands it to a [`Sink`] and settles it. It resumes anywhere, loses
//! nothing, doubles nothing, and keeps the history that proves it.
//!
//! The engine refuses to know what a record means. It knows no vendor, no link, no ledger and no HTTP: a
//! [`Source`] gives it bytes and a position, a [`Sink`] tells it what became of each record, and a [`Kind`]
//! brings the two together for a job. `ARCHITECTURE.md` lists the promises; the modules below keep them:
//!
//! - [`position`], [`source`], [`record`]: what a page is and where the next one begins;
//! - [`sink`], [`outcome`]: what is done with a chunk and what may become of a record;
//! - [`job`]: states and the moves between them;
//! - `store`: the twin SQL files and the page and chunk transactions;
//! - [`runner`]: the loops that fetch, process and clean, and stop at safe points.

pub mod failpoint;
pub mod job;
pub mod kind;
pub mod manifest;
pub mod metrics;
pub mod outcome;
pub mod position;
pub mod rate;
pub mod record;
pub mod rejects;
pub mod runner;
pub mod sink;
pub mod source;
mod staging;
pub mod store;

pub use job::{Job, JobId, Mode, NewJob, Status};
pub use kind::{Certified, JobEvent, Kind};
pub use outcome::{Counts, Outcome, Reason, Written};
pub use position::{Cursor, Position};
pub use record::{Fingerprint, Place, StagedRecord};
pub use rejects::{RejectLimit, RejectRule};
pub use runner::{Limits, Runner};
pub use sink::{Checker, ChunkContext, Prepared, Sink, SinkError};
pub use source::{Page, PartitionSpec, Profile, Source, SourceError};
pub use store::{ROOM, Store};
