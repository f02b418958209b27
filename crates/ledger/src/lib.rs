//! Declared migrations of ledger records into a table of Postgres.
//!
//! A migration is a folder that an engineer writes, without Rust: where records come from, what fields they have, one
//! query that makes rows of them and one that makes the fields of rows again. This crate reads it ([`Declaration`]), and
//! gives the engine a source and a sink for it.

pub mod certificate;
pub mod changes;
pub mod declaration;
pub mod field;
pub mod pointer;
pub mod preview;
pub mod proof;
pub mod record;

pub mod drift;
pub mod forget;
pub mod kind;
pub mod plan;
pub mod quarantine;
pub mod retry;
pub mod rollback;
pub mod rules;
pub mod service;
pub mod sink;
pub mod source;
pub mod sql;
pub mod store;

mod copy;
mod dry_run;
mod reconcile;

pub use certificate::Certificate;
pub use changes::{Accepted, Change, Changed, Unfinished};
pub use declaration::{Declaration, Folder, Problem, Variables};
pub use kind::LedgerKind;
pub use rules::{RowRate, Rules};
pub use service::Ledgers;
pub use sink::LedgerSink;
pub use store::{LedgerJob, ROOM};
